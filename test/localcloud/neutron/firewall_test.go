package neutron_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/rules"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/test/localcloud/neutron"
)

// within runs work on a thread in a server's namespace. A thread that cannot come back ends with its goroutine.
func within(t *testing.T, namespace string, work func() error) error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.GetFromName(namespace)
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			err = work()
		}
		result <- err
	}()
	return <-result
}

// guest is a server that listens on the ports 80 and 81.
type guest struct {
	namespace string
	port      ports.Port
	address   string
}

func (c cloud) guest(t *testing.T, serverID string, opts ports.CreateOpts) guest {
	t.Helper()
	port, err := ports.Create(t.Context(), c.demo, opts).Extract()
	require.NoError(t, err)
	c.boot(t, serverID, port.ID)
	namespace, err := c.service.CreateServerNamespace(t.Context(), serverID)
	require.NoError(t, err)
	for _, number := range []string{"80", "81"} {
		require.NoError(t, within(t, namespace, func() error {
			listener, err := net.Listen("tcp4", "0.0.0.0:"+number)
			if err == nil {
				t.Cleanup(func() { _ = listener.Close() })
			}
			return err
		}))
	}
	return guest{namespace, *port, port.FixedIPs[0].IPAddress}
}

// How long a connection that is to be made may take on a busy machine, and how long one that is not to be made is tried.
const (
	patiently = 10 * time.Second
	shortly   = 500 * time.Millisecond
)

// reaches reports whether a connection to the port of the other guest is made, from one of the guest's addresses, "" for its own.
func (g guest) reaches(t *testing.T, other guest, port int, local string) bool {
	return g.dial(t, other, port, local, patiently) == nil
}

// misses reports whether a connection to the port of the other guest gets no answer.
func (g guest) misses(t *testing.T, other guest, port int, local string) bool {
	var failure net.Error
	return errors.As(g.dial(t, other, port, local, shortly), &failure) && failure.Timeout()
}

func (g guest) dial(t *testing.T, other guest, port int, local string, limit time.Duration) error {
	t.Helper()
	dialer := net.Dialer{Timeout: limit}
	if local != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: netip.MustParseAddr(local).AsSlice()}
	}
	return within(t, g.namespace, func() error {
		connection, err := dialer.Dial("tcp4", net.JoinHostPort(other.address, fmt.Sprint(port)))
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

func fromOutside(address string, port int, limit time.Duration) bool {
	connection, err := net.DialTimeout("tcp4", net.JoinHostPort(address, fmt.Sprint(port)), limit)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func TestWhatASecurityGroupOpensIsOpenAndNothingElse(t *testing.T) {
	c := start(t)
	place := c.site(t, c.demo, "10.10.0.0/24")
	group, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "web"}).Extract()
	require.NoError(t, err)
	web := c.guest(t, "55555550", ports.CreateOpts{NetworkID: place.network, SecurityGroups: &[]string{group.ID}})
	first := c.guest(t, "55555551", ports.CreateOpts{NetworkID: place.network})
	second := c.guest(t, "55555552", ports.CreateOpts{NetworkID: place.network})
	floating, err := floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: web.port.ID}).Extract()
	require.NoError(t, err)

	require.True(t, first.reaches(t, second, 80, ""), "the default group lets in its members")
	require.True(t, second.reaches(t, first, 81, ""), "on all ports")
	require.True(t, web.misses(t, first, 80, ""), "and nobody else")
	require.True(t, first.misses(t, web, 80, ""), "a new group lets in nothing")
	require.False(t, fromOutside(floating.FloatingIP, 80, shortly))

	anyone, err := rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, Protocol: rules.ProtocolTCP, PortRangeMin: 80, PortRangeMax: 80}).Extract()
	require.NoError(t, err)
	check := func() {
		t.Helper()
		require.True(t, first.reaches(t, web, 80, ""), "a port that is opened is open at once")
		require.True(t, first.misses(t, web, 81, ""), "the one beside it is closed")
		require.True(t, fromOutside(floating.FloatingIP, 80, patiently))
		require.False(t, fromOutside(floating.FloatingIP, 81, shortly))
	}
	check()
	again, err := neutron.New(c.config)
	require.NoError(t, err)
	require.NoError(t, again.Restore(t.Context()))
	check()
	require.NoError(t, rules.Delete(t.Context(), c.demo, anyone.ID).ExtractErr())
	require.True(t, first.misses(t, web, 80, ""), "closed again at once")

	_, err = rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: group.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, RemoteIPPrefix: second.address + "/32"}).Extract()
	require.NoError(t, err)
	require.True(t, second.reaches(t, web, 81, ""))
	require.True(t, first.misses(t, web, 81, ""))

	for _, rule := range group.Rules {
		require.NoError(t, rules.Delete(t.Context(), c.demo, rule.ID).ExtractErr())
	}
	_, err = rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: first.port.SecurityGroups[0], Direction: rules.DirIngress, EtherType: rules.EtherType4}).Extract()
	require.NoError(t, err)
	require.True(t, web.misses(t, first, 80, ""), "without a rule for it nothing goes out")
}

