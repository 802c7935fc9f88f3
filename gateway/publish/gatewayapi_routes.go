package publish

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// requestRoute is a route of single requests: an HTTPRoute, or a GRPCRoute in the form of one.
type requestRoute struct {
	routeState
	rules []api.HTTPRouteRule
	fault error // why it cannot be served
}

func ofHTTPRoute(object *api.HTTPRoute) *requestRoute {
	return &requestRoute{rules: object.Spec.Rules, routeState: routeState{
		kind: route.KindHTTPRoute, object: object, generation: object.Generation, parents: object.Spec.ParentRefs, hostnames: object.Spec.Hostnames, status: object.Status.RouteStatus,
	}}
}

func (b *gatewayBuilder) requestRoute(one *requestRoute) {
	r := &one.routeState
	site := route.Site{Namespace: r.object.GetNamespace(), Kind: r.kind, Name: r.object.GetName(), Since: r.object.GetCreationTimestamp().UTC()}
	var refused, resolved verdict
	if one.fault != nil {
		refused = verdict{string(api.RouteReasonUnsupportedValue), one.fault.Error()}
	}
	for i, rule := range one.rules {
		if err := unsupported(rule); err != nil && refused.reason == "" {
			refused = verdict{string(api.RouteReasonUnsupportedValue), fmt.Sprintf("rules[%d]: %v", i, err)}
		}
		_ = b.targets(r, rule, &listenerState{}, 0, &resolved)
	}
	// The result is tried with a port that is always good: a rule that cannot be served makes the route unserved.
	try := &listenerState{Listener: api.Listener{Port: 1, Protocol: api.HTTPProtocolType}}
	if err := b.valid(r, site, b.paths(one, try, []string{""}, nil)); err != nil && refused.reason == "" {
		refused = verdict{string(api.RouteReasonUnsupportedValue), err.Error()}
	}
	b.attach(r, refused, resolved, func(l *listenerState, hosts, gateways []string) {
		site.Paths = append(site.Paths, b.paths(one, l, hosts, gateways)...)
	})
	if value, err := route.EncodePart(route.Part{Site: &site}); err == nil && len(value) > maxValue {
		for i := range r.verdicts {
			r.verdicts[i].accepted = verdict{string(api.RouteReasonUnsupportedValue), fmt.Sprintf("its hostnames, matches and listeners make %d paths, which are too many for one route; take it apart.", len(site.Paths))}
		}
		return
	}
	if len(site.Paths) > 0 {
		b.HTTP.Sites = append(b.HTTP.Sites, site)
	}
}

func (b *gatewayBuilder) valid(r *routeState, site route.Site, paths []route.Path) error {
	for _, host := range r.hostnames {
		if err := route.ValidHost(string(host)); err != nil {
			return err
		}
	}
	site.Paths = paths
	return route.Part{Site: &site}.Validate()
}

// unsupported names the unsupported part of a rule.
func unsupported(rule api.HTTPRouteRule) error {
	if rule.SessionPersistence != nil {
		return fmt.Errorf("sessionPersistence is not supported")
	}
	if err := validRetry(rule); err != nil {
		return err
	}
	for _, match := range rule.Matches {
		if match.Path != nil && deref(match.Path.Type) == api.PathMatchRegularExpression {
			return fmt.Errorf("paths are matched exactly or by prefix, and not by regular expression")
		}
		for _, header := range match.Headers {
			if deref(header.Type) == api.HeaderMatchRegularExpression {
				return fmt.Errorf("headers are matched exactly, and not by regular expression")
			}
		}
		for _, query := range match.QueryParams {
			if deref(query.Type) == api.QueryParamMatchRegularExpression {
				return fmt.Errorf("parameters are matched exactly, and not by regular expression")
			}
		}
	}
	for _, filter := range rule.Filters {
		switch filter.Type {
		case api.HTTPRouteFilterRequestHeaderModifier, api.HTTPRouteFilterResponseHeaderModifier, api.HTTPRouteFilterRequestRedirect, api.HTTPRouteFilterURLRewrite, api.HTTPRouteFilterCORS:
		case api.HTTPRouteFilterRequestMirror:
			if err := validMirror(filter.RequestMirror); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the filter %s is not supported", filter.Type)
		}
	}
	for _, backend := range rule.BackendRefs {
		for _, filter := range backend.Filters {
			if filter.Type != api.HTTPRouteFilterRequestHeaderModifier && filter.Type != api.HTTPRouteFilterResponseHeaderModifier {
				return fmt.Errorf("the filter %s of a backend is not supported", filter.Type)
			}
		}
	}
	if rule.Timeouts != nil {
		for _, one := range []*api.Duration{rule.Timeouts.Request, rule.Timeouts.BackendRequest} {
			if _, err := time.ParseDuration(string(deref(one))); one != nil && err != nil {
				return fmt.Errorf("timeouts: %w", err)
			}
		}
	}
	return nil
}

