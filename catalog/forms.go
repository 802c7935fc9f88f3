package catalog

import (
	"context"
	"strings"

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
// It is the one that deployments find (Source), of the type's version where the catalog has it, and else of any.
func (s *Service) FormsOf(ctx context.Context, caller identity.Caller, object map[string]any) (p *Package, definition *ui.Definition, id string, err error) {
	header, _ := object["?"].(map[string]any)
	text, _ := header["type"].(string)
	class, of, _ := strings.Cut(text, "/")
	version, name, _ := strings.Cut(of, "@")
	if record, is := ui.RecordOf(object); is {
		name = record.Package
	}
	query := Query{ClassName: class}
	if name != "" {
		query = Query{FullName: name}
	}
	if version != "" {
		version = "=" + version
	}
	source := projectSource{service: s, project: caller.ProjectID}
	found, err := source.record(ctx, query, version, "class", class)
	if version != "" && fault.KindOf(err) == fault.NotFound {
		found, err = source.record(ctx, query, "", "class", class)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil, "", fault.New(fault.NotFound, "The catalog has no package with the forms of %s", class)
	}
	if err != nil {
		return nil, nil, "", err
	}
	p, definition, err = s.Forms(ctx, caller, found.ID)
	return p, definition, found.ID, err
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
