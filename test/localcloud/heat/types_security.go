package heat

import (
	"context"
	"slices"
	"strings"

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
		for _, one := range listOf(j.properties["rules"]) {
			entry, _ := one.(map[string]any)
			request, err := ruleRequest(j, entry, group.ID)
			if err != nil {
				return err
			}
			wanted = append(wanted, request)
		}
		// Neutron's rules do not change: those of before go, except the two that let everything out.
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
			if err != nil && fault.KindOf(err) != fault.Conflict { // it says nothing new
				return err
			}
		}
		return nil
	}
	return resourceType{
		properties: map[string]property{"name": {kind: words, update: true}, "description": {kind: words, update: true}, "rules": {kind: aList, update: true}},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			name, description := j.name(), j.text("description")
			request := neutron.SecurityGroupRequest{Owner: j.owner(), Name: &name, Description: &description}
			if _, err := j.network().CreateSecurityGroup(ctx, j.project(), request); err != nil {
				return err
			}
			return rules(ctx, j)
		},
		update: func(ctx context.Context, j *job) error {
			name, description := j.name(), j.text("description")
			request := neutron.SecurityGroupRequest{Name: &name, Description: &description}
			if _, err := j.network().UpdateSecurityGroup(ctx, j.project(), j.resource.PhysicalID, request); err != nil {
				return err
			}
			return rules(ctx, j)
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteSecurityGroup(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			group, err := j.network().GetSecurityGroup(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(group)
		},
	}
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
	switch ref := text(entry["remote_group"]) + text(entry["remote_group_id"]); {
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
	return resourceType{
		properties: map[string]property{
			"security_group": {kind: words, required: true}, "direction": {kind: words, fallback: "ingress"}, "ethertype": {kind: words, fallback: "IPv4"}, "protocol": {kind: words},
			"port_range_min": {kind: number}, "port_range_max": {kind: number}, "remote_ip_prefix": {kind: words}, "remote_group": {kind: words}, "description": {kind: words},
		},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			groups, err := j.findGroups([]any{j.text("security_group")})
			if err != nil {
				return err
			}
			request, err := ruleRequest(j, j.properties, groups[0])
			if err != nil {
				return err
			}
			request.Owner = j.owner()
			_, err = j.network().CreateSecurityGroupRule(ctx, j.project(), request)
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteSecurityGroupRule(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			rule, err := j.network().GetSecurityGroupRule(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(rule)
		},
		deleteFirst: func(old, next map[string]any) bool { return true },
	}
}
