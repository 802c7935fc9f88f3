package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// A stack is updated only where no existing server is rebuilt, resized or replaced, because its data would be lost. This file finds the changes that would
// do that, and refuses them.

const serverType = "OS::Nova::Server"

// losses are the costs of changes of a server's properties; a property without an entry replaces the server.
var losses = map[string]string{
	"flavor":   "Heat would shut it down and resize it, and everything that runs on it would stop",
	"image":    "Heat would rebuild it, and everything on its disk would be lost",
	"networks": "it would lose its addresses, by which others know it",
	"name":     "its cluster knows it by its name",
	propertyID: "it would be deleted, with everything on its disk, while another one of its name is made",
}

// propertyID is the Property of a ServerChange for the id of the object that a node's server belongs to.
const propertyID = "id"

const replacement = "Heat would delete it and make another one, and everything on its disk would be lost"

// ServerChange is a fault: Heat could only apply a stack's new definition to a server by destroying its data.
type ServerChange struct {
	Resource string // in the stack
	Server   string // its name
	ServerID string
	Property string // as Heat calls it
	From, To string
	// Definition is Heat's definition of the resource; nil in a nested stack.
	Definition map[string]any
	// Why is the cluster's reason against a change that is else made by replacing its node.
	Why string
}

func (c *ServerChange) Error() string {
	loss := losses[c.Property]
	if loss == "" {
		loss = replacement
	}
	if c.Why != "" {
		return fmt.Sprintf("server %s (%s) has %s %s and cannot get %s: %s. Nothing was changed", c.Server, c.ServerID, c.Property, c.From, c.To, c.Why)
	}
	differs := fmt.Sprintf("with %s %s and cannot have %s", c.Property, c.From, c.To)
	if c.Property == "user_data" { // may hold secrets, and is long
		differs = "with other user_data and cannot have what it is to have"
	}
	return fmt.Sprintf("server %s (%s) was made %s while it is there: %s. Nothing was changed. Put %s back to what it was. "+
		"To have a server like that, add one, move to it what runs here, and then remove this one", c.Server, c.ServerID, differs, loss, c.Property)
}

// Unwrap makes it a fault of kind Conflict.
func (c *ServerChange) Unwrap() error { return fault.New(fault.Conflict, "%s", c.Error()) }

