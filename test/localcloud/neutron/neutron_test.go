package neutron_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/mtu"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/quotas"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/rules"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/neutron/neutrontest"
)

func clientOf(url, project string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{TokenID: project}, Endpoint: url + "/", ResourceBase: url + "/v2.0/", Type: "network",
	}
}

// cloud is a Neutron with clients of two projects and an administrator.
type cloud struct {
	service            *neutron.Service
	config             neutron.Config
	demo, other, admin *gophercloud.ServiceClient
}

func start(t *testing.T) cloud {
	t.Helper()
	config := neutrontest.Config(t)
	service := neutrontest.Start(t, config)
	url := neutrontest.Serve(t, service.Handler())
	return cloud{service, config, clientOf(url, "demo"), clientOf(url, "other"), clientOf(url, "admin")}
}

func (c cloud) public(t *testing.T) string {
	t.Helper()
	yes := true
	pages, err := networks.List(c.demo, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &yes}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "public", found[0].Name)
	return found[0].ID
}

// site is a network behind a router.
type site struct{ network, subnet, router string }

func (c cloud) site(t *testing.T, client *gophercloud.ServiceClient, cidr string) site {
	t.Helper()
	network, err := networks.Create(t.Context(), client, networks.CreateOpts{Name: "net"}).Extract()
	require.NoError(t, err)
	subnet, err := subnets.Create(t.Context(), client, subnets.CreateOpts{NetworkID: network.ID, CIDR: cidr, IPVersion: 4, DNSNameservers: []string{"192.0.2.53"}}).Extract()
	require.NoError(t, err)
	router, err := routers.Create(t.Context(), client, routers.CreateOpts{Name: "router", GatewayInfo: &routers.GatewayInfo{NetworkID: c.public(t)}}).Extract()
	require.NoError(t, err)
	_, err = routers.AddInterface(t.Context(), client, router.ID, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
	require.NoError(t, err)
	return site{network.ID, subnet.ID, router.ID}
}

// open lets everything in that comes to ports of the project's default group.
func (c cloud) open(t *testing.T, project string) {
	t.Helper()
	groups := c.service.SecurityGroups(project)
	at := slices.IndexFunc(groups, func(g neutron.SecurityGroup) bool { return g.Name == "default" })
	_, err := c.service.CreateSecurityGroupRule(t.Context(), project, neutron.SecurityGroupRuleRequest{SecurityGroupID: groups[at].ID, Direction: "ingress"})
	require.NoError(t, err)
}

// boot plugs a port into a server and configures the server as its networkd would.
func (c cloud) boot(t *testing.T, serverID, portID string) neutron.Interface {
	t.Helper()
	name, err := c.service.CreateServerNamespace(t.Context(), serverID)
	require.NoError(t, err)
	plugged, err := c.service.AttachPort(t.Context(), portID, serverID, "eth0")
	require.NoError(t, err)
	ns, err := netns.GetFromName(name)
	require.NoError(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	require.NoError(t, err)
	defer h.Close()
	link, err := h.LinkByName("eth0")
	require.NoError(t, err)
	require.Equal(t, plugged.MAC, link.Attrs().HardwareAddr.String())
	for _, address := range plugged.Addresses {
		flags := 0
		if address.Addr().Is6() {
			flags = syscall.IFA_F_NODAD // to be used at once
		}
		given := &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}, Flags: flags}
		require.NoError(t, h.AddrReplace(link, given))
		if address.Gateway.IsValid() {
			require.NoError(t, h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: address.Gateway.AsSlice()}))
		}
	}
	return plugged
}

// reached reports whether a server was reached, on which nothing listens: the host gets a refusal.
func reached(address string) bool {
	connection, err := net.DialTimeout("tcp4", net.JoinHostPort(address, "9"), 300*time.Millisecond)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil || strings.Contains(err.Error(), "connection refused")
}

func requireProblem(t *testing.T, err error, status int, kind, text string) {
	t.Helper()
	var unexpected gophercloud.ErrUnexpectedResponseCode
	require.ErrorAs(t, err, &unexpected)
	require.Equal(t, status, unexpected.Actual, string(unexpected.Body))
	var body struct {
		NeutronError struct{ Type, Message, Detail string }
	}
	require.NoError(t, json.Unmarshal(unexpected.Body, &body), string(unexpected.Body))
	require.Equal(t, kind, body.NeutronError.Type)
	require.Contains(t, body.NeutronError.Message, text)
}

