package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

// watchful are the settings of a server with frequent checks.
var watchful = []string{"--keeper-interval", "8s", "--lease", "6s"}

// TestServersThatAreStoppedOrDeletedBehindBuranosBackComeBackByThemselves stops one server of a cluster, deletes another one, and then the
// master, in Nova. The Burano that repairs the second one is killed meanwhile.
func TestServersThatAreStoppedOrDeletedBehindBuranosBackComeBackByThemselves(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	model, err := os.ReadFile(filepath.Join(l.root, "test/e2e/testdata/scaling.yaml"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kept.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(model), "name: scaling-cluster", "name: scaling-cluster\n    autoRepair: true", 1)), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", path, "--follow")
	l.relaunch(t, watchful...) // a server looks for new environments when it starts, and then each half a minute
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.cluster.kubectl(t, "", "create", "configmap", "kept", "--from-literal=word=burano")

	s.finds(t, "no-delegation")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
	s.finds(t)
	s.looksCost(t)

	gateway := s.cluster.servers["murano-gateway-1"]
	began := time.Now()
	require.NoError(t, servers.Stop(t.Context(), demo.nova(t), gateway).ExtractErr())
	s.finds(t, "server-stopped")
	t.Logf("that a server is off was found after %.1f s:\n%s", time.Since(began).Seconds(), l.run(t, l.as("burano-demo"), "burano", "finding", "list", "scaling"))
	s.finds(t)
	t.Logf("it was back after %.1f s", time.Since(began).Seconds())
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	require.Equal(t, gateway, s.cluster.servers["murano-gateway-1"])

	minion := s.cluster.servers["murano-kube-2"]
	began = time.Now()
	s.deleteServer(t, "murano-kube-2")
	l.eventually(t, 2*time.Minute, "a repair runs", func() error {
		for _, one := range demo.must(t, http.MethodGet, "/v1/environments/"+s.environment+"/deployments", nil)["deployments"].([]any) {
			if state := one.(map[string]any)["state"]; state == "running" || state == "running_w_warnings" {
				return nil
			}
		}
		return fmt.Errorf("nothing runs")
	})
	require.Equal(t, "ready", demo.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["status"])
	require.NoError(t, l.server.Process.Kill())
	require.Error(t, l.server.Wait())
	l.launch(t, watchful...)
	l.healthy(t)
	s.finds(t)
	t.Logf("a server that was deleted had a successor after %.1f s", time.Since(began).Seconds())
	s.find(t)
	require.NotEqual(t, minion, s.cluster.servers["murano-kube-2"])

	began = time.Now()
	s.deleteServer(t, "murano-kube-1")
	s.finds(t, "server-gone")
	s.finds(t)
	t.Logf("a master that was deleted had a successor after %.1f s", time.Since(began).Seconds())
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	require.Contains(t, s.cluster.kubectl(t, "", "get", "configmap", "kept", "-o", "jsonpath={.data.word}"), "burano")

	after := demo.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)
	require.Equal(t, environment["version"], after["version"])
	require.Equal(t, "ready", after["status"])
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// looksCost measures the processor time of the checks of a cluster whose nodes are well, and logs the share of a
// processor for 1,000 such clusters.
func (s *scaling) looksCost(t *testing.T) {
	t.Helper()
	s.lab.relaunch(t, "--keeper-interval", "200ms")
	measure := func() (looks, seconds float64) {
		for line := range strings.Lines(string(s.user.call(t, http.MethodGet, "/metrics", nil).Body)) {
			var value float64
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if _, err := fmt.Sscan(text, &value); err != nil {
				continue
			}
			switch name {
			case `burano_keeper_looks_total{duty="health",outcome="done"}`:
				looks = value
			case "process_cpu_seconds_total":
				seconds = value
			}
		}
		return looks, seconds
	}
	looks, seconds := 0.0, 0.0
	s.lab.eventually(t, time.Minute, "looks begin", func() error {
		if looks, seconds = measure(); looks < 5 {
			return fmt.Errorf("there were %.0f", looks)
		}
		return nil
	})
	now, spent := looks, seconds
	err := wait.Every(5*time.Second).For(5*time.Minute).Until(t.Context(), func(context.Context) error { // to be asked costs, too
		if now, spent = measure(); now < looks+20 {
			return wait.Again(fmt.Errorf("there were %.0f looks", now-looks))
		}
		return nil
	})
	require.NoError(t, err)
	each := (spent - seconds) / (now - looks)
	t.Logf("a look at three nodes and their servers costs %.1f ms of a processor: %.2f of one for 1,000 environments that are looked at each minute", each*1000, each*1000/60)
	s.lab.relaunch(t, watchful...)
}

// finds waits until the findings include these kinds, or, without kinds, until there are none. The disk of nodes that are containers is this machine's,
// and may be nearly full.
func (s *scaling) finds(t *testing.T, kinds ...string) {
	t.Helper()
	s.lab.eventually(t, 3*time.Minute, fmt.Sprintf("findings are %v", kinds), func() error {
		found := map[string]bool{}
		list := s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/findings", nil)["findings"].([]any)
		for _, one := range list {
			found[one.(map[string]any)["kind"].(string)] = true
		}
		for _, kind := range kinds {
			if !found[kind] {
				return fmt.Errorf("there is no %s in %v", kind, list)
			}
		}
		delete(found, "disk-nearly-full")
		if len(kinds) == 0 && len(found) > 0 {
			return fmt.Errorf("there are %v", list)
		}
		return nil
	})
}
