package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/preview"
)

// Object is an object of an environment, or of a draft of it.
type Object struct {
	ID, Type string // the type without version and package
	Name     string // its property "name", else that of its header; "" when it has neither
	Path     string // where it is in the model, like "services[0].nodes[1]"; "" is the environment itself
}

// Objects lists the objects of an environment, or of a session's draft, that are of a class or of one that extends it, in the order of their
// paths; all objects when class is "".
func (s Models) Objects(ctx context.Context, caller identity.Caller, environmentID, sessionID, class string) ([]Object, error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	model, err := s.draft(ctx, environment, sessionID)
	if err != nil {
		return nil, err
	}
	found := preview.Objects(model)
	wanted := map[string]bool{}
	if class != "" {
		types := []string{}
		for _, one := range found {
			if !slices.Contains(types, one.FullType) {
				types = append(types, one.FullType)
			}
		}
		if wanted, err = s.engine.Extending(ctx, environment.ProjectID, environment.Model.Packages, types, class); err != nil {
			return nil, err
		}
	}
	objects := []Object{}
	for _, one := range found {
		if class == "" || wanted[one.FullType] {
			objects = append(objects, Object{ID: one.ID, Type: one.Type, Name: cmp.Or(one.Name, one.HeadName), Path: one.Path})
		}
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.ID, b.ID)) })
	return objects, nil
}
