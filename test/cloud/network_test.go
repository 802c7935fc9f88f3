package cloud

import (
	"net/netip"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"
)

func theExternalNetworkIsFound(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	id, err := demo.project(t, c.service(t)).ExternalNetwork(t.Context())
	require.NoError(t, err)
	var network struct {
		networks.Network
		external.NetworkExternalExt
	}
	require.NoError(t, networks.Get(t.Context(), demo.neutron(t), id).ExtractInto(&network))
	require.True(t, network.External)
}

func aFreeNetworkAvoidsWhatIsThere(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	within := netip.MustParsePrefix("10.77.0.0/16")
	first, err := project.FreeNetwork(t.Context(), within, 24)
	require.NoError(t, err)

	neutron := demo.neutron(t)
	network, err := networks.Create(t.Context(), neutron, networks.CreateOpts{Name: "burano-test-taken"}).Extract()
	require.NoError(t, err)
	_, err = subnets.Create(t.Context(), neutron, subnets.CreateOpts{NetworkID: network.ID, CIDR: first.String(), IPVersion: gophercloud.IPv4}).Extract()
	require.NoError(t, err)
	second, err := project.FreeNetwork(t.Context(), within, 24)
	require.NoError(t, err)
	require.False(t, first.Overlaps(second))
	require.NoError(t, networks.Delete(t.Context(), neutron, network.ID).ExtractErr())
	third, err := project.FreeNetwork(t.Context(), within, 24)
	require.NoError(t, err)
	require.Equal(t, first, third)
}
