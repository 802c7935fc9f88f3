package publish

import (
	"net/netip"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// wishes are the ports that Ingresses and Gateways want.
type wishes struct {
	listeners []route.Listener
	udp       map[uint16]route.UDP
}

// workUDP computes a Service's claims to UDP ports.
func workUDP(service *core.Service, ports []claim, sources []netip.Prefix, limits limits, endpointSlices []*discovery.EndpointSlice, complain func(reason, format string, arguments ...any)) (claims []route.Route) {
	for _, c := range ports {
		if purpose, reserved := route.ReservedUDP(c.gatewayPort); reserved {
			complain(ReasonReserved, "port %s is not published: UDP port %d of the gateways is reserved for %s. Choose another with the annotation %s.",
				c.name(), c.gatewayPort, purpose, AnnotationPort)
			continue
		}
		claims = append(claims, route.Route{
			Namespace: service.Namespace, Service: service.Name, Port: c.name(), GatewayPort: c.gatewayPort, Protocol: route.ProtocolUDP,
			Sources: sources, Affinity: affinityOf(service), Since: service.CreationTimestamp.UTC(), Backends: backendsOf(c.port, endpointSlices, anyFamily),
		})
	}
	if len(claims) > 0 && (limits.idle > 0 || limits.connections > 0 || limits.clientConnections > 0 || limits.acceptProxy || limits.sendProxy) {
		complain(ReasonUnheeded, "annotations about connections are not heeded for UDP ports: datagrams have none.")
	}
	return claims
}

// shareUDP gives each UDP port away: to a Service, or to all Gateways, which are as old as their wish for it.
func (s *shared) shareUDP(claims []route.Route, wanted map[uint16]route.UDP) {
	for port, one := range wanted {
		claims = append(claims, route.Route{GatewayPort: port, Protocol: web, Since: one.Since})
	}
	winners, losers := route.Contest(claims)
	s.udpWon, s.udpConflicts = make(map[uint16]bool), make(map[uint16]route.Route)
	for _, winner := range winners {
		if winner.Protocol == web {
			s.udpWon[winner.GatewayPort] = true
			continue
		}
		s.udp = append(s.udp, winner)
	}
	for _, l := range losers {
		if l.Route.Protocol == web {
			s.udpConflicts[l.Route.GatewayPort] = l.Holder
			continue
		}
		s.complaints = append(s.complaints, s.lost(l))
	}
}

// udpPorts are the UDP ports to be written: of Services, and of Gateways with a route.
func udpPorts(services []route.Route, gateways map[uint16]route.UDP, won map[uint16]bool) []route.UDP {
	list := make([]route.UDP, 0, len(services)+len(gateways))
	for _, r := range services {
		list = append(list, route.UDPOf(r))
	}
	for port, one := range gateways {
		if won[port] && len(one.Flows) > 0 {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b route.UDP) int { return int(a.Port) - int(b.Port) })
	return list
}

// protocolOf is the protocol of the ports of Services that a kind of routes leads to.
func protocolOf(kind string) core.Protocol {
	if kind == route.KindUDPRoute {
		return core.ProtocolUDP
	}
	return core.ProtocolTCP
}

// backendsFor are the endpoints for a kind of routes: datagrams reach them by the client's family, connections by that of the Service.
func backendsFor(kind string, service *core.Service, port core.ServicePort, endpointSlices []*discovery.EndpointSlice) []route.Backend {
	if kind == route.KindUDPRoute {
		return backendsOf(port, endpointSlices, anyFamily)
	}
	return backends(service, port, endpointSlices)
}

// wantUDP takes in that a listener wants a UDP port.
func (b *gatewayBuilder) wantUDP(port uint16, since time.Time) {
	one, wanted := b.udp[port]
	if !wanted || since.Before(one.Since) {
		one.Port, one.Since = port, since
	}
	b.udp[port] = one
}

// udpRoute takes in a route of datagrams. A gateway serves the oldest one on a port; each backend that does not exist refuses its share.
func (b *gatewayBuilder) udpRoute(object *api.UDPRoute) {
	r := &routeState{kind: route.KindUDPRoute, object: object, generation: object.Generation, parents: object.Spec.ParentRefs, status: object.Status.RouteStatus}
	flow := route.Flow{Kind: route.KindUDPRoute, Namespace: object.Namespace, Name: object.Name, Targets: []route.UDPTarget{}}
	var refused, resolved verdict
	for _, rule := range object.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			target := b.target(r, ref, false, nil, &resolved)
			pool := b.pools[target.Pool] // none of a missing backend
			flow.Targets = append(flow.Targets, route.UDPTarget{Weight: target.Weight, Sticky: pool.Affinity > 0, Backends: slices.Clone(pool.Backends)})
		}
	}
	if err := (route.UDP{Port: 1, Flows: []route.Flow{flow}}).Validate(); err != nil {
		refused = verdict{string(api.RouteReasonUnsupportedValue), err.Error()}
	}
	b.attach(r, refused, resolved, func(l *listenerState, _, gateways []string) {
		one := b.udp[l.port()]
		if slices.ContainsFunc(one.Flows, func(f route.Flow) bool { return len(f.Gateways) == 0 || slices.Equal(f.Gateways, gateways) }) {
			return // an older route has them all
		}
		own := flow
		own.Gateways = gateways
		one.Flows = append(one.Flows, own)
		b.udp[l.port()] = one
	})
}
