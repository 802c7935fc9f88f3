package fabric_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/burano/burano/test/localcloud/fabric"
)

// Time limits on a busy machine: for expected events, and for the absence of unexpected ones.
const (
	patiently = 10 * time.Second
	shortly   = 700 * time.Millisecond
)

// anything matches every packet.
var anything = []fabric.Match{{}}

func tcp(port int) fabric.Match {
	return fabric.Match{Protocol: 6, Ports: [2]uint16{uint16(port), uint16(port)}}
}

// guard lets a server of the world send from its own address to any, and admits the packets of ingress.
func (w world) guard(i int, ingress ...fabric.Match) fabric.Guard {
	own := netip.PrefixFrom(w.fixed[i].Addr(), 32)
	return fabric.Guard{PortID: w.ports[i].ID, Allowed: []fabric.Source{{MAC: w.ports[i].MAC, Addresses: []netip.Prefix{own}}}, Ingress: ingress, Egress: anything}
}

// echoes answers each line of each connection with the same line.
func echoes(t *testing.T, namespace string, address netip.Addr, port int) int {
	t.Helper()
	var listener net.Listener
	require.NoError(t, fabric.AsNamespace(namespace, func() (err error) {
		listener, err = net.Listen("tcp4", net.JoinHostPort(address.String(), fmt.Sprint(port)))
		return err
	}))
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(connection, connection); _ = connection.Close() }()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// talk is one connection to an echo server.
type talk struct {
	net.Conn
	lines *bufio.Reader
}

func open(t *testing.T, namespace string, address netip.Addr, port int) talk {
	t.Helper()
	var connection net.Conn
	require.NoError(t, fabric.AsNamespace(namespace, func() (err error) {
		connection, err = net.DialTimeout("tcp4", net.JoinHostPort(address.String(), fmt.Sprint(port)), patiently)
		return err
	}))
	t.Cleanup(func() { _ = connection.Close() })
	return talk{connection, bufio.NewReader(connection)}
}

func (c talk) hears(t *testing.T, word string) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(patiently)))
	_, err := io.WriteString(c, word+"\n")
	require.NoError(t, err)
	answer, err := c.lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, word+"\n", answer)
}

