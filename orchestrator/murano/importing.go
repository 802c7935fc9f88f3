package murano

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// Fate is the fate of a row of Murano's database.
type Fate string

// The fates: a preview predicts them, and an import carries them out.
const (
	Imported Fate = "import"   // it comes over
	Skipped  Fate = "skip"     // it is here already, or comes with Burano
	Refused  Fate = "conflict" // it cannot come over
)

// Line is one line of a preview, or of the report of an import.
type Line struct {
	Kind string // category, package, environment, template
	ID   string
	Name string
	Fate Fate
	Why  string // "" for an import without further notes
}

// catalogStore is an import's use of the catalog.
type catalogStore interface {
	AddPackage(ctx context.Context, record catalog.Record, archive []byte) error
	Archive(ctx context.Context, id string) ([]byte, error)
	Packages(ctx context.Context, query catalog.Query) ([]catalog.Record, error)
	Categories(ctx context.Context, query catalog.CategoryQuery) ([]catalog.Category, error)
	AddCategory(ctx context.Context, category catalog.Category) error
}

// Import takes over the content of Murano's database. It can be run again after an interruption, and whenever something is new in Murano:
// rows that came over before are skipped.
type Import struct {
	From         *Source
	Catalog      catalogStore
	Environments store.Environments
	Templates    store.Templates
	// Packages reads the packages of Murano's users.
	Packages catalog.Reader
	// Embedded are the full names of the packages that come with Burano.
	Embedded []string
	// Preview is set if nothing is to be written.
	Preview bool
	// EndUnfinished takes environments that are deploying or deleting in Murano over as failed: only right where no engine of Murano
	// runs any more.
	EndUnfinished bool
	// NewID makes ids of 32 hexadecimal digits.
	NewID func() string
	// Say is called for each row once its fate is known.
	Say func(Line)

	categories map[string]bool // categories that are here, or would be after a preview
}

// Run takes everything over: categories, packages, environments, templates. An error is of the databases; rows that cannot come over are only
// reported.
func (i *Import) Run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{i.takeCategories, i.takePackages, i.takeEnvironments, i.takeTemplates} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// done reports the fate of a row. A fault is the row's; any other error is the database's.
func (i *Import) done(line Line, err error) error {
	switch {
	case errors.Is(err, store.ErrDuplicate):
		line.Fate, line.Why = Refused, "one of its ids, or its name in its project, is taken here"
	case fault.KindOf(err) != 0:
		line.Fate, line.Why = Refused, err.Error()
	case err != nil:
		return fmt.Errorf("import %s %s (%s): %w", line.Kind, line.Name, line.ID, err)
	}
	i.Say(line)
	return nil
}

func (i *Import) takeCategories(ctx context.Context) error {
	here, err := i.Catalog.Categories(ctx, catalog.CategoryQuery{})
	if err != nil {
		return err
	}
	i.categories = map[string]bool{}
	for _, one := range here {
		i.categories[one.Name] = true
	}
	names, err := i.From.categories(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		line := Line{Kind: "category", Name: name, Fate: Imported}
		if i.categories[name] {
			line.Fate, line.Why = Skipped, "it is here"
		} else if !i.Preview {
			now := time.Now().UTC()
			err = i.Catalog.AddCategory(ctx, catalog.Category{ID: i.NewID(), Name: name, Created: now, Updated: now})
		}
		if err := i.done(line, err); err != nil {
			return err
		}
		i.categories[name] = true
	}
	return nil
}

func (i *Import) takePackages(ctx context.Context) error {
	list, err := i.From.packages(ctx)
	if err != nil {
		return err
	}
	for _, one := range list {
		line := Line{Kind: "package", ID: one.id, Name: one.fullName, Fate: Imported}
		if slices.Contains(i.Embedded, one.fullName) {
			line.Fate, line.Why = Skipped, "it comes with Burano"
			i.Say(line)
			continue
		}
		archive, err := i.From.archive(ctx, one.id)
		if err != nil {
			return err
		}
		line.Fate, line.Why, err = i.takePackage(ctx, one, archive)
		if err := i.done(line, err); err != nil {
			return err
		}
	}
	return nil
}

