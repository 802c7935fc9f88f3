// Package publish turns Services, Ingresses and EndpointSlices of Kubernetes into routes in etcd, from which the gateways serve them.
//
// It publishes, in the namespace default, every Service with a selector (of any type, but not headless, not ExternalName, and not kubernetes itself); in
// other namespaces Services of type LoadBalancer. One of a class other than [Class] belongs to others. The annotations of a Service decide otherwise: see
// [AnnotationPublish] and the following ones. A port has its own number on the gateways. UDP ports are published of Services that ask for it: by their type
// LoadBalancer or by the annotation.
package publish

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/burano/burano/gateway/route"
)

// Class is the class of Services of type LoadBalancer for the gateways; Services without a class are for them, too.
const Class = "burano.io/gateway"

// Reasons of complaints, as in the Events of a Service.
const (
	ReasonConflict   = "GatewayPortConflict"      // another Service holds the port
	ReasonReserved   = "GatewayPortReserved"      // the nodes need the port themselves
	ReasonAnnotation = "InvalidGatewayAnnotation" // an annotation cannot be understood
	ReasonKind       = "NotPublishable"           // asked for, but not possible for such a Service
	ReasonProtocol   = "ProtocolNotPublished"     // a port is neither TCP nor UDP
	ReasonSources    = "InvalidSourceRange"       // loadBalancerSourceRanges cannot be understood
	ReasonUnheeded   = "FieldNotHeeded"           // the ports are served, but a field is ignored
)

// Complaint is something that the owner of a Service, or of an Ingress, should know.
type Complaint struct {
	Kind            string // "Ingress"; "" is a Service
	Namespace, Name string
	UID             types.UID
	Reason          string
	Message         string // the fault, its reason and the remedy
}

// Routes returns the desired routes, in the order of gateway ports, and complaints for the owners of Services. published are the Services that are
// published already: releases that knew no classes published Services of other ones, which stay. It is a function of its arguments alone, independent of
// their order.
func Routes(services []*core.Service, endpointSlices []*discovery.EndpointSlice, published map[types.NamespacedName]bool) ([]route.Route, []Complaint) {
	shared := share(services, endpointSlices, published, wishes{}, nil)
	return slices.Concat(shared.routes, shared.udp), shared.complaints
}

// shared is the assignment of the gateways' ports.
type shared struct {
	routes    []route.Route
	udp       []route.Route          // of UDP ports
	listeners []route.Listener       // of the listeners that Ingresses want
	conflicts map[uint16]route.Route // the owners of the others
	// The UDP ports that Gateways got, and the owners of the others.
	udpWon       map[uint16]bool
	udpConflicts map[uint16]route.Route
	complaints   []Complaint
	memory       memory
}

// memory has the result of each Service, so that a change of one costs little with thousands.
type memory map[types.NamespacedName]worked

// worked is the request of a Service, as long as it and its slices are the same objects: informers never change one.
type worked struct {
	service    *core.Service
	slices     []*discovery.EndpointSlice
	published  bool
	claims     []route.Route
	udp        []route.Route // its claims to UDP ports
	complaints []Complaint
}

func (w worked) holds(service *core.Service, endpointSlices []*discovery.EndpointSlice, published bool) bool {
	return w.service == service && w.published == published && len(w.slices) == len(endpointSlices) &&
		!slices.ContainsFunc(endpointSlices, func(s *discovery.EndpointSlice) bool { return !slices.Contains(w.slices, s) })
}

// web is the protocol of ports that Ingresses want, where ports are given away.
const web = "HTTP"

