package stack

import (
	"context"
	"maps"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/store"
)

// saying is the demonstration with more properties of its cluster.
func saying(t *testing.T, properties map[string]any) map[string]any {
	model := environment(t, demo)
	maps.Copy(clusterOf(model), properties)
	return model
}

// refusals are the reasons for which a rehearsal refuses the model.
func (w *world) refusals(t *testing.T, model map[string]any) (texts []string) {
	t.Helper()
	natives, rehearse := native.Rehearsal(w, w.config)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), natives)
	root, start, problems := interpreter.Prepare(t.Context(), model)
	require.Empty(t, problems)
	require.NoError(t, start(t.Context()))
	foreseen, err := rehearse(t.Context(), interpreter, root)
	require.NoError(t, err)
	for _, one := range foreseen.Refused {
		require.Equal(t, clusterOf(model)["?"].(map[string]any)["id"], one.ObjectID)
		texts = append(texts, one.Text)
	}
	return texts
}

func TestPortsAndGroupsAreForTheRangeOfPodsThatANewClusterNames(t *testing.T) {
	usual := newWorld(t).push(t, environment(t, demo))["resources"].(map[string]any)
	template := newWorld(t).push(t, saying(t, map[string]any{"podRange": "172.20.0.0/18", "serviceRange": "172.21.4.0/22", "clusterDomain": "k8s.example.org", "podMtu": 1300}))
	pairs, groups := 0, 0
	for name, one := range template["resources"].(map[string]any) {
		properties, _ := one.(map[string]any)["properties"].(map[string]any)
		switch one.(map[string]any)["type"] {
		case "OS::Neutron::Port":
			require.Equal(t, []any{map[string]any{"ip_address": "172.20.0.0/18"}}, properties["allowed_address_pairs"])
			pairs++
		case "OS::Neutron::SecurityGroup":
			require.Contains(t, properties["rules"], map[string]any{"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": "172.20.0.0/18"})
			require.NotContains(t, properties["rules"], map[string]any{"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": "10.244.0.0/16"})
			groups++
		case "OS::Nova::Server": // with keys of its own
		default:
			require.Equal(t, usual[name], one, name)
		}
	}
	require.Equal(t, []int{3, 3}, []int{pairs, groups})
}

