package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// maxName is the longest name of an environment, in characters.
const maxName = 255

// Environment is a caller's view of an environment.
type Environment struct {
	ID, Name, ProjectID, DescriptionText string
	Version                              int64
	Created, Updated                     time.Time

	// Status is one of ready, pending, deploying, deploy failure, deleting, delete failure; "" where it was not asked for.
	Status string
	// AcquiredBy is the session that is deploying; "" when none is. In Show only.
	AcquiredBy string
	// Services are the applications. In Show only.
	Services Applications
}

func seen(row store.Environment) Environment {
	return Environment{ID: row.ID, Name: row.Name, ProjectID: row.ProjectID, DescriptionText: row.DescriptionText,
		Version: row.Version, Created: row.Created.Time(), Updated: row.Updated.Time()}
}

// ListOptions select the listed environments; the policy decides about callers that ask for other projects'
// environments.
type ListOptions struct {
	AllProjects bool
	ProjectID   string
}

// Environments lists, makes, renames and deletes environments.
type Environments struct{ *core }

// Environments are the environments of projects.
func (s *Service) Environments() Environments { return Environments{s.core} }

// List lists environments with their status, oldest first.
func (s Environments) List(ctx context.Context, caller identity.Caller, options ListOptions) ([]Environment, error) {
	project, err := options.project(caller)
	if err != nil {
		return nil, err
	}
	rows, sessions, _, err := s.rows(ctx, project, nil)
	return withStatuses(rows, sessions), err
}

// Page is a part of List. next is the marker of the next page, "" after the last one.
func (s Environments) Page(ctx context.Context, caller identity.Caller, options ListOptions, page store.Page) (list []Environment, next string, err error) {
	project, err := options.project(caller)
	if err != nil {
		return nil, "", err
	}
	rows, sessions, next, err := s.rows(ctx, project, &page)
	return withStatuses(rows, sessions), next, err
}

// rows are the environments of a project, or a page of them, with their sessions. next is the marker of the next page, "" after the last one.
func (s Environments) rows(ctx context.Context, project string, page *store.Page) (rows []store.Environment, sessions map[string][]store.Session, next string, err error) {
	if page == nil {
		rows, sessions, err = s.store.Environments().List(ctx, project)
		return rows, sessions, "", err
	}
	if rows, sessions, err = s.store.Environments().Page(ctx, project, oneMore(*page)); err != nil {
		return nil, nil, "", pageFault(err, *page)
	}
	rows, next = cut(rows, *page, func(row store.Environment) string { return row.ID })
	return rows, sessions, next, nil
}

// project is whose environments are listed; "" is all projects.
func (o ListOptions) project(caller identity.Caller) (string, error) {
	if !o.AllProjects && o.ProjectID == "" {
		return caller.ProjectID, nil
	}
	if !caller.May("list_environments_all_tenants") {
		return "", fault.New(fault.Forbidden, "Access was denied to this resource.")
	}
	if o.AllProjects {
		return "", nil
	}
	return o.ProjectID, nil
}

func withStatuses(rows []store.Environment, sessions map[string][]store.Session) []Environment {
	list := make([]Environment, len(rows))
	for i, row := range rows {
		list[i] = seen(row)
		list[i].Status, _ = status(sessions[row.ID])
	}
	return list
}

// status computes an environment's status from its sessions, as Murano does. The newest session that deploys, deletes or
// failed decides; an open one makes it pending unless a failure follows. acquiredBy is the session that is deploying.
func status(sessions []store.Session) (status, acquiredBy string) {
	ordered := sessions
	if len(sessions) > 1 {
		ordered = slices.Clone(sessions)
		slices.SortStableFunc(ordered, func(a, b store.Session) int {
			return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(b.Updated, a.Updated))
		})
	}
	opened := false
walk:
	for _, session := range ordered {
		switch session.State {
		case store.Opened:
			opened = true
		case store.Deploying:
			return string(store.Deploying), session.ID
		case store.Deleting, store.DeployFailure, store.DeleteFailure:
			return string(session.State), ""
		case store.Deployed:
			break walk
		}
	}
	if opened {
		return "pending", ""
	}
	return "ready", ""
}

