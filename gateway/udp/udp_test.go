package udp_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/nettest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/udp"
)

// room has network namespaces of its own: a gateway with the addresses 198.51.100.1 and fd00:1::1, a client and two machines with backends. A machine knows
// the way to the gateway only, as a pod does whose answers come back through the gateway that masked the client.
type room struct {
	names map[string]string
	table *udp.Table
}

func newRoom(t *testing.T) *room {
	r := &room{names: make(map[string]string)}
	for _, name := range []string{"gateway", "client", "a", "b"} {
		r.names[name] = fmt.Sprintf("budp%d%s", os.Getpid(), name)
		nettest.IP(t, "netns", "add", r.names[name])
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", r.names[name]).Run() })
		nettest.IP(t, "-n", r.names[name], "link", "set", "lo", "up")
	}
	for i, name := range []string{"client", "a", "b"} {
		link := fmt.Sprintf("to-%s", name)
		nettest.IP(t, "-n", r.names["gateway"], "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", r.names[name])
		four, six := "198.51.100.%d/24", "fd00:1::%d/64"
		if i > 0 {
			four, six = fmt.Sprintf("10.5.%d.%%d/24", i), fmt.Sprintf("fd00:5:%d::%%d/64", i)
		}
		for end, side := range map[string]int{"gateway": 1, name: 2} {
			device := "eth0"
			if end == "gateway" {
				device = link
			}
			nettest.IP(t, "-n", r.names[end], "address", "add", fmt.Sprintf(four, side), "dev", device)
			nettest.IP(t, "-n", r.names[end], "address", "add", fmt.Sprintf(six, side), "dev", device, "nodad")
			nettest.IP(t, "-n", r.names[end], "link", "set", device, "up")
		}
	}
	space, err := netns.GetFromName(r.names["gateway"])
	require.NoError(t, err)
	defer space.Close()
	handle, err := netlink.NewHandleAt(space, unix.NETLINK_NETFILTER, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	t.Cleanup(handle.Close)
	for _, file := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
		nettest.IP(t, "netns", "exec", r.names["gateway"], "sh", "-c", "echo 1 > /proc/sys/"+file)
	}
	r.reachable(t, "client", four, six)
	r.reachable(t, "a", "10.5.1.1:9", "[fd00:5:1::1]:9")
	r.reachable(t, "b", "10.5.2.1:9", "[fd00:5:2::1]:9")
	r.table = r.newTable(handle)
	return r
}

// reachable waits until the gateway refuses a machine's datagrams to closed ports: addresses of IPv6 may take a second or more before they serve.
func (r *room) reachable(t *testing.T, machine string, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var err error
			r.inside(t, machine, func() {
				var connection net.Conn
				if connection, err = net.Dial("udp", address); err == nil {
					defer connection.Close()
					_, _ = connection.Write([]byte("?"))
					_ = connection.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
					_, err = connection.Read(make([]byte, 1))
				}
			})
			require.ErrorIs(c, err, syscall.ECONNREFUSED, "%s to %s", machine, address)
		}, 20*time.Second, 10*time.Millisecond)
	}
}

func (r *room) newTable(handle *netlink.Handle) *udp.Table {
	return udp.New(udp.Config{Command: []string{"ip", "netns", "exec", r.names["gateway"], "nft"}, Tracking: udp.TrackingOf(handle), Forward: []string{}})
}

// inside runs do in the namespace of a machine.
func (r *room) inside(t *testing.T, name string, do func()) {
	t.Helper()
	nettest.Inside(t, r.names[name], do)
}

