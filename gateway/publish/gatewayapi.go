package publish

import (
	"cmp"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// Objects of Gateway API become sites, as Ingresses do. All Gateways and Ingresses share the ports of the gateways, and their addresses: of two routes for
// the same requests on a port the older one gets them.

// GatewayAPI is the state of Gateway API's objects in Kubernetes.
type GatewayAPI struct {
	Classes    []*api.GatewayClass
	Gateways   []*api.Gateway
	Sets       []*api.ListenerSet
	HTTPRoutes []*api.HTTPRoute
	GRPCRoutes []*api.GRPCRoute
	TCPRoutes  []*api.TCPRoute
	TLSRoutes  []*api.TLSRoute
	UDPRoutes  []*api.UDPRoute
	Policies   []*api.BackendTLSPolicy
	Grants     []*api.ReferenceGrant
	Namespaces []*core.Namespace
}

// empty reports whether there is neither a Gateway nor a route.
func (g *GatewayAPI) empty() bool {
	return len(g.Gateways)+len(g.HTTPRoutes)+len(g.GRPCRoutes)+len(g.TCPRoutes)+len(g.TLSRoutes)+len(g.UDPRoutes) == 0
}

// features are the features that the class claims, in order.
var features = []api.FeatureName{
	"BackendTLSPolicy", "GRPCRoute", "GRPCRouteNamedRouteRule", "Gateway", "GatewayAddressEmpty", "GatewayBackendClientCertificate", "GatewayFrontendClientCertificateValidation", "GatewayFrontendClientCertificateValidationInsecureFallback",
	"GatewayHTTPListenerIsolation", "GatewayHTTPSListenerDetectMisdirectedRequests", "GatewayInfrastructure", "GatewayPort8080", "GatewayStaticAddresses", "HTTPRoute", "HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode",
	"HTTPRoute308RedirectStatusCode", "HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModification",
	"HTTPRouteBackendTimeout", "HTTPRouteCORS", "HTTPRouteDestinationPortMatching", "HTTPRouteHostRewrite", "HTTPRouteMethodMatching", "HTTPRouteNamedRouteRule", "HTTPRouteParentRefPort",
	"HTTPRoutePathRedirect", "HTTPRoutePathRewrite", "HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching",
	"HTTPRouteRequestMirror", "HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror", "HTTPRouteRequestTimeout",
	"HTTPRouteResponseHeaderModification", "HTTPRouteSchemeRedirect", "ListenerSet", "ReferenceGrant", "TCPRoute", "TLSRoute", "TLSRouteModeMixed", "TLSRouteModeTerminate", "UDPRoute",
}

// listenerState is a listener of a Gateway.
type listenerState struct {
	api.Listener
	kinds    []api.RouteGroupKind
	hosts    []string              // of its certificate, when it has no hostname
	secret   *types.NamespacedName // of its certificate
	gateway  *gatewayState
	check    *route.Check       // of its clients
	problems map[string]verdict // by condition
	attached int32
	names    map[string][]string // hosts of its routes of single requests, by their kind
	others   *[]*listenerState   // see beside
}

func (l *listenerState) port() uint16 { return uint16(l.Port) }
func (l *listenerState) host() string { return string(deref(l.Hostname)) }
func (l *listenerState) tls() bool    { return l.Protocol == api.HTTPSProtocolType || l.passes() }
func (l *listenerState) tcp() bool    { return l.Protocol == api.TCPProtocolType }
func (l *listenerState) udp() bool    { return l.Protocol == api.UDPProtocolType }
func (l *listenerState) passes() bool { return l.Protocol == api.TLSProtocolType }
func (l *listenerState) mode() api.TLSModeType {
	if l.TLS == nil {
		return api.TLSModeTerminate
	}
	return cmp.Or(deref(l.TLS.Mode), api.TLSModeTerminate)
}

// serves reports whether gateways can serve the listener, if it gets its port.
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
	*listenerGroup
	sets    []*listenerGroup // the attached ones
	problem verdict          // why it is not accepted
	bound   bool             // it names addresses, and is served
	on      []string         // by these gateways alone
	shows   string           // the Secret with its certificate for backends
	refers  bool             // it names one
	// unresolved is why there is none, though it names one: backends with TLS are not asked then.
	unresolved verdict
	service    *core.Service // with the labels and annotations of its infrastructure; nil: none
	propagates bool          // it has some
	impossible verdict       // why there is no such Service, or not yet
}