// Create makes an environment. body is the posted object: name, optionally defaultNetworks, region,
// description_text and any other key of the object model.
func (s Environments) Create(ctx context.Context, caller identity.Caller, body map[string]any) (Environment, error) {
	row, err := newEnvironment(caller, body)
	if err == nil {
		err = s.bounded(size{}, row.Model.Objects)
	}
	if err == nil {
		err = secret.Unmask(row.Model.Objects)
	}
	if err != nil {
		return Environment{}, err
	}
	if err := s.store.Environments().Create(ctx, &row); err != nil {
		return Environment{}, taken(err)
	}
	return seen(row), nil
}

// newEnvironment makes the row of an environment from the posted object.
func newEnvironment(caller identity.Caller, body map[string]any) (store.Environment, error) {
	name, _ := body["name"].(string)
	if strings.TrimSpace(name) == "" {
		return store.Environment{}, fault.New(fault.Invalid, "Please, specify a name of the environment to create")
	}
	if err := checkLength(name); err != nil {
		return store.Environment{}, err
	}
	description, _ := body["description_text"].(string)
	objects := maps.Clone(body)
	delete(objects, "description_text")
	objects["?"] = map[string]any{"id": store.NewID(), "type": "io.murano.Environment", "metadata": map[string]any{}}
	if objects["defaultNetworks"] == nil {
		objects["defaultNetworks"] = map[string]any{
			"environment": map[string]any{
				"?":    map[string]any{"id": store.NewID(), "type": "io.murano.resources.NeutronNetwork"},
				"name": name + "-network",
			},
			"flat": nil,
		}
	}
	return store.Environment{ID: store.NewID(), ProjectID: caller.ProjectID, Name: name, DescriptionText: description,
		Model: store.Model{Objects: objects}}, nil
}

func checkLength(name string) error {
	if utf8.RuneCountInString(name) > maxName {
		return fault.New(fault.Invalid, "Environment name should be %d characters maximum", maxName)
	}
	return nil
}

func taken(err error) error {
	if errors.Is(err, store.ErrDuplicate) {
		return fault.New(fault.Conflict, "Environment with specified name already exists")
	}
	return err
}

// Get shows an environment as it is, or as the session drafts it; sessionID may be "".
func (s Environments) Get(ctx context.Context, caller identity.Caller, id, sessionID string) (Environment, error) {
	row, sessions, err := s.withSessions(ctx, caller, id)
	if err != nil {
		return Environment{}, err
	}
	objects, err := s.draftAmong(ctx, row, sessionID, sessions)
	if err != nil {
		return Environment{}, err
	}
	environment := seen(row)
	environment.Status, environment.AcquiredBy = status(sessions)
	environment.Services, err = withStatus(s.shown(ctx, row, objects)["services"], environment.Status)
	return environment, err
}

// withStatus returns the applications with a status. An application without ?/id has no address, so it makes the list unreadable, as in Murano.
func withStatus(services any, status string) (Applications, error) {
	list, _ := services.([]any)
	for i, element := range list {
		application, _ := element.(map[string]any)
		header, _ := application["?"].(map[string]any)
		if _, ok := header["id"].(string); !ok {
			return Applications{}, fault.New(fault.NotFound, "The resource could not be found: application %d of the environment has no ?/id; delete it by its number (DELETE services/%d) or the session", i, i)
		}
	}
	return Applications{List: list, Status: status}, nil
}

// Applications are the applications of an environment, which Murano shows with the environment's status in each one's header ("?"). The list belongs to the
// environment's model and is not changed.
type Applications struct {
	List   []any // of maps with a header
	Status string
}

// MarshalJSON implements json.Marshaler.
func (a Applications) MarshalJSON() ([]byte, error) {
	shown := make([]any, len(a.List))
	for i, element := range a.List {
		application := maps.Clone(element.(map[string]any))
		header := maps.Clone(application["?"].(map[string]any))
		header["status"], application["?"] = a.Status, header
		shown[i] = application
	}
	return json.Marshal(shown)
}

