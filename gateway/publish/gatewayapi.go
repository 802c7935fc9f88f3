package publish

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// What Gateway API says becomes sites, as Ingresses do. All Gateways and Ingresses share the ports of the gateways, and their addresses: of two routes
// that want the same requests on a port the older one gets them.

// GatewayAPI is what Kubernetes says of Gateways.
type GatewayAPI struct {
	Classes    []*api.GatewayClass
	Gateways   []*api.Gateway
	HTTPRoutes []*api.HTTPRoute
	TLSRoutes  []*api.TLSRoute
	Grants     []*api.ReferenceGrant
	Namespaces []*core.Namespace
}

// features are what the class says that it supports, in order.
var features = []api.FeatureName{
	"Gateway", "GatewayAddressEmpty", "GatewayPort8080", "GatewayStaticAddresses", "HTTPRoute", "HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode",
	"HTTPRoute308RedirectStatusCode", "HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModification",
	"HTTPRouteBackendTimeout", "HTTPRouteDestinationPortMatching", "HTTPRouteHostRewrite", "HTTPRouteMethodMatching", "HTTPRouteNamedRouteRule", "HTTPRouteParentRefPort",
	"HTTPRoutePathRedirect", "HTTPRoutePathRewrite", "HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching", "HTTPRouteRequestTimeout",
	"HTTPRouteResponseHeaderModification", "HTTPRouteSchemeRedirect", "ReferenceGrant", "TLSRoute",
}

// listenerState is a listener of a Gateway.
type listenerState struct {
	api.Listener
	kinds    []api.RouteGroupKind
	hosts    []string              // of its certificate, when it has no hostname
	secret   *types.NamespacedName // of its certificate
	problems map[string]verdict    // by condition
	attached int32
}

func (l *listenerState) port() uint16 { return uint16(l.Port) }
func (l *listenerState) host() string { return string(deref(l.Hostname)) }
func (l *listenerState) tls() bool    { return l.Protocol != api.HTTPProtocolType }
func (l *listenerState) passes() bool { return l.Protocol == api.TLSProtocolType }

// serves tells whether gateways can serve the listener, if it gets its port.
func (l *listenerState) serves() bool {
	for condition, problem := range l.problems {
		if problem.reason != string(api.ListenerReasonInvalidRouteKinds) || condition != string(api.ListenerConditionResolvedRefs) {
			return false
		}
	}
	return true
}

func (l *listenerState) problem(condition api.ListenerConditionType, reason api.ListenerConditionReason, format string, arguments ...any) {
	if _, before := l.problems[string(condition)]; !before {
		l.problems[string(condition)] = verdict{reason: string(reason), message: fmt.Sprintf(format, arguments...)}
	}
}

type gatewayState struct {
	*api.Gateway
	listeners []*listenerState
	problem   verdict  // why it is not accepted
	bound     bool     // it names addresses, and is served
	on        []string // by these gateways alone
}

// serves tells whether gateways can serve listeners of it.
func (g *gatewayState) serves() bool { return g.problem.reason == "" && (!g.bound || len(g.on) > 0) }

// verdict is why a condition is not as one wants it; the zero value is of one that is.
type verdict struct{ reason, message string }

// routeState is what routes of any kind have in common.
type routeState struct {
	kind       string
	object     meta.Object
	generation int64
	parents    []api.ParentReference
	hostnames  []api.Hostname
	status     api.RouteStatus
	verdicts   []parentVerdict
}

type parentVerdict struct {
	parent             api.ParentReference
	accepted, resolved verdict
}

// gatewayBuilder adds to what the Ingresses want.
type gatewayBuilder struct {
	*builder
	api        GatewayAPI
	nodes      []route.Gateway
	gateways   []*gatewayState
	routes     []*routeState
	byName     map[types.NamespacedName]*gatewayState
	namespaces map[string]labels.Set
	ports      map[uint16]*route.Listener
}

