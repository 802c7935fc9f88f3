package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// outOfServiceBy is the value of the taint when Burano has set it; a taint of another maker is left alone.
const outOfServiceBy = "burano"

// OutOfService tells Kubernetes about nodes whose servers are certainly off, so that their pods run elsewhere at once, with their volumes:
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown. A node in off gets the taint
// node.kubernetes.io/out-of-service, unless it takes no pods and has neither pods nor volumes. Its pods that do not tolerate the taint are deleted at once, without their kubelet. The caller must be certain that a
// server is off: running pods are not ended, and two may write to one volume. A node that is not in off, and whose kubelet has reported since, loses the
// taint that was set here. marked are the names of the nodes with the taint, also when some failed.
func OutOfService(ctx context.Context, config *rest.Config, off []string) (marked []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return outOfService(ctx, client, off, time.Now())
}

func outOfService(ctx context.Context, client kubernetes.Interface, off []string, now time.Time) (marked []string, err error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at nodes: %w", err)
	}
	used := map[string]bool{} // nodes with volumes
	if len(off) > 0 {
		attachments, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("look at what is attached: %w", err)
		}
		for _, one := range attachments.Items {
			used[one.Spec.NodeName] = true
		}
	}
	var problems []error
	for _, node := range list.Items {
		isOff := slices.Contains(off, node.Name)
		taint := outOfServiceTaint(node.Spec.Taints)
		switch {
		case taint == nil && isOff:
			held, failed := leaving(ctx, client, node.Name)
			if failed == nil && len(held) == 0 && !used[node.Name] && node.Spec.Unschedulable { // such as a locked node
				continue
			}
			err = setTaints(ctx, client, node.Name, func(taints []corev1.Taint) []corev1.Taint {
				return append(taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: outOfServiceBy, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}})
			})
			if err == nil {
				err = endPods(ctx, client, node.Name)
			}
			marked = append(marked, node.Name)
		case taint == nil || taint.Value != outOfServiceBy:
			continue
		case isOff:
			marked = append(marked, node.Name)
			err = endPods(ctx, client, node.Name) // the rest of an interrupted call
		default:
			var returned bool
			if returned, err = shown(ctx, client, node, taint.TimeAdded); err == nil && returned {
				err = takeBack(ctx, client, node.Name)
			} else {
				marked = append(marked, node.Name)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("node %s: %w", node.Name, err))
		}
	}
	return marked, errors.Join(problems...)
}

// InService has a node, given as it was read, lose the taint of OutOfService where that is Burano's.
func InService(ctx context.Context, config *rest.Config, node *unstructured.Unstructured) error {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	ours := slices.ContainsFunc(taints, func(one any) bool {
		taint, _ := one.(map[string]any)
		return taint["key"] == corev1.TaintNodeOutOfService && taint["value"] == outOfServiceBy
	})
	if !ours {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	if err := takeBack(ctx, client, node.GetName()); err != nil {
		return fmt.Errorf("take node %s into service: %w", node.GetName(), err)
	}
	return nil
}

func outOfServiceTaint(taints []corev1.Taint) *corev1.Taint {
	at := slices.IndexFunc(taints, func(one corev1.Taint) bool { return one.Key == corev1.TaintNodeOutOfService })
	if at < 0 {
		return nil
	}
	return &taints[at]
}

func takeBack(ctx context.Context, client kubernetes.Interface, node string) error {
	return setTaints(ctx, client, node, func(taints []corev1.Taint) []corev1.Taint {
		return slices.DeleteFunc(taints, func(one corev1.Taint) bool {
			return one.Key == corev1.TaintNodeOutOfService && one.Value == outOfServiceBy
		})
	})
}

// setTaints changes the taints of a node. If another client changes the node meanwhile, it reads the node again.
func setTaints(ctx context.Context, client kubernetes.Interface, name string, change func([]corev1.Taint) []corev1.Taint) error {
	return persist(ctx, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
			"spec": map[string]any{"taints": change(node.Spec.Taints)}})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// leaving are the pods of a node that do not tolerate that it is off.
func leaving(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error) {
	return intolerant(ctx, client, node, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: outOfServiceBy, Effect: corev1.TaintEffectNoExecute})
}

// intolerant are the pods of a node that do not tolerate a taint.
func intolerant(ctx context.Context, client kubernetes.Interface, node string, taint corev1.Taint) ([]corev1.Pod, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("look at its pods: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Tolerations, func(one corev1.Toleration) bool { return one.ToleratesTaint(logr.Discard(), &taint, false) })
	}), nil
}

// endPods deletes the pods of a node that is off, except pods that tolerate that. Kubernetes does so itself once it has missed the node for most of a
// minute.
func endPods(ctx context.Context, client kubernetes.Interface, node string) error {
	pods, err := leaving(ctx, client, node)
	if err != nil {
		return err
	}
	var problems []error
	for _, pod := range pods {
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // another pod has its name by now
			problems = append(problems, fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(problems...)
}

// shown is true if a node is ready, and if its kubelet has reported after a time: for most of a minute, a node that went off still counts as ready.
func shown(ctx context.Context, client kubernetes.Interface, node corev1.Node, since *metav1.Time) (bool, error) {
	if ready := slices.ContainsFunc(node.Status.Conditions, func(one corev1.NodeCondition) bool {
		return one.Type == corev1.NodeReady && one.Status == corev1.ConditionTrue
	}); !ready || since == nil {
		return ready, nil
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("look when its kubelet showed itself: %w", err)
	}
	return lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(since.Time), nil
}
