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
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Preview is what the deployment of a session would do.
type Preview struct {
	Changes []Change
	Means   []string // what it does besides, and what that costs, in sentences
	Losses  []Loss   // what it would delete in the cloud
	// Kubernetes is what it would add, change and remove in clusters through Helm releases.
	Kubernetes []engine.KubernetesChange
	Problems   []muranopl.Problem // for which it would do nothing
	// Consents are the losses that a deployment must be allowed by name.
	Consents []Consent
}

// Consent is a loss that a deployment is refused for unless the object is named as one that may go.
type Consent struct{ ObjectID, Name, Text string }

// Loss is a server, a volume or a stack of a Heat template that a deployment would delete with all that is on it.
type Loss struct {
	Kind             string // server, volume or stack
	ObjectID, Object string // the object that it belongs to, and its name
	CloudID          string // of a server or volume where the object knows it, of a stack its name
}

// Change is an object that a deployment would add, change or remove.
type Change struct {
	What       string // added, changed, removed
	ID, Type   string
	Name       string   // its property "name"; "" when it has none
	Path       string   // where it is in the model, like "services[0].nodes[1]"; "" is the environment itself
	Properties []string // of a changed object: the properties that are other than they were, sorted
	Values     []Value  // of the same properties
}

// Value is a property of a changed object. Objects stand as their ids. Secrets are masked, so that two that differ may look alike.
type Value struct {
	Name          string
	Before, After any
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
	return s.preview(ctx, caller, environment, session.Model)
}

// PreviewNew is Preview for an environment that is not there: body is as for CreateEnvironment, with the applications as services. What creating the
// environment would be refused for, such as a quota, is a fault. Nothing is stored.
func (s *Service) PreviewNew(ctx context.Context, caller identity.Caller, body map[string]any) (Preview, error) {
	if _, list := body["services"].([]any); !list {
		return Preview{}, fault.New(fault.Invalid, "The applications of an environment are a list: give them as \"services\"")
	}
	row, err := newEnvironment(caller, body)
	if err == nil {
		err = s.bounded(size{}, row.Model.Objects)
	}
	if err == nil {
		err = secret.Unmask(row.Model.Objects)
	}
	if err == nil {
		err = taken(s.store.TryEnvironment(ctx, row))
	}
	if err != nil {
		return Preview{}, err
	}
	return s.preview(ctx, caller, row, row.Model)
}

// preview compares a model with what was deployed last of an environment, and checks it.
func (s *Service) preview(ctx context.Context, caller identity.Caller, environment store.Environment, model store.Model) (Preview, error) {
	if model.Back != nil && model.Back.Packages != nil {
		environment.Model.Packages = model.Back.Packages
	}
	after := map[string]any(store.ForClasses(environment.ID, store.Copy(model.Objects)))
	loaded, computed, problems := s.engine.Check(ctx, environment.ProjectID, environment.Model.Packages, after)
	var foreseen engine.Foreseen
	if len(problems) == 0 {
		told, refused, err := s.rehearse(ctx, caller, environment, after)
		if err != nil {
			return Preview{}, err
		}
		foreseen, problems, after = told, refused, loaded
		if told.Model != nil {
			after, computed = told.Model, told.Computed
		}
	}
	before := store.ForAPI(environment.Model.ObjectsCopy)
	found := changes(before, store.ForAPI(after), computed)
	s.maskChanges(ctx, environment, found, before, store.ForAPI(after))
	answer := Preview{Changes: found, Means: foreseen.Means, Losses: losses(before, found, foreseen.Kept), Kubernetes: foreseen.Objects, Problems: problems}
	objects := map[string]placed{}
	place(objects, "", store.ForAPI(after))
	for _, one := range foreseen.Consents {
		answer.Consents = append(answer.Consents, Consent{one.ObjectID, objects[one.ObjectID].Name, one.Text})
	}
	for _, one := range destroyedClusters(environment.Model.ObjectsCopy, model.Objects) {
		answer.Means = append(answer.Means, one.destroyed())
		if !slices.Contains(model.MayDestroy, one.ID) {
			answer.Consents = append(answer.Consents, Consent{one.ID, one.Name, one.destroyed()})
		}
	}
	return answer, nil
}

