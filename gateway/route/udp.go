package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// UDPPrefix is where the UDP ports of the gateways are. Gateways of releases without it do not read it.
const UDPPrefix = Prefix + "routes/udp/"

// ProtocolUDP is the protocol of claims to a UDP port, which are written as a [UDP].
const ProtocolUDP = "UDP"

// Kinds of the owners of flows.
const (
	KindService  = "Service"
	KindUDPRoute = "UDPRoute"
)

// Limits of a UDP port.
const (
	maxFlows   = 1000
	maxTargets = 64
)

// UDP is a UDP port of the gateways.
type UDP struct {
	Port  uint16    `json:"port"`
	Since time.Time `json:"since"`
	// Flows are the possible destinations. Each gateway serves the first one that is for it.
	Flows []Flow `json:"flows"`
}

// Flow is where datagrams go that arrive at a port.
type Flow struct {
	Kind      string `json:"kind"` // Service or UDPRoute
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ServicePort is that of the Service: its name, or its number when it has none; "" of a UDPRoute.
	ServicePort string `json:"servicePort,omitempty"`
	// Gateways are the only ones that serve it; none: all.
	Gateways []string `json:"gateways,omitempty"`
	// Sources are the allowed ranges of clients; none: all.
	Sources []netip.Prefix `json:"sources,omitempty"`
	Targets []UDPTarget    `json:"targets"`
}

// UDPTarget are backends with a share of the clients. The share of a target without backends is refused.
type UDPTarget struct {
	Weight   int       `json:"weight"`           // 0 to MaxWeight
	Sticky   bool      `json:"sticky,omitempty"` // all flows of a client's address go to one backend
	Backends []Backend `json:"backends"`
}

// String names the flow as people do: namespace/service:port, or namespace/route.
func (f Flow) String() string {
	if f.ServicePort == "" {
		return f.Namespace + "/" + f.Name
	}
	return f.Namespace + "/" + f.Name + ":" + f.ServicePort
}

// For is the flow that a gateway serves.
func (u UDP) For(gateway string) (f Flow, some bool) {
	if own := servedBy(gateway, u.Flows, func(f Flow) []string { return f.Gateways }); len(own) > 0 {
		return own[0], true
	}
	return Flow{}, false
}

// UDPOf is the document of a Service's claim to a UDP port.
func UDPOf(r Route) UDP {
	return UDP{Port: r.GatewayPort, Since: r.Since.UTC(), Flows: []Flow{{
		Kind: KindService, Namespace: r.Namespace, Name: r.Service, ServicePort: r.Port, Sources: normal(r.Sources),
		Targets: []UDPTarget{{Weight: 1, Sticky: r.Affinity > 0, Backends: sorted(r.Backends)}},
	}}}
}

// UDPKey is its key in etcd.
func UDPKey(u UDP) string { return UDPPrefix + strconv.Itoa(int(u.Port)) }

// Validate returns the fault of a UDP port, or nil.
func (u UDP) Validate() error {
	var problems []error
	if u.Port == 0 {
		problems = append(problems, errors.New("the port must be 1 to 65535"))
	}
	if purpose, reserved := ReservedUDP(u.Port); reserved {
		problems = append(problems, fmt.Errorf("UDP port %d is reserved for %s", u.Port, purpose))
	}
	if len(u.Flows) > maxFlows {
		problems = append(problems, fmt.Errorf("there are %d flows; a port has at most %d", len(u.Flows), maxFlows))
	}
	for _, f := range u.Flows {
		problems = append(problems, f.validate()...)
	}
	return errors.Join(problems...)
}

func (f Flow) validate() (problems []error) {
	names := append([]string{f.Namespace, f.Name}, f.Gateways...)
	if f.Kind == KindService {
		names = append(names, f.ServicePort)
	} else if f.Kind != KindUDPRoute {
		problems = append(problems, fmt.Errorf("%.300q is no kind of flows", f.Kind))
	}
	for _, name := range names {
		if len(name) > MaxHost || !nameForm.MatchString(name) {
			problems = append(problems, fmt.Errorf("%.300q is not a name", name))
		}
	}
	if len(f.Targets) > maxTargets {
		problems = append(problems, fmt.Errorf("there are %d targets; a flow has at most %d", len(f.Targets), maxTargets))
	}
	for _, source := range f.Sources {
		if !source.IsValid() {
			problems = append(problems, errors.New("one of the networks of clients is none"))
		}
	}
	for _, t := range f.Targets {
		if t.Weight < 0 || t.Weight > MaxWeight {
			problems = append(problems, fmt.Errorf("weights are 0 to %d, and not %d", MaxWeight, t.Weight))
		}
		problems = append(problems, validBackends(t.Backends)...)
	}
	return problems
}

type udpDocument struct {
	Version int `json:"version"`
	UDP
}

// EncodeUDP gives a UDP port's value in etcd: equal ports are equal bytes.
func EncodeUDP(u UDP) ([]byte, error) {
	if err := u.Validate(); err != nil {
		return nil, fmt.Errorf("encode UDP port %d: %w", u.Port, err)
	}
	u.Flows = slices.Clone(u.Flows)
	for i, f := range u.Flows {
		f.Targets = slices.Clone(f.Targets)
		for j, t := range f.Targets {
			f.Targets[j].Backends = sorted(t.Backends)
		}
		f.Sources = normal(f.Sources)
		u.Flows[i] = f
	}
	return json.Marshal(udpDocument{Version: Version, UDP: u})
}

// DecodeUDP reads a key and its value back. Any other value is an error that names the key; a reader logs it and continues with the others.
func DecodeUDP(key string, value []byte) (UDP, error) {
	number, ours := strings.CutPrefix(key, UDPPrefix)
	port, err := strconv.ParseUint(number, 10, 16)
	if !ours || err != nil || strconv.FormatUint(port, 10) != number {
		return UDP{}, fmt.Errorf("decode %q: not the key of a UDP port, which is %s and its number", key, UDPPrefix)
	}
	if err := decodeVersion(key, value); err != nil {
		return UDP{}, err
	}
	var d udpDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return UDP{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if d.Port != uint16(port) {
		return UDP{}, fmt.Errorf("decode %q: the value is about UDP port %d", key, d.Port)
	}
	if err := d.Validate(); err != nil {
		return UDP{}, fmt.Errorf("decode %q: %w", key, err)
	}
	for i, f := range d.Flows {
		d.Flows[i].Sources = normal(f.Sources)
	}
	return d.UDP, nil
}
