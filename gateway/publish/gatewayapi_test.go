package publish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"pgregory.net/rapid"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
)

// read reads an object as users write it.
func read[T any](t require.TestingT, text string) *T {
	object := new(T)
	require.NoError(t, yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096).Decode(object))
	return object
}

const gatewayText = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: default, generation: 3, creationTimestamp: "2026-01-01T08:00:00Z"}
spec:
  gatewayClassName: burano
  listeners:
  - {name: plain, port: 8088, protocol: HTTP}
  - name: safe
    port: 8443
    protocol: HTTPS
    hostname: "*.a.org"
    tls: {certificateRefs: [{name: good}]}
    allowedRoutes: {namespaces: {from: All}}
  - {name: sealed, port: 8443, protocol: TLS, hostname: pod.a.org, tls: {mode: Passthrough}}
`

func gatewayWorld(t require.TestingT, gateways []string, routes ...string) publish.World {
	w := world()
	w.GatewayAPI = &publish.GatewayAPI{
		Classes: []*api.GatewayClass{{ObjectMeta: meta.ObjectMeta{Name: "burano"}, Spec: api.GatewayClassSpec{ControllerName: publish.Controller}}},
	}
	for _, text := range gateways {
		w.GatewayAPI.Gateways = append(w.GatewayAPI.Gateways, read[api.Gateway](t, text))
	}
	for _, text := range routes {
		switch first, _, _ := strings.Cut(text, "\n"); first {
		case "kind: TLSRoute":
			w.GatewayAPI.TLSRoutes = append(w.GatewayAPI.TLSRoutes, read[api.TLSRoute](t, text))
		case "kind: UDPRoute":
			w.GatewayAPI.UDPRoutes = append(w.GatewayAPI.UDPRoutes, read[api.UDPRoute](t, text))
		case "kind: TCPRoute":
			w.GatewayAPI.TCPRoutes = append(w.GatewayAPI.TCPRoutes, read[api.TCPRoute](t, text))
		case "kind: GRPCRoute":
			w.GatewayAPI.GRPCRoutes = append(w.GatewayAPI.GRPCRoutes, read[api.GRPCRoute](t, text))
		case "kind: ConfigMap":
			w.ConfigMaps = append(w.ConfigMaps, read[core.ConfigMap](t, text))
		case "kind: BackendTLSPolicy":
			w.GatewayAPI.Policies = append(w.GatewayAPI.Policies, read[api.BackendTLSPolicy](t, text))
		case "kind: ReferenceGrant":
			w.GatewayAPI.Grants = append(w.GatewayAPI.Grants, read[api.ReferenceGrant](t, text))
		case "kind: ListenerSet":
			w.GatewayAPI.Sets = append(w.GatewayAPI.Sets, read[api.ListenerSet](t, text))
		default:
			w.GatewayAPI.HTTPRoutes = append(w.GatewayAPI.HTTPRoutes, read[api.HTTPRoute](t, text))
		}
	}
	return w
}

func routeText(name, spec string) string {
	return "metadata: {name: " + name + ", namespace: default}\nspec: " + spec
}

func siteOf(sites publish.Sites, kind, name string) route.Site {
	for _, site := range sites.HTTP.Sites {
		if site.Kind == kind && site.Name == name {
			return site
		}
	}
	return route.Site{}
}

func TestRoutesOfGatewaysBecomeSites(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "www.a.org", 0)
	w := gatewayWorld(t, []string{gatewayText},
		routeText("all", `{parentRefs: [{name: edge}], hostnames: [www.a.org, b.org], rules: [{backendRefs: [{name: a, port: 80, weight: 3}, {name: b, port: 80}], matches: [{path: {type: Exact, value: /x}, method: GET, headers: [{name: X-A, value: "1"}]}]}]}`),
		routeText("away", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, port: 8443, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}], matches: [{path: {value: /old/}}]}]}`),
		routeText("nobody", `{parentRefs: [{name: edge, port: 8088}], rules: [{backendRefs: [{name: gone, port: 80}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: b}]}}], timeouts: {request: 3s, backendRequest: 1s}, matches: [{path: {value: /gone}}]}, {backendRefs: [{name: a, port: 80}], filters: [{type: URLRewrite, urlRewrite: {hostname: other.org, path: {type: ReplaceFullPath, replaceFullPath: /full}}}], timeouts: {request: 3s, backendRequest: 1s}}]}`),
		"kind: TLSRoute\n"+routeText("pod", `{parentRefs: [{name: edge, sectionName: sealed}], hostnames: ["*.a.org"], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
	)
	w.Secrets = []*core.Secret{tlsSecret("good", certificate, key)}
	sites := publish.SitesOf(w)
	require.Empty(t, sites.Complaints)
	pools := []string{"default/a/http", "default/b/http"}
	match := &route.Match{Method: "GET", Headers: []route.Pair{{Name: "x-a", Value: "1"}}}
	shares := []route.Target{{Pool: pools[0], Weight: 3}, {Pool: pools[1], Weight: 1}}
	require.Equal(t, []route.Path{
		{Port: 8088, Host: "www.a.org", Path: "/x", Exact: true, Match: match, Targets: shares},
		{Port: 8088, Host: "b.org", Path: "/x", Exact: true, Match: match, Targets: shares},
		{Port: 8443, Host: "www.a.org", Path: "/x", Exact: true, Match: match, Targets: shares},
	}, siteOf(sites, route.KindHTTPRoute, "all").Paths)
	four := 4
	require.Equal(t, []route.Path{{Port: 8088, Path: "/old/", Targets: []route.Target{{Weight: 1, Filters: &route.Filters{
		Rewrite: &route.Rewrite{Path: "/new", Prefix: &four}, Redirect: &route.Redirect{Scheme: "https", Port: 8443, Code: 301},
	}}}}}, siteOf(sites, route.KindHTTPRoute, "away").Paths)
	require.Equal(t, []route.Path{
		{Port: 8088, Path: "/gone", Targets: []route.Target{{Weight: 1, Filters: &route.Filters{Status: 500}}}},
		{Port: 8088, Path: "/", Targets: []route.Target{{Pool: pools[0], Weight: 1, Filters: &route.Filters{Host: "other.org", Rewrite: &route.Rewrite{Path: "/full"}, Timeout: time.Second}}}},
	}, siteOf(sites, route.KindHTTPRoute, "nobody").Paths)
	require.Equal(t, []route.Session{{Port: 8443, Host: "pod.a.org", Targets: []route.Target{{Pool: pools[0], Weight: 1}}}}, siteOf(sites, route.KindTLSRoute, "pod").Sessions)
	require.Equal(t, []route.Certificate{{Host: "*.a.org", Namespace: "default", Secret: "good"}}, siteOf(sites, route.KindGateway, "edge").Certificates)
	require.Equal(t, []route.Opened{{Port: 8443, Host: "*.a.org", Owner: "default/edge"}}, siteOf(sites, route.KindGateway, "edge").Opened)
	for _, part := range sites.Parts() {
		require.NoError(t, part.Validate())
	}
}

func TestCallsOfGRPCRoutesAreRequests(t *testing.T) {
	calls := "kind: GRPCRoute\n" + routeText("calls", `{parentRefs: [{name: edge, sectionName: plain}], hostnames: [calls.org], rules: [
		{matches: [{method: {service: a.B, method: C}, headers: [{name: X-A, value: "1"}]}, {method: {service: a.B}}], backendRefs: [{name: a, port: 80}]},
		{backendRefs: [{name: gone, port: 80}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: b}]}}]}]}`)
	sites := publish.SitesOf(gatewayWorld(t, []string{gatewayText}, calls))
	target := []route.Target{{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{H2C: true}}}
	require.Equal(t, []route.Path{
		{Port: 8088, Host: "calls.org", Path: "/a.B/C", Exact: true, Match: &route.Match{Headers: []route.Pair{{Name: "x-a", Value: "1"}}}, Targets: target},
		{Port: 8088, Host: "calls.org", Path: "/a.B", Targets: target},
		{Port: 8088, Host: "calls.org", Path: "/", Targets: []route.Target{{Weight: 1, Filters: &route.Filters{Status: 503}}}},
	}, siteOf(sites, route.KindGRPCRoute, "calls").Paths)

	// A hostname of a listener is for calls or for requests, and belongs to the older route.
	for hosts, other := range map[string]bool{"[calls.org]": false, `["*.org"]`: false, "[other.org]": true, "[]": false} {
		w := gatewayWorld(t, []string{gatewayText}, calls, routeText("web", `{parentRefs: [{name: edge, sectionName: plain}], hostnames: `+hosts+`, rules: [{backendRefs: [{name: a, port: 80}]}]}`))
		w.GatewayAPI.HTTPRoutes[0].CreationTimestamp = meta.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
		sites := publish.SitesOf(w)
		require.Len(t, siteOf(sites, route.KindGRPCRoute, "calls").Paths, 3, hosts)
		require.Equal(t, other, len(siteOf(sites, route.KindHTTPRoute, "web").Paths) > 0, hosts)
	}
	for _, match := range []string{"{method: C}", "{type: RegularExpression, service: a.*}"} {
		sites := publish.SitesOf(gatewayWorld(t, []string{gatewayText}, "kind: GRPCRoute\n"+routeText("calls", `{parentRefs: [{name: edge}], rules: [{matches: [{method: `+match+`}], backendRefs: [{name: a, port: 80}]}]}`)))
		require.Empty(t, siteOf(sites, route.KindGRPCRoute, "calls").Paths, match)
	}
}

func TestListenersOfAListenerSetAreThoseOfItsGateway(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "www.set.org", 0)
	set := func(name, spec string) string { return "kind: ListenerSet\n" + routeText(name, spec) }
	allows := strings.Replace(gatewayText, "gatewayClassName: burano", "gatewayClassName: burano\n  allowedListeners: {namespaces: {from: Same}}", 1)
	texts := []string{
		set("first", `{parentRef: {name: edge}, listeners: [{name: web, port: 8088, protocol: HTTP, hostname: set.org}, {name: safe, port: 8443, protocol: HTTPS, hostname: "*.set.org", tls: {certificateRefs: [{name: own}]}},
			{name: again, port: 8443, protocol: HTTPS, hostname: "*.a.org", tls: {certificateRefs: [{name: own}]}}, {name: raw, port: 8090, protocol: TCP}]}`),
		set("second", `{parentRef: {name: edge}, listeners: [{name: raw, port: 8090, protocol: HTTP}]}`),
		routeText("own", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		routeText("set", `{parentRefs: [{kind: ListenerSet, name: first}], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		routeText("lost", `{parentRefs: [{kind: ListenerSet, name: second}, {name: edge, sectionName: raw}], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		"kind: TCPRoute\n" + routeText("raw", `{parentRefs: [{kind: ListenerSet, name: first, port: 8090}], rules: [{backendRefs: [{name: a, port: 80, weight: 2}, {name: gone, port: 80}]}]}`),
	}
	sites := func(gateway string) publish.Sites {
		w := gatewayWorld(t, []string{gateway}, texts...)
		w.Secrets = []*core.Secret{tlsSecret("good", certificate, key), tlsSecret("own", certificate, key)}
		return publish.SitesOf(w)
	}
	hosts := func(s publish.Sites, name string) (list []string) {
		for _, path := range siteOf(s, route.KindHTTPRoute, name).Paths {
			list = append(list, fmt.Sprintf("%s:%d", path.Host, path.Port))
		}
		return list
	}
	s := sites(allows)
	require.Equal(t, []string{"set.org:8088", "*.set.org:8443"}, hosts(s, "set"), "without the listener whose name the Gateway has")
	require.Equal(t, []string{":8088", "*.a.org:8443"}, hosts(s, "own"), "a route of the Gateway is not one of its ListenerSets")
	require.Empty(t, hosts(s, "lost"), "an older ListenerSet has the port for another protocol, and a Gateway's sections are its own")
	require.Equal(t, []route.Session{{Port: 8090, Targets: []route.Target{{Pool: "default/a/http", Weight: 2}, {Pool: "default/nobody.invalid/0", Weight: 1}}}}, siteOf(s, route.KindTCPRoute, "raw").Connections)
	require.Equal(t, []route.Certificate{{Host: "*.set.org", Namespace: "default", Secret: "own"}}, siteOf(s, route.KindListenerSet, "first").Certificates)
	for _, part := range s.Parts() {
		require.NoError(t, part.Validate())
	}
	s = sites(gatewayText)
	require.Empty(t, hosts(s, "set"), "a Gateway takes no ListenerSet by itself")
	require.Empty(t, siteOf(s, route.KindListenerSet, "first"))
}

// TestSessionsThatLeadToABackendThatIsNoneAreRefused holds that nothing else that listens on the port gets them.
func TestSessionsThatLeadToABackendThatIsNoneAreRefused(t *testing.T) {
	nobody := route.Pool{Namespace: "default", Service: "nobody.invalid", Port: "0"}
	for backends, shares := range map[string][]int{
		"[{name: gone, port: 80}]": {0, 1}, "[{name: a, port: 80, weight: 0}]": {0, 1},
		"[{name: a, port: 80, weight: 3}, {name: gone, port: 80, weight: 2}]": {3, 2}, "[{name: a, port: 80}, {name: gone, port: 80, weight: 0}]": {1, 0},
	} {
		var targets []route.Target
		for i, pool := range []string{"default/a/http", nobody.Name()} {
			if shares[i] > 0 {
				targets = append(targets, route.Target{Pool: pool, Weight: shares[i]})
			}
		}
		sites := publish.SitesOf(gatewayWorld(t, []string{gatewayText}, "kind: TLSRoute\n"+routeText("pod", "{parentRefs: [{name: edge, sectionName: sealed}], rules: [{backendRefs: "+backends+"}]}")))
		require.Equal(t, []route.Session{{Port: 8443, Host: "pod.a.org", Targets: targets}}, siteOf(sites, route.KindTLSRoute, "pod").Sessions, backends)
		for _, part := range sites.Parts() {
			require.NoError(t, part.Validate())
		}
		require.Equal(t, shares[1] > 0, slices.ContainsFunc(sites.HTTP.Pools, func(p route.Pool) bool { return p.Name() == nobody.Name() && len(p.Backends) == 0 }), backends)
	}
}

// TestAGatewayIsServedAtTheAddressesThatItNames has two Gateways with routes for the same requests, which are served by one gateway each.
func TestAGatewayIsServedAtTheAddressesThatItNames(t *testing.T) {
	at := func(name, addresses string) string {
		return strings.Replace(strings.Replace(gatewayText, "edge", name, 1), "listeners:", "addresses: "+addresses+"\n  listeners:", 1)
	}
	routes := func(name string) []string {
		return []string{
			routeText(name, `{parentRefs: [{name: `+name+`, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
			"kind: TLSRoute\n" + routeText(name, `{parentRefs: [{name: `+name+`}], hostnames: [pod.a.org], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		}
	}
	certificate, key := haproxytest.Certificate(t, "www.a.org", 0)
	serve := func(first, second string) (sites publish.Sites) {
		w := gatewayWorld(t, []string{at("first", first), at("second", second)}, slices.Concat(routes("first"), routes("second"))...)
		w.Secrets = []*core.Secret{tlsSecret("good", certificate, key)}
		w.Gateways = []route.Gateway{{Name: "gateway-1", Address: netip.MustParseAddr("203.0.113.1")}, {Name: "gateway-2", Address: netip.MustParseAddr("203.0.113.2")}}
		return publish.SitesOf(w)
	}
	on := func(sites publish.Sites, name string) []string {
		return siteOf(sites, route.KindHTTPRoute, name).Paths[0].Gateways
	}
	sites := serve("[{value: 203.0.113.2}]", "[{type: IPAddress, value: 203.0.113.1}, {value: 192.0.2.1}]")
	for name, where := range map[string][]string{"first": {"gateway-2"}, "second": {"gateway-1"}} {
		require.Equal(t, where, on(sites, name))
		require.Equal(t, where, siteOf(sites, route.KindTLSRoute, name).Sessions[0].Gateways)
		require.Equal(t, where, siteOf(sites, route.KindGateway, name).Certificates[0].Gateways)
	}
	require.Equal(t, []string{"gateway-1", "gateway-2"}, on(serve("[{value: 203.0.113.2}, {value: 203.0.113.1}]", "[]"), "first"))
	require.Empty(t, on(serve(`[{type: IPAddress}]`, "[]"), "first"), "any address is that of all gateways")
	sites = serve("[{value: 192.0.2.1}]", "[{value: 203.0.113.1}]")
	for _, kind := range []string{route.KindGateway, route.KindHTTPRoute, route.KindTLSRoute} {
		require.Empty(t, siteOf(sites, kind, "first"), "no gateway has the address")
		require.NotEmpty(t, siteOf(sites, kind, "second"))
	}
}

func TestAServiceSaysWhetherItsBackendsSpeakHTTP2(t *testing.T) {
	text := routeText("h2", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}, {name: b, port: 80}], filters: [{type: URLRewrite, urlRewrite: {hostname: a.org}}]}]}`)
	speaks := func(protocol string) []route.Target {
		w := gatewayWorld(t, []string{gatewayText}, text)
		w.Services[0].Spec.Ports[0].AppProtocol = &protocol
		return siteOf(publish.SitesOf(w), route.KindHTTPRoute, "h2").Paths[0].Targets
	}
	plain := route.Target{Pool: "default/b/http", Weight: 1, Filters: &route.Filters{Host: "a.org"}}
	require.Equal(t, []route.Target{{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{Host: "a.org", H2C: true}}, plain}, speaks("kubernetes.io/h2c"))
	require.Equal(t, []route.Target{{Pool: "default/a/http", Weight: 1, Filters: plain.Filters}, plain}, speaks("kubernetes.io/ws"))
	require.Equal(t, []route.Target{{Weight: 1, Filters: &route.Filters{Status: 500}}, plain}, speaks("kubernetes.io/wss"))
}

func TestARouteThatIsTooLongForEtcdIsNotServed(t *testing.T) {
	var hosts, matches []string
	for i := range 16 {
		hosts = append(hosts, fmt.Sprintf("h%d.a.org", i))
	}
	for i := range 64 {
		matches = append(matches, fmt.Sprintf("{path: {value: /%s%d}, headers: [{name: X, value: %s}]}", strings.Repeat("x", 900), i, strings.Repeat("y", 500)))
	}
	w := gatewayWorld(t, []string{gatewayText}, routeText("long", "{parentRefs: [{name: edge}], hostnames: ["+strings.Join(hosts, ",")+"], rules: [{backendRefs: [{name: a, port: 80}], matches: ["+strings.Join(matches, ",")+"]}]}"))
	require.Empty(t, siteOf(publish.SitesOf(w), route.KindHTTPRoute, "long"))
	w.GatewayAPI.HTTPRoutes[0].Spec.Hostnames = w.GatewayAPI.HTTPRoutes[0].Spec.Hostnames[:2]
	require.NotEmpty(t, siteOf(publish.SitesOf(w), route.KindHTTPRoute, "long"))
}

// TestWhatIsWrittenOfGatewaysIsValid checks that values in etcd are valid, and do not depend on the order of Kubernetes' objects.
func TestWhatIsWrittenOfGatewaysIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "/", "/x", "a.org", "*.a.org", "X-A", "a"}), rapid.String())
		w := gatewayWorld(t, []string{gatewayText, strings.ReplaceAll(gatewayText, "edge", "second")})
		for i := range rapid.IntRange(1, 3).Draw(t, "routes") {
			kind, value, port := api.PathMatchPathPrefix, text.Draw(t, "path"), api.PortNumber(80)
			name, header := api.HTTPHeaderName(text.Draw(t, "name")), text.Draw(t, "value")
			one := &api.HTTPRoute{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: fmt.Sprint("r", i)}}
			one.Spec.ParentRefs = []api.ParentReference{{Name: "edge"}, {Name: "second"}}
			one.Spec.Hostnames = []api.Hostname{api.Hostname(text.Draw(t, "host"))}
			one.Spec.Rules = []api.HTTPRouteRule{{
				Matches:     []api.HTTPRouteMatch{{Path: &api.HTTPPathMatch{Type: &kind, Value: &value}, Headers: []api.HTTPHeaderMatch{{Name: name, Value: header}}}},
				Filters:     []api.HTTPRouteFilter{{Type: api.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &api.HTTPHeaderFilter{Set: []api.HTTPHeader{{Name: name, Value: header}}}}},
				BackendRefs: []api.HTTPBackendRef{{BackendRef: api.BackendRef{BackendObjectReference: api.BackendObjectReference{Name: api.ObjectName(text.Draw(t, "service")), Port: &port}}}},
			}}
			w.GatewayAPI.HTTPRoutes = append(w.GatewayAPI.HTTPRoutes, one)
		}
		sites := publish.SitesOf(w)
		for _, part := range sites.Parts() {
			require.NoError(t, part.Validate())
		}
		slices.Reverse(w.GatewayAPI.HTTPRoutes)
		slices.Reverse(w.GatewayAPI.Gateways)
		require.Equal(t, sites.HTTP, publish.SitesOf(w).HTTP)
	})
}