func TestAServerIsReachedByItsFloatingAddressAndLeavesNothing(t *testing.T) {
	c := start(t)
	c.open(t, "demo")
	before := neutrontest.Found(t, c.config.Prefix)
	place := c.site(t, c.demo, "10.10.0.0/24")
	port, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: place.network, Name: "web", AllowedAddressPairs: []ports.AddressPair{{IPAddress: "10.244.0.0/16"}}}).Extract()
	require.NoError(t, err)
	require.Equal(t, "10.10.0.2", port.FixedIPs[0].IPAddress)
	require.Equal(t, "DOWN", port.Status)
	require.Equal(t, port.MACAddress, port.AllowedAddressPairs[0].MACAddress)
	require.Len(t, port.SecurityGroups, 1)

	plugged := c.boot(t, "11111111-0000-0000-0000-000000000000", port.ID)
	require.Equal(t, []neutron.Fixed{{Prefix: netip.MustParsePrefix("10.10.0.2/24"), Gateway: netip.MustParseAddr("10.10.0.1")}}, plugged.Addresses)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.53")}, plugged.DNS)
	require.Equal(t, 1450, plugged.MTU)
	require.Equal(t, "net", plugged.NetworkName)

	floating, err := floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: port.ID}).Extract()
	require.NoError(t, err)
	require.Equal(t, "ACTIVE", floating.Status)
	require.Equal(t, place.router, floating.RouterID)
	require.True(t, reached(floating.FloatingIP))
	require.Equal(t, []neutron.Address{
		{Network: "net", IP: netip.MustParseAddr("10.10.0.2"), MAC: port.MACAddress, Type: "fixed"},
		{Network: "net", IP: netip.MustParseAddr(floating.FloatingIP), MAC: port.MACAddress, Type: "floating"},
	}, c.service.ServerAddresses("11111111-0000-0000-0000-000000000000"))

	none := ""
	floating, err = floatingips.Update(t.Context(), c.demo, floating.ID, floatingips.UpdateOpts{PortID: &none}).Extract()
	require.NoError(t, err)
	require.Empty(t, floating.PortID)
	require.Equal(t, "DOWN", floating.Status)
	require.False(t, reached(floating.FloatingIP))
	floating, err = floatingips.Update(t.Context(), c.demo, floating.ID, floatingips.UpdateOpts{PortID: &port.ID}).Extract()
	require.NoError(t, err)
	require.True(t, reached(floating.FloatingIP))

	_, err = networks.Get(t.Context(), c.demo, place.network).Extract()
	require.NoError(t, err)
	requireProblem(t, networks.Delete(t.Context(), c.demo, place.network).ExtractErr(), 409, "NetworkInUse", "one or more ports still in use")
	requireProblem(t, subnets.Delete(t.Context(), c.demo, place.subnet).ExtractErr(), 409, "SubnetInUse", "IP allocation from this subnet")
	requireProblem(t, routers.Delete(t.Context(), c.demo, place.router).ExtractErr(), 409, "RouterInUse", "still has ports")
	requireProblem(t, groups.Delete(t.Context(), c.demo, port.SecurityGroups[0]).ExtractErr(), 409, "SecurityGroupCannotRemoveDefault", "default")
	_, err = routers.RemoveInterface(t.Context(), c.demo, place.router, routers.RemoveInterfaceOpts{SubnetID: place.subnet}).Extract()
	requireProblem(t, err, 409, "RouterInterfaceInUseByFloatingIP", "required by one or more floating IPs")
	_, err = routers.Update(t.Context(), c.demo, place.router, routers.UpdateOpts{GatewayInfo: &routers.GatewayInfo{}}).Extract()
	requireProblem(t, err, 409, "RouterExternalGatewayInUseByFloatingIp", "required by one or more floating IPs")

	require.NoError(t, c.service.DetachServer(t.Context(), "11111111-0000-0000-0000-000000000000"))
	require.NoError(t, c.service.DeleteServerNamespace(t.Context(), "11111111-0000-0000-0000-000000000000"))
	port, err = ports.Get(t.Context(), c.demo, port.ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "DOWN", port.Status)
	require.Empty(t, port.DeviceID)
	require.NoError(t, ports.Delete(t.Context(), c.demo, port.ID).ExtractErr())
	floating, err = floatingips.Get(t.Context(), c.demo, floating.ID).Extract()
	require.NoError(t, err)
	require.Empty(t, floating.PortID)
	require.NoError(t, floatingips.Delete(t.Context(), c.demo, floating.ID).ExtractErr())
	requireProblem(t, floatingips.Delete(t.Context(), c.demo, floating.ID).ExtractErr(), 404, "FloatingIPNotFound", floating.ID)
	_, err = routers.RemoveInterface(t.Context(), c.demo, place.router, routers.RemoveInterfaceOpts{SubnetID: place.subnet}).Extract()
	require.NoError(t, err)
	require.NoError(t, routers.Delete(t.Context(), c.demo, place.router).ExtractErr())
	require.NoError(t, networks.Delete(t.Context(), c.demo, place.network).ExtractErr())
	require.Equal(t, before, neutrontest.Found(t, c.config.Prefix))
	pages, err := ports.List(c.admin, ports.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	left, err := ports.ExtractPorts(pages)
	require.NoError(t, err)
	require.Empty(t, left, "no port holds an address of something that is gone")
}

