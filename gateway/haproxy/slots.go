package haproxy

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// state is what a slot does.
type state int

const (
	free     state = iota // nobody behind it
	ready                 // takes new connections
	draining              // keeps its connections, takes no new ones
)

func (s state) String() string {
	return [...]string{"free", "ready", "draining"}[s]
}

// endpoint is a backend as HAProxy is to treat it.
type endpoint struct {
	Address netip.AddrPort
	State   state // ready or draining
}

// slot is a place for one server in an HAProxy backend. Slots exist from a reload to the next; who stands in them changes at run time.
type slot struct {
	Name    string
	Address netip.AddrPort // meaningless when free
	State   state
}

// listener is a published port, a frontend and a backend of the same name in HAProxy, or a pool, which is a backend alone.
type listener struct {
	Section string
	Port    uint16 // 0 of a pool
	About   string // whose it is, and what tells its rules from others (see about)
	Slots   []slot

	// What follows is not known of what is written or runs.
	Rules    rules
	HTTP     bool // it speaks HTTP; a port sends requests to pools then
	TLS      bool
	Passes   bool                    // TLS sessions of some names are passed through
	Names    bool                    // the map of names has those that are opened, too, and others are refused
	Requests models.HTTPRequestRules // of a port
	Filters  *route.Filters          // of a pool
}

// places is how many slots all listeners have.
func places(all map[string]listener) (sum int) {
	for _, l := range all {
		sum += len(l.Slots)
	}
	return sum
}

// minSlots is how many servers a backend has place for without a reload, at least.
const minSlots = 8

// endpointsOf says how HAProxy is to treat backends: ready ones take connections; those on their way out only when
// nobody else is left, as kube-proxy does it too; the others are not there.
func endpointsOf(backends []route.Backend) []endpoint {
	anyReady := slices.ContainsFunc(backends, func(b route.Backend) bool { return b.Ready })
	var endpoints []endpoint
	for _, b := range backends {
		address, err := netip.ParseAddr(b.Address)
		if err != nil {
			continue // Validate refuses it before
		}
		e := endpoint{Address: netip.AddrPortFrom(address, b.Port)}
		switch {
		case b.Ready, b.Draining && !anyReady:
			e.State = ready
		case b.Draining:
			e.State = draining
		default:
			continue
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// place puts the endpoints into the slots: who has one keeps it, newcomers take those that are free, and when these do not suffice
// more are added behind (which needs a reload). A slot that somebody leaves is not given away in the same change: it would be out
// of service for a moment, when perhaps nobody else serves yet. The slots given are not changed.
func place(slots []slot, endpoints []endpoint) []slot {
	if placed(slots, endpoints) {
		return slots
	}
	next := slices.Clone(slots)
	homeless := make(map[netip.AddrPort]state, len(endpoints))
	for _, e := range endpoints {
		homeless[e.Address] = e.State
	}
	var vacant []int
	for i, s := range slots {
		stays, wanted := homeless[s.Address]
		switch {
		case s.State == free:
			vacant = append(vacant, i)
		case wanted:
			next[i].State = stays
			delete(homeless, s.Address)
		default:
			next[i] = slot{Name: s.Name}
		}
	}
	for _, e := range endpoints {
		if _, waits := homeless[e.Address]; !waits {
			continue
		}
		delete(homeless, e.Address)
		if len(vacant) == 0 {
			vacant = append(vacant, len(next))
			next = append(next, slot{Name: slotName(len(next))})
		}
		next[vacant[0]].Address, next[vacant[0]].State = e.Address, e.State
		vacant = vacant[1:]
	}
	if len(next) > len(slots) {
		for size := roomFor(len(endpoints)); len(next) < size; {
			next = append(next, slot{Name: slotName(len(next))})
		}
	}
	return next
}

// fewEndpoints are so many that each is sooner sought than listed.
const fewEndpoints = 16

// placed says that the endpoints, which are different ones, have these slots already, where that is quickly found.
func placed(slots []slot, endpoints []endpoint) bool {
	if len(endpoints) > fewEndpoints {
		return false
	}
	taken := 0
	for _, s := range slots {
		if s.State == free {
			continue
		}
		taken++
		if !slices.Contains(endpoints, endpoint{Address: s.Address, State: s.State}) {
			return false
		}
	}
	return taken == len(endpoints)
}

// newSlots are the slots of a listener that did not exist.
func newSlots(endpoints []endpoint) []slot {
	slots := make([]slot, roomFor(len(endpoints)))
	for i := range slots {
		slots[i].Name = slotName(i)
	}
	return place(slots, endpoints)
}

// roomFor gives the number of slots for n servers: a power of two with at least half of it free, so that growth seldom needs a reload.
func roomFor(n int) int {
	return max(minSlots, 1<<bits.Len(uint(max(2*n-1, 0))))
}

func slotName(i int) string { return "s" + strconv.Itoa(i+1) }

// change is one command's worth of difference between two states of a slot.
type change struct {
	Section string
	Slot    slot
	Move    bool // the slot was free before, or had another address
}

func (c change) String() string {
	if c.Slot.State == free {
		return fmt.Sprintf("%s, %s: free", c.Section, c.Slot.Name)
	}
	return fmt.Sprintf("%s, %s: %s %s", c.Section, c.Slot.Name, c.Slot.Address, c.Slot.State)
}

// changes lists what to do at run time to come from the slots that are to those wanted; slots that do not exist yet are left out.
// Newcomers come first and leavers last, so that at no instant there are fewer servers than before or after.
func changes(section string, are, wanted []slot) []change {
	if slices.Equal(are, wanted) {
		return nil
	}
	existing := make(map[string]slot, len(are))
	for _, s := range are {
		existing[s.Name] = s
	}
	var list []change
	for _, want := range wanted {
		is, exists := existing[want.Name]
		same := is.State == want.State && (want.State == free || is.Address == want.Address)
		if !exists || same {
			continue
		}
		list = append(list, change{Section: section, Slot: want, Move: want.State != free && (is.State == free || is.Address != want.Address)})
	}
	rank := [...]int{ready: 0, draining: 1, free: 2}
	slices.SortStableFunc(list, func(a, b change) int { return rank[a.Slot.State] - rank[b.Slot.State] })
	return list
}

// changedSlots are the slots of those sections that changes concern, with the changes.
func changedSlots(running map[string]listener, list []change) map[string][]slot {
	next := make(map[string][]slot)
	for _, c := range list {
		if next[c.Section] == nil {
			next[c.Section] = slices.Clone(running[c.Section].Slots)
		}
		for i, s := range next[c.Section] {
			if s.Name == c.Slot.Name {
				next[c.Section][i] = c.Slot
			}
		}
	}
	return next
}