// silent demands that a connection is neither made nor refused: its packets are dropped.
func silent(t *testing.T, namespace string, address netip.Addr, port int, title string) {
	t.Helper()
	err := fabric.AsNamespace(namespace, func() error {
		connection, err := net.DialTimeout("tcp4", net.JoinHostPort(address.String(), fmt.Sprint(port)), shortly)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	var network net.Error
	require.Truef(t, errors.As(err, &network) && network.Timeout(), "%s: %v", title, err)
}

// ping sends one echo request with so many bytes and waits for its answer.
func ping(namespace string, to netip.Addr, size int, limit time.Duration) error {
	return fabric.AsNamespace(namespace, func() error {
		connection, err := net.Dial("ip4:icmp", to.String())
		if err != nil {
			return err
		}
		defer connection.Close()
		request := make([]byte, 8+size)
		request[0], request[4], request[5] = 8, 0x42, byte(size) // echo request, identifier
		sum := uint32(0)
		for i := 0; i < len(request); i += 2 {
			sum += uint32(request[i])<<8 | uint32(request[i+1])
		}
		sum = ^(sum>>16 + sum&0xffff)
		request[2], request[3] = byte(sum>>8), byte(sum)
		if _, err := connection.Write(request); err != nil {
			return err
		}
		if err := connection.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		for answer := make([]byte, 8192); ; {
			n, _, err := connection.(*net.IPConn).ReadFrom(answer) // without the IP header
			if err != nil {
				return err
			}
			if n == len(request) && answer[0] == 0 && answer[4] == request[4] && answer[5] == request[5] {
				return nil
			}
		}
	})
}

func TestAGuardedPortLetsInWhatItsRulesSayAndAnswersToWhatItSent(t *testing.T) {
	f, config := start(t)
	w, other := newWorld(config.External, 1), newWorld(config.External, 2)
	for _, one := range []world{w, other} { // the second with the same addresses, of another project, and open
		one.apply(t, f)
		one.configure(t, f)
	}
	namespace := func(i int) string { return f.ServerNamespace(w.ports[i].ServerID) }
	opened, closed := echoes(t, namespace(0), w.fixed[0].Addr(), 0), echoes(t, namespace(0), w.fixed[0].Addr(), 0)
	second := echoes(t, namespace(1), w.fixed[1].Addr(), 0)
	theirs := echoes(t, f.ServerNamespace(other.ports[0].ServerID), other.fixed[0].Addr(), closed)
	require.Equal(t, closed, theirs)

	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0, tcp(opened)), w.guard(1)}))
	open(t, namespace(1), w.fixed[0].Addr(), opened).hears(t, "from the neighbour")
	open(t, namespace(2), w.fixed[0].Addr(), opened).hears(t, "from the other network")
	open(t, namespace(0), w.fixed[2].Addr(), echoes(t, namespace(2), w.fixed[2].Addr(), 0)).hears(t, "an answer comes back")
	silent(t, namespace(1), w.fixed[0].Addr(), closed, "a port that is not opened")
	silent(t, namespace(2), w.fixed[0].Addr(), closed, "a port that is not opened, from another network")
	silent(t, namespace(0), w.fixed[1].Addr(), second, "a server without rules")
	_, err := call("", w.router.FloatingIPs[0].Floating, closed)
	require.Error(t, err, "a port that is not opened, by the floating address")
	open(t, f.ServerNamespace(other.ports[1].ServerID), other.fixed[0].Addr(), theirs).hears(t, "others have rules of their own")

	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{
		w.guard(0, fabric.Match{Remote: []netip.Prefix{netip.PrefixFrom(w.fixed[2].Addr(), 32)}}), w.guard(1),
	}))
	open(t, namespace(2), w.fixed[0].Addr(), closed).hears(t, "who is named")
	silent(t, namespace(1), w.fixed[0].Addr(), closed, "who is not named")

	mute := w.guard(1)
	mute.Egress = nil
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0, anything...), mute}))
	silent(t, namespace(1), w.fixed[0].Addr(), opened, "who may send nothing")
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0), w.guard(1)}))
	silent(t, namespace(1), w.fixed[0].Addr(), opened, "nothing is open")
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], nil))
	open(t, namespace(1), w.fixed[0].Addr(), closed).hears(t, "not guarded any more")
}

func TestConnectionsOutliveTheRulesAndTheProcess(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	w.configure(t, f)
	namespace := func(i int) string { return f.ServerNamespace(w.ports[i].ServerID) }
	port := echoes(t, namespace(0), w.fixed[0].Addr(), 0)
	rules := []fabric.Guard{w.guard(0, tcp(port)), w.guard(1)}
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], rules))
	inward := open(t, namespace(1), w.fixed[0].Addr(), port)
	inward.hears(t, "before")

	again, err := fabric.New(config) // the process was killed
	require.NoError(t, err)
	require.NoError(t, again.ApplyGuards(t.Context(), w.networks[0], rules))
	inward.hears(t, "after a restart")
	open(t, namespace(1), w.fixed[0].Addr(), port).hears(t, "a new one")

	require.NoError(t, again.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0), w.guard(1)}))
	inward.hears(t, "after the rule is gone")
	silent(t, namespace(1), w.fixed[0].Addr(), port, "a new one")

	// One side has finished sending and receives the rest.
	require.NoError(t, inward.Conn.(*net.TCPConn).CloseWrite())
	_, err = inward.lines.ReadString('\n')
	require.ErrorIs(t, err, io.EOF)
	silent(t, namespace(1), w.fixed[0].Addr(), port, "a new one when the old one is over")
}

