package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestActionsChangeWhatRuns calls each action of cluster and pod through the API and looks for its effect in Nova, etcd and
// Kubernetes; then it takes nodes away under load.
func TestActionsChangeWhatRuns(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	s, environment, _ := l.scaled(t, demo)
	gateway := endpointOf(t, environment)
	if !t.Run("minions and gateways", s.actionsOfTheCluster) || !t.Run("limits can be raised", s.higherLimits) ||
		!t.Run("rollouts", func(t *testing.T) { s.rollouts(t, gateway) }) || !t.Run("pods", s.actionsOfThePod) {
		return
	}
	t.Run("rollouts that fail", func(t *testing.T) { s.failingRollouts(t, gateway) })
	t.Run("minions go from 3 to 1 and gateways from 2 to 1 under load", func(t *testing.T) { s.underLoad(t, gateway) })
	t.Run("servers of another application stand beside the cluster", s.besideServers)

	output := l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	require.Contains(t, output, "is deleted")
	asBefore(t, demo, found)
}

// scaling is the environment of the test.
type scaling struct {
	lab         *lab
	user        *user
	cluster     *cluster
	environment string
	file        string   // the deployed file of scaled
	master      string   // its name; murano-kube-1 when empty
	further     []string // the names of other masters
	voting      int      // the expected number of etcd's members; as many as possible when 0
	registered  bool     // nodes of all roles have Node objects: Calico's store is Kubernetes
	kubelets    []string // masters that run pods
	balancer    string   // a Service of type LoadBalancer, if there is one
}

// scaled deploys the environment of testdata/scaling.yaml, in whose text old texts are replaced by new ones, in pairs. It returns the log, too.
func (l *lab) scaled(t *testing.T, demo *user, replacements ...string) (s *scaling, environment map[string]any, log string) {
	t.Helper()
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(replacements...).Replace(string(text))), 0o600))
	log = l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "scaling")
	environment = environmentNamed(t, demo, "scaling")
	return &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), file: file}, environment, log
}

// says waits until an Event of an object has a text.
func (s *scaling) says(t *testing.T, kind, name, text string) {
	t.Helper()
	s.lab.eventually(t, 2*time.Minute, "an Event of "+name+" says: "+text, func() error {
		events := s.cluster.kubectl(t, "", "get", "events", "--field-selector", "involvedObject.kind="+kind+",involvedObject.name="+name, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, text) {
			return fmt.Errorf("they say: %s", events)
		}
		return nil
	})
}

// noVolumesLeft waits until neither the cloud, which left lists, nor Kubernetes has a volume.
func (s *scaling) noVolumesLeft(t *testing.T, left func() int) {
	t.Helper()
	s.lab.eventually(t, 2*time.Minute, "no volume is left", func() error {
		if count := left(); count > 0 {
			return fmt.Errorf("the cloud has %d", count)
		}
		if there := s.cluster.kubectl(t, "", "get", "pv,volumeattachments", "-o", "name"); there != "" {
			return fmt.Errorf("there are %s", there)
		}
		return nil
	})
}

// timed is a part of a test whose time is logged.
func timed(t *testing.T, name string, do func()) {
	t.Helper()
	began := time.Now()
	t.Log(name)
	do()
	t.Logf("%s: %.1f s", name, time.Since(began).Seconds())
}

func (s *scaling) masterName() string { return cmp.Or(s.master, "murano-kube-1") }

// act calls an action of the named object through the API, waits for its end, which must be a success, and returns the log's lines by
// level.
func (s *scaling) act(t *testing.T, object, action string, args map[string]any) map[string][]string {
	t.Helper()
	result, lines := s.call(t, object, action, args)
	require.Equalf(t, false, result["isException"], "%s: %v\n%v", action, result, lines)
	return lines
}

// begin calls an action and returns its task's id.
func (s *scaling) begin(t *testing.T, object, action string, args map[string]any) string {
	t.Helper()
	path := "/v1/environments/" + s.environment
	id := ""
	for _, one := range s.user.must(t, http.MethodGet, path, nil)["services"].([]any) {
		service := one.(map[string]any)
		header := service["?"].(map[string]any)
		key := header["id"].(string) + "_" + action
		if service["name"] == object && header["_actions"].(map[string]any)[key] != nil {
			id = key
		}
	}
	require.NotEmptyf(t, id, "%s offers no action %s", object, action)
	return s.user.must(t, http.MethodPost, path+"/actions/"+id, args)["task_id"].(string)
}

