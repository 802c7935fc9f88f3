// Package route is the agreement between publishers and gateways: a route is one port of the gateways and the backends behind it, stored as one key in
// etcd.
//
// The layout under [Prefix]:
//
//	/burano/v1/routes/tcp/<gateway port>                    one JSON document, see [Encode]
//	/burano/v1/routes/udp/<gateway port>                    one JSON document, see [EncodeUDP]
//	/burano/v1/routes/http/…                                sites by host name and path, see [EncodePart]
//	/burano/v1/gateways/<name of the node>                  one JSON document, see [EncodeGateway]
//	/burano/v1/keys/<gateway>                               the public key for its certificates, see [EncodeKey]
//	/burano/v1/certificates/<gateway>/<namespace>/<secret>  a certificate with its key, sealed, see [EncodeSealed]
//
// The gateway port is the key, so that two services can never hold the same port at the same time. Other kinds of routes get folders of their own
// beside "tcp"; readers ignore unknown keys.
package route

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefix begins all keys of the gateways in etcd. The publisher may read and write below it; a gateway may read, and write below KeysPrefix.
const Prefix = "/burano/v1/"

// RoutesPrefix is where TCP routes are.
const RoutesPrefix = Prefix + "routes/tcp/"

// TCP is the protocol of routes.
const TCP = "TCP"

// Version is the version of the JSON document. A reader ignores fields that it does not know; the number changes only when an
// older reader would do harm.
const Version = 1

// The greatest limits that a route may have.
const (
	MaxIdle        = 7 * 24 * time.Hour
	MaxConnections = 1_000_000
	MaxAffinity    = 24 * time.Hour // that of Kubernetes
)

// Route is one port of the gateways and its backends.
type Route struct {
	Namespace   string    // of the Kubernetes Service
	Service     string    // name of the Kubernetes Service
	Port        string    // of the Service: its name, or its number when it has none
	GatewayPort uint16    // where the gateways listen
	Protocol    string    // "TCP"
	Backends    []Backend // may be empty
	// Sources are the allowed ranges of clients; empty: all. A gateway of an earlier release admits all clients.
	Sources []netip.Prefix
	// Idle is how long a connection may be silent, in whole seconds; 0: as long as gateways let it by themselves.
	Idle time.Duration
	// Connections is how many connections each gateway lets be open at a time, ClientConnections how many of them may be of one address;
	// 0: as many as gateways let by themselves.
	Connections, ClientConnections int
	// AcceptProxy means that the client is a balancer, which names the origin of a connection by the PROXY protocol (version 1 or 2). SendProxy means that
	// the backends get the origin (version 2): https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt. A gateway of an earlier release does neither.
	AcceptProxy, SendProxy bool
	// Affinity is how long after a connection the next one of the same client goes to the same backend, in whole seconds; 0: wherever there is room. A
	// gateway of an earlier release spreads connections all the same.
	Affinity time.Duration
	Since    time.Time // creation of the Service: the older one keeps a contested port
}

// Backend is one endpoint behind a route: a pod's address and port.
type Backend struct {
	Address  string `json:"address"` // IP address
	Port     uint16 `json:"port"`
	Node     string `json:"node,omitempty"`     // Kubernetes node it runs on, may be empty
	Ready    bool   `json:"ready"`              // takes new connections
	Draining bool   `json:"draining,omitempty"` // terminating: keeps its connections
}

// document is a Route as it is written.
type document struct {
	Version     int            `json:"version"`
	Namespace   string         `json:"namespace"`
	Service     string         `json:"service"`
	Port        string         `json:"port"`
	GatewayPort uint16         `json:"gatewayPort"`
	Protocol    string         `json:"protocol"`
	Since       time.Time      `json:"since"`
	Sources     []netip.Prefix `json:"sources,omitempty"`
	Idle        int64          `json:"idleSeconds,omitempty"`
	Connections int            `json:"connections,omitempty"`
	PerClient   int            `json:"connectionsPerClient,omitempty"`
	AcceptProxy bool           `json:"acceptProxy,omitempty"`
	SendProxy   bool           `json:"sendProxy,omitempty"`
	Affinity    int64          `json:"affinitySeconds,omitempty"`
	Backends    []Backend      `json:"backends"`
}

// Key is the route's key in etcd.
func Key(r Route) string { return RoutesPrefix + strconv.Itoa(int(r.GatewayPort)) }

// String names the route as people do: namespace/service:port.
func (r Route) String() string { return r.Namespace + "/" + r.Service + ":" + r.Port }

// Equal reports whether two routes are the same, down to the order of their backends.
func (r Route) Equal(other Route) bool {
	return r.Namespace == other.Namespace && r.Service == other.Service && r.Port == other.Port && r.GatewayPort == other.GatewayPort && r.Protocol == other.Protocol &&
		slices.Equal(r.Sources, other.Sources) && r.Idle == other.Idle && r.Connections == other.Connections && r.ClientConnections == other.ClientConnections &&
		r.AcceptProxy == other.AcceptProxy && r.SendProxy == other.SendProxy && r.Affinity == other.Affinity && r.Since.Equal(other.Since) && slices.Equal(r.Backends, other.Backends)
}

