package publish_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

func namedGateway(name, listeners string) string {
	return "metadata: {name: " + name + ", namespace: default}\nspec: {gatewayClassName: burano, allowedListeners: {namespaces: {from: Same}}, listeners: [" + listeners + "]}"
}

// served lists the paths of a site, with their status or pool.
func served(sites publish.Sites, kind, name string) (list []string) {
	for _, path := range siteOf(sites, kind, name).Paths {
		to := path.Targets[0].Pool
		if f := path.Targets[0].Filters; f != nil && f.Status != 0 {
			to = fmt.Sprint(f.Status)
		}
		list = append(list, fmt.Sprintf("%d %s%s %s", path.Port, path.Host, path.Path, to))
	}
	slices.Sort(list)
	return list
}

func TestListenersOfAGatewayAreIsolated(t *testing.T) {
	w := gatewayWorld(t, []string{
		namedGateway("edge", `{name: any, port: 80, protocol: HTTP}, {name: wild, port: 80, protocol: HTTP, hostname: "*.a.org"}, {name: deep, port: 80, protocol: HTTP, hostname: "*.b.a.org"}, {name: other, port: 81, protocol: HTTP, hostname: "*.a.org"}`),
		namedGateway("second", `{name: any, port: 80, protocol: HTTP}`),
	},
		"kind: ListenerSet\nmetadata: {name: set, namespace: default}\nspec: {parentRef: {name: edge}, listeners: [{name: one, port: 80, protocol: HTTP, hostname: c.b.a.org}]}",
		routeText("onany", `{parentRefs: [{name: edge, sectionName: any}], hostnames: [x.org, "*.a.org", x.a.org, "*.b.a.org", c.b.a.org], rules: [{backendRefs: [{name: a, port: 80}], matches: [{path: {value: /any}}]}]}`),
		routeText("onwild", `{parentRefs: [{name: edge, sectionName: wild}], hostnames: ["*.a.org", x.a.org, "*.b.a.org", c.b.a.org], rules: [{backendRefs: [{name: a, port: 80}], matches: [{path: {value: /wild}}]}]}`),
		routeText("ondeep", `{parentRefs: [{name: edge, sectionName: deep}], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		routeText("onset", `{parentRefs: [{kind: ListenerSet, name: set}], hostnames: ["*.a.org"], rules: [{backendRefs: [{name: a, port: 80}], matches: [{path: {value: /set}}]}]}`),
		routeText("onother", `{parentRefs: [{name: edge, sectionName: other}], rules: [{backendRefs: [{name: a, port: 80}], matches: [{path: {value: /other}}]}]}`),
		routeText("onsecond", `{parentRefs: [{name: second}], hostnames: [x.a.org], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
		routeText("nothing", `{parentRefs: [{name: edge, sectionName: any}], hostnames: [x.a.org], rules: [{backendRefs: [{name: a, port: 80}]}]}`),
	)
	sites := publish.SitesOf(w)
	for name, paths := range map[string][]string{
		"onany": {"80 x.org/any default/a/http"}, "onwild": {"80 *.a.org/wild default/a/http", "80 x.a.org/wild default/a/http"}, "ondeep": {"80 *.b.a.org/ default/a/http"},
		"onset": {"80 c.b.a.org/set default/a/http"}, "onother": {"81 *.a.org/other default/a/http"}, "onsecond": {"80 x.a.org/ default/a/http"}, "nothing": nil,
	} {
		require.Equal(t, paths, served(sites, route.KindHTTPRoute, name), name)
	}
	require.Equal(t, []string{"80 *.a.org/ 404"}, served(sites, route.KindGateway, "edge"), "a route of the listener deep takes all")
	require.Equal(t, []string{"80 c.b.a.org/ 404"}, served(sites, route.KindListenerSet, "set"))
	for _, part := range sites.Parts() {
		require.NoError(t, part.Validate())
	}
}