// call is act for an action that may fail; it returns the result too.
func (s *scaling) call(t *testing.T, object, action string, args map[string]any) (result map[string]any, lines map[string][]string) {
	t.Helper()
	path := "/v1/environments/" + s.environment
	began := time.Now()
	task := s.begin(t, object, action, args)
	s.lab.eventually(t, 8*time.Minute, action+" ends", func() error {
		result = s.user.must(t, http.MethodGet, path+"/actions/"+task, nil)
		if len(result) == 0 {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	lines = map[string][]string{}
	for _, one := range s.user.must(t, http.MethodGet, path+"/deployments/"+task, nil)["reports"].([]any) {
		report := one.(map[string]any)
		level := report["level"].(string)
		lines[level] = append(lines[level], report["text"].(string))
	}
	t.Logf("%s %v took %.1f s", action, args, time.Since(began).Seconds())
	return result, lines
}

// holds demands that exactly these nodes are there: as servers of Nova, in Kubernetes (minions), and among them an odd number of
// healthy voters of etcd, as many as possible.
func (s *scaling) holds(t *testing.T, minions, gateways []string) {
	t.Helper()
	names := append(append(append([]string{s.masterName()}, s.further...), minions...), gateways...)
	pages, err := servers.List(s.user.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	clear(s.cluster.servers)
	for _, server := range all {
		require.Equal(t, "ACTIVE", server.Status)
		s.cluster.servers[server.Name] = server.ID
	}
	require.ElementsMatch(t, names, mapKeys(s.cluster.servers), "servers in Nova")

	var ready []string
	for line := range strings.Lines(s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")) {
		ready = append(ready, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "node/"), " condition met"))
	}
	if s.registered {
		require.ElementsMatch(t, names, ready, "nodes in Kubernetes")
	} else {
		require.ElementsMatch(t, append(slices.Clone(s.kubelets), minions...), ready, "nodes in Kubernetes")
	}

	var members struct {
		Members []struct {
			Name      string
			IsLearner bool
		}
	}
	s.etcd(t, &members, "member", "list")
	want := min(len(names), 5)
	want -= 1 - want%2
	if s.voting > 0 {
		want = s.voting
	}
	require.Lenf(t, members.Members, want, "of %d nodes: %v", len(names), members)
	voters := map[string]bool{}
	for _, member := range members.Members {
		require.Contains(t, names, member.Name)
		require.False(t, member.IsLearner)
		voters[member.Name] = true
	}
	require.Len(t, voters, want, "each member is another node's")
	var health []struct {
		Endpoint string
		Health   bool
	}
	s.etcd(t, &health, "endpoint", "health", "--cluster")
	require.Len(t, health, want)
	for _, one := range health {
		require.True(t, one.Health, one.Endpoint)
	}
	if s.balancer != "" {
		s.addressed(t, all, gateways)
	}
	if s.registered {
		return
	}
	// Calico knows no missing node.
	keys, err := outputOf(s.cluster.command(minions[0], etcdctl("calico", "get", "/calico/resources/v3/projectcalico.org/nodes/", "--prefix", "--keys-only")...))
	require.NoError(t, err, keys)
	require.Len(t, strings.Fields(keys), len(names), keys)
}

// addressed demands that a Service's status has the floating addresses of exactly these gateways.
func (s *scaling) addressed(t *testing.T, all []servers.Server, gateways []string) {
	t.Helper()
	var want []string
	for _, server := range all {
		if !slices.Contains(gateways, server.Name) {
			continue
		}
		for _, network := range server.Addresses {
			for _, one := range network.([]any) {
				if address := one.(map[string]any); address["OS-EXT-IPS:type"] == "floating" {
					want = append(want, address["addr"].(string))
				}
			}
		}
	}
	require.Len(t, want, len(gateways))
	slices.Sort(want)
	s.lab.eventually(t, 10*time.Second, "the Service has the gateways' addresses", func() error {
		has := strings.Fields(s.cluster.kubectl(t, "", "get", "service", s.balancer, "--output", "jsonpath={.status.loadBalancer.ingress[*].ip}"))
		if !slices.Equal(has, want) {
			return fmt.Errorf("it has %v, and the gateways are at %v", has, want)
		}
		return nil
	})
}

// etcd runs etcdctl on the master and reads its answer as JSON.
func (s *scaling) etcd(t *testing.T, answer any, args ...string) {
	t.Helper()
	command := strings.Join(append(etcdctl("apiserver-etcd", args...), "-w", "json", "2>/dev/null"), " ")
	output, err := s.cluster.on(s.masterName(), "/bin/sh", "-c", command)
	require.NoError(t, err, output)
	require.NoError(t, json.Unmarshal([]byte(output), answer), output)
}

func (s *scaling) actionsOfTheCluster(t *testing.T) {
	const object = "scaling-cluster"
	s.cluster.kubectl(t, "", "create", "service", "loadbalancer", "balanced", "--tcp=8200:80")
	s.balancer = "balanced"
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})

	lines := s.act(t, object, "scaleNodesDown", map[string]any{})
	require.Equal(t, []string{"At least one node must be in cluster"}, lines["warning"])
	lines = s.act(t, object, "scaleGatewaysDown", map[string]any{})
	require.Equal(t, []string{"No gateway nodes that can be removed"}, lines["warning"])
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})

	require.Empty(t, s.act(t, object, "scaleNodesUp", map[string]any{})["warning"])
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	require.Empty(t, s.act(t, object, "scaleGatewaysUp", map[string]any{})["warning"])
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})
	lines = s.act(t, object, "scaleGatewaysUp", map[string]any{})
	require.Equal(t, []string{"The maximum number of gateway nodes has been reached"}, lines["warning"])
	lines = s.act(t, object, "scaleNodesUp", map[string]any{"count": 5})
	require.Equal(t, []string{"The maximum number of nodes has been reached"}, lines["warning"])
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-2"})

	// A named node goes, though the pods may all be on it, and comes back last.
	s.act(t, object, "scaleNodesDown", map[string]any{"node": "murano-kube-3"})
	s.holds(t, []string{"murano-kube-2", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-2"})
	s.act(t, object, "scaleGatewaysDown", map[string]any{})
	s.holds(t, []string{"murano-kube-2", "murano-kube-4"}, []string{"murano-gateway-1"})
	s.act(t, object, "scaleNodesUp", map[string]any{})
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1"})
	s.act(t, object, "scaleGatewaysUp", map[string]any{})
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-2"})

	for _, wrong := range []map[string]any{{"node": "murano-kube-9"}, {"node": "murano-kube-3", "count": 2}} {
		result, lines := s.call(t, object, "scaleNodesDown", wrong)
		require.Equal(t, true, result["isException"])
		require.Contains(t, fmt.Sprint(lines["error"]), wrong["node"])
	}
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-2"})
}

// higherLimits deploys the environment with longer lists of nodes, which changes nothing that runs, and a job, and lets the cluster grow beyond
// its former limits.
func (s *scaling) higherLimits(t *testing.T) {
	const object = "scaling-cluster"
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	longer := string(text)
	change := func(old, with string) {
		require.Equal(t, 1, strings.Count(longer, old), old)
		longer = strings.Replace(longer, old, with, 1)
	}
	change("nodeCount: 1", "nodeCount: 3")
	change("gatewayCount: 1", "gatewayCount: 2")
	const end = ", flavor: m1.medium, image: burano-node, assignFloatingIp: true}\n"
	another := func(kind, former, name string) {
		change("name: "+former+end, "name: "+former+end+
			`      - "?": {type: com.mirantis.docker.kubernetes.Kubernetes`+kind+"Node}\n"+
			`        instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: `+name+end)
	}
	another("Minion", "murano-kube-4", "murano-kube-5")
	another("Gateway", "murano-gateway-2", "murano-gateway-3")
	file := filepath.Join(t.TempDir(), "longer.yaml")
	require.NoError(t, os.WriteFile(file, []byte(longer+aJob), 0o600))
	s.ran(t, s.lab.run(t, s.lab.as("burano-demo"), "burano", "deploy", file, "--follow"))
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-2"})

	require.Empty(t, s.act(t, object, "scaleNodesUp", map[string]any{})["warning"])
	require.Empty(t, s.act(t, object, "scaleGatewaysUp", map[string]any{"count": 1})["warning"])
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4", "murano-kube-5"}, []string{"murano-gateway-1", "murano-gateway-2", "murano-gateway-3"})
	lines := s.act(t, object, "scaleNodesUp", map[string]any{})
	require.Equal(t, []string{"The maximum number of nodes has been reached"}, lines["warning"])

	s.act(t, object, "scaleGatewaysDown", map[string]any{"node": "murano-gateway-2"})
	s.act(t, object, "scaleNodesDown", map[string]any{"count": 1})
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1", "murano-gateway-3"})
}

// pods lists the pods of the environment's one KubernetesPod that do not end, with the number of restarts of their containers.
func (s *scaling) pods(t *testing.T) map[string]int {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Status   struct {
				ContainerStatuses []struct{ RestartCount int }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.cluster.kubectl(t, "", "get", "pods", "-l", "id=web", "-o", "json")), &list))
	pods := map[string]int{}
	for _, pod := range list.Items {
		if pod.Metadata.DeletionTimestamp != "" {
			continue
		}
		pods[pod.Metadata.Name] = 0
		for _, status := range pod.Status.ContainerStatuses {
			pods[pod.Metadata.Name] += status.RestartCount
		}
	}
	return pods
}