// rehearse foresees what the deployment of a model does, and lists for what it is refused: objects that cannot be as the model says, and servers that
// it would rebuild, resize or replace.
func (s *Service) rehearse(ctx context.Context, caller identity.Caller, environment store.Environment, model map[string]any) (engine.Foreseen, []muranopl.Problem, error) {
	if s.project == nil {
		return engine.Foreseen{}, nil, nil
	}
	foreseen, err := s.engine.Rehearse(ctx, environment, model, func(ctx context.Context) (*openstack.Project, error) { return s.project(ctx, caller) }, true)
	refused := openstack.ServerChanges(err)
	if err != nil && len(refused) == 0 {
		return foreseen, nil, err
	}
	objects := map[string]placed{}
	place(objects, "", store.ForAPI(model))
	var problems []muranopl.Problem
	for _, one := range foreseen.Refused {
		object := objects[one.ObjectID]
		problems = append(problems, muranopl.Problem{Path: object.Path, Class: object.Type, Wanted: one.Text})
	}
	for _, one := range refused {
		object := ownerOf(objects, one.Resource)
		problems = append(problems, muranopl.Problem{Path: object.Path, Class: object.Type, Wanted: one.Error()})
	}
	return foreseen, problems, nil
}

// Ask asks a question of an object of an environment, with the caller's token. It changes nothing.
func (s *Service) Ask(ctx context.Context, caller identity.Caller, environmentID, objectID string, question engine.Question) (any, error) {
	if err := s.MayReach(ctx, caller, environmentID, objectID); err != nil {
		return nil, err
	}
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	if s.project == nil {
		return nil, fault.New(fault.NotFound, "This Burano asks no cloud")
	}
	return s.engine.Ask(ctx, environment, func(ctx context.Context) (*openstack.Project, error) { return s.project(ctx, caller) }, question)
}

// ownerOf is the object that a resource of the environment's stack belongs to; empty when it is nobody's.
func ownerOf(objects map[string]placed, resource string) (owner placed) {
	for id, object := range objects {
		if openstack.IsOf(resource, id) && len(id) > len(owner.ID) {
			owner = object
		}
	}
	return owner
}

// losses are what a deployment deletes in the cloud: the servers and volumes of objects that it removes or leaves without, and the stacks
// of removed applications that are made of Heat templates.
func losses(before map[string]any, found []Change, kept []openstack.Kept) []Loss {
	had := map[string]placed{}
	place(had, "", before)
	removed := map[string]bool{}
	list := []Loss{}
	for _, one := range found {
		if one.What != "removed" {
			continue
		}
		removed[one.ID] = true
		if stack, ok := had[one.ID].properties["generatedHeatStackName"].(string); ok && stack != "" {
			list = append(list, Loss{Kind: "stack", ObjectID: one.ID, Object: one.Name, CloudID: stack})
		}
	}
	made := map[string]bool{} // objects that are servers
	for _, resource := range kept {
		if resource.Kind == "server" {
			made[ownerOf(had, resource.Resource).ID] = true
		}
	}
	for _, resource := range kept {
		owner := ownerOf(had, resource.Resource)
		if resource.Wanted && !removed[owner.ID] {
			continue
		}
		loss := Loss{Kind: resource.Kind, ObjectID: owner.ID, Object: cmp.Or(owner.Name, resource.Resource)}
		if resource.Kind == "server" || !made[owner.ID] { // a volume may be a server's own
			loss.CloudID, _ = owner.properties["openstackId"].(string)
		}
		list = append(list, loss)
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Object, b.Object), strings.Compare(a.ObjectID, b.ObjectID))
	})
	return list
}

// placed is an object of a model without the objects in it.
type placed struct {
	Change
	fullType   string // with version and package, where the header has them
	headName   string // what the header calls it
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
		if len(now.Properties) == 0 {
			continue
		}
		slices.Sort(now.Properties)
		for _, name := range now.Properties {
			now.Values = append(now.Values, Value{Name: name, Before: masked(name, was.properties[name]), After: masked(name, now.properties[name])})
		}
		list = append(list, now.Change)
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

// maskChanges masks in the values of changed properties what classes make secrets.
func (s *Service) maskChanges(ctx context.Context, environment store.Environment, found []Change, before, after map[string]any) {
	if !muranopl.MayHide(before) && !muranopl.MayHide(after) {
		return
	}
	was, is := map[string]placed{}, map[string]placed{}
	place(was, "", s.shown(ctx, environment, before))
	place(is, "", s.shown(ctx, environment, after))
	for _, change := range found {
		for i, value := range change.Values {
			change.Values[i].Before, change.Values[i].After = masked(value.Name, was[change.ID].properties[value.Name]), masked(value.Name, is[change.ID].properties[value.Name])
		}
	}
}

// masked is a value with secrets replaced, by the one rule for their names.
func masked(name string, value any) any {
	return sensitive.Texts(name, value, func(string) string { return secret.Mark })
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
		full, _ := header["type"].(string)
		kind, _, _ := strings.Cut(full, "/") // Save adds version and package
		name, _ := v["name"].(string)
		headName, _ := header["name"].(string)
		objects[id] = placed{Change: Change{ID: id, Type: kind, Name: name, Path: path}, fullType: full, headName: headName, properties: inner}
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