// paths returns the paths of a route on a listener.
func (b *gatewayBuilder) paths(r *requestRoute, l *listenerState, hosts, gateways []string) (paths []route.Path) {
	for _, rule := range r.rules {
		matches := rule.Matches
		if len(matches) == 0 {
			matches = []api.HTTPRouteMatch{{}}
		}
		for _, match := range matches {
			path := route.Path{Port: l.port(), Path: "/", Match: matchOf(match), Gateways: gateways}
			if match.Path != nil {
				path.Path, path.Exact = cmp.Or(deref(match.Path.Value), "/"), deref(match.Path.Type) == api.PathMatchExact
			}
			var ignored verdict
			path.Targets = b.targets(&r.routeState, rule, l, len(strings.TrimRight(path.Path, "/")), &ignored)
			for _, host := range hosts {
				path.Host = host
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func matchOf(match api.HTTPRouteMatch) *route.Match {
	m := &route.Match{Method: string(deref(match.Method))}
	for _, header := range match.Headers {
		// Names are case-insensitive; of duplicates the first counts.
		name := strings.ToLower(string(header.Name))
		if !slices.ContainsFunc(m.Headers, func(p route.Pair) bool { return p.Name == name }) {
			m.Headers = append(m.Headers, route.Pair{Name: name, Value: header.Value})
		}
	}
	for _, query := range match.QueryParams {
		if !slices.ContainsFunc(m.Queries, func(p route.Pair) bool { return p.Name == string(query.Name) }) {
			m.Queries = append(m.Queries, route.Pair{Name: string(query.Name), Value: query.Value})
		}
	}
	if m.Method == "" && len(m.Headers)+len(m.Queries) == 0 {
		return nil
	}
	return m
}

// targets are where requests of a rule go that have matched so many bytes of the path.
func (b *gatewayBuilder) targets(r *routeState, rule api.HTTPRouteRule, l *listenerState, prefix int, resolved *verdict) []route.Target {
	filters := filtersOf(rule.Filters, &l.Listener, prefix)
	if rule.Timeouts != nil {
		for _, one := range []*api.Duration{rule.Timeouts.Request, rule.Timeouts.BackendRequest} {
			limit, err := time.ParseDuration(string(deref(one)))
			if err == nil && limit > 0 && (filters.Timeout == 0 || limit < filters.Timeout) {
				filters.Timeout = max(min(limit, route.MaxIdle).Truncate(time.Millisecond), time.Millisecond)
			}
		}
	}
	if filters.Redirect != nil {
		return []route.Target{{Weight: 1, Filters: &filters}}
	}
	filters.Mirrors, filters.Retry = b.mirrorsOf(r, rule, l, resolved), retryOf(rule.Retry)
	var targets []route.Target
	some := false
	for _, ref := range rule.BackendRefs {
		target := b.target(r, ref.BackendRef, true, l.gateway, resolved)
		some = some || target.Weight > 0
		if target.Pool != "" {
			own := filters
			if target.Filters != nil {
				own.H2C, own.TLS = target.Filters.H2C, target.Filters.TLS
			}
			of := filtersOf(ref.Filters, &l.Listener, prefix)
			own.Request, own.Response = own.Request.And(of.Request), own.Response.And(of.Response)
			target.Filters = nil
			if own != (route.Filters{}) {
				target.Filters = &own
			}
		}
		targets = append(targets, target)
	}
	if !some {
		return []route.Target{r.failing(1)}
	}
	return targets
}

// failing answers requests as Gateway API requires for missing backends: with 500, and for gRPC with 503, which its clients read as UNAVAILABLE.
func (r *routeState) failing(weight int) route.Target {
	status := http.StatusInternalServerError
	if r.kind == route.KindGRPCRoute {
		status = http.StatusServiceUnavailable
	}
	return route.Target{Weight: weight, Filters: &route.Filters{Status: status}}
}

// target is a backend of a rule, for routes of a Gateway. Where its content is opened, a policy may have it asked over TLS.
func (b *gatewayBuilder) target(r *routeState, ref api.BackendRef, opened bool, via *gatewayState, resolved *verdict) route.Target {
	weight := 1
	if ref.Weight != nil {
		weight = int(*ref.Weight)
	}
	problem := func(reason api.RouteConditionReason, format string, arguments ...any) route.Target {
		if resolved.reason == "" {
			*resolved = verdict{string(reason), fmt.Sprintf("backendRefs: "+format, arguments...)}
		}
		return r.failing(weight)
	}
	name := referred(r.object.GetNamespace(), ref.Namespace, ref.Name)
	if deref(ref.Group) != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return problem(api.RouteReasonInvalidKind, "%s %s is not a Service.", deref(ref.Kind), ref.Name)
	}
	if !b.granted(r.kind, r.object.GetNamespace(), "Service", name) {
		return problem(api.RouteReasonRefNotPermitted, "no ReferenceGrant lets %ss of the namespace %s use the Service %s.", r.kind, r.object.GetNamespace(), name)
	}
	service, there := b.services[name]
	if !there || service.Spec.Type == core.ServiceTypeExternalName {
		return problem(api.RouteReasonBackendNotFound, "there is no Service %s that has endpoints.", name)
	}
	number := slices.IndexFunc(service.Spec.Ports, func(p core.ServicePort) bool {
		return ref.Port != nil && p.Port == *ref.Port && cmp.Or(p.Protocol, core.ProtocolTCP) == protocolOf(r.kind)
	})
	if number < 0 {
		return problem(api.RouteReasonBackendNotFound, "the Service %s has no %s port %d.", name, protocolOf(r.kind), deref(ref.Port))
	}
	port := service.Spec.Ports[number]
	protocol := deref(port.AppProtocol)
	var tls *route.BackendTLS
	if opened {
		var good bool
		if tls, good = b.policyOf(name, port.Name, via); !good {
			return r.failing(weight)
		}
	}
	if tls == nil && (r.kind == route.KindHTTPRoute || r.kind == route.KindGRPCRoute) && protocol == "kubernetes.io/wss" {
		return problem(api.RouteReasonUnsupportedProtocol, "port %d of the Service %s wants %s, and no BackendTLSPolicy is about it.", port.Port, name, protocol)
	}
	pool := route.Pool{Namespace: name.Namespace, Service: name.Name, Port: portName(port), Backends: backendsFor(r.kind, service, port, b.slices[name]), Affinity: int64(affinityOf(service) / time.Second)}
	if err := (route.Part{Pool: &pool}).Validate(); err != nil {
		return problem(api.RouteReasonBackendNotFound, "%v", err)
	}
	b.pools[pool.Name()] = pool
	target := route.Target{Pool: pool.Name(), Weight: weight}
	if r.kind == route.KindGRPCRoute || r.kind == route.KindHTTPRoute && protocol == "kubernetes.io/h2c" {
		target.Filters = &route.Filters{H2C: true}
	}
	if tls != nil {
		target.Filters = &route.Filters{TLS: tls, H2C: target.Filters != nil}
	}
	return target
}

func filtersOf(filters []api.HTTPRouteFilter, l *api.Listener, prefix int) (f route.Filters) {
	for _, filter := range filters {
		switch {
		case filter.RequestHeaderModifier != nil:
			f.Request = f.Request.And(headersOf(filter.RequestHeaderModifier))
		case filter.ResponseHeaderModifier != nil:
			f.Response = f.Response.And(headersOf(filter.ResponseHeaderModifier))
		case filter.CORS != nil:
			f.CORS = corsOf(filter.CORS)
		case filter.URLRewrite != nil:
			f.Host, f.Rewrite = string(deref(filter.URLRewrite.Hostname)), rewriteOf(filter.URLRewrite.Path, prefix)
		case filter.RequestRedirect != nil:
			wanted := filter.RequestRedirect
			redirect := route.Redirect{Scheme: "http", Host: string(deref(wanted.Hostname)), Port: uint16(l.Port), Code: 302}
			if l.Protocol == api.HTTPSProtocolType {
				redirect.Scheme = "https"
			}
			if wanted.Scheme != nil {
				redirect.Scheme, redirect.Port = *wanted.Scheme, route.HTTPPort
				if *wanted.Scheme == "https" {
					redirect.Port = route.HTTPSPort
				}
			}
			if wanted.Port != nil {
				redirect.Port = uint16(*wanted.Port)
			}
			redirect.Port = max(redirect.Port, 1)
			redirect.Code = cmp.Or(deref(wanted.StatusCode), redirect.Code)
			f.Redirect, f.Rewrite = &redirect, rewriteOf(wanted.Path, prefix)
		}
	}
	return f
}

func corsOf(filter *api.HTTPCORSFilter) *route.CORS {
	c := &route.CORS{Credentials: deref(filter.AllowCredentials), MaxAge: cmp.Or(filter.MaxAge, 5)} // the default of Gateway API
	for _, one := range filter.AllowOrigins {
		origin := strings.ToLower(string(one))
		for scheme, port := range map[string]string{"http://": ":80", "https://": ":443"} {
			if strings.HasPrefix(origin, scheme) {
				origin = strings.TrimSuffix(origin, port) // browsers leave it out
			}
		}
		c.Origins = append(c.Origins, origin)
	}
	for _, one := range filter.AllowMethods {
		c.Methods = append(c.Methods, string(one))
	}
	for _, one := range filter.AllowHeaders {
		c.Headers = append(c.Headers, string(one))
	}
	for _, one := range filter.ExposeHeaders {
		c.Expose = append(c.Expose, string(one))
	}
	return c
}

func rewriteOf(path *api.HTTPPathModifier, prefix int) *route.Rewrite {
	switch {
	case path == nil:
		return nil
	case path.Type == api.FullPathHTTPPathModifier:
		return &route.Rewrite{Path: cmp.Or(deref(path.ReplaceFullPath), "/")}
	}
	return &route.Rewrite{Path: cmp.Or(deref(path.ReplacePrefixMatch), "/"), Prefix: &prefix}
}

func headersOf(filter *api.HTTPHeaderFilter) *route.Headers {
	h := &route.Headers{Remove: filter.Remove}
	for _, one := range filter.Set {
		h.Set = append(h.Set, route.Pair{Name: string(one.Name), Value: one.Value})
	}
	for _, one := range filter.Add {
		h.Add = append(h.Add, route.Pair{Name: string(one.Name), Value: one.Value})
	}
	return h
}

// nobodyService is no name that a Service may have.
const nobodyService = "nobody.invalid"

// sessionRoute takes in a route of whole sessions, and the backends of its rules.
func (b *gatewayBuilder) sessionRoute(r *routeState, refs []api.BackendRef) {
	site := route.Site{Namespace: r.object.GetNamespace(), Kind: r.kind, Name: r.object.GetName(), Since: r.object.GetCreationTimestamp().UTC()}
	var refused, resolved verdict
	// Sessions to a missing backend are refused: they lead to an empty pool.
	nobody := route.Pool{Namespace: site.Namespace, Service: nobodyService, Port: "0"}
	b.pools[nobody.Name()] = nobody
	targets := func(opened bool, via *gatewayState) (list []route.Target) {
		for _, ref := range refs {
			target := b.target(r, ref, opened, via, &resolved)
			if target.Pool == "" {
				target = route.Target{Pool: nobody.Name(), Weight: target.Weight}
			}
			if target.Weight > 0 {
				list = append(list, target)
			}
		}
		if len(list) == 0 {
			list = []route.Target{{Pool: nobody.Name(), Weight: 1}}
		}
		return list
	}
	_ = targets(false, nil)
	if err := b.valid(r, site, nil); err != nil {
		refused = verdict{string(api.RouteReasonUnsupportedValue), err.Error()}
	}
	b.attach(r, refused, resolved, func(l *listenerState, hosts, gateways []string) {
		list, opened := &site.Sessions, false
		switch {
		case l.tcp():
			list = &site.Connections
		case l.mode() == api.TLSModeTerminate:
			list, opened = &site.Terminated, true
		}
		to := targets(opened, l.gateway)
		for _, host := range hosts {
			*list = append(*list, route.Session{Port: l.port(), Host: host, Targets: to, Gateways: gateways})
		}
	})
	if len(site.Sessions)+len(site.Terminated)+len(site.Connections) > 0 {
		b.HTTP.Sites = append(b.HTTP.Sites, site)
	}
}
