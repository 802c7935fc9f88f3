package haproxy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// state is the state of a server.
type state int

const (
	leaving  state = iota // out of service, until its last connection has ended and HAProxy lets go of it
	ready                 // takes new connections
	draining              // keeps its connections, takes no new ones
)

func (s state) String() string {
	return [...]string{"leaving", "ready", "draining"}[s]
}

// server is one in a section of HAProxy, for a backend. Servers come and go at run time.
type server struct {
	// Name is given by the address, so that the file is the same whatever came before. One that HAProxy read from the file of a former release has another.
	Name    string
	Address netip.AddrPort
	State   state
}

// serverName is HAProxy's name of the server with an address, of letters, digits, dots, colons, hyphens and underscores.
func serverName(address netip.AddrPort) string {
	return fmt.Sprintf("%s-%d", address.Addr(), address.Port())
}

// compareServers orders the servers of a section by address. Of two with the same one, which a former release may have left, the one in service comes
// first.
func compareServers(a, b server) int {
	return cmp.Or(a.Address.Compare(b.Address), int(b.State-a.State), strings.Compare(a.Name, b.Name))
}

// listener is a published port, a frontend and a backend of the same name in HAProxy, or a pool, which is a backend alone.
type listener struct {
	Section string
	Port    uint16   // 0 of a pool
	About   string   // its owner, and the sum of its rules (see about)
	Servers []server // in the order of compareServers

	// The following fields are unknown for written or running listeners.
	Rules    rules
	HTTP     bool // it speaks HTTP; a port sends requests to pools then
	TLS      bool
	Check    *clientCheck            // of certificates of clients; nil: none
	Passes   bool                    // TLS sessions of some names are passed through
	Streams  bool                    // connections are passed on by the map of names
	Opens    bool                    // TLS sessions of some names are opened for backends that do not speak HTTP
	Names    bool                    // the map of names contains opened names, too, and others are refused
	Requests models.HTTPRequestRules // of a port
	Log      bool                    // its requests are written to the log
	Compress bool
	Filters  *route.Filters // of a pool
	Secure   string         // the words by which its servers are asked over TLS
	Mirrored bool           // a pool for copies of requests
}

// protocol is the word for a server of the listener that selects its protocol.
func (l listener) protocol() string {
	if l.Secure != "" {
		return l.Secure
	}
	if l.Filters != nil && l.Filters.H2C {
		return http2
	}
	if l.Rules.SendProxy {
		return sendProxy
	}
	return ""
}

// servers is how many servers all listeners have.
func servers(all map[string]listener) (sum int) {
	for _, l := range all {
		sum += len(l.Servers)
	}
	return sum
}

// serversOf returns the servers for backends. Ready ones take connections; terminating ones only when no other is left, as with kube-proxy; the others are
// left out.
//
// With affinity, terminating ones are left out, too, while others are ready: HAProxy sends its clients to a server that drains. Their connections last.
func serversOf(backends []route.Backend, affinity bool) []server {
	anyReady := slices.ContainsFunc(backends, func(b route.Backend) bool { return b.Ready })
	list := make([]server, 0, len(backends))
	for _, b := range backends {
		ip, err := netip.ParseAddr(b.Address)
		if err != nil {
			continue // Validate refuses it before
		}
		address := netip.AddrPortFrom(ip, b.Port)
		s := server{Name: serverName(address), Address: address}
		switch {
		case b.Ready, b.Draining && !anyReady:
			s.State = ready
		case b.Draining && !affinity:
			s.State = draining
		default:
			continue
		}
		list = append(list, s)
	}
	slices.SortFunc(list, compareServers)
	return list
}

// change is a change of a server of a section to the desired one.
type change struct {
	Section  string
	Server   server
	New      bool   // HAProxy does not have it
	Protocol string // of a new one, and with affinity its id
}

func (c change) String() string {
	return fmt.Sprintf("%s, %s: %s", c.Section, c.Server.Address, c.Server.State)
}

// changes lists the changes at run time from the servers of a section to the servers of the wanted listener. New servers come first and departing ones
// last, so that at no instant there are fewer servers than before or after.
func changes(are []server, wanted listener) (list []change) {
	var ids map[netip.AddrPort]string
	if wanted.hashed() {
		ids = identified(wanted.Servers)
	}
	add := func(s server, isNew bool) {
		list = append(list, change{Section: wanted.Section, Server: s, New: isNew, Protocol: ids[s.Address] + wanted.protocol()})
	}
	leave := func(s server) {
		if s.State != leaving {
			s.State = leaving
			add(s, false)
		}
	}
	i := 0
	for _, want := range wanted.Servers {
		for ; i < len(are) && are[i].Address.Compare(want.Address) < 0; i++ {
			leave(are[i])
		}
		if i == len(are) || are[i].Address != want.Address {
			add(want, true)
			continue
		}
		if are[i].State != want.State {
			want.Name = are[i].Name
			add(want, false)
		}
		i++
	}
	for ; i < len(are); i++ {
		leave(are[i])
	}
	rank := [...]int{ready: 0, draining: 1, leaving: 2}
	slices.SortStableFunc(list, func(a, b change) int { return rank[a.Server.State] - rank[b.Server.State] })
	return list
}

// changed returns the servers of a section after a change of one of them. The argument must not be used any more.
func changed(are []server, c change) []server {
	if !c.New {
		are = without(are, c.Server.Name)
	}
	at, _ := slices.BinarySearchFunc(are, c.Server, compareServers)
	return slices.Insert(are, at, c.Server)
}

// without returns the servers of a section without one. The argument must not be used any more.
func without(are []server, name string) []server {
	return slices.DeleteFunc(are, func(s server) bool { return s.Name == name })
}