func TestPingsAndFragmentsFollowTheRules(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	w.configure(t, f)
	namespace := func(i int) string { return f.ServerNamespace(w.ports[i].ServerID) }
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0, fabric.Match{Protocol: 1, ICMP: []uint8{8, 0}}), w.guard(1)}))
	const large = 4000 // three packets of 1450
	require.NoError(t, ping(namespace(1), w.fixed[0].Addr(), 56, patiently))
	require.NoError(t, ping(namespace(1), w.fixed[0].Addr(), large, patiently))
	require.NoError(t, ping(namespace(1), w.fixed[2].Addr(), large, patiently), "an unguarded one answers")
	require.Error(t, ping(namespace(0), w.fixed[1].Addr(), 56, shortly))
	require.Error(t, ping(namespace(0), w.fixed[1].Addr(), large, shortly))

	// A large datagram in both directions.
	var server net.PacketConn
	require.NoError(t, fabric.AsNamespace(namespace(0), func() (err error) {
		server, err = net.ListenPacket("udp4", net.JoinHostPort(w.fixed[0].Addr().String(), "5353"))
		return err
	}))
	defer server.Close()
	go func() {
		buffer := make([]byte, 8192)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buffer[:n], from)
		}
	}()
	ask := func(limit time.Duration) (n int, err error) {
		return n, fabric.AsNamespace(namespace(1), func() error {
			connection, err := net.Dial("udp4", net.JoinHostPort(w.fixed[0].Addr().String(), "5353"))
			if err != nil {
				return err
			}
			defer connection.Close()
			if _, err := connection.Write(make([]byte, large)); err != nil {
				return err
			}
			if err := connection.SetReadDeadline(time.Now().Add(limit)); err != nil {
				return err
			}
			n, err = connection.Read(make([]byte, 8192))
			return err
		})
	}
	_, err := ask(shortly)
	require.Error(t, err)
	require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0, fabric.Match{Protocol: 17, Ports: [2]uint16{5000, 6000}}), w.guard(1)}))
	n, err := ask(patiently)
	require.NoError(t, err)
	require.Equal(t, large, n)
}

func TestAServerSpeaksAsItselfOnly(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	w.configure(t, f)
	namespace := func(i int) string { return f.ServerNamespace(w.ports[i].ServerID) }
	port := echoes(t, namespace(0), w.fixed[0].Addr(), 0)
	apply := func(guard fabric.Guard) {
		require.NoError(t, f.ApplyGuards(t.Context(), w.networks[0], []fabric.Guard{w.guard(0, anything...), guard}))
	}
	change := func(work func(link netlink.Link) error) {
		t.Helper()
		require.NoError(t, fabric.AsNamespace(namespace(1), func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return work(link)
		}))
	}
	foreign := netip.MustParsePrefix("172.30.0.77/24")
	address := &netlink.Addr{IPNet: &net.IPNet{IP: foreign.Addr().AsSlice(), Mask: net.CIDRMask(24, 32)}}
	from := func(limit time.Duration) error {
		return fabric.AsNamespace(namespace(1), func() error {
			dialer := net.Dialer{Timeout: limit, LocalAddr: &net.TCPAddr{IP: foreign.Addr().AsSlice()}}
			connection, err := dialer.Dial("tcp4", net.JoinHostPort(w.fixed[0].Addr().String(), fmt.Sprint(port)))
			if err == nil {
				_ = connection.Close()
			}
			return err
		})
	}
	apply(w.guard(1))
	open(t, namespace(1), w.fixed[0].Addr(), port).hears(t, "as itself")
	change(func(link netlink.Link) error { return netlink.AddrAdd(link, address) })
	require.Error(t, from(shortly), "another IP address")

	pair := w.guard(1)
	pair.Allowed[0].Addresses = append(pair.Allowed[0].Addresses, foreign.Masked())
	apply(pair)
	require.NoError(t, from(patiently), "an address that the port is allowed to use too")

	apply(w.guard(1))
	mac, err := net.ParseMAC("fa:16:3e:00:00:99")
	require.NoError(t, err)
	change(func(link netlink.Link) error { return netlink.LinkSetHardwareAddr(link, mac) })
	silent(t, namespace(1), w.fixed[0].Addr(), port, "another MAC address")
}