// ServerChanges are all of them in an error.
func ServerChanges(err error) []*ServerChange {
	switch e := err.(type) {
	case *ServerChange:
		return []*ServerChange{e}
	case interface{ Unwrap() []error }:
		var all []*ServerChange
		for _, part := range e.Unwrap() {
			all = append(all, ServerChanges(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		return ServerChanges(e.Unwrap())
	}
	return nil
}

// Refused is the error that has these changes; nil when there are none.
func Refused(changes []*ServerChange) error {
	errs := make([]error, len(changes))
	for i, change := range changes {
		errs[i] = change
	}
	return errors.Join(errs...)
}

// CheckStack returns the refusal that ApplyStack would return for a definition, without changing anything: an error with ServerChanges.
func (p *Project) CheckStack(ctx context.Context, name string, content Content) error {
	found, err := p.named(ctx, name)
	if err != nil || len(found) == 0 {
		return err
	}
	existing, err := p.stack(ctx, found[0])
	if err != nil || existing == nil || strings.HasPrefix(existing.Status, "DELETE_") {
		return err
	}
	_, _, err = p.preserve(ctx, existing, content)
	return err
}

// healths are the marks of servers for Heat before an update: healthy, or the reason why not. Heat replaces unhealthy ones.
type healths map[string]string

const (
	healthy   = ""
	replaced  = "it is to have other properties, and nothing runs on it"
	checkFail = "CHECK_FAILED"
)

// preserve compares a stack with its desired content, which it returns with the existing servers' present values. Servers that are gone or in ERROR
// may change; every other server that Heat would rebuild, resize or replace is an error with ServerChanges.
func (p *Project) preserve(ctx context.Context, existing *stacks.RetrievedStack, content Content) (Content, healths, error) {
	template, err := p.template(ctx, existing)
	if err != nil {
		return content, nil, err
	}
	wanted, err := plain(content.Template)
	if err != nil {
		return content, nil, err
	}
	resources, err := p.resources(ctx, existing.Name, existing.ID)
	if err != nil {
		return content, nil, err
	}
	now := definition{template: template, parameters: existing.Parameters}
	next := definition{template: wanted, parameters: content.inputs(), files: content.Files, registry: content.registry()}
	if now.extended() || next.extended() {
		if now.files, now.registry, err = p.extensions(ctx, existing); err != nil {
			return content, nil, err
		}
	}
	for id := range p.adopted[existing.Name].Servers { // Murano wrote their user data, and they keep it as nodes do
		content.Nodes = append(slices.Clone(content.Nodes), ServerResource(id))
	}
	states := healths{}
	var problems []*ServerChange
	unknown := map[string][]string{} // by server, the properties whose former values Heat does not return
	for _, resource := range resources {
		if successor := now.successor(next, resource.Name, content.Nodes); successor != "" && resource.PhysicalID != "" {
			server, err := p.found(ctx, resource.PhysicalID)
			if err != nil {
				return content, nil, err
			}
			if server.there() {
				problems = append(problems, &ServerChange{Resource: resource.Name, Server: server.name, ServerID: resource.PhysicalID, Property: propertyID,
					From: strings.TrimSuffix(resource.Name, serverSuffix), To: strings.TrimSuffix(successor, serverSuffix)})
			}
		}
		if resource.PhysicalID == "" || resource.Status == "CREATE_FAILED" || now.resource(resource.Name) == nil || next.resource(resource.Name) == nil {
			continue // a missing resource is made; an unwanted one goes
		}
		node := slices.Contains(content.Nodes, resource.Name)
		differing, concealed := now.differences(next, resource.Name, node)
		for _, property := range now.spelledOtherwise(next, resource.Name) {
			if !slices.Contains(differing, property) {
				next.keep(now, resource.Name, property)
			}
		}
		if now.kind(resource.Name) != serverType {
			changes, concealed := now.changesInside(next, resource.Name, 1)
			for _, change := range changes {
				change.Resource, change.ServerID, change.Server = resource.Name, "of "+resource.Name, change.Server+" in stack "+resource.PhysicalID
				problems = append(problems, change)
			}
			if len(concealed) > 0 {
				unknown[resource.Name] = concealed
			}
			continue
		}
		if node {
			// Burano wrote it, and another version of Burano writes it otherwise.
			for _, property := range []string{"user_data", "user_data_format", "config_drive"} {
				if i := slices.Index(differing, property); i >= 0 {
					differing = slices.Delete(differing, i, i+1)
					next.keep(now, resource.Name, property)
				}
			}
			// Which group it was made in counts when it is made, and for nothing after.
			if i := slices.Index(differing, "scheduler_hints"); i >= 0 {
				differing = slices.Delete(differing, i, i+1)
				next.keepGroup(now, resource.Name)
			}
		}
		// After a failed update the template may be ahead of the resources.
		recorded := existing.Status == "UPDATE_FAILED"
		if len(differing) == 0 && len(concealed) == 0 && !recorded && resource.Status != checkFail {
			continue
		}
		server, err := p.found(ctx, resource.PhysicalID)
		if err != nil {
			return content, nil, err
		}
		if !server.there() {
			if len(differing) > 0 && resource.Status != checkFail {
				states[resource.Name] = replaced
			}
			continue
		}
		if len(concealed) > 0 {
			unknown[resource.Name] = concealed
		}
		if resource.Status == checkFail {
			states[resource.Name] = healthy
		}
		for property, has := range server.choices() {
			choice, named := next.value(resource.Name, property).(string)
			same := slices.Contains(has, choice)
			i := slices.Index(differing, property)
			switch {
			case i >= 0 && same: // the name of its value, or its id
				differing = slices.Delete(differing, i, i+1)
				next.keep(now, resource.Name, property)
			case i < 0 && recorded && named && !same && len(has) > 1:
				differing = append(differing, property)
			}
		}
		for _, property := range differing {
			problems = append(problems, &ServerChange{Resource: resource.Name, Server: server.name, ServerID: resource.PhysicalID, Property: property,
				From: now.shown(resource.Name, property, server), To: next.shown(resource.Name, property, foundServer{}), Definition: now.resource(resource.Name)})
		}
	}
	content.Template = wanted
	if len(unknown) > 0 && len(problems) == 0 {
		if problems, err = p.concealed(ctx, existing, Content{Template: now.template, Files: now.files}, content, unknown, resources); err != nil {
			return content, nil, err
		}
	}
	return content, states, Refused(problems)
}

// successor is the resource that next makes for a node's server in the place of one that it does not have any more: it has its name. "" when
// there is none.
func (d definition) successor(next definition, resource string, nodes []string) string {
	if d.kind(resource) != serverType || next.resource(resource) != nil {
		return ""
	}
	for _, node := range nodes {
		if d.resource(node) == nil && equal(d.value(resource, "name"), next.value(node, "name")) {
			return node
		}
	}
	return ""
}

// spelledOtherwise lists the properties that next gives a resource in another spelling. The meaning is the same to us, but Heat may see another
// value and replace the resource: to Heat a text that is null is an empty one, and not the same as none.
func (d definition) spelledOtherwise(next definition, resource string) (names []string) {
	before, after, kind := d.properties(resource), next.properties(resource), d.kind(resource)
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, after)
	for name := range all {
		was, had := before[name]
		is, has := after[name]
		same := equal(d.filledIn(was), next.filledIn(is)) || name == "availability_zone" && kind == serverType
		if EffectOf(kind, name) != InPlace && same && (had != has || !reflect.DeepEqual(was, is)) {
			names = append(names, name)
		}
	}
	return names
}

// keep gives a resource a property as it was, with the values that parameters and files had.
func (d definition) keep(was definition, resource, property string) {
	if d.properties(resource) == nil {
		d.resource(resource)["properties"] = map[string]any{}
	}
	if _, there := was.properties(resource)[property]; there {
		d.properties(resource)[property] = was.value(resource, property)
	} else {
		delete(d.properties(resource), property)
	}
}

// keepGroup gives a server the group that it was made in, and the template that group.
func (d definition) keepGroup(was definition, resource string) {
	const property = "scheduler_hints"
	d.keep(was, resource, property)
	hints, _ := was.properties(resource)[property].(map[string]any)
	group, _ := hints["group"].(map[string]any)
	name, _ := group["get_resource"].(string)
	if d.resource(name) == nil && was.resource(name) != nil {
		d.template["resources"].(map[string]any)[name] = was.resource(name)
	}
}

// markHealth marks for Heat which servers it must replace, and which not.
func (p *Project) markHealth(ctx context.Context, existing *stacks.RetrievedStack, states healths) error {
	of, err := p.stacks(ctx, existing.Name)
	if err != nil {
		return err
	}
	for resource, reason := range states {
		if err := of.MarkHealth(ctx, existing.Name, existing.ID, resource, reason); err != nil {
			return fmt.Errorf("mark how %s of stack %s is: %w", resource, existing.Name, err)
		}
	}
	return nil
}

// extensions are Heat's stored files of a stack, and its environment's mappings of types.
func (p *Project) extensions(ctx context.Context, existing *stacks.RetrievedStack) (files map[string]string, registry map[string]any, err error) {
	of, err := p.stacks(ctx, existing.Name)
	if err != nil {
		return nil, nil, err
	}
	if files, registry, err = of.Extensions(ctx, existing.Name, existing.ID); err != nil {
		return nil, nil, fmt.Errorf("read the files and the environment of stack %s: %w", existing.Name, err)
	}
	return files, registry, nil
}

// registry are the mappings of types in a content's environment.
func (c Content) registry() map[string]any {
	var environment struct {
		Registry map[string]any `yaml:"resource_registry"`
	}
	_ = door.YAML([]byte(c.Environment), &environment, door.Bounds{}) // Heat reports the mistake
	return environment.Registry
}

// inputs are a content's parameters, its environment's too.
func (c Content) inputs() map[string]string {
	var environment struct {
		Parameters map[string]any `yaml:"parameters"`
		Defaults   map[string]any `yaml:"parameter_defaults"`
	}
	_ = door.YAML([]byte(c.Environment), &environment, door.Bounds{}) // Heat reports the mistake
	declared, _ := c.Template["parameters"].(map[string]any)
	inputs := map[string]string{}
	for _, level := range []map[string]any{environment.Defaults, environment.Parameters, c.Parameters} {
		for name, value := range level {
			inputs[name] = text(value)
			parameter, _ := declared[name].(map[string]any)
			if list, ok := value.([]any); ok && parameter["type"] == "comma_delimited_list" {
				texts := make([]string, len(list))
				for i, item := range list {
					texts[i] = text(item)
				}
				inputs[name] = strings.Join(texts, ",")
			}
		}
	}
	return inputs
}

// definition is the content of a stack at one time.
type definition struct {
	template   map[string]any
	parameters map[string]string
	files      map[string]string
	registry   map[string]any // the mappings of types: other types, or files
}

// resource is a resource's definition in the template; nil for none.
func (d definition) resource(name string) map[string]any {
	resources, _ := d.template["resources"].(map[string]any)
	one, _ := resources[name].(map[string]any)
	return one
}

func (d definition) properties(resource string) map[string]any {
	properties, _ := d.resource(resource)["properties"].(map[string]any)
	return properties
}

// value is a resource's property with the values of parameters and files in it.
func (d definition) value(resource, property string) any {
	return d.filledIn(d.properties(resource)[property])
}

func (d definition) filledIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 1 {
			if name, ok := v["get_param"].(string); ok {
				return d.parameter(name)
			}
			if name, ok := v["get_file"].(string); ok {
				return d.files[name]
			}
		}
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[key] = d.filledIn(item)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = d.filledIn(item)
		}
		return made
	}
	return value
}