// answer lets a machine answer each datagram with its name and the address that it saw.
func (r *room) answer(t *testing.T, machine, address string) {
	t.Helper()
	var socket net.PacketConn
	var err error
	r.inside(t, machine, func() { socket, err = net.ListenPacket("udp", address) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		buffer := make([]byte, 64)
		for {
			_, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(from.String())
			_, _ = socket.WriteTo([]byte(machine+" "+host), from)
		}
	}()
}

// flow is a client's socket.
func (r *room) flow(t *testing.T, to string) net.Conn {
	t.Helper()
	var connection net.Conn
	var err error
	r.inside(t, "client", func() { connection, err = net.Dial("udp", to) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// ask sends a datagram and returns its answer; "" when none comes for a long time, which a busy machine may need.
func ask(connection net.Conn) string { return askFor(10*time.Second, connection) }

// unanswered is ask for a datagram that has no answer.
func unanswered(connection net.Conn) string { return askFor(300*time.Millisecond, connection) }

func askFor(patience time.Duration, connection net.Conn) string {
	_, _ = connection.Write([]byte("?"))
	_ = connection.SetReadDeadline(time.Now().Add(patience))
	buffer := make([]byte, 64)
	n, err := connection.Read(buffer)
	if err != nil {
		return ""
	}
	return string(buffer[:n])
}

const (
	four = "198.51.100.1:5300"
	six  = "[fd00:1::1]:5300"
)

func ready(address string) route.Backend {
	return route.Backend{Address: address, Port: 53, Ready: true}
}

func draining(address string) route.Backend {
	return route.Backend{Address: address, Port: 53, Draining: true}
}

func to(number uint16, targets ...route.UDPTarget) udp.Port {
	return udp.Port{Number: number, Flow: route.Flow{Kind: route.KindService, Namespace: "default", Name: "dns", ServicePort: "dns", Targets: targets}}
}

func over(weight int, backends ...route.Backend) route.UDPTarget {
	return route.UDPTarget{Weight: weight, Backends: backends}
}

func (r *room) apply(t *testing.T, ports ...udp.Port) {
	t.Helper()
	require.NoError(t, r.table.Apply(t.Context(), ports, false))
}

func TestDatagramsReachBackendsByBothFamilies(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	r.answer(t, "b", ":53")
	early := r.flow(t, four)
	require.Empty(t, unanswered(early), "nothing is published")
	r.apply(t, to(5300, over(1, ready("10.5.1.2"), ready("fd00:5:1::2"))))
	require.Equal(t, "a 10.5.1.1", ask(early), "a client that was refused before its port came is served now")
	require.Equal(t, "a fd00:5:1::1", ask(r.flow(t, six)))
	require.Empty(t, unanswered(r.flow(t, "198.51.100.1:5301")), "another port")

	r.apply(t, to(5300, over(1, ready("10.5.1.2"), ready("10.5.2.2"))))
	counts := map[string]int{}
	for range 60 {
		counts[ask(r.flow(t, four))]++
	}
	require.Len(t, counts, 2, "both backends, and nothing lost: %v", counts)
	require.Greater(t, min(counts["a 10.5.1.1"], counts["b 10.5.2.1"]), 10, "%v", counts)
	require.Empty(t, unanswered(r.flow(t, six)), "no backend of IPv6")
	require.Equal(t, "a 10.5.1.1", ask(early), "its flow stays")

	list, err := r.table.Published(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	l := list[0].Listener
	require.EqualValues(t, 61, l.Connections)
	require.GreaterOrEqual(t, l.ConnectionsTotal, int64(63))
	require.Positive(t, l.BytesIn)
	require.Greater(t, l.BytesOut, l.BytesIn)
	require.Len(t, l.Backends, 2)
	require.EqualValues(t, 61, l.Backends[0].Connections+l.Backends[1].Connections)
	require.Equal(t, "up", l.Backends[0].State)
}

func TestFlowsFollowTheirWeights(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	r.answer(t, "b", ":53")
	r.apply(t, to(5300, over(3, ready("10.5.1.2")), over(1, ready("10.5.2.2")), over(0, ready("10.5.2.3"))))
	counts := map[string]int{}
	for range 400 {
		counts[ask(r.flow(t, four))]++
	}
	require.Empty(t, counts[""])
	require.InDelta(t, 300, counts["a 10.5.1.1"], 45, "%v", counts)

	r.apply(t, to(5300, over(1, ready("10.5.1.2")), over(1)))
	lost := 0
	for range 20 {
		if unanswered(r.flow(t, four)) == "" {
			lost++
		}
	}
	require.Positive(t, lost, "the share without a backend is refused")
	require.Less(t, lost, 20)
}

func TestADrainingBackendKeepsItsFlowsAndAnEndedOneLosesThem(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	r.answer(t, "b", ":53")
	r.apply(t, to(5300, over(1, ready("10.5.1.2"))))
	old := r.flow(t, four)
	require.Equal(t, "a 10.5.1.1", ask(old))
	r.apply(t, to(5300, over(1, draining("10.5.1.2"), ready("10.5.2.2"))))
	for range 10 {
		require.Equal(t, "b 10.5.2.1", ask(r.flow(t, four)), "no new flow")
	}
	require.Equal(t, "a 10.5.1.1", ask(old))
	r.apply(t, to(5300, over(1, ready("10.5.2.2"))))
	require.Equal(t, "b 10.5.2.1", ask(old), "the client of the ended backend is not lost")
	r.apply(t)
	require.Empty(t, unanswered(old), "the port is gone, with its flows")
	require.Error(t, exec.Command("ip", "netns", "exec", r.names["gateway"], "nft", "list", "table", "inet", udp.TableName).Run(), "and the table")
}

func TestARestartedDaemonLosesNoFlowAndEndsWhatEndedMeanwhile(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	r.answer(t, "b", ":53")
	both := to(5300, over(1, ready("10.5.1.2"), ready("10.5.2.2")))
	r.apply(t, both, to(5301, over(1, ready("10.5.1.2"))))
	flows := make(map[string]net.Conn)
	for len(flows) < 2 {
		one := r.flow(t, four)
		flows[ask(one)] = one
	}
	gone := r.flow(t, "198.51.100.1:5301")
	require.NotEmpty(t, ask(gone))
	space, err := netns.GetFromName(r.names["gateway"])
	require.NoError(t, err)
	defer space.Close()
	handle, err := netlink.NewHandleAt(space, unix.NETLINK_NETFILTER, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	t.Cleanup(handle.Close)

	r.table = r.newTable(handle)
	r.apply(t, both)
	for was, flow := range flows {
		require.Equal(t, was, ask(flow))
	}
	require.Empty(t, unanswered(gone), "its port went while no daemon ran")
	list, err := r.table.Published(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, list[0].Listener.ConnectionsTotal, int64(2), "the counters go on")

	nettest.IP(t, "netns", "exec", r.names["gateway"], "nft", "delete", "table", "inet", udp.TableName)
	require.NoError(t, r.table.Apply(t.Context(), []udp.Port{both}, true))
	require.NotEmpty(t, ask(r.flow(t, four)), "a removed table is made anew")

	last := r.newTable(handle)
	require.NoError(t, last.Apply(t.Context(), nil, false))
	require.Empty(t, unanswered(r.flow(t, four)), "nor does a table stay whose ports went while no daemon ran")
}

func TestOnlyTheSourcesOfAPortAreAdmitted(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	port := to(5300, over(1, ready("10.5.1.2"), ready("fd00:5:1::2")))
	port.Sources = []netip.Prefix{netip.MustParsePrefix("198.51.100.2/32"), netip.MustParsePrefix("198.51.100.0/30"), netip.MustParsePrefix("10.0.0.0/8")}
	r.apply(t, port)
	require.NotEmpty(t, ask(r.flow(t, four)))
	require.Empty(t, unanswered(r.flow(t, six)), "ranges of IPv4 admit no client of IPv6")
	port.Sources = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("fd00:1::/64")}
	r.apply(t, port)
	require.Empty(t, unanswered(r.flow(t, four)))
	require.NotEmpty(t, ask(r.flow(t, six)))
	list, err := r.table.Published(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, list[0].Listener.Denied)
}

func TestAClientThatIsStickyKeepsItsBackend(t *testing.T) {
	r := newRoom(t)
	r.answer(t, "a", ":53")
	r.answer(t, "b", ":53")
	r.apply(t, to(5300, route.UDPTarget{Weight: 1, Sticky: true, Backends: []route.Backend{ready("10.5.1.2"), ready("10.5.2.2")}}))
	first := ask(r.flow(t, four))
	require.NotEmpty(t, first)
	for range 20 {
		require.Equal(t, first, ask(r.flow(t, four)))
	}
}

func TestAFailureOfNftIsSaidAndTriedAgain(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "nft")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'no room' >&2\nexit 1\n"), 0o755))
	table := udp.New(udp.Config{Command: []string{program}, Forward: []string{}})
	require.ErrorContains(t, table.Apply(t.Context(), []udp.Port{to(5300, over(1, ready("10.5.1.2")))}, false), "no room")
	list, err := table.Published(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// Names of objects and whatever else strangers write never get into the rules.
func TestRulesConsistOfNumbersAndAddresses(t *testing.T) {
	words := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_-]*`)
	allowed := make(map[string]bool)
	for _, word := range strings.Fields(`table inet burano-udp delete counter packets bytes chain meta l4proto udp dnat ip ip6 to jhash saddr sport mod seed map vmap goto
		drop nfproto ipv4 ipv6 name ct mark set type nat hook prerouting priority dstnat srcnat policy accept iifname lo fib daddr local dport jump arriving leaving
		postrouting status masquerade passing filter forward direction original reply new in out denied`) {
		allowed[word] = true
	}
	number := regexp.MustCompile(`-?[0-9]+`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"10.1.2.3", "fd00::1", "fe80::1%eth0; flush ruleset", "::ffff:10.0.0.1", "1.2.3.4 . 5 }\nflush ruleset"}))
		backend := rapid.Custom(func(t *rapid.T) route.Backend {
			return route.Backend{Address: text.Draw(t, "address"), Node: text.Draw(t, "node"), Port: rapid.Uint16().Draw(t, "port"), Ready: rapid.Bool().Draw(t, "ready")}
		})
		target := rapid.Custom(func(t *rapid.T) route.UDPTarget {
			return route.UDPTarget{Weight: rapid.IntRange(0, 9).Draw(t, "weight"), Sticky: rapid.Bool().Draw(t, "sticky"), Backends: rapid.SliceOfN(backend, 0, 4).Draw(t, "backends")}
		})
		p := udp.Port{Number: rapid.Uint16Min(1).Draw(t, "port"), Flow: route.Flow{
			Kind: text.Draw(t, "kind"), Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"), ServicePort: text.Draw(t, "service port"),
			Gateways: rapid.SliceOfN(text, 0, 2).Draw(t, "gateways"), Targets: rapid.SliceOfN(target, 0, 3).Draw(t, "targets"),
		}}
		rules := udp.Ruleset([]udp.Port{p})
		require.Regexp(t, `^[a-zA-Z0-9 .:;,{}&=!"/\n_-]*$`, rules)
		for _, word := range words.FindAllString(rules, -1) {
			if _, err := netip.ParseAddr(word); err == nil || regexp.MustCompile(`^[0-9a-f]+$`).MatchString(word) {
				continue // a part of an address
			}
			bare := strings.TrimSuffix(number.ReplaceAllString(word, ""), "-")
			require.True(t, allowed[word] || allowed[bare] || bare == "port" || bare == "target", "%q in\n%s", word, rules)
		}
	})
}
