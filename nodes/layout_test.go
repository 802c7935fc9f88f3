package nodes

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	xssh "golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

var update = flag.Bool("update", false, "write the golden files anew")

func newVault() *access.Memory { return &access.Memory{} }

func nodesOf(masters, minions, gateways int) []Node {
	var all []Node
	add := func(count int, role Role, pattern string) {
		for i := range count {
			address := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + len(all))})
			access := netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + len(all))})
			all = append(all, Node{Name: fmt.Sprintf(pattern, i+1), Role: role, Address: address, Access: access})
		}
	}
	add(masters, Master, "murano-master-%d")
	add(minions, Minion, "murano-kube-%d")
	add(gateways, Gateway, "murano-gateway-%d")
	return all
}

// aDesign has the certificates' names in place of certificates, so that the files made from it are always the same.
func aDesign(t *testing.T, nodes []Node, pods Network) (design, map[string]pki.Pair) {
	t.Helper()
	key, err := os.ReadFile("testdata/service-account.key")
	require.NoError(t, err)
	config := Config{Name: "My Cluster!", Nodes: nodes, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), SSHFrom: []string{"203.0.113.0/24"}, Network: pods,
		Addressing: network.DefaultAddressing()}
	driver, err := config.driver()
	require.NoError(t, err)
	d := design{
		cluster: config,
		driver:  driver,
		authorities: &pki.Cluster{
			Etcd:       &pki.Authority{Certificate: []byte("<etcd authority>\n")},
			EtcdPeers:  &pki.Authority{Certificate: []byte("<etcd peers' authority>\n")},
			Kubernetes: &pki.Authority{Certificate: []byte("<kubernetes authority>\n")},
			FrontProxy: &pki.Authority{Certificate: []byte("<front-proxy authority>\n")}, KubernetesKey: []byte("<kubernetes authority's key>\n"),
			ServiceAccount: key, Encryption: bytes.Repeat([]byte{7}, 32), EncryptionName: "key1",
		},
		voters: []string{nodes[0].Name, nodes[1].Name, nodes[2].Name},
		peers:  etcd.TrustPeers,
		binary: "digest",
	}
	pairs := map[string]pki.Pair{}
	for _, node := range nodes {
		for name, order := range d.orders(node) {
			pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
		}
	}
	return d, pairs
}

func TestEveryFileOfEveryRoleIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	for _, node := range nodes {
		l, err := d.layout(node, pairs, 1450)
		require.NoError(t, err)
		reviewed(t, string(node.Role)+".txt", fmt.Sprintf("# hosts\n%s\n%s", l.hosts, written(l.files())))
	}
}

// The test compares each node's own paths with the paths that nodes with the same sketch share.
func TestNodesThatAreAlikeHaveTheirFilesAtTheSamePaths(t *testing.T) {
	list := nodesOf(3, 4, 3)
	for i := range list {
		list[i].Zone = fmt.Sprintf("az%d", i)
	}
	list[4].Access, list[5].Inherits, list[6].Elastic = netip.Addr{}, list[5].Access, true
	for _, pods := range []Network{Calico, Flannel} {
		d, pairs := aDesign(t, list, pods)
		d.voters = []string{list[0].Name, list[1].Name, list[2].Name, list[3].Name, list[7].Name}
		d.cluster.Metrics, d.elect = true, true
		together := fileSteps{&deployment{design: d, cluster: &Cluster{servers: &servers{config: d.cluster}}}}
		for _, node := range list {
			alone := fileSteps{&deployment{design: d, cluster: &Cluster{servers: &servers{config: d.cluster}}}}
			own, err := alone.paths(node, pairs)
			require.NoError(t, err)
			shared, err := together.paths(node, pairs)
			require.NoError(t, err)
			require.Equal(t, own, shared, node.Name)
			require.Contains(t, own, etcd.AuthorityFile, "some path that is known")
			for _, further := range []bool{false, true} {
				final := d
				final.metrics, final.shares, final.serves, final.attaches, final.proxied = further, further, further, further, further
				if final.runtime = kube.Containerd; further {
					final.runtime = kube.Docker
				}
				l, err := final.layout(node, pairs, 1450)
				require.NoError(t, err)
				for _, file := range l.files() {
					require.Contains(t, own, file.Path)
				}
			}
		}
	}
}

// Everything else is as with IPv4 only, whose files stay as they are.
func TestWhatADualStackClusterHasOtherwiseIsAsReviewed(t *testing.T) {
	list := nodesOf(1, 1, 1)
	usual, pairs := aDesign(t, list, Calico)
	dual := withSix(t, usual, usual.cluster.Addressing)
	for i, node := range list {
		node.Six = sixth(i)
		require.Equal(t, usual.orders(list[i]), dual.orders(node), "the certificates are the same")
	}
	reviewed(t, "dual.txt", otherwise(t, list, pairs, usual, dual))
}

