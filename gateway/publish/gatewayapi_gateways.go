package publish

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// gateway takes in which listeners a Gateway has, and which of them are good.
func (b *gatewayBuilder) gateway(gateway *api.Gateway) {
	g := &gatewayState{Gateway: gateway}
	g.listenerGroup = &listenerGroup{kind: route.KindGateway, object: gateway, gateway: g}
	b.gateways = append(b.gateways, g)
	b.parents[g.key()] = g.listenerGroup
	if infrastructure := gateway.Spec.Infrastructure; infrastructure != nil && infrastructure.ParametersRef != nil {
		g.problem = verdict{string(api.GatewayReasonInvalidParameters), "infrastructure.parametersRef: gateways of Burano have no parameters."}
	}
	b.shows(g)
	for _, address := range gateway.Spec.Addresses {
		if kind := deref(address.Type); address.Type != nil && kind != api.IPAddressType {
			g.problem = verdict{string(api.GatewayReasonUnsupportedAddress), fmt.Sprintf("addresses: the type %s is not supported, only %s is.", kind, api.IPAddressType)}
		}
	}
	b.bind(g)
	b.listeners(g.listenerGroup, gateway.Spec.Listeners)
}

// listeners takes in which listeners a Gateway, or a ListenerSet, has, and which of them are good.
func (b *gatewayBuilder) listeners(group *listenerGroup, list []api.Listener) {
	g, since := group.gateway, group.object.GetCreationTimestamp().UTC()
	site := group.site()
	for _, listener := range list {
		l := &listenerState{Listener: listener, gateway: g, problems: make(map[string]verdict), names: make(map[string][]string)}
		if group.kind == route.KindListenerSet {
			g.contest(l)
		}
		group.listeners = append(group.listeners, l)
		b.kinds(l)
		b.secure(group, l)
		b.clients(group, l)
		reserve := route.Reserved
		if l.udp() {
			reserve = route.ReservedUDP
		}
		if purpose, reserved := reserve(l.port()); reserved {
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonPortUnavailable, "port %d is reserved for %s.", l.Port, purpose)
		}
		if err := route.ValidHost(l.host()); err != nil {
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedValue, "hostname: %v", err)
		}
		if !g.serves() || !l.serves() {
			continue
		}
		if l.udp() {
			b.wantUDP(l.port(), since)
			continue
		}
		switch has, taken := b.ports[l.port()]; {
		case taken && (has.TLS != l.tls() || has.TCP != l.tcp()):
			l.problem(api.ListenerConditionConflicted, api.ListenerReasonProtocolConflict, "port %d speaks another protocol for an Ingress or an older listener.", l.Port)
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonPortUnavailable, "port %d speaks another protocol for an Ingress or an older listener.", l.Port)
			continue
		case l.Protocol == api.HTTPSProtocolType && !b.claims(l, g.on):
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonPortUnavailable, "an Ingress or an older Gateway on the same gateways checks the clients of port %d in another way, or does not. Choose another port, or addresses.", l.Port)
			continue
		case !taken:
			b.ports[l.port()] = &route.Listener{Port: l.port(), TLS: l.tls(), TCP: l.tcp(), Passes: l.passes(), Names: l.passes(), NoIngress: true, Since: since, Gateways: g.on}
		default:
			has.Passes, has.Gateways = has.Passes || l.passes(), either(has.Gateways, g.on)
			has.Names = has.Passes
			if since.Before(has.Since) {
				has.Since = since
			}
		}
		b.check(l)
		if l.Protocol == api.HTTPSProtocolType {
			site.Opened = append(site.Opened, route.Opened{Port: l.port(), Host: l.host(), Gateways: g.on, Owner: g.key().name.String()})
		}
		if l.secret != nil {
			for _, host := range l.certified() {
				site.Certificates = append(site.Certificates, route.Certificate{Host: host, Namespace: l.secret.Namespace, Secret: l.secret.Name, Gateways: g.on})
			}
		}
	}
	if len(site.Certificates)+len(site.Opened) > 0 {
		b.HTTP.Sites = append(b.HTTP.Sites, site)
	}
}

