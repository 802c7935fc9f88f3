package direct

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// template is a HOT template with the values of its parameters, as far as it is known before anything is made.
type template struct {
	resources map[string]definition
	outputs   map[string]any
	scope     hot.Scope // without references and attributes
}

// definition is one resource of a template.
type definition struct {
	kind       string
	properties map[string]any
	needs      []string // the resources that must be ready before it, sorted
	retain     bool     // it stays when the template has it no more
}

// parse reads a stack's template. Parts that only Heat supports are refused, with the reason.
func parse(content openstack.Content, pseudo map[string]any) (*template, error) {
	plain, err := plainOf(content.Template)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	environment, err := readEnvironment(content.Environment)
	if err != nil {
		return nil, err
	}
	sections := map[string]map[string]any{}
	for section, value := range plain {
		switch section {
		case "heat_template_version", "description", "parameter_groups":
			continue
		case "parameters", "resources", "outputs", "conditions":
		default:
			return nil, wrong("the template has a section %q, which HOT has not", section)
		}
		entries, ok := value.(map[string]any)
		if !ok && value != nil {
			return nil, wrong("the template's section %s is no map", section)
		}
		sections[section] = entries
	}
	t := &template{resources: map[string]definition{}, outputs: map[string]any{}}
	t.scope = hot.Scope{Conditions: sections["conditions"], Files: content.Files}.Bounded()
	if t.scope.Parameters, err = values(sections["parameters"], environment, content.Parameters); err != nil {
		return nil, err
	}
	maps.Copy(t.scope.Parameters, pseudo)
	for _, name := range slices.Sorted(maps.Keys(sections["conditions"])) {
		if _, err := t.scope.Decide(name); err != nil {
			return nil, fmt.Errorf("condition %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sections["resources"])) {
		if err := t.add(name, sections["resources"][name]); err != nil {
			return nil, err
		}
	}
	for name, value := range sections["outputs"] {
		output, _ := value.(map[string]any)
		if t.outputs[name], err = t.output(output); err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
	}
	return t, t.connect(sections["resources"])
}

// output reads an output; an output whose condition does not hold is null.
func (t *template) output(body map[string]any) (any, error) {
	value, has := body["value"]
	if !has {
		return nil, wrong("it has no value")
	}
	if condition, conditional := body["condition"]; conditional {
		if is, err := t.scope.Decide(condition); err != nil || !is {
			return nil, err
		}
	}
	chosen, err := t.scope.Chosen(value)
	if err != nil {
		return nil, err
	}
	return chosen, checkFunctions(chosen)
}

// checkFunctions finds functions that are not known here.
func checkFunctions(value any) error {
	return hot.Walk(value, func(value any) error {
		if name, _, ok := hot.Function(value); ok && !slices.Contains(hot.Functions(), name) {
			return wrong("the function %q works only with Heat, and this stack is made without it (burano serve --orchestration)", name)
		}
		return nil
	})
}

func wrong(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// add reads one resource; one whose condition does not hold is not there.
func (t *template) add(name string, value any) error {
	body, ok := value.(map[string]any)
	if !ok {
		return wrong("resource %s is no map", name)
	}
	made := definition{kind: hot.Text(body["type"]), properties: map[string]any{}}
	for key, value := range body {
		switch key {
		case "type", "metadata", "update_policy":
			// Only groups and instances of Heat's own have use for the last two.
		case "properties":
			if made.properties, ok = value.(map[string]any); !ok && value != nil {
				return wrong("resource %s: the properties are no map", name)
			}
		case "depends_on":
			for _, one := range hot.List(value) {
				made.needs = append(made.needs, hot.Text(one))
			}
		case "condition":
			is, err := t.scope.Decide(value)
			if err != nil {
				return fmt.Errorf("resource %s: %w", name, err)
			}
			if !is {
				return nil
			}
		case "deletion_policy":
			switch strings.ToLower(hot.Text(value)) {
			case "delete":
			case "retain":
				made.retain = true
			default:
				return wrong("resource %s: the deletion policy %s works only with Heat, and this stack is made without it (burano serve --orchestration)", name, hot.Text(value))
			}
		default:
			return wrong("resource %s: %q works only with Heat, and this stack is made without it (burano serve --orchestration)", name, key)
		}
	}
	known, ok := kinds[made.kind]
	if !ok {
		return wrong("resource %s: the type %s works only with Heat, and this stack is made without it (burano serve --orchestration). Without Heat there are %s",
			name, made.kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	chosen, err := t.scope.Chosen(made.properties)
	if err == nil {
		err = checkFunctions(chosen)
	}
	if err != nil {
		return fmt.Errorf("resource %s: %w", name, err)
	}
	if made.properties, ok = chosen.(map[string]any); !ok {
		return wrong("resource %s: the properties are no map", name)
	}
	if err := known.checkNames(name, made.properties); err != nil {
		return err
	}
	t.resources[name] = made
	return nil
}

// connect finds each resource's dependencies, from the names in it and from Neutron's rules that templates do not mention. A resource may depend on a
// declared one whose condition does not hold.
func (t *template) connect(declared map[string]any) error {
	needs := hot.Graph{}
	for name, one := range t.resources {
		needs[name] = map[string]bool{}
		for other := range hot.Mentioned(one.properties, "get_resource", "get_attr") {
			if _, there := t.resources[other]; there {
				needs[name][other] = true
			} else {
				return wrong("resource %s names a resource %s, which the template has not", name, other)
			}
		}
		for _, other := range one.needs {
			if _, there := t.resources[other]; there {
				needs[name][other] = true
			} else if _, conditional := declared[other]; !conditional {
				return wrong("resource %s depends on %s, which the template has not", name, other)
			}
		}
		for parameter := range hot.Mentioned(one.properties, "get_param") {
			if _, given := t.scope.Parameters[parameter]; !given {
				return wrong("resource %s names a parameter %s, which the template has not", name, parameter)
			}
		}
	}
	if circle := needs.Circle(); circle != nil {
		return wrong("these resources need each other in a circle: %s", strings.Join(circle, ", "))
	}
	if err := t.implicit(needs); err != nil {
		return err
	}
	for name, one := range t.resources {
		one.needs = slices.Sorted(maps.Keys(needs[name]))
		t.resources[name] = one
	}
	return nil
}

// implicit adds Neutron's dependencies: a port in a network needs the network's subnets, and a floating address needs the route from outside.
func (t *template) implicit(needs hot.Graph) error {
	of := func(types ...string) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(t.resources)) {
			if slices.Contains(types, t.resources[name].kind) {
				names = append(names, name)
			}
		}
		return names
	}
	network := func(name string) string {
		properties := kinds[t.resources[name].kind].renamed(t.resources[name].properties)
		return hot.Text(properties["network"])
	}
	pairs := 0
	for _, server := range of(typeServer) {
		pairs += len(hot.List(t.resources[server].properties["networks"]))
	}
	pairs = (pairs+len(of(typePort)))*len(of(typeSubnet)) + len(of(typeFloatingIP, typeAssociation))*len(of(typeRouterInterface, typeRouter))
	if pairs > maxPairs {
		return wrong("the template has %d pairs of ports and subnets, and of floating addresses and routers, more than the %d that are looked at", pairs, maxPairs)
	}
	for _, subnet := range of(typeSubnet) {
		for _, port := range of(typePort) {
			if network(port) == network(subnet) {
				needs.Add(port, subnet)
			}
		}
		for _, server := range of(typeServer) {
			for _, one := range hot.List(t.resources[server].properties["networks"]) {
				entry, _ := one.(map[string]any)
				if hot.Text(entry["network"]) == network(subnet) || hot.Text(entry["uuid"]) == network(subnet) {
					needs.Add(server, subnet)
				}
			}
		}
	}
	for _, floating := range of(typeFloatingIP, typeAssociation) {
		for _, way := range of(typeRouterInterface, typeRouter) {
			needs.Add(floating, way)
		}
	}
	return nil
}

// maxPairs is how many pairs of resources may be compared. A cluster of 1,000 nodes in three subnets has less than a tenth.
const maxPairs = 100_000

// environment is the supported part of Heat's environment files.
type environment struct {
	Parameters map[string]any `yaml:"parameters"`
	Defaults   map[string]any `yaml:"parameter_defaults"`
	Registry   map[string]any `yaml:"resource_registry"`
}

func readEnvironment(source string) (environment, error) {
	var made environment
	if err := door.YAML([]byte(source), &made, door.Bounds{}); err != nil {
		return made, wrong("the environment of the stack cannot be read: %v", err)
	}
	if len(made.Registry) > 0 {
		return made, wrong("the environment's resource_registry works only with Heat, and this stack is made without it (burano serve --orchestration)")
	}
	return made, nil
}

// values are the values of a template's parameters: the given ones, the environment's, or the defaults.
func values(declared map[string]any, environment environment, given map[string]any) (map[string]any, error) {
	for _, level := range []map[string]any{given, environment.Parameters} {
		for _, name := range slices.Sorted(maps.Keys(level)) {
			if _, known := declared[name]; !known {
				return nil, wrong("the parameter %s is given, which the template has not", name)
			}
		}
	}
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		parameter, ok := declared[name].(map[string]any)
		if !ok {
			return nil, wrong("parameter %s is no map", name)
		}
		var value any
		for _, level := range []map[string]any{given, environment.Parameters, environment.Defaults, {name: parameter["default"]}} {
			if value = level[name]; value != nil { // null is as good as not given, for Heat
				break
			}
		}
		if value == nil {
			return nil, wrong("the parameter %s was not provided", name)
		}
		plain, err := plainOf(map[string]any{"value": value})
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		made, err := hot.Converted(hot.Text(parameter["type"]), plain["value"])
		if err != nil {
			return nil, wrong("parameter %s: %v", name, err)
		}
		for _, one := range hot.List(parameter["constraints"]) {
			constraint, _ := one.(map[string]any)
			if problem := hot.Violated(constraint, made); problem != "" {
				return nil, wrong("parameter %s: %s", name, problem)
			}
		}
		all[name] = made
	}
	return all, nil
}

// plainOf is a value as JSON has it, whatever types it was made of.
func plainOf(value map[string]any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fault.New(fault.Invalid, "it cannot be written as JSON: %v", err)
	}
	var made map[string]any
	return made, json.Unmarshal(data, &made)
}
