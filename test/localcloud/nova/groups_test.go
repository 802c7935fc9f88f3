package nova_test

import (
	"net/http"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

func (c *cloud) group(microversion, policy string) (*servergroups.ServerGroup, error) {
	client := c.as("demo")
	client.Microversion = microversion
	options := servergroups.CreateOpts{Name: "group", Policies: []string{policy}}
	if microversion == "2.64" {
		options = servergroups.CreateOpts{Name: "group", Policy: policy}
	}
	return servergroups.Create(c.t.Context(), client, options).Extract()
}

func TestServersOfAGroupStandTogetherOnTheOneHost(t *testing.T) {
	c := start(t)
	_, err := c.group("2.14", "soft-anti-affinity")
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusBadRequest), "%v", err)
	soft, err := c.group("2.15", "soft-anti-affinity")
	require.NoError(t, err)
	hard, err := c.group("2.64", "anti-affinity")
	require.NoError(t, err)
	require.Equal(t, "anti-affinity", *hard.Policy)

	in := func(group string) (*servers.Server, error) {
		return servers.Create(t.Context(), c.as("demo"), servers.CreateOpts{Name: "one", FlavorRef: "2", ImageRef: "image-1", Networks: "none"},
			servers.SchedulerHintOpts{Group: group}).Extract()
	}
	for range 2 {
		one, err := in(soft.ID)
		require.NoError(t, err)
		c.wait(one.ID, "ACTIVE")
	}
	first, err := in(hard.ID)
	require.NoError(t, err)
	c.wait(first.ID, "ACTIVE")
	second, err := in(hard.ID)
	require.NoError(t, err)
	require.Contains(t, c.wait(second.ID, "ERROR").Fault.Message, "No valid host was found")
	_, err = in("7f9a9ac5-3a43-4c7a-8e7a-1c7c0f9f1234")
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusBadRequest), "%v", err)

	found, err := servergroups.Get(t.Context(), c.as("demo"), soft.ID).Extract()
	require.NoError(t, err)
	require.Len(t, found.Members, 2)
	require.Error(t, servergroups.Get(t.Context(), c.as("other"), soft.ID).Err)

	three := 3
	require.NoError(t, quotasets.Update(t.Context(), c.as("admin"), "demo", quotasets.UpdateOpts{ServerGroups: &three, ServerGroupMembers: &three}).Err)
	known, err := limits.Get(t.Context(), c.as("demo"), limits.GetOpts{}).Extract()
	require.NoError(t, err)
	require.Equal(t, []int{2, 3, 3}, []int{known.Absolute.TotalServerGroupsUsed, known.Absolute.MaxServerGroups, known.Absolute.MaxServerGroupMembers})
	_, err = in(soft.ID)
	require.NoError(t, err)
	_, err = in(soft.ID)
	require.ErrorContains(t, err, "too many servers in group")
	_, err = c.group("2.15", "soft-affinity")
	require.NoError(t, err)
	_, err = c.group("2.15", "soft-affinity")
	require.ErrorContains(t, err, "too many server groups")

	require.NoError(t, servergroups.Delete(t.Context(), c.as("demo"), soft.ID).ExtractErr())
	require.Error(t, servergroups.Delete(t.Context(), c.as("demo"), soft.ID).ExtractErr())
}