// definitions has the API know the kinds of Gateway API.
func definitions(t *testing.T, admin kubernetes.Interface) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	for _, kind := range []string{"backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants", "tcproutes", "tlsroutes", "udproutes"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(output)), "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml"))
		require.NoError(t, err)
		require.NoError(t, admin.CoreV1().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").SetHeader("Content-Type", "application/yaml").Body(content).Do(t.Context()).Error())
		require.Eventually(t, func() bool {
			return admin.CoreV1().RESTClient().Get().AbsPath("/apis/gateway.networking.k8s.io/v1/"+kind).Do(t.Context()).Error() == nil
		}, 20*time.Second, 20*time.Millisecond, kind)
	}
}

// TestGatewaysOfARealCluster goes through the life of a Gateway and its routes in a real Kubernetes API, which learns of their kinds while the publisher runs.
func TestGatewaysOfARealCluster(t *testing.T) {
	c := newCluster(t)
	etcd, admin := c.etcd, c.admin
	key, err := seal.Load(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	put := func(key string, value []byte, err error) {
		require.NoError(t, err)
		_, err = etcd.Put(t.Context(), key, string(value))
		require.NoError(t, err)
	}
	node := route.Gateway{Name: "murano-gateway-1", Address: netip.MustParseAddr("203.0.113.1")}
	value, err := route.EncodeGateway(node)
	put(route.GatewayKey(node), value, err)
	value, err = route.EncodeKey(route.PublicKey{Gateway: node.Name, Public: key.Public()})
	put(route.KeyOf(node.Name), value, err)
	_, err = admin.CoreV1().Services("default").Create(t.Context(), newService("a", 8080), meta.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.CoreV1().Services("default").Create(t.Context(), newService("taken", 8090), meta.CreateOptions{})
	require.NoError(t, err)
	stop := c.start(t, publish.Run)
	awaitRoute(t, etcd, 8090, anything)
	definitions(t, admin)
	stop() // else it looks for the kinds again within half a minute
	c.start(t, publish.Run)

	const base = "/apis/gateway.networking.k8s.io/v1/"
	create := func(path, text string) {
		t.Helper()
		require.NoError(t, admin.CoreV1().RESTClient().Post().AbsPath(base+path).SetHeader("Content-Type", "application/yaml").Body([]byte(text)).Do(t.Context()).Error())
	}
	get := func(path string, into any) {
		t.Helper()
		content, err := admin.CoreV1().RESTClient().Get().AbsPath(base + path).Do(t.Context()).Raw()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, into))
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, 20*time.Second, 10*time.Millisecond, what)
	}
	said := func(conditions []meta.Condition, generation int64) (texts []string) {
		for _, one := range conditions {
			texts = append(texts, fmt.Sprintf("%s=%s/%s", one.Type, one.Status, one.Reason))
			if one.ObservedGeneration != generation {
				texts = append(texts, "stale")
			}
		}
		slices.Sort(texts)
		return texts
	}
	create("gatewayclasses", "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: burano}\nspec: {controllerName: burano.io/gateway}\n")
	eventually("the class is accepted", func() bool {
		var class api.GatewayClass
		get("gatewayclasses/burano", &class)
		return slices.Equal(said(class.Status.Conditions, class.Generation), []string{"Accepted=True/Accepted"}) && len(class.Status.SupportedFeatures) > 10 &&
			slices.IsSortedFunc(class.Status.SupportedFeatures, func(a, b api.SupportedFeature) int { return strings.Compare(string(a.Name), string(b.Name)) })
	})
	create("namespaces/default/gateways", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec:
  gatewayClassName: burano
  listeners:
  - {name: plain, port: 8088, protocol: HTTP}
  - {name: safe, port: 8443, protocol: HTTPS, hostname: a.org, tls: {certificateRefs: [{name: good, namespace: vault}]}}
  - {name: taken, port: 8090, protocol: HTTP}
`)
	create("namespaces/default/httproutes", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"+routeText("web", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: a, port: 8080}]}, {matches: [{path: {value: /gone}}], backendRefs: [{name: gone, port: 8080}]}]}`))
	create("namespaces/default/httproutes", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"+routeText("lost", `{parentRefs: [{name: edge, sectionName: nothing}], rules: [{backendRefs: [{name: a, port: 8080}]}]}`))
	var gateway api.Gateway
	listener := func(i int) string {
		return fmt.Sprint(gateway.Status.Listeners[i].AttachedRoutes, said(gateway.Status.Listeners[i].Conditions, gateway.Generation))
	}
	const good = "[Accepted=True/Accepted Conflicted=False/NoConflicts Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs]"
	status := func(listeners ...string) func() bool {
		return func() bool {
			get("namespaces/default/gateways/edge", &gateway)
			if len(gateway.Status.Listeners) != len(listeners) {
				return false
			}
			for i, is := range listeners {
				if listener(i) != is {
					return false
				}
			}
			return true
		}
	}
	const occupied = "1 [Accepted=False/PortUnavailable Conflicted=False/NoConflicts Programmed=False/Invalid ResolvedRefs=True/ResolvedRefs]"
	eventually("the listeners say how they are", status("1 "+good, "1 [Accepted=True/Accepted Conflicted=False/NoConflicts Programmed=False/Invalid ResolvedRefs=False/RefNotPermitted]", occupied))
	require.Equal(t, []string{"Accepted=True/ListenersNotValid", "Programmed=True/Programmed"}, said(gateway.Status.Conditions, gateway.Generation))
	require.Equal(t, "203.0.113.1", gateway.Status.Addresses[0].Value)
	create("namespaces/default/gateways", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: mixed, namespace: default}
spec:
  gatewayClassName: burano
  listeners:
  - {name: opens, port: 8444, protocol: TLS, hostname: a.org, tls: {mode: Terminate, certificateRefs: [{name: good}]}}
  - {name: passes, port: 8444, protocol: TLS, hostname: b.org, tls: {mode: Passthrough}}
`)
	eventually("a port opens TLS sessions for TLSRoutes, and passes others through", func() bool {
		var mixed api.Gateway
		get("namespaces/default/gateways/mixed", &mixed)
		return len(mixed.Status.Listeners) == 2 && slices.Contains(said(mixed.Status.Listeners[0].Conditions, mixed.Generation), "ResolvedRefs=False/InvalidCertificateRef") &&
			slices.Contains(said(mixed.Status.Listeners[1].Conditions, mixed.Generation), "Programmed=True/Programmed") &&
			len(mixed.Status.Listeners[0].SupportedKinds) == 1 && len(mixed.Status.Listeners[1].SupportedKinds) == 1
	})
	require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath(base+"namespaces/default/gateways/mixed").Do(t.Context()).Error())
	certificate, privateKey := haproxytest.Certificate(t, "a.org", 0)
	_, err = admin.CoreV1().Secrets("default").Create(t.Context(), tlsSecret("own", certificate, privateKey), meta.CreateOptions{})
	require.NoError(t, err)
	create("namespaces/default/gateways", `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: checked, namespace: default}
