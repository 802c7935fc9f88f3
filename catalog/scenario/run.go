package scenario

import (
	"context"
	"log/slog"
	"sync"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// run is the state of the steps since the last load.
type run struct {
	source      muranopl.Source
	options     []muranopl.Option
	interpreter *muranopl.Interpreter
	host        *core.Local
	root        *muranopl.Object

	mutex  sync.Mutex
	traces []any
}

func newRun(source muranopl.Source, options []muranopl.Option) *run {
	r := &run{source: source, options: options}
	r.begin()
	return r
}

func (r *run) begin() {
	r.root, r.host = nil, &core.Local{Logger: slog.New(slog.DiscardHandler)}
	r.interpreter = muranopl.NewInterpreter(muranopl.NewClasses(r.source, r.options...), r.host.Natives(), muranopl.WithFunctions(r.trace()), muranopl.WithMocks())
}

// trace is the function trace(value).
func (r *run) trace() *yaql.Function {
	return &yaql.Function{Name: "trace", Kind: yaql.AsFunction, Doc: "adds the value to what the step's outcome lists as traces", Params: []yaql.Param{{Name: "value"}},
		Call: func(i *yaql.Invocation) (any, error) {
			saved := written(yaql.Plain(i.Args[0]))
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.traces = append(r.traces, saved)
			return nil, nil
		}}
}

func (r *run) taken() []any {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	traces := r.traces
	r.traces = nil
	if traces == nil {
		return []any{}
	}
	return traces
}

// written is a value as an outcome shows it.
func written(value any) any { return yaql.JSON(muranopl.SaveResult(value)) }

func (r *run) do(ctx context.Context, s step) (any, error) {
	switch {
	case s.Load != nil:
		return nil, r.load(ctx, s.Load)
	case s.Serialize:
		return r.serialize(), nil
	}
	receiver, err := r.receiver(ctx, s)
	if err != nil {
		return nil, err
	}
	value, err := r.interpreter.Call(ctx, receiver, s.Call, s.Args, s.Kwargs)
	if err != nil {
		return nil, err
	}
	return written(value), nil
}

func (r *run) load(ctx context.Context, model map[string]any) error {
	r.begin()
	if _, whole := model["Objects"]; !whole {
		model = map[string]any{"Objects": model}
	}
	attributes, _ := model["Attributes"].([]any)
	r.host.LoadAttributes(attributes)
	if objects, _ := model["Objects"].(map[string]any); objects != nil {
		root, problems, err := r.interpreter.Load(ctx, objects)
		if len(problems) > 0 {
			return problems[0].Exception()
		}
		if err != nil {
			return err
		}
		r.root = root
	}
	former, has := model["ObjectsCopy"].(map[string]any)
	if !has {
		return nil
	}
	_, problems, err := r.interpreter.LoadFormer(ctx, r.root, former)
	if len(problems) > 0 {
		return problems[0].Exception()
	}
	if err != nil {
		return err
	}
	_, err = r.interpreter.Collect(ctx)
	return err
}

// receiver is the receiver of a call.
func (r *run) receiver(ctx context.Context, s step) (any, error) {
	switch {
	case s.OnClass != "":
		class, err := r.interpreter.Classes().Class(ctx, s.OnClass, "")
		if fault.KindOf(err) == fault.NotFound {
			return nil, muranopl.Problem{Name: "murano.dsl.exceptions.NoPackageForClassFound", Message: `Package for class "` + s.OnClass + `" is not found`}.Exception()
		}
		if err != nil {
			return nil, err
		}
		return muranopl.TypeReference{Class: class}, nil
	case s.On == "" || s.On == "root":
		if r.root != nil {
			return r.root, nil
		}
		return nil, fault.New(fault.Invalid, "no model was loaded whose root a method could be called on")
	}
	if object := r.interpreter.Object(s.On); object != nil {
		return object, nil
	}
	return nil, muranopl.Problem{Name: "murano.dsl.exceptions.NoObjectFoundError", Message: `Object "` + s.On + `" is not found in object store`}.Exception()
}

// serialize is the model as the engine would keep it.
func (r *run) serialize() any {
	if r.root == nil {
		return map[string]any{"Objects": nil, "ObjectsCopy": nil, "Attributes": []any{}}
	}
	objects := muranopl.Save(r.root)
	return map[string]any{"Objects": objects, "ObjectsCopy": muranopl.SaveCopy(r.root), "Attributes": r.host.Attributes(muranopl.ObjectIDs(objects))}
}
