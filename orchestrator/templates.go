package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// ErrTemplateName is the cause of the fault that a new template has the name of another one.
var ErrTemplateName = errors.New("Env Template with specified name already exists")

// Template is a caller's view of an environment template: applications from which environments can be made. It belongs to a
// project; callers of all projects can read, clone and use a public one.
type Template struct {
	ID, Name, ProjectID, DescriptionText string
	Public                               bool
	Version                              int64
	Created, Updated                     time.Time

	// Services are the applications; not in lists.
	Services []any
}

func seenTemplate(row store.Template) Template {
	services := []any(row.Services)
	if services == nil {
		services = []any{}
	}
	return Template{ID: row.ID, Name: row.Name, ProjectID: row.ProjectID, DescriptionText: row.DescriptionText, Public: row.Public,
		Version: row.Version, Created: row.Created.Time(), Updated: row.Updated.Time(), Services: services}
}

// Templates keeps templates of environments.
type Templates struct{ *core }

// Templates are the templates of environments.
func (s *Service) Templates() Templates { return Templates{s.core} }

// List lists templates without their applications, oldest first unless the page has another order: the caller's project's and all
// public ones. With public true it lists all public ones only, with false the project's private ones. next is the marker of the next page,
// "" after the last one.
func (s Templates) List(ctx context.Context, caller identity.Caller, public *bool, page store.Page) (list []Template, next string, err error) {
	visible := store.OwnOrPublic
	switch {
	case public != nil && *public:
		visible = store.AllPublic
	case public != nil:
		visible = store.OwnPrivate
	}
	rows, err := s.store.Templates().List(ctx, caller.ProjectID, visible, oneMore(page))
	if err != nil {
		return nil, "", pageFault(err, page)
	}
	rows, next = cut(rows, page, func(row store.Template) string { return row.ID })
	list = make([]Template, len(rows))
	for i, row := range rows {
		list[i] = seenTemplate(row)
	}
	return list, next, nil
}

// Create makes a template of the posted object: name, optionally description_text, is_public and services.
func (s Templates) Create(ctx context.Context, caller identity.Caller, body map[string]any) (Template, error) {
	name, err := templateName(body)
	if err != nil {
		return Template{}, err
	}
	row := store.Template{ID: store.NewID(), ProjectID: caller.ProjectID, Name: name}
	row.DescriptionText, _ = body["description_text"].(string)
	if row.Public, err = isPublic(body, false); err != nil {
		return Template{}, err
	}
	if services, there := body["services"]; there && services != nil {
		list, ok := services.([]any)
		if !ok {
			return Template{}, errNoList()
		}
		row.Services = list
	}
	if err := s.bounded(size{}, body); err != nil {
		return Template{}, err
	}
	if err := secret.Unmask(map[string]any{"services": []any(row.Services)}); err != nil {
		return Template{}, err
	}
	if err := s.store.Templates().Create(ctx, &row); err != nil {
		if errors.Is(err, store.ErrDuplicate) {
			err = fault.New(fault.Conflict, "%w", ErrTemplateName)
		}
		return Template{}, err
	}
	return s.shownTemplate(ctx, row), nil
}

// templateName is the name in a body that must have one.
func templateName(body map[string]any) (string, error) {
	name, _ := body["name"].(string)
	if strings.TrimSpace(name) == "" {
		return "", fault.New(fault.Invalid, "Please, specify a name of the environment template.")
	}
	return name, checkTemplateLength(name)
}

func checkTemplateLength(name string) error {
	if utf8.RuneCountInString(name) > maxName {
		return fault.New(fault.Invalid, "Environment template name should be %d characters maximum", maxName)
	}
	return nil
}

func isPublic(body map[string]any, otherwise bool) (bool, error) {
	value, there := body["is_public"]
	if !there {
		return otherwise, nil
	}
	public, ok := value.(bool)
	if !ok {
		return false, fault.New(fault.Invalid, "is_public is true or false, not %v", value)
	}
	return public, nil
}

func errTemplateName() error {
	return fault.New(fault.Conflict, "Env template with specified name already exists")
}

func errNoList() error { return fault.New(fault.Invalid, "The applications of a template are a list") }