// serves reports whether gateways can serve listeners of it.
func (g *gatewayState) serves() bool { return g.problem.reason == "" && (!g.bound || len(g.on) > 0) }

// verdict is why a condition is not as one wants it; the zero value is of one that is.
type verdict struct{ reason, message string }

// routeState is the common part of routes of any kind.
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

// gatewayBuilder adds to the sites of Ingresses.
type gatewayBuilder struct {
	*builder
	api        GatewayAPI
	nodes      []route.Gateway
	gateways   []*gatewayState
	sets       []*listenerGroup // of ListenerSets whose Gateway is one of these
	routes     []*routeState
	parents    map[parentKey]*listenerGroup
	namespaces map[string]labels.Set
	ports      map[uint16]*route.Listener
	udp        map[uint16]route.UDP
	uses       map[uint16][]use // of ports for HTTPS
	policies   []*policyState
	targeted   map[policyTarget][]*policyState // the oldest first
}

func deref[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// referred is the object that a reference names: without a namespace one in that of the referring object.
func referred(from string, namespace *api.Namespace, name api.ObjectName) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(string(deref(namespace)), from), Name: string(name)}
}

func older(a, b meta.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (b *gatewayBuilder) build() {
	classes := classesOf(&b.api)
	b.targeted = make(map[policyTarget][]*policyState)
	b.takePolicies()
	for _, namespace := range b.api.Namespaces {
		b.namespaces[namespace.Name] = namespace.Labels
	}
	for _, gateway := range slices.SortedFunc(slices.Values(b.api.Gateways), func(a, b *api.Gateway) int { return older(a, b) }) {
		if classes[gateway.Spec.GatewayClassName] {
			b.gateway(gateway)
		}
	}
	for _, set := range slices.SortedFunc(slices.Values(b.api.Sets), func(a, b *api.ListenerSet) int { return older(a, b) }) {
		b.listenerSet(set)
	}
	for _, g := range b.gateways {
		b.infrastructure(g)
	}
	var requests []*requestRoute
	for _, one := range b.api.HTTPRoutes {
		requests = append(requests, ofHTTPRoute(one))
	}
	for _, one := range b.api.GRPCRoutes {
		requests = append(requests, ofGRPCRoute(one))
	}
	slices.SortFunc(requests, func(a, b *requestRoute) int { return cmp.Or(older(a.object, b.object), cmp.Compare(a.kind, b.kind)) })
	for _, one := range requests {
		b.requestRoute(one)
	}
	b.isolate()
	for _, one := range slices.SortedFunc(slices.Values(b.api.TCPRoutes), func(a, b *api.TCPRoute) int { return older(a, b) }) {
		var refs []api.BackendRef
		for _, rule := range one.Spec.Rules {
			refs = append(refs, rule.BackendRefs...)
		}
		b.sessionRoute(&routeState{kind: route.KindTCPRoute, object: one, generation: one.Generation, parents: one.Spec.ParentRefs, status: one.Status.RouteStatus}, refs)
	}
	for _, one := range slices.SortedFunc(slices.Values(b.api.UDPRoutes), func(a, b *api.UDPRoute) int { return older(a, b) }) {
		b.udpRoute(one)
	}
	for _, one := range slices.SortedFunc(slices.Values(b.api.TLSRoutes), func(a, b *api.TLSRoute) int { return older(a, b) }) {
		var refs []api.BackendRef
		for _, rule := range one.Spec.Rules {
			refs = append(refs, rule.BackendRefs...)
		}
		b.sessionRoute(&routeState{kind: route.KindTLSRoute, object: one, generation: one.Generation, parents: one.Spec.ParentRefs, hostnames: one.Spec.Hostnames, status: one.Status.RouteStatus}, refs)
	}
}
