package neutron_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/rules"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/neutron/neutrontest"
)

const external6 = "fd00:200::/64"

// startDual starts a Neutron whose external network has IPv6 too.
func startDual(t *testing.T) cloud {
	t.Helper()
	config := neutrontest.Config(t)
	config.External6 = netip.MustParsePrefix(external6)
	service := neutrontest.Start(t, config)
	url := neutrontest.Serve(t, service.Handler())
	return cloud{service, config, clientOf(url, "demo"), clientOf(url, "other"), clientOf(url, "admin")}
}

// six adds a subnet of IPv6 to a site.
func (c cloud) six(t *testing.T, place site, opts subnets.CreateOpts) *subnets.Subnet {
	t.Helper()
	opts.NetworkID, opts.IPVersion = place.network, 6
	subnet, err := subnets.Create(t.Context(), c.demo, opts).Extract()
	require.NoError(t, err)
	_, err = routers.AddInterface(t.Context(), c.demo, place.router, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
	require.NoError(t, err)
	return subnet
}

// answers6 takes connections of IPv6 and sends datagrams back.
func (g guest) answers6(t *testing.T, number int) {
	t.Helper()
	require.NoError(t, within(t, g.namespace, func() error {
		listener, err := net.Listen("tcp6", fmt.Sprintf("[::]:%d", number))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = listener.Close() })
		packets, err := net.ListenPacket("udp6", fmt.Sprintf("[::]:%d", number))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = packets.Close() })
		go func() {
			data := make([]byte, 65536)
			for {
				n, from, err := packets.ReadFrom(data)
				if err != nil {
					return
				}
				_, _ = packets.WriteTo(data[:n], from)
			}
		}()
		return nil
	}))
}

func (g guest) address6() string { return g.port.FixedIPs[1].IPAddress }

// tries connects from a namespace, the host's when empty.
func tries(t *testing.T, namespace, address string, port int, dialer net.Dialer) error {
	t.Helper()
	dial := func() error {
		connection, err := dialer.Dial("tcp6", net.JoinHostPort(address, fmt.Sprint(port)))
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
	if namespace == "" {
		return dial()
	}
	return within(t, namespace, dial)
}

func silent(t *testing.T, err error, title string) {
	t.Helper()
	var failure net.Error
	require.Truef(t, errors.As(err, &failure) && failure.Timeout(), "%s: %v", title, err)
}

func TestServersHaveIPv6BesideIPv4AndSecurityGroupsGuardIt(t *testing.T) {
	c := startDual(t)
	place := c.site(t, c.demo, "10.10.0.0/24")
	subnet := c.six(t, place, subnets.CreateOpts{CIDR: "fd00:10::/64", IPv6AddressMode: "dhcpv6-stateful", IPv6RAMode: "dhcpv6-stateful"})
	require.Equal(t, []string{"fd00:10::1", "fd00:10::2", "fd00:10::ffff:ffff:ffff:ffff"}, []string{subnet.GatewayIP, subnet.AllocationPools[0].Start, subnet.AllocationPools[0].End})
	group, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "web"}).Extract()
	require.NoError(t, err)
	web := c.guest(t, "66666660", ports.CreateOpts{NetworkID: place.network, SecurityGroups: &[]string{group.ID}})
	one := c.guest(t, "66666661", ports.CreateOpts{NetworkID: place.network})
	two := c.guest(t, "66666662", ports.CreateOpts{NetworkID: place.network})
	for _, g := range []guest{web, one, two} {
		g.answers6(t, 8080)
		g.answers6(t, 8081)
		require.Len(t, g.port.FixedIPs, 2, "one address of each version")
		require.Equal(t, subnet.ID, g.port.FixedIPs[1].SubnetID)
	}
	slow, quick := net.Dialer{Timeout: patiently}, net.Dialer{Timeout: shortly}

	require.NoError(t, tries(t, one.namespace, two.address6(), 8080, slow), "the default group lets in its members by IPv6 too")
	require.True(t, one.reaches(t, two, 80, ""), "and still by IPv4")
	silent(t, tries(t, one.namespace, web.address6(), 8080, quick), "a new group lets in nothing")
	silent(t, tries(t, "", web.address6(), 8080, quick), "nor the host")
	_, err = rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, Protocol: rules.ProtocolTCP}).Extract()
	require.NoError(t, err)
	silent(t, tries(t, one.namespace, web.address6(), 8080, quick), "a rule of IPv4 opens nothing of IPv6")
	opened, err := rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType6, Protocol: rules.ProtocolTCP, PortRangeMin: 8080, PortRangeMax: 8080}).Extract()
	require.NoError(t, err)
	check := func() {
		t.Helper()
		require.NoError(t, tries(t, one.namespace, web.address6(), 8080, slow))
		silent(t, tries(t, one.namespace, web.address6(), 8081, quick), "the port beside it is closed")
		require.NoError(t, tries(t, "", web.address6(), 8080, slow), "the host has a route through the router")
	}
	check()
	again, err := neutron.New(c.config)
	require.NoError(t, err)
	require.NoError(t, again.Restore(t.Context()))
	check()

	require.NoError(t, rules.Delete(t.Context(), c.demo, opened.ID).ExtractErr())
	silent(t, tries(t, one.namespace, web.address6(), 8080, quick), "a rule that is taken away")

	long := func(namespace, address string) error {
		return within(t, namespace, func() error {
			connection, err := net.Dial("udp6", net.JoinHostPort(address, "8080"))
			if err != nil {
				return err
			}
			defer connection.Close()
			return until(func() error {
				sent := make([]byte, 4000)
				if _, err := connection.Write(sent); err != nil {
					return err
				}
				return readAll(connection, len(sent))
			})
		})
	}
	require.NoError(t, long(one.namespace, two.address6()), "a datagram in fragments comes and is answered")

	stranger := net.Dialer{Timeout: shortly, LocalAddr: &net.TCPAddr{IP: netip.MustParseAddr("fd00:10::66").AsSlice()}}
	add(t, one.namespace, "fd00:10::66/64")
	silent(t, tries(t, one.namespace, two.address6(), 8080, stranger), "nobody speaks as another")
	pairs := []ports.AddressPair{{IPAddress: "fd00:10::66"}}
	_, err = ports.Update(t.Context(), c.demo, one.port.ID, ports.UpdateOpts{AllowedAddressPairs: &pairs}).Extract()
	require.NoError(t, err)
	stranger.Timeout = patiently
	require.NoError(t, tries(t, one.namespace, two.address6(), 8080, stranger), "an address pair of IPv6 may")

	floating, err := floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: two.port.ID}).Extract()
	require.NoError(t, err)
	require.Equal(t, two.address, floating.FixedIP)
	require.True(t, netip.MustParseAddr(floating.FloatingIP).Is4(), "floating IPs are of IPv4")

	_, err = routers.RemoveInterface(t.Context(), c.demo, place.router, routers.RemoveInterfaceOpts{SubnetID: subnet.ID}).Extract()
	require.NoError(t, err)
	require.NotContains(t, hostRoutes(t), "fd00:10::/64", "the host's route is gone with the router's")
}

