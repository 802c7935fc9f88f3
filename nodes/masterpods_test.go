package nodes

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
)

// podMasters are nodes whose masters run pods.
func podMasters(masters, minions, gateways int) []Node {
	list := nodesOf(masters, minions, gateways)
	for i := range list {
		list[i].Pods = list[i].Role == Master
	}
	return list
}

func TestMastersThatRunPods(t *testing.T) {
	d, pairs := aDesign(t, podMasters(1, 1, 1), Calico)
	master := d.cluster.Nodes[0]
	d.runtime, d.storage, d.serves = kube.Docker, []kube.Storage{kube.Local}, true
	for name, order := range d.orders(master) {
		if _, known := pairs[name]; !known {
			pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n")}
		}
	}
	l, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	require.Equal(t, []string{"containerd"}, l.runtime, "also where minions use Docker")
	for _, unit := range []string{"kube-apiserver", "kubelet", "kube-proxy", kube.StorageUnit, kube.StorageNodeUnit} {
		require.Contains(t, l.units, unit)
	}
	require.NotContains(t, l.units, kube.ForwarderUnit, "it asks its own API server")
	require.NotContains(t, written(l.units["calico-node"].Install()), "CALICO_K8S_NODE_REF", "Calico's controllers do not delete it with its Node object")
	reviewed(t, "pods-master.txt", written(l.units["kubelet"].Install()))

	ended := d.servingUnits(master, l)
	require.Contains(t, ended, "kube-apiserver")
	for _, unit := range []string{"kubelet", "kube-proxy", "containerd", kube.StorageNodeUnit, "etcd"} {
		require.NotContains(t, ended, unit, "a locked master has its kubelet, as a locked minion has")
	}

	d.cluster.Datastore = network.InKubernetes
	require.False(t, d.cluster.podless(master), "its Node object is its kubelet's")
	require.True(t, d.cluster.podless(d.cluster.Nodes[2]))
}

func TestMastersKeepMemoryForTheControlPlane(t *testing.T) {
	d, pairs := aDesign(t, podMasters(1, 1, 1), Calico)
	d.host = kube.Host{Machine: true, MemoryGiB: 4}
	reserved := map[Role]string{Master: "systemReserved: {cpu: 100m, memory: 1204Mi}", Minion: "systemReserved: {cpu: 100m, memory: 180Mi}"}
	for _, node := range d.cluster.Nodes[:2] {
		l, err := d.layout(node, pairs, 1450)
		require.NoError(t, err)
		require.Contains(t, written(l.units["kubelet"].Install()), reserved[node.Role], node.Role)
	}
}

func TestMastersThatRunPodsReachRegistriesThemselves(t *testing.T) {
	d, pairs := aDesign(t, podMasters(1, 1, 1), Calico)
	proxy, err := kube.ParseProxy(kube.ProxySettings{Masters: "registry.example.org"})
	require.NoError(t, err)
	d.cluster.Proxy = proxy
	for _, node := range d.cluster.Nodes[:2] {
		for name, order := range d.orders(node) {
			pairs[name] = pki.Pair{Certificate: []byte(order.Request.CommonName)}
		}
		l, err := d.layout(node, pairs, 1450)
		require.NoError(t, err)
		require.Equal(t, node.Role == Minion, strings.Contains(written(l.units["containerd"].Install()), "EnvironmentFile"), node.Role)
	}
}

