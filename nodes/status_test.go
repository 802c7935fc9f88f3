package nodes

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The status of a cluster that answers is tested in test/e2e.
func TestAClusterThatDoesNotAnswerIsDescribedNevertheless(t *testing.T) {
	nodes := nodesOf(1, 1, 1)
	for i := range nodes {
		nodes[i].Address, nodes[i].Access = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), netip.Addr{} // RFC 5737: no server's addresses
	}
	c, err := NewCluster(Config{Name: "c", Nodes: nodes, Vault: newVault(), Patience: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for name, spare := range map[string]func(string) bool{"all are asked": nil, "minions are spared": func(string) bool { return true }} {
		status := c.Status(t.Context(), spare)
		require.Len(t, status.Nodes, 3, name)
		var about []string
		for _, problem := range status.Problems {
			what, _, _ := strings.Cut(problem, ":")
			about = append(about, what)
		}
		require.Equal(t, []string{"Kubernetes", "etcd", "node " + nodes[2].Name, "node " + nodes[1].Name, "node " + nodes[0].Name}, about, name)
		for i, node := range status.Nodes {
			require.Equal(t, nodes[i].Role, node.Role)
			require.False(t, node.Reached, name)
			require.Nil(t, node.Ready, "nobody knows")
		}
		require.Empty(t, status.Members)
		require.Empty(t, status.Routes)
	}
}

func TestOnlyANodeThatIsReadyAndShortOfNothingIsSpared(t *testing.T) {
	kubelet := func(name string, conditions ...corev1.NodeCondition) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
	}
	is := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	kubelets := []corev1.Node{kubelet("new"), kubelet("well", is(corev1.NodeReady, corev1.ConditionTrue), is(corev1.NodeDiskPressure, corev1.ConditionFalse)),
		kubelet("silent", is(corev1.NodeReady, corev1.ConditionUnknown)), kubelet("full", is(corev1.NodeReady, corev1.ConditionTrue), is(corev1.NodeDiskPressure, corev1.ConditionTrue))}
	for _, name := range []string{"new", "well", "silent", "full", "unregistered"} {
		require.Equal(t, name == "well", well(kubelets, name), name)
	}
}

func TestWhyAMinionIsNotReady(t *testing.T) {
	nodes := nodesOf(1, 3, 0)
	c, err := NewCluster(Config{Name: "c", Nodes: nodes, Vault: newVault()})
	require.NoError(t, err)
	a := &asking{cluster: c}
	for _, node := range nodes {
		a.status.Nodes = append(a.status.Nodes, NodeStatus{Node: node})
	}
	kubelet := func(name string, conditions ...corev1.NodeCondition) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
	}
	a.ready([]corev1.Node{
		kubelet(nodes[1].Name, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"}),
		kubelet(nodes[2].Name, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting node status."}),
	})
	require.Nil(t, a.status.Nodes[0].Ready, "a master has no kubelet")
	require.True(t, *a.status.Nodes[1].Ready)
	require.False(t, *a.status.Nodes[2].Ready)
	require.False(t, *a.status.Nodes[3].Ready)
	require.Equal(t, []string{"node " + nodes[1].Name + ": it takes no pods and ends some, because of DiskPressure: kubelet has disk pressure",
		"node " + nodes[2].Name + ": it is not Ready: Kubelet stopped posting node status.",
		"node " + nodes[3].Name + ": its kubelet has not registered it"}, a.status.Problems)
}