func deref[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

func older(a, b meta.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (b *gatewayBuilder) build() {
	classes := make(map[api.ObjectName]bool)
	for _, class := range b.api.Classes {
		classes[api.ObjectName(class.Name)] = class.Spec.ControllerName == Controller && class.Spec.ParametersRef == nil
	}
	for _, namespace := range b.api.Namespaces {
		b.namespaces[namespace.Name] = namespace.Labels
	}
	for _, gateway := range slices.SortedFunc(slices.Values(b.api.Gateways), func(a, b *api.Gateway) int { return older(a, b) }) {
		if classes[gateway.Spec.GatewayClassName] {
			b.gateway(gateway)
		}
	}
	for _, one := range slices.SortedFunc(slices.Values(b.api.HTTPRoutes), func(a, b *api.HTTPRoute) int { return older(a, b) }) {
		b.httpRoute(one)
	}
	for _, one := range slices.SortedFunc(slices.Values(b.api.TLSRoutes), func(a, b *api.TLSRoute) int { return older(a, b) }) {
		b.tlsRoute(one)
	}
}

// gateway takes in which listeners a Gateway has, and which of them are good.
func (b *gatewayBuilder) gateway(gateway *api.Gateway) {
	g := &gatewayState{Gateway: gateway}
	b.gateways = append(b.gateways, g)
	b.byName[types.NamespacedName{Namespace: gateway.Namespace, Name: gateway.Name}] = g
	if infrastructure := gateway.Spec.Infrastructure; infrastructure != nil && infrastructure.ParametersRef != nil {
		g.problem = verdict{string(api.GatewayReasonInvalidParameters), "infrastructure.parametersRef: gateways of Burano have no parameters."}
	}
	for _, address := range gateway.Spec.Addresses {
		if kind := deref(address.Type); address.Type != nil && kind != api.IPAddressType {
			g.problem = verdict{string(api.GatewayReasonUnsupportedAddress), fmt.Sprintf("addresses: the type %s is not supported, only %s is.", kind, api.IPAddressType)}
		}
	}
	b.bind(g)
	site := route.Site{Namespace: gateway.Namespace, Kind: route.KindGateway, Name: gateway.Name, Since: gateway.CreationTimestamp.UTC()}
	for _, listener := range gateway.Spec.Listeners {
		l := &listenerState{Listener: listener, problems: make(map[string]verdict)}
		g.listeners = append(g.listeners, l)
		if mixed(listener, gateway.Spec.Listeners) {
			for _, condition := range []api.ListenerConditionType{api.ListenerConditionConflicted, api.ListenerConditionAccepted} {
				l.problem(condition, api.ListenerReasonProtocolConflict, "tls.mode: listeners on port %d are to open sessions, and to pass them through.", l.Port)
			}
		}
		b.kinds(l)
		b.secure(gateway, l)
		if purpose, reserved := route.Reserved(l.port()); reserved {
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonPortUnavailable, "port %d is reserved for %s.", l.Port, purpose)
		}
		if err := route.ValidHost(l.host()); err != nil {
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedValue, "hostname: %v", err)
		}
		if !g.serves() || !l.serves() {
			continue
		}
		since := gateway.CreationTimestamp.UTC()
		switch has, taken := b.ports[l.port()]; {
		case !taken:
			b.ports[l.port()] = &route.Listener{Port: l.port(), TLS: l.tls(), Passes: l.passes(), Names: l.passes(), NoIngress: true, Since: since, Gateways: g.on}
		case has.TLS != l.tls():
			l.problem(api.ListenerConditionConflicted, api.ListenerReasonProtocolConflict, "port %d speaks another protocol for an Ingress or an older listener.", l.Port)
			l.problem(api.ListenerConditionAccepted, api.ListenerReasonPortUnavailable, "port %d speaks another protocol for an Ingress or an older listener.", l.Port)
			continue
		default:
			has.Passes, has.Gateways = has.Passes || l.passes(), either(has.Gateways, g.on)
			has.Names = has.Passes
			if since.Before(has.Since) {
				has.Since = since
			}
		}
		if l.Protocol == api.HTTPSProtocolType {
			site.Opened = append(site.Opened, route.Opened{Port: l.port(), Host: l.host(), Gateways: g.on})
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

// mixed tells whether a listener is one of several for the protocol TLS on a port, of which some are to open sessions and others are not.
func mixed(one api.Listener, all []api.Listener) bool {
	mode := func(l api.Listener) api.TLSModeType {
		if l.TLS == nil {
			return api.TLSModeTerminate
		}
		return cmp.Or(deref(l.TLS.Mode), api.TLSModeTerminate)
	}
	return slices.ContainsFunc(all, func(other api.Listener) bool {
		return other.Port == one.Port && other.Protocol == api.TLSProtocolType && one.Protocol == other.Protocol && mode(other) != mode(one)
	})
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
	var able api.Kind
	switch l.Protocol {
	case api.HTTPProtocolType, api.HTTPSProtocolType:
		able = route.KindHTTPRoute
	case api.TLSProtocolType:
		able = route.KindTLSRoute
	default:
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedProtocol, "the protocol %s is not supported; HTTP, HTTPS and TLS are.", l.Protocol)
		return
	}
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		l.kinds = append(l.kinds, api.RouteGroupKind{Group: &group, Kind: able})
		return
	}
	for _, wanted := range l.AllowedRoutes.Kinds {
		if wanted.Kind == able && (wanted.Group == nil || *wanted.Group == group) {
			l.kinds = []api.RouteGroupKind{{Group: &group, Kind: able}}
			continue
		}
		l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidRouteKinds, "allowedRoutes: the kind %s is not one of a listener with the protocol %s.", wanted.Kind, l.Protocol)
	}
}