func TestRangesThatCannotBeAreRefused(t *testing.T) {
	network := func(model map[string]any, subnet string) map[string]any {
		own := model["defaultNetworks"].(map[string]any)["environment"].(map[string]any)
		own["?"].(map[string]any)["type"], own["subnetCidr"], own["mtu"] = "io.murano.resources.CustomNeutronNetwork", subnet, 1400
		return model
	}
	for _, one := range []struct {
		says map[string]any
		told string
	}{
		{map[string]any{"podRange": "everything"}, `podRange of cluster demo-cluster is "everything", which is no range of addresses: write it like 10.244.0.0/16`},
		{map[string]any{"podRange": "10.1.2.3/16"}, "podRange of cluster demo-cluster is 10.1.2.3/16, which is an address in 10.1.0.0/16: give the range"},
		{map[string]any{"serviceRange": "fd00::/108"}, "pods and Services have the same versions of IP"},
		{map[string]any{"podRange": "10.0.0.0/12"}, "the pods of cluster demo-cluster are to have addresses of 10.0.0.0/12 (podRange), which overlaps the network of its nodes (10.9.0.0/24)"},
		{map[string]any{"podRange": "10.96.128.0/17"}, "podRange (10.96.128.0/17) and serviceRange (10.96.0.0/16) of cluster demo-cluster overlap"},
		{map[string]any{"serviceRange": "169.254.0.0/17"}, "link-local addresses (169.254.0.0/16), among them that of the cloud's metadata"},
		{map[string]any{"serviceRange": "172.0.0.0/11"}, "serviceRange of cluster demo-cluster is 172.0.0.0/11"},
		{map[string]any{"serviceRange": "172.16.0.0/28"}, "serviceRange of cluster demo-cluster is 172.16.0.0/28: give one of a size from /12 to /24"},
		{map[string]any{"podRange": "172.16.0.0/24"}, "has addresses for the pods of 4 nodes, and the cluster may get 6 (lists of nodes, groups, surge)"},
		{map[string]any{"podRange": "172.16.0.0/21", "useFlannel": true, "surge": 0, "masterCount": 5}, "has addresses for the pods of 7 nodes, and the cluster may get 9"},
		{map[string]any{"clusterDomain": "Cluster.local"}, `clusterDomain of cluster demo-cluster is "Cluster.local", which is no domain`},
		{map[string]any{"podMtu": 1351}, "podMtu of cluster demo-cluster is 1351, and the environment's network carries 1400 bytes, of which VXLAN takes 50: ask for 1350 at most"},
		{map[string]any{"useFlannel": true, "podEncapsulation": "crossSubnet"}, "podEncapsulation of cluster demo-cluster is crossSubnet, which Flannel does not have"},
		{map[string]any{"useFlannel": true, "podEncapsulation": "none"}, "podEncapsulation of cluster demo-cluster is none, which Flannel does not have"},
		{map[string]any{"bgpPeers": []any{map[string]any{"address": "192.0.2.1", "as": 64601}}}, "bgpPeers of cluster demo-cluster are routers that learn where its pods are, and packets between its nodes are wrapped (podEncapsulation: always)"},
		{map[string]any{"podEncapsulation": "none", "bgpPeers": []any{map[string]any{"address": "router", "as": 64601}}}, `bgpPeers of cluster demo-cluster has the address "router": give the one of a router`},
		{map[string]any{"podEncapsulation": "none", "bgpPeers": []any{map[string]any{"address": "10.244.0.1", "as": 64601}}}, "has the address 10.244.0.1, which is among those of its pods and Services"},
		{map[string]any{"podEncapsulation": "none", "bgpPeers": []any{map[string]any{"address": "192.0.2.1", "as": 1}, map[string]any{"address": "192.0.2.1", "as": 2}}}, "has the address 192.0.2.1 twice"},
		{map[string]any{"podMtu": 1401, "podEncapsulation": "none"}, "podMtu of cluster demo-cluster is 1401, and the environment's network carries 1400 bytes: ask for 1400 at most"},
	} {
		w := newWorld(t)
		w.imageSays = `, "burano_calico": "v3.28.5"`
		require.ErrorContains(t, w.fail(t, network(saying(t, one.says), "10.9.0.0/24")), one.told)
	}
	require.NotEmpty(t, newWorld(t).push(t, network(saying(t, map[string]any{"podRange": "172.16.0.0/22", "podMtu": 1350}), "10.9.0.0/24")))
	grown := func(count any) map[string]any {
		model := withGroup(t, map[string]any{"count": count})
		clusterOf(model)["podRange"] = "172.16.0.0/22"
		return model
	}
	require.NotEmpty(t, newWorld(t).push(t, grown(nil)), "that a group may grow further than the range does asks for nothing")
	require.ErrorContains(t, newWorld(t).fail(t, grown(20)), "has addresses for the pods of 16 nodes, and the cluster may get 26")
	require.ErrorContains(t, newWorld(t).fail(t, saying(t, map[string]any{"podRange": "10.20.0.0/16"})), "overlaps the network of its nodes (10.20.", "the network that the environment gets")
	require.ErrorContains(t, newWorld(t).fail(t, network(environment(t, demo), "10.244.8.0/24")), "which overlaps the network of its nodes", "though nobody has asked for the range")
}

// Clusters that were made before there was a choice have recorded only the network of their pods, and the first ones not even that.
func TestWhatAClusterWasMadeWithStays(t *testing.T) {
	const id = "cluster"
	for name, made := range map[string]func(*world){
		"before there was a choice": func(w *world) { w.attributes[id+"  network"] = "calico" },
		"by the first versions":     func(w *world) { w.secrets["cluster/"+id+"/facts"] = []byte(`{"name": "demo-cluster"}`) },
	} {
		w := newWorld(t)
		w.there = w.push(t, environment(t, demo))
		made(w)
		require.Empty(t, w.refusals(t, environment(t, demo)), name)
		require.Empty(t, w.refusals(t, saying(t, map[string]any{"podRange": "10.244.0.0/16", "serviceRange": "10.96.0.0/16", "clusterDomain": "cluster.local", "podEncapsulation": "always"})), name)
		told := w.refusals(t, saying(t, map[string]any{"podRange": "172.20.0.0/18", "serviceRange": "172.21.4.0/22", "clusterDomain": "k8s.example.org", "podEncapsulation": "crossSubnet"}))
		require.Len(t, told, 4, name)
		require.Equal(t, "podRange cannot be changed: cluster demo-cluster was made with 10.244.0.0/16, and its pods have their addresses from it; set podRange back, or make another cluster for 172.20.0.0/18", told[0])
		require.Contains(t, told[1], "serviceRange cannot be changed: cluster demo-cluster was made with 10.96.0.0/16")
		require.Contains(t, told[2], "clusterDomain cannot be changed: cluster demo-cluster was made with cluster.local")
		require.Contains(t, told[3], "podEncapsulation cannot be changed: cluster demo-cluster was made with always")
		require.ErrorContains(t, w.fail(t, saying(t, map[string]any{"podRange": "172.20.0.0/18"})), "podRange cannot be changed", name)
		require.Empty(t, w.refusals(t, saying(t, map[string]any{"podMtu": 1300})), "new pods get it: %s", name)
	}
	w := newWorld(t)
	w.there = w.push(t, environment(t, demo))
	w.attributes[id+"  network"] = "flannel"
	w.attributes[id+"  podNetwork"] = map[string]any{"pods": "172.20.0.0/18", "services": "172.21.4.0/22", "domain": "k8s.example.org", "crossSubnet": false, "mtu": 1300}
	require.Empty(t, w.refusals(t, saying(t, map[string]any{"useFlannel": true})), "who says nothing means what is there")
	told := w.refusals(t, saying(t, map[string]any{"useFlannel": true, "podMtu": 1290, "podRange": "10.244.0.0/16"}))
	require.Len(t, told, 2)
	require.Contains(t, told[0], "podRange cannot be changed: cluster demo-cluster was made with 172.20.0.0/18")
	require.Contains(t, told[1], "podMtu cannot be changed: cluster demo-cluster was made with 1300, and Flannel keeps what it began with")
	require.Contains(t, w.refusals(t, environment(t, demo))[0], "useFlannel cannot be changed: cluster demo-cluster was made with flannel")
	require.Equal(t, []any{map[string]any{"ip_address": "172.20.0.0/18"}},
		propertiesOf(t, w.push(t, saying(t, map[string]any{"useFlannel": true, "spreadServers": false})), minionID+"-port")["allowed_address_pairs"])
}