func (d definition) parameter(name string) any {
	if value, given := d.parameters[name]; given {
		return value
	}
	parameters, _ := d.template["parameters"].(map[string]any)
	one, _ := parameters[name].(map[string]any)
	return one["default"]
}

// shown is a property for people. Nova's value of an existing server counts more than the template, which may not have been applied.
func (d definition) shown(resource, property string, server foundServer) string {
	switch {
	case property == "type":
		return text(d.resource(resource)["type"])
	case property == "flavor" && server.flavor != "":
		return server.flavor
	case property == "image" && server.image != "":
		return server.image
	case property == "user_data":
		return ""
	}
	value := d.value(resource, property)
	if isEmpty(value) {
		return "none"
	}
	return text(value)
}

// differences lists the properties of a resource that next changes at the cost of its data. Of a node its name is one of them. Of the concealed ones Heat
// does not return the former value.
func (d definition) differences(next definition, resource string, node bool) (differing, concealed []string) {
	return d.compare(next, resource, node, map[string]bool{})
}

func (d definition) compare(next definition, resource string, node bool, seen map[string]bool) (differing, concealed []string) {
	seen[resource] = true
	before, after := d.properties(resource), next.properties(resource)
	kind := d.kind(resource)
	if kind != next.kind(resource) {
		return []string{"type"}, nil
	}
	names := maps.Clone(before)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		effect := EffectOf(kind, name)
		switch {
		case effect == InPlace && !(node && name == "name"), kind == keyPairType && name != "name",
			name == "user_data" && text(next.value(resource, "user_data_update_policy")) == "IGNORE":
			continue
		case (effect == Replugged || effect == Readdressed) && d.extends(next, before[name], after[name], effect == Replugged, maps.Clone(seen)):
			continue
		}
		was, is := d.filledIn(before[name]), next.filledIn(after[name])
		if hidden(was) {
			concealed = append(concealed, name)
			continue
		}
		if name == "availability_zone" && kind == serverType && anyZone(was) && anyZone(is) {
			continue
		}
		if !equal(was, is) || d.moved(next, before[name], seen) {
			differing = append(differing, name)
		}
	}
	return differing, concealed
}