// share assigns each port of the gateways: to a Service, or to all Ingresses, which are as old as their request for the port. It stores the result of each
// Service for the next time.
func share(services []*core.Service, endpointSlices []*discovery.EndpointSlice, published map[types.NamespacedName]bool, wanted wishes, before memory) shared {
	ordered := slices.SortedFunc(slices.Values(services), func(a, b *core.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	ofService := bySlices(endpointSlices)
	claims := make([]route.Route, 0, len(wanted.listeners)+len(ordered))
	for _, l := range wanted.listeners {
		claims = append(claims, route.Route{GatewayPort: l.Port, Protocol: web, Since: l.Since})
	}
	var complaints []Complaint
	var datagrams []route.Route
	given := shared{conflicts: make(map[uint16]route.Route), memory: make(memory, len(ordered))}
	for _, service := range ordered {
		key := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
		w := before[key]
		if !w.holds(service, ofService[key], published[key]) {
			w = work(service, ofService[key], published[key])
		}
		given.memory[key] = w
		claims, complaints = append(claims, w.claims...), append(complaints, w.complaints...)
		datagrams = append(datagrams, w.udp...)
	}
	winners, losers := route.Contest(claims)
	for _, winner := range winners {
		if winner.Protocol != web {
			given.routes = append(given.routes, winner)
			continue
		}
		i := slices.IndexFunc(wanted.listeners, func(l route.Listener) bool { return l.Port == winner.GatewayPort })
		given.listeners = append(given.listeners, wanted.listeners[i])
	}
	for _, l := range losers {
		if l.Route.Protocol == web {
			given.conflicts[l.Route.GatewayPort] = l.Holder
			continue
		}
		complaints = append(complaints, given.lost(l))
	}
	given.complaints = complaints
	given.shareUDP(datagrams, wanted.udp)
	return given
}

// lost is the complaint about a port that another object has.
func (s *shared) lost(l route.Loser) Complaint {
	holder := l.Holder.String() + ", which is older"
	if l.Holder.Protocol == web {
		holder = "the Ingresses and Gateways, which have it already"
	}
	service := s.memory[types.NamespacedName{Namespace: l.Route.Namespace, Name: l.Route.Service}].service
	return complaint(service, ReasonConflict, "port %s is not published: gateway port %d belongs to %s. Choose another with the annotation %s.",
		l.Route.Port, l.Route.GatewayPort, holder, AnnotationPort)
}

// work computes the request of a Service.
func work(service *core.Service, endpointSlices []*discovery.EndpointSlice, published bool) worked {
	w := worked{service: service, slices: endpointSlices, published: published}
	complain := func(reason, format string, arguments ...any) {
		w.complaints = append(w.complaints, complaint(service, reason, format, arguments...))
	}
	ports, datagrams := claimsOf(service, published, complain)
	sources, err := sourcesOf(service)
	if err != nil && len(ports)+len(datagrams) > 0 {
		complain(ReasonSources, "the Service is not published: %v", err)
		return w
	}
	if len(ports)+len(datagrams) == 0 {
		return w
	}
	for _, text := range unheeded(service, endpointSlices) {
		complain(ReasonUnheeded, "%s", text)
	}
	limits, wrong := limitsOf(service.Annotations)
	for _, err := range wrong {
		complain(ReasonAnnotation, "%v", err)
	}
	w.udp = workUDP(service, datagrams, sources, limits, endpointSlices, complain)
	for _, c := range ports {
		if purpose, reserved := route.Reserved(c.gatewayPort); reserved {
			complain(ReasonReserved, "port %s is not published: gateway port %d is reserved for %s. Choose another with the annotation %s.",
				c.name(), c.gatewayPort, purpose, AnnotationPort)
			continue
		}
		w.claims = append(w.claims, route.Route{
			Namespace: service.Namespace, Service: service.Name, Port: c.name(), GatewayPort: c.gatewayPort, Protocol: route.TCP,
			Sources: sources, Idle: limits.idle, Connections: limits.connections, ClientConnections: limits.clientConnections,
			AcceptProxy: limits.acceptProxy, SendProxy: limits.sendProxy, Affinity: affinityOf(service), Since: service.CreationTimestamp.UTC(), Backends: backends(service, c.port, endpointSlices),
		})
	}
	return w
}

func bySlices(endpointSlices []*discovery.EndpointSlice) map[types.NamespacedName][]*discovery.EndpointSlice {
	ofService := make(map[types.NamespacedName][]*discovery.EndpointSlice, len(endpointSlices))
	for _, s := range endpointSlices {
		if name := s.Labels[discovery.LabelServiceName]; name != "" {
			key := types.NamespacedName{Namespace: s.Namespace, Name: name}
			ofService[key] = append(ofService[key], s)
		}
	}
	return ofService
}

func complaint(service *core.Service, reason, format string, arguments ...any) Complaint {
	return Complaint{Namespace: service.Namespace, Name: service.Name, UID: service.UID, Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// claim is a port of a Service and its port on the gateways.
type claim struct {
	port        core.ServicePort
	gatewayPort uint16
}

func (c claim) name() string { return portName(c.port) }

func portName(p core.ServicePort) string { return cmp.Or(p.Name, strconv.Itoa(int(p.Port))) }

// claimsOf lists the ports of a Service that are to be published, of TCP and of UDP.
func claimsOf(service *core.Service, published bool, complain func(reason, format string, arguments ...any)) (claims, datagrams []claim) {
	wish, err := publishWish(service.Annotations)
	if err != nil {
		complain(ReasonAnnotation, "%v", err)
	}
	if wish == no {
		return nil, nil
	}
	if why := never(service); why != "" {
		if wish == yes {
			complain(ReasonKind, "not published although %s is \"true\": %s.", AnnotationPublish, why)
		}
		return nil, nil
	}
	if wish == unsaid && (!byDefault(service) || othersClass(service) && !published) {
		return nil, nil
	}

	internal, unknown := internalPorts(service.Annotations, service.Spec.Ports)
	var ports, udp []core.ServicePort
	asked := service.Spec.Type == core.ServiceTypeLoadBalancer || wish == yes
	for _, p := range service.Spec.Ports {
		switch {
		case cmp.Or(p.Protocol, core.ProtocolTCP) == core.ProtocolTCP:
			ports = append(ports, p)
		case internal[portName(p)] || !asked:
		case p.Protocol == core.ProtocolUDP:
			udp = append(udp, p)
		default:
			complain(ReasonProtocol, "port %s is not published: gateways serve TCP and UDP, and not %s. Name it in the annotation %s to have that understood.", portName(p), p.Protocol, AnnotationInternal)
		}
	}
	if len(unknown) > 0 {
		complain(ReasonAnnotation, "the annotation %s names ports that the Service does not have: %s.", AnnotationInternal, strings.Join(unknown, ", "))
	}
	ports = slices.DeleteFunc(ports, func(p core.ServicePort) bool { return internal[portName(p)] })
	moves, err := gatewayPorts(service.Annotations, ports, udp)
	if err != nil {
		complain(ReasonAnnotation, "the Service is not published: %v", err)
		return nil, nil
	}
	of := func(ports []core.ServicePort) []claim {
		claims := make([]claim, 0, len(ports))
		for _, p := range ports {
			claims = append(claims, claim{port: p, gatewayPort: cmp.Or(moves[portName(p)], uint16(p.Port))})
		}
		return claims
	}
	return of(ports), of(udp)
}

// never returns the reason why a Service cannot be published at all, or "".
func never(service *core.Service) string {
	switch {
	case service.Namespace == core.NamespaceDefault && service.Name == "kubernetes":
		return "the Kubernetes API is not for the gateways"
	case service.Spec.Type == core.ServiceTypeExternalName:
		return "a Service of type ExternalName has no endpoints"
	case service.Spec.ClusterIP == core.ClusterIPNone:
		return "a headless Service is for those who want to reach each pod by itself"
	}
	return ""
}

// byDefault reports whether a Service without the annotation is published.
func byDefault(service *core.Service) bool {
	if service.Namespace == core.NamespaceDefault {
		return len(service.Spec.Selector) > 0
	}
	return service.Spec.Type == core.ServiceTypeLoadBalancer
}

// othersClass reports whether a Service is for another load balancer than the gateways.
func othersClass(service *core.Service) bool {
	class := service.Spec.LoadBalancerClass
	return service.Spec.Type == core.ServiceTypeLoadBalancer && class != nil && *class != Class
}

// sourcesOf reads from where clients may connect.
func sourcesOf(service *core.Service) ([]netip.Prefix, error) {
	if service.Spec.Type != core.ServiceTypeLoadBalancer {
		return nil, nil
	}
	var sources []netip.Prefix
	for _, text := range service.Spec.LoadBalancerSourceRanges {
		source, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("loadBalancerSourceRanges: %q is not a network like 203.0.113.0/24", text)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// unheeded lists the fields of a published Service that gateways ignore.
func unheeded(service *core.Service, endpointSlices []*discovery.EndpointSlice) (texts []string) {
	if address := service.Spec.LoadBalancerIP; address != "" { //nolint:staticcheck // it is deprecated, and written all the same
		texts = append(texts, fmt.Sprintf("loadBalancerIP %s is not heeded: the Service has the addresses of the gateways.", address))
	}
	if service.Spec.Type == core.ServiceTypeLoadBalancer && service.Spec.ExternalTrafficPolicy == core.ServiceExternalTrafficPolicyLocal {
		texts = append(texts, fmt.Sprintf("externalTrafficPolicy Local is not heeded: pods see the address of a gateway. The annotation %s tells them that of the client.", AnnotationProxy))
	}
	if distribution := service.Spec.TrafficDistribution; distribution != nil {
		texts = append(texts, fmt.Sprintf("trafficDistribution %s is not heeded by gateways: they spread connections over all pods.", *distribution))
	}
	for _, s := range endpointSlices {
		if s.AddressType == discovery.AddressTypeFQDN {
			texts = append(texts, fmt.Sprintf("the endpoints of the EndpointSlice %s are not served: they are names, and gateways connect to addresses.", s.Name))
		}
	}
	slices.Sort(texts)
	return texts
}

// affinityOf is how long a client of a Service keeps its pod; 0 where it need not.
func affinityOf(service *core.Service) time.Duration {
	if service.Spec.SessionAffinity != core.ServiceAffinityClientIP {
		return 0
	}
	seconds := int32(core.DefaultClientIPServiceAffinitySeconds)
	if config := service.Spec.SessionAffinityConfig; config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil {
		seconds = *config.ClientIP.TimeoutSeconds
	}
	return min(time.Duration(max(seconds, 1))*time.Second, route.MaxAffinity)
}

// backends collects the endpoints behind a port, of the Service's family.
func backends(service *core.Service, port core.ServicePort, endpointSlices []*discovery.EndpointSlice) []route.Backend {
	family := discovery.AddressTypeIPv4
	if len(service.Spec.IPFamilies) > 0 && service.Spec.IPFamilies[0] == core.IPv6Protocol {
		family = discovery.AddressTypeIPv6
	}
	// Users who list endpoints themselves list them in any version, and gateways reach both.
	listed := func(s *discovery.EndpointSlice) bool { return s.AddressType == family }
	if len(service.Spec.Selector) == 0 && !slices.ContainsFunc(endpointSlices, listed) {
		family = map[discovery.AddressType]discovery.AddressType{discovery.AddressTypeIPv4: discovery.AddressTypeIPv6, discovery.AddressTypeIPv6: discovery.AddressTypeIPv4}[family]
	}
	return backendsOf(port, endpointSlices, family)
}

// anyFamily has backendsOf collect endpoints of both families.
const anyFamily discovery.AddressType = ""

// backendsOf collects the endpoints of a family behind a port. A ready endpoint takes connections; one that terminates but still serves drains; the others
// are left out. The same address may be in several slices for a while: ready wins.
func backendsOf(port core.ServicePort, endpointSlices []*discovery.EndpointSlice, family discovery.AddressType) []route.Backend {
	found := make(map[netip.AddrPort]route.Backend)
	for _, s := range endpointSlices {
		number, has := slicePort(s, port)
		if !has || family != anyFamily && s.AddressType != family {
			continue
		}
		for _, e := range s.Endpoints {
			b, address, usable := backend(e, number)
			if before, twice := found[address]; !usable || twice && !better(b, before) {
				continue
			}
			found[address] = b
		}
	}
	list := make([]route.Backend, 0, len(found))
	for _, address := range slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare) {
		list = append(list, found[address])
	}
	return list
}

// better decides between two endpoints of one address, independently of their order.
func better(a, b route.Backend) bool {
	if a.Ready != b.Ready {
		return a.Ready
	}
	return a.Node < b.Node
}

// slicePort finds the number of the port; a slice's ports have the names of the Service's ports.
func slicePort(s *discovery.EndpointSlice, port core.ServicePort) (uint16, bool) {
	for _, p := range s.Ports {
		same := cmp.Or(deref(p.Protocol), core.ProtocolTCP) == cmp.Or(port.Protocol, core.ProtocolTCP)
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 || !same {
			continue
		}
		if deref(p.Name) == port.Name {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}

func backend(e discovery.Endpoint, port uint16) (route.Backend, netip.AddrPort, bool) {
	if len(e.Addresses) == 0 {
		return route.Backend{}, netip.AddrPort{}, false
	}
	// Further addresses of one endpoint are the same backend; Kubernetes requires the first.
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || address.Zone() != "" {
		return route.Backend{}, netip.AddrPort{}, false
	}
	said := func(condition *bool, otherwise bool) bool {
		if condition == nil {
			return otherwise
		}
		return *condition
	}
	b := route.Backend{Address: address.String(), Port: port}
	if e.NodeName != nil {
		b.Node = *e.NodeName
	}
	b.Ready = said(e.Conditions.Ready, true)
	b.Draining = !b.Ready && said(e.Conditions.Serving, b.Ready) && said(e.Conditions.Terminating, false)
	return b, netip.AddrPortFrom(address, port), b.Ready || b.Draining
}
