package catalog

import (
	"context"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// Forms returns a package that the caller may see and its dynamic UI definition. A package without one is a fault of kind NotFound, one
// with a definition that cannot be used a fault of kind Invalid.
func (s *Service) Forms(ctx context.Context, caller identity.Caller, id string) (*Package, *ui.Definition, error) {
	p, err := s.Open(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	text, err := p.UI()
	if err != nil {
		return nil, nil, err
	}
	if len(text) == 0 {
		return nil, nil, fault.New(fault.NotFound, "Package '%s' (%s) has no forms: it comes without a UI definition", id, p.FullName())
	}
	definition, problems := ui.Parse(p.UIFile(), text)
	if definition == nil {
		return nil, nil, BadForms(p, firstError(problems))
	}
	p.Judge(definition)
	return p, definition, nil
}

// FormsOf is Forms for an object of a model, with the id of the package: the object's record names the package, else its type does, such as class/1.0.0@package, else it is a package with the class.
// The version is the type's where the catalog has it, and else the newest.
func (s *Service) FormsOf(ctx context.Context, caller identity.Caller, object map[string]any) (p *Package, definition *ui.Definition, id string, err error) {
	header, _ := object["?"].(map[string]any)
	text, _ := header["type"].(string)
	class, of, _ := strings.Cut(text, "/")
	version, name, _ := strings.Cut(of, "@")
	query := url.Values{"catalog": {"true"}}
	if record, is := ui.RecordOf(object); is {
		name = record.Package
	}
	if name != "" {
		query.Set("fqn", name)
	} else {
		query.Set("class_name", class)
	}
	records, _, err := s.List(ctx, caller, query)
	if err != nil {
		return nil, nil, "", err
	}
	best := -1
	for i, one := range records {
		switch {
		case best < 0, one.Version == version && records[best].Version != version:
			best = i
		case (one.Version == version) == (records[best].Version == version) && newer(one.Version, records[best].Version):
			best = i
		}
	}
	if best < 0 {
		return nil, nil, "", fault.New(fault.NotFound, "The catalog has no package with the forms of %s", class)
	}
	p, definition, err = s.Forms(ctx, caller, records[best].ID)
	return p, definition, records[best].ID, err
}

// newer compares the versions of packages.
func newer(a, b string) bool {
	one, err := semver.NewVersion(a)
	other, wrong := semver.NewVersion(b)
	return err == nil && wrong == nil && one.GreaterThan(other)
}

func firstError(problems []*ui.Problem) error {
	for _, problem := range problems {
		if !problem.Warning {
			return problem
		}
	}
	return nil
}

// BadForms is the fault for a UI definition that cannot be used.
func BadForms(p *Package, err error) error {
	return fault.New(fault.Invalid, "The UI definition of package %s cannot be used: %w", p.FullName(), err)
}