// archived is the type of the field for snapshots, under a name of its own: it has a method Snapshots.
type archived = known.Snapshots

// archive has one snapshot.
type archive struct {
	archived
	only store.Snapshot
}

func (a archive) Environment(context.Context, string) (store.Environment, error) {
	return store.Environment{ProjectID: a.only.ProjectID}, nil
}

func (a archive) Snapshot(context.Context, string) (store.Snapshot, error) { return a.only, nil }

func TestASnapshotIsRestoredIntoAClusterWithItsAddressesOnly(t *testing.T) {
	const elsewhere = `"addressing": {"Pods": "172.20.0.0/18", "Services": "172.21.4.0/22", "Domain": "k8s.example.org"}`
	own := map[string]any{"podRange": "172.20.0.0/18", "serviceRange": "172.21.4.0/22", "clusterDomain": "k8s.example.org"}
	for name, one := range map[string]struct {
		keys, told string
		model      map[string]any
	}{
		"of another cluster, elsewhere":   {keys: "{" + elsewhere + "}", told: "its pods and Services have their addresses from 172.20.0.0/18 and 172.21.4.0/22 and their names in k8s.example.org"},
		"of a former version":             {keys: `{"encryption": "a2V5"}`, model: own, told: "its pods and Services have their addresses from 10.244.0.0/16 and 10.96.0.0/16"},
		"of a former version, as usual":   {keys: `{"encryption": "a2V5"}`},
		"of another cluster at the place": {keys: "{" + elsewhere + "}", model: own},
	} {
		w := newWorld(t)
		w.config.Snapshots = archive{only: store.Snapshot{ID: "then", ProjectID: "project", Secrets: one.keys}}
		interpreter, root := w.load(t, saying(t, one.model))
		_, err := interpreter.Invoke(t.Context(), root.Objects("applications")[0], "restore", map[string]any{"snapshot": "then"})
		if one.told != "" {
			require.ErrorContains(t, err, one.told, name)
			require.Empty(t, w.asked, name)
			continue
		}
		require.ErrorContains(t, err, "find Glance in the service catalog", name) // here is a Heat alone
	}
}

