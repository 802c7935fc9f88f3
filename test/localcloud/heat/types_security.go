package heat

import (
	"context"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/neutron"
)

// This file is the resource types of security groups, whose rules are written in the group or as resources of their own.

func securityGroupType() resourceType {
	rules := func(ctx context.Context, j *job) error {
		group, err := j.network().GetSecurityGroup(ctx, j.project(), j.resource.PhysicalID)
		if err != nil {
			return err
		}
		wanted := []neutron.SecurityGroupRuleRequest{}
		for _, one := range hot.List(j.properties["rules"]) {
			entry, _ := one.(map[string]any)
			request, err := ruleRequest(j, entry, group.ID)
			if err != nil {
				return err
			}
			wanted = append(wanted, request)
		}
		// Neutron's rules do not change: former ones go, except the two that admit everything to the outside.
		for _, rule := range group.Rules {
			if rule.Direction == "egress" && rule.Protocol == "" && rule.RemoteIPPrefix == "" && rule.RemoteGroupID == "" {
				continue
			}
			if err := gone(j.network().DeleteSecurityGroupRule(ctx, j.project(), rule.ID)); err != nil {
				return err
			}
		}
		for _, request := range wanted {
			_, err := j.network().CreateSecurityGroupRule(ctx, j.project(), request)
			if err != nil && fault.KindOf(err) != fault.Conflict { // the rule exists already
				return err
			}
		}
		return nil
	}
	request := func(j *job) (neutron.SecurityGroupRequest, error) {
		name, description := j.name(), j.text("description")
		return neutron.SecurityGroupRequest{Owner: j.owner(), Name: &name, Description: &description}, nil
	}
	c := calls[neutron.SecurityGroupRequest, neutron.SecurityGroup]{
		Network.CreateSecurityGroup, Network.GetSecurityGroup, Network.UpdateSecurityGroup, Network.DeleteSecurityGroup,
	}
	t := c.resourceType(resourceType{
		properties: map[string]property{"name": {kind: words, update: true}, "description": {kind: words, update: true}, "rules": {kind: aList, update: true}},
	}, request, nil)
	withRules := func(group func(context.Context, *job) error) func(context.Context, *job) error {
		return func(ctx context.Context, j *job) error {
			if err := group(ctx, j); err != nil {
				return err
			}
			return rules(ctx, j)
		}
	}
	t.create, t.update = withRules(t.create), withRules(t.update)
	return t
}

func ruleRequest(j *job, entry map[string]any, groupID string) (r neutron.SecurityGroupRuleRequest, err error) {
	chosen := map[string]any{}
	for name, value := range entry {
		if value == nil || value == "" || name == "remote_mode" || name == "remote_group" || name == "security_group" {
			continue
		}
		if strings.HasPrefix(name, "port_range_") {
			if value, err = number.convert(value); err != nil {
				return r, notValid("%s: %v", name, err)
			}
		}
		chosen[name] = value
	}
	if unknown := slices.DeleteFunc(mapKeys(chosen), func(name string) bool {
		return slices.Contains([]string{"direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id", "description"}, name)
	}); len(unknown) > 0 {
		return r, notValid("rule: Unknown Property %s", unknown[0])
	}
	if err := convert(chosen, &r); err != nil {
		return r, err
	}
	r.SecurityGroupID = groupID
	if r.Direction == "" {
		r.Direction = "ingress"
	}
	switch ref := hot.Text(entry["remote_group"]) + hot.Text(entry["remote_group_id"]); {
	case ref != "":
		ids, err := j.findGroups([]any{ref})
		if err != nil {
			return r, err
		}
		r.RemoteGroupID = &ids[0]
	case entry["remote_mode"] == "remote_group_id":
		r.RemoteGroupID = &groupID
	}
	return r, nil
}

func securityGroupRuleType() resourceType {
	request := func(j *job) (neutron.SecurityGroupRuleRequest, error) {
		groups, err := j.findGroups([]any{j.text("security_group")})
		if err != nil {
			return neutron.SecurityGroupRuleRequest{}, err
		}
		r, err := ruleRequest(j, j.properties, groups[0])
		r.Owner = j.owner()
		return r, err
	}
	c := calls[neutron.SecurityGroupRuleRequest, neutron.SecurityGroupRule]{
		create: Network.CreateSecurityGroupRule, get: Network.GetSecurityGroupRule, remove: Network.DeleteSecurityGroupRule,
	}
	return c.resourceType(resourceType{
		properties: map[string]property{
			"security_group": {kind: words, required: true}, "direction": {kind: words, fallback: "ingress"}, "ethertype": {kind: words, fallback: "IPv4"}, "protocol": {kind: words},
			"port_range_min": {kind: number}, "port_range_max": {kind: number}, "remote_ip_prefix": {kind: words}, "remote_group": {kind: words}, "description": {kind: words},
		},
		deleteFirst: func(old, next map[string]any) bool { return true },
	}, request, nil)
}
