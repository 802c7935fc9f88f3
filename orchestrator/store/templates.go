package store

import (
	"context"
	"database/sql/driver"

	"gorm.io/gorm"

	"github.com/burano/burano/catalog/yaql"
)

// List is a JSON list in a column.
type List []any

// Value writes the list as JSON (database/sql).
func (l List) Value() (driver.Value, error) {
	if l == nil {
		l = List{}
	}
	return encode([]any(l))
}

// Scan reads the list from JSON (database/sql).
func (l *List) Scan(source any) error {
	var list []any
	if err := decode(source, &list); err != nil {
		return err
	}
	list, _ = yaql.FromJSON(list).([]any)
	*l = list
	return nil
}

// Template is a row of the table of environment templates.
type Template struct {
	ID              string
	ProjectID       string
	Name            string
	DescriptionText string
	Public          bool
	Version         int64
	Services        List `gorm:"serializer:sealed"`
	Created         Time
	Updated         Time
}

// Visible selects templates for a list.
type Visible int

// The selections of templates.
const (
	OwnOrPublic Visible = iota // the project's, and the public ones of all projects
	AllPublic                  // the public ones of all projects
	OwnPrivate                 // the project's that are not public
)

// Templates reads and writes templates of environments.
type Templates struct{ *handle }

// Templates are the templates of environments.
func (s *Store) Templates() Templates { return Templates{s.handle} }

// Create adds the template and sets its times. It returns ErrDuplicate when the project has one of that name.
func (s Templates) Create(ctx context.Context, template *Template) error {
	template.Created = s.clock()
	template.Updated = template.Created
	return s.transaction(ctx, "create a template", func(tx *gorm.DB) error {
		if err := s.quotas.Admit(tx, template.ProjectID, QuotaTemplates, 1); err != nil {
			return err
		}
		return tx.Create(template).Error
	})
}

// Get returns the template, or ErrNotFound.
func (s Templates) Get(ctx context.Context, id string) (Template, error) {
	return readOne[Template](s.reading(ctx).Where("id = ?", id), "read a template")
}

// templatePages are the lists of List.
var templatePages = list{
	keys: map[string]string{"id": "id", "name": "name", "created": "created", "updated": "updated"},
	own:  []Sort{{Key: "created"}},
}

// List lists templates without their applications, oldest first unless the page sorts them. An error is a *SortError or ErrMarker where the page is
// wrong.
func (s Templates) List(ctx context.Context, projectID string, visible Visible, page Page) ([]Template, error) {
	query, err := templatePages.page(page, func() *gorm.DB {
		query := s.reading(ctx).Model(&Template{})
		switch visible {
		case AllPublic:
			return query.Where("public")
		case OwnPrivate:
			return query.Where("project_id = ? AND NOT public", projectID)
		}
		return query.Where("project_id = ? OR public", projectID)
	})
	if err != nil {
		return nil, wrap(err, "list templates")
	}
	return readAll[Template](query.Omit("services"), "list templates")
}

// Edit lets edit change the template and stores it, unless edit returns an error, which is returned as it is. ErrNotFound when
// there is none, ErrDuplicate when the project has another of its new name.
func (s Templates) Edit(ctx context.Context, id string, edit func(*Template) error) (Template, error) {
	var template Template
	var edited error
	err := s.transaction(ctx, "change a template", func(tx *gorm.DB) error {
		template = Template{}
		if err := locked(tx).Where("id = ?", id).Take(&template).Error; err != nil {
			return err
		}
		if edited = edit(&template); edited != nil {
			return edited
		}
		template.Updated = s.clock()
		return tx.Select("*").Where("id = ?", id).Updates(&template).Error
	})
	return template, firstError(edited, err)
}

// Delete removes the template; ErrNotFound when there is none.
func (s Templates) Delete(ctx context.Context, id string) error {
	return s.transaction(ctx, "delete a template", func(tx *gorm.DB) error {
		return affected(tx.Where("id = ?", id).Delete(&Template{}))
	})
}

// CreateWithSession adds the environment, as Create does, and a session of the user whose draft holds the
// services besides, in one transaction.
func (s Environments) CreateWithSession(ctx context.Context, environment *Environment, holder Holder, services []any) (Session, error) {
	var session Session
	err := s.transaction(ctx, "create an environment from a template", func(tx *gorm.DB) error {
		if err := s.add(tx, environment); err != nil {
			return err
		}
		opened, err := Sessions(s).openDraft(tx, environment.ID, holder)
		if err != nil {
			return err
		}
		opened.Model.Objects["services"] = services
		edited := len(services) > 0
		opened.Edited = &edited
		session = opened
		return tx.Select("model", "edited").Where("id = ?", session.ID).Updates(&Session{Model: session.Model, Edited: &edited}).Error
	})
	return session, err
}
