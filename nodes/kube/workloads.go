package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// WorkloadRef names a workload.
type WorkloadRef struct{ Kind, Namespace, Name string }

func (r WorkloadRef) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// WorkloadDetails is a workload with its events and, of a Deployment, the events of its replica sets, the newest first.
type WorkloadDetails struct {
	Workload
	Events []Event `json:"events"`
}

// Refusal is the error of a change that is not made: the reason, and the alternative.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// restarted is the annotation of pods' templates by which kubectl replaces pods; so both ways look the same.
const restarted = "kubectl.kubernetes.io/restartedAt"

// ReadWorkload reads a workload. An error of apierrors.IsNotFound means that there is none.
func ReadWorkload(ctx context.Context, config *rest.Config, ref WorkloadRef) (WorkloadDetails, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return WorkloadDetails{}, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	found, id, err := readWorkload(ctx, client, ref)
	if err != nil {
		return WorkloadDetails{}, fmt.Errorf("read %s: %w", ref, err)
	}
	events, err := eventsOf(ctx, client, ref.Namespace, ref.Kind, ref.Name, id)
	if err == nil && ref.Kind == kindDeployment {
		var more []Event
		more, err = eventsOfReplicaSets(ctx, client, ref, id)
		events = append(events, more...)
		newestFirst(events)
	}
	if err != nil {
		return WorkloadDetails{}, fmt.Errorf("list the events of %s: %w", ref, err)
	}
	return WorkloadDetails{Workload: found, Events: events}, nil
}

func readWorkload(ctx context.Context, client kubernetes.Interface, ref WorkloadRef) (found Workload, id types.UID, err error) {
	switch ref.Kind {
	case kindDeployment:
		one, err := client.AppsV1().Deployments(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return found, "", err
		}
		return deployment(one), one.UID, nil
	case kindStatefulSet:
		one, err := client.AppsV1().StatefulSets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return found, "", err
		}
		return statefulSet(one), one.UID, nil
	case kindDaemonSet:
		one, err := client.AppsV1().DaemonSets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return found, "", err
		}
		return daemonSet(one), one.UID, nil
	case kindJob:
		one, err := client.BatchV1().Jobs(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return found, "", err
		}
		return job(one), one.UID, nil
	}
	return found, "", apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name)
}

// eventsOfReplicaSets are the events of a Deployment's replica sets: they have the reason why a pod cannot be made.
func eventsOfReplicaSets(ctx context.Context, client kubernetes.Interface, of WorkloadRef, id types.UID) ([]Event, error) {
	sets, err := client.AppsV1().ReplicaSets(of.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	var ids []types.UID
	for i := range sets.Items {
		if owner := metav1.GetControllerOf(&sets.Items[i]); owner != nil && owner.UID == id {
			ids = append(ids, sets.Items[i].UID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return eventsOf(ctx, client, of.Namespace, "ReplicaSet", "", ids...)
}

// ScaleWorkload sets the number of pods of a Deployment or StatefulSet. The error is a Refusal if the workload does not decide its number.
func ScaleWorkload(ctx context.Context, config *rest.Config, ref WorkloadRef, pods int32) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	found, _, err := readWorkload(ctx, client, ref)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", ref, err)
	case ref.Kind != kindDeployment && ref.Kind != kindStatefulSet:
		return &Refusal{fmt.Sprintf("A %s has no number of pods that could be changed", ref.Kind)}
	case found.Managed && found.Object != "":
		return &Refusal{fmt.Sprintf("Burano made %s for component %s, and would undo the change: call the component's action scalePodUp or scalePodDown", ref, found.Object)}
	case found.Managed:
		return &Refusal{fmt.Sprintf("%s is a part of the cluster, and Burano would undo the change", ref)}
	}
	return patchWorkload(ctx, client, ref, map[string]any{"spec": map[string]any{"replicas": pods}}, "scale")
}

// RestartWorkload has all pods of a workload made anew, by the workload's own rules. An error is a Refusal where it has none.
func RestartWorkload(ctx context.Context, config *rest.Config, ref WorkloadRef, now time.Time) error {
	if ref.Kind == kindJob {
		return &Refusal{"The pods of a Job run once: create another Job"}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	annotated := map[string]any{"annotations": map[string]string{restarted: now.UTC().Format(time.RFC3339)}}
	return patchWorkload(ctx, client, ref, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": annotated}}})
}

func patchWorkload(ctx context.Context, client kubernetes.Interface, ref WorkloadRef, change map[string]any, part ...string) error {
	resources := map[string]string{kindDeployment: "deployments", kindStatefulSet: "statefulsets", kindDaemonSet: "daemonsets"}
	resource, known := resources[ref.Kind]
	if !known {
		return apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name)
	}
	body, err := json.Marshal(change)
	if err == nil {
		err = client.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace(ref.Namespace).Resource(resource).Name(ref.Name).
			SubResource(part...).Body(body).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", ref, err)
	}
	return nil
}

// PodIsReady reports whether Kubernetes counts a pod as ready.
func PodIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// RecreatePod ends a pod, so that its workload makes it again. One that is ready is evicted, which respects disruption budgets. An error is a
// Refusal where nothing would make the pod again, or a budget does not let it go now.
func RecreatePod(ctx context.Context, config *rest.Config, namespace, name string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	if err := lasting(pod); err != nil {
		return err
	}
	this := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if PodIsReady(pod) {
		err = client.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &this})
		if apierrors.IsTooManyRequests(err) {
			return &Refusal{fmt.Sprintf("A disruption budget does not let pod %s/%s go now: %v; wait until the others are ready", namespace, name, err)}
		}
	} else {
		err = client.CoreV1().Pods(namespace).Delete(ctx, name, this)
	}
	if err != nil {
		return fmt.Errorf("end pod %s/%s: %w", namespace, name, err)
	}
	return nil
}

// lasting is a Refusal for a pod that nothing would make again.
func lasting(pod *corev1.Pod) error {
	switch owner := metav1.GetControllerOf(pod); {
	case owner != nil && owner.Kind == "Node":
		return &Refusal{fmt.Sprintf("Pod %s/%s is the kubelet's own, from a file on node %s", pod.Namespace, pod.Name, owner.Name)}
	case owner != nil && pod.Status.Phase != corev1.PodSucceeded:
		return nil
	case pod.Labels[LabelObject] != "":
		return &Refusal{fmt.Sprintf("Nothing in the cluster would make pod %s/%s again: call the action recreatePod of component %s", pod.Namespace, pod.Name, pod.Labels[LabelObject])}
	default:
		return &Refusal{fmt.Sprintf("Nothing in the cluster would make pod %s/%s again: delete it with kubectl if that is wanted", pod.Namespace, pod.Name)}
	}
}