func TestMembersOfANamedGroupAreLetInWithTheirAddressPairs(t *testing.T) {
	c := start(t)
	place := c.site(t, c.demo, "10.10.0.0/24")
	opened, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "opened"}).Extract()
	require.NoError(t, err)
	friends, err := groups.Create(t.Context(), c.demo, groups.CreateOpts{Name: "friends"}).Extract()
	require.NoError(t, err)
	_, err = rules.Create(t.Context(), c.demo, rules.CreateOpts{SecGroupID: opened.ID, Direction: rules.DirIngress, EtherType: rules.EtherType4, RemoteGroupID: friends.ID}).Extract()
	require.NoError(t, err)
	web := c.guest(t, "66666660", ports.CreateOpts{NetworkID: place.network, SecurityGroups: &[]string{opened.ID}})
	friend := c.guest(t, "66666661", ports.CreateOpts{NetworkID: place.network})
	require.True(t, friend.misses(t, web, 80, ""), "no member yet")
	_, err = ports.Update(t.Context(), c.demo, friend.port.ID, ports.UpdateOpts{SecurityGroups: &[]string{friends.ID}}).Extract()
	require.NoError(t, err)
	require.True(t, friend.reaches(t, web, 80, ""))

	const pod = "10.10.0.200"
	alsoUses(t, friend.namespace, pod)
	require.True(t, friend.misses(t, web, 80, pod), "an address of its own making")
	_, err = ports.Update(t.Context(), c.demo, friend.port.ID, ports.UpdateOpts{AllowedAddressPairs: &[]ports.AddressPair{{IPAddress: "10.10.0.192/26"}}}).Extract()
	require.NoError(t, err)
	require.True(t, friend.reaches(t, web, 80, pod), "an address of an allowed pair")
	_, err = ports.Update(t.Context(), c.demo, friend.port.ID, ports.UpdateOpts{AllowedAddressPairs: &[]ports.AddressPair{}}).Extract()
	require.NoError(t, err)
	require.True(t, friend.misses(t, web, 80, pod), "the pair is gone")

	_, err = c.service.UpdatePort(t.Context(), "demo", web.port.ID, neutron.PortRequest{SecurityGroups: &[]string{}, PortSecurityEnabled: new(bool)})
	require.NoError(t, err)
	_, err = c.service.UpdatePort(t.Context(), "demo", friend.port.ID, neutron.PortRequest{SecurityGroups: &[]string{}, PortSecurityEnabled: new(bool)})
	require.NoError(t, err)
	require.True(t, friend.reaches(t, web, 81, pod), "ports without port security")
}

// An address that several servers share is reserved by a port without a server, and leads to the permitted server that announces it.
func TestAFloatingAddressFollowsAnAddressThatServersShare(t *testing.T) {
	c := start(t)
	c.open(t, "demo")
	place := c.site(t, c.demo, "10.10.0.0/24")
	reserved, err := ports.Create(t.Context(), c.demo, ports.CreateOpts{NetworkID: place.network}).Extract()
	require.NoError(t, err)
	virtual := reserved.FixedIPs[0].IPAddress
	floating, err := floatingips.Create(t.Context(), c.demo, floatingips.CreateOpts{FloatingNetworkID: c.public(t), PortID: reserved.ID}).Extract()
	require.NoError(t, err)
	pair := []ports.AddressPair{{IPAddress: virtual}}
	first := c.guest(t, "77777770", ports.CreateOpts{NetworkID: place.network, AllowedAddressPairs: pair})
	second := c.guest(t, "77777771", ports.CreateOpts{NetworkID: place.network, AllowedAddressPairs: pair})
	stranger := c.guest(t, "77777772", ports.CreateOpts{NetworkID: place.network})
	require.False(t, fromOutside(floating.FloatingIP, 80, shortly), "nobody has it")

	alsoUses(t, stranger.namespace, virtual)
	announce(t, stranger, virtual)
	require.False(t, fromOutside(floating.FloatingIP, 80, shortly), "who may not have it is not heard")
	require.True(t, stranger.misses(t, first, 80, virtual), "nor may it speak from it")

	alsoUses(t, first.namespace, virtual)
	announce(t, first, virtual)
	require.True(t, fromOutside(floating.FloatingIP, 80, patiently))
	announce(t, stranger, virtual)
	require.True(t, fromOutside(floating.FloatingIP, 80, patiently), "it cannot be taken away")

	usesNoMore(t, first.namespace, virtual)
	require.False(t, fromOutside(floating.FloatingIP, 80, shortly))
	alsoUses(t, second.namespace, virtual)
	announce(t, second, virtual)
	require.True(t, fromOutside(floating.FloatingIP, 80, patiently), "another one takes it over")
}

// announce sends the network a server's new address (gratuitous ARP, RFC 5227 section 3).
func announce(t *testing.T, g guest, address string) {
	t.Helper()
	require.NoError(t, within(t, g.namespace, func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		everybody := unix.SockaddrLinklayer{Ifindex: device.Index, Protocol: 0x0608, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
		ip := netip.MustParseAddr(address).As4()
		packet := []byte{0, 1, 8, 0, 6, 4, 0, 1}
		packet = append(append(packet, device.HardwareAddr...), ip[:]...)
		packet = append(append(packet, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ip[:]...)
		return unix.Sendto(socket, packet, 0, &everybody)
	}))
}

func usesNoMore(t *testing.T, namespace, address string) {
	t.Helper()
	withLink(t, namespace, func(h *netlink.Handle, link netlink.Link) error {
		return h.AddrDel(link, &netlink.Addr{IPNet: &net.IPNet{IP: netip.MustParseAddr(address).AsSlice(), Mask: net.CIDRMask(24, 32)}})
	})
}

// alsoUses gives a server one more address.
func alsoUses(t *testing.T, namespace, address string) {
	t.Helper()
	withLink(t, namespace, func(h *netlink.Handle, link netlink.Link) error {
		return h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: netip.MustParseAddr(address).AsSlice(), Mask: net.CIDRMask(24, 32)}})
	})
}

// withLink does something with a server's interface.
func withLink(t *testing.T, namespace string, do func(*netlink.Handle, netlink.Link) error) {
	t.Helper()
	ns, err := netns.GetFromName(namespace)
	require.NoError(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	require.NoError(t, err)
	defer h.Close()
	link, err := h.LinkByName("eth0")
	require.NoError(t, err)
	require.NoError(t, do(h, link))
}