func TestAServerMakesItsOwnAddressInASubnetThatSaysSo(t *testing.T) {
	c := start(t)
	network, err := networks.Create(t.Context(), c.demo, networks.CreateOpts{}).Extract()
	require.NoError(t, err)
	wrong := func(opts subnets.CreateOpts, kind, message string) {
		t.Helper()
		opts.NetworkID = network.ID
		_, err := subnets.Create(t.Context(), c.demo, opts).Extract()
		requireProblem(t, err, 400, kind, message)
	}
	wrong(subnets.CreateOpts{CIDR: "fd00::/64", IPVersion: 4}, "InvalidInput", "does not match the ip_version '4'")
	wrong(subnets.CreateOpts{CIDR: "10.0.0.0/24", IPVersion: 4, IPv6RAMode: "slaac"}, "InvalidInput", "ipv6_ra_mode is not valid when ip_version is 4")
	wrong(subnets.CreateOpts{CIDR: "fd00::/64", IPVersion: 6, IPv6AddressMode: "slaac", IPv6RAMode: "dhcpv6-stateful"}, "InvalidInput", "must be the same value")
	wrong(subnets.CreateOpts{CIDR: "fd00::/80", IPVersion: 6, IPv6AddressMode: "slaac"}, "InvalidInput", "requires the prefix to be /64")
	_, err = subnets.Create(t.Context(), c.demo, subnets.CreateOpts{NetworkID: network.ID, CIDR: "fd00:20::/64", IPVersion: 6, IPv6AddressMode: "slaac", IPv6RAMode: "slaac"}).Extract()
	require.NoError(t, err)
	port, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: network.ID, MACAddress: "fa:16:3e:01:02:03"}).Extract()
	require.NoError(t, err)
	require.Equal(t, "fd00:20::f816:3eff:fe01:203", port.FixedIPs[0].IPAddress)
	_, err = ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: network.ID, FixedIPs: []ports.IP{{IPAddress: "fd00:20::5"}}}).Extract()
	requireProblem(t, err, 400, "AllocationOnAutoAddressSubnet", "can not be directly assigned")
}

// until tries again while neighbours are looked for.
func until(work func() error) (err error) {
	for range 5 {
		if err = work(); err == nil {
			return nil
		}
	}
	return err
}

func readAll(connection net.Conn, length int) error {
	if err := connection.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	n, err := connection.Read(make([]byte, 65536))
	if err == nil && n != length {
		return io.ErrUnexpectedEOF
	}
	return err
}

func add(t *testing.T, namespace, address string) {
	t.Helper()
	ns, err := netns.GetFromName(namespace)
	require.NoError(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	require.NoError(t, err)
	defer h.Close()
	link, err := h.LinkByName("eth0")
	require.NoError(t, err)
	given, err := netlink.ParseAddr(address)
	require.NoError(t, err)
	given.Flags = syscall.IFA_F_NODAD
	require.NoError(t, h.AddrReplace(link, given))
}

func hostRoutes(t *testing.T) (routes []string) {
	t.Helper()
	all, err := netlink.RouteList(nil, netlink.FAMILY_V6)
	require.NoError(t, err)
	for _, route := range all {
		if route.Dst != nil {
			routes = append(routes, route.Dst.String())
		}
	}
	return routes
}
