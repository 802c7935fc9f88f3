package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// formHandlers answer the forms of packages, evaluated.
type formHandlers struct {
	catalog      *catalog.Service
	orchestrator *orchestrator.Service
	values       int // in JSON
}

func (h formHandlers) register(v1 *echo.Group) {
	v1.GET("/forms/:package", h.show)
	v1.POST("/forms/:package", h.fill, readBody(h.values))
	component := "/environments/:environment/components/:component/form"
	v1.GET(component, h.today)
	v1.POST(component, h.tryEdit, readBody(h.values))
	v1.PUT(component, h.edit, readBody(h.values))
}

// opened is a package with forms, and the result of its method of ParametersSource.
type opened struct {
	id         string
	pkg        *catalog.Package
	definition *ui.Definition
	parameters map[string]any
}

func (h formHandlers) open(c echo.Context) (opened, error) {
	ctx := c.Request().Context()
	o := opened{id: c.Param("package")}
	var err error
	o.pkg, o.definition, err = h.catalog.Forms(ctx, catalogCaller(c), c.Param("package"))
	if err != nil {
		return o, err
	}
	o.parameters, err = h.parameters(ctx, o)
	return o, err
}

// parameters asks the static method [Class.]method that a definition names; the class is the package's own where none is named.
func (h formHandlers) parameters(ctx context.Context, o opened) (map[string]any, error) {
	source := o.definition.ParametersSource
	if source == "" {
		return nil, nil
	}
	class := engine.ClassName{Name: o.pkg.FullName(), Package: o.pkg.FullName(), Version: "==" + o.pkg.Version().String()}
	method := source
	if dot := strings.LastIndexByte(source, '.'); dot >= 0 {
		class.Name, method = source[:dot], source[dot+1:]
	}
	result, err := h.orchestrator.Classes().CallStatic(ctx, identity.From(ctx), class, method, nil)
	if err != nil {
		return nil, h.failed(ctx, o, err)
	}
	parameters, ok := result.(map[string]any)
	if !ok {
		return nil, catalog.BadForms(o.pkg, fault.New(fault.Invalid, "ParametersSource: %s should return a map", source))
	}
	return parameters, nil
}

// failed is the error of a definition that could not be evaluated: a fault of the package, unless the client has gone.
func (h formHandlers) failed(ctx context.Context, o opened, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return catalog.BadForms(o.pkg, err)
}

// show answers the empty forms.
func (h formHandlers) show(c echo.Context) error {
	o, err := h.open(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	forms, err := o.definition.Describe(ctx, o.parameters)
	if err != nil {
		return h.failed(ctx, o, err)
	}
	return c.JSON(http.StatusOK, struct {
		Forms any  `json:"forms"`
		Named bool `json:"named"`
	}{forms, o.definition.Named()})
}

// filledJSON is the result of filled forms.
type filledJSON struct {
	Errors []ui.InputError `json:"errors"`
	Forms  any             `json:"forms"`
	Model  any             `json:"model"`
	Named  bool            `json:"named"`
}

// inputOf reads the input that a request sends.
func inputOf(c echo.Context) (ui.Input, error) {
	in := ui.Input{Values: map[string]map[string]any{}}
	value, _ := body(c)
	fields, isObject := value.(map[string]any)
	if !isObject {
		return in, fault.New(fault.Invalid, `Send {"name", "values"}: values has for each form an object of its fields' values`)
	}
	if err := text(fields, "name", &in.Name); err != nil {
		return in, err
	}
	values, ok := fields["values"].(map[string]any)
	if !ok && fields["values"] != nil {
		return in, fault.New(fault.Invalid, "values must be an object: for each form an object of its fields' values")
	}
	for form, filled := range values {
		if in.Values[form], ok = filled.(map[string]any); !ok {
			return in, fault.New(fault.Invalid, "values.%s must be an object: the values of the form's fields by their names", form)
		}
	}
	return in, nil
}

// fill answers filled forms: their errors, or the object model.
func (h formHandlers) fill(c echo.Context) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	o, err := h.open(c)
	if err != nil {
		return err
	}
	in.Package, in.Origin, in.Parameters = o.pkg.Name(), o.pkg.FullName(), o.parameters
	ctx := c.Request().Context()
	result, err := o.definition.Evaluate(ctx, in)
	if err != nil {
		return h.failed(ctx, o, err)
	}
	return c.JSON(http.StatusOK, filledJSON{append([]ui.InputError{}, result.Errors...), result.Forms, result.Model, o.definition.Named()})
}