// Pods and Services have IPv6 alone; the cluster itself uses IPv4.
func TestWhatAClusterOfIPv6HasOtherwiseIsAsReviewed(t *testing.T) {
	list := nodesOf(1, 1, 1)
	usual, pairs := aDesign(t, list, Calico)
	six := withSix(t, usual, network.Addressing{Domain: usual.cluster.Addressing.Domain})
	for i, node := range list {
		node.Six = sixth(i)
		for name, order := range six.orders(node) {
			former := usual.orders(list[i])[name].Request
			switch name {
			case "apiserver":
				require.Equal(t, []netip.Addr{node.Address, node.Six, node.Access, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00:10:96::1")}, order.Request.IP)
			case "kubelet-server":
				require.Equal(t, []netip.Addr{node.Six}, order.Request.IP)
			default:
				require.Equal(t, former, order.Request, name)
			}
		}
	}
	reviewed(t, "six.txt", otherwise(t, list, pairs, usual, six))
}

// sixth is the address of IPv6 of a node in a list.
func sixth(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd00:20::%d", i+1)) }

// withSix is a design with ranges of IPv6 beside the ranges of an addressing.
func withSix(t *testing.T, usual design, addressing network.Addressing) design {
	made := usual
	made.cluster.Addressing = addressing
	made.cluster.Addressing.Pods6, made.cluster.Addressing.Services6 = netip.MustParsePrefix("fd00:10:244::/64"), netip.MustParsePrefix("fd00:10:96::/112")
	made.cluster.NodeNetwork6 = netip.MustParsePrefix("fd00:20::/64")
	var err error
	made.driver, err = made.cluster.driver()
	require.NoError(t, err)
	return made
}

// otherwise are the lines of all files of nodes with addresses of IPv6 that the usual design does not have.
func otherwise(t *testing.T, list []Node, pairs map[string]pki.Pair, usual, made design) string {
	var told strings.Builder
	for i, node := range list {
		before, err := usual.layout(node, pairs, 1450)
		require.NoError(t, err)
		node.Six = sixth(i)
		after, err := made.layout(node, pairs, 1450)
		require.NoError(t, err)
		require.Equal(t, before.hosts, after.hosts)
		require.Len(t, after.files(), len(before.files()))
		for i, file := range after.files() {
			old := strings.Split(string(before.files()[i].Content), "\n")
			for _, line := range strings.Split(string(file.Content), "\n") {
				if !slices.Contains(old, line) {
					fmt.Fprintf(&told, "%s %s: %s\n", node.Role, file.Path, strings.TrimSpace(line))
				}
			}
		}
	}
	return told.String()
}

// Everything else is as on a container.
func TestWhatAMachineHasOtherwiseThanAContainerIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	container, pairs := aDesign(t, nodes, Calico)
	machine := container
	machine.host = kube.Host{Machine: true, MemoryGiB: 4}
	for _, node := range nodes {
		l, err := container.layout(node, pairs, 1450)
		require.NoError(t, err)
		same := map[string]string{}
		for _, file := range l.files() {
			same[file.Path] = file.Digest()
		}
		l, err = machine.layout(node, pairs, 1450)
		require.NoError(t, err)
		reviewed(t, "machine-"+string(node.Role)+".txt", written(slices.DeleteFunc(l.files(), func(file ssh.File) bool { return same[file.Path] == file.Digest() })))
	}
}

// The images of former versions have no metrics-server: their masters stay as they are.
func TestMastersWhoseImageHasMetricsServerRunIt(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	without, pairs := aDesign(t, nodes, Calico)
	former, err := without.layout(nodes[0], pairs, 1450)
	require.NoError(t, err)
	wanted := without
	wanted.cluster.Metrics = true
	for name, order := range wanted.orders(nodes[0]) {
		if _, there := pairs[name]; !there {
			pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
		}
	}
	unable, err := wanted.layout(nodes[0], pairs, 1450)
	require.NoError(t, err)
	require.Equal(t, former.files(), unable.files())
	wanted.metrics = parseFacts("mtu 1450\nmetrics\n").metrics
	able, err := wanted.layout(nodes[0], pairs, 1450)
	require.NoError(t, err)
	reviewed(t, "metrics-master.txt", written(slices.DeleteFunc(able.files(), func(file ssh.File) bool {
		return slices.ContainsFunc(former.files(), func(other ssh.File) bool { return other.Path == file.Path && other.Digest() == file.Digest() })
	})))
}

// Nodes of images without mount.nfs, and clusters without shares, stay as they are.
func TestNodesWhoseImageMountsSharesDoSoWhereThereAreClassesOfManila(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	design, pairs := aDesign(t, nodes, Calico)
	design.storage, design.serves = []kube.Storage{kube.Local, kube.Manila}, true
	require.Equal(t, []kube.Storage{kube.Local}, design.serving(nodes[1]))
	design.mounts = parseFacts("mtu 1450\nstorage\nmanila\n").manila
	require.Equal(t, []kube.Storage{kube.Local, kube.Manila}, design.serving(nodes[1]))
	for i, flag := range []string{"--manila=" + kube.StorageSocket, "--manila"} {
		for name, order := range design.orders(nodes[i]) {
			if _, there := pairs[name]; !there {
				pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
			}
		}
		l, err := design.layout(nodes[i], pairs, 1450)
		require.NoError(t, err)
		require.Contains(t, written(l.files()), flag)
	}
	design.cluster.Nodes[1].Machine = &access.Machine{}
	require.Equal(t, []kube.Storage{kube.Local, kube.Manila}, design.serving(design.cluster.Nodes[1]), "a machine beside the cloud mounts shares, too")
}

// Clusters without storage classes, and nodes of former images, stay as they are.
func TestNodesWhoseImageServesVolumesDoSoWhereThereAreStorageClasses(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	without, pairs := aDesign(t, nodes, Calico)
	wanted := without
	wanted.storage = []kube.Storage{kube.Local}
	for i, node := range nodes {
		former, err := without.layout(node, pairs, 1450)
		require.NoError(t, err)
		for name, order := range wanted.orders(node) {
			if _, there := pairs[name]; !there {
				pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
			}
		}
		wanted.serves = false
		unable, err := wanted.layout(node, pairs, 1450)
		require.NoError(t, err)
		require.Equal(t, former.files(), unable.files())
		wanted.serves = parseFacts("mtu 1450\nstorage\n").storage
		able, err := wanted.layout(node, pairs, 1450)
		require.NoError(t, err)
		own := slices.DeleteFunc(able.files(), func(file ssh.File) bool {
			return slices.ContainsFunc(former.files(), func(other ssh.File) bool { return other.Path == file.Path && other.Digest() == file.Digest() })
		})
		if node.Role == Gateway {
			require.Empty(t, own)
			continue
		}
		reviewed(t, "storage-"+string(node.Role)+".txt", written(own))
		if i == 0 {
			wanted.elect = true
			several, err := wanted.layout(node, pairs, 1450)
			require.NoError(t, err)
			require.Contains(t, several.units[kube.StorageUnit].Command, "--elect="+node.Name)
			wanted.elect = false
		}
	}
}

// Volumes of Cinder are served where the image can, and by no machine that is none of the cloud's.
func TestNodesWhoseImageServesVolumesOfCinderDoSo(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	design, pairs := aDesign(t, nodes, Calico)
	design.storage = []kube.Storage{kube.Cinder, kube.Local}
	design.serves = true
	unit := func(node Node, name string) []string {
		t.Helper()
		for name, order := range design.orders(node) {
			if _, there := pairs[name]; !there {
				pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
			}
		}
		made, err := design.layout(node, pairs, 1450)
		require.NoError(t, err)
		return made.units[name].Command
	}
	design.attaches = parseFacts("mtu 1450\nstorage\n").cinder
	require.NotContains(t, strings.Join(unit(nodes[0], kube.StorageUnit), " "), "cinder", "its program would not start")
	require.NotContains(t, unit(nodes[1], kube.StorageNodeUnit), "--cinder")
	design.attaches = parseFacts("mtu 1450\nstorage\ncinder\n").cinder
	require.Contains(t, unit(nodes[0], kube.StorageUnit), "--cinder=/run/burano-storage/server.sock")
	require.Contains(t, unit(nodes[0], kube.StorageUnit), "--local")
	require.Contains(t, unit(nodes[1], kube.StorageNodeUnit), "--cinder")
	nodes[1].Zone = "az1"
	require.NotContains(t, unit(nodes[1], kube.StorageNodeUnit), "--zone=az1", "its program would not start")
	design.zoned = parseFacts("mtu 1450\nstorage\ncinder\nzoned\n").zoned
	require.Contains(t, unit(nodes[1], kube.StorageNodeUnit), "--zone=az1")
	nodes[1].Zone = "no label"
	machine := nodes[1]
	machine.Machine = &access.Machine{}
	require.NotContains(t, unit(machine, kube.StorageNodeUnit), "--cinder")
	design.storage = []kube.Storage{kube.Cinder}
	require.Empty(t, unit(machine, kube.StorageNodeUnit))
	require.Equal(t, []string{"/opt/burano/bin/storage-node", "--node=" + nodes[1].Name, "--cinder"}, unit(nodes[1], kube.StorageNodeUnit))
}

func TestWhetherANodeIsAMachineIsSeenOnIt(t *testing.T) {
	require.Equal(t, kube.Host{}, parseFacts("mtu 1500\n").host, "a container says nothing of the memory, which is its host's")
	require.Equal(t, kube.Host{Machine: true, MemoryGiB: 2}, parseFacts("memory 2014568\n").host)
	require.Equal(t, parseFacts("memory 2014568\n").host, parseFacts("memory 2009112\n").host, "another kernel changes no setting")
	require.Equal(t, kube.Host{}, parseFacts("memory much\n").host)
}

// written is the golden file's text for files.
func written(files []ssh.File) string {
	var b strings.Builder
	for _, file := range files {
		if file.Link != "" {
			fmt.Fprintf(&b, "\n# %s -> %s\n", file.Path, file.Link)
			continue
		}
		mode := file.Mode
		if mode == 0 {
			mode = 0o644
		}
		fmt.Fprintf(&b, "\n# %s %o\n%s", file.Path, mode, file.Content)
	}
	return b.String()
}

func reviewed(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run the test with -update after a wanted change")
}

// The pod network is the only difference.
func TestEveryFileOfFlannelIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	calico, calicoPairs := aDesign(t, nodes, Calico)
	flannel, flannelPairs := aDesign(t, nodes, Flannel)
	paths := func(l layout, prefixes ...string) []string {
		var all []string
		for _, file := range l.files() {
			if !slices.ContainsFunc(prefixes, func(word string) bool { return strings.Contains(file.Path, word) }) {
				all = append(all, file.Path)
			}
		}
		return all
	}
	for _, node := range nodes {
		l, err := flannel.layout(node, flannelPairs, 1450)
		require.NoError(t, err)
		other, err := calico.layout(node, calicoPairs, 1450)
		require.NoError(t, err)
		require.Equal(t, paths(other, "calico"), paths(l, "flannel"))
		own := slices.DeleteFunc(l.files(), func(file ssh.File) bool { return !strings.Contains(file.Path, "flannel") })
		reviewed(t, "flannel-"+string(node.Role)+".txt", written(own))
	}
	for key, value := range flannel.driver.Settings() {
		require.Equal(t, "/coreos.com/network/config", key)
		require.JSONEq(t, `{"Network": "10.244.0.0/16", "SubnetLen": 24, "Backend": {"Type": "vxlan", "VNI": 1, "Port": 8472}}`, value)
	}
}

func TestPrivateKeysAreReadableByRootOnly(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	for _, node := range nodes {
		l, err := d.layout(node, pairs, 0)
		require.NoError(t, err)
		for _, file := range l.files() {
			if strings.HasSuffix(file.Path, ".key") || strings.HasPrefix(file.Path, "/etc/kubernetes/") && strings.HasSuffix(file.Path, ".conf") || strings.HasSuffix(file.Path, "encryption.yaml") {
				require.EqualValues(t, 0o600, file.Mode, file.Path)
			}
		}
	}
}

// Keys of authorities, of service accounts and of the encryption of secrets are on masters only.
func TestWhatOnlyMastersMayHaveIsOnMastersOnly(t *testing.T) {
	nodes := nodesOf(1, 2, 2)
	d, pairs := aDesign(t, nodes, Calico)
	for _, node := range nodes {
		l, err := d.layout(node, pairs, 0)
		require.NoError(t, err)
		var all bytes.Buffer
		for _, file := range l.files() {
			all.Write(file.Content)
		}
		for _, secret := range []string{"<kubernetes authority's key>", string(d.authorities.ServiceAccount), "BwcHBwcHBwcHBwcH", "<publisher key>"} {
			require.Equal(t, node.Role == Master, strings.Contains(all.String(), secret), "%s has %s", node.Name, secret)
		}
		require.Equal(t, node.Role == Gateway, strings.Contains(all.String(), "<gateway key>"))
	}
}

func TestTheSameDesignGivesTheSameFingerprints(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	for _, node := range nodes {
		first, err := d.layout(node, pairs, 1450)
		require.NoError(t, err)
		second, err := d.layout(node, maps.Clone(pairs), 1450)
		require.NoError(t, err)
		for name, unit := range first.units {
			require.Equal(t, unit.Fingerprint(), second.units[name].Fingerprint(), name)
		}
		require.Empty(t, parseFacts(found(first)).missing(second.files()), "what was installed is recognised")
	}
}

// found is the output of facts.sh on a node with a layout's files.
func found(l layout) string {
	var b strings.Builder
	for _, file := range l.files() {
		if file.Link != "" {
			fmt.Fprintf(&b, "link %s %s\n", file.Path, file.Link)
		} else {
			fmt.Fprintf(&b, "file %s %s\n", file.Digest(), file.Path)
		}
	}
	return b.String()
}

func TestAPlanCanRunForAnyShapeOfCluster(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := nodesOf(rapid.SampledFrom([]int{1, 3, 5}).Draw(rt, "masters"), rapid.IntRange(0, 6).Draw(rt, "minions"), rapid.IntRange(0, 3).Draw(rt, "gateways"))
		nodes = rapid.Permutation(nodes).Draw(rt, "order")
		vault := newVault()
		var further []netip.Prefix
		if rapid.Bool().Draw(rt, "further") {
			further = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}
		}
		c, err := NewCluster(Config{Name: "c", Nodes: nodes, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: vault, DNS: rapid.Bool().Draw(rt, "dns"), Metrics: rapid.Bool().Draw(rt, "metrics"),
			Network: rapid.SampledFrom([]Network{"", Calico, Flannel}).Draw(rt, "network"), Further: further, EtcdOnMasters: rapid.Bool().Draw(rt, "etcd on masters"),
			StorageClasses: rapid.SampledFrom([][]kube.StorageClass{nil, {{Name: "local", Backend: kube.Local, Reclaim: "Delete"}}, {{Name: "cinder", Backend: kube.Cinder, Reclaim: "Delete"}}}).Draw(rt, "classes")})
		require.NoError(rt, err)
		d, err := c.newDeployment(context.Background())
		require.NoError(rt, err)
		d.record.Bootstrapped = rapid.Bool().Draw(rt, "bootstrapped")
		d.again = d.record.Bootstrapped
		if d.again {
			d.record.Members = d.design.voters
		}
		if rapid.Bool().Draw(rt, "binary") {
			d.design.binary = "digest"
		}
		steps, err := d.plan().Steps()
		require.NoError(rt, err)
		place := map[string]int{}
		for i, step := range steps {
			place[step.ID()] = i
		}
		// No client of etcd on a node may meet a learner: the forwarders come after the last join.
		for _, node := range nodes {
			for _, voter := range d.design.voters {
				if join, there := place[plan.ID(voter, stepEtcdJoin)]; there {
					require.Less(rt, join, place[plan.ID(node.Name, stepForwarder)])
				}
			}
			require.Less(rt, place[plan.ID(node.Name, stepForwarder)], place[plan.ID(node.Name, stepNetwork)])
		}
		// An API server asks its own member, which must vote by then; a kubelet finds it by the forwarder.
		for _, node := range nodes {
			switch {
			case node.Role == Master && node.Name != d.lead.Name:
				require.Less(rt, place[plan.ID(node.Name, stepEtcdJoin)], place[plan.ID(node.Name, stepAPIServer)])
				require.Less(rt, place[plan.ID(d.lead.Name, stepControllers)], place[plan.ID(node.Name, stepControllers)], "the lead's first has others elect")
			case node.Role == Minion:
				require.Less(rt, place[plan.ID(node.Name, stepAPIForwarder)], place[plan.ID(node.Name, stepKubelet)])
			}
		}
		// A pod's first answer from another network must not be dropped by a gateway that does not know the network yet.
		for _, gateway := range nodes {
			for _, minion := range nodes {
				if gateway.Role == Gateway && minion.Role == Minion && len(further) > 0 && d.design.binary != "" {
					require.Contains(rt, place, plan.ID(gateway.Name, stepAdmit))
					require.Less(rt, place[plan.ID(gateway.Name, stepAdmit)], place[plan.ID(minion.Name, stepKubelet)])
				}
			}
		}
	})
}