spec:
  gatewayClassName: burano
  tls: {frontend: {default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: users}]}}}}
  listeners:
  - {name: safe, port: 8445, protocol: HTTPS, tls: {certificateRefs: [{name: own}]}}
`)
	checked := func(is ...string) func() bool {
		return func() bool {
			var object api.Gateway
			get("namespaces/default/gateways/checked", &object)
			return len(object.Status.Listeners) == 1 && slices.Equal(is, slices.Concat(said(object.Status.Conditions, object.Generation)[1:2], said(object.Status.Listeners[0].Conditions, object.Generation)))
		}
	}
	closed := checked("InsecureFrontendValidationMode=True/ConfigurationChanged", "Accepted=False/NoValidCACertificate", "Conflicted=False/NoConflicts", "Programmed=False/Invalid", "ResolvedRefs=False/InvalidCACertificateRef")
	eventually("clients cannot be checked without authorities", closed)
	authorities := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "users"}, Data: map[string]string{"ca.crt": haproxytest.NewAuthority(t, "users").PEM, "more": "x"}}
	_, err = admin.CoreV1().ConfigMaps("default").Create(t.Context(), authorities, meta.CreateOptions{})
	require.NoError(t, err)
	eventually("clients are checked", checked("InsecureFrontendValidationMode=True/ConfigurationChanged", "Accepted=True/Accepted", "Conflicted=False/NoConflicts", "Programmed=True/Programmed", "ResolvedRefs=True/ResolvedRefs"))
	at, err := etcd.Get(t.Context(), route.CheckedPrefix+"8445")
	require.NoError(t, err)
	require.Len(t, at.Kvs, 1)
	for _, gone := range []string{route.ListenersPrefix + "8445", route.AuthoritiesPrefix + route.Authorities{PEM: authorities.Data["ca.crt"]}.Name()} {
		at, err := etcd.Get(t.Context(), gone)
		require.NoError(t, err)
		require.Equal(t, strings.HasPrefix(gone, route.AuthoritiesPrefix), len(at.Kvs) == 1, gone)
	}
	authorities.Data["ca.crt"] = ""
	_, err = admin.CoreV1().ConfigMaps("default").Update(t.Context(), authorities, meta.UpdateOptions{})
	require.NoError(t, err)
	eventually("the port is closed with the last authority", closed)
	require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath(base+"namespaces/default/gateways/checked").Do(t.Context()).Error())
	named := func(address string, addresses int, is ...string) func() bool {
		patch := `{"spec":{"addresses":` + address + `}}`
		require.NoError(t, admin.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(base+"namespaces/default/gateways/edge").Body([]byte(patch)).Do(t.Context()).Error())
		return func() bool {
			var edge api.Gateway
			get("namespaces/default/gateways/edge", &edge)
			return slices.Equal(is, said(edge.Status.Conditions, edge.Generation)) && len(edge.Status.Addresses) == addresses
		}
	}
	infrastructureIsPropagated(t, admin, create, func(is string) func() bool {
		return func() bool {
			var object api.Gateway
			get("namespaces/default/gateways/marked", &object)
			return slices.Contains(said(object.Status.Conditions, object.Generation), is)
		}
	}, eventually)
	// There, no port belongs to another owner.
	eventually("an address that is nobody's says so", named(`[{"type":"IPAddress","value":"192.0.2.1"}]`, 0, "Accepted=True/Accepted", "Programmed=False/AddressNotUsable"))
	eventually("an address of a gateway is taken", named(`[{"type":"IPAddress","value":"203.0.113.1"}]`, 1, "Accepted=True/ListenersNotValid", "Programmed=True/Programmed"))
	eventually("without one it has all", named(`null`, 1, "Accepted=True/ListenersNotValid", "Programmed=True/Programmed"))
	parents := func(name string, is ...string) func() bool {
		return func() bool {
			var object api.HTTPRoute
			get("namespaces/default/httproutes/"+name, &object)
			return len(object.Status.Parents) == 1 && slices.Equal(said(object.Status.Parents[0].Conditions, object.Generation), is)
		}
	}
	eventually("a route with a backend that is not there says so", parents("web", "Accepted=True/Accepted", "ResolvedRefs=False/BackendNotFound"))
	authorities = &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "inside"}, Data: map[string]string{"ca.crt": haproxytest.NewAuthority(t, "inside").PEM}}
	for _, name := range []string{"pod", "second"} {
		create("namespaces/default/backendtlspolicies", "apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\n"+routeText(name, `{targetRefs: [{group: "", kind: Service, name: a}], validation: {hostname: pod.org, caCertificateRefs: [{group: "", kind: ConfigMap, name: inside}]}}`))
	}
	policy := func(name string, is ...string) func() bool {
		return func() bool {
			var object api.BackendTLSPolicy
			get("namespaces/default/backendtlspolicies/"+name, &object)
			return len(object.Status.Ancestors) == 1 && object.Status.Ancestors[0].AncestorRef.Name == "edge" && slices.Equal(said(object.Status.Ancestors[0].Conditions, object.Generation), is)
		}
	}
	eventually("a policy without authorities says so", policy("pod", "Accepted=False/NoValidCACertificate", "ResolvedRefs=False/InvalidCACertificateRef"))
	_, err = admin.CoreV1().ConfigMaps("default").Create(t.Context(), authorities, meta.CreateOptions{})
	require.NoError(t, err)
	eventually("a policy is followed", policy("pod", "Accepted=True/Accepted", "ResolvedRefs=True/ResolvedRefs"))
	eventually("the younger one is not", policy("second", "Accepted=False/Conflicted", "ResolvedRefs=True/ResolvedRefs"))
	for _, name := range []string{"pod", "second"} {
		require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath(base+"namespaces/default/backendtlspolicies/"+name).Do(t.Context()).Error())
	}
	eventually("a route without a listener says so", parents("lost", "Accepted=False/NoMatchingParent", "ResolvedRefs=True/ResolvedRefs"))

	// A ListenerSet adds a listener, and its route is of gRPC.
	create("namespaces/default/listenersets", `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: default}
