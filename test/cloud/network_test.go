package cloud

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
)

func theExternalNetworkIsFound(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	first, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	var network struct {
		networks.Network
		external.NetworkExternalExt
	}
	require.NoError(t, networks.Get(t.Context(), demo.neutron(t), first.ID).ExtractInto(&network))
	require.True(t, network.External)
	require.Equal(t, network.Name, first.Name)
	for _, ref := range []string{first.ID, first.Name} {
		named, err := project.ExternalNetwork(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, first, named)
	}
	_, err = project.ExternalNetwork(t.Context(), "nowhere")
	require.ErrorContains(t, err, `the project sees no external network with the name or id "nowhere": there are `+first.Name)
	require.Equal(t, fault.Invalid, fault.KindOf(err))

	// The subnet of an existing network.
	neutron := demo.neutron(t)
	own, err := networks.Create(t.Context(), neutron, networks.CreateOpts{Name: "burano-test-existing"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, networks.Delete(context.Background(), neutron, own.ID).ExtractErr()) })
	_, err = project.Subnet(t.Context(), "burano-test-existing", "")
	require.ErrorContains(t, err, "has 0 subnets of IPv4")
	inner, err := subnets.Create(t.Context(), neutron, subnets.CreateOpts{NetworkID: own.ID, CIDR: "10.75.0.0/24", IPVersion: gophercloud.IPv4, Name: "inner"}).Extract()
	require.NoError(t, err)
	for _, subnet := range []string{"", "inner"} {
		found, err := project.Subnet(t.Context(), "burano-test-existing", subnet)
		require.NoError(t, err)
		require.Equal(t, "10.75.0.0/24", found.Range.String())
		require.Equal(t, own.ID, found.Network)
	}
	_, err = project.Subnet(t.Context(), own.ID, "outer")
	require.ErrorContains(t, err, "there are inner")

	// The external networks of a network's routers.
	leads := func(network, want string) {
		t.Helper()
		id, err := project.ExternalNetworkOfNetwork(t.Context(), network)
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
	leads(first.ID, first.ID)
	leads(own.ID, "")
	router, err := routers.Create(t.Context(), neutron, routers.CreateOpts{Name: "burano-test-leading"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, routers.Delete(context.Background(), neutron, router.ID).ExtractErr()) })
	_, err = routers.AddInterface(t.Context(), neutron, router.ID, routers.AddInterfaceOpts{SubnetID: inner.ID}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := routers.RemoveInterface(context.Background(), neutron, router.ID, routers.RemoveInterfaceOpts{SubnetID: inner.ID}).Extract()
		require.NoError(t, err)
	})
	leads(own.ID, "")
	_, err = routers.Update(t.Context(), neutron, router.ID, routers.UpdateOpts{GatewayInfo: &routers.GatewayInfo{NetworkID: first.ID}}).Extract()
	require.NoError(t, err)
	leads(own.ID, first.ID)
	_, err = project.ExternalNetworkOfNetwork(t.Context(), "2f9e1c0f-0000-4b7e-8d0a-1f3f5a6b7c8d")
	require.ErrorContains(t, err, "the project sees no network with the id")

	// Names are not unique.
	twin, err := networks.Create(t.Context(), neutron, networks.CreateOpts{Name: "burano-test-existing"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, networks.Delete(context.Background(), neutron, twin.ID).ExtractErr()) })
	_, err = project.Subnet(t.Context(), "burano-test-existing", "")
	require.ErrorContains(t, err, "2 of the project's networks are called")
	require.ErrorContains(t, err, twin.ID)
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

// said is the text that a server sends to a client of this port; "" when it cannot be reached.
func said(address netip.Addr, port uint16) string {
	connection, err := net.DialTimeout("tcp", netip.AddrPortFrom(address, port).String(), 2*time.Second)
	if err != nil {
		return ""
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(15 * time.Second))
	text, _ := io.ReadAll(connection)
	return string(text)
}

// aPortIsOpenWhenItsGroupSaysSo: the server listens at 8080, 8081 and 8082, and plan opens the first of them.
func aPortIsOpenWhenItsGroupSaysSo(t *testing.T, c *cloud) {
	project := c.as(t, "demo").project(t, c.service(t))
	name := begin(t, project, "ports")
	template := plan(t, project, "one")
	stack, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	one, _ := stack.Addresses("one")
	eventually(t, "the open port answers", func() bool { return strings.Contains(said(one.Floating, 8080), "data of one") })
	requireSilent := func(port uint16) {
		connection, err := net.DialTimeout("tcp", netip.AddrPortFrom(one.Floating, port).String(), 3*time.Second)
		if err == nil {
			_ = connection.Close()
		}
		var timeout net.Error
		require.ErrorAs(t, err, &timeout, "port %d", port)
		require.True(t, timeout.Timeout(), "what a group does not open is dropped, and not refused: %v", err)
	}
	requireSilent(8081)

	open := func(port int) groupRule {
		return groupRule{Protocol: "tcp", Ports: [2]int{port, port}, From: everyone}
	}
	template.addSecurityGroup("group", "burano-test", []groupRule{{From: network.String()}, open(8081), open(8082)})
	opened, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	is, _ := opened.Addresses("one")
	require.Equal(t, one, is, "the server is not touched")
	eventually(t, "the port that was opened answers", func() bool { return strings.Contains(said(one.Floating, 8081), "data of one") })
	eventually(t, "the port that was closed is silent", func() bool { return said(one.Floating, 8080) == "" })
	requireSilent(8080)
	eventually(t, "the server reaches the metadata address and is known there", func() bool {
		var told struct{ Name, UUID string }
		return json.Unmarshal([]byte(said(one.Floating, 8082)), &told) == nil && told.UUID == one.ServerID && told.Name == "burano-test-one"
	})
}
