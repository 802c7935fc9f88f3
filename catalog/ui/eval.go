package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/yaql"
)

const (
	// patience is how long one evaluation of a definition may take.
	patience = 10 * time.Second
	// maxValues is how many values one evaluation may make, and maxNested how deep templates may lead to templates.
	maxValues = 100_000
	maxNested = 50
)

// limits are the limits of Murano's dashboard for expressions of forms.
var limits = yaql.Limits{Items: 10_000, Memory: 1_000_000}

// Input is a user's input.
type Input struct {
	// Values are the values of fields, by form and field, in JSON's types. An omitted field has its initial value.
	Values map[string]map[string]any
	// Name is the application's; asked for where Definition.Named.
	Name string
	// Package is the name to show of the package; "" for none. It goes into the model, where dashboards look for it.
	Package string
	// Origin is the package's full name; "" records no answers in the model.
	Origin string
	// Parameters are the result of the method of Definition.ParametersSource; they have precedence over the definition's.
	Parameters map[string]any

	random string // the beginning of the names that generateHostname makes; "" for a new one for each
}

// InputError is one fault of the input. Without a field it is about the form as a whole; without a form it is about the application, whose only field is
// "name".
type InputError struct {
	Form    string `json:"form"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Result is a definition that was evaluated.
type Result struct {
	Forms  []FormView
	Errors []InputError
	// Model is the object model, each of its objects with an id; nil when there are errors.
	Model map[string]any
}

// FormView is a form as it is shown.
type FormView struct {
	Name   string      `json:"name"`
	Region any         `json:"region,omitempty"`
	Fields []FieldView `json:"fields"`
}

// Describe evaluates the forms as they are before anything is filled in: expressions see the initial values of earlier fields, and an
// attribute that needs more than that is left out.
func (d *Definition) Describe(ctx context.Context, parameters map[string]any) ([]FormView, error) {
	result, err := d.evaluate(ctx, Input{Parameters: parameters}, false)
	return result.Forms, err
}

// Evaluate checks the input and makes the object model from it. Faults of the input are in Result.Errors; the error is about the definition, or the
// context's.
func (d *Definition) Evaluate(ctx context.Context, in Input) (Result, error) {
	return d.evaluate(ctx, in, true)
}

// applicationName is the dashboard's rule for an application's name.
var applicationName = regexp.MustCompile(`^[-\pL\pN_]+$`)

func (d *Definition) evaluate(ctx context.Context, in Input, model bool) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the definition takes longer than %v to evaluate", patience))
	defer cancel()
	e := newEvaluation(ctx, d, in)
	for _, form := range d.Forms {
		e.form(form)
	}
	e.unknown()
	if !model {
		return Result{Forms: e.forms}, ended(ctx)
	}
	if d.Named() && !applicationName.MatchString(in.Name) {
		message := "The application needs a name"
		if in.Name != "" {
			message = nameMessage
		}
		e.errors = append(e.errors, InputError{Field: "name", Message: message})
	}
	result := Result{Forms: e.forms, Errors: e.errors}
	if err := ended(ctx); err != nil || len(e.errors) > 0 {
		return result, err
	}
	var err error
	if result.Model, err = e.application(); err == nil && in.Origin != "" {
		d.record(result.Model, in.Origin, e.answers)
	}
	return result, err
}

func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Named reports whether the application's name is asked for besides the forms: definitions of 2.0 and 2.1 have a field of their own for it.
func (d *Definition) Named() bool { return d.Minor >= 2 }

// raw is a value as expressions see it before it is evaluated: its expressions stay *yaql.Expression.
func raw(value *Value) any {
	switch value.Kind {
	case Expression:
		return value.Expression
	case List:
		list := make([]any, len(value.Items))
		for i := range value.Items {
			list[i] = raw(value.Items[i])
		}
		return list
	case Map:
		entries := make([]yaql.Entry, len(value.Entries))
		for i, entry := range value.Entries {
			entries[i] = yaql.Entry{Key: raw(entry.Key), Value: raw(entry.Value)}
		}
		return yaql.NewDict(entries...)
	}
	return value.Constant
}

// evaluation is one run over a definition.
type evaluation struct {
	ctx        context.Context
	definition *Definition
	in         Input
	scope      *yaql.Scope // without data: see over
	forms      []FormView
	errors     []InputError
	cleaned    []yaql.Entry // by form, a map of the values of its fields
	answers    answers      // the same as input

	made      map[string]*yaql.Dict // by ref(), by name
	hostnames int                   // made by generateHostname so far
	values    int                   // made so far
	nested    int                   // templates within templates
}

func newEvaluation(ctx context.Context, d *Definition, in Input) *evaluation {
	e := &evaluation{ctx: ctx, definition: d, in: in, made: map[string]*yaql.Dict{}, answers: answers{}}
	e.scope = yaql.NewScope(yaql.Legacy().Extend(e.functions()...), nil, limits)
	names := map[string]any{}
	for _, template := range d.Templates {
		names[template.Name()] = raw(template.Value)
	}
	e.scope = e.scope.WithAll(names)
	given := map[string]any{}
	for _, parameter := range d.Parameters {
		written := raw(parameter.Value)
		value, err := e.value(written, e.over(nil))
		if err != nil {
			value = written // it needs missing input, or its user gets the error
		}
		given[parameter.Name()] = value
	}
	maps.Copy(given, in.Parameters)
	e.scope = e.scope.WithAll(given)
	return e
}

// over is the scope with the forms so far, and these values of the form that is being filled in, as $ and $forms.
func (e *evaluation) over(current *yaql.Entry) *yaql.Scope {
	entries := e.cleaned
	if current != nil {
		entries = append(entries[:len(entries):len(entries)], *current)
	}
	data := yaql.NewDict(entries...)
	return e.scope.WithAll(map[string]any{"": data, "forms": data})
}

// value evaluates a value of a definition: its expressions, and the expressions in templates that they lead to.
func (e *evaluation) value(written any, scope *yaql.Scope) (any, error) {
	if e.values++; e.values > maxValues {
		return nil, fmt.Errorf("the definition makes more than %d values", maxValues)
	}
	switch written := written.(type) {
	case *yaql.Expression:
		if e.nested++; e.nested > maxNested {
			return nil, fmt.Errorf("templates lead to templates more than %d times: %s", maxNested, written)
		}
		defer func() { e.nested-- }()
		found, err := written.Evaluate(e.ctx, scope)
		if err != nil {
			return nil, err
		}
		return e.value(found, scope)
	case []any:
		list := make([]any, len(written))
		for i := range written {
			var err error
			if list[i], err = e.value(written[i], scope); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *yaql.Dict:
		entries := written.Entries()
		for i := range entries {
			var err error
			if entries[i].Key, err = e.value(entries[i].Key, scope); err != nil {
				return nil, err
			}
			if entries[i].Value, err = e.value(entries[i].Value, scope); err != nil {
				return nil, err
			}
		}
		return yaql.NewDict(entries...), nil
	}
	return written, nil
}

// dashboardKey is the key of the data of Murano's dashboard about an object (murano-dashboard, DASHBOARD_ATTRS_KEY).
const dashboardKey = "_26411a1861294160833743e45d0eaad9"

// application makes the object model.
func (e *evaluation) application() (map[string]any, error) {
	evaluated, err := e.value(raw(e.definition.Application), e.over(nil))
	if err != nil {
		return nil, fmt.Errorf("Application: %w", err)
	}
	model, ok := withIDs(evaluated).(map[string]any)
	if !ok {
		return nil, errors.New("Application: its value should be a map")
	}
	header, ok := model["?"].(map[string]any)
	if !ok || header["type"] == nil {
		return nil, errors.New("Application: it has no '?' with a type")
	}
	if e.definition.Named() {
		header["name"] = e.in.Name
	}
	if e.in.Package != "" {
		header[dashboardKey] = map[string]any{"name": e.in.Package}
	}
	return model, nil
}

// withIDs makes plain maps and lists of a model, and gives every object that has none an id.
func withIDs(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = withIDs(value[i])
		}
		return list
	case *yaql.Set:
		return withIDs(value.Members())
	case map[string]any:
		plain := make(map[string]any, len(value))
		for key := range value {
			plain[key] = withIDs(value[key])
		}
		return identified(plain)
	case *yaql.Dict:
		plain := make(map[string]any, value.Len())
		for _, entry := range value.Entries() {
			plain[yaql.Text(entry.Key)] = withIDs(entry.Value)
		}
		return identified(plain)
	}
	return yaql.JSON(value)
}

func identified(object map[string]any) map[string]any {
	if header, ok := object["?"].(map[string]any); ok {
		if id, ok := header["id"].(string); !ok || id == "" {
			header["id"] = uuid.NewString()
		}
	}
	return object
}
