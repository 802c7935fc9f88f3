package publish

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"

	"github.com/burano/burano/gateway/route"
)

// Annotations of a Service for the gateways.
const (
	// AnnotationPublish is "true" to publish a Service that would not be, or "false" not to publish one that would.
	AnnotationPublish = "burano.io/publish"
	// AnnotationPort moves ports on the gateways: a number ("8080") for a Service with one published port, or for any Service the names or numbers of its
	// ports and their targets ("http=8080,https=8443"). Ports that are not named stay. With an invalid value the Service is not published: its port could
	// be any.
	AnnotationPort = "burano.io/gateway-port"
	// AnnotationInternal lists names or numbers of ports that are never published ("metrics,9090").
	AnnotationInternal = "burano.io/internal-ports"
	// AnnotationIdle is how long connections may be silent ("90s", "10m", "6h"), at most a week. Without it an hour.
	AnnotationIdle = "burano.io/idle-timeout"
	// AnnotationConnections is the maximum number of open connections of a port on each gateway, AnnotationClientConnections the maximum for one client
	// (address). Without them one port, and one client, may have seven eighths of a gateway's connections.
	AnnotationConnections       = "burano.io/max-connections"
	AnnotationClientConnections = "burano.io/max-connections-per-client"
	// AnnotationProxy passes the origin of connections on by the PROXY protocol. "send" sends it to the pods. "accept" trusts a balancer in front of the
	// gateways, which must send it then. "accept,send" does both.
	AnnotationProxy = "burano.io/proxy-protocol"
)

// Annotations of an IngressClass of the gateways, besides "accept" of [AnnotationProxy]. They apply to all HTTP ports of the gateways, since Ingresses and
// Gateways share them.
const (
	// AnnotationAccessLog is "json" to have each request written to HAProxy's log.
	AnnotationAccessLog = "burano.io/access-log"
	// AnnotationCompression is "gzip" to compress texts for clients that accept it.
	AnnotationCompression = "burano.io/compression"
)

// optionsOf reads the annotations of the gateways' classes; invalid ones are ignored.
func optionsOf(classes []*networking.IngressClass) (o route.HTTPOptions, complaints []Complaint) {
	for _, class := range classes {
		if class.Spec.Controller != Controller {
			continue
		}
		for _, one := range []struct {
			name, value string
			option      *bool
		}{{AnnotationProxy, "accept", &o.AcceptProxy}, {AnnotationAccessLog, "json", &o.AccessLog}, {AnnotationCompression, "gzip", &o.Compress}} {
			switch text, said := class.Annotations[one.name]; {
			case said && text == one.value:
				*one.option = true
			case said:
				complaints = append(complaints, Complaint{Kind: kindClass, Name: class.Name, UID: class.UID, Reason: ReasonAnnotation,
					Message: fmt.Sprintf("the annotation %s of an IngressClass must be %q, not %q; it is not heeded", one.name, one.value, text)})
			}
		}
	}
	return o, complaints
}

type wish int

const (
	unsaid wish = iota
	yes
	no
)

func publishWish(annotations map[string]string) (wish, error) {
	return truth(annotations, AnnotationPublish)
}

// truth reads an annotation that is "true" or "false".
func truth(annotations map[string]string, name string) (wish, error) {
	text, said := annotations[name]
	switch {
	case !said:
		return unsaid, nil
	case text == "true":
		return yes, nil
	case text == "false":
		return no, nil
	}
	return unsaid, fmt.Errorf("the annotation %s must be \"true\" or \"false\", not %q; it is not heeded", name, text)
}

// limits are a Service's annotations about connections.
type limits struct {
	idle                           time.Duration
	connections, clientConnections int
	acceptProxy, sendProxy         bool
}