func TestTheSameAddressesInTwoProjectsDoNotMeet(t *testing.T) {
	c := start(t)
	var addresses []string
	for i, client := range []*gophercloud.ServiceClient{c.demo, c.other} {
		c.open(t, client.TokenID)
		place := c.site(t, client, "10.10.0.0/24")
		port, err := ports.Create(t.Context(), client, ports.CreateOpts{NetworkID: place.network, FixedIPs: []ports.IP{{SubnetID: place.subnet, IPAddress: "10.10.0.77"}}}).Extract()
		require.NoError(t, err)
		c.boot(t, fmt.Sprintf("2222222%d", i), port.ID)
		floating, err := floatingips.Create(t.Context(), client, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: port.ID}).Extract()
		require.NoError(t, err)
		addresses = append(addresses, floating.FloatingIP)
	}
	require.True(t, reached(addresses[0]))
	require.True(t, reached(addresses[1]))
	require.NoError(t, c.service.DetachServer(t.Context(), "22222220"))
	require.False(t, reached(addresses[0]))
	require.True(t, reached(addresses[1]))
}

func TestEverythingIsThereAgainAfterTheProcessWasKilledAndTheMachineLostIt(t *testing.T) {
	c := start(t)
	c.open(t, "demo")
	place := c.site(t, c.demo, "10.10.0.0/24")
	port, err := c.service.CreatePort(t.Context(), "demo", neutron.PortRequest{NetworkID: place.network, DeleteWithServer: true})
	require.NoError(t, err)
	c.boot(t, "33333333", port.ID)
	floating, err := c.service.CreateFloatingIP(t.Context(), "demo", neutron.FloatingIPRequest{FloatingNetworkID: c.public(t), PortID: neutron.Some(port.ID)})
	require.NoError(t, err)

	again, err := neutron.New(c.config)
	require.NoError(t, err)
	require.NoError(t, again.Restore(t.Context()))
	require.True(t, reached(floating.FloatingIPAddress), "what is there stays")

	for _, name := range neutrontest.Found(t, c.config.Prefix) {
		if strings.HasPrefix(name, c.config.Prefix+"rtr-") || strings.HasPrefix(name, c.config.Prefix+"net-") {
			require.NoError(t, netns.DeleteNamed(name))
		}
	}
	require.Eventually(t, func() bool { // the kernel takes namespaces apart in its own time
		_, err := netlink.LinkByName(c.config.Prefix + "ext")
		return err == nil && len(neutrontest.Found(t, c.config.Prefix)) == 2
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, again.Restore(t.Context()))
	c.service = again
	c.boot(t, "33333333", port.ID)
	require.True(t, reached(floating.FloatingIPAddress))

	require.NoError(t, again.DetachServer(t.Context(), "33333333"))
	_, err = again.GetPort(t.Context(), "demo", port.ID)
	require.Equal(t, fault.NotFound, fault.KindOf(err), "Nova's own port goes with the server")
}

func TestWhatBelongsToAnotherProjectIsNotFoundAndAnAdministratorSeesAll(t *testing.T) {
	c := start(t)
	place := c.site(t, c.demo, "10.10.0.0/24")
	port, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: place.network}).Extract()
	require.NoError(t, err)
	floating, err := floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t)}).Extract()
	require.NoError(t, err)
	group, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "web"}).Extract()
	require.NoError(t, err)
	for path, kind := range map[string]string{
		"networks/" + place.network: "NetworkNotFound", "subnets/" + place.subnet: "SubnetNotFound", "routers/" + place.router: "RouterNotFound",
		"ports/" + port.ID: "PortNotFound", "floatingips/" + floating.ID: "FloatingIPNotFound", "security-groups/" + group.ID: "SecurityGroupNotFound",
		"security-group-rules/" + group.Rules[0].ID: "SecurityGroupRuleNotFound",
	} {
		url := c.other.ResourceBase + path
		_, err := c.other.Get(t.Context(), url, nil, nil)
		requireProblem(t, err, 404, kind, "could not be found")
		_, err = c.other.Delete(t.Context(), url, nil)
		requireProblem(t, err, 404, kind, "could not be found")
		_, err = c.admin.Get(t.Context(), url, nil, nil)
		require.NoError(t, err, path)
	}
	_, err = ports.Create(t.Context(), c.other, ports.CreateOpts{NetworkID: place.network}).Extract()
	requireProblem(t, err, 404, "NetworkNotFound", place.network)
	_, err = routers.AddInterface(t.Context(), c.other, place.router, routers.AddInterfaceOpts{SubnetID: place.subnet}).Extract()
	requireProblem(t, err, 404, "RouterNotFound", place.router)
	_, err = floatingips.Create(t.Context(), c.other, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: port.ID}).Extract()
	requireProblem(t, err, 404, "PortNotFound", port.ID)
	_, err = networks.Create(t.Context(), c.other, networks.CreateOpts{ProjectID: "demo"}).Extract()
	requireProblem(t, err, 403, "PolicyNotAuthorized", "create_network")
	requireProblem(t, networks.Delete(t.Context(), c.other, c.public(t)).ExtractErr(), 403, "PolicyNotAuthorized", "delete_network")
	_, err = subnets.Create(t.Context(), c.other, subnets.CreateOpts{NetworkID: c.public(t), CIDR: "10.1.0.0/24", IPVersion: 4}).Extract()
	requireProblem(t, err, 403, "PolicyNotAuthorized", "create_subnet")
	require.Equal(t, http.StatusUnauthorized, status(t, c.demo.Endpoint+"v2.0/networks"))
	none, err := c.service.GetNetwork(t.Context(), "-", place.network)
	require.Error(t, err, none)
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestListsAreFilteredPagedAndReduced(t *testing.T) {
	c := start(t)
	var ids []string
	for i := range 3 {
		network, err := networks.Create(t.Context(), c.demo, networks.CreateOpts{Name: fmt.Sprint("net", i)}).Extract()
		require.NoError(t, err)
		ids = append(ids, network.ID)
	}
	names := func(opts networks.ListOptsBuilder) (names []string) {
		pages, err := networks.List(c.demo, opts).AllPages(t.Context())
		require.NoError(t, err)
		found, err := networks.ExtractNetworks(pages)
		require.NoError(t, err)
		for _, network := range found {
			names = append(names, network.Name)
		}
		return names
	}
	no := false
	require.Equal(t, []string{"public", "net0", "net1", "net2"}, names(networks.ListOpts{}))
	require.Equal(t, []string{"net1"}, names(networks.ListOpts{Name: "net1"}))
	require.Equal(t, []string{"net2"}, names(networks.ListOpts{ID: ids[2]}))
	require.Equal(t, []string{"net0", "net1", "net2"}, names(external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &no}))
	require.Equal(t, []string{"net2", "net1", "net0"}, names(networks.ListOpts{ProjectID: "demo", Status: "ACTIVE", SortKey: "name", SortDir: "desc"}))
	require.Equal(t, []string{"public", "net0", "net1", "net2"}, names(networks.ListOpts{Limit: 1}))
	require.Empty(t, names(networks.ListOpts{TenantID: "other"}))
	_, err := c.demo.Get(t.Context(), c.demo.ResourceBase+"networks?colour=red", nil, nil)
	requireProblem(t, err, 400, "HTTPBadRequest", "colour")

	var reduced map[string]any
	_, err = c.demo.Get(t.Context(), c.demo.ResourceBase+"networks?name=net0&fields=id&fields=mtu", &reduced, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"networks": []any{map[string]any{"id": ids[0], "mtu": json.Number("1450")}}}, reduced)

	var with struct {
		networks.Network
		mtu.NetworkMTUExt
	}
	require.NoError(t, networks.Get(t.Context(), c.demo, ids[0]).ExtractInto(&with))
	require.Equal(t, 1450, with.MTU)

	place := c.site(t, c.demo, "10.10.0.0/24")
	for range 2 {
		_, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: place.network}).Extract()
		require.NoError(t, err)
	}
	pages, err := ports.List(c.demo, ports.ListOpts{FixedIPs: []ports.FixedIPOpts{{IPAddress: "10.10.0.3"}}}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := ports.ExtractPorts(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	pages, err = ports.List(c.demo, ports.ListOpts{DeviceID: place.router, DeviceOwner: "network:router_interface"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err = ports.ExtractPorts(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "10.10.0.1", found[0].FixedIPs[0].IPAddress)
	requireProblem(t, ports.Delete(t.Context(), c.demo, found[0].ID).ExtractErr(), 409, "ServicePortInUse", "device owner")
}

func TestWhatCannotBeIsRefusedInNeutronsWords(t *testing.T) {
	c := start(t)
	place := c.site(t, c.demo, "10.10.0.0/29")
	subnet := func(opts subnets.CreateOpts) error {
		opts.NetworkID, opts.IPVersion = place.network, 4
		_, err := subnets.Create(t.Context(), c.demo, opts).Extract()
		return err
	}
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "10.10.0.0/24"}), 400, "InvalidInput", "overlaps with another subnet")
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "ten"}), 400, "InvalidInput", "'ten' is not a valid IP subnet")
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "fd00::/64"}), 400, "InvalidInput", "does not match the ip_version")
	outside := "10.99.0.1"
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "10.11.0.0/24", GatewayIP: &outside}), 400, "InvalidInput", "Gateway is not valid on subnet")
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "10.11.0.0/24", AllocationPools: []subnets.AllocationPool{{Start: "10.11.0.9", End: "10.12.0.1"}}}), 400, "OutOfBoundsAllocationPool", "spans beyond the subnet cidr")
	requireProblem(t, subnet(subnets.CreateOpts{CIDR: "10.11.0.0/24", AllocationPools: []subnets.AllocationPool{{Start: "10.11.0.1", End: "10.11.0.9"}}}), 409, "GatewayConflictWithAllocationPools", "conflicts with allocation pool")

	port := func(ip ports.IP) error {
		opts := ports.CreateOpts{NetworkID: place.network}
		if ip != (ports.IP{}) {
			opts.FixedIPs = []ports.IP{ip}
		}
		_, err := ports.Create(t.Context(), c.demo, opts).Extract()
		return err
	}
	require.NoError(t, port(ports.IP{IPAddress: "10.10.0.4"}))
	requireProblem(t, port(ports.IP{IPAddress: "10.10.0.4"}), 409, "IpAddressAlreadyAllocated", "10.10.0.4 already allocated")
	requireProblem(t, port(ports.IP{IPAddress: "10.77.0.4"}), 400, "InvalidIpForNetwork", "10.77.0.4")
	requireProblem(t, port(ports.IP{SubnetID: place.subnet, IPAddress: "10.77.0.4"}), 400, "InvalidIpForSubnet", "10.77.0.4")
	requireProblem(t, port(ports.IP{SubnetID: "elsewhere"}), 400, "InvalidInput", "elsewhere")
	for range 4 { // .2 .3 .5 .6
		require.NoError(t, port(ports.IP{}))
	}
	requireProblem(t, port(ports.IP{}), 409, "IpAddressGenerationFailure", "No more IP addresses available")

	_, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: place.network, SecurityGroups: &[]string{"nothing"}}).Extract()
	require.Error(t, err)
	_, err = routers.AddInterface(t.Context(), c.demo, place.router, routers.AddInterfaceOpts{SubnetID: place.subnet}).Extract()
	requireProblem(t, err, 400, "BadRequest", "already has a port on subnet")
	_, err = routers.Create(t.Context(), c.demo, routers.CreateOpts{GatewayInfo: &routers.GatewayInfo{NetworkID: place.network}}).Extract()
	requireProblem(t, err, 400, "BadRequest", "not an external network")
	_, err = floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: place.network}).Extract()
	requireProblem(t, err, 400, "BadRequest", "not a valid external network")
	alone, err := networks.Create(t.Context(), c.demo, networks.CreateOpts{Name: "alone"}).Extract()
	require.NoError(t, err)
	_, err = subnets.Create(t.Context(), c.demo, subnets.CreateOpts{NetworkID: alone.ID, CIDR: "10.12.0.5/24", IPVersion: 4}).Extract()
	require.NoError(t, err, "host bits are cut off")
	lonely, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: alone.ID}).Extract()
	require.NoError(t, err)
	_, err = floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: lonely.ID}).Extract()
	requireProblem(t, err, 404, "ExternalGatewayForFloatingIPNotFound", "is not reachable from subnet")
	_, err = c.demo.Post(t.Context(), c.demo.ResourceBase+"networks", map[string]any{"network": map[string]any{"colour": "red"}}, nil, nil)
	requireProblem(t, err, 400, "HTTPBadRequest", "Unrecognized attribute(s) 'colour'")
	_, err = c.demo.Post(t.Context(), c.demo.ResourceBase+"networks", map[string]any{"network": map[string]any{"name": 5}}, nil, nil)
	requireProblem(t, err, 400, "InvalidInput", "name")
	_, err = c.demo.Post(t.Context(), c.demo.ResourceBase+"networks", map[string]any{}, nil, nil)
	requireProblem(t, err, 400, "HTTPBadRequest", "'network'")
	_, err = c.demo.Get(t.Context(), c.demo.ResourceBase+"trunks", nil, nil)
	requireProblem(t, err, 404, "HTTPNotFound", "trunks")
}

