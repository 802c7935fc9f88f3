package direct

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/burano/burano/catalog/hot"
)

// This file is security groups, whose rules are written in the group or as resources of their own.

var securityGroup = thing{single: "security_group", collection: "security-groups", after: applyRules,
	body: func(_ context.Context, j *job, _ bool) (map[string]any, error) { return j.chosen(), nil },
}.kind(kind{properties: map[string]property{"name": {form: words}, "description": {form: words}, "rules": {form: list}}})

// applyRules makes the rules of a group the ones of its property. Neutron's rules do not change: wrong ones are deleted, and missing ones made. Neutron's
// own rules, which allow all outgoing traffic, stay unless the property has rules for outgoing traffic.
func applyRules(ctx context.Context, j *job) error {
	group := j.resource.PhysicalID
	var wanted []map[string]any
	outgoing := false
	for _, one := range hot.List(j.properties["rules"]) {
		entry, _ := one.(map[string]any)
		rule, err := j.rule(ctx, entry, group)
		if err != nil {
			return err
		}
		outgoing = outgoing || rule["direction"] == "egress"
		if !slices.ContainsFunc(wanted, func(other map[string]any) bool { return reflect.DeepEqual(other, rule) }) {
			wanted = append(wanted, rule)
		}
	}
	there, err := j.listed(ctx, "security-group-rules", map[string]string{"security_group_id": group})
	if err != nil {
		return err
	}
	for _, has := range there {
		i := slices.IndexFunc(wanted, func(rule map[string]any) bool { return sameRule(rule, has) })
		everythingOut := has["direction"] == "egress" && has["protocol"] == nil && has["remote_ip_prefix"] == nil && has["remote_group_id"] == nil
		switch {
		case i >= 0:
			wanted = slices.Delete(wanted, i, i+1)
		case everythingOut && !outgoing, ofResource(has), j.stack.has(typeRule, hot.Text(has["id"])):
		default:
			if err := gentle(call(ctx, j.neutron(), http.MethodDelete, "security-group-rules/"+hot.Text(has["id"]), nil, nil)); err != nil {
				return err
			}
		}
	}
	for _, rule := range wanted {
		if err := j.addRule(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

// addRule adds a rule to a group.
func (j *job) addRule(ctx context.Context, rule map[string]any) error {
	return patiently(ctx, neutron, false, func(ctx context.Context) (bool, error) {
		there, err := j.listed(ctx, "security-group-rules", map[string]string{"security_group_id": hot.Text(rule["security_group_id"])})
		return slices.ContainsFunc(there, func(has map[string]any) bool { return sameRule(rule, has) }), err
	}, func(ctx context.Context) error {
		return call(ctx, j.neutron(), http.MethodPost, "security-group-rules", map[string]any{"security_group_rule": rule}, nil)
	})
}

// sameRule is true if Neutron has this rule.
func sameRule(rule, has map[string]any) bool {
	for _, field := range []string{"direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"} {
		if hot.Text(rule[field]) != hot.Text(has[field]) {
			return false
		}
	}
	return true
}

// ofResource is true if a rule is a resource of its own.
func ofResource(rule map[string]any) bool { return marked.MatchString(hot.Text(rule["description"])) }

// has is true if a resource of the stack has this physical id; a resource that was taken over from Heat carries no mark.
func (s *stack) has(kind, physicalID string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range s.resources {
		if one.Type == kind && one.PhysicalID == physicalID {
			return true
		}
	}
	return false
}

// rule is an entry of a template as Neutron wants it.
func (j *job) rule(ctx context.Context, entry map[string]any, group string) (map[string]any, error) {
	rule := map[string]any{"direction": "ingress", "ethertype": "IPv4", "security_group_id": group}
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		value := entry[name]
		if value == nil || value == "" {
			continue
		}
		switch name {
		case "direction", "ethertype", "protocol", "remote_ip_prefix", "description":
			rule[name] = hot.Text(value)
		case "port_range_min", "port_range_max":
			made, err := number.convert(value)
			if err != nil {
				return nil, err
			}
			rule[name] = made
		case "remote_mode":
			if value == "remote_group_id" && hot.Text(entry["remote_group_id"]) == "" {
				rule["remote_group_id"] = group
			}
		case "remote_group", "remote_group_id":
			id, err := j.idOf(ctx, "security group", "security-groups", hot.Text(value))
			if err != nil {
				return nil, err
			}
			rule["remote_group_id"] = id
		case "security_group":
		default:
			return nil, wrong("a rule has a property %s, which Neutron has not", name)
		}
	}
	return rule, nil
}

var securityGroupRule = thing{single: "security_group_rule", collection: "security-group-rules", body: func(ctx context.Context, j *job, _ bool) (map[string]any, error) {
	group, err := j.idOf(ctx, "security group", "security-groups", j.text("security_group"))
	if err != nil {
		return nil, err
	}
	return j.rule(ctx, j.properties, group)
}}.kind(kind{
	properties: map[string]property{
		"security_group": {form: words, required: true}, "direction": {form: words, fallback: "ingress"}, "ethertype": {form: words, fallback: "IPv4"}, "protocol": {form: words},
		"port_range_min": {form: number}, "port_range_max": {form: number}, "remote_ip_prefix": {form: words}, "remote_group": {form: words}, "description": {form: words},
	},
	alone: func(map[string]any, map[string]any) bool { return true },
})
