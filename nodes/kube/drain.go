package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
)

// annotationLeaving marks a node that takes no new pods because Burano removes it. So it differs from a node that a person has cordoned.
const annotationLeaving = "burano.io/leaving"

// tryAgain is how long an eviction that a disruption budget refused, or another call that failed for now, waits for its next try,
// and how often it is looked whether the evicted pods are gone.
const tryAgain = 500 * time.Millisecond

// Cordon has a node take no new pods, and marks it as leaving. A node that is not there is no error.
func Cordon(ctx context.Context, config *rest.Config, node string) error {
	return patchNode(ctx, config, node, true, "true")
}

// Leaving is true if a node has the mark of Cordon.
func Leaving(node *unstructured.Unstructured) bool {
	_, marked := node.GetAnnotations()[annotationLeaving]
	return marked
}

// Uncordon undoes Cordon, and only that: a node that another user has cordoned stays so, and so does a node whose settings ask for it.
func Uncordon(ctx context.Context, config *rest.Config, node string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	var found *corev1.Node
	err = persist(ctx, func(ctx context.Context) (err error) {
		found, err = client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found, err = nil, nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look at node %s: %w", node, err)
	}
	if found == nil {
		return nil
	}
	if _, ours := found.Annotations[annotationLeaving]; !ours {
		return nil
	}
	return patchNode(ctx, config, node, keptCordoned(found), nil)
}

// patchNode has a node take new pods or none, and marks it as leaving, or not (nil).
func patchNode(ctx context.Context, config *rest.Config, node string, closed bool, mark any) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	var unschedulable any // nil removes it
	if closed {
		unschedulable = true
	}
	err = mergeNode(ctx, client, node, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationLeaving: mark}},
		"spec":     map[string]any{"unschedulable": unschedulable},
	})
	if err != nil {
		return fmt.Errorf("mark node %s: %w", node, err)
	}
	return nil
}

// mergeNode merges something into the object of a node, if it is there.
func mergeNode(ctx context.Context, client kubernetes.Interface, node string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return persist(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// Drain moves the pods of a node away through the eviction API, so that disruption budgets are respected, and returns when they are gone. Pods of
// DaemonSets and the kubelet's own pods stay. When the node is off, or not Ready for so long that Kubernetes takes its kubelet for dead, its pods are
// deleted by force: no kubelet can end them. When ctx ends, the error names the remaining pods and the reasons.
func Drain(ctx context.Context, config *rest.Config, node string, off bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	refused := map[string]string{} // pod → why its eviction was refused last
	var left []string
	var last error
	for {
		now, err := drainOnce(ctx, client, node, off, refused)
		if err == nil && len(now) == 0 {
			return nil
		}
		last = err
		if err == nil {
			left = now
		} else if ctx.Err() == nil && !passing(err) {
			return fmt.Errorf("drain node %s: %w", node, err)
		}
		cause := wait.Pause(ctx, tryAgain)
		if cause == nil {
			continue
		}
		for i, pod := range left {
			if why := refused[pod]; why != "" {
				left[i] += " (" + why + ")"
			}
		}
		if last != nil && !errors.Is(last, ctx.Err()) {
			return fmt.Errorf("drain node %s: %w: %w", node, cause, last)
		}
		return fmt.Errorf("drain node %s: %w: these pods are still there: %s", node, cause, strings.Join(left, ", "))
	}
}

// drainOnce evicts all pods that can be evicted now and returns the names of the pods that are not gone yet.
func drainOnce(ctx context.Context, client kubernetes.Interface, node string, off bool, refused map[string]string) ([]string, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("list its pods: %w", err)
	}
	movable := slices.DeleteFunc(pods.Items, stays)
	if len(movable) == 0 {
		return nil, nil
	}
	dead := off
	if !dead {
		if dead, err = isDead(ctx, client, node); err != nil {
			return nil, err
		}
	}
	var left []string
	for _, pod := range movable {
		name := pod.Namespace + "/" + pod.Name
		left = append(left, name)
		if pod.DeletionTimestamp != nil && !dead {
			delete(refused, name)
			continue
		}
		same := metav1.Preconditions{UID: &pod.UID}
		if dead {
			now := int64(0)
			err = client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &same})
		} else {
			err = client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: &same},
			})
		}
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		case apierrors.IsTooManyRequests(err):
			refused[name] = err.Error()
		default:
			return left, fmt.Errorf("evict %s: %w", name, err)
		}
	}
	return left, nil
}

// EndedByLock are the pods of a node that the taint of a locked node ends.
func EndedByLock(ctx context.Context, config *rest.Config, node string) (names []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	pods, err := intolerant(ctx, client, node, corev1.Taint{Key: LockedTaint, Effect: corev1.TaintEffectNoExecute})
	for _, pod := range pods {
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	return names, err
}

// stays is true if a pod belongs to its node: pods of DaemonSets would come back, and pods of the kubelet's own files cannot go.
func stays(pod corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(&pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// isDead is true if a node is gone, or if its kubelet has been silent for so long that the node's readiness is unknown.
func isDead(ctx context.Context, client kubernetes.Interface, name string) (bool, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at it: %w", err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionUnknown, nil
		}
	}
	return false, nil
}
