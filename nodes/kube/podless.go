package kube

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	// LeaseUnit is the unit by which a node without a kubelet reports to Kubernetes that it lives.
	LeaseUnit = "node-lease"
	// PodlessLabel is of the Node objects of nodes that take no pods and have no kubelet; its value is their role.
	PodlessLabel = reservedPrefix + "podless"
	nodePair     = "node"
	leasePath    = "/opt/burano/lib/node-lease"
)

//go:embed scripts/node-lease.sh
var leaseScript []byte

// LeaseOrders is the certificate of a node without a kubelet.
func (c Cluster) LeaseOrders(node Node) map[string]pki.Order {
	return map[string]pki.Order{nodePair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: kubeletUser(node), Organization: []string{"system:nodes"}, Usage: pki.Client}}}
}

// Lease is the unit by which a node without a kubelet renews its lease. Without it the node controller would take it for dead.
func (c Cluster) Lease(node Node, pairs map[string]pki.Pair) systemd.Unit {
	return systemd.Unit{
		Name:        LeaseUnit,
		Description: "Kubernetes learns that this node lives",
		Command:     []string{leasePath},
		Service: []string{"Environment=NODE=" + node.Name + " API=" + APIServerURL(c.Name) + " AUTHORITY=" + TrustedFile,
			"Environment=CERTIFICATE=" + keys + nodePair + ".crt KEY=" + keys + nodePair + ".key"},
		Files: append(pairFiles(nodePair, pairs[nodePair]), c.authorityFile(), ssh.File{Path: leasePath, Content: leaseScript, Mode: 0o755}),
	}
}

// Podless is true for the object of a node that takes no pods and has no kubelet.
func Podless(node *corev1.Node) bool {
	_, there := node.Labels[PodlessLabel]
	return there
}

// RegisterPodless makes the Node object of a node that takes no pods, or has it be as it should. Beside its taints it keeps pods away that tolerate everything: it has room
// for none, and no label of an operating system, for which DaemonSets ask. It counts neither as a target of load balancers nor as one of a zone's nodes.
func RegisterPodless(ctx context.Context, config *rest.Config, node Node, role string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	err = persist(ctx, func(ctx context.Context) error { return registerPodless(ctx, client, node, role, time.Now()) })
	if err != nil {
		return fmt.Errorf("register node %s, which takes no pods: %w", node.Name, err)
	}
	return nil
}

func registerPodless(ctx context.Context, client kubernetes.Interface, node Node, role string, now time.Time) error {
	err := applySettings(ctx, client, node.Name, Settings{
		Labels: map[string]string{
			PodlessLabel:                            role,
			"node-role.kubernetes.io/" + role:       "",
			corev1.LabelNodeExcludeBalancers:        "",
			"node.kubernetes.io/exclude-disruption": "",
		},
		Taints: []Taint{{Key: PodlessLabel, Effect: string(corev1.TaintEffectNoSchedule)}, {Key: PodlessLabel, Effect: string(corev1.TaintEffectNoExecute)}},
	}, true)
	if err != nil {
		return err
	}
	found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	none := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(0, resource.DecimalSI)}
	wanted := corev1.NodeStatus{Addresses: node.nodeAddresses(), Capacity: none, Allocatable: none, Conditions: found.Status.Conditions}
	if ready := slices.IndexFunc(wanted.Conditions, func(one corev1.NodeCondition) bool { return one.Type == corev1.NodeReady }); ready < 0 {
		// A lease keeps it so (LeaseUnit).
		wanted.Conditions = append(slices.Clone(wanted.Conditions), corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NoKubelet",
			Message: "the node takes no pods, and has no kubelet", LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now)})
	}
	has := corev1.NodeStatus{Addresses: found.Status.Addresses, Capacity: found.Status.Capacity, Allocatable: found.Status.Allocatable, Conditions: found.Status.Conditions}
	if equality.Semantic.DeepEqual(has, wanted) {
		return nil
	}
	// Lists are replaced: addresses of one type are several where a node has IPv6.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": found.ResourceVersion},
		"status": map[string]any{"addresses": wanted.Addresses, "capacity": none, "allocatable": none, "conditions": wanted.Conditions}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// nodeAddresses are the addresses in a node's object.
func (n Node) nodeAddresses() []corev1.NodeAddress {
	list := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Address.String()}}
	if n.Six.IsValid() {
		list = append(list, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: n.Six.String()})
	}
	return append(list, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.Name})
}

// Register makes the object of a new node, or applies its settings to an existing one. So the pod network can write there before the kubelet does.
func Register(ctx context.Context, config *rest.Config, name string, settings Settings) error {
	return applySettingsBy(ctx, config, name, settings, true)
}

// Disconnect removes Calico's route to a node that is gone, whose object stays for now: another node may get its address.
func Disconnect(ctx context.Context, config *rest.Config, name string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	none := map[string]any{} // nil removes an annotation
	for _, kind := range []string{"IPv4Address", "IPv6Address", "IPv4VXLANTunnelAddr", "IPv6VXLANTunnelAddr"} {
		none["projectcalico.org/"+kind] = nil
	}
	if err := mergeNode(ctx, client, name, map[string]any{"metadata": map[string]any{"annotations": none}}); err != nil {
		return fmt.Errorf("have the network forget node %s: %w", name, err)
	}
	return nil
}
