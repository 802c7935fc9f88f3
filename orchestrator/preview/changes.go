package preview

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
)

// Change is an object that a deployment would add, change or remove.
type Change struct {
	What       string // added, changed, removed
	ID, Type   string
	Name       string   // its property "name"; "" when it has none
	Path       string   // where it is in the model, like "services[0].nodes[1]"; "" is the environment itself
	Properties []string // of a changed object: the properties that are other than they were, sorted
	Values     []Value  // of the same properties
	// Names are the names of the objects in Values by their ids, or else the names of their parts or classes.
	Names map[string]string
}

// Value is a property of a changed object. Objects appear as their ids. Secrets are masked, so two different ones can look alike.
type Value struct {
	Name          string
	Before, After any
	// Effect is the declared effect of a change of the property, and EffectText its details (muranopl.OnChange); "" where the class declares none.
	Effect, EffectText string
}

// Changes lists the differences of two models: additions and changes in the order of the second model's paths, then removals.
// Properties that code computes make no difference: a model that does not give them means the same.
func Changes(before, after map[string]any, computed map[string][]string) []Change {
	had, has := Objects(before), Objects(after)
	list := []Change{}
	for id, now := range has {
		was, there := had[id]
		if !there {
			now.What = "added"
			list = append(list, now.Change)
			continue
		}
		now.What = "changed"
		for name, value := range now.Fields {
			if !slices.Contains(computed[id], name) && !reflect.DeepEqual(value, was.Fields[name]) {
				now.Properties = append(now.Properties, name)
			}
		}
		if len(now.Properties) == 0 {
			continue
		}
		slices.Sort(now.Properties)
		now.Names = map[string]string{}
		for _, name := range now.Properties {
			now.Values = append(now.Values, Value{Name: name, Before: Masked(name, was.Fields[name]), After: Masked(name, now.Fields[name])})
			names(was.Fields[name], had, now.Names)
			names(now.Fields[name], has, now.Names)
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

// declare adds the declared effects of the changed properties.
func (c *Change) declare(of func(objectID, property string) muranopl.OnChange) {
	for i := range c.Values {
		if value := &c.Values[i]; of != nil {
			declared := of(c.ID, value.Name)
			value.Effect, value.EffectText = declared.Effect, declared.Text
		}
	}
}

// names adds the names of the objects whose ids are in a value.
func names(value any, objects map[string]Object, found map[string]string) {
	switch v := value.(type) {
	case string:
		if object, is := objects[v]; is {
			found[v] = object.called(objects)
		}
	case []any:
		for _, item := range v {
			names(item, objects, found)
		}
	case map[string]any:
		for _, item := range v {
			names(item, objects, found)
		}
	}
}

// called is the name of an object, or else of the first part that has one, such as a node's instance, or else of its class.
func (o Object) called(objects map[string]Object) string {
	if name := cmp.Or(o.Name, o.HeadName); name != "" {
		return name
	}
	for _, field := range slices.Sorted(maps.Keys(o.Fields)) {
		id, _ := o.Fields[field].(string)
		if part := objects[id]; part.Name != "" && strings.HasPrefix(part.Path, o.Path+".") {
			return part.Name
		}
	}
	return o.Type[strings.LastIndex(o.Type, ".")+1:]
}

// losses are the objects that a deployment deletes in the cloud: servers and volumes of objects that it removes or leaves without, and stacks of
// removed applications that are made of Heat templates.
func losses(before map[string]any, found []Change, kept []openstack.Kept) []Loss {
	had := Objects(before)
	removed := map[string]bool{}
	list := []Loss{}
	for _, one := range found {
		if one.What != "removed" {
			continue
		}
		removed[one.ID] = true
		if stack, ok := had[one.ID].Fields["generatedHeatStackName"].(string); ok && stack != "" {
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
			loss.CloudID, _ = owner.Fields["openstackId"].(string)
		}
		list = append(list, loss)
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Object, b.Object), strings.Compare(a.ObjectID, b.ObjectID))
	})
	return list
}

// ownerOf is the object that a resource of the environment's stack belongs to; empty for none.
func ownerOf(objects map[string]Object, resource string) (owner Object) {
	for id, object := range objects {
		if openstack.IsOf(resource, id) && len(id) > len(owner.ID) {
			owner = object
		}
	}
	return owner
}

// Object is an object of a model. The objects in it appear as their ids.
type Object struct {
	Change
	FullType string         // with version and package, where the header has them
	HeadName string         // its name in the header
	Fields   map[string]any // its properties
}

// Objects are the objects of a model by id.
func Objects(model map[string]any) map[string]Object {
	found := map[string]Object{}
	place(found, "", model)
	return found
}

// Masked is a value with secrets replaced, by the one rule for their names.
func Masked(name string, value any) any {
	return sensitive.Texts(name, value, func(string) string { return secret.Mark })
}

func order(c Change) int {
	if c.What == "removed" {
		return 1
	}
	return 0
}

// metadata is the name of an object's metadata among its properties: they are in its header.
const metadata = "?.metadata"

// place notes the objects in a value by their ids, and returns the value with each object replaced by its id, as a reference has it.
func place(objects map[string]Object, path string, value any) any {
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
		inner[metadata] = nil
		if given, _ := header["metadata"].(map[string]any); len(given) > 0 {
			inner[metadata] = given
		}
		if _, taken := objects[id]; !taken { // only a model that is refused has an id twice
			objects[id] = Object{Change: Change{ID: id, Type: kind, Name: name, Path: path}, FullType: full, HeadName: headName, Fields: inner}
		}
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
