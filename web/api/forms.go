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
}

// opened is a package with forms, and the result of its method of ParametersSource.
type opened struct {
	pkg        *catalog.Package
	definition *ui.Definition
	parameters map[string]any
}

func (h formHandlers) open(c echo.Context) (opened, error) {
	ctx := c.Request().Context()
	var o opened
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

// fill answers filled forms: their errors, or the object model.
func (h formHandlers) fill(c echo.Context) error {
	value, _ := body(c)
	fields, isObject := value.(map[string]any)
	if !isObject {
		return fault.New(fault.Invalid, `Send {"name", "values"}: values has for each form an object of its fields' values`)
	}
	in := ui.Input{Values: map[string]map[string]any{}}
	if err := text(fields, "name", &in.Name); err != nil {
		return err
	}
	values, ok := fields["values"].(map[string]any)
	if !ok && fields["values"] != nil {
		return fault.New(fault.Invalid, "values must be an object: for each form an object of its fields' values")
	}
	for form, filled := range values {
		if in.Values[form], ok = filled.(map[string]any); !ok {
			return fault.New(fault.Invalid, "values.%s must be an object: the values of the form's fields by their names", form)
		}
	}
	o, err := h.open(c)
	if err != nil {
		return err
	}
	in.Package, in.Parameters = o.pkg.Name(), o.parameters
	ctx := c.Request().Context()
	result, err := o.definition.Evaluate(ctx, in)
	if err != nil {
		return h.failed(ctx, o, err)
	}
	return c.JSON(http.StatusOK, filledJSON{append([]ui.InputError{}, result.Errors...), result.Forms, result.Model, o.definition.Named()})
}
