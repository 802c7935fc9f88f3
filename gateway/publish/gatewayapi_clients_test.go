package publish_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

// configMapText is a ConfigMap with authorities.
func configMapText(namespace, name, certificates string) string {
	text, _ := json.Marshal(certificates)
	return "kind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {ca.crt: " + string(text) + "}"
}

// withTLS is a Gateway with a part of its own about TLS.
func withTLS(name, tls string) string {
	return strings.Replace(strings.Replace(gatewayText, "edge", name, 1), "listeners:", "tls: "+tls+"\n  listeners:", 1)
}

func validation(refs string) string { return "{validation: {caCertificateRefs: [" + refs + "]}}" }

func ref(name string) string { return "{group: '', kind: ConfigMap, name: " + name + "}" }

func listenerOn(sites publish.Sites, port uint16) route.Listener {
	for _, l := range publish.Wanted(sites) {
		if l.Port == port {
			return l
		}
	}
	return route.Listener{}
}

// servedOn are the routes that requests of a port reach.
func servedOn(sites publish.Sites, port uint16) (names []string) {
	for _, site := range sites.HTTP.Sites {
		for _, path := range site.Paths {
			if path.Port == port {
				names = append(names, site.Name)
			}
		}
	}
	return names
}

func TestAGatewayChecksItsClientsOrServesNone(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "www.a.org", 0)
	users, others := haproxytest.NewAuthority(t, "users"), haproxytest.NewAuthority(t, "others")
	web := routeText("web", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: a, port: 80}]}]}`)
	sitesOf := func(tls string, more ...string) publish.Sites {
		w := gatewayWorld(t, []string{withTLS("edge", tls)}, append([]string{
			web, configMapText("default", "users", users.PEM), configMapText("default", "others", others.PEM), configMapText("default", "wrong", string(certificate)+"x"), configMapText("other", "users", users.PEM),
		}, more...)...)
		w.Secrets = []*core.Secret{tlsSecret("good", certificate, key)}
		sites := publish.SitesOf(w)
		for _, part := range append(sites.Parts(), route.Part{Listener: new(listenerOn(sites, 8088))}) {
			require.NoError(t, part.Validate())
		}
		return sites
	}
	bundle := route.Authorities{PEM: users.PEM}
	for _, tls := range []string{
		"{frontend: {default: " + validation(ref("users")) + "}}",
		"{frontend: {default: {}, perPort: [{port: 8443, tls: " + validation(ref("users")) + "}]}}",
	} {
		sites := sitesOf(tls)
		require.Equal(t, []route.Check{{Authorities: bundle.Name()}}, listenerOn(sites, 8443).Checks)
		require.Empty(t, listenerOn(sites, 8088).Checks, "clients without TLS have no certificates")
		require.Equal(t, []route.Authorities{bundle}, sites.Authorities)
		require.Equal(t, []string{"web"}, servedOn(sites, 8443))
		require.Equal(t, route.CheckedPrefix+"8443", route.PartKey(route.Part{Listener: new(listenerOn(sites, 8443))}))
	}
	sites := sitesOf("{frontend: {default: " + strings.Replace(validation(ref("users")), "caCert", "mode: AllowInsecureFallback, caCert", 1) + "}}")
	require.Equal(t, []route.Check{{Authorities: bundle.Name(), Optional: true}}, listenerOn(sites, 8443).Checks)
	sites = sitesOf("{frontend: {default: " + validation(ref("users")+", "+ref("others")) + ", perPort: [{port: 8443, tls: {}}]}}")
	require.Empty(t, listenerOn(sites, 8443).Checks, "the port has its own configuration, which is none")
	require.Equal(t, []string{"web"}, servedOn(sites, 8443))

	for _, refs := range []string{ref("gone"), ref("wrong"), "{group: '', kind: Secret, name: users}", "{group: '', kind: ConfigMap, name: users, namespace: other}", ref("users") + ", " + ref("gone")} {
		sites := sitesOf("{frontend: {default: " + validation(refs) + "}}")
		require.Equal(t, []string{"web"}, servedOn(sites, 8088), refs)
		require.Empty(t, servedOn(sites, 8443), refs)
		require.Empty(t, siteOf(sites, route.KindGateway, "edge"), refs)
	}
	grant := "kind: ReferenceGrant\nmetadata: {name: all, namespace: other}\nspec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}], to: [{group: '', kind: ConfigMap}]}"
	sites = sitesOf("{frontend: {default: "+validation("{group: '', kind: ConfigMap, name: users, namespace: other}")+"}}", grant)
	require.Equal(t, []route.Check{{Authorities: bundle.Name()}}, listenerOn(sites, 8443).Checks)
}

// TestAPortOfGatewaysHasOneCheck has Gateways and Ingresses that want the same port with different checks: a client's session is opened before its request
// is known.
func TestAPortOfGatewaysHasOneCheck(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "www.a.org", 0)
	users, others := haproxytest.NewAuthority(t, "users"), haproxytest.NewAuthority(t, "others")
	page := func(name string) string {
		return routeText(name, `{parentRefs: [{name: `+name+`}], rules: [{backendRefs: [{name: a, port: 80}]}]}`)
	}
	serve := func(first, second string, change func(w *publish.World)) publish.Sites {
		w := gatewayWorld(t, []string{first, second}, page("first"), page("second"), configMapText("default", "users", users.PEM), configMapText("default", "others", others.PEM))
		w.Secrets = []*core.Secret{tlsSecret("good", certificate, key)}
		w.Gateways = []route.Gateway{{Name: "gateway-1", Address: netip.MustParseAddr("203.0.113.1")}, {Name: "gateway-2", Address: netip.MustParseAddr("203.0.113.2")}}
		if change != nil {
			change(&w)
		}
		sites := publish.SitesOf(w)
		for _, l := range publish.Wanted(sites) {
			require.NoError(t, route.Part{Listener: &l}.Validate())
		}
		return sites
	}
	byUsers, byOthers, open := "{frontend: {default: "+validation(ref("users"))+"}}", "{frontend: {default: "+validation(ref("others"))+"}}", "{}"
	require.Equal(t, []string{"first", "second"}, servedOn(serve(withTLS("first", byUsers), withTLS("second", byUsers), nil), 8443))
	for _, pair := range [][2]string{{byUsers, byOthers}, {byUsers, open}, {open, byUsers}} {
		sites := serve(withTLS("first", pair[0]), withTLS("second", pair[1]), nil)
		require.Equal(t, []string{"first"}, servedOn(sites, 8443), pair)
		require.Len(t, servedOn(sites, 8088), 2)
	}
	at := func(text, address string) string {
		return strings.Replace(text, "listeners:", "addresses: [{value: "+address+"}]\n  listeners:", 1)
	}
	sites := serve(at(withTLS("first", byUsers), "203.0.113.1"), at(withTLS("second", open), "203.0.113.2"), nil)
	require.Equal(t, []string{"first", "second"}, servedOn(sites, 8443), "on different gateways")
	l := listenerOn(sites, 8443)
	require.Equal(t, []route.Check{{Authorities: route.Authorities{PEM: users.PEM}.Name(), Gateways: []string{"gateway-1"}}}, l.Checks)
	whole := route.HTTP{Listeners: []route.Listener{l}}
	require.Len(t, whole.For("gateway-1").Listeners[0].Checks, 1)
	require.Empty(t, whole.For("gateway-2").Listeners[0].Checks)

	https := func(text string) string { return strings.ReplaceAll(text, "8443", "443") }
	sites = serve(https(withTLS("first", byUsers)), https(withTLS("second", open)), func(w *publish.World) {
		shop := ingressOf("shop", 0, "shop.org", to("/", networking.PathTypePrefix, "a"))
		shop.Spec.TLS = []networking.IngressTLS{{Hosts: []string{"shop.org"}, SecretName: "good"}}
		w.Classes, w.Ingresses = append(w.Classes, ingressClass("burano", publish.Controller)), append(w.Ingresses, shop)
	})
	require.Equal(t, []string{"second"}, servedOn(sites, 443), "an Ingress comes first, and checks no clients")
	require.Empty(t, listenerOn(sites, 443).Checks)
}