// todayJSON are the forms of an application with the values of today.
type todayJSON struct {
	Package string                    `json:"package"` // its id
	Name    string                    `json:"name"`
	Named   bool                      `json:"named"`
	Forms   any                       `json:"forms"`
	Values  map[string]map[string]any `json:"values"`
	Kept    []ui.Question             `json:"kept"`
	Unknown []ui.Question             `json:"unknown"`
	Covered []string                  `json:"covered"`
}

// component is an application with its forms.
type component struct {
	opened
	object map[string]any
	today  *ui.Today
}

func (h formHandlers) component(c echo.Context) (component, error) {
	ctx, caller := calling(c)
	var one component
	var err error
	if one.object, err = h.orchestrator.Models().Component(ctx, caller, c.Param("environment"), c.Request().Header.Get(sessionHeader), c.Param("component")); err != nil {
		return one, err
	}
	if one.pkg, one.definition, one.id, err = h.catalog.FormsOf(ctx, caller, one.object); err != nil {
		return one, err
	}
	if one.parameters, err = h.parameters(ctx, one.opened); err != nil {
		return one, err
	}
	record, _ := ui.RecordOf(one.object)
	in := ui.Input{Values: record.Values, Package: one.pkg.Name(), Origin: one.pkg.FullName(), Parameters: one.parameters}
	if one.today, err = one.definition.Today(ctx, in, one.object); err != nil {
		return one, h.failed(ctx, one.opened, err)
	}
	return one, nil
}

// today answers the forms that an application was made with, or would be, with its present values.
func (h formHandlers) today(c echo.Context) error {
	one, err := h.component(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, todayJSON{one.id, one.today.Name, one.definition.Named(), one.today.Forms, one.today.Values(),
		append([]ui.Question{}, one.today.Kept...), append([]ui.Question{}, one.today.Unknown...), append([]string{}, one.today.Covered...)})
}

// editJSON is the result of other values.
type editJSON struct {
	Errors    []ui.InputError `json:"errors"`
	Forms     any             `json:"forms"`
	Changed   []string        `json:"changed"`
	Conflicts []ui.Conflict   `json:"conflicts"`
}

// tryEdit answers the effects of other values.
func (h formHandlers) tryEdit(c echo.Context) error {
	_, edit, err := h.edited(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answerOf(edit))
}

// edit changes an application of a draft by its forms.
func (h formHandlers) edit(c echo.Context) error {
	one, edit, err := h.edited(c)
	if err != nil {
		return err
	}
	if len(edit.Errors) == 0 && len(edit.Changed) > 0 {
		ctx, caller := calling(c)
		if err := h.orchestrator.Models().ReplaceComponent(ctx, caller, c.Param("environment"), c.Request().Header.Get(sessionHeader), one.object, edit.Object); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, answerOf(edit))
}

func (h formHandlers) edited(c echo.Context) (component, ui.Edit, error) {
	in, err := inputOf(c)
	if err != nil {
		return component{}, ui.Edit{}, err
	}
	one, err := h.component(c)
	if err != nil {
		return one, ui.Edit{}, err
	}
	ctx := c.Request().Context()
	edit, err := one.definition.Edit(ctx, one.today, in.Name, in.Values)
	if err != nil {
		return one, edit, h.failed(ctx, one.opened, err)
	}
	return one, edit, nil
}

func answerOf(edit ui.Edit) editJSON {
	return editJSON{append([]ui.InputError{}, edit.Errors...), edit.Forms, append([]string{}, edit.Changed...), append([]ui.Conflict{}, edit.Conflicts...)}
}
