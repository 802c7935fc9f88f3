package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// staticTimeout is how long a static action may take: its caller waits for it (the response timeout of Murano's messages).
const staticTimeout = 60 * time.Second

// ClassName selects a class.
type ClassName struct {
	Name    string // fully qualified
	Package string // "" is any package that declares it
	Version string // a spec such as "=0" or ">=1.2,<2"; "" is any
}

// CallStatic runs a public static method, outside of any environment, and returns its result as JSON's values. A wrong call is a
// fault; an exception of the method itself is a *muranopl.Exception without a fault in its chain.
func (e *Engine) CallStatic(ctx context.Context, projectID string, name ClassName, method string, args map[string]any) (any, error) {
	end, err := e.beginStatic(projectID)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, staticTimeout, fmt.Errorf("a static action may take %s", staticTimeout))
	defer cancel()
	classes := e.classes(projectID)
	class, err := e.class(ctx, classes, projectID, name)
	if err != nil {
		return nil, err
	}
	found, err := class.Method(method)
	if err != nil {
		return nil, err
	}
	if found != nil && found.Scope == muranopl.Public && found.Usage == muranopl.RuntimeMethod {
		return nil, fault.New(fault.Invalid, "A class instance is required: %s is no static method, call it as an action of an object that is deployed", found.FullName())
	}
	// Native code works in an environment, so static methods have only the natives that need none.
	host := &core.Local{Logger: e.Logger}
	result, err := muranopl.NewInterpreter(classes, host.Natives(), muranopl.WithLimits(e.Code)).InvokeStaticAction(ctx, class, method, args)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", class.Name+"."+method, context.Cause(ctx))
	}
	if err == nil {
		err = muranopl.Written(result, MaxResult, "the result of "+class.Name+"."+method)
	}
	if door.IsExceeded(err) {
		return nil, fault.New(fault.TooLarge, "%w: have the method return less, or a part at a time", err)
	}
	if err != nil {
		return nil, err
	}
	return muranopl.SaveResult(result), nil
}

// beginStatic counts a static action that runs until end is called. As many run at once as there are workers; a project leaves places
// for others, by the same rule as tasks.
func (e *Engine) beginStatic(projectID string) (end func(), err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	free := e.Workers
	for _, running := range e.statics {
		free -= running
	}
	if mine := e.statics[projectID]; mine >= free {
		return nil, fault.New(fault.TooMany, "%d static actions of the project run at the moment, and %d more can run on this server: try again when one has ended", mine, free)
	}
	e.statics[projectID]++
	return func() {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		if e.statics[projectID]--; e.statics[projectID] == 0 {
			delete(e.statics, projectID)
		}
	}, nil
}

// library are the classes that projects may use.
type library struct {
	*Config
	parsed *muranopl.Parsed // class files, for all tasks
}

// Schemas are JSON schemas: of the class under the key "", of its model builders under their names; with methods only of these.
func (l *library) Schemas(ctx context.Context, projectID string, name ClassName, methods []string) (map[string]any, error) {
	class, err := l.class(ctx, l.classes(projectID), projectID, name)
	if err != nil {
		return nil, err
	}
	return class.Schemas(ctx, methods...), nil
}

// Actions are the public methods of a class with the schemas of their arguments.
func (l *library) Actions(ctx context.Context, projectID string, name ClassName) ([]muranopl.Action, error) {
	class, err := l.class(ctx, l.classes(projectID), projectID, name)
	if err != nil {
		return nil, err
	}
	return class.Actions(ctx), nil
}

// Extending returns which of these types of a model, as headers name them, are a class or extend it. packages are the versions that
// the model's environment was deployed with. A type that cannot be read extends nothing.
func (l *library) Extending(ctx context.Context, projectID string, packages map[string][]string, types []string, class string) (map[string]bool, error) {
	classes := l.classes(projectID)
	if err := classes.Fix(ctx, packages); err != nil {
		return nil, err
	}
	extending := map[string]bool{}
	for _, one := range types {
		read, err := classes.OfType(ctx, one)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		extending[one] = err == nil && read.Is(class)
	}
	return extending, nil
}