func TestSecurityGroupsAreKeptAndChecked(t *testing.T) {
	c := start(t)
	pages, err := groups.List(c.demo, groups.ListOpts{Name: "default"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := groups.ExtractGroups(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Len(t, found[0].Rules, 4)
	group, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "web", Description: "doors"}).Extract()
	require.NoError(t, err)
	require.Len(t, group.Rules, 2)
	opts := rules.CreateOpts{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, Protocol: rules.ProtocolTCP, PortRangeMin: 80, PortRangeMax: 81, RemoteIPPrefix: "0.0.0.0/0"}
	rule, err := rules.Create(t.Context(), c.demo, opts).Extract()
	require.NoError(t, err)
	require.Equal(t, 81, rule.PortRangeMax)
	_, err = rules.Create(t.Context(), c.demo, opts).Extract()
	requireProblem(t, err, 409, "SecurityGroupRuleExists", rule.ID)
	opts.PortRangeMin = 90
	_, err = rules.Create(t.Context(), c.demo, opts).Extract()
	requireProblem(t, err, 400, "SecurityGroupInvalidPortRange", "port_range_min")
	opts.Protocol = "carrier-pigeon"
	_, err = rules.Create(t.Context(), c.demo, opts).Extract()
	requireProblem(t, err, 400, "SecurityGroupRuleInvalidProtocol", "carrier-pigeon")
	bulk, err := rules.CreateBulk(t.Context(), c.demo, []rules.CreateOpts{
		{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, Protocol: rules.ProtocolICMP},
		{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, RemoteGroupID: group.ID},
	}).Extract()
	require.NoError(t, err)
	require.Len(t, bulk, 2)
	network, err := networks.Create(t.Context(), c.demo, networks.CreateOpts{}).Extract()
	require.NoError(t, err)
	port, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: network.ID, SecurityGroups: &[]string{group.ID}}).Extract()
	require.NoError(t, err)
	require.Equal(t, []string{group.ID}, port.SecurityGroups)
	requireProblem(t, groups.Delete(t.Context(), c.demo, group.ID).ExtractErr(), 409, "SecurityGroupInUse", group.ID)
	_, err = ports.Update(t.Context(), c.demo, port.ID, ports.UpdateOpts{SecurityGroups: &[]string{}}).Extract()
	require.NoError(t, err)
	require.NoError(t, rules.Delete(t.Context(), c.demo, rule.ID).ExtractErr())
	require.NoError(t, groups.Delete(t.Context(), c.demo, group.ID).ExtractErr())
}

