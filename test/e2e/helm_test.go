package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAHelmReleaseFailsIsMendedRolledBackAndRemoved has a package with a chart (test/packages/io.burano.test.Chart) that has a hook, a custom
// resource and a Service of type LoadBalancer.
func TestAHelmReleaseFailsIsMendedRolledBackAndRemoved(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Chart")
	log, err := l.try(l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/helm.yaml", "--follow")
	l.deleteIfFailed(t, "helm")
	require.Error(t, err, log)
	require.Regexp(t, `Helm release pages: .*Deployment/shop/pages not ready`, log)
	require.Contains(t, log, "container serve of pages-")
	require.Contains(t, log, "its image registry.local/none:1 cannot be pulled")

	environment := environmentNamed(t, demo, "helm")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: demo}
	deploy := func(values map[string]any) (state any, log string) {
		began := time.Now()
		task, log := s.changed(t, a, "pages", func(pages map[string]any) { pages["values"] = values })
		t.Logf("values %v: %s after %.1f s", values, task["state"], time.Since(began).Seconds())
		return task["state"], log
	}
	release := func() map[string]any {
		result, _ := s.call(t, "pages", "getStatus", map[string]any{})
		return result["result"].(map[string]any)
	}
	running := func() string {
		return s.cluster.kubectl(t, "", "-n", "shop", "get", "deployment", "pages", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}")
	}
	gateway := s.floating(t, "murano-gateway-1")["murano-gateway-1"]
	serves := func() {
		t.Helper()
		l.eventually(t, time.Minute, "the gateway serves the pages", func() error {
			_, err := get("http://" + gateway + ":8090/")
			return err
		})
	}
	require.Equal(t, "failed", release()["status"])

	// What failed is mended by the next deployment; the one after it has nothing to do.
	one := map[string]any{"replicas": 1}
	state, log := deploy(one)
	require.Equal(t, "success", state, log)
	require.Contains(t, log, "Helm release pages is at revision 2, with chart pages-1.2.3")
	require.Contains(t, log, "CoreDNS-1.15.0", "the hook's log")
	require.Equal(t, firstImage+" 1", running())
	require.Equal(t, "pages", s.cluster.kubectl(t, "", "-n", "shop", "get", "pages.test.burano.io", "pages", "-o", "jsonpath={.spec.title}"))
	serves()
	state, log = deploy(one)
	require.Equal(t, "success", state, log)
	require.NotContains(t, log, "Helm release pages is at revision")
	require.Equal(t, map[string]any{"revision": 2.0, "status": "deployed", "chart": "pages-1.2.3", "appVersion": "1", "notes": "Pages are at port 8090.\n"}, release())

	state, log = deploy(map[string]any{"replicas": 2})
	require.Equal(t, "success", state, log)
	require.Equal(t, firstImage+" 2", running())
	state, log = deploy(map[string]any{"replicas": 2, "image": "registry.local/none:1"})
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "its image registry.local/none:1 cannot be pulled")
	serves() // the former pods go on

	// From the failed revision 4 to 3, and from that to 2.
	lines := s.act(t, "pages", "rollback", map[string]any{})
	require.Contains(t, fmt.Sprint(lines["info"]), "Helm release pages went back to revision 3, as revision 5")
	require.Equal(t, firstImage+" 2", running())
	require.Equal(t, map[string]any{"replicas": 2.0}, a.application(t, s.environment, "pages")["values"])
	state, log = deploy(map[string]any{"replicas": 2})
	require.Equal(t, "success", state, log)
	require.Equal(t, 5.0, release()["revision"], "the model says what runs")

	state, log = deploy(map[string]any{"replicas": "many"})
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "replicas")
	require.Equal(t, firstImage+" 2", running())

	session := a.draft(t, s.environment)
	all := demo.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == "pages" })
	demo.must(t, http.MethodDelete, fmt.Sprintf("/v1/environments/%s/services/%d", s.environment, n), nil, "X-Configuration-Session", session)
	a.deploy(t, s.environment, session)
	require.Empty(t, s.cluster.kubectl(t, "", "-n", "shop", "get", "deployments,services,secrets", "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name"))
	require.Empty(t, s.cluster.kubectl(t, "", "-n", "shop", "get", "secrets", "-l", "owner=helm", "-o", "name"))
	require.Contains(t, s.cluster.kubectl(t, "", "get", "crd", "pages.test.burano.io", "-o", "name"), "pages.test.burano.io", "Helm leaves definitions, with which data would go")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "helm")
	asBefore(t, demo, found)
}