// secure takes in the certificate of a listener.
func (b *gatewayBuilder) secure(gateway *api.Gateway, l *listenerState) {
	mode := api.TLSModeTerminate
	if l.TLS != nil && l.TLS.Mode != nil {
		mode = *l.TLS.Mode
	}
	switch {
	case l.Protocol == api.TLSProtocolType && mode != api.TLSModePassthrough:
		l.kinds = []api.RouteGroupKind{}
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedValue, "tls.mode: of the protocol TLS only %s is supported; to open sessions, use HTTPS.", api.TLSModePassthrough)
		return
	case l.Protocol == api.HTTPSProtocolType && mode != api.TLSModeTerminate:
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonUnsupportedValue, "tls.mode: of the protocol HTTPS only %s is supported; to pass sessions through, use TLS.", api.TLSModeTerminate)
		return
	case l.Protocol != api.HTTPSProtocolType:
		return
	}
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCertificateRef, "tls.certificateRefs names no certificate.")
		return
	}
	for i, ref := range l.TLS.CertificateRefs {
		name := types.NamespacedName{Namespace: string(cmp.Or(deref(ref.Namespace), api.Namespace(gateway.Namespace))), Name: string(ref.Name)}
		if deref(ref.Group) != "" || ref.Kind != nil && *ref.Kind != "Secret" {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: %s %s is not a Secret.", deref(ref.Kind), ref.Name)
			continue
		}
		if !b.granted(route.KindGateway, gateway.Namespace, "Secret", name) {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonRefNotPermitted, "tls.certificateRefs: no ReferenceGrant lets Gateways of the namespace %s use the Secret %s.", gateway.Namespace, name)
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

// granted tells whether objects of a kind may refer to an object.
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

// attach says on which listeners a route is served, with which hosts, for each of its parents that is ours.
func (b *gatewayBuilder) attach(r *routeState, refused verdict, resolved verdict, serve func(l *listenerState, hosts, gateways []string)) {
	for _, parent := range r.parents {
		if parent.Group != nil && *parent.Group != api.GroupName || parent.Kind != nil && *parent.Kind != route.KindGateway {
			continue
		}
		gateway := b.byName[types.NamespacedName{Namespace: string(cmp.Or(deref(parent.Namespace), api.Namespace(r.object.GetNamespace()))), Name: string(parent.Name)}]
		if gateway == nil {
			continue
		}
		v := parentVerdict{parent: parent, resolved: resolved, accepted: verdict{string(api.RouteReasonNoMatchingParent), "the Gateway has no such listener."}}
		for _, l := range gateway.listeners {
			if parent.SectionName != nil && *parent.SectionName != l.Name || parent.Port != nil && *parent.Port != l.Port {
				continue
			}
			if v.accepted.reason == string(api.RouteReasonNoMatchingParent) {
				v.accepted = verdict{string(api.RouteReasonNotAllowedByListeners), "no listener takes such routes of this namespace."}
			}
			if !b.allows(gateway, l, r) {
				continue
			}
			hosts := common(l.host(), r.hostnames)
			if len(hosts) == 0 {
				if v.accepted.reason != "" {
					v.accepted = verdict{string(api.RouteReasonNoMatchingListenerHostname), "no listener has one of its hostnames."}
				}
				continue
			}
			v.accepted = verdict{}
			if refused.reason != "" {
				v.accepted = refused
				break
			}
			l.attached++
			if gateway.serves() && l.serves() {
				serve(l, hosts, gateway.on)
			}
		}
		r.verdicts = append(r.verdicts, v)
	}
	b.routes = append(b.routes, r)
}

func (b *gatewayBuilder) allows(gateway *gatewayState, l *listenerState, r *routeState) bool {
	if !slices.ContainsFunc(l.kinds, func(k api.RouteGroupKind) bool { return string(k.Kind) == r.kind }) {
		return false
	}
	from, selector := api.NamespacesFromSame, (*meta.LabelSelector)(nil)
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		from, selector = cmp.Or(deref(l.AllowedRoutes.Namespaces.From), from), l.AllowedRoutes.Namespaces.Selector
	}
	switch from {
	case api.NamespacesFromAll:
		return true
	case api.NamespacesFromSame:
		return r.object.GetNamespace() == gateway.Namespace
	case api.NamespacesFromSelector:
		chosen, err := meta.LabelSelectorAsSelector(selector)
		return err == nil && chosen.Matches(b.namespaces[r.object.GetNamespace()])
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

// below tells whether all hosts of one name are those of a wildcard, too.
func below(host, wildcard string) bool {
	suffix, wild := strings.CutPrefix(wildcard, "*")
	return wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
}

func (b *gatewayBuilder) httpRoute(object *api.HTTPRoute) {
	r := &routeState{kind: route.KindHTTPRoute, object: object, generation: object.Generation, parents: object.Spec.ParentRefs, hostnames: object.Spec.Hostnames, status: object.Status.RouteStatus}
	site := route.Site{Namespace: object.Namespace, Kind: r.kind, Name: object.Name, Since: object.CreationTimestamp.UTC()}
	var refused, resolved verdict
	for i, rule := range object.Spec.Rules {
		if err := unsupported(rule); err != nil && refused.reason == "" {
			refused = verdict{string(api.RouteReasonUnsupportedValue), fmt.Sprintf("rules[%d]: %v", i, err)}
		}
		_ = b.targets(r, rule, &api.Listener{}, 0, &resolved)
	}
	// What it becomes is tried with a port that is always good: a rule that cannot be served makes the route one that is not.
	try := &listenerState{Listener: api.Listener{Port: 1, Protocol: api.HTTPProtocolType}}
	if err := b.valid(r, site, b.paths(r, object, try, []string{""}, nil)); err != nil && refused.reason == "" {
		refused = verdict{string(api.RouteReasonUnsupportedValue), err.Error()}
	}
	b.attach(r, refused, resolved, func(l *listenerState, hosts, gateways []string) {
		site.Paths = append(site.Paths, b.paths(r, object, l, hosts, gateways)...)
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

// unsupported says what of a rule gateways cannot do.
func unsupported(rule api.HTTPRouteRule) error {
	if rule.Retry != nil || rule.SessionPersistence != nil {
		return fmt.Errorf("retry and sessionPersistence are not supported")
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
		case api.HTTPRouteFilterRequestHeaderModifier, api.HTTPRouteFilterResponseHeaderModifier, api.HTTPRouteFilterRequestRedirect, api.HTTPRouteFilterURLRewrite:
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

// paths are what a route has on a listener.
func (b *gatewayBuilder) paths(r *routeState, object *api.HTTPRoute, l *listenerState, hosts, gateways []string) (paths []route.Path) {
	for _, rule := range object.Spec.Rules {
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
			path.Targets = b.targets(r, rule, &l.Listener, len(strings.TrimRight(path.Path, "/")), &ignored)
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
		// Names mean the same in any case; of those that are there twice the first counts.
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
func (b *gatewayBuilder) targets(r *routeState, rule api.HTTPRouteRule, l *api.Listener, prefix int, resolved *verdict) []route.Target {
	filters := filtersOf(rule.Filters, l, prefix)
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
	var targets []route.Target
	some := false
	for _, ref := range rule.BackendRefs {
		target := b.target(r, ref.BackendRef, resolved)
		some = some || target.Weight > 0
		if target.Pool != "" {
			own := filters
			own.H2C = target.Filters != nil && target.Filters.H2C
			of := filtersOf(ref.Filters, l, prefix)
			own.Request, own.Response = own.Request.And(of.Request), own.Response.And(of.Response)
			target.Filters = nil
			if own != (route.Filters{}) {
				target.Filters = &own
			}
		}
		targets = append(targets, target)
	}
	if !some {
		return []route.Target{failing(1)}
	}
	return targets
}

// failing answers requests with 500, as Gateway API asks for what leads to a backend that is none.
func failing(weight int) route.Target {
	return route.Target{Weight: weight, Filters: &route.Filters{Status: 500}}
}

// target is a backend of a rule.
func (b *gatewayBuilder) target(r *routeState, ref api.BackendRef, resolved *verdict) route.Target {
	weight := 1
	if ref.Weight != nil {
		weight = int(*ref.Weight)
	}
	problem := func(reason api.RouteConditionReason, format string, arguments ...any) route.Target {
		if resolved.reason == "" {
			*resolved = verdict{string(reason), fmt.Sprintf("backendRefs: "+format, arguments...)}
		}
		return failing(weight)
	}
	name := types.NamespacedName{Namespace: string(cmp.Or(deref(ref.Namespace), api.Namespace(r.object.GetNamespace()))), Name: string(ref.Name)}
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
		return ref.Port != nil && p.Port == *ref.Port && (p.Protocol == core.ProtocolTCP || p.Protocol == "")
	})
	if number < 0 {
		return problem(api.RouteReasonBackendNotFound, "the Service %s has no TCP port %d.", name, deref(ref.Port))
	}
	port := service.Spec.Ports[number]
	protocol := deref(port.AppProtocol)
	if r.kind == route.KindHTTPRoute && protocol == "kubernetes.io/wss" {
		return problem(api.RouteReasonUnsupportedProtocol, "gateways speak with backends without TLS, and port %d of the Service %s wants %s.", port.Port, name, protocol)
	}
	pool := route.Pool{Namespace: name.Namespace, Service: name.Name, Port: portName(port), Backends: backends(service, port, b.slices[name])}
	if err := (route.Part{Pool: &pool}).Validate(); err != nil {
		return problem(api.RouteReasonBackendNotFound, "%v", err)
	}
	b.pools[pool.Name()] = pool
	target := route.Target{Pool: pool.Name(), Weight: weight}
	if r.kind == route.KindHTTPRoute && protocol == "kubernetes.io/h2c" {
		target.Filters = &route.Filters{H2C: true}
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

func (b *gatewayBuilder) tlsRoute(object *api.TLSRoute) {
	r := &routeState{kind: route.KindTLSRoute, object: object, generation: object.Generation, parents: object.Spec.ParentRefs, hostnames: object.Spec.Hostnames, status: object.Status.RouteStatus}
	site := route.Site{Namespace: object.Namespace, Kind: r.kind, Name: object.Name, Since: object.CreationTimestamp.UTC()}
	var refused, resolved verdict
	// Sessions that lead to a backend that is none are refused: they lead to a pool that has nobody.
	nobody := route.Pool{Namespace: object.Namespace, Service: nobodyService, Port: "0"}
	b.pools[nobody.Name()] = nobody
	var targets []route.Target
	for _, rule := range object.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			target := b.target(r, ref, &resolved)
			if target.Pool == "" {
				target = route.Target{Pool: nobody.Name(), Weight: target.Weight}
			}
			if target.Weight > 0 {
				targets = append(targets, target)
			}
		}
	}
	if len(targets) == 0 {
		targets = []route.Target{{Pool: nobody.Name(), Weight: 1}}
	}
	if err := b.valid(r, site, nil); err != nil {
		refused = verdict{string(api.RouteReasonUnsupportedValue), err.Error()}
	}
	b.attach(r, refused, resolved, func(l *listenerState, hosts, gateways []string) {
		for _, host := range hosts {
			site.Sessions = append(site.Sessions, route.Session{Port: l.port(), Host: host, Targets: targets, Gateways: gateways})
		}
	})
	if len(site.Sessions) > 0 {
		b.HTTP.Sites = append(b.HTTP.Sites, site)
	}
}

// conditions brings conditions to what is wanted; those that are so keep the time of their change.
type conditions struct {
	list       []meta.Condition
	generation int64
	now        time.Time
}

func (c *conditions) set(kind string, good bool, reason, message string) {
	status := meta.ConditionFalse
	if good {
		status = meta.ConditionTrue
	}
	apimeta.SetStatusCondition(&c.list, meta.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: c.generation, LastTransitionTime: meta.NewTime(c.now.Truncate(time.Second)),
	})
}

// verdict sets a condition that is good without a problem, and has its own name as the reason then.
func (c *conditions) verdict(kind string, v verdict) {
	c.set(kind, v.reason == "", cmp.Or(v.reason, kind), v.message)
}

// ClassStatus is what the status of a class is to say, if it is ours.
func ClassStatus(class *api.GatewayClass, now time.Time) (status api.GatewayClassStatus, ours bool) {
	status = *class.Status.DeepCopy()
	if class.Spec.ControllerName != Controller {
		return status, false
	}
	c := conditions{list: status.Conditions, generation: class.Generation, now: now}
	var problem verdict
	if class.Spec.ParametersRef != nil {
		problem = verdict{string(api.GatewayClassReasonInvalidParameters), "parametersRef: the class has no parameters."}
	}
	c.verdict(string(api.GatewayClassConditionStatusAccepted), problem)
	status.Conditions, status.SupportedFeatures = c.list, nil
	for _, name := range features {
		status.SupportedFeatures = append(status.SupportedFeatures, api.SupportedFeature{Name: name})
	}
	return status, true
}

// gatewayStatus is what the status of a Gateway is to say, of the addresses of the gateways and who has ports that were wanted.
func (s *Sites) gatewayStatus(g *gatewayState, addresses []string, now time.Time) api.GatewayStatus {
	status := *g.Status.DeepCopy()
	former := status.Listeners
	status.Listeners = nil
	invalid, programmed := 0, 0
	for _, l := range g.listeners {
		entry := api.ListenerStatus{Name: l.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
		if i := slices.IndexFunc(former, func(f api.ListenerStatus) bool { return f.Name == l.Name }); i >= 0 {
			entry.Conditions = former[i].Conditions
		}
		problems := l.problems
		accepted := problems[string(api.ListenerConditionAccepted)]
		if holder, taken := s.conflicts[l.port()]; taken && accepted.reason == "" {
			accepted = verdict{string(api.ListenerReasonPortUnavailable), fmt.Sprintf("port %d of the gateways belongs to the Service %s, which is older. Move it with the Service's annotation %s, or do not publish it (%s: \"false\").",
				l.Port, holder, AnnotationPort, AnnotationPublish)}
		}
		c := conditions{list: entry.Conditions, generation: g.Generation, now: now}
		c.verdict(string(api.ListenerConditionAccepted), accepted)
		c.verdict(string(api.ListenerConditionResolvedRefs), problems[string(api.ListenerConditionResolvedRefs)])
		conflict := problems[string(api.ListenerConditionConflicted)]
		c.set(string(api.ListenerConditionConflicted), conflict.reason != "", cmp.Or(conflict.reason, string(api.ListenerReasonNoConflicts)), conflict.message)
		var not verdict
		if accepted.reason != "" || g.problem.reason != "" || problems[string(api.ListenerConditionResolvedRefs)].reason != "" {
			not = verdict{string(api.ListenerReasonInvalid), cmp.Or(accepted.message, g.problem.message, problems[string(api.ListenerConditionResolvedRefs)].message)}
		} else {
			programmed++
		}
		if accepted.reason != "" {
			invalid++
		}
		c.verdict(string(api.ListenerConditionProgrammed), not)
		entry.Conditions = c.list
		status.Listeners = append(status.Listeners, entry)
	}
	c := conditions{list: status.Conditions, generation: g.Generation, now: now}
	switch {
	case g.problem.reason != "":
		c.verdict(string(api.GatewayConditionAccepted), g.problem)
	case invalid > 0:
		c.set(string(api.GatewayConditionAccepted), invalid < len(g.listeners), string(api.GatewayReasonListenersNotValid), fmt.Sprintf("%d of %d listeners cannot be served; their conditions say why.", invalid, len(g.listeners)))
	default:
		c.verdict(string(api.GatewayConditionAccepted), verdict{})
	}
	var not verdict
	wanted := slices.Clone(addresses)
	if g.bound {
		wanted = nil
	}
	for _, address := range g.Spec.Addresses {
		if address.Value == "" || g.problem.reason != "" {
			continue
		}
		ip, err := netip.ParseAddr(address.Value)
		switch {
		case err != nil || !slices.Contains(addresses, ip.String()):
			not = verdict{string(api.GatewayReasonAddressNotUsable), fmt.Sprintf("addresses: %s is no address of the gateways; they have %s.", address.Value, strings.Join(addresses, ", "))}
		case !slices.Contains(wanted, ip.String()):
			wanted = append(wanted, ip.String())
		}
	}
	switch {
	case g.problem.reason != "":
		not = verdict{string(api.GatewayReasonInvalid), g.problem.message}
	case not.reason != "":
	case len(addresses) == 0:
		not = verdict{string(api.GatewayReasonNoResources), "The cluster has no gateway that serves."}
	case programmed == 0:
		not = verdict{string(api.GatewayReasonInvalid), "No listener can be served; their conditions say why."}
	}
	c.verdict(string(api.GatewayConditionProgrammed), not)
	status.Conditions, status.Addresses = c.list, nil
	kind := api.IPAddressType
	for _, address := range wanted {
		if not.reason == "" {
			status.Addresses = append(status.Addresses, api.GatewayStatusAddress{Type: &kind, Value: address})
		}
	}
	return status
}

// routeStatus is what the status of a route is to say: what other controllers say of it stays.
func (r *routeState) routeStatus(now time.Time) api.RouteStatus {
	status := api.RouteStatus{Parents: []api.RouteParentStatus{}}
	former := make(map[string][]meta.Condition)
	key := func(p api.ParentReference) string {
		return strings.Join([]string{string(deref(p.Namespace)), string(p.Name), string(deref(p.SectionName)), strconv.Itoa(int(deref(p.Port)))}, "/")
	}
	for _, parent := range r.status.Parents {
		if parent.ControllerName == Controller {
			former[key(parent.ParentRef)] = parent.DeepCopy().Conditions
		} else {
			status.Parents = append(status.Parents, parent)
		}
	}
	for _, v := range r.verdicts {
		c := conditions{list: former[key(v.parent)], generation: r.generation, now: now}
		c.verdict(string(api.RouteConditionAccepted), v.accepted)
		c.verdict(string(api.RouteConditionResolvedRefs), v.resolved)
		status.Parents = append(status.Parents, api.RouteParentStatus{ParentRef: v.parent, ControllerName: Controller, Conditions: c.list})
	}
	return status
}
