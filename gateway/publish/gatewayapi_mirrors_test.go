package publish_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

func TestMirrorsOfHTTPRoutesGetCopies(t *testing.T) {
	filters := `filters: [{type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}}}, {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, percent: 35}},
		{type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, fraction: {numerator: 1, denominator: 1000}}}, {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, percent: 0}}]`
	w := gatewayWorld(t, []string{gatewayText},
		routeText("copied", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}], `+filters+`}]}`),
		routeText("lost", `{parentRefs: [{name: edge, sectionName: plain}], hostnames: [lost.org], rules: [{backendRefs: [{name: a, port: 80}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}]}]}`),
		routeText("wrong", `{parentRefs: [{name: edge, sectionName: plain}], hostnames: [wrong.org], rules: [{backendRefs: [{name: a, port: 80}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, fraction: {numerator: 3, denominator: 2}}}]}]}`),
		"kind: GRPCRoute\n"+routeText("calls", `{parentRefs: [{name: edge, sectionName: plain}], hostnames: [calls.org], rules: [{backendRefs: [{name: a, port: 80}], `+filters+`}]}`),
	)
	sites := publish.SitesOf(w)
	b := route.Target{Pool: "default/b/http", Weight: 1}
	require.Equal(t, []route.Target{{Pool: "default/a/http", Weight: 1, Filters: &route.Filters{Mirrors: &route.Mirrors{To: []route.Mirror{{Target: b, Part: 1, Of: 1}, {Target: b, Part: 35, Of: 100}, {Target: b, Part: 1, Of: 1000}}}}}},
		siteOf(sites, route.KindHTTPRoute, "copied").Paths[0].Targets)
	require.True(t, slices.ContainsFunc(sites.Pools, func(p route.Pool) bool { return p.Name() == b.Pool }))
	require.Equal(t, []string{"8088 lost.org/ default/a/http"}, served(sites, route.KindHTTPRoute, "lost"), "requests do not fail with their copies")
	require.Nil(t, siteOf(sites, route.KindHTTPRoute, "lost").Paths[0].Targets[0].Filters)
	require.Empty(t, served(sites, route.KindHTTPRoute, "wrong"))
	require.Empty(t, served(sites, route.KindGRPCRoute, "calls"))
}