// Hidden returns a model in which hide has replaced the values that the classes of its objects declare as secrets (muranopl.Classes.Hidden). packages are the
// versions that the model's environment was deployed with.
func (l *library) Hidden(ctx context.Context, projectID string, packages map[string][]string, model any, hide func(value any) any) any {
	classes := l.classes(projectID)
	if err := classes.Fix(ctx, packages); err != nil {
		l.Logger.WarnContext(ctx, "which parameters are hidden is decided by other versions of packages than those deployed", "error", err)
	}
	return classes.Hidden(ctx, model, hide)
}

// classes are the classes that a project may use.
func (l *library) classes(projectID string) *muranopl.Classes {
	return muranopl.NewClasses(l.Source(projectID), muranopl.WithConfigs(l.ClassConfigs), muranopl.WithParsed(l.parsed))
}

// class finds a class for a request; errors in its name have Murano's words.
func (l *library) class(ctx context.Context, classes *muranopl.Classes, projectID string, name ClassName) (*muranopl.Class, error) {
	if _, err := muranopl.ParseSpec(name.Version); err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	if name.Package != "" {
		if _, err := l.Source(projectID).PackageByName(ctx, name.Package, ""); fault.KindOf(err) == fault.NotFound {
			return nil, fault.New(fault.NotFound, "Package %q is not found", name.Package)
		}
	}
	class, err := classes.ClassOf(ctx, name.Package, name.Name, name.Version)
	if fault.KindOf(err) == fault.NotFound && name.Package == "" {
		// Another version of it may exist; the error names it.
		if _, missing := l.Source(projectID).PackageForClass(ctx, name.Name, ""); missing != nil {
			return nil, fault.New(fault.NotFound, "Package for class %q is not found", name.Name)
		}
	}
	return class, err
}

// Check loads a model, in the classes' form, as a deployment in the project would, and runs nothing of it. It returns the model with its defaults, and by the
// objects' ids the properties that code sets and models do not (Usage: Out). Or it returns all errors that the deployment would find in the model, and the keys
// that embedded classes do not know, which Murano ignores; the model then has its defaults as far as it could be loaded. packages are the versions that its environment was deployed with.
func (l *library) Check(ctx context.Context, projectID string, packages map[string][]string, objects map[string]any) (loaded map[string]any,
	computed map[string][]string, problems []muranopl.Problem) {
	classes := l.classes(projectID)
	if err := classes.Fix(ctx, packages); err != nil {
		return objects, nil, []muranopl.Problem{{Wanted: fmt.Sprintf("the packages that it was deployed with cannot be read: %v", err)}}
	}
	draft := muranopl.LoadStrictly(ctx, classes, objects)
	if problems = append(draft.Problems, draft.Unknown...); len(problems) == 0 {
		if err := savable(draft.Root, objects); err != nil {
			return objects, nil, []muranopl.Problem{{Wanted: err.Error()}}
		}
		return muranopl.Save(draft.Root), computedOf(draft.Each), nil
	}
	for i := range problems {
		problems[i].Path = apiPath(problems[i].Path)
	}
	return draft.Model(maxModel), computedOf(draft.Each), problems
}

// computedOf are the properties that code sets and models do not (Usage: Out), by the objects' ids. each visits the objects.
func computedOf(each func(visit func(*muranopl.Object))) map[string][]string {
	computed := map[string][]string{}
	each(func(object *muranopl.Object) {
		for _, name := range object.Class().PropertyNames() {
			if object.Class().Property(name)[0].Usage == muranopl.Out {
				computed[object.ID()] = append(computed[object.ID()], name)
			}
		}
	})
	return computed
}

// apiPath is a path in a model as the API has it, where applications are called services.
func apiPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "applications"); ok {
		return "services" + rest
	}
	return path
}
