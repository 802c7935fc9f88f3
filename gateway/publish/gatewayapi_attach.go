package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// granted reports whether objects of a kind may refer to an object.
func (b *gatewayBuilder) granted(kind, namespace, toKind string, to types.NamespacedName) bool {
	if namespace == to.Namespace {
		return true
	}
	for _, grant := range b.api.Grants {
		if grant.Namespace != to.Namespace {
			continue
		}
		from := slices.ContainsFunc(grant.Spec.From, func(from api.ReferenceGrantFrom) bool {
			return from.Group == api.GroupName && string(from.Kind) == kind && string(from.Namespace) == namespace
		})
		if from && slices.ContainsFunc(grant.Spec.To, func(one api.ReferenceGrantTo) bool {
			return one.Group == "" && string(one.Kind) == toKind && (one.Name == nil || string(*one.Name) == to.Name)
		}) {
			return true
		}
	}
	return false
}

// attach determines the listeners and hosts of a route, for each of its parents of the gateways' class.
func (b *gatewayBuilder) attach(r *routeState, refused verdict, resolved verdict, serve func(l *listenerState, hosts, gateways []string)) {
	for _, parent := range r.parents {
		if parent.Group != nil && *parent.Group != api.GroupName {
			continue
		}
		name := referred(r.object.GetNamespace(), parent.Namespace, parent.Name)
		group := b.parents[parentKey{string(cmp.Or(deref(parent.Kind), route.KindGateway)), name}]
		if group == nil {
			continue
		}
		v := parentVerdict{parent: parent, resolved: resolved, accepted: verdict{string(api.RouteReasonNoMatchingParent), "the " + group.kind + " has no such listener."}}
		for _, l := range group.listeners {
			if parent.SectionName != nil && *parent.SectionName != l.Name || parent.Port != nil && *parent.Port != l.Port {
				continue
			}
			if v.accepted.reason == string(api.RouteReasonNoMatchingParent) {
				v.accepted = verdict{string(api.RouteReasonNotAllowedByListeners), "no listener takes such routes of this namespace."}
			}
			if !b.allows(group, l, r) {
				continue
			}
			hosts := common(l.host(), r.hostnames)
			if len(hosts) == 0 {
				if v.accepted.reason != "" {
					v.accepted = verdict{string(api.RouteReasonNoMatchingListenerHostname), "no listener has one of its hostnames."}
				}
				continue
			}
			if other := l.contradicts(r.kind, hosts); other != "" {
				if v.accepted.reason != "" {
					v.accepted = verdict{reasonOtherKind, fmt.Sprintf("an older %s has one of its hostnames on the listener %s.", other, l.Name)}
				}
				continue
			}
			v.accepted = verdict{}
			if refused.reason != "" {
				v.accepted = refused
				break
			}
			l.attached++
			l.names[r.kind] = append(l.names[r.kind], hosts...)
			if group.gateway.serves() && l.serves() {
				serve(l, l.own(hosts), group.gateway.on)
			}
		}
		r.verdicts = append(r.verdicts, v)
	}
	b.routes = append(b.routes, r)
}

// reasonOtherKind is that of a route whose hostname an older route of another kind has on a listener.
const reasonOtherKind = "HostnameConflict"

// contradicts names the kind of an attached route that has one of the hosts. A host of a listener belongs to HTTPRoutes or to GRPCRoutes, by Gateway API.
func (l *listenerState) contradicts(kind string, hosts []string) string {
	for _, other := range []string{route.KindHTTPRoute, route.KindGRPCRoute} {
		if other != kind && slices.ContainsFunc(l.names[other], func(has string) bool {
			return slices.ContainsFunc(hosts, func(host string) bool {
				return has == "" || host == "" || has == host || below(has, host) || below(host, has)
			})
		}) {
			return other
		}
	}
	return ""
}

func (b *gatewayBuilder) allows(group *listenerGroup, l *listenerState, r *routeState) bool {
	if !slices.ContainsFunc(l.kinds, func(k api.RouteGroupKind) bool { return string(k.Kind) == r.kind }) {
		return false
	}
	from, selector := api.NamespacesFromSame, (*meta.LabelSelector)(nil)
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		from, selector = cmp.Or(deref(l.AllowedRoutes.Namespaces.From), from), l.AllowedRoutes.Namespaces.Selector
	}
	return b.from(from, selector, group.object.GetNamespace(), r.object.GetNamespace())
}

// from reports whether an object takes objects of a namespace.
func (b *gatewayBuilder) from(from api.FromNamespaces, selector *meta.LabelSelector, own, namespace string) bool {
	switch from {
	case api.NamespacesFromAll:
		return true
	case api.NamespacesFromSame:
		return namespace == own
	case api.NamespacesFromSelector:
		chosen, err := meta.LabelSelectorAsSelector(selector)
		return err == nil && chosen.Matches(b.namespaces[namespace])
	}
	return false
}

// common are the hosts that a listener and a route have in common; "" is any.
func common(listener string, route []api.Hostname) (hosts []string) {
	if len(route) == 0 {
		return []string{listener}
	}
	for _, one := range route {
		switch host := string(one); {
		case listener == "" || host == listener || below(host, listener):
			hosts = append(hosts, host)
		case below(listener, host):
			hosts = append(hosts, listener)
		}
	}
	return hosts
}

// below reports whether all hosts of one name are hosts of a wildcard, too.
func below(host, wildcard string) bool {
	suffix, wild := strings.CutPrefix(wildcard, "*")
	return wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
}
