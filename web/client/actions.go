package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Action is something that a deployed object can do.
type Action struct {
	ID          string `json:"id" yaml:"id"`         // of the action, as the API wants it
	Object      string `json:"object" yaml:"object"` // its id
	Type        string `json:"type" yaml:"type"`     // of the object: class/version@package
	Name        string `json:"name" yaml:"name"`     // of the object
	Action      string `json:"action" yaml:"action"`
	Title       string `json:"title" yaml:"title"`
	Description string `json:"description" yaml:"description"`
	Deprecated  string `json:"deprecated" yaml:"deprecated"` // its replacement, where a coming release does not have it
	Enabled     bool   `json:"enabled" yaml:"enabled"`
}

// Actions lists the actions of the environment's objects, in the order of the model.
func (e Environment) Actions() []Action {
	all := []Action{}
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			header, _ := value["?"].(map[string]any)
			actions, _ := header["_actions"].(map[string]any)
			object, _ := header["id"].(string)
			kind, _ := header["type"].(string)
			name, _ := value["name"].(string)
			if name == "" {
				name, _ = header["name"].(string)
			}
			for _, id := range slices.Sorted(maps.Keys(actions)) {
				described, _ := actions[id].(map[string]any)
				one := Action{ID: id, Object: object, Type: kind, Name: name, Enabled: true}
				one.Action, _ = described["name"].(string)
				one.Title, _ = described["title"].(string)
				one.Description, _ = described["description"].(string)
				one.Deprecated, _ = described["deprecated"].(string)
				if enabled, ok := described["enabled"].(bool); ok {
					one.Enabled = enabled
				}
				all = append(all, one)
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if key != "?" {
					walk(value[key])
				}
			}
		case []any:
			for _, element := range value {
				walk(element)
			}
		}
	}
	for _, service := range e.Services {
		walk(service)
	}
	return all
}

// Action finds the action of that name of the object of that name or id.
func (e Environment) Action(object, name string) (Action, error) {
	var found []Action
	var others []string
	for _, one := range e.Actions() {
		if one.Object != object && one.Name != object {
			continue
		}
		if one.Action == name {
			found = append(found, one)
		}
		others = append(others, one.Action)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Action{}, fmt.Errorf("several objects of environment %s are called %s: give the id of the one you mean (burano action list %s)", e.Name, object, e.Name)
	case len(others) > 0:
		return Action{}, fmt.Errorf("%s has no action %s; it has %s", object, name, strings.Join(others, ", "))
	}
	return Action{}, fmt.Errorf("environment %s has no object %s with actions: `burano action list %s` shows those it has (actions are known after the first deployment)", e.Name, object, e.Name)
}

// Actions are the calls about actions of objects.
type Actions struct{ client *Client }

// Actions returns the calls about actions of objects.
func (c *Client) Actions() Actions { return Actions{c} }

// Call runs an action of a deployed object and returns the id of its task, which Follow follows.
func (c Actions) Call(ctx context.Context, environment, action string, arguments map[string]any) (task string, err error) {
	var started struct {
		Task string `json:"task_id"`
	}
	err = c.client.Call(ctx, http.MethodPost, "/v1/environments/"+environment+"/actions/"+action, arguments, &started)
	return started.Task, err
}

// ActionResult is an action's result, or exception.
type ActionResult struct {
	IsException *bool           `json:"isException"` // nil while it runs
	Result      json.RawMessage `json:"result"`
}

// Result asks for the result of an action's task.
func (c Actions) Result(ctx context.Context, environment, task string) (ActionResult, error) {
	var result ActionResult
	return result, c.client.Call(ctx, http.MethodGet, "/v1/environments/"+environment+"/actions/"+task, nil, &result)
}

// Class names a class of the catalog.
type Class struct {
	Name    string
	Package string // full name; "": whichever package the catalog finds
	Version string // a version, or a range of versions such as >=1.2; "": the newest
}

// Classes are the calls about classes, and about the objects of an environment by their classes.
type Classes struct{ client *Client }

// Classes returns the calls about classes.
func (c *Client) Classes() Classes { return Classes{c} }