func TestUserDataIsTheSameEachTimeAndHoldsTheKeysOfItsNode(t *testing.T) {
	vault := newVault()
	make := func() *Cluster {
		c, err := NewCluster(Config{Name: "c", Nodes: []Node{{Name: "murano-kube-1", Role: Master}, {Name: "murano-kube-2", Role: Minion}}, Vault: vault})
		require.NoError(t, err)
		return c
	}
	first, err := make().UserData(t.Context(), "murano-kube-1")
	require.NoError(t, err)
	stores := vault.Stores()
	again, err := make().UserData(t.Context(), "murano-kube-1")
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
	require.Equal(t, stores, vault.Stores())
	other, err := make().UserData(t.Context(), "murano-kube-2")
	require.NoError(t, err)
	require.NotEqual(t, string(first), string(other))

	require.True(t, strings.HasPrefix(string(first), "#cloud-config\n"))
	var document struct {
		Hostname string `yaml:"hostname"`
		Users    []struct {
			Name string   `yaml:"name"`
			Keys []string `yaml:"ssh_authorized_keys"`
		} `yaml:"users"`
		HostKeys map[string]string `yaml:"ssh_keys"`
	}
	require.NoError(t, yaml.Unmarshal(first, &document))
	require.Equal(t, "murano-kube-1", document.Hostname)
	host, err := xssh.ParsePrivateKey([]byte(document.HostKeys["ed25519_private"]))
	require.NoError(t, err)
	public, _, _, _, err := xssh.ParseAuthorizedKey([]byte(document.HostKeys["ed25519_public"]))
	require.NoError(t, err)
	require.Equal(t, host.PublicKey().Marshal(), public.Marshal())
	own, err := xssh.ParsePrivateKey(vault.Values()["ssh/key"])
	require.NoError(t, err)
	allowed, _, _, _, err := xssh.ParseAuthorizedKey([]byte(document.Users[0].Keys[0]))
	require.NoError(t, err)
	require.Equal(t, own.PublicKey().Marshal(), allowed.Marshal())
	require.NotContains(t, string(first), string(vault.Values()["ssh/key"]))

	_, err = make().UserData(t.Context(), "nobody")
	require.EqualError(t, err, "cluster c has no node nobody")
}

