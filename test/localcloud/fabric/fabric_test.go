package fabric_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/test/localcloud/fabric"
)

var update = flag.Bool("update", false, "write the golden files anew")

// start makes a fabric that no other test on this machine touches, and removes it in the end.
func start(t *testing.T) (*fabric.Fabric, fabric.Config) {
	t.Helper()
	pid := os.Getpid()
	config := fabric.Config{
		StateDir: t.TempDir(),
		Prefix:   fmt.Sprintf("f%04x-", pid&0xffff),
		External: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(180 + pid%20), byte(pid / 20), 0}), 24),
	}
	f, err := fabric.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, f.DeleteAll(context.Background()))
		require.Empty(t, leftovers(t, config.Prefix))
	})
	return f, config
}

func leftovers(t *testing.T, prefix string) (found []string) {
	t.Helper()
	entries, _ := os.ReadDir("/run/netns")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			found = append(found, entry.Name())
		}
	}
	links, err := fabric.Dump(netlink.LinkList)
	require.NoError(t, err)
	for _, link := range links {
		if strings.HasPrefix(link.Attrs().Name, prefix) {
			found = append(found, link.Attrs().Name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/"+prefix) {
			found = append(found, line)
		}
	}
	return found
}

// world is two networks at one router, a server in each and a second one in the first; the first has a floating address.
type world struct {
	networks []fabric.Network
	ports    []fabric.Port
	fixed    []netip.Prefix
	router   fabric.Router
}

func newWorld(external netip.Prefix, second byte) world {
	w := world{networks: []fabric.Network{{ID: fmt.Sprintf("%02xaa0001", second), MTU: 1450}, {ID: fmt.Sprintf("%02xaa0002", second), MTU: 1450}}}
	subnet := func(network, host byte) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 30, network, host}), 24)
	}
	outside := external.Addr().As4()
	outside[3] = 10 + second
	router := netip.AddrFrom4(outside)
	floating := func(n byte) netip.Addr {
		a := outside
		a[3] = 100 + 10*second + n
		return netip.AddrFrom4(a)
	}
	for i, place := range []struct{ network, host byte }{{0, 11}, {0, 12}, {1, 11}} {
		address := subnet(place.network, place.host)
		network := w.networks[place.network]
		w.fixed = append(w.fixed, address)
		w.ports = append(w.ports, fabric.Port{
			ID: fmt.Sprintf("%02xbb000%d", second, i), Network: network, ServerID: fmt.Sprintf("%02xcc000%d", second, i),
			Device: "eth0", MAC: fabric.MAC(network.ID, address.Addr()).String(),
		})
	}
	w.router = fabric.Router{
		ID:   fmt.Sprintf("%02xdd0000", second),
		SNAT: true,
		Gateway: &fabric.Leg{
			PortID: fmt.Sprintf("%02xee0000", second), Network: fabric.Network{ID: "external", MTU: 1500, External: true},
			MAC: fabric.MAC("external", router).String(), Addresses: []netip.Prefix{netip.PrefixFrom(router, external.Bits())},
		},
		FloatingIPs: []fabric.FloatingIP{{Floating: floating(0), Fixed: w.fixed[0].Addr()}, {Floating: floating(1), Fixed: w.fixed[1].Addr()}},
	}
	for i, network := range w.networks {
		gateway := subnet(byte(i), 1)
		leg := fabric.Leg{
			PortID: fmt.Sprintf("%02xff000%d", second, i), Network: network, MAC: fabric.MAC(network.ID, gateway.Addr()).String(),
			Addresses: []netip.Prefix{gateway}, Neighbours: map[netip.Addr]string{},
		}
		for n, port := range w.ports {
			if port.Network.ID == network.ID {
				leg.Neighbours[w.fixed[n].Addr()] = port.MAC
			}
		}
		w.router.Interfaces = append(w.router.Interfaces, leg)
	}
	return w
}

func (w world) apply(t *testing.T, f *fabric.Fabric) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, f.ApplyExternal(ctx))
	for _, network := range w.networks {
		require.NoError(t, f.ApplyNetwork(ctx, network))
	}
	for _, port := range w.ports {
		_, err := f.ApplyServer(ctx, port.ServerID)
		require.NoError(t, err)
		require.NoError(t, f.Plug(ctx, port))
	}
	require.NoError(t, f.ApplyRouter(ctx, w.router))
}

// configure does the work of networkd in a real server.
func (w world) configure(t *testing.T, f *fabric.Fabric) {
	t.Helper()
	for i, port := range w.ports {
		require.NoError(t, fabric.AsNamespace(f.ServerNamespace(port.ServerID), func() error {
			link, err := netlink.LinkByName(port.Device)
			if err != nil {
				return err
			}
			if link.Attrs().MTU != port.Network.MTU || link.Attrs().HardwareAddr.String() != port.MAC {
				return fmt.Errorf("eth0 is %+v", link.Attrs())
			}
			address := &netlink.Addr{IPNet: &net.IPNet{IP: w.fixed[i].Addr().AsSlice(), Mask: net.CIDRMask(24, 32)}}
			if err := netlink.AddrReplace(link, address); err != nil {
				return err
			}
			return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: w.fixed[i].Masked().Addr().Next().AsSlice()})
		}))
	}
}

