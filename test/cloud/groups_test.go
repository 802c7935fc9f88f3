package cloud

import (
	"context"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/stretchr/testify/require"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// serversAreMembersOfTheirGroup: Nova places servers of a soft group on one host, where there is no other, and Heat would replace one whose group
// changes.
func serversAreMembersOfTheirGroup(t *testing.T, c *cloud) {
	other := c.as(t, "other")
	admin, projectID := c.as(t, "admin").nova(t), other.caller(t, c.service(t)).ProjectID
	project := other.project(t, c.service(t))
	name := begin(t, project, "groups")
	grouped := plan(t, project, "one", "two")
	grouped.Resources["servers"] = stackResource{Type: "OS::Nova::ServerGroup", Properties: map[string]any{"policies": []any{"soft-anti-affinity"}}}
	for _, server := range []string{"one-server", "two-server"} {
		grouped.Resources[server].Properties["scheduler_hints"] = map[string]any{"group": get("resource", "servers")}
	}

	limit := 3
	require.NoError(t, quotasets.Update(t.Context(), admin, projectID, quotasets.UpdateOpts{ServerGroups: &limit, ServerGroupMembers: &limit}).Err)
	t.Cleanup(func() { require.NoError(t, quotasets.Delete(context.Background(), admin, projectID).Err) })
	room, err := project.GroupRoom(t.Context())
	require.NoError(t, err)
	require.Equal(t, driver.GroupRoom{Groups: 3, Members: 3}, room)

	made, err := project.ApplyStack(t.Context(), name, grouped.content(t))
	require.NoError(t, err)
	id := other.resources(t, made, name)["servers"].PhysicalID
	group, err := servergroups.Get(t.Context(), other.nova(t), id).Extract()
	require.NoError(t, err)
	require.Len(t, group.Members, 2)
	room, err = project.GroupRoom(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, room.Groups)

	// A node stays in the group in which it was made, whatever the model is now; for another server such a change is refused.
	before := other.resources(t, made, name)
	nodes := plan(t, project, "one", "two").content(t)
	nodes.Nodes = []string{"one-server", "two-server"}
	made, err = project.ApplyStack(t.Context(), name, nodes)
	require.NoError(t, err)
	for _, resource := range []string{"servers", "one-server", "two-server"} {
		require.Equal(t, before[resource].PhysicalID, other.resources(t, made, name)[resource].PhysicalID)
	}
	_, err = project.ApplyStack(t.Context(), name, plan(t, project, "one", "two").content(t))
	require.Len(t, driver.ServerChanges(err), 2, "%v", err)
	require.NoError(t, project.DeleteStack(t.Context(), name))
	require.Error(t, servergroups.Get(t.Context(), other.nova(t), id).Err)
}