spec:
  parentRef: {name: edge}
  listeners:
  - {name: calls, port: 8089, protocol: HTTP}
  - {name: plain, port: 8088, protocol: TCP}
`)
	var set api.ListenerSet
	setSays := func(is ...string) func() bool {
		return func() bool {
			get("namespaces/default/listenersets/more", &set)
			return slices.Equal(is, said(set.Status.Conditions, set.Generation))
		}
	}
	eventually("a Gateway takes no ListenerSet by itself", setSays("Accepted=False/NotAllowed", "Programmed=False/NotAllowed"))
	require.NoError(t, admin.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(base+"namespaces/default/gateways/edge").Body([]byte(`{"spec":{"allowedListeners":{"namespaces":{"from":"Same"}}}}`)).Do(t.Context()).Error())
	eventually("it takes those that it allows", setSays("Accepted=True/ListenersNotValid", "Programmed=True/Programmed"))
	require.Equal(t, []string{"Accepted=False/ProtocolConflict", "Conflicted=True/ProtocolConflict", "Programmed=False/ProtocolConflict", "ResolvedRefs=True/ResolvedRefs"}, said(set.Status.Listeners[1].Conditions, set.Generation))
	create("namespaces/default/grpcroutes", "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\n"+routeText("calls", `{parentRefs: [{kind: ListenerSet, name: more}], rules: [{matches: [{method: {service: a.B, method: C}}], backendRefs: [{name: a, port: 8080}]}]}`))
	eventually("the route is attached", func() bool {
		var object api.GRPCRoute
		get("namespaces/default/grpcroutes/calls", &object)
		get("namespaces/default/listenersets/more", &set)
		get("namespaces/default/gateways/edge", &gateway)
		return len(object.Status.Parents) == 1 && slices.Equal(said(object.Status.Parents[0].Conditions, object.Generation), []string{"Accepted=True/Accepted", "ResolvedRefs=True/ResolvedRefs"}) &&
			set.Status.Listeners[0].AttachedRoutes == 1 && gateway.Status.AttachedListenerSets != nil && *gateway.Status.AttachedListenerSets == 1
	})
	for _, path := range []string{"grpcroutes/calls", "listenersets/more"} {
		require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath(base+"namespaces/default/"+path).Do(t.Context()).Error())
	}

	// The certificate is granted, and sealed for the gateway.
	_, err = admin.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "vault"}}, meta.CreateOptions{})
	require.NoError(t, err)
	certificate, private := haproxytest.Certificate(t, "a.org", 0)
	secret := tlsSecret("good", certificate, private)
	secret.Namespace = "vault"
	_, err = admin.CoreV1().Secrets("vault").Create(t.Context(), secret, meta.CreateOptions{})
	require.NoError(t, err)
	create("namespaces/vault/referencegrants", "apiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {name: edge, namespace: vault}\nspec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}], to: [{group: \"\", kind: Secret}]}\n")
	eventually("the listener is programmed", status("1 "+good, "1 "+good, occupied))
	keys := func(prefix string) (list []string) {
		found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range found.Kvs {
			list = append(list, strings.TrimPrefix(string(kv.Key), prefix))
		}
		return list
	}
	require.Equal(t, []string{"kinds/Gateway/default/edge", "kinds/HTTPRoute/default/web", "listeners/8088", "listeners/8443", "pools/default/a/http"}, keys(route.HTTPPrefix))
	found, err := etcd.Get(t.Context(), route.CertificatesPrefix, clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, found.Kvs, 1)
	sealed, err := route.DecodeSealed(string(found.Kvs[0].Key), found.Kvs[0].Value)
	require.NoError(t, err)
	require.Equal(t, types.NamespacedName{Namespace: "vault", Name: "good"}, types.NamespacedName{Namespace: sealed.Namespace, Name: sealed.Secret})
	opened, err := key.Open(sealed.Box)
	require.NoError(t, err)
	require.True(t, bytes.Contains(opened, certificate))

	// Another controller's word stays.
	patch := `{"status":{"parents":[{"parentRef":{"name":"other"},"controllerName":"example.org/other","conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`
	require.NoError(t, admin.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(base+"namespaces/default/httproutes/web/status").Body([]byte(patch)).Do(t.Context()).Error())
	eventually("ours is there again beside it", func() bool {
		var object api.HTTPRoute
		get("namespaces/default/httproutes/web", &object)
		return len(object.Status.Parents) == 2 && object.Status.Parents[0].ControllerName == "example.org/other"
	})
	require.NoError(t, admin.CoreV1().RESTClient().Delete().AbsPath(base+"namespaces/default/gateways/edge").Do(t.Context()).Error())
	eventually("nothing is left", func() bool { return len(keys(route.HTTPPrefix))+len(keys(route.CertificatesPrefix)) == 0 })
	eventually("nor in the status of the route", func() bool {
		var object api.HTTPRoute
		get("namespaces/default/httproutes/web", &object)
		return len(object.Status.Parents) == 1
	})
}
