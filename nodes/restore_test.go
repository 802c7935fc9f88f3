package nodes

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/burano/burano/nodes/network"
)

// A snapshot of another cluster knows its master and gateways, which have no kubelet: only the network has entries of them.
func TestTheNetworkForgetsNodesOfASnapshotThatTheClusterHasNot(t *testing.T) {
	own := nodesOf(1, 1, 1)
	pairs := func(texts ...string) (list []*mvccpb.KeyValue) {
		for i := 0; i < len(texts); i += 2 {
			list = append(list, &mvccpb.KeyValue{Key: []byte(texts[i]), Value: []byte(texts[i+1])})
		}
		return list
	}
	const calico, flannel = "/calico/resources/v3/projectcalico.org/nodes/", "/coreos.com/network/subnets/"
	require.Equal(t, []network.Node{{Name: "murano-gateway-2"}}, orphaned(network.Calico{}.Registry(),
		pairs(calico+"murano-master-1", "{}", calico+"murano-gateway-1", "{}", calico+"murano-gateway-2", "{}", calico+"murano-kube-1", "{}"), own))
	require.Equal(t, []network.Node{{Address: netip.MustParseAddr("10.0.0.99")}}, orphaned(network.Flannel{}.Registry(),
		pairs(flannel+"10.244.5.0-24", `{"PublicIP":"10.0.0.10","BackendType":"vxlan"}`, flannel+"10.244.6.0-24", `{"PublicIP":"10.0.0.99"}`, flannel+"10.244.7.0-24", "no lease"), own))
}

func TestASnapshotSaysWhetherPacketsBetweenItsPodsWereWrapped(t *testing.T) {
	for encapsulation, unwrapped := range map[network.Encapsulation]bool{"": false, network.CrossSubnet: false, network.Unwrapped: true} {
		c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 1, 1), Vault: newVault(), Encapsulation: encapsulation})
		require.NoError(t, err)
		_, err = c.authorities(t.Context())
		require.NoError(t, err)
		keys, err := c.Keys(t.Context())
		require.NoError(t, err)
		said, err := UnwrappedIn(keys)
		require.NoError(t, err)
		require.Equal(t, unwrapped, said)
	}
	said, err := UnwrappedIn([]byte(`{}`))
	require.NoError(t, err)
	require.False(t, said, "of a cluster that had no choice")
}

func TestASnapshotSaysWhereCalicoHasItsStore(t *testing.T) {
	for datastore, told := range map[network.Datastore]network.Datastore{"": network.InEtcd, network.InEtcd: network.InEtcd, network.InKubernetes: network.InKubernetes} {
		c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 1, 1), Vault: newVault(), Datastore: datastore})
		require.NoError(t, err)
		_, err = c.authorities(t.Context())
		require.NoError(t, err)
		keys, err := c.Keys(t.Context())
		require.NoError(t, err)
		said, err := DatastoreIn(keys)
		require.NoError(t, err)
		require.Equal(t, told, said)
	}
}
