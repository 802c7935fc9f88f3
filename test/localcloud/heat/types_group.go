package heat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/hot"
)

// This file is groups of the same resource. As in Heat, a group has a stack of its own, whose resources are its members: 0, 1, …
// (https://docs.openstack.org/heat/latest/template_guide/openstack.html#OS::Heat::ResourceGroup).

const (
	groupKind = "OS::Heat::ResourceGroup"
	// removedMembers is the key of a group's record of its removal policies, in its Data.
	removedMembers = "removed"
)

func groupType() resourceType {
	return resourceType{
		properties: map[string]property{
			"count": {kind: number, fallback: 1.0, update: true}, "index_var": {kind: words, fallback: "%index%"},
			"resource_def":     {kind: aMap, required: true, update: true},
			"removal_policies": {kind: aList, update: true}, "removal_policies_mode": {kind: words, fallback: "append", update: true},
		},
		create: func(ctx context.Context, j *job) error {
			if j.resource.PhysicalID == "" {
				if err := j.setID(uuid.NewString()); err != nil {
					return err
				}
			}
			return j.convergeGroup(ctx, actionCreate)
		},
		update: func(ctx context.Context, j *job) error { return j.convergeGroup(ctx, actionUpdate) },
		remove: func(ctx context.Context, j *job) error {
			id := j.resource.PhysicalID
			members, there := j.service.stacks.Get(id)
			if !there || members.DeletedAt != "" {
				return nil
			}
			if err := j.service.setState(id, actionDelete, inProgress, "Stack DELETE started"); err != nil {
				return err
			}
			err := j.service.deleteEverything(ctx, id)
			if err == nil {
				deleted := j.service.now()
				err = j.service.change(id, func(row *Stack) { row.DeletedAt = deleted })
			}
			return j.endGroup(ctx, actionDelete, err)
		},
		attributes: groupAttributes,
		ofMembers:  true,
	}
}

// convergeGroup applies the properties to the group's stack.
func (j *job) convergeGroup(ctx context.Context, action string) error {
	removed, err := j.removedFromGroup()
	if err != nil {
		return err
	}
	raw, template, err := j.groupTemplate(removed)
	if err != nil {
		return err
	}
	if err := j.service.checkTypes(template); err != nil {
		return err
	}
	j.resource.Data = map[string]string{removedMembers: strings.Join(removed, " ")}
	if err := j.service.storeResource(j.stack.ID, j.resource); err != nil {
		return err
	}
	id := j.resource.PhysicalID
	if _, there := j.service.stacks.Get(id); !there {
		members := Stack{ID: id, Name: j.resource.physicalName(j.stack.Name), ProjectID: j.stack.ProjectID, UserID: j.stack.UserID, Group: true,
			DisableRollback: true, Resources: map[string]*Resource{}, CreatedAt: j.service.now()}
		if err := j.service.stacks.Put(id, members); err != nil {
			return err
		}
	}
	if err := j.service.change(id, func(row *Stack) { row.Target = Target{Template: raw} }); err != nil {
		return err
	}
	if err := j.service.setState(id, action, inProgress, "Stack "+action+" started"); err != nil {
		return err
	}
	return j.endGroup(ctx, action, j.service.converge(ctx, id))
}

// endGroup records the end of an operation on the group's stack, unless it was interrupted.
func (j *job) endGroup(ctx context.Context, action string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	status, reason := complete, "Stack "+action+" completed successfully"
	if err != nil {
		status, reason = failed, err.Error()
	}
	return errors.Join(err, j.service.setState(j.resource.PhysicalID, action, status, reason))
}

// removedFromGroup returns the names that no member has any more. A policy names members, or their values of get_resource. The removed names stay recorded
// across updates unless the mode is update.
func (j *job) removedFromGroup() ([]string, error) {
	former := strings.Fields(j.resource.Data[removedMembers])
	var removed []string
	switch mode := j.text("removal_policies_mode"); mode {
	case "append":
		removed = former
	case "update":
	default:
		return nil, notValid("removal_policies_mode: %q is neither append nor update", mode)
	}
	members, _ := j.service.stacks.Get(j.resource.PhysicalID)
	for _, one := range hot.List(j.properties["removal_policies"]) {
		policy, _ := one.(map[string]any)
		for _, entry := range hot.List(policy["resource_list"]) {
			wanted := hot.Text(entry)
			if slices.Contains(former, wanted) && !slices.Contains(removed, wanted) {
				removed = append(removed, wanted)
			}
			for name, member := range members.Resources {
				if (name == wanted || hot.Text(j.service.reference(member)) == wanted) && !slices.Contains(removed, name) {
					removed = append(removed, name)
				}
			}
		}
	}
	slices.Sort(removed)
	return removed, nil
}

// groupTemplate is that of the group's stack.
func (j *job) groupTemplate(removed []string) (map[string]any, *Template, error) {
	definition := j.properties["resource_def"].(map[string]any)
	count, _ := j.properties["count"].(float64)
	if count < 0 {
		return nil, nil, notValid("count: %v is out of range (min: 0)", count)
	}
	members := map[string]any{}
	for i := 0; len(members) < int(count); i++ {
		name := strconv.Itoa(i)
		if slices.Contains(removed, name) {
			continue
		}
		member := map[string]any{"type": hot.Text(definition["type"])}
		for _, part := range []string{"properties", "metadata"} {
			if value, there := definition[part]; there {
				member[part] = indexed(value, j.text("index_var"), name)
			}
		}
		members[name] = member
	}
	raw := map[string]any{"heat_template_version": versions[len(versions)-1], "resources": members}
	template, err := parseTemplate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("resource_def: %w", err)
	}
	return raw, template, nil
}

// indexed is a value with a member's number in place of the variable.
func indexed(value any, variable, index string) any {
	switch value := value.(type) {
	case string:
		if variable != "" {
			return strings.ReplaceAll(value, variable, index)
		}
	case []any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = indexed(inner, variable, index)
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, inner := range value {
			object[key] = indexed(inner, variable, index)
		}
		return object
	}
	return value
}

// groupAttributes are lists over the members, and the attributes of each member by resource.NUMBER.
func groupAttributes(ctx context.Context, j *job) (map[string]any, error) {
	members, _ := j.service.stacks.Get(j.resource.PhysicalID)
	names := slices.SortedFunc(maps.Keys(members.Resources), func(a, b string) int {
		first, _ := strconv.Atoi(a)
		second, _ := strconv.Atoi(b)
		return first - second
	})
	refs, refsMap, all, byMember := []any{}, map[string]any{}, map[string]any{}, map[string]any{}
	for _, name := range names {
		member := members.Resources[name]
		reference := j.service.reference(member)
		refs, refsMap[name], all["resource."+name] = append(refs, reference), reference, reference
		known := j.service.types[member.Type]
		if known.attributes == nil {
			continue
		}
		attributes, err := known.attributes(ctx, j.service.job(members, member, member.Properties))
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", name, err)
		}
		for attribute, value := range attributes {
			all["resource."+name+"."+attribute] = value
			all[attribute] = append(hot.List(all[attribute]), value)
			if byMember[attribute] == nil {
				byMember[attribute] = map[string]any{}
			}
			byMember[attribute].(map[string]any)[name] = value
		}
	}
	removed := []any{}
	for _, name := range strings.Fields(j.resource.Data[removedMembers]) {
		removed = append(removed, name)
	}
	all["refs"], all["refs_map"], all["attributes"], all["removed_rsrc_list"] = refs, refsMap, byMember, removed
	return all, nil
}