// serve listens in the server's namespace (the host's when empty) and answers each connection with the caller's address.
func serve(t *testing.T, namespace string, address netip.Addr) (port int) {
	t.Helper()
	var listener net.Listener
	listen := func() (err error) {
		listener, err = net.Listen("tcp4", net.JoinHostPort(address.String(), "0"))
		return err
	}
	if namespace == "" {
		require.NoError(t, listen())
	} else {
		require.NoError(t, fabric.AsNamespace(namespace, listen))
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
			_, _ = io.WriteString(connection, host)
			_ = connection.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// call connects from a namespace (the host when empty) and returns as whom it was seen.
func call(namespace string, address netip.Addr, port int) (seen string, err error) {
	dial := func() error {
		connection, err := net.DialTimeout("tcp4", net.JoinHostPort(address.String(), fmt.Sprint(port)), 2*time.Second)
		if err != nil {
			return err
		}
		defer connection.Close()
		answer, err := io.ReadAll(connection)
		seen = string(answer)
		return err
	}
	if namespace == "" {
		return seen, dial()
	}
	return seen, fabric.AsNamespace(namespace, dial)
}

func TestServersReachEachOtherTheHostAndAreReachedByFloatingAddresses(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	w.configure(t, f)
	other := newWorld(config.External, 2) // the same addresses again, of another project
	other.apply(t, f)
	other.configure(t, f)

	namespace := func(i int) string { return f.ServerNamespace(w.ports[i].ServerID) }
	var listen []int
	for i := range w.ports {
		listen = append(listen, serve(t, namespace(i), w.fixed[i].Addr()))
	}
	host := serve(t, "", f.HostAddress())
	otherListens := serve(t, f.ServerNamespace(other.ports[0].ServerID), other.fixed[0].Addr())
	router := w.router.Gateway.Addresses[0].Addr()
	floating := func(i int) netip.Addr { return w.router.FloatingIPs[i].Floating }

	for _, c := range []struct {
		title string
		from  string
		to    netip.Addr
		port  int
		seen  netip.Addr
	}{
		{"a server in the same network", namespace(1), w.fixed[0].Addr(), listen[0], w.fixed[1].Addr()},
		{"a server in the router's other network", namespace(0), w.fixed[2].Addr(), listen[2], w.fixed[0].Addr()},
		{"the host, by the floating address", "", floating(0), listen[0], f.HostAddress()},
		{"a server with a floating address reaches the host with it", namespace(0), f.HostAddress(), host, floating(0)},
		{"a server without one reaches the host with its router's", namespace(2), f.HostAddress(), host, router},
		{"a neighbour's floating address", namespace(1), floating(0), listen[0], floating(1)},
		{"a floating address from the other network of the router", namespace(2), floating(0), listen[0], router},
		{"somebody else's floating address", namespace(2), other.router.FloatingIPs[0].Floating, otherListens, router},
	} {
		seen, err := call(c.from, c.to, c.port)
		require.NoError(t, err, c.title)
		require.Equal(t, c.seen.String(), seen, c.title)
	}
	_, err := call("", w.router.FloatingIPs[1].Floating, listen[0])
	require.Error(t, err, "each floating address leads to its own server")
}

func TestApplyingAgainAfterARestartTouchesNothingAndMendsWhatIsMissing(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	w.configure(t, f)
	namespace := f.ServerNamespace(w.ports[0].ServerID)
	port := serve(t, namespace, w.fixed[0].Addr())
	connection, err := net.Dial("tcp4", net.JoinHostPort(w.router.FloatingIPs[0].Floating.String(), fmt.Sprint(port)))
	require.NoError(t, err)
	defer connection.Close()

	f, err = fabric.New(config) // the process was killed
	require.NoError(t, err)
	w.apply(t, f)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.Equal(t, f.HostAddress().String(), string(answer), "an open connection goes on")

	host, err := netlink.LinkByName(config.Prefix + "g" + w.router.Gateway.PortID)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(host))
	ns, err := netns.GetFromName(f.ServerNamespace(w.ports[1].ServerID))
	require.NoError(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	require.NoError(t, err)
	defer h.Close()
	link, err := h.LinkByName("eth0")
	require.NoError(t, err)
	require.NoError(t, h.LinkDel(link))
	w.apply(t, f)
	w.configure(t, f)
	_, err = call("", w.router.FloatingIPs[0].Floating, port)
	require.NoError(t, err)
	_, err = call(f.ServerNamespace(w.ports[1].ServerID), w.fixed[0].Addr(), port)
	require.NoError(t, err)
}

func TestAFloatingAddressMovesToAnotherServerAndAnotherRouter(t *testing.T) {
	f, config := start(t)
	w, other := newWorld(config.External, 1), newWorld(config.External, 2)
	for _, one := range []world{w, other} {
		one.apply(t, f)
		one.configure(t, f)
	}
	floating := w.router.FloatingIPs[0].Floating
	first := serve(t, f.ServerNamespace(w.ports[0].ServerID), w.fixed[0].Addr())
	_, err := call("", floating, first)
	require.NoError(t, err)

	w.router.FloatingIPs = []fabric.FloatingIP{{Floating: floating, Fixed: w.fixed[2].Addr()}}
	require.NoError(t, f.ApplyRouter(context.Background(), w.router))
	third := serve(t, f.ServerNamespace(w.ports[2].ServerID), w.fixed[2].Addr())
	_, err = call("", floating, third)
	require.NoError(t, err)

	w.router.FloatingIPs = nil
	require.NoError(t, f.ApplyRouter(context.Background(), w.router))
	other.router.FloatingIPs = []fabric.FloatingIP{{Floating: floating, Fixed: other.fixed[0].Addr()}}
	require.NoError(t, f.ApplyRouter(context.Background(), other.router))
	there := serve(t, f.ServerNamespace(other.ports[0].ServerID), other.fixed[0].Addr())
	connection, err := net.DialTimeout("tcp4", net.JoinHostPort(floating.String(), fmt.Sprint(there)), 10*time.Second)
	require.NoError(t, err)
	defer connection.Close()
	require.Zero(t, resent(t, connection), "what was sent first has arrived")
}

// resent is how many packets of a connection had to be sent again.
func resent(t *testing.T, connection net.Conn) uint32 {
	t.Helper()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var info *unix.TCPInfo
	var failure error
	require.NoError(t, raw.Control(func(file uintptr) { info, failure = unix.GetsockoptTCPInfo(int(file), unix.IPPROTO_TCP, unix.TCP_INFO) }))
	require.NoError(t, failure)
	return info.Total_retrans
}

func TestAServerIsPluggedManyTimes(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	server, err := f.ApplyServer(context.Background(), "01cc0099")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join("/run/netns", server))
	for i := range 20 {
		port := w.ports[0]
		port.ID, port.ServerID, port.Device = fmt.Sprintf("01bb01%02d", i), "01cc0099", fmt.Sprintf("eth%d", i)
		require.NoError(t, f.Plug(context.Background(), port))
	}
	require.NoError(t, f.Unplug(context.Background(), w.networks[0], "01bb0100"))
	require.NoError(t, f.Unplug(context.Background(), w.networks[0], "01bb0100"))
	require.NoError(t, f.DeleteServer(context.Background(), "01cc0099"))
	require.NoError(t, f.DeleteServer(context.Background(), "01cc0099"))
}

func TestDeletingEachThingLeavesNothingOfIt(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	for _, port := range w.ports {
		require.NoError(t, f.DeleteServer(context.Background(), port.ServerID))
	}
	require.NoError(t, f.DeleteRouter(context.Background(), w.router.ID))
	for _, network := range w.networks {
		require.NoError(t, f.DeleteNetwork(context.Background(), network.ID))
	}
	require.Equal(t, []string{f.ExternalBridge()}, leftovers(t, config.Prefix))
	bridge, err := netlink.LinkByName(f.ExternalBridge())
	require.NoError(t, err)
	neighbours, err := fabric.Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(bridge.Attrs().Index, netlink.FAMILY_V4) })
	require.NoError(t, err)
	require.Empty(t, neighbours)
}