// Rename gives an environment another name.
func (s Environments) Rename(ctx context.Context, caller identity.Caller, id string, body map[string]any) (Environment, error) {
	if _, err := s.environment(ctx, caller, id); err != nil {
		return Environment{}, err
	}
	value, there := body["name"]
	name, _ := value.(string)
	if !there {
		return Environment{}, fault.New(fault.Invalid, "Please, specify the new name of the environment as \"name\"")
	}
	if strings.TrimSpace(name) == "" {
		return Environment{}, fault.New(fault.Invalid, "Environment name must contain at least one non-white space symbol")
	}
	if err := checkLength(name); err != nil {
		return Environment{}, err
	}
	row, err := s.store.Environments().Rename(ctx, id, name)
	if errors.Is(err, store.ErrNotFound) {
		return Environment{}, noEnvironment(id)
	}
	return seen(row), taken(err)
}

// Delete destroys everything in the environment and then removes it; the answer comes before that is done. An
// environment that was never deployed is removed at once. abandon removes it at once in any case, and leaves its resources
// in the cloud.
func (s Environments) Delete(ctx context.Context, caller identity.Caller, id string, abandon bool) error {
	row, err := s.environmentHead(ctx, caller, id)
	if err != nil {
		return err
	}
	if abandon {
		return s.removed(id, s.store.Environments().Remove(ctx, id, caller.UserID))
	}
	if removed, err := s.store.Environments().RemoveUndeployed(ctx, id, caller.UserID); removed || err != nil {
		return s.removed(id, err)
	}
	delegation, err := Delegations(s).delegate(ctx, caller, row)
	if err != nil {
		return err
	}
	_, err = s.store.Tasks().SubmitDeletion(ctx, id, caller.UserID, store.Submission{Text: "Action None is scheduled", DelegationID: delegation.ID})
	if err != nil {
		Delegations(s).giveBack(ctx, delegation)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return noEnvironment(id)
		case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrStale):
			return errBusy(id)
		}
		return revoked(err)
	}
	s.engine.Wake()
	return nil
}

// removed completes the removal of an environment outside of a task, and returns the error for the caller.
func (s Environments) removed(id string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noEnvironment(id)
	case errors.Is(err, store.ErrBusy):
		return errBusy(id)
	case err == nil:
		s.engine.Abandon(id)
	}
	return err
}

func errBusy(id string) error {
	return fault.New(fault.Forbidden, "Could not open session for environment <EnvId %s>, environment has deploying or deleting status.", id)
}

// LastReports returns the newest report about each application or an object in it, by the application's id; nil where there
// is none. sessionID may be "".
func (s Environments) LastReports(ctx context.Context, caller identity.Caller, id, sessionID string) (map[string]*Report, error) {
	row, err := s.environment(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	objects, err := s.draft(ctx, row, sessionID)
	if err != nil {
		return nil, err
	}
	last, err := s.store.Reports().Newest(ctx, id)
	if err != nil {
		return nil, pageFault(err, store.Page{})
	}
	answer := map[string]*Report{}
	services, _ := objects["services"].([]any)
	for _, service := range services {
		ids := objectIDs(service)
		if len(ids) == 0 {
			continue
		}
		var newest *store.Report
		for _, id := range ids {
			if report, ok := last[id]; ok && (newest == nil || report.Created > newest.Created) {
				newest = &report
			}
		}
		answer[ids[0]] = nil
		if newest != nil {
			seen := seenReport(*newest)
			answer[ids[0]] = &seen
		}
	}
	return answer, nil
}

// MaySee returns a fault unless the caller may see the environment.
func (s Environments) MaySee(ctx context.Context, caller identity.Caller, environmentID string) error {
	_, err := s.environmentHead(ctx, caller, environmentID)
	return err
}

// MayReach returns a fault unless the caller may see the environment and the object is part of it.
func (s Environments) MayReach(ctx context.Context, caller identity.Caller, environmentID, objectID string) error {
	row, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return err
	}
	if !slices.Contains(objectIDs(row.Model.Objects), objectID) {
		return fault.New(fault.NotFound, "Environment %s has no object with id %s", environmentID, objectID)
	}
	return nil
}