func TestAPortOfTheExternalNetworkIsGuardedToo(t *testing.T) {
	f, config := start(t)
	w := newWorld(config.External, 1)
	w.apply(t, f)
	outside := w.router.Gateway.Network
	address := netip.PrefixFrom(config.External.Addr().Next().Next(), config.External.Bits())
	port := fabric.Port{ID: "01bb0077", Network: outside, ServerID: "01cc0077", Device: "eth0", MAC: fabric.MAC("external", address.Addr()).String()}
	namespace, err := f.ApplyServer(t.Context(), port.ServerID)
	require.NoError(t, err)
	guard := fabric.Guard{PortID: port.ID, Allowed: []fabric.Source{{MAC: port.MAC, Addresses: []netip.Prefix{netip.PrefixFrom(address.Addr(), 32)}}}, Egress: anything}
	require.NoError(t, f.ApplyGuards(t.Context(), outside, []fabric.Guard{guard}))
	require.NoError(t, f.Plug(t.Context(), port))
	require.NoError(t, fabric.AsNamespace(namespace, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}})
	}))
	listens := echoes(t, namespace, address.Addr(), 0)
	_, err = net.DialTimeout("tcp4", net.JoinHostPort(address.Addr().String(), fmt.Sprint(listens)), shortly)
	require.Error(t, err, "the host is outside too")
	_, err = call(namespace, f.HostAddress(), serve(t, "", f.HostAddress()))
	require.NoError(t, err)
	guard.Ingress = anything
	require.NoError(t, f.ApplyGuards(t.Context(), outside, []fabric.Guard{guard}))
	connection, err := net.DialTimeout("tcp4", net.JoinHostPort(address.Addr().String(), fmt.Sprint(listens)), patiently)
	require.NoError(t, err)
	require.NoError(t, connection.Close())

	require.NoError(t, f.DeleteAll(context.Background()))
	tables, err := exec.Command("nft", "list", "tables").Output()
	require.NoError(t, err)
	require.NotContains(t, string(tables), config.Prefix)
}

func TestTheRulesOfGuardedPortsAreThese(t *testing.T) {
	w := newWorld(netip.MustParsePrefix("10.88.0.0/24"), 1)
	web := w.guard(0, tcp(80), fabric.Match{Protocol: 1, ICMP: []uint8{8}}, fabric.Match{Remote: []netip.Prefix{w.fixed[0].Masked(), netip.PrefixFrom(w.fixed[1].Addr(), 32)}})
	web.Allowed[0].Addresses = append(web.Allowed[0].Addresses, netip.MustParsePrefix("10.244.0.0/16"))
	compare := func(name string) {
		t.Helper()
		got := fabric.GuardRules("burano", fabric.PlugName, []fabric.Guard{w.guard(1), web})
		require.Equal(t, got, fabric.GuardRules("burano", fabric.PlugName, []fabric.Guard{web, w.guard(1)}))
		golden := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), got)
		require.NotRegexp(t, "[A-Z]{3}", got, "everything is filled in")
	}
	compare("guards.nft")
	web.Allowed[0].Addresses = append(web.Allowed[0].Addresses, netip.MustParsePrefix("fd00:10::2/128"), netip.MustParsePrefix("fd00:244::/56"))
	web.Ingress = append(web.Ingress, fabric.Match{IPv6: true, Protocol: 58, ICMP: []uint8{128}}, fabric.Match{IPv6: true, Protocol: 6, Ports: [2]uint16{80, 80}, Remote: []netip.Prefix{netip.MustParsePrefix("fd00:10::/64")}})
	compare("guards6.nft")
}