func TestAnExternalNetworkThatTheHostUsesIsRefused(t *testing.T) {
	_, config := start(t)
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: config.Prefix + "used"}}
	require.NoError(t, netlink.LinkAdd(link))
	inside := netip.PrefixFrom(config.External.Addr().Next(), 30)
	require.NoError(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: inside.Addr().AsSlice(), Mask: net.CIDRMask(30, 32)}}))
	require.NoError(t, netlink.LinkSetUp(link))
	f, err := fabric.New(config)
	require.NoError(t, err)
	err = f.ApplyExternal(context.Background())
	require.ErrorContains(t, err, "external network "+config.External.String()+" overlaps with")
	require.ErrorContains(t, err, "of interface "+config.Prefix+"used on this host: choose another network")
}

func TestAnExternalNetworkWithoutRoomIsRefused(t *testing.T) {
	for _, network := range []string{"10.88.0.1/24", "10.88.0.0/30", "fd00::/64"} {
		_, err := fabric.New(fabric.Config{External: netip.MustParsePrefix(network)})
		require.ErrorContains(t, err, network)
	}
}

func TestTheRulesOfARouterAreThese(t *testing.T) {
	w := newWorld(netip.MustParsePrefix("10.88.0.0/24"), 1)
	got := fabric.Ruleset(w.router)
	golden := filepath.Join("testdata", "router.nft")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
