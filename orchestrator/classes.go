package orchestrator

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
)

// Classes reads classes, and calls their static methods.
type Classes struct{ *core }

// Classes are the classes of packages.
func (s *Service) Classes() Classes { return Classes{s.core} }

// CallStatic runs a public static method of a class that the caller's project may use, and returns its result. An exception of the method is no fault.
func (s Classes) CallStatic(ctx context.Context, caller identity.Caller, class engine.ClassName, method string, args map[string]any) (any, error) {
	if class.Name == "" || method == "" {
		return nil, fault.New(fault.Invalid, "Class name and method name must be specified for static action")
	}
	if err := unmasked(args); err != nil {
		return nil, err
	}
	return s.engine.CallStatic(ctx, caller.ProjectID, class, method, args)
}

// Schemas are JSON schemas of a class that the caller's project may use, under the key "", and of its model builders under their names;
// with methods only of these.
func (s Classes) Schemas(ctx context.Context, caller identity.Caller, class engine.ClassName, methods []string) (map[string]any, error) {
	return s.engine.Schemas(ctx, caller.ProjectID, class, methods)
}

// Actions are the public methods of a class that the caller's project may use, with the schemas of their arguments.
func (s Classes) Actions(ctx context.Context, caller identity.Caller, class engine.ClassName) ([]muranopl.Action, error) {
	return s.engine.Actions(ctx, caller.ProjectID, class)
}