// bind takes in which gateways have the addresses that a Gateway names.
func (b *gatewayBuilder) bind(g *gatewayState) {
	for _, address := range g.Spec.Addresses {
		if address.Value == "" {
			continue // any will do
		}
		g.bound = true
		for _, node := range b.nodes {
			if ip, err := netip.ParseAddr(address.Value); err == nil && ip == node.Address && !slices.Contains(g.on, node.Name) {
				g.on = append(g.on, node.Name)
			}
		}
	}
	slices.Sort(g.on)
}

// either joins lists of gateways of which an empty one means all.
func either(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// certified are the hosts that show the certificate of a listener.
func (l *listenerState) certified() []string {
	if l.host() != "" {
		return []string{l.host()}
	}
	return l.hosts
}

// kinds takes in which kinds of routes a listener takes.
func (b *gatewayBuilder) kinds(l *listenerState) {
	group := api.Group(api.GroupName)
	l.kinds = []api.RouteGroupKind{}
	var able []api.Kind
	switch l.Protocol {
	case api.HTTPProtocolType, api.HTTPSProtocolType:
		able = []api.Kind{route.KindHTTPRoute, route.KindGRPCRoute}
	case api.TLSProtocolType:
		able = []api.Kind{route.KindTLSRoute}
	case api.TCPProtocolType:
		able = []api.Kind{route.KindTCPRoute}
	case api.UDPProtocolType:
		able = []api.Kind{route.KindUDPRoute}
	default:
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedProtocol, "the protocol %s is not supported; HTTP, HTTPS, TLS, TCP and UDP are.", l.Protocol)
		return
	}
	wanted := make(map[api.Kind]bool)
	if l.AllowedRoutes != nil {
		for _, one := range l.AllowedRoutes.Kinds {
			if !slices.Contains(able, one.Kind) || one.Group != nil && *one.Group != group {
				l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidRouteKinds, "allowedRoutes: the kind %s is not one of a listener with the protocol %s.", one.Kind, l.Protocol)
				continue
			}
			wanted[one.Kind] = true
		}
	}
	for _, kind := range able {
		if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 || wanted[kind] {
			l.kinds = append(l.kinds, api.RouteGroupKind{Group: &group, Kind: kind})
		}
	}
}

// secure takes in the certificate of a listener.
func (b *gatewayBuilder) secure(group *listenerGroup, l *listenerState) {
	namespace := group.object.GetNamespace()
	switch {
	case !l.tls() || l.Protocol == api.TLSProtocolType && l.mode() == api.TLSModePassthrough:
		return
	case l.mode() != api.TLSModeTerminate:
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedValue, "tls.mode: of the protocol %s only %s is supported; to pass sessions through, use TLS.", l.Protocol, api.TLSModeTerminate)
		return
	}
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCertificateRef, "tls.certificateRefs names no certificate.")
		return
	}
	for i, ref := range l.TLS.CertificateRefs {
		name := referred(namespace, ref.Namespace, ref.Name)
		if deref(ref.Group) != "" || ref.Kind != nil && *ref.Kind != "Secret" {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: %s %s is not a Secret.", deref(ref.Kind), ref.Name)
			continue
		}
		if !b.granted(group.kind, namespace, "Secret", name) {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonRefNotPermitted, "tls.certificateRefs: no ReferenceGrant lets %ss of the namespace %s use the Secret %s.", group.kind, namespace, name)
			continue
		}
		content, err := b.certificate(name)
		if err != nil {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: the Secret %s: %v", name, err)
			continue
		}
		if i == 0 {
			l.secret, l.hosts = &name, namesOf(content)
			b.Certificates[name] = content
		}
	}
}

// namesOf are the hosts that a certificate is for.
func namesOf(content []byte) (hosts []string) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	for _, name := range certificate.DNSNames {
		if name = strings.ToLower(name); name != "" && route.ValidHost(name) == nil {
			hosts = append(hosts, name)
		}
	}
	return hosts
}