func noTemplate(id string) error {
	return fault.New(fault.NotFound, "EnvTemplate <TempId %s> is not found", id)
}

// Get shows a template with its applications: one of the caller's project or a public one, to an admin any.
func (s Templates) Get(ctx context.Context, caller identity.Caller, id string) (Template, error) {
	row, err := s.visible(ctx, caller, id)
	if err != nil {
		return Template{}, err
	}
	return s.shownTemplate(ctx, row), nil
}

func (s Templates) visible(ctx context.Context, caller identity.Caller, id string) (store.Template, error) {
	row, err := s.row(ctx, id)
	if err == nil && !row.Public && !caller.Admin && row.ProjectID != caller.ProjectID {
		err = errForeignTemplate()
	}
	return row, err
}

func errForeignTemplate() error {
	return fault.New(fault.Forbidden, "User has no access to these resources.")
}

func (s Templates) row(ctx context.Context, id string) (store.Template, error) {
	row, err := s.store.Templates().Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return row, noTemplate(id)
	}
	return row, err
}

// own returns a fault unless the caller may change the template: others may only read a public one.
func (s Templates) own(ctx context.Context, caller identity.Caller, id string) error {
	row, err := s.row(ctx, id)
	if err != nil {
		return err
	}
	if row.ProjectID != caller.ProjectID && !caller.Admin {
		return errForeignTemplate()
	}
	return nil
}

// Update changes name (which must be given), description_text and is_public.
func (s Templates) Update(ctx context.Context, caller identity.Caller, id string, body map[string]any) (Template, error) {
	if err := s.own(ctx, caller, id); err != nil {
		return Template{}, err
	}
	name, _ := body["name"].(string)
	if strings.TrimSpace(name) == "" {
		return Template{}, fault.New(fault.Invalid, "EnvTemplate body is incorrect: the name must be given")
	}
	if err := checkTemplateLength(name); err != nil {
		return Template{}, err
	}
	row, err := s.store.Templates().Edit(ctx, id, func(row *store.Template) (err error) {
		row.Name = name
		if description, ok := body["description_text"].(string); ok {
			row.DescriptionText = description
		}
		row.Public, err = isPublic(body, row.Public)
		return err
	})
	return s.shownTemplate(ctx, row), editedTemplate(err, id)
}

func editedTemplate(err error, id string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noTemplate(id)
	case errors.Is(err, store.ErrDuplicate):
		return errTemplateName()
	}
	return err
}

// Delete removes a template.
func (s Templates) Delete(ctx context.Context, caller identity.Caller, id string) error {
	if err := s.own(ctx, caller, id); err != nil {
		return err
	}
	return editedTemplate(s.store.Templates().Delete(ctx, id), id)
}

// Clone copies a public template, under the name in the body, into the caller's project. The copy is public if the body has
// is_public.
func (s Templates) Clone(ctx context.Context, caller identity.Caller, id string, body map[string]any) (Template, error) {
	source, err := s.row(ctx, id)
	if err != nil {
		return Template{}, err
	}
	if !source.Public {
		return Template{}, errForeignTemplate()
	}
	name, err := templateName(body)
	if err != nil {
		return Template{}, err
	}
	copied := store.Template{ID: store.NewID(), ProjectID: caller.ProjectID, Name: name, DescriptionText: source.DescriptionText,
		Services: source.Services}
	if copied.Public, err = isPublic(body, false); err != nil {
		return Template{}, err
	}
	if err := s.store.Templates().Create(ctx, &copied); err != nil {
		if errors.Is(err, store.ErrDuplicate) {
			err = errTemplateName()
		}
		return Template{}, err
	}
	return s.shownTemplate(ctx, copied), nil
}

// CreateEnvironment makes an environment as Environments.Create does, and a session in whose draft the template's applications
// are. Their objects keep their ids, as in Murano: an id is unique in one environment.
func (s Templates) CreateEnvironment(ctx context.Context, caller identity.Caller, id string, body map[string]any) (environmentID, sessionID string, err error) {
	template, err := s.visible(ctx, caller, id)
	if err != nil {
		return "", "", err
	}
	if _, err := templateName(body); err != nil {
		return "", "", err
	}
	row, err := newEnvironment(caller, body)
	if err != nil {
		return "", "", err
	}
	session, err := s.store.Environments().CreateWithSession(ctx, &row, store.Holder{ID: caller.UserID, Name: caller.UserName}, template.Services)
	return row.ID, session.ID, taken(err)
}

