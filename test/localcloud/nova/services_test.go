package nova_test

import (
	"net/http"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"github.com/stretchr/testify/require"
)

// admin speaks the microversion in which services have ids that can be changed.
func (c *cloud) admin() *gophercloud.ServiceClient {
	client := c.as("admin")
	client.Microversion = "2.53"
	return client
}

func (c *cloud) compute() services.Service {
	pages, err := services.List(c.admin(), nil).AllPages(c.t.Context())
	require.NoError(c.t, err)
	found, err := services.ExtractServices(pages)
	require.NoError(c.t, err)
	require.Len(c.t, found, 1)
	return found[0]
}

func TestADisabledComputeServiceTakesNoNewServers(t *testing.T) {
	c := start(t)
	service := c.compute()
	require.Equal(t, "nova-compute", service.Binary)
	require.Equal(t, "enabled", service.Status)
	older := c.create(servers.CreateOpts{Name: "older", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(older, "ACTIVE")
	requireStatus(t, services.Update(t.Context(), c.as("demo"), service.ID, services.UpdateOpts{Status: services.ServiceDisabled}).Err, http.StatusForbidden)
	disabled, err := services.Update(t.Context(), c.admin(), service.ID, services.UpdateOpts{Status: services.ServiceDisabled, DisabledReason: "maintenance"}).Extract()
	require.NoError(t, err)
	require.Equal(t, "maintenance", disabled.DisabledReason)

	refused := c.create(servers.CreateOpts{Name: "younger", FlavorRef: "2", ImageRef: "image-1"}).ID
	require.Contains(t, c.wait(refused, "ERROR").Fault.Message, "No valid host was found")
	require.NoError(t, servers.Stop(t.Context(), c.as("demo"), older).ExtractErr())
	c.wait(older, "SHUTOFF")
	require.NoError(t, servers.Start(t.Context(), c.as("demo"), older).ExtractErr())
	c.wait(older, "ACTIVE")

	_, err = services.Update(t.Context(), c.admin(), service.ID, services.UpdateOpts{Status: services.ServiceEnabled}).Extract()
	require.NoError(t, err)
	c.wait(c.create(servers.CreateOpts{Name: "youngest", FlavorRef: "2", ImageRef: "image-1"}).ID, "ACTIVE")
}

func TestServersOfAComputeServiceThatIsDownStayInBuildUntilItIsUpOrTheyAreDeleted(t *testing.T) {
	c := start(t)
	id := c.compute().ID
	_, err := services.Update(t.Context(), c.admin(), id, services.UpdateOpts{ForcedDown: true}).Extract()
	require.NoError(t, err)
	stays := c.create(servers.CreateOpts{Name: "stays", FlavorRef: "2", ImageRef: "image-1"}).ID
	goes := c.create(servers.CreateOpts{Name: "goes", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.restart()
	require.NoError(t, servers.Delete(t.Context(), c.as("demo"), goes).ExtractErr())
	c.gone(goes)
	got, err := servers.Get(t.Context(), c.as("demo"), stays).Extract()
	require.NoError(t, err)
	require.Equal(t, "BUILD", got.Status)
	require.Equal(t, "spawning", got.TaskState)
	require.Equal(t, "down", c.compute().State)

	// gophercloud sends no forced_down that is false.
	_, err = c.admin().Put(t.Context(), c.admin().ServiceURL("os-services", id), map[string]any{"forced_down": false}, nil,
		&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	require.NoError(t, err)
	c.wait(stays, "ACTIVE")
}

func TestARebuiltServerKeepsItsIDAndSaysThatItWasSetUpAnew(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	before := c.wait(id, "ACTIVE")
	requireStatus(t, servers.Rebuild(t.Context(), demo, id, servers.RebuildOpts{ImageRef: "another"}).Err, http.StatusBadRequest)
	rebuilt, err := servers.Rebuild(t.Context(), demo, id, servers.RebuildOpts{ImageRef: "image-1"}).Extract()
	require.NoError(t, err)
	require.Equal(t, id, rebuilt.ID)
	after := c.wait(id, "ACTIVE")
	require.True(t, after.LaunchedAt.After(before.LaunchedAt))
	require.Equal(t, 2, c.machines.count(), "its machine was made again")
	require.Equal(t, before.Addresses, after.Addresses)
}
