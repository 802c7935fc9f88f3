package haproxy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/route"
)

func TestDrainingBackendsServeOnlyWhenNobodyElseDoes(t *testing.T) {
	one, two := route.Backend{Address: "10.0.0.1", Port: 80, Draining: true}, route.Backend{Address: "10.0.0.2", Port: 80, Ready: true}
	gone := route.Backend{Address: "10.0.0.3", Port: 80}
	require.Equal(t, []endpoint{{netip.MustParseAddrPort("10.0.0.1:80"), draining}, {netip.MustParseAddrPort("10.0.0.2:80"), ready}},
		endpointsOf([]route.Backend{one, two, gone}))
	require.Equal(t, []endpoint{{netip.MustParseAddrPort("10.0.0.1:80"), ready}}, endpointsOf([]route.Backend{one, gone}))
	require.Empty(t, endpointsOf(nil))
}

func TestSlotsFollowAnyHistoryOfBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anyEndpoints := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) endpoint {
			return endpoint{
				Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 30).Draw(t, "address")}), 80),
				State:   rapid.SampledFrom([]state{ready, draining}).Draw(t, "state"),
			}
		}), 0, 25, func(e endpoint) netip.AddrPort { return e.Address })

		slots := newSlots(anyEndpoints.Draw(t, "first"))
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			wanted := anyEndpoints.Draw(t, "next")
			next := place(slots, wanted)

			var busy []endpoint
			for i, s := range next {
				require.Equal(t, slotName(i), s.Name)
				if s.State != free {
					busy = append(busy, endpoint{s.Address, s.State})
				}
			}
			require.ElementsMatch(t, wanted, busy, "each wanted endpoint has one slot, and nobody else has one")
			require.GreaterOrEqual(t, len(next), len(slots), "slots do not go away without a reload")
			newcomers, vacant := len(wanted), countOf(slots, free)
			for i, before := range slots {
				require.False(t, before.State != free && next[i].State != free && before.Address != next[i].Address, "nobody moves into a slot in the change in which another leaves it")
				for _, w := range wanted {
					if before.State != free && before.Address == w.Address {
						require.Equal(t, before.Address, next[i].Address, "who has a slot keeps it")
						newcomers--
					}
				}
			}
			if newcomers <= vacant {
				require.Len(t, next, len(slots), "and do not come without need")
			}

			// The commands, one after the other, lead from the one to the other, and never leave fewer servers than the smaller of both.
			now := map[string]slot{}
			for _, s := range slots {
				now[s.Name] = s
			}
			atLeast := min(count(now, ready), countOf(next[:len(slots)], ready))
			for _, c := range changes("port-80", slots, next) {
				now[c.Slot.Name] = c.Slot
				require.GreaterOrEqual(t, count(now, ready), atLeast)
			}
			for _, s := range next[:len(slots)] {
				require.Equal(t, s, now[s.Name])
			}
			require.Empty(t, changes("port-80", next, next), "what is as wanted is left alone")
			slots = next
		}
	})
}

func count(slots map[string]slot, wanted state) (n int) {
	for _, s := range slots {
		if s.State == wanted {
			n++
		}
	}
	return n
}

func countOf(slots []slot, wanted state) (n int) {
	for _, s := range slots {
		if s.State == wanted {
			n++
		}
	}
	return n
}
