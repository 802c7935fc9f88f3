package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Preview is what the deployment of a session would do.
type Preview struct {
	Changes  []Change
	Problems []muranopl.Problem // for which it would do nothing
}

// Change is an object that a deployment would add, change or remove.
type Change struct {
	What       string // added, changed, removed
	ID, Type   string
	Name       string   // its property "name"; "" when it has none
	Path       string   // where it is in the model, like "services[0].nodes[1]"; "" is the environment itself
	Properties []string // of a changed object: the properties that are other than they were, sorted
}

// Preview compares a session's draft with what was deployed last, and checks it, without doing anything.
func (s *Service) Preview(ctx context.Context, caller identity.Caller, environmentID, sessionID string) (Preview, error) {
	environment, session, err := s.own(ctx, caller, environmentID, sessionID)
	if err != nil {
		return Preview{}, err
	}
	if err := s.checkValid(ctx, environment, session); err != nil {
		return Preview{}, err
	}
	after := map[string]any(store.ForClasses(environmentID, store.Copy(session.Model.Objects)))
	loaded, computed, problems := s.engine.Check(ctx, environment.ProjectID, environment.Model.Packages, after)
	if len(problems) == 0 {
		refused, err := s.rehearse(ctx, caller, environment, after)
		if err != nil {
			return Preview{}, err
		}
		problems, after = refused, loaded
	}
	return Preview{Changes: changes(store.ForAPI(environment.Model.ObjectsCopy), store.ForAPI(after), computed), Problems: problems}, nil
}

// rehearse lists the servers that the deployment of a model would destroy, for which it is refused.
func (s *Service) rehearse(ctx context.Context, caller identity.Caller, environment store.Environment, model map[string]any) ([]muranopl.Problem, error) {
	if s.project == nil {
		return nil, nil
	}
	err := s.engine.Rehearse(ctx, environment, model, func(ctx context.Context) (*openstack.Project, error) { return s.project(ctx, caller) })
	refused := openstack.ServerChanges(err)
	if len(refused) == 0 {
		return nil, err
	}
	objects := map[string]placed{}
	place(objects, "", store.ForAPI(model))
	problems := make([]muranopl.Problem, len(refused))
	for i, one := range refused {
		object := objects[strings.TrimSuffix(one.Resource, openstack.ServerResource(""))]
		problems[i] = muranopl.Problem{Path: object.Path, Class: object.Type, Wanted: one.Error()}
	}
	return problems, nil
}

// placed is an object of a model without the objects in it.
type placed struct {
	Change
	properties map[string]any
}

// changes lists the differences of two models: what is added and changed in the order of the second one's paths, then what is removed.
// Properties that code computes make no difference: a model that does not give them means the same.
func changes(before, after map[string]any, computed map[string][]string) []Change {
	had, has := map[string]placed{}, map[string]placed{}
	place(had, "", before)
	place(has, "", after)
	list := []Change{}
	for id, now := range has {
		was, there := had[id]
		if !there {
			now.What = "added"
			list = append(list, now.Change)
			continue
		}
		now.What = "changed"
		for name, value := range now.properties {
			if !slices.Contains(computed[id], name) && !reflect.DeepEqual(value, was.properties[name]) {
				now.Properties = append(now.Properties, name)
			}
		}
		if len(now.Properties) > 0 {
			slices.Sort(now.Properties)
			list = append(list, now.Change)
		}
	}
	for id, was := range had {
		if _, there := has[id]; !there {
			was.What = "removed"
			list = append(list, was.Change)
		}
	}
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Path, b.Path), strings.Compare(a.ID, b.ID))
	})
	return list
}

func order(c Change) int {
	if c.What == "removed" {
		return 1
	}
	return 0
}

// place notes the objects in a value by their ids, and returns the value with each object replaced by its id, as a reference has it.
func place(objects map[string]placed, path string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		header, isObject := v["?"].(map[string]any)
		inner := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "?" {
				inner[key] = place(objects, strings.TrimPrefix(path+"."+key, "."), v[key])
			}
		}
		id, _ := header["id"].(string)
		if !isObject || id == "" {
			return inner
		}
		kind, _ := header["type"].(string)
		kind, _, _ = strings.Cut(kind, "/") // Save adds version and package
		name, _ := v["name"].(string)
		objects[id] = placed{Change{ID: id, Type: kind, Name: name, Path: path}, inner}
		return id
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = place(objects, fmt.Sprintf("%s[%d]", path, i), element)
		}
		return list
	}
	return value
}

// InvalidModel is a fault: a draft that cannot be deployed, with everything that is wrong with it.
type InvalidModel struct{ Problems []muranopl.Problem }

func (e *InvalidModel) Error() string {
	texts := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		texts[i] = problem.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap makes it a fault of kind Invalid.
func (e *InvalidModel) Unwrap() error { return fault.New(fault.Invalid, "%s", e.Error()) }
