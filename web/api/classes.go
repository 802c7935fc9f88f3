package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// classHandlers answer the parts of classes from which forms are made.
type classHandlers struct {
	catalog      *catalog.Service
	orchestrator *orchestrator.Service
}

func (h classHandlers) register(v1 *echo.Group) {
	v1.GET("/classes", h.list)
	v1.GET("/classes/:class/actions", h.actions)
	v1.GET("/environments/:environment/objects", h.objects)
}

// classJSON is a class of a package.
type classJSON struct {
	Name    string           `json:"name"`
	Parents []string         `json:"parents"`
	Package classPackageJSON `json:"package"`
}

// classPackageJSON identifies a package.
type classPackageJSON struct {
	ID       string `json:"id"`
	FullName string `json:"fully_qualified_name"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Version  string `json:"version"`
}

// list answers the classes of packages that the project may use; with extends only that class and its subclasses.
func (h classHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	classes, err := h.catalog.Heirs(ctx, caller, c.QueryParam("extends"))
	if err != nil {
		return err
	}
	list := make([]classJSON, len(classes))
	for i, one := range classes {
		list[i] = classJSON{Name: one.Name, Parents: append([]string{}, one.Parents...), Package: classPackageJSON{ID: one.Package.ID,
			FullName: one.Package.FullName, Name: one.Package.Name, Type: one.Package.Type, Version: one.Package.Version}}
	}
	return c.JSON(http.StatusOK, struct {
		Classes []classJSON `json:"classes"`
	}{list})
}

// objectJSON is an object of a model without its content.
type objectJSON struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
	Path string `json:"path"`
}

// objects answers the objects of an environment or draft, with class only its objects.
func (h classHandlers) objects(c echo.Context) error {
	ctx, caller := calling(c)
	objects, err := h.orchestrator.Models().Objects(ctx, caller, c.Param("environment"), sessionOf(c), c.QueryParam("class"))
	if err != nil {
		return err
	}
	list := make([]objectJSON, len(objects))
	for i, one := range objects {
		list[i] = objectJSON(one)
	}
	return c.JSON(http.StatusOK, struct {
		Objects []objectJSON `json:"objects"`
	}{list})
}

// actionJSON is a public method.
type actionJSON struct {
	Name        string         `json:"name"`
	Static      bool           `json:"static"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Help        string         `json:"help"`
	Confirm     *string        `json:"confirm"`    // null: the action needs no confirmation
	Deprecated  *string        `json:"deprecated"` // its replacement; null: it stays
	Arguments   map[string]any `json:"arguments"`
}

// actions lists the actions of a class's objects, and the class itself.
func (h classHandlers) actions(c echo.Context) error {
	ctx, caller := calling(c)
	actions, err := h.orchestrator.Classes().Actions(ctx, caller, classOf(c))
	if err != nil {
		return err
	}
	list := make([]actionJSON, len(actions))
	for i, one := range actions {
		list[i] = actionJSON{Name: one.Name, Static: one.Static, Title: one.Title, Description: one.Description, Help: one.Help, Arguments: one.Arguments}
		if one.Confirm != "" {
			list[i].Confirm = &one.Confirm
		}
		if one.Deprecated != "" {
			list[i].Deprecated = &one.Deprecated
		}
	}
	return c.JSON(http.StatusOK, struct {
		Actions []actionJSON `json:"actions"`
	}{list})
}

// schemaHandlers answer the routes of the classes' JSON schemas.
type schemaHandlers struct {
	orchestrator *orchestrator.Service
}

func (h schemaHandlers) register(v1 *echo.Group) {
	v1.GET("/schemas/:class", h.show)
	v1.GET("/schemas/:class/:methods", h.show)
}

// classOf is the class that a request names, in Murano's parameters.
func classOf(c echo.Context) engine.ClassName {
	return engine.ClassName{Name: c.Param("class"), Package: c.QueryParam("packageName"), Version: c.QueryParam("classVersion")}
}

func (h schemaHandlers) show(c echo.Context) error {
	var methods []string
	if list := c.Param("methods"); list != "" {
		methods = strings.Split(list, ",")
	}
	ctx, caller := calling(c)
	schemas, err := h.orchestrator.Classes().Schemas(ctx, caller, classOf(c), methods)
	if err != nil {
		return detailed(err)
	}
	if c.QueryParam("effects") != "true" {
		withoutEffects(schemas)
	}
	return c.JSON(http.StatusOK, schemas)
}

// withoutEffects leaves the schemas that Murano's clients know.
func withoutEffects(schemas map[string]any) {
	for _, schema := range schemas {
		schema, _ := schema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for _, property := range properties {
			if entry, is := property.(map[string]any); is {
				delete(entry, "onChange")
			}
		}
	}
}
