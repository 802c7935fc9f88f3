package publish

import (
	"net/http"
	"slices"

	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// Listeners of a Gateway on a port are isolated: a request belongs to the listener with the most specific hostname, which may have no route for it.

// beside are the listeners of the same Gateway that gateways distinguish from a listener by the host of a request alone.
func (l *listenerState) beside() (list []*listenerState) {
	if l.others != nil {
		return *l.others
	}
	defer func() { l.others = &list }()
	if l.Protocol != api.HTTPProtocolType && l.Protocol != api.HTTPSProtocolType {
		return nil
	}
	for _, group := range slices.Concat([]*listenerGroup{l.gateway.listenerGroup}, l.gateway.sets) {
		for _, other := range group.listeners {
			if other != l && other.Port == l.Port && other.Protocol == l.Protocol && other.host() != l.host() && other.serves() {
				list = append(list, other)
			}
		}
	}
	return list
}

// covers reports whether all hosts of a name are hosts of another one, too; "" is any host.
func covers(wide, host string) bool { return wide == "" || wide == host || below(host, wide) }

// own are the hosts of a route whose requests belong to the listener.
func (l *listenerState) own(hosts []string) []string {
	others := l.beside()
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool {
		return slices.ContainsFunc(others, func(other *listenerState) bool {
			return covers(l.host(), other.host()) && covers(other.host(), host)
		})
	})
}

// isolate has requests for the host of a listener that none of its routes takes answered with 404, where routes of a less specific listener would take them.
func (b *gatewayBuilder) isolate() {
	for _, g := range b.gateways {
		if !g.serves() {
			continue
		}
		for _, group := range slices.Concat([]*listenerGroup{g.listenerGroup}, g.sets) {
			for _, l := range group.listeners {
				if l.serves() && slices.ContainsFunc(l.beside(), func(wide *listenerState) bool { return covers(wide.host(), l.host()) }) {
					b.remainder(group, l)
				}
			}
		}
	}
}

// remainder answers the remaining requests of a listener with 404, unless a route takes them.
func (b *gatewayBuilder) remainder(group *listenerGroup, l *listenerState) {
	rest := route.Path{
		Host: l.host(), Path: "/", Port: l.port(), Gateways: group.gateway.on,
		Targets: []route.Target{{Weight: 1, Filters: &route.Filters{Status: http.StatusNotFound}}},
	}
	for _, site := range b.HTTP.Sites {
		if slices.ContainsFunc(site.Paths, func(path route.Path) bool {
			return path.Port == rest.Port && path.Match == nil && !path.Exact && path.Key() == rest.Key() && route.Overlap(path.Gateways, rest.Gateways)
		}) {
			return
		}
	}
	name := group.key().name
	at := slices.IndexFunc(b.HTTP.Sites, func(site route.Site) bool {
		return site.Kind == group.kind && site.Namespace == name.Namespace && site.Name == name.Name
	})
	if at < 0 {
		at = len(b.HTTP.Sites)
		b.HTTP.Sites = append(b.HTTP.Sites, group.site())
	}
	b.HTTP.Sites[at].Paths = append(b.HTTP.Sites[at].Paths, rest)
}

// site is the part of a group in the gateways' configuration, without content.
func (g *listenerGroup) site() route.Site {
	name := g.key().name
	return route.Site{Namespace: name.Namespace, Kind: g.kind, Name: name.Name, Since: g.object.GetCreationTimestamp().UTC()}
}