func (i *Import) takePackage(ctx context.Context, one sourcePackage, archive []byte) (Fate, string, error) {
	read, err := i.Packages.Zip(ctx, bytes.NewReader(archive), int64(len(archive)))
	if err == nil {
		err = read.CheckLengths()
	}
	if err != nil {
		return Refused, "its zip cannot be used: " + err.Error(), nil
	}
	if len(one.id) > 32 {
		return Refused, "its id is longer than 32 characters", nil
	}
	record := catalog.Record{
		ID: one.id, FullName: read.FullName(), Name: one.name, Type: read.Type(), Version: read.Version().String(), Description: one.description,
		Author: read.Author(), Supplier: read.Supplier(), Tags: one.tags, Categories: one.categories, Classes: read.ClassNames(),
		OwnerID: one.owner, Public: one.public, Enabled: one.enabled, Created: one.created.UTC(), Updated: one.updated.UTC(),
	}
	for _, query := range []catalog.Query{{IDs: []string{one.id}}, {FullName: record.FullName}, {ClassName: ""}} {
		classes := []string{""}
		if len(query.IDs) == 0 && query.FullName == "" {
			classes = record.Classes
		}
		for _, class := range classes {
			query.Scope, query.IncludeDisabled, query.ClassName = catalog.ScopeAll, true, class
			here, err := i.Catalog.Packages(ctx, query)
			if err != nil {
				return "", "", err
			}
			for _, other := range here {
				if other.ID == one.id {
					return i.same(ctx, one.id, archive)
				}
				if !other.Embedded && (other.OwnerID == one.owner || other.Public && one.public) {
					return Refused, fmt.Sprintf("package %s (%s) of project %s has its name or one of its classes", other.FullName, other.ID, other.OwnerID), nil
				}
			}
		}
	}
	if i.Preview {
		return Imported, "", nil
	}
	return Imported, "", i.Catalog.AddPackage(ctx, record, archive)
}

// same decides about a package whose id is here.
func (i *Import) same(ctx context.Context, id string, archive []byte) (Fate, string, error) {
	here, err := i.Catalog.Archive(ctx, id)
	switch {
	case err != nil:
		return "", "", err
	case !bytes.Equal(here, archive):
		return Refused, "it is here with other content", nil
	}
	return Skipped, "it is here", nil
}

func (i *Import) takeTemplates(ctx context.Context) error {
	list, err := i.From.like(ctx, "environment-template")
	if err != nil {
		return err
	}
	public, err := i.From.publicTemplates(ctx)
	if err != nil {
		return err
	}
	for _, one := range list {
		line := Line{Kind: "template", ID: one.id, Name: one.name, Fate: Imported}
		_, err := i.Templates.Get(ctx, one.id)
		switch {
		case err == nil:
			line.Fate, line.Why = Skipped, "it is here"
		case errors.Is(err, store.ErrNotFound):
			line.Fate, line.Why, err = i.takeTemplate(ctx, one, public[one.id])
		}
		if err := i.done(line, err); err != nil {
			return err
		}
	}
	return nil
}

func (i *Import) takeTemplate(ctx context.Context, one sourceEnvironment, public bool) (Fate, string, error) {
	model, err := document(one.model)
	if err != nil {
		return Refused, "its model cannot be read: " + err.Error(), nil
	}
	objects, _ := model["Objects"].(map[string]any)
	if objects == nil {
		objects = model
	}
	services, _ := objects["services"].([]any)
	here, err := i.Templates.List(ctx, one.project, store.OwnOrPublic, store.Page{})
	if err != nil {
		return "", "", err
	}
	if slices.ContainsFunc(here, func(t store.Template) bool { return t.ProjectID == one.project && t.Name == one.name }) {
		return Refused, "its project has another template of that name", nil
	}
	if i.Preview {
		return Imported, "", nil
	}
	return Imported, "", i.Templates.Import(ctx, store.Template{ID: one.id, ProjectID: one.project, Name: one.name, DescriptionText: one.description,
		Public: public, Version: one.version, Services: services, Created: rowTime(one.created), Updated: rowTime(one.updated)})
}
