package direct

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// template is a HOT template with the values of its parameters, as far as it is known before anything is made.
type template struct {
	resources map[string]definition
	outputs   map[string]any
	scope     scope // without references and attributes
}

// definition is one resource of a template.
type definition struct {
	kind       string
	properties map[string]any
	needs      []string // the resources that must be ready before it, sorted
	retain     bool     // it stays when the template has it no more
}

// parse reads what a stack is to be made of. What only Heat can do is refused, with its reason.
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
	t.scope = scope{conditions: sections["conditions"], files: content.Files}
	if t.scope.parameters, err = values(sections["parameters"], environment, content.Parameters); err != nil {
		return nil, err
	}
	maps.Copy(t.scope.parameters, pseudo)
	for _, name := range slices.Sorted(maps.Keys(sections["resources"])) {
		if err := t.add(name, sections["resources"][name]); err != nil {
			return nil, err
		}
	}
	for name, value := range sections["outputs"] {
		output, _ := value.(map[string]any)
		made, has := output["value"]
		if !has {
			return nil, wrong("output %s has no value", name)
		}
		if condition, conditional := output["condition"]; conditional {
			is, err := t.scope.decide(condition)
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", name, err)
			}
			if !is {
				continue
			}
		}
		if err := checkFunctions(made, "output "+name); err != nil {
			return nil, err
		}
		t.outputs[name] = made
	}
	return t, t.connect()
}

// add reads one resource; one whose condition does not hold is not there.
func (t *template) add(name string, value any) error {
	body, ok := value.(map[string]any)
	if !ok {
		return wrong("resource %s is no map", name)
	}
	made := definition{kind: text(body["type"]), properties: map[string]any{}}
	for key, value := range body {
		switch key {
		case "type", "metadata", "update_policy":
			// Only groups and instances of Heat's own have use for the last two.
		case "properties":
			if made.properties, ok = value.(map[string]any); !ok && value != nil {
				return wrong("resource %s: the properties are no map", name)
			}
		case "depends_on":
			for _, one := range listOf(value) {
				made.needs = append(made.needs, text(one))
			}
		case "condition":
			is, err := t.scope.decide(value)
			if err != nil {
				return fmt.Errorf("resource %s: %w", name, err)
			}
			if !is {
				return nil
			}
		case "deletion_policy":
			switch strings.ToLower(text(value)) {
			case "delete":
			case "retain":
				made.retain = true
			default:
				return wrong("resource %s: the deletion policy %s works only with Heat, and this stack is made without it (burano serve --orchestration)", name, text(value))
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
	if err := checkFunctions(made.properties, "resource "+name); err != nil {
		return err
	}
	if err := known.checkNames(name, made.properties); err != nil {
		return err
	}
	t.resources[name] = made
	return nil
}

// connect finds out what each resource needs, by what it names and by what Neutron wants and templates do not say.
func (t *template) connect() error {
	needs := graph{}
	for name, one := range t.resources {
		needs[name] = map[string]bool{}
		for other := range mentioned(one.properties, "get_resource", "get_attr") {
			if _, there := t.resources[other]; there {
				needs[name][other] = true
			} else if !conditional(one.properties) {
				return wrong("resource %s names a resource %s, which the template has not", name, other)
			}
		}
		for _, other := range one.needs {
			if _, there := t.resources[other]; !there {
				return wrong("resource %s depends on %s, which the template has not", name, other)
			}
			needs[name][other] = true
		}
		for parameter := range mentioned(one.properties, "get_param") {
			if _, given := t.scope.parameters[parameter]; !given {
				return wrong("resource %s names a parameter %s, which the template has not", name, parameter)
			}
		}
	}
	if circle := needs.circle(); circle != nil {
		return wrong("these resources need each other in a circle: %s", strings.Join(circle, ", "))
	}
	t.implicit(needs)
	for name, one := range t.resources {
		one.needs = slices.Sorted(maps.Keys(needs[name]))
		t.resources[name] = one
	}
	return nil
}

// conditional tells whether a value has parts that are left out under a condition.
func conditional(value any) bool { return len(mentioned(value, "if")) > 0 }

// implicit adds the needs that Neutron has: a port in a network needs the network's subnets, and a floating address the way from outside.
func (t *template) implicit(needs graph) {
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
		return text(properties["network"])
	}
	for _, subnet := range of(typeSubnet) {
		for _, port := range of(typePort) {
			if network(port) == network(subnet) {
				needs.add(port, subnet)
			}
		}
		for _, server := range of(typeServer) {
			for _, one := range listOf(t.resources[server].properties["networks"]) {
				entry, _ := one.(map[string]any)
				if text(entry["network"]) == network(subnet) || text(entry["uuid"]) == network(subnet) {
					needs.add(server, subnet)
				}
			}
		}
	}
	for _, floating := range of(typeFloatingIP, typeAssociation) {
		for _, way := range of(typeRouterInterface, typeRouter) {
			needs.add(floating, way)
		}
	}
}

// environment is what of Heat's environment files is known here.
type environment struct {
	Parameters map[string]any `yaml:"parameters"`
	Defaults   map[string]any `yaml:"parameter_defaults"`
	Registry   map[string]any `yaml:"resource_registry"`
}

func readEnvironment(source string) (environment, error) {
	var made environment
	if err := yaml.Unmarshal([]byte(source), &made); err != nil {
		return made, wrong("the environment of the stack cannot be read: %v", err)
	}
	if len(made.Registry) > 0 {
		return made, wrong("the environment's resource_registry works only with Heat, and this stack is made without it (burano serve --orchestration)")
	}
	return made, nil
}

// values are those of a template's parameters: what was given, what the environment gives, or its defaults.
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
		has := false
		for _, level := range []map[string]any{given, environment.Parameters, environment.Defaults, {name: parameter["default"]}} {
			if value, has = level[name]; has {
				break
			}
		}
		if _, defaulted := parameter["default"]; value == nil && !defaulted {
			return nil, wrong("the parameter %s was not provided", name)
		}
		made, err := converted(text(parameter["type"]), value)
		if err != nil {
			return nil, wrong("parameter %s: %v", name, err)
		}
		for _, one := range listOf(parameter["constraints"]) {
			constraint, _ := one.(map[string]any)
			if problem := violated(constraint, made); problem != "" {
				return nil, wrong("parameter %s: %s", name, problem)
			}
		}
		all[name] = made
	}
	return all, nil
}