// CallStatic calls a static method that is an action, and returns its result.
func (c Classes) CallStatic(ctx context.Context, class Class, method string, arguments map[string]any) (json.RawMessage, error) {
	body := map[string]any{"className": class.Name, "methodName": method, "parameters": arguments}
	if class.Package != "" {
		body["packageName"] = class.Package
	}
	if class.Version != "" {
		body["classVersion"] = class.Version
	}
	var result json.RawMessage
	if err := c.client.Call(ctx, http.MethodPost, "/v1/actions", body, &result); err != nil {
		return nil, err
	}
	if result == nil {
		result = json.RawMessage("null")
	}
	return result, nil
}

// ClassAction is a public method of a class: an action of its objects.
type ClassAction struct {
	Name        string         `json:"name" yaml:"name"`
	Static      bool           `json:"static" yaml:"static"` // the class's own, for CallStatic
	Title       string         `json:"title" yaml:"title"`
	Description string         `json:"description" yaml:"description"`
	Help        string         `json:"help" yaml:"help"`
	Confirm     string         `json:"confirm" yaml:"confirm"`       // a warning for the caller before it runs
	Deprecated  string         `json:"deprecated" yaml:"deprecated"` // its replacement, where a coming release does not have it
	Arguments   map[string]any `json:"arguments" yaml:"arguments"`   // JSON schema
}

// ClassOfPackage is a class with its parents and its package.
type ClassOfPackage struct {
	Name    string   `json:"name" yaml:"name"`
	Parents []string `json:"parents" yaml:"parents"` // full names
	Package struct {
		ID       string `json:"id" yaml:"id"`
		FullName string `json:"fully_qualified_name" yaml:"fully_qualified_name"`
		Name     string `json:"name" yaml:"name"`
		Type     string `json:"type" yaml:"type"`
		Version  string `json:"version" yaml:"version"`
	} `json:"package" yaml:"package"`
}

// List lists the classes of packages that the project may use; with extends that class and its subclasses.
func (c Classes) List(ctx context.Context, extends string) ([]ClassOfPackage, error) {
	var answer struct {
		Classes []ClassOfPackage `json:"classes"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/classes?"+url.Values{"extends": {extends}}.Encode(), nil, &answer)
	return answer.Classes, err
}

// Object is an object of a model without its content.
type Object struct {
	ID   string `json:"id" yaml:"id"`
	Type string `json:"type" yaml:"type"` // its class, without version and package
	Name string `json:"name" yaml:"name"`
	Path string `json:"path" yaml:"path"` // "" is the environment itself
}

// Objects lists the objects of an environment, or of a session's draft; with class its objects and objects of its subclasses.
func (c Classes) Objects(ctx context.Context, environment, session, class string) ([]Object, error) {
	var answer struct {
		Objects []Object `json:"objects"`
	}
	path := "/burano/v1/environments/" + environment + "/objects?" + url.Values{"class": {class}}.Encode()
	err := c.client.Call(ctx, http.MethodGet, path, nil, &answer, ofSession(session)...)
	return answer.Objects, err
}

// Actions lists the public methods of a class with the schemas of their arguments.
func (c Classes) Actions(ctx context.Context, class Class) ([]ClassAction, error) {
	var answer struct {
		Actions []ClassAction `json:"actions"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/classes/"+url.PathEscape(class.Name)+"/actions?"+class.query().Encode(), nil, &answer)
	return answer.Actions, err
}

// query are the parameters by which routes of a class choose among several of its name.
func (c Class) query() url.Values {
	query := url.Values{}
	if c.Package != "" {
		query.Set("packageName", c.Package)
	}
	if c.Version != "" {
		query.Set("classVersion", c.Version)
	}
	return query
}

// ClassOfType takes a type apart as headers of deployed objects have it: name/version@package.
func ClassOfType(text string) Class {
	var class Class
	text, class.Package, _ = strings.Cut(text, "@")
	class.Name, class.Version, _ = strings.Cut(text, "/")
	return class
}

// Schemas returns the JSON schemas of an object of a class in a model, and of the arguments of its model builders, or of some.
func (c Classes) Schemas(ctx context.Context, class Class, methods ...string) (json.RawMessage, error) {
	path := "/v1/schemas/" + url.PathEscape(class.Name)
	if len(methods) > 0 {
		path += "/" + url.PathEscape(strings.Join(methods, ","))
	}
	var schemas json.RawMessage
	return schemas, c.client.Call(ctx, http.MethodGet, path+"?"+class.query().Encode(), nil, &schemas)
}
