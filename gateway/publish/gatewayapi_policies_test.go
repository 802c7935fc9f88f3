package publish_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

func policyText(name, spec string) string { return "kind: BackendTLSPolicy\n" + routeText(name, spec) }

func TestAPolicyHasBackendsAskedOverTLSOrNotAtAll(t *testing.T) {
	inside := haproxytest.NewAuthority(t, "inside")
	authorities := route.Authorities{PEM: inside.PEM}.Name()
	target := func(policies ...string) route.Target {
		web := routeText("web", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}], filters: [{type: URLRewrite, urlRewrite: {hostname: b.org}}]}]}`)
		w := gatewayWorld(t, []string{gatewayText}, append([]string{web, configMapText("default", "inside", inside.PEM)}, policies...)...)
		sites := publish.SitesOf(w)
		for _, part := range sites.Parts() {
			require.NoError(t, part.Validate())
		}
		targets := siteOf(sites, route.KindHTTPRoute, "web").Paths[0].Targets
		require.Len(t, targets, 1)
		return targets[0]
	}
	over := func(tls *route.BackendTLS) route.Target {
		return route.Target{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{Host: "b.org", TLS: tls}}
	}
	failing := route.Target{Weight: 1, Filters: &route.Filters{Status: 500}}
	policy := func(name, section, validation string) string {
		return policyText(name, `{targetRefs: [{group: "", kind: Service, name: a`+section+`}], validation: `+validation+`}`)
	}
	const refs = `caCertificateRefs: [{group: "", kind: ConfigMap, name: inside}]`
	pod := &route.BackendTLS{Authorities: authorities, Host: "pod.org"}
	require.Equal(t, over(nil), target())
	require.Equal(t, over(pod), target(policy("p", "", "{"+refs+", hostname: Pod.org}")))
	require.Equal(t, over(&route.BackendTLS{Host: "pod.org"}), target(policy("p", "", "{wellKnownCACertificates: System, hostname: pod.org}")))
	require.Equal(t, over(pod), target(policy("p", "", "{"+refs+", hostname: pod.org, subjectAltNames: [{type: Hostname, hostname: pod.org}]}")))
	require.Equal(t, over(pod), target(policy("p", "", "{"+refs+", hostname: pod.org}"), policy("q", "", "{"+refs+", hostname: other.org}")), "the older one")
	require.Equal(t, over(pod), target(policy("q", ", sectionName: http", "{"+refs+", hostname: pod.org}"), policy("p", "", "{"+refs+", hostname: other.org}")), "the one for the port")
	require.Equal(t, over(nil), target(policy("q", ", sectionName: other", "{"+refs+", hostname: pod.org}")))
	require.Equal(t, over(nil), target(strings.Replace(policy("p", "", "{"+refs+", hostname: pod.org}"), "namespace: default", "namespace: other", 1)))
	for _, bad := range []string{
		"{" + strings.Replace(refs, "inside", "gone", 1) + ", hostname: pod.org}", "{" + strings.Replace(refs, "ConfigMap", "Secret", 1) + ", hostname: pod.org}",
		"{" + refs + `, hostname: "*.pod.org"}`, "{" + refs + `, hostname: "pod org verify none"}`, "{wellKnownCACertificates: burano.io/all, hostname: pod.org}",
		"{" + refs + ", hostname: pod.org, subjectAltNames: [{type: Hostname, hostname: other.org}]}", "{" + refs + ", hostname: pod.org, subjectAltNames: [{type: URI, uri: 'spiffe://a/b'}]}",
	} {
		require.Equal(t, failing, target(policy("p", "", bad)), bad)
	}
}

func TestAGatewayShowsItsCertificateToBackends(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "gateway.org", 0)
	inside := haproxytest.NewAuthority(t, "inside")
	policy := policyText("p", `{targetRefs: [{group: "", kind: Service, name: a}], validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: inside}], hostname: pod.org}}`)
	sites := func(ref string) publish.Sites {
		web := routeText("web", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}, {name: b, port: 80}]}]}`)
		w := gatewayWorld(t, []string{withTLS("edge", "{backend: {clientCertificateRef: "+ref+"}}")}, web, policy, configMapText("default", "inside", inside.PEM),
			"kind: TLSRoute\n"+routeText("sealed", `{parentRefs: [{name: edge, sectionName: sealed}], rules: [{backendRefs: [{name: a, port: 80}]}]}`))
		w.Secrets = []*core.Secret{tlsSecret("own", certificate, key)}
		s := publish.SitesOf(w)
		for _, part := range s.Parts() {
			require.NoError(t, part.Validate())
		}
		require.Equal(t, []route.Target{{Pool: "default/a/http", Weight: 1}}, siteOf(s, route.KindTLSRoute, "sealed").Sessions[0].Targets, "a session that is passed through is the client's")
		return s
	}
	s := sites("{name: own}")
	tls := &route.BackendTLS{Authorities: route.Authorities{PEM: inside.PEM}.Name(), Host: "pod.org", Certificate: "default/own"}
	plain := route.Target{Pool: "default/b/http", Weight: 1}
	require.Equal(t, []route.Target{{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{TLS: tls}}, plain}, siteOf(s, route.KindHTTPRoute, "web").Paths[0].Targets)
	require.Len(t, s.Certificates, 1)
	require.Equal(t, map[string]bool{"default/own": true}, siteOf(s, route.KindHTTPRoute, "web").Secrets())
	for _, ref := range []string{"{name: gone}", "{kind: ConfigMap, name: own}", "{group: a.org, name: own}", "{name: own, namespace: other}"} {
		s := sites(ref)
		require.Equal(t, []route.Target{{Weight: 1, Filters: &route.Filters{Status: 500}}, plain}, siteOf(s, route.KindHTTPRoute, "web").Paths[0].Targets, ref)
		require.Empty(t, s.Certificates)
	}
}