func TestClustersThatCannotBeAreRefused(t *testing.T) {
	for want, nodes := range map[string][]Node{
		"two, three or five masters, this one has 0": {{Name: "a", Role: Minion}},
		"two, three or five masters, this one has 4": {{Name: "a", Role: Master}, {Name: "b", Role: Master}, {Name: "c", Role: Master}, {Name: "d", Role: Master}},
		"two nodes are called a":                     {{Name: "a", Role: Master}, {Name: "a", Role: Minion}},
		`node name "A b"`:                            {{Name: "A b", Role: Master}},
		`node a has the role "king"; roles are`:      {{Name: "a", Role: "king"}},
	} {
		_, err := NewCluster(Config{Nodes: nodes, Vault: newVault()})
		require.ErrorContains(t, err, want)
	}
	_, err := NewCluster(Config{Nodes: []Node{{Name: "a", Role: Master}}, Network: "weave", Vault: newVault()})
	require.EqualError(t, err, `there is no network "weave" for pods; networks are calico and flannel`)
	c, err := NewCluster(Config{Name: "c", Nodes: []Node{{Name: "a", Role: Master}}, Vault: newVault()})
	require.NoError(t, err)
	require.ErrorContains(t, c.Deploy(t.Context()), "node a has no address yet")
}

func TestAKubeconfigLastsADayAndIsNoBuiltInMaster(t *testing.T) {
	c, err := NewCluster(Config{Name: "My Cluster", Nodes: nodesOf(1, 0, 0), Vault: newVault()})
	require.NoError(t, err)
	text, err := c.Kubeconfig(t.Context(), "", Admin(1000*time.Hour))
	require.NoError(t, err)
	require.Contains(t, string(text), "https://192.0.2.10:6443")
	require.Contains(t, string(text), kube.APIServerName("My Cluster"))
	var document struct {
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	certificate := certificateOf(t, document.Users[0].User.Certificate)
	require.Equal(t, []string{kube.AdminsGroup}, certificate.Subject.Organization)
	require.LessOrEqual(t, time.Until(certificate.NotAfter), 24*time.Hour)
	require.NotContains(t, certificate.Subject.Organization, "system:masters")
}

func TestOrdersNameEveryAddressTheAPIServerIsDialledAt(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	d, _ := aDesign(t, nodes, Calico)
	request := d.orders(nodes[0])["apiserver"].Request
	require.Contains(t, request.DNS, "api.my-cluster.internal")
	for _, address := range []string{"10.0.0.10", "192.0.2.10", "127.0.0.1", "10.96.0.1"} {
		require.True(t, slices.Contains(request.IP, netip.MustParseAddr(address)), address)
	}
}

func TestAGatewayLetsEveryNetworkOfNodesIn(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	before := d.gateway(nodes[2], pairs).Command
	d.cluster.Further = []netip.Prefix{netip.MustParsePrefix("10.9.0.7/26")}
	require.Contains(t, d.gateway(nodes[2], pairs).Command, before[slices.Index(before, "--internal")+1]+",10.9.0.0/26")
	inside, beside := nodes[1], nodes[1]
	inside.Address, beside.Address = netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.9.0.9")
	require.Equal(t, 24, d.networkNode(inside, 0).Bits)
	require.Equal(t, 26, d.networkNode(beside, 0).Bits)
}

func TestThreeMastersAreAskedByAllOtherNodesAndByUsersThroughGateways(t *testing.T) {
	one, pairsOfOne := aDesign(t, nodesOf(1, 1, 1), Calico)
	nodes := nodesOf(3, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	d.elect = true
	for _, node := range nodes {
		l, err := d.layout(node, pairs, 1450)
		require.NoError(t, err)
		forwarder, there := l.units[kube.ForwarderUnit]
		if node.Role == Master {
			require.False(t, there, "it asks its own")
			require.Contains(t, l.units["kube-apiserver"].Text(), "--etcd-servers=https://"+node.Address.String()+":2379")
			for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
				require.Contains(t, l.units[name].Text(), "--leader-elect=true")
			}
			require.Contains(t, l.units["burano-publish"].Text(), node.Name)
			continue
		}
		reviewed(t, "several-"+string(node.Role)+".txt", string(forwarder.Files[0].Content))
	}
	gateway, err := d.layout(nodes[4], pairs, 1450)
	require.NoError(t, err)
	require.Contains(t, gateway.units["burano-gateway"].Command, "--open")
	gateway, err = one.layout(nodesOf(1, 1, 1)[2], pairsOfOne, 1450)
	require.NoError(t, err)
	require.NotContains(t, gateway.units["burano-gateway"].Command, "--open", "the API of a cluster with one master is reached where it always was")
	forwarder := gateway.units[kube.ForwarderUnit]
	require.NotContains(t, string(forwarder.Files[0].Content), "httpchk")
	changed := kube.Forwarder(d.apis(), []kube.Listen{{Address: nodes[4].Address}})
	before, after := strings.Split(forwarder.Fingerprint(), "-"), strings.Split(changed.Fingerprint(), "-")
	require.Equal(t, before[0], after[0], "another list of masters restarts nothing")
	require.NotEqual(t, before[1], after[1])
}

func TestGatewaysThatShareAnAddressAreAsReviewed(t *testing.T) {
	nodes := nodesOf(3, 1, 2)
	d, pairs := aDesign(t, nodes, Calico)
	d.cluster.Virtual = VirtualAddress{Address: netip.MustParseAddr("10.0.0.200"), Access: netip.MustParseAddr("192.0.2.200")}
	l, err := d.layout(nodes[4], pairs, 1450)
	require.NoError(t, err)
	require.NotContains(t, l.units, virtualUnit, "its image cannot")
	d.shares, d.device = true, "eth0"
	l, err = d.layout(nodes[4], pairs, 1450)
	require.NoError(t, err)
	reviewed(t, "virtual-gateway.txt", written(slices.DeleteFunc(l.files(), func(file ssh.File) bool {
		return !strings.Contains(file.Path, "virtual") && file.Path != virtualCheck && !strings.Contains(file.Path, "api-forwarder.cfg")
	})))
	require.Equal(t, "192.0.2.200", d.cluster.serving(nodes[4]).Address.String())

	before := l.units[virtualUnit]
	d.cluster.Nodes = nodes[:5]
	l, err = d.layout(nodes[4], pairs, 1450)
	require.NoError(t, err)
	alone := l.units[virtualUnit]
	require.Contains(t, string(alone.Files[0].Content), "unicast_peer {\n    10.0.0.200\n", "without a peer it would speak to everybody")
	require.Equal(t, strings.Split(before.Fingerprint(), "-")[0], strings.Split(alone.Fingerprint(), "-")[0], "another list of gateways is a reload")
	require.NotEqual(t, before.Fingerprint(), alone.Fingerprint())
}

func TestMastersThatShareAnAddressAreAsReviewed(t *testing.T) {
	nodes := nodesOf(2, 1, 1)
	d, pairs := aDesign(t, nodes, Calico)
	before := d.orders(nodes[0])["apiserver"].Request.IP
	d.cluster.APIAddress = VirtualAddress{Address: netip.MustParseAddr("10.0.0.201"), Access: netip.MustParseAddr("192.0.2.201")}
	require.ElementsMatch(t, append(slices.Clone(before), d.cluster.APIAddress.Address, d.cluster.APIAddress.Access), d.orders(nodes[0])["apiserver"].Request.IP, "the certificate names it")
	l, err := d.layout(nodes[0], pairs, 1450)
	require.NoError(t, err)
	require.NotContains(t, l.units, virtualUnit, "its image cannot")
	d.shares, d.device = true, "eth0"
	l, err = d.layout(nodes[0], pairs, 1450)
	require.NoError(t, err)
	reviewed(t, "virtual-master.txt", written(slices.DeleteFunc(l.files(), func(file ssh.File) bool {
		return !strings.Contains(file.Path, "virtual") && file.Path != masterCheck && file.Path != masterLeaves
	})))
	require.Contains(t, d.servingUnits(nodes[0], l), virtualUnit, "a locked master leaves it")
	l, err = d.layout(nodes[3], pairs, 1450)
	require.NoError(t, err)
	require.NotContains(t, l.units, virtualUnit, "gateways have none of theirs")
}

// A gateway that began to share the address before the others know of it would take itself for the only one.
func TestGatewaysKnowOfEachOtherBeforeAnotherOneBegins(t *testing.T) {
	nodes := nodesOf(1, 1, 3)
	c, err := NewCluster(Config{Name: "c", Nodes: nodes, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(),
		Virtual: VirtualAddress{Address: netip.MustParseAddr("10.0.0.200")}})
	require.NoError(t, err)
	d, err := c.newDeployment(t.Context())
	require.NoError(t, err)
	d.again, d.design.binary, nodes[4].Leaving = true, "digest", true
	steps, err := d.plan().Steps()
	require.NoError(t, err)
	waits := map[string][]string{}
	for _, step := range steps {
		for _, soft := range step.Soft {
			waits[step.ID()] = append(waits[step.ID()], soft.ID)
		}
	}
	first, second := plan.ID("murano-gateway-1", stepVirtualAddress), plan.ID("murano-gateway-2", stepVirtualAddress)
	require.Equal(t, []string{plan.ID("murano-gateway-1", stepVirtualPeers), plan.ID("murano-gateway-2", stepVirtualPeers)}, waits[first])
	require.Equal(t, waits[first], waits[second])
	require.Equal(t, []string{first, second}, waits[plan.ID("murano-gateway-3", stepVirtualLeave)], "one that leaves leaves it to those that stay")
}

func TestEtcdMayBeForMastersAlone(t *testing.T) {
	for masters, want := range map[int]int{1: 5, 2: 3, 3: 3, 5: 5} {
		c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(masters, 4, 2), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(), EtcdOnMasters: true})
		require.NoError(t, err)
		d, err := c.newDeployment(t.Context())
		require.NoError(t, err)
		require.Len(t, d.design.voters, want)
		for _, voter := range d.design.voters[:masters] {
			require.Contains(t, voter, "murano-master-")
		}
		require.Equal(t, masters > 1, d.record.Elects)
	}
}

