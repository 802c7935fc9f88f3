package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everywhere has a pod on each node that runs pods, also on masters.
const everywhere = `
apiVersion: v1
kind: Service
metadata: {name: everywhere, annotations: {burano.io/publish: "false"}}
spec: {selector: {app: everywhere}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
`

// runEverywhere demands that the DaemonSet has a pod on exactly these nodes, and that each of them reaches all others, and the Service by its name.
func (s *scaling) runEverywhere(t *testing.T, nodes ...string) {
	t.Helper()
	addresses := map[string]string{}
	s.lab.eventually(t, time.Minute, "there is a ready pod on each node that runs pods", func() error {
		clear(addresses)
		for line := range strings.Lines(s.cluster.kubectl(t, "", "get", "pods", "-l", "app=everywhere", "-o",
			`jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "True" {
				addresses[fields[0]] = fields[1]
			}
		}
		if has := mapKeys(addresses); len(has) != len(nodes) {
			return fmt.Errorf("ready pods are on %v, and nodes are %v", has, nodes)
		}
		return nil
	})
	require.ElementsMatch(t, nodes, mapKeys(addresses))
	for _, from := range nodes {
		for to, address := range addresses {
			s.lab.eventually(t, 20*time.Second, "a pod of "+from+" reaches one of "+to, func() error {
				answer, err := s.cluster.inPod(from, "curl --silent --show-error --max-time 5 http://"+address+":8080/")
				if err == nil && !strings.Contains(answer, "everywhere-") {
					err = fmt.Errorf("%s answers %q", address, answer)
				}
				return err
			})
		}
		answer, err := s.cluster.inPod(from, "curl --silent --show-error --max-time 5 http://everywhere.default.svc.cluster.local/")
		require.NoError(t, err, "%s: %s", from, answer)
	}
}

// TestMastersRunPods switches it on and off that masters run pods. Meanwhile requests come through the gateway, one of the masters is replaced, and one is locked.
func TestMastersRunPods(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it is an option that clusters have by asking for it")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	usual, err := os.ReadFile("testdata/masters.yaml")
	require.NoError(t, err)
	l.deleteIfFailed(t, "masters")
	file := filepath.Join(t.TempDir(), "masters.yaml")
	write := func(lines string) {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(usual), "    nodeCount: 1", "    masterCount: 3\n"+lines+"    nodeCount: 1", 1)), 0o600))
	}
	deploy := func(lines string) (log string) {
		write(lines)
		began := time.Now()
		log = l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
		t.Logf("deployed in %.1f s: %q", time.Since(began).Seconds(), lines)
		return log
	}
	deploy("")
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), further: []string{"murano-kube-1-m2", "murano-kube-1-m3"}}
	masters, minions, gateways := []string{"murano-kube-1", "murano-kube-1-m2", "murano-kube-1-m3"}, []string{"murano-kube-2"}, []string{"murano-gateway-1"}
	all := func() []string { return slices.Concat(masters, minions) }
	s.holds(t, minions, gateways)
	load := startLoad(t, endpointOf(t, environment))
	apiServer := s.startedAt(t, "murano-kube-1", "kube-apiserver")

	write("    podsOnMasters: true\n")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run"), "its masters run pods, too")
	deploy("    podsOnMasters: true\n")
	s.kubelets = masters
	s.holds(t, minions, gateways)
	require.Equal(t, apiServer, s.startedAt(t, "murano-kube-1", "kube-apiserver"), "the control plane runs on")
	for _, master := range masters {
		require.Equal(t, "NoSchedule", s.cluster.kubectl(t, "", "get", "node", master, "-o", "jsonpath={.spec.taints[*].effect}"))
		require.Contains(t, s.cluster.kubectl(t, "", "get", "node", master, "--show-labels"), "node-role.kubernetes.io/control-plane=")
	}
	s.cluster.kubectl(t, everywhere, "apply", "-f", "-")
	s.runEverywhere(t, all()...)
	require.Equal(t, "2", s.cluster.kubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"))
	for line := range strings.Lines(s.cluster.kubectl(t, "", "get", "pods", "-A", "-l", "app!=everywhere", "-o", `jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}`)) {
		require.Equal(t, "murano-kube-2", strings.TrimSpace(line), "pods without the toleration stay on minions")
	}
	shown := l.run(t, l.as("burano-demo"), "burano", "node", "list", "masters", "--all")
	require.Contains(t, shown, "node-role.kubernetes.io/control-plane:NoSchedule")
	refused, _ := s.call(t, "scaling-cluster", "setNode", map[string]any{"node": "murano-kube-1", "cordoned": true})
	require.Contains(t, fmt.Sprint(refused["result"]), "is a master: it can be locked and unlocked")

	s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-kube-1-m2"})
	masters[1] = "murano-kube-1-m2-r2"
	s.further, s.kubelets = masters[1:], masters
	s.holds(t, minions, gateways)
	s.runEverywhere(t, all()...)

	l.run(t, l.as("burano-demo"), "burano", "node", "lock", "masters", "murano-kube-1-m3", "--follow")
	s.emptied(t, "murano-kube-1-m3")
	locked := demo.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/clusters/"+s.clusterID(t)+"/nodes/murano-kube-1-m3", nil)
	require.Equal(t, "locked", locked["state"])
	s.runEverywhere(t, "murano-kube-1", masters[1], "murano-kube-2")
	l.run(t, l.as("burano-demo"), "burano", "node", "unlock", "masters", "murano-kube-1-m3", "--follow")
	s.runEverywhere(t, all()...)

	write("")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run"), "its masters run no pods any more")
	deploy("")
	s.kubelets = nil
	s.holds(t, minions, gateways)
	s.runEverywhere(t, minions...)
	for _, master := range masters {
		left := s.in(t, master, "for program in kubelet kube-proxy containerd; do pgrep -lx $program || true; done; iptables-save 2>/dev/null | grep KUBE-SVC || true; ls /run/netns 2>/dev/null || true")
		require.Empty(t, strings.TrimSpace(left), "%s has nothing left of it", master)
	}
	require.Equal(t, apiServer, s.startedAt(t, "murano-kube-1", "kube-apiserver"), "the control plane runs on")
	require.NotContains(t, deploy(""), "runs no pods any more", "once is enough")
	load.end()
	t.Log(load)
	s.cluster.noneFailed(t, load.failed)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}