func TestPacketsThatAreNotWrappedAskForAnImageWithBGPAndForOneNetwork(t *testing.T) {
	unwrapped := map[string]any{"podEncapsulation": "none"}
	w := newWorld(t)
	w.imageSays = `, "burano_kubernetes": "v1.36.3"`
	for _, told := range append(w.refusals(t, saying(t, unwrapped)), w.fail(t, saying(t, unwrapped)).Error()) {
		require.Contains(t, told, "does not say that its Calico can exchange routes by BGP, which podEncapsulation: none needs")
		require.Contains(t, told, "openstack image set --property burano_calico=VERSION image-id")
	}
	w.imageSays = `, "burano_calico": "v3.28.5"`
	w.there = w.push(t, saying(t, unwrapped))

	w = newWorld(t)
	w.imageSays = `, "burano_calico": "v3.28.5"`
	model := saying(t, unwrapped)
	clusterOf(model)["externalNodes"] = []any{map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesExternalNode", "id": "lab-1"}, "name": "lab-1", "address": "198.51.100.7"}}
	w.config.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	require.ErrorContains(t, w.fail(t, model), "in 198.51.100.7/32 with podEncapsulation: none, which wraps no packet: routers between networks do not know where pods are")

	w = newWorld(t)
	w.imageSays = `, "burano_calico": "v3.28.5"`
	w.there = w.push(t, environment(t, demo))
	w.attributes["cluster  network"] = "calico"
	require.Contains(t, w.refusals(t, saying(t, unwrapped))[0], "podEncapsulation cannot be changed: cluster demo-cluster was made with always")
	w.attributes["cluster  podNetwork"] = map[string]any{"pods": "10.244.0.0/16", "services": "10.96.0.0/16", "domain": "cluster.local", "crossSubnet": true}
	require.Contains(t, w.refusals(t, saying(t, unwrapped))[0], "podEncapsulation cannot be changed: cluster demo-cluster was made with crossSubnet")
	w.attributes["cluster  podNetwork"] = map[string]any{"pods": "10.244.0.0/16", "services": "10.96.0.0/16", "domain": "cluster.local", "encapsulation": "none"}
	require.Empty(t, w.refusals(t, environment(t, demo)), "who says nothing means what is there")
	require.Contains(t, w.refusals(t, saying(t, map[string]any{"podEncapsulation": "always"}))[0], "podEncapsulation cannot be changed: cluster demo-cluster was made with none")
}

func TestWhereCalicoHasItsStoreIsForNewClustersAndAsksForAnImageWithItsKinds(t *testing.T) {
	inKubernetes := map[string]any{"calicoDatastore": "kubernetes"}
	w := newWorld(t)
	w.imageSays = `, "burano_calico": "v3.28.5"`
	for _, told := range append(w.refusals(t, saying(t, inKubernetes)), w.fail(t, saying(t, inKubernetes)).Error()) {
		require.Contains(t, told, "does not say that it has the definitions of Calico's kinds, which calicoDatastore: kubernetes needs")
		require.Contains(t, told, "openstack image set --property burano_calico_definitions=VERSION image-id")
	}
	require.ErrorContains(t, w.fail(t, saying(t, map[string]any{"calicoDatastore": "kubernetes", "useFlannel": true})), "calicoDatastore of cluster demo-cluster is kubernetes, and Flannel has its store in etcd")
	w.imageSays = `, "burano_calico_definitions": "v3.28.5"`
	require.ErrorContains(t, w.fail(t, saying(t, map[string]any{"calicoDatastore": "kubernetes", "podRange": "10.244.0.0/16,fd00:10:244::/64", "serviceRange": "10.96.0.0/16,fd00:10:96::/112"})),
		"calicoDatastore of cluster demo-cluster is kubernetes, which goes with addresses of IPv4 alone")
	w.there = w.push(t, saying(t, inKubernetes))

	w.attributes["cluster  network"] = "calico"
	w.attributes["cluster  podNetwork"] = map[string]any{"pods": "10.244.0.0/16", "services": "10.96.0.0/16", "domain": "cluster.local", "encapsulation": "always"}
	require.Empty(t, w.refusals(t, saying(t, map[string]any{"calicoDatastore": "etcd"})))
	require.Contains(t, w.refusals(t, saying(t, inKubernetes))[0], "calicoDatastore cannot be changed: cluster demo-cluster was made with etcd")
	w.attributes["cluster  podNetwork"].(map[string]any)["datastore"] = "kubernetes"
	require.Empty(t, w.refusals(t, environment(t, demo)), "who says nothing means what is there")
	require.Contains(t, w.refusals(t, saying(t, map[string]any{"calicoDatastore": "etcd"}))[0], "calicoDatastore cannot be changed: cluster demo-cluster was made with kubernetes")

	for keys, model := range map[string]map[string]any{`{"datastore": "kubernetes"}`: nil, `{}`: inKubernetes} {
		w := newWorld(t)
		w.imageSays = `, "burano_calico_definitions": "v3.28.5"`
		w.config.Snapshots = archive{only: store.Snapshot{ID: "then", ProjectID: "project", Secrets: keys}}
		interpreter, root := w.load(t, saying(t, model))
		_, err := interpreter.Invoke(t.Context(), root.Objects("applications")[0], "restore", map[string]any{"snapshot": "then"})
		require.ErrorContains(t, err, "and this one has calicoDatastore: "+map[bool]string{true: "etcd", false: "kubernetes"}[model == nil])
		require.Empty(t, w.asked)
	}
}