// Which third node votes beside two masters does not follow from its place in a list, and stays.
func TestTwoMastersNeedAThirdNodeThatVotes(t *testing.T) {
	vault := newVault()
	voters := func(change func(*Config)) ([]string, error) {
		config := Config{Name: "c", Nodes: nodesOf(2, 2, 1), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: vault, EtcdOnMasters: true}
		change(&config)
		foreseen, _, err := Voters(t.Context(), config)
		require.NoError(t, err)
		c, err := NewCluster(config)
		require.NoError(t, err)
		d, err := c.newDeployment(t.Context())
		if err != nil {
			return nil, err
		}
		require.Equal(t, foreseen, d.design.voters, "the preview is the plan")
		return d.design.voters[2:], nil
	}
	third := func(change func(*Config)) string {
		t.Helper()
		list, err := voters(change)
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	usual, without := func(*Config) {}, func(at ...int) func(*Config) {
		return func(config *Config) {
			for _, i := range at {
				config.Nodes = append(config.Nodes[:i:i], config.Nodes[i+1:]...)
			}
		}
	}
	require.Equal(t, "murano-kube-1", third(func(config *Config) { slices.Reverse(config.Nodes[2:4]) }))
	require.Equal(t, "murano-kube-2", third(without(2)), "another one votes in place of a node that goes")
	require.Equal(t, "murano-kube-2", third(usual), "and stays when the former one is back")
	require.Equal(t, "murano-gateway-1", third(func(config *Config) { config.Nodes[2].Elastic, config.Nodes[3].Machine = true, &access.Machine{} }))
	list, err := voters(func(config *Config) { config.EtcdOnMasters = false })
	require.NoError(t, err)
	require.Equal(t, []string{"murano-gateway-1", "murano-kube-1", "murano-kube-2"}, slices.Sorted(slices.Values(list)))
	_, err = voters(without(4, 3, 2))
	require.ErrorContains(t, err, "murano-master-1 and murano-master-2 are the masters of cluster c, and no third node can vote in etcd with them")
}

// A cluster whose members move to masters alone removes the other members when no forwarder uses them any more.
func TestMembersThatAreNotToBeAnyMoreLeaveLast(t *testing.T) {
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(3, 2, 1), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(), EtcdOnMasters: true})
	require.NoError(t, err)
	d, err := c.newDeployment(t.Context())
	require.NoError(t, err)
	d.again, d.record.Bootstrapped, d.record.Members = true, true, []string{"murano-master-1", "murano-kube-1", "murano-gateway-1"}
	steps, err := d.plan().Steps()
	require.NoError(t, err)
	i := slices.IndexFunc(steps, func(step plan.Step) bool { return step.Name == stepEtcdRetire })
	require.GreaterOrEqual(t, i, 0)
	for _, node := range c.config.Nodes {
		require.Contains(t, steps[i].After, plan.ID(node.Name, stepForwarder))
	}
}

