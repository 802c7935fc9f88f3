package haproxy

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/route"
)

func TestDrainingBackendsServeOnlyWhenNobodyElseDoes(t *testing.T) {
	one, two := route.Backend{Address: "10.0.0.1", Port: 80, Draining: true}, route.Backend{Address: "10.0.0.2", Port: 80, Ready: true}
	gone := route.Backend{Address: "10.0.0.3", Port: 80}
	require.Equal(t, []server{{"10.0.0.1-80", netip.MustParseAddrPort("10.0.0.1:80"), draining}, {"10.0.0.2-80", netip.MustParseAddrPort("10.0.0.2:80"), ready}},
		serversOf([]route.Backend{two, one, gone}, false))
	require.Equal(t, []server{{"10.0.0.1-80", netip.MustParseAddrPort("10.0.0.1:80"), ready}}, serversOf([]route.Backend{one, gone}, false))
	require.Equal(t, []server{{"fd00::1-80", netip.MustParseAddrPort("[fd00::1]:80"), ready}}, serversOf([]route.Backend{{Address: "fd00::1", Port: 80, Ready: true}}, false))
	require.Empty(t, serversOf(nil, false))
}

func TestServersFollowAnyHistoryOfBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anyBackends := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) route.Backend {
			ready := rapid.Bool().Draw(t, "ready")
			return route.Backend{
				Address: netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 30).Draw(t, "address")}).String(), Port: 80,
				Ready: ready, Draining: !ready && rapid.Bool().Draw(t, "draining"),
			}
		}), 0, 25, func(b route.Backend) string { return b.Address })
		// A former release left places, some of them twice for the same address.
		var now []server
		for range rapid.IntRange(0, 8).Draw(t, "places") {
			address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 5).Draw(t, "address")}), 80)
			s := server{Name: "s" + string(rune('1'+len(now))), Address: address, State: rapid.SampledFrom([]state{ready, draining, leaving}).Draw(t, "state")}
			if s.State != leaving && slices.ContainsFunc(now, func(other server) bool { return other.Address == address && other.State != leaving }) {
				s.State = leaving
			}
			now = append(now, s)
		}
		slices.SortFunc(now, compareServers)

		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			wanted := serversOf(anyBackends.Draw(t, "next"), false)
			before := slices.Clone(now)
			// The commands, one after the other, lead from the one to the other, and never leave fewer servers than the smaller of both.
			atLeast := min(countOf(now, ready), countOf(wanted, ready))
			for _, c := range changes(now, listener{Section: "port-80", Servers: wanted}) {
				there := slices.ContainsFunc(now, func(s server) bool { return s.Name == c.Server.Name })
				require.Equal(t, c.New, !there, "who is there is not added, and nobody else is changed")
				now = changed(now, c)
				require.GreaterOrEqual(t, countOf(now, ready), atLeast)
				require.True(t, slices.IsSortedFunc(now, compareServers))
			}
			var serving []server
			for _, s := range now {
				if s.State != leaving {
					serving = append(serving, server{serverName(s.Address), s.Address, s.State})
				}
			}
			require.Equal(t, len(wanted), len(serving))
			require.ElementsMatch(t, wanted, serving, "each wanted one serves, and nobody else does")
			for _, s := range before {
				require.True(t, slices.ContainsFunc(now, func(after server) bool { return after.Name == s.Name && after.Address == s.Address }), "nobody goes at once, or moves")
			}
			require.Empty(t, changes(now, listener{Servers: wanted}), "what is as wanted is left alone")
			for _, s := range slices.Clone(now) {
				if s.State == leaving && rapid.Bool().Draw(t, "its last connection ends") {
					now = without(now, s.Name)
				}
			}
		}
	})
}

func countOf(servers []server, wanted state) (n int) {
	for _, s := range servers {
		if s.State == wanted {
			n++
		}
	}
	return n
}
