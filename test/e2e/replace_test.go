package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/timeline"
)

// TestNodesAreReplacedOneAfterAnother has a user change the flavor of all nodes in the file of a deployed cluster with two minions and two
// gateways. Every node gets another server, the master too, and no content of the cluster is lost. Meanwhile requests come through both
// gateways, and fail only at the gateway that is being replaced. `make soak` runs it.
func TestNodesAreReplacedOneAfterAnother(t *testing.T) {
	soakOnly(t, "make soak runs this: TestChangesSurvive… replaces each kind of node in make test")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	two := strings.NewReplacer("nodeCount: 1", "nodeCount: 2", "gatewayCount: 1", "gatewayCount: 2").Replace(string(text))
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(file, []byte(two), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})
	before := s.flavors(t)
	s.cluster.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")

	gateways := s.floating(t, "murano-gateway-1", "murano-gateway-2")
	_, port, err := net.SplitHostPort(endpointOf(t, environment))
	require.NoError(t, err)
	loads := startLoads(t, gateways, port, loadRate)
	api := watchAPI(t, "https://"+net.JoinHostPort(s.floating(t, "murano-kube-1")["murano-kube-1"], "6443")+"/version")

	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(two, "m1.medium", "m1.large")), 0o600))
	preview := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Contains(t, preview, "5 nodes are replaced one after another")
	began := time.Now()
	output := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	t.Logf("%.1f s:\n%s", time.Since(began).Seconds(), output)
	api.end()
	t.Logf("the API was away for %s at most, until %s", api.longest, api.until.Format(time.TimeOnly))
	require.Less(t, api.longest, 20*time.Second) // a second or two on an idle machine; other suites beside it make it 8 to 11

	done := steps(t, demo, lastDeployment(t, demo, "scaling"))
	for name, load := range loads {
		load.end()
		t.Logf("%s: %s", name, load)
		for _, one := range load.failedOutside(replacementOf(t, done, name)) {
			require.Fail(t, "a request failed", "through %s: %s", name, one)
		}
	}
	s.master = "murano-kube-1-r2"
	s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	for name, flavor := range s.flavors(t) {
		require.NotEqual(t, before[strings.TrimSuffix(name, "-r2")], flavor, name)
	}
	require.Equal(t, "swordfish", s.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"), "by the kubeconfig that was there before")
	require.Equal(t, gateways, map[string]string{
		"murano-gateway-1": s.floating(t, "murano-gateway-1-r2")["murano-gateway-1-r2"], "murano-gateway-2": s.floating(t, "murano-gateway-2-r2")["murano-gateway-2-r2"]})
	bothReplicasAnswer(t, l, endpointOf(t, environmentNamed(t, demo, "scaling")))

	t.Run("the same once more changes nothing", func(t *testing.T) {
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	})
	t.Run("a master that is gone is replaced", func(t *testing.T) {
		require.NoError(t, servers.Delete(t.Context(), demo.nova(t), s.cluster.servers["murano-kube-1-r2"]).ExtractErr())
		s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-kube-1-r2"})
		s.master = "murano-kube-1-r3"
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	})
	t.Run("without room for one server more the former one goes first, and another name is a reason to be replaced", func(t *testing.T) {
		address := s.floating(t, "murano-gateway-2-r2")["murano-gateway-2-r2"]
		most := s.watchServers(t)
		smaller := strings.ReplaceAll(two, "m1.medium", "m1.large")
		for _, name := range []string{"murano-kube-3", "murano-gateway-2"} {
			smaller = strings.Replace(smaller, "name: "+name+", flavor: m1.large", "name: "+name+", flavor: m1.medium", 1)
		}
		smaller = strings.Replace(smaller, "name: murano-kube-3,", "name: murano-kube-7,", 1)
		smaller = strings.Replace(smaller, "    name: scaling-cluster\n", "    name: scaling-cluster\n    surge: 0\n", 1)
		require.NoError(t, os.WriteFile(file, []byte(smaller), 0o600))
		for range 2 { // the second time changes nothing
			l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
		}
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-7-r3"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r3"})
		require.Equal(t, 5, most())
		require.Equal(t, address, s.floating(t, "murano-gateway-2-r3")["murano-gateway-2-r3"])

		named := strings.Replace(smaller, "name: murano-kube-7,", "name: murano-kube-8,", 1)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(named, "surge: 0", "surge: 1", 1)), 0o600))
		preview := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
		require.Contains(t, preview, "1 node is replaced (a new one joins before the former one goes): murano-kube-7-r3, then called murano-kube-8-r4")
	})
	require.Equal(t, "swordfish", s.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"))

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// flavors returns the flavor of each server in Nova.
func (s *scaling) flavors(t *testing.T) map[string]any {
	t.Helper()
	pages, err := servers.List(s.user.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	flavors := map[string]any{}
	for _, server := range all {
		flavors[server.Name] = server.Flavor["id"]
	}
	return flavors
}

// floating returns the floating addresses of nodes.
func (s *scaling) floating(t *testing.T, names ...string) map[string]string {
	t.Helper()
	environment := s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)
	found := map[string]string{}
	for _, one := range environment["services"].([]any) {
		service := one.(map[string]any)
		if service["name"] != "scaling-cluster" {
			continue
		}
		status := s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/clusters/"+service["?"].(map[string]any)["id"].(string), nil)
		for _, node := range status["nodes"].([]any) {
			node := node.(map[string]any)
			for _, name := range names {
				if node["name"] == name {
					found[name] = node["floating_address"].(string)
				}
			}
		}
	}
	require.Len(t, found, len(names))
	return found
}

// replacementOf is the time in which a node was replaced.
func replacementOf(t *testing.T, done []timeline.Step, node string) (from, to time.Time) {
	t.Helper()
	for _, step := range done {
		if step.Name == node+"-r2: connect" && (from.IsZero() || step.Started.Before(from)) {
			from = step.Started
		}
		if step.Name == node+": forget" {
			to = step.Finished
		}
	}
	require.False(t, from.IsZero() || to.IsZero(), node)
	return from, to
}

// failedOutside lists the failures of requests that began before or after a time.
func (l *load) failedOutside(from, to time.Time) (failed []failure) {
	for _, one := range l.failed {
		if one.at.Before(from) || one.at.After(to) {
			failed = append(failed, one)
		}
	}
	return failed
}

// watchServers counts the servers in Nova until the returned function is called, which returns the highest count.
func (s *scaling) watchServers(t *testing.T) (most func() int) {
	nova := s.user.nova(t)
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	found := 0
	group.Go(func() {
		for ctx.Err() == nil {
			if pages, err := servers.List(nova, nil).AllPages(ctx); err == nil {
				if all, err := servers.ExtractServers(pages); err == nil {
					found = max(found, len(all))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	end := func() int {
		stop()
		group.Wait()
		return found
	}
	t.Cleanup(func() { end() })
	return end
}

// apiWatch sends requests to an API server all the time, and records for how long it gave no answer.
type apiWatch struct {
	stop    context.CancelFunc
	group   sync.WaitGroup
	longest time.Duration
	until   time.Time // when that ended
}

func watchAPI(t *testing.T, address string) *apiWatch {
	_, err := url.Parse(address)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	w := &apiWatch{stop: stop}
	t.Cleanup(w.end)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	w.group.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			if response, err := client.Get(address); err == nil { // any answer to a client without a certificate
				response.Body.Close()
				now := time.Now()
				if away := now.Sub(last); away > w.longest {
					w.longest, w.until = away, now
				}
				last = now
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return w
}

func (w *apiWatch) end() {
	w.stop()
	w.group.Wait()
}