func TestTheServiceTellsAboutItself(t *testing.T) {
	c := start(t)
	pages, err := extensions.List(c.demo).AllPages(t.Context())
	require.NoError(t, err)
	all, err := extensions.ExtractExtensions(pages)
	require.NoError(t, err)
	require.NotEmpty(t, all)
}

func TestAProjectHasNoMoreThanItsQuota(t *testing.T) {
	c := start(t)
	quota, err := quotas.Get(t.Context(), c.demo, "demo").Extract()
	require.NoError(t, err)
	require.Equal(t, -1, quota.Port)
	one, none := 1, 0
	requireProblem(t, quotas.Update(t.Context(), c.demo, "demo", quotas.UpdateOpts{Network: &one}).Err, 403, "PolicyNotAuthorized", "update_quota")
	quota, err = quotas.Update(t.Context(), c.admin, "demo", quotas.UpdateOpts{Network: &one, Router: &none, Port: &one}).Extract()
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 1, -1}, []int{quota.Network, quota.Router, quota.Port, quota.Subnet})

	network, err := networks.Create(t.Context(), c.demo, networks.CreateOpts{Name: "one"}).Extract()
	require.NoError(t, err)
	requireProblem(t, networks.Create(t.Context(), c.demo, networks.CreateOpts{Name: "two"}).Err, 409, "OverQuota", "Quota exceeded for resources: ['network'].")
	requireProblem(t, routers.Create(t.Context(), c.demo, routers.CreateOpts{}).Err, 409, "OverQuota", "['router']")
	_, err = ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: network.ID}).Extract()
	require.NoError(t, err)
	requireProblem(t, ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: network.ID}).Err, 409, "OverQuota", "['port']")
	detail, err := quotas.GetDetail(t.Context(), c.demo, "demo").Extract()
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{detail.Network.Used, detail.Network.Limit})

	_, err = c.admin.Delete(t.Context(), c.admin.ServiceURL("quotas", "demo"), nil)
	require.NoError(t, err)
	_, err = networks.Create(t.Context(), c.demo, networks.CreateOpts{Name: "two"}).Extract()
	require.NoError(t, err)
}

func TestARepeatedCallWithAChosenIDMakesNothingTwice(t *testing.T) {
	c := start(t)
	ctx := context.Background()
	for range 2 {
		network, err := c.service.CreateNetwork(ctx, "demo", neutron.NetworkRequest{Owner: neutron.Owner{ID: "44444444-0000-0000-0000-000000000001"}})
		require.NoError(t, err)
		_, err = c.service.CreateSubnet(ctx, "demo", neutron.SubnetRequest{Owner: neutron.Owner{ID: "44444444-0000-0000-0000-000000000002"}, NetworkID: network.ID, CIDR: "10.10.0.0/24"})
		require.NoError(t, err)
		_, err = c.service.CreatePort(ctx, "demo", neutron.PortRequest{Owner: neutron.Owner{ID: "44444444-0000-0000-0000-000000000003"}, NetworkID: network.ID})
		require.NoError(t, err)
	}
	require.Len(t, c.service.Ports("demo"), 1)
	require.Len(t, c.service.Networks("demo"), 2)
}
