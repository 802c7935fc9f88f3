package clusters

import (
	"context"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// Servers of a cluster's role are members of a server group, which makes Nova place them on different hosts where it can. Nova reads groups only when it
// makes a server, and Heat replaces a server whose group changes. So an existing server keeps its group, and a group's description never changes.
// Therefore it has no name of its own either, which could change.

// serverGroup is how a template describes the group.
func serverGroup() map[string]any {
	return map[string]any{"type": "OS::Nova::ServerGroup", "properties": map[string]any{"policies": []any{"soft-anti-affinity"}}}
}

// placements are the groups in which the servers of one change are made.
type placements struct {
	clusters *Clusters
	made     map[string]bool // resources of the stack that are there
	room     *openstack.GroupRoom
	coming   map[string]bool // groups that are made with this change
}

func (c nodePreparation) placements(ctx context.Context) (*placements, error) {
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	made, err := project.Made(ctx, c.Templates.Own().Name)
	return &placements{clusters: c.Clusters, made: made, coming: map[string]bool{}}, err
}

// of names the group of a node's server in the stack; "" for none. Groups are a wish: where the project's quota has no room for one, or for one
// server more in it, the server is made without.
func (p *placements) of(ctx context.Context, cluster *muranopl.Object, one Member) (string, error) {
	template, err := p.clusters.Templates.Template(ctx, p.clusters.Templates.Own())
	if err != nil {
		return "", err
	}
	members := membersOfGroups(template)
	resource := openstack.ServerResource(one.Server.ID())
	if p.made[resource] {
		return members[resource], nil
	}
	if !task.Desired(cluster).Spread {
		return "", nil
	}
	if p.room == nil {
		project, err := p.clusters.Runtime.Project(ctx)
		if err != nil {
			return "", err
		}
		room, err := project.GroupRoom(ctx)
		if err != nil {
			return "", err
		}
		p.room = &room
	}
	group, others := cluster.ID()+"-"+string(one.Role)+"-servers", 0
	for name, in := range members {
		if in == group && name != resource {
			others++
		}
	}
	if !p.made[group] && !p.coming[group] {
		if len(p.coming) >= p.room.Groups {
			p.clusters.Reports.Inform(ctx, cluster, "%s: its server may be placed on the host of another one, because the project's quota of server groups is used up", one.Server.Name())
			return "", nil
		}
		p.coming[group] = true
	}
	if others >= p.room.Members {
		p.clusters.Reports.Inform(ctx, cluster, "%s: its server may be placed on the host of another one, because the project's quota lets %d servers into a server group",
			one.Server.Name(), p.room.Members)
		return "", nil
	}
	return group, nil
}

// membersOfGroups are the servers of a template that are in groups, with the groups' names in it.
func membersOfGroups(template map[string]any) map[string]string {
	members := map[string]string{}
	resources, _ := template["resources"].(map[string]any)
	for name, resource := range resources {
		described, _ := resource.(map[string]any)
		properties, _ := described["properties"].(map[string]any)
		hints, _ := properties["scheduler_hints"].(map[string]any)
		group, _ := hints["group"].(map[string]any)
		if in, ok := group["get_resource"].(string); ok {
			members[name] = in
		}
	}
	return members
}

// groupsOf describes the server groups of a cluster that servers of a template are in.
func groupsOf(cluster *muranopl.Object, template map[string]any) map[string]any {
	groups := map[string]any{}
	for _, group := range membersOfGroups(template) {
		if strings.HasPrefix(group, cluster.ID()+"-") {
			groups[group] = serverGroup()
		}
	}
	return groups
}