// anyZone is true if a server may be in any zone: where the cloud has no zone of that name, the request has none.
func anyZone(zone any) bool { return isEmpty(zone) || zone == AnyZone }

// keyPairType is a resource that a server uses by its name: the key in the server does not change.
const keyPairType = "OS::Nova::KeyPair"

// extends is true if a list keeps the values that a server depends on: all former ones, or of its networks the first. New ones may come, and further
// networks may go: Heat attaches and detaches interfaces while the server runs.
func (d definition) extends(next definition, was, is any, first bool, seen map[string]bool) bool {
	had, _ := was.([]any)
	has, _ := is.([]any)
	if len(had) == 0 || len(has) == 0 {
		return false
	}
	if first {
		had = had[:1]
	}
	for _, one := range had {
		there := slices.ContainsFunc(has, func(other any) bool { return equal(d.filledIn(one), next.filledIn(other)) })
		if hidden(d.filledIn(one)) || !there || d.moved(next, one, seen) {
			return false
		}
	}
	return true
}

// moved is true if a property leads to a resource that will be another one.
func (d definition) moved(next definition, value any, seen map[string]bool) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, function := range []string{"get_resource", "get_attr"} {
			name, _ := v[function].(string)
			if path, ok := v[function].([]any); ok && len(path) > 0 {
				name = text(path[0])
			}
			if name == "" || seen[name] || d.resource(name) == nil {
				continue
			}
			if differing, _ := d.compare(next, name, false, seen); len(differing) > 0 {
				return true
			}
		}
		for _, item := range v {
			if d.moved(next, item, seen) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return d.moved(next, item, seen) })
	}
	return false
}

// hidden is true if a value has a hidden parameter.
func hidden(value any) bool {
	switch v := value.(type) {
	case string:
		return v == hiddenParameter
	case map[string]any:
		for _, item := range v {
			if hidden(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hidden)
	}
	return false
}

// equal compares the meaning of values. To Heat, 1 and "1" are the same, and so are true and "True"; to us, none and empty are the same (see
// spelledOtherwise).
func equal(a, b any) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	switch a.(type) {
	case map[string]any, []any:
		return reflect.DeepEqual(a, b)
	}
	return text(a) == text(b) || strings.EqualFold(text(a), text(b)) && slices.Contains([]string{"true", "false"}, strings.ToLower(text(a)))
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// text is a value as Heat writes it: a text as it is, everything else in JSON.
func text(value any) string {
	if value == nil {
		return ""
	}
	if s, ok := value.(string); ok {
		return s
	}
	made, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(made)
}
