package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestCalicoKeepsWhatItKnowsInKubernetes has a cluster whose Calico has its store in Kubernetes. Nodes of all roles have Node objects there, whichever come, go, and
// restart, and the cluster works as over etcd.
func TestCalicoKeepsWhatItKnowsInKubernetes(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it is an option that clusters have by asking for it")
	inKubernetes(t, "    calicoDatastore: kubernetes\n", false)
}

// TestCalicoInKubernetesExchangesRoutesByBGP is the same, in short, without encapsulation.
func TestCalicoInKubernetesExchangesRoutesByBGP(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it is an option that clusters have by asking for it")
	inKubernetes(t, "    calicoDatastore: kubernetes\n    podEncapsulation: none\n    bgpPeers: [{address: "+outside("1")+", as: 64601}]\n", true)
}

func inKubernetes(t *testing.T, lines string, unwrapped bool) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	usual, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	model := func(lines string) string {
		file := filepath.Join(t.TempDir(), "scaling.yaml")
		text := strings.NewReplacer("nodeCount: 1", "nodeCount: 2", "name: scaling-cluster\n", "name: scaling-cluster\n"+lines).Replace(string(usual))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	l.deleteIfFailed(t, "scaling")
	deploy := func(lines string) {
		began := time.Now()
		l.run(t, l.as("burano-demo"), "burano", "deploy", model(lines), "--follow")
		t.Logf("deployed in %.1f s: %q", time.Since(began).Seconds(), lines)
	}
	var router *speaker
	if unwrapped {
		router = startSpeaker(t, 64601)
	}
	deploy(lines)
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), registered: true}
	where := endpointOf(t, environment)
	minions, gateways := []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"}
	s.holds(t, minions, gateways)
	bothReplicasAnswer(t, l, where)
	podsReachEachOther(t, l, s.cluster, "web")
	networkPolicies(t, l, s.cluster, where)
	if unwrapped {
		routed(t, l, s.cluster, minions, "murano-kube-1", "murano-gateway-1")
		l.eventually(t, 60*time.Second, "a router outside is told where pods are", func() error { return router.knows(4, 2) })
	} else {
		nodesChangeThemselvesOnly(t, s.cluster)
	}

	s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	minions = append(minions, "murano-kube-4")
	s.holds(t, minions, gateways)
	s.cluster.kubectl(t, fmt.Sprintf(onNode, "murano-kube-4"), "apply", "-f", "-")
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "pod/on-murano-kube-4", "--timeout=60s")
	s.gatewayReaches(t, "on-murano-kube-4")
	require.NotEmpty(t, s.affine(t, "murano-kube-4"))
	s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": "murano-kube-4"})
	minions = minions[:2]
	s.holds(t, minions, gateways)
	s.freed(t, "murano-kube-4")
	if unwrapped {
		routed(t, l, s.cluster, minions, "murano-kube-1", "murano-gateway-1")
		s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-gateway-1"})
		s.holds(t, minions, []string{"murano-gateway-1-r2"})
		routed(t, l, s.cluster, minions, "murano-kube-1", "murano-gateway-1-r2")
		l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "create", "scaling")
		l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "scaling", "--yes", "--follow")
		s.holds(t, minions, []string{"murano-gateway-1-r2"})
		routed(t, l, s.cluster, minions, "murano-kube-1", "murano-gateway-1-r2")
		bothReplicasAnswer(t, l, where)
		deploy(strings.Split(lines, "    bgpPeers")[0])
		l.eventually(t, 60*time.Second, "the router is told nothing any more", func() error { return router.knows(0, 0) })
		l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
		asBefore(t, demo, found)
		return
	}

	for _, node := range []string{"murano-kube-3", "murano-gateway-1"} {
		s.act(t, "scaling-cluster", "rebootNode", map[string]any{"node": node, "force": true})
		s.holds(t, minions, gateways)
		bothReplicasAnswer(t, l, where)
	}
	s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-kube-3"})
	minions[1] = "murano-kube-3-r2"
	s.holds(t, minions, gateways)
	s.freed(t, "murano-kube-3")
	bothReplicasAnswer(t, l, where)

	// A dead node is not Ready once it is missed, and is Ready when it is back.
	gateway := s.cluster.servers["murano-gateway-1"]
	require.NoError(t, servers.Stop(t.Context(), demo.nova(t), gateway).ExtractErr())
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready=Unknown", "node/murano-gateway-1", "--timeout=120s")
	require.NoError(t, servers.Start(t.Context(), demo.nova(t), gateway).ExtractErr())
	s.becomes(t, gateway, "ACTIVE")
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "node/murano-gateway-1", "--timeout=120s")
	bothReplicasAnswer(t, l, where)

	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 3})
	s.further = []string{"murano-kube-1-m2", "murano-kube-1-m3"}
	s.holds(t, minions, gateways)
	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 1})
	further := s.further
	s.further = nil
	s.holds(t, minions, gateways)
	for _, node := range further {
		s.freed(t, node)
	}
	bothReplicasAnswer(t, l, where)

	l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "create", "scaling")
	s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	s.cluster.kubectl(t, "", "delete", "node", "murano-gateway-1") // and a user's mistake
	l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "scaling", "--yes", "--follow")
	minions = append(minions, "murano-kube-4")
	s.holds(t, minions, gateways)
	bothReplicasAnswer(t, l, where)
	s.cluster.kubectl(t, fmt.Sprintf(onNode, "murano-kube-4"), "apply", "-f", "-")
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "pod/on-murano-kube-4", "--timeout=60s")
	s.gatewayReaches(t, "on-murano-kube-4")

	for _, flag := range []string{"--dry-run", "--follow"} {
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", model("    calicoDatastore: etcd\n"), flag)
		require.Error(t, err, output)
		require.Contains(t, output, "calicoDatastore cannot be changed: cluster scaling-cluster was made with kubernetes, and what Calico knows of its nodes and pods is kept there")
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// nodesChangeThemselvesOnly tests the rights of Calico's certificates, and looks at the objects of nodes that take no pods.
func nodesChangeThemselvesOnly(t *testing.T, c *cluster) {
	t.Helper()
	keys, err := c.on("murano-kube-1", "/bin/bash", "-c", `etcdctl() { /opt/burano/bin/etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/burano/pki/etcd-ca.crt --cert=/etc/burano/pki/apiserver-etcd.crt `+
		`--key=/etc/burano/pki/apiserver-etcd.key "$@"; }; etcdctl get /registry/crd.projectcalico.org/ --prefix --keys-only`)
	require.NoError(t, err, keys)
	require.Contains(t, keys, "/registry/crd.projectcalico.org/ippools/")
	for _, node := range []string{"murano-kube-1", "murano-kube-2", "murano-gateway-1"} {
		can := func(verb, what string, options ...string) string {
			command := "/opt/burano/bin/kubectl --kubeconfig=/etc/kubernetes/calico.conf auth can-i " + strings.Join(append([]string{verb, what}, options...), " ") + " 2>/dev/null || true" // "no" is an error
			out, err := c.on(node, "/bin/bash", "-c", command)
			require.NoError(t, err, out)
			word, _, _ := strings.Cut(strings.TrimSpace(out), " ")
			return word
		}
		require.Equal(t, "yes", can("list", "nodes"))
		require.Equal(t, "no", can("list", "secrets", "-A"), node)
		require.Equal(t, "no", can("create", "globalnetworkpolicies.crd.projectcalico.org"), node)
		require.Equal(t, "no", can("delete", "ippools.crd.projectcalico.org"), node)
		wanted := "no"
		if node == "murano-kube-1" {
			wanted = "yes"
		}
		require.Equal(t, wanted, can("create", "bgppeers.crd.projectcalico.org"), node)
		out, err := c.on(node, "/opt/burano/bin/kubectl", "--kubeconfig=/etc/kubernetes/calico.conf", "annotate", "node", "murano-kube-3", "projectcalico.org/IPv4Address=192.0.2.1/24", "--overwrite")
		require.Error(t, err, out)
		require.Contains(t, out, `node "`+node+`" is not allowed to modify node "murano-kube-3"`)
		out, err = c.on(node, "ls", "/etc/burano/pki/calico.crt")
		require.Error(t, err, "no certificate of etcd is for Calico: %s", out)
	}
	// DaemonSets that tolerate every taint, as most do, have no pods on nodes that take none.
	c.kubectl(t, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{operator: Exists}]
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
`, "apply", "-f", "-")
	c.kubectl(t, "", "rollout", "status", "daemonset/everywhere", "--timeout=60s")
	require.Equal(t, "2", c.kubectl(t, "", "get", "daemonset", "everywhere", "-o", "jsonpath={.status.desiredNumberScheduled}"))
	c.kubectl(t, "", "delete", "daemonset", "everywhere", "--now")
	metrics := c.kubectl(t, "", "get", "nodes", "-o", "custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key,PODS:.status.allocatable.pods", "--no-headers")
	require.Regexp(t, `murano-gateway-1 +burano.io/podless,burano.io/podless +0`, metrics)
}

// affine are the blocks of addresses that a node holds.
func (s *scaling) affine(t *testing.T, node string) (blocks []string) {
	t.Helper()
	var list struct {
		Items []struct{ Spec struct{ CIDR, Node string } }
	}
	require.NoError(t, json.Unmarshal([]byte(s.cluster.kubectl(t, "", "get", "blockaffinities.crd.projectcalico.org", "-o", "json")), &list))
	for _, one := range list.Items {
		if one.Spec.Node == node {
			blocks = append(blocks, one.Spec.CIDR)
		}
	}
	return blocks
}

// freed demands that the node holds no address any more.
func (s *scaling) freed(t *testing.T, node string) {
	t.Helper()
	s.lab.eventually(t, time.Minute, "the addresses of "+node+" are free", func() error {
		if blocks := s.affine(t, node); len(blocks) > 0 {
			return fmt.Errorf("it has %v", blocks)
		}
		if handles := s.cluster.kubectl(t, "", "get", "ipamhandles.crd.projectcalico.org", "-o", "jsonpath={.items[*].spec.handleID}"); strings.Contains(handles+" ", "-"+node+" ") {
			return fmt.Errorf("its tunnel has one: %s", handles)
		}
		return nil
	})
}

// gatewayReaches demands that the gateway reaches a pod at its own address.
func (s *scaling) gatewayReaches(t *testing.T, pod string) {
	t.Helper()
	address := s.cluster.kubectl(t, "", "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
	s.lab.eventually(t, 30*time.Second, "the gateway reaches "+pod+" at "+address, func() error {
		out, err := s.cluster.on("murano-gateway-1", "curl", "--silent", "--show-error", "--max-time", "3", "http://"+address+":8080/")
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
}