// converted is a value as a parameter's type has it.
func converted(kind string, value any) (any, error) {
	switch kind {
	case "string":
		return text(value), nil
	case "number":
		number, err := strconv.ParseFloat(text(value), 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return nil, fmt.Errorf("%q is no number", text(value))
		}
		return number, nil
	case "boolean":
		is, ok := boolean(value)
		if !ok {
			return nil, fmt.Errorf("%q is neither true nor false", text(value))
		}
		return is, nil
	case "comma_delimited_list":
		if _, is := value.([]any); !is {
			parts := []any{}
			if all := text(value); all != "" {
				for part := range strings.SplitSeq(all, ",") {
					parts = append(parts, strings.TrimSpace(part))
				}
			}
			return parts, nil
		}
	case "json":
		if source, is := value.(string); is {
			made := any(map[string]any{})
			if source != "" {
				if err := json.Unmarshal([]byte(source), &made); err != nil {
					return nil, fmt.Errorf("it is no JSON: %w", err)
				}
			}
			return made, nil
		}
	default:
		return nil, fmt.Errorf("the type %q is not one of string, number, json, comma_delimited_list and boolean", kind)
	}
	made, err := plainOf(map[string]any{"value": value})
	return made["value"], err
}

// violated says what is wrong with a value under one constraint, or nothing. Constraints that ask the cloud (custom_constraint) are left to
// the cloud.
func violated(constraint map[string]any, value any) string {
	problem := ""
	if allowed, ok := constraint["allowed_values"].([]any); ok {
		for _, one := range listOf(value) {
			if !slices.ContainsFunc(allowed, func(a any) bool { return text(a) == text(one) }) {
				problem = fmt.Sprintf("%q is not one of %s", text(one), text(allowed))
			}
		}
	}
	if pattern, ok := constraint["allowed_pattern"].(string); ok {
		compiled, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			problem = fmt.Sprintf("the pattern %q cannot be used: %v", pattern, err)
		} else if !compiled.MatchString(text(value)) {
			problem = fmt.Sprintf("%q does not match %q", text(value), pattern)
		}
	}
	if bounds, ok := constraint["length"].(map[string]any); ok {
		size := utf8.RuneCountInString(text(value))
		switch value := value.(type) {
		case []any:
			size = len(value)
		case map[string]any:
			size = len(value)
		}
		if outside(bounds, float64(size)) {
			problem = fmt.Sprintf("the length %d is out of range (%s to %s)", size, text(bounds["min"]), text(bounds["max"]))
		}
	}
	if number, is := value.(float64); is {
		if bounds, ok := constraint["range"].(map[string]any); ok && outside(bounds, number) {
			problem = fmt.Sprintf("%s is out of range (%s to %s)", text(value), text(bounds["min"]), text(bounds["max"]))
		}
		if rule, ok := constraint["modulo"].(map[string]any); ok {
			step, _ := rule["step"].(float64)
			offset, _ := rule["offset"].(float64)
			if step != 0 && math.Mod(number-offset, step) != 0 {
				problem = fmt.Sprintf("%s is no multiple of %s with an offset of %s", text(value), text(step), text(offset))
			}
		}
	}
	if description := text(constraint["description"]); problem != "" && description != "" {
		return description
	}
	return problem
}

func outside(bounds map[string]any, number float64) bool {
	low, hasLow := bounds["min"].(float64)
	high, hasHigh := bounds["max"].(float64)
	return hasLow && number < low || hasHigh && number > high
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

// graph says of each resource which others it needs.
type graph map[string]map[string]bool

// needs tells whether from needs to, directly or through others.
func (g graph) needs(from, to string) bool {
	seen := map[string]bool{}
	var visit func(string) bool
	visit = func(name string) bool {
		if name == to {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		for other := range g[name] {
			if visit(other) {
				return true
			}
		}
		return false
	}
	return visit(from)
}

// add adds a need, unless it would make a circle.
func (g graph) add(from, to string) {
	if from != to && !g.needs(to, from) {
		g[from][to] = true
	}
}

// circle returns the names on one, nil when there is none.
func (g graph) circle() []string {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		for other := range g[name] {
			if g.needs(other, name) {
				return []string{name, other}
			}
		}
	}
	return nil
}