func (s *scaling) actionsOfThePod(t *testing.T) {
	const object = "web"
	require.Len(t, s.pods(t), 2)
	budgets := func() string {
		return s.cluster.kubectl(t, "", "get", "pdb", "-o", "jsonpath={.items[*].spec.maxUnavailable}")
	}
	require.Equal(t, "1", budgets())
	lines := s.act(t, object, "scalePodDown", map[string]any{"count": 7})
	require.Equal(t, []string{"At least one replica must remain"}, lines["warning"])
	require.NotContains(t, lines["info"], "Kubernetes cluster scaling-cluster is up and running", "the cluster stays as it stands")
	require.Len(t, s.pods(t), 1)
	require.Empty(t, budgets(), "a single replica must not keep nodes from being drained")
	s.act(t, object, "scalePodUp", map[string]any{"count": 3})
	require.Len(t, s.pods(t), 4)
	require.Equal(t, "1", budgets())

	before := s.pods(t)
	s.act(t, object, "recreatePod", map[string]any{})
	after := s.pods(t)
	require.Len(t, after, 4)
	for name := range before {
		require.NotContains(t, after, name)
	}
	s.act(t, object, "restartContainers", map[string]any{})
	restarted := s.pods(t)
	require.Len(t, restarted, 4)
	for name, count := range restarted {
		require.Contains(t, after, name, "the pods stay")
		require.Equal(t, after[name]+1, count, "the containers were started once more")
	}
	// A deployment of the same model changes nothing: above all it does not undo recreatePod.
	s.act(t, object, "scalePodUp", map[string]any{})
	now := s.pods(t)
	require.Len(t, now, 5)
	for name := range restarted {
		require.Contains(t, now, name)
	}
}

// underLoad removes two minions and a gateway while requests come through the gateway that stays.
func (s *scaling) underLoad(t *testing.T, gateway string) {
	_, _, err := net.SplitHostPort(gateway)
	require.NoError(t, err)
	load := startLoad(t, gateway)
	began := time.Now()
	s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{"count": 2})
	s.act(t, "scaling-cluster", "scaleGatewaysDown", map[string]any{})
	load.end()
	t.Logf("%.1f s of load: %s", time.Since(began).Seconds(), load)
	s.cluster.noneFailed(t, load.failed)
	require.Greater(t, load.fresh+load.kept, 100, "there was a load")
	require.Greater(t, load.left, 0, "applications that end ask for their connections to be left")
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
}