// ofProject returns a template for work on its applications, which only its own project does, not even an admin (as in
// Murano).
func (s Templates) ofProject(ctx context.Context, caller identity.Caller, id string) (store.Template, error) {
	row, err := s.store.Templates().Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return row, fault.New(fault.NotFound, "Environment Template with id %s not found", id)
	}
	if err == nil && row.ProjectID != caller.ProjectID {
		return row, fault.New(fault.Forbidden, "User is not authorized to access this tenant resources")
	}
	return row, err
}

// Services returns the value at the path below the template's applications: with an empty path the list.
func (s Templates) Services(ctx context.Context, caller identity.Caller, id string, path []string) (any, error) {
	row, err := s.ofProject(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	value, found := lookUp(s.shownTemplate(ctx, row).Services, path)
	if !found {
		return nil, fault.New(fault.NotFound, "Environment Template %s has no application at %s", id, join(path))
	}
	return value, nil
}

// AddServices adds an application (body is an object) or several (a list).
func (s Templates) AddServices(ctx context.Context, caller identity.Caller, id string, path []string, body any) error {
	body = copied(body)
	_, err := s.edit(ctx, caller, id, func(objects map[string]any) error {
		added, err := toAdd(path, body)
		services, _ := objects["services"].([]any)
		objects["services"] = append(services, added...)
		return err
	})
	return err
}

// PutServices replaces the value at the path below the template's applications, elements of a list by id or
// index.
func (s Templates) PutServices(ctx context.Context, caller identity.Caller, id string, path []string, body any) error {
	body = copied(body)
	_, err := s.edit(ctx, caller, id, func(objects map[string]any) error {
		if _, list := body.([]any); len(path) == 0 && !list {
			return errNoList()
		}
		path := append([]string{"services"}, path...)
		last := len(path) - 1
		parent, found := lookUp(objects, path[:last])
		if list, ok := parent.([]any); ok {
			i := indexOf(list, path[last])
			if found = i >= 0; found {
				path[last] = strconv.Itoa(i)
			}
		}
		if !found {
			return fault.New(fault.NotFound, "The template %s has no application at %s", id, join(path))
		}
		return replaceAt(objects, path, body)
	})
	return err
}

// Differs reports whether other applications would change a template. Only the server knows its secrets.
func (s Templates) Differs(ctx context.Context, caller identity.Caller, id string, services []any) (bool, error) {
	row, err := s.ofProject(ctx, caller, id)
	if err != nil {
		return false, err
	}
	before := map[string]any{"services": seenTemplate(row).Services}
	wanted := map[string]any{"services": copied(services)}
	if err := secret.Unmask(wanted, before); err != nil {
		return false, err
	}
	was, err := json.Marshal(before)
	if err != nil {
		return false, err
	}
	will, err := json.Marshal(wanted)
	return !bytes.Equal(was, will), err
}

// DeleteServices removes the value at the path below the template's applications and returns the remaining template.
func (s Templates) DeleteServices(ctx context.Context, caller identity.Caller, id string, path []string) (Template, error) {
	return s.edit(ctx, caller, id, func(objects map[string]any) error {
		if err := removeAt(objects, append([]string{"services"}, path...)); err != nil {
			return fault.New(fault.NotFound, "The template %s has no application at %s", id, join(path))
		}
		return nil
	})
}

func (s Templates) edit(ctx context.Context, caller identity.Caller, id string, change func(objects map[string]any) error) (Template, error) {
	if _, err := s.ofProject(ctx, caller, id); err != nil {
		return Template{}, err
	}
	row, err := s.store.Templates().Edit(ctx, id, func(row *store.Template) error {
		objects := map[string]any{"services": seenTemplate(*row).Services}
		before := store.Copy(objects)
		if err := (Models(s)).within(change)(objects); err != nil {
			return err
		}
		if err := secret.Unmask(objects, before); err != nil {
			return err
		}
		row.Services, _ = objects["services"].([]any)
		return nil
	})
	return s.shownTemplate(ctx, row), editedTemplate(err, id)
}
