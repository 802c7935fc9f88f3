package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/nodes/autoscale"
)

// AnyWaits is true if a pod waits because the scheduler has found no node for it.
func AnyWaits(ctx context.Context, client kubernetes.Interface) (bool, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"spec.nodeName": "", "status.phase": string(corev1.PodPending)}.AsSelector().String()})
	if err != nil {
		return false, fmt.Errorf("list the pods that wait: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return autoscale.NeedsRoom(&pod) }), nil
}

// Load is the state that decides on the size of groups: nodes with their pods, waiting pods and disruption budgets. The caller adds groups and the time.
func Load(ctx context.Context, client kubernetes.Interface) (state autoscale.State, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return state, fmt.Errorf("list the nodes: %w", err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return state, fmt.Errorf("list the pods: %w", err)
	}
	budgets, err := client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return state, fmt.Errorf("list the disruption budgets: %w", err)
	}
	volumes, err := volumesOf(ctx, client, Local)
	if err != nil {
		return state, err
	}
	state.Held = map[string]bool{}
	for _, volume := range volumes {
		state.Held[volume.Node] = true
	}
	state.Nodes = slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return Podless(&node) })
	state.Pods, state.Budgets = pods.Items, budgets.Items
	return state, nil
}

// MarkUnneeded notes on nodes since when they are not needed, and takes the note from all others.
func MarkUnneeded(ctx context.Context, client kubernetes.Interface, all []corev1.Node, unneeded map[string]time.Time) error {
	for i := range all {
		node, wanted := &all[i], ""
		if since, there := unneeded[node.Name]; there {
			wanted = since.UTC().Format(time.RFC3339)
		}
		if node.Annotations[autoscale.Unneeded] == wanted {
			continue
		}
		var value any // nil removes it
		if wanted != "" {
			value = wanted
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{autoscale.Unneeded: value}}})
		if err != nil {
			return err
		}
		if _, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("note since when node %s is not needed: %w", node.Name, err)
		}
		node.Annotations = maps.Clone(node.Annotations)
		if delete(node.Annotations, autoscale.Unneeded); wanted != "" {
			if node.Annotations == nil {
				node.Annotations = map[string]string{}
			}
			node.Annotations[autoscale.Unneeded] = wanted
		}
	}
	return nil
}

// RoomOf is the room for pods on a node with so many processors, MiB of memory and GiB of disk, as far as it can be known before the node exists: the
// kernel has a part, and the node keeps some.
func RoomOf(processors, memory, disk int) corev1.ResourceList {
	kube, system := Host{Machine: true, MemoryGiB: (memory + 1023) / 1024}.reserved()
	const evicted, reservedProcessor, kernel, image = 100, 200, 20, 4 // MiB, thousandths, of memory the twentieth, GiB
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(int64(max(processors*1000-reservedProcessor, 0)), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(max(memory-memory/kernel-kube-system-evicted, 0))<<20, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(max(disk-image, 0))*9/10<<30, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(110, resource.DecimalSI), // the kubelet's default
	}
}
