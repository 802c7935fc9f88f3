package cloud

import (
	"maps"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// otherwise is a template whose server "one" has other properties; nil takes one away.
func otherwise(template stackTemplate, properties map[string]any) stackTemplate {
	server := template.Resources["one-server"]
	server.Properties = maps.Clone(server.Properties)
	maps.Copy(server.Properties, properties)
	maps.DeleteFunc(server.Properties, func(_ string, value any) bool { return value == nil })
	template.Resources["one-server"] = server
	return template
}

// serversThatAreThereAreKept: no update rebuilds, resizes or replaces a server on which something may run.
func serversThatAreThereAreKept(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "kept")
	first, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	one, _ := first.Addresses("one")
	made := state(t, project, one.ServerID)
	untouched := func(updates int) {
		t.Helper()
		now := state(t, project, one.ServerID)
		require.Equal(t, driver.Active, now.Status)
		require.Equal(t, made.Launched, now.Launched)
		require.Equal(t, updates, demo.updates(t, first, name))
	}

	port := func(name string) map[string]any { return map[string]any{"port": map[string]any{"get_resource": name}} }
	for property, value := range map[string]any{
		"flavor": "m1.other", "image": "other", "key_name": "other", "availability_zone": "other", "user_data": "#!/bin/true", "config_drive": false,
		"networks": []any{port("one-port"), port("two-port")}, "scheduler_hints": map[string]any{"group": "other"},
	} {
		_, err := project.ApplyStack(t.Context(), name, otherwise(plan(t, project, "one", "two"), map[string]any{property: value}).content(t))
		changes := driver.ServerChanges(err)
		require.Len(t, changes, 1, "%s: %v", property, err)
		require.Equal(t, []string{property, one.ServerID, "one-server"}, []string{changes[0].Property, changes[0].ServerID, changes[0].Resource})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		require.ErrorContains(t, err, "Nothing was changed. Put "+property+" back to what it was")
		untouched(0)
	}
	both := otherwise(plan(t, project, "one"), map[string]any{"flavor": "m1.other", "key_name": "other"}).content(t)
	require.Len(t, driver.ServerChanges(project.CheckStack(t.Context(), name, both)), 2)

	// A subnet with other addresses would give the server another one.
	moved := plan(t, project, "one")
	moved.Resources["subnet"].Properties["cidr"] = "10.79.0.0/24"
	_, err = project.ApplyStack(t.Context(), name, moved.content(t))
	require.Len(t, driver.ServerChanges(err), 1)
	require.Equal(t, "networks", driver.ServerChanges(err)[0].Property)
	untouched(0)

	// The same image and flavor by their ids, and user data of Burano's own that another version writes otherwise.
	found, err := servers.Get(t.Context(), demo.nova(t), one.ServerID).Extract()
	require.NoError(t, err)
	same := otherwise(plan(t, project, "one"), map[string]any{"image": found.Image["id"], "flavor": found.Flavor["id"], "user_data": "another"}).content(t)
	same.Nodes = []string{"one-server"}
	_, err = project.ApplyStack(t.Context(), name, same)
	require.NoError(t, err)
	untouched(0)
	renamed := otherwise(plan(t, project, "one"), map[string]any{"name": "another"}).content(t)
	renamed.Nodes = same.Nodes
	_, err = project.ApplyStack(t.Context(), name, renamed)
	require.Len(t, driver.ServerChanges(err), 1, "%v", err)

	// What harms nobody is done.
	more := plan(t, project, "one")
	more.Resources["group"].Properties["description"] = "a group"
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(1)

	more = otherwise(more, map[string]any{"name": "burano-test-renamed"})
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(2)
	require.Len(t, demo.serversNamed(t, "burano-test-renamed"), 1)

	// Somebody has told Heat that it is not healthy, for which Heat would replace it.
	mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: "a mistake"}
	require.NoError(t, stackresources.MarkUnhealthy(t.Context(), demo.heat(t), name, first.ID, "one-server", mark).ExtractErr())
	more.Resources["group"].Properties["description"] = "the same group"
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(3)

	// Where nothing is there any more nothing can be lost.
	require.NoError(t, servers.Delete(t.Context(), demo.nova(t), one.ServerID).ExtractErr())
	eventually(t, "it is gone", func() bool { return state(t, project, one.ServerID).Status == driver.Gone })
	anew, err := project.ApplyStack(t.Context(), name, otherwise(more, map[string]any{"user_data": "#!/bin/true"}).content(t))
	require.NoError(t, err)
	next, _ := anew.Addresses("one")
	require.NotEqual(t, one.ServerID, next.ServerID)
	require.Equal(t, one.Fixed, next.Fixed)
	require.Equal(t, driver.Active, state(t, project, next.ServerID).Status)
}