// limitsOf reads the annotations about connections; an invalid one is ignored.
func limitsOf(annotations map[string]string) (l limits, problems []error) {
	if text, said := annotations[AnnotationIdle]; said {
		idle, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || idle < time.Second || idle > route.MaxIdle {
			problems = append(problems, fmt.Errorf("the annotation %s must be a time like 90s, 10m or 6h, at least a second and at most %s, not %q; it is not heeded", AnnotationIdle, route.MaxIdle, text))
		} else {
			l.idle = idle.Truncate(time.Second)
		}
	}
	for name, limit := range map[string]*int{AnnotationConnections: &l.connections, AnnotationClientConnections: &l.clientConnections} {
		text, said := annotations[name]
		if !said {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || number < 1 || number > route.MaxConnections {
			problems = append(problems, fmt.Errorf("the annotation %s must be a number from 1 to %d, not %q; it is not heeded", name, route.MaxConnections, text))
			continue
		}
		*limit = number
	}
	if text, said := annotations[AnnotationProxy]; said {
		switch strings.ReplaceAll(text, " ", "") {
		case "accept":
			l.acceptProxy = true
		case "send":
			l.sendProxy = true
		case "accept,send", "send,accept":
			l.acceptProxy, l.sendProxy = true, true
		default:
			problems = append(problems, fmt.Errorf("the annotation %s must be \"send\", \"accept\" or \"accept,send\", not %q; it is not heeded", AnnotationProxy, text))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, problems
}

// internalPorts returns the names (see portName) of the ports to leave out, and the names without a port.
func internalPorts(annotations map[string]string, ports []core.ServicePort) (internal map[string]bool, unknown []string) {
	internal = make(map[string]bool)
	for item := range strings.SplitSeq(annotations[AnnotationInternal], ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		named := matching(item, ports)
		if len(named) == 0 {
			unknown = append(unknown, strconv.Quote(item))
		}
		for _, p := range named {
			internal[portName(p)] = true
		}
	}
	return internal, unknown
}

// gatewayPorts reads the annotation that moves ports: from the names (see portName) of ports to ports of the gateways. TCP and UDP have numbers of their
// own, so a number moves the only port of each.
func gatewayPorts(annotations map[string]string, ports, udp []core.ServicePort) (map[string]uint16, error) {
	text, said := annotations[AnnotationPort]
	if !said {
		return nil, nil
	}
	wrong := func(format string, arguments ...any) error {
		return fmt.Errorf("the annotation %s: %q: %s", AnnotationPort, text, fmt.Sprintf(format, arguments...))
	}
	moves := make(map[string]uint16)
	if !strings.Contains(text, "=") {
		number, err := gatewayPort(text)
		switch {
		case err != nil:
			return nil, wrong("%v", err)
		case len(ports) > 1 || len(ports)+len(udp) == 0 || len(ports) == 0 && len(udp) > 1:
			return nil, wrong("the Service has %d ports to publish; say which goes where, like \"name=8080,other=8081\"", len(ports)+len(udp))
		}
		for _, only := range [][]core.ServicePort{ports, udp} {
			if len(only) == 1 {
				moves[portName(only[0])] = number
			}
		}
		return moves, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		number, err := gatewayPort(value)
		if err != nil {
			return nil, wrong("%v", err)
		}
		some := false
		for _, list := range [][]core.ServicePort{ports, udp} {
			named := matching(strings.TrimSpace(name), list)
			if len(named) == 0 {
				continue
			}
			if _, twice := moves[portName(named[0])]; twice {
				return nil, wrong("port %q is there twice", strings.TrimSpace(name))
			}
			some, moves[portName(named[0])] = true, number
		}
		if !some {
			return nil, wrong("the Service has no published port %q", strings.TrimSpace(name))
		}
	}
	return moves, nil
}

func gatewayPort(text string) (uint16, error) {
	number, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%q is not a port, which is 1 to 65535", strings.TrimSpace(text))
	}
	return uint16(number), nil
}

// matching gives the ports of this name or number.
func matching(text string, ports []core.ServicePort) (found []core.ServicePort) {
	for _, p := range ports {
		if text != "" && (p.Name == text || strconv.Itoa(int(p.Port)) == text) {
			found = append(found, p)
		}
	}
	return found
}
