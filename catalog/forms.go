package catalog

import (
	"context"

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