// Validate returns the fault of a route, or nil.
func (r Route) Validate() error {
	var problems []error
	for _, part := range [][2]string{{"namespace", r.Namespace}, {"service", r.Service}, {"port", r.Port}} {
		if len(part[1]) > MaxHost || !nameForm.MatchString(part[1]) {
			problems = append(problems, fmt.Errorf("%s %.300q is not a name", part[0], part[1]))
		}
	}
	if r.Protocol != TCP {
		problems = append(problems, fmt.Errorf("protocol %q is not published, only %s is", r.Protocol, TCP))
	}
	if r.GatewayPort == 0 {
		problems = append(problems, errors.New("the gateway port must be 1 to 65535"))
	}
	if purpose, reserved := Reserved(r.GatewayPort); reserved {
		problems = append(problems, fmt.Errorf("gateway port %d is reserved for %s", r.GatewayPort, purpose))
	}
	for _, source := range r.Sources {
		if !source.IsValid() {
			problems = append(problems, errors.New("one of the networks of clients is none"))
		}
	}
	if r.Idle < 0 || r.Idle > MaxIdle || r.Idle%time.Second != 0 {
		problems = append(problems, fmt.Errorf("connections may be silent for whole seconds, at most %s, and not %s", MaxIdle, r.Idle))
	}
	if r.Connections < 0 || r.ClientConnections < 0 || max(r.Connections, r.ClientConnections) > MaxConnections {
		problems = append(problems, fmt.Errorf("limits of connections are 1 to %d", MaxConnections))
	}
	if err := validAffinity(r.Affinity); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(append(problems, validBackends(r.Backends)...)...)
}

func validAffinity(affinity time.Duration) error {
	if affinity < 0 || affinity > MaxAffinity || affinity%time.Second != 0 {
		return fmt.Errorf("clients keep their backend for whole seconds, at most %s, and not %s", MaxAffinity, affinity)
	}
	return nil
}

func validBackends(backends []Backend) (problems []error) {
	seen := make(map[netip.AddrPort]bool, len(backends))
	for i, b := range backends {
		address, err := netip.ParseAddr(b.Address)
		switch endpoint := netip.AddrPortFrom(address, b.Port); {
		case err != nil || address.Zone() != "":
			problems = append(problems, fmt.Errorf("backends[%d]: address %q is not an IP address", i, b.Address))
		case b.Port == 0:
			problems = append(problems, fmt.Errorf("backends[%d]: the port must be 1 to 65535", i))
		case seen[endpoint]:
			problems = append(problems, fmt.Errorf("backends[%d]: %s is there twice", i, endpoint))
		default:
			seen[endpoint] = true
		}
	}
	return problems
}

// Encode gives the route's value in etcd: a JSON document with the backends in the order of their addresses, so that equal
// routes are equal bytes.
func Encode(r Route) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("encode route %s: %w", r, err)
	}
	d := document{
		Version: Version, Namespace: r.Namespace, Service: r.Service, Port: r.Port, GatewayPort: r.GatewayPort,
		Protocol: r.Protocol, Since: r.Since.UTC(), Backends: sorted(r.Backends), Sources: normal(r.Sources),
		Idle: int64(r.Idle / time.Second), Connections: r.Connections, PerClient: r.ClientConnections,
		AcceptProxy: r.AcceptProxy, SendProxy: r.SendProxy, Affinity: int64(r.Affinity / time.Second),
	}
	value, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode route %s: %w", r, err)
	}
	return value, nil
}

// Decode reads a key and its value back. Any other value (another folder's key, another version, a value that contradicts its key) is an error that names
// the key; a reader logs it and continues with the others.
func Decode(key string, value []byte) (Route, error) {
	number, ok := strings.CutPrefix(key, RoutesPrefix)
	if !ok {
		return Route{}, fmt.Errorf("decode %q: not a route's key, which begins with %s", key, RoutesPrefix)
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || strconv.FormatUint(port, 10) != number {
		return Route{}, fmt.Errorf("decode %q: the key does not end with a port", key)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(value, &version); err != nil {
		return Route{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if version.Version != Version {
		return Route{}, fmt.Errorf("decode %q: version %d of the route document is not understood, only %d is; is this gateway older than the publisher?", key, version.Version, Version)
	}
	var d document
	if err := json.NewDecoder(bytes.NewReader(value)).Decode(&d); err != nil {
		return Route{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if d.GatewayPort != uint16(port) {
		return Route{}, fmt.Errorf("decode %q: the value is about gateway port %d", key, d.GatewayPort)
	}
	r := Route{
		Namespace: d.Namespace, Service: d.Service, Port: d.Port, GatewayPort: d.GatewayPort,
		Protocol: d.Protocol, Since: d.Since.UTC(), Backends: append([]Backend{}, d.Backends...), Sources: normal(d.Sources),
		Idle: time.Duration(d.Idle) * time.Second, Connections: d.Connections, ClientConnections: d.PerClient,
		AcceptProxy: d.AcceptProxy, SendProxy: d.SendProxy, Affinity: time.Duration(d.Affinity) * time.Second,
	}
	if err := r.Validate(); err != nil {
		return Route{}, fmt.Errorf("decode %q: %w", key, err)
	}
	return r, nil
}

// normal gives each network once, without the bits behind its length, in order.
func normal(networks []netip.Prefix) []netip.Prefix {
	if len(networks) == 0 {
		return nil
	}
	masked := make([]netip.Prefix, len(networks))
	for i, network := range networks {
		masked[i] = network.Masked()
	}
	slices.SortFunc(masked, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(masked)
}

func sorted(backends []Backend) []Backend {
	list := append([]Backend{}, backends...)
	slices.SortFunc(list, compareBackends)
	return list
}

func compareBackends(a, b Backend) int {
	x, errX := netip.ParseAddr(a.Address)
	y, errY := netip.ParseAddr(b.Address)
	if errX == nil && errY == nil {
		if c := x.Compare(y); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
}