func TestAKubeconfigOfAClusterWithSeveralMastersHasAContextForEachGateway(t *testing.T) {
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(3, 1, 2), Vault: newVault()})
	require.NoError(t, err)
	text, err := c.Kubeconfig(t.Context(), "https://192.0.2.14:6443", Admin(time.Hour))
	require.NoError(t, err)
	var document struct {
		Current  string `yaml:"current-context"`
		Clusters []struct {
			Name    string
			Cluster struct{ Server string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	servers := map[string]string{}
	for _, one := range document.Clusters {
		servers[one.Name] = one.Cluster.Server
	}
	require.Equal(t, map[string]string{"c": "https://192.0.2.14:6443", "c-murano-gateway-1": "https://192.0.2.14:6443", "c-murano-gateway-2": "https://192.0.2.15:6443"}, servers)
	require.Equal(t, "burano:admin@c", document.Current)
}

// elsewhere is a design that has nothing of its network where others have it.
func elsewhere(t *testing.T, d design) design {
	t.Helper()
	d.cluster.Addressing = network.Addressing{Pods: netip.MustParsePrefix("172.20.0.0/18"), Services: netip.MustParsePrefix("172.21.4.0/22"), Domain: "k8s.example.org"}
	d.cluster.PodMTU = 1300
	if d.cluster.Network == Calico {
		d.cluster.Encapsulation = network.CrossSubnet
	}
	var err error
	d.driver, err = d.cluster.driver()
	require.NoError(t, err)
	return d
}

func TestWhatOtherRangesDomainAndMTUChangeIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	for _, pods := range []Network{Calico, Flannel} {
		usual, pairs := aDesign(t, nodes, pods)
		other := elsewhere(t, usual)
		text := ""
		for _, node := range nodes {
			before, err := usual.layout(node, pairs, 1450)
			require.NoError(t, err)
			after, err := other.layout(node, pairs, 1450)
			require.NoError(t, err)
			require.Len(t, after.files(), len(before.files()))
			for i, file := range after.files() {
				old := strings.Split(string(before.files()[i].Content), "\n")
				for _, line := range strings.Split(string(file.Content), "\n") {
					require.NotRegexp(t, `10\.244\.|10\.96\.|cluster\.local`, line, file.Path)
					if !slices.Contains(old, line) {
						text += fmt.Sprintf("%s %s: %s\n", node.Role, file.Path, strings.TrimSpace(line))
					}
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(other.driver.Settings())) {
			text += fmt.Sprintf("%s: %s\n", key, other.driver.Settings()[key])
		}
		reviewed(t, "elsewhere-"+string(pods)+".txt", text)
		request := other.orders(nodes[0])["apiserver"].Request
		require.Contains(t, request.DNS, "kubernetes.default.svc.k8s.example.org")
		require.Contains(t, request.IP, netip.MustParseAddr("172.21.4.1"))
		require.NotContains(t, fmt.Sprint(request), "cluster.local")
		require.NotContains(t, fmt.Sprint(request), "10.96.0.1")
	}
	dns := string(kube.CoreDNS(elsewhere(t, design{cluster: Config{Network: Calico}}).cluster.Addressing, nil, 1, false))
	require.Contains(t, dns, "kubernetes k8s.example.org in-addr.arpa")
	require.Contains(t, dns, "clusterIP: 172.21.4.10\n")
	require.NotRegexp(t, "DOMAIN|ADDRESS|10.96|cluster.local", dns)
}

// A minion that had a proxy gets files without one; a minion that never had one gets none.
func TestMinionsHaveTheProxyOfTheirCluster(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	without, pairs := aDesign(t, nodes, Calico)
	with := without
	var err error
	with.cluster.Proxy, err = kube.ParseProxy(kube.ProxySettings{HTTP: "http://user:p%40ss@proxy.example.org:3128", HTTPS: "http://proxy.example.org:3128", No: "registry.example.org"})
	require.NoError(t, err)
	after := without
	after.proxied = true
	for _, node := range nodes {
		before, err := without.layout(node, pairs, 1450)
		require.NoError(t, err)
		l, err := with.layout(node, pairs, 1450)
		require.NoError(t, err)
		ended, err := after.layout(node, pairs, 1450)
		require.NoError(t, err)
		if node.Role != Minion {
			require.Equal(t, before.files(), l.files())
			require.Equal(t, before.files(), ended.files())
			continue
		}
		same := map[string]string{}
		for _, file := range before.files() {
			same[file.Path] = file.Digest()
		}
		other := func(l layout) string {
			return written(slices.DeleteFunc(l.files(), func(file ssh.File) bool { return same[file.Path] == file.Digest() }))
		}
		reviewed(t, "proxy-minion.txt", other(l)+"\n## once there is none any more\n"+other(ended))
		for _, file := range l.files() {
			require.Equal(t, file.Path == "/etc/burano/proxy.env", strings.Contains(string(file.Content), "p%40ss"), file.Path)
			if file.Path == "/etc/burano/proxy.env" {
				require.EqualValues(t, 0o600, file.Mode)
			}
		}
		for name, unit := range l.units {
			require.Equal(t, name != "containerd" && name != "kubelet", unit.Fingerprint() == before.units[name].Fingerprint(), name)
			require.Equal(t, name != "containerd", before.units[name].Fingerprint() == ended.units[name].Fingerprint(), name)
		}
	}
}

// The differences of a minion whose runtime is Docker, in a cluster with registries, a mirror, a registry of its own and a proxy.
func TestWhatAMinionOfDockerHasOtherwiseIsAsReviewed(t *testing.T) {
	list := nodesOf(1, 1, 1)
	usual, pairs := aDesign(t, list, Calico)
	registries, err := kube.ParseRegistries(kube.RegistrySettings{Registry: "registry.example.org:5000", Mirrors: "https://mirror.example.org"})
	require.NoError(t, err)
	usual.cluster.Registries = registries.With(usual.cluster.Name, usual.cluster.Addressing.Registry(), "burano", "secret")
	usual.cluster.Proxy, err = kube.ParseProxy(kube.ProxySettings{HTTPS: "http://proxy.example.org:3128"})
	require.NoError(t, err)
	docker := usual
	docker.runtime, docker.websockets = kube.Docker, true
	for i, node := range list {
		before, err := usual.layout(node, pairs, 1450)
		require.NoError(t, err)
		after, err := docker.layout(node, pairs, 1450)
		require.NoError(t, err)
		if node.Role != Minion {
			require.Equal(t, before, after, "the other nodes run no containers")
			continue
		}
		require.Equal(t, []string{"containerd"}, before.runtime)
		require.Equal(t, []string{"containerd", "docker", "cri-dockerd"}, after.runtime)
		reviewed(t, "docker-minion.txt", fmt.Sprintf("# hosts\n%s\n%s", after.hosts, more(t, list[i:i+1], pairs, usual, docker)))
	}
	require.Contains(t, docker.hosts(list[1]), "10.96.0.11 registry.my-cluster.internal")
	require.NotContains(t, usual.hosts(list[1]), "registry.")
}

// more are files, and lines of files, that nodes have in one design and not in another.
func more(t *testing.T, nodes []Node, pairs map[string]pki.Pair, than, design design) (text string) {
	t.Helper()
	for _, node := range nodes {
		before, err := than.layout(node, pairs, 1450)
		require.NoError(t, err)
		after, err := design.layout(node, pairs, 1450)
		require.NoError(t, err)
		had := map[string][]string{}
		for _, file := range before.files() {
			had[file.Path] = strings.Split(string(file.Content), "\n")
		}
		for _, file := range after.files() {
			old, there := had[file.Path]
			if !there {
				text += written([]ssh.File{file})
				continue
			}
			for _, line := range strings.Split(string(file.Content), "\n") {
				if !slices.Contains(old, line) {
					text += fmt.Sprintf("%s %s: %s\n", node.Role, file.Path, strings.TrimSpace(line))
				}
			}
		}
	}
	return text
}

func TestWhatNodesHaveMoreWherePacketsAreNotWrappedIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	usual, pairs := aDesign(t, nodes, Calico)
	routed := usual
	routed.cluster.Encapsulation = network.Unwrapped
	var err error
	routed.driver, err = routed.cluster.driver()
	require.NoError(t, err)
	reviewed(t, "unwrapped.txt", more(t, nodes, pairs, usual, routed))
}

func TestWhatNodesHaveOtherwiseWhereCalicoHasItsStoreInKubernetesIsAsReviewed(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	usual, pairs := aDesign(t, nodes, Calico)
	registered := usual
	registered.cluster.Datastore = network.InKubernetes
	registered.cluster.Metrics, registered.metrics, usual.cluster.Metrics, usual.metrics = true, true, true, true
	var err error
	registered.driver, err = registered.cluster.driver()
	require.NoError(t, err)
	groups := map[Role][]string{Master: {"system:nodes", "burano:calico-nodes", "burano:calico-masters"}, Minion: {"system:nodes", "burano:calico-nodes"}, Gateway: {"system:nodes", "burano:calico-nodes"}}
	for _, node := range nodes {
		orders := registered.orders(node)
		for name, order := range orders {
			pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
		}
		require.Equal(t, groups[node.Role], orders["calico-node"].Request.Organization)
		require.NotContains(t, orders, "calico", "no certificate of etcd")
		l, err := registered.layout(node, pairs, 1450)
		require.NoError(t, err)
		_, leased := l.units[kube.LeaseUnit]
		require.Equal(t, node.Role != Minion, leased)
	}
	reviewed(t, "in-kubernetes.txt", more(t, nodes, pairs, usual, registered))
	registered.cluster.Network = Flannel
	_, err = registered.cluster.driver()
	require.ErrorContains(t, err, "Flannel has it in etcd")
}

// Calico's programs end where their node has no object, or its kinds are not known.
func TestCalicoStartsOnNodesThatKubernetesKnows(t *testing.T) {
	for _, again := range []bool{false, true} {
		c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(3, 2, 1), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(), Datastore: network.InKubernetes})
		require.NoError(t, err)
		d, err := c.newDeployment(t.Context())
		require.NoError(t, err)
		d.again, d.design.elect = again, true
		steps, err := d.plan().Steps()
		require.NoError(t, err)
		after := map[string][]string{}
		for _, step := range steps {
			after[step.ID()] = step.After
		}
		for _, node := range c.config.Nodes {
			own, way := stepRegister, stepAPIForwarder
			switch node.Role {
			case Master:
				way = stepAPIServes
				require.Contains(t, after[plan.ID(node.Name, stepNetworkControllers)], plan.ID("murano-master-1", stepNetworkDefinitions))
			case Minion:
				own = stepSettings
				require.Contains(t, after[plan.ID(node.Name, stepKubelet)], plan.ID(node.Name, own))
				require.NotContains(t, after, plan.ID(node.Name, stepLease))
			}
			require.Subset(t, after[plan.ID(node.Name, stepNetwork)],
				[]string{plan.ID("murano-master-1", stepAccess), plan.ID("murano-master-1", stepNetworkDefinitions), plan.ID(node.Name, own), plan.ID(node.Name, way)})
		}
	}
}