// What users have set comes beside a master's own label and taint.
func TestTheNodeObjectOfAMasterHasTheLabelAndTheTaintOfMasters(t *testing.T) {
	master := Node{Name: "m", Role: Master, Pods: true}
	settings := master.settings()
	require.Equal(t, map[string]string{"node-role.kubernetes.io/control-plane": "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}, settings.Labels)
	require.Equal(t, []kube.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}, settings.Taints)
	master.Settings.Locked = true
	require.True(t, master.settings().Locked)
	require.True(t, Node{Role: Minion}.settings().IsZero())
}

func TestMastersThatRanPodsAreRememberedUntilTheyDoNot(t *testing.T) {
	vault := newVault()
	of := func(list []Node) masterKubelets {
		cluster, err := NewCluster(Config{Name: "c", Nodes: list, Vault: vault, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24")})
		require.NoError(t, err)
		return masterKubelets{cluster.servers}
	}
	former, ever, err := of(nodesOf(3, 1, 1)).choose(t.Context())
	require.NoError(t, err)
	require.Empty(t, former)
	require.False(t, ever)
	_, found, err := vault.Load(t.Context(), vaultKubelets)
	require.NoError(t, err)
	require.False(t, found, "a cluster that never had it notes nothing")

	former, ever, err = of(podMasters(3, 1, 1)).choose(t.Context())
	require.NoError(t, err)
	require.Empty(t, former)
	require.True(t, ever)
	off := of(nodesOf(3, 1, 1))
	former, _, err = off.choose(t.Context())
	require.NoError(t, err)
	require.Len(t, former, 3)
	leaving := nodesOf(1, 1, 0)
	require.NoError(t, off.mark(t.Context(), leaving))
	require.True(t, leaving[0].RunsPods(), "one that leaves before it is switched off has its kubelet stopped")

	d := podsEndSteps{&deployment{cluster: &Cluster{servers: off.servers}, podsEnd: former, lead: former[0]}}
	require.NoError(t, d.forgotten(t.Context(), former[1]))
	for _, node := range former {
		require.NoError(t, d.forgotten(t.Context(), node))
	}
	former, ever, err = off.choose(t.Context())
	require.NoError(t, err)
	require.Empty(t, former)
	require.True(t, ever, "CoreDNS keeps its form")
}

func TestWhatRunsPodsEndsAndTheControlPlaneStays(t *testing.T) {
	dir := t.TempDir()
	place := func(names ...string) {
		for _, name := range names {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
	}
	gone := []string{"notes/kubelet", "notes/containerd", "units/kubelet.service", "units/kube-proxy.service", "configs/kubelet.conf", "configs/kubelet.yaml", "configs/proxy.conf",
		"keys/kubelet.key", "keys/kubelet-server.crt", "keys/proxy.key", "plugins/10-calico.conflist", "data/pods/one/token"}
	stays := []string{"notes/kube-apiserver", "units/kube-apiserver.service", "configs/root.conf", "keys/kubernetes-ca.key", "keys/front-proxy.key", "keys/apiserver-kubelet.key"}
	place(gone...)
	place(stays...)
	log := filepath.Join(dir, "log")
	calls := `echo "${0##*/} $*" >>"$LOG"`
	programs := map[string]string{"systemctl": calls + `; [ "$1 $2" != "cat storage-node" ]`, "ctr": calls + `; [ "$4" != ls ] || echo "of-$3"`, "ip": calls, "nft": calls, "kube-proxy": calls}
	run := func() {
		bash(t, endPodsScript, programs, "LOG="+log, "NOTES="+dir+"/notes", "UNIT_FOLDER="+dir+"/units", "CONFIGS="+dir+"/configs", "KEYS="+dir+"/keys", "KUBELET_DATA="+dir+"/data",
			"SPACES="+dir+"/spaces", "PLUGINS="+dir+"/plugins", "PROXY=kube-proxy")
	}
	place("spaces/cni-1", "spaces/other")
	run()
	run() // after a failure it goes on
	for _, name := range gone {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	for _, name := range stays {
		require.FileExists(t, filepath.Join(dir, name))
	}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NotContains(t, string(text), "disable --now storage-node", "it has none")
	require.NotContains(t, string(text), "kube-apiserver")
	require.Contains(t, string(text), "ip netns del cni-1\n")
	stopped, removed := strings.Index(string(text), "-q disable --now kubelet"), strings.Index(string(text), "tasks rm -f of-tasks")
	require.Positive(t, stopped)
	require.Less(t, stopped, removed, "a kubelet that runs would start them again")
}
