package cloud

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// state asks Nova through the driver, which must succeed.
func state(t *testing.T, project *driver.Project, id string) driver.ServerState {
	t.Helper()
	state, err := project.Server(t.Context(), id)
	require.NoError(t, err)
	return state
}

// missingServersAreMended: a user has stopped or deleted servers in Nova, of which Heat knows nothing.
func missingServersAreMended(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project, nova := demo.project(t, c.service(t)), demo.nova(t)
	name := begin(t, project, "mended")
	template := plan(t, project, "one", "two")
	first, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	one, _ := first.Addresses("one")
	two, _ := first.Addresses("two")
	made := state(t, project, one.ServerID)
	require.Equal(t, driver.Active, made.Status)
	require.False(t, made.Down())
	require.NotEmpty(t, made.Launched)

	require.NoError(t, servers.Stop(t.Context(), nova, one.ServerID).ExtractErr())
	require.NoError(t, servers.Delete(t.Context(), nova, two.ServerID).ExtractErr())
	eventually(t, "the one is off", func() bool { return state(t, project, one.ServerID).Down() })
	require.Equal(t, driver.Shut, state(t, project, one.ServerID).Status)
	eventually(t, "the other is gone", func() bool { return state(t, project, two.ServerID).Down() })
	require.Equal(t, driver.Gone, state(t, project, two.ServerID).Status)

	require.NoError(t, project.StartServer(t.Context(), one.ServerID))
	require.Equal(t, driver.Active, state(t, project, one.ServerID).Status)
	require.NoError(t, project.StartServer(t.Context(), one.ServerID), "one that runs")
	healed, err := project.ReplaceServers(t.Context(), name, template.content(t), map[string]string{"two": "Nova does not know it any more"})
	require.NoError(t, err)
	require.Equal(t, first.ID, healed.ID)
	kept, _ := healed.Addresses("one")
	require.Equal(t, one, kept)
	anew, ok := healed.Addresses("two")
	require.True(t, ok)
	require.NotEqual(t, two.ServerID, anew.ServerID)
	require.Equal(t, two.Fixed, anew.Fixed, "it has the port of the former one")
	require.Equal(t, driver.Active, state(t, project, anew.ServerID).Status)
	require.Len(t, demo.serversNamed(t, "burano-test-.*"), 2)

	require.NoError(t, servers.Reboot(t.Context(), nova, one.ServerID, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	eventually(t, "it was rebooted", func() bool {
		now := state(t, project, one.ServerID)
		require.False(t, now.Down(), now)
		return now.Status == driver.Active && now.Task == ""
	})
	require.Equal(t, made.Launched, state(t, project, one.ServerID).Launched, "its disk is the same")
	server, err := servers.Get(t.Context(), nova, one.ServerID).Extract()
	require.NoError(t, err)
	_, err = servers.Rebuild(t.Context(), nova, one.ServerID, servers.RebuildOpts{ImageRef: server.Image["id"].(string)}).Extract()
	require.NoError(t, err)
	eventually(t, "it was rebuilt", func() bool {
		now := state(t, project, one.ServerID)
		return now.Status == driver.Active && now.Launched != made.Launched
	})
}