func TestWhatNodesHaveMoreWhereMastersAreTheWayToRegistriesIsAsReviewed(t *testing.T) {
	nodes := nodesOf(3, 1, 1)
	usual, pairs := aDesign(t, nodes, Calico)
	led := usual
	var err error
	led.cluster.Registries, err = kube.ParseRegistries(kube.RegistrySettings{Registry: "http://own.example.org:5000", Mirrors: "https://mirror.example.org/v2/hub"})
	require.NoError(t, err)
	usual.cluster.Registries = led.cluster.Registries
	led.cluster.Proxy, err = kube.ParseProxy(kube.ProxySettings{Masters: "registry.example.org, .example.net:443", No: "192.0.2.0/24"})
	require.NoError(t, err)
	for role, some := range map[Role][]Node{Master: nodes[:1], Minion: nodes[3:4], Gateway: nodes[4:]} {
		want := ""
		for name, order := range led.orders(some[0]) {
			if _, there := usual.orders(some[0])[name]; !there {
				want += name
				pairs[name] = pki.Pair{Certificate: []byte("<" + name + " certificate>\n"), Key: []byte("<" + name + " key>\n")}
				require.Equal(t, led.authorities.Kubernetes, order.Authority)
			}
		}
		require.Equal(t, map[Role]string{Master: "registries-way", Minion: "registries-way-client", Gateway: ""}[role], want)
	}
	reviewed(t, "registries-way.txt", more(t, append(nodes[:1:1], nodes[3:]...), pairs, usual, led))
}
