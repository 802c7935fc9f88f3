package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Running is a cluster's workloads and pods at one moment. It holds neither Secrets nor a pod's environment, so that its readers need no right to those.
type Running struct {
	Workloads []Workload `json:"workloads"`
	Pods      []Pod      `json:"pods"`
}

// Workload makes pods: a Deployment, StatefulSet, DaemonSet or Job.
type Workload struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Wanted    int32     `json:"wanted"` // pods; of a Job the pods that must succeed
	Ready     int32     `json:"ready"`  // pods; of a Job the pods that have succeeded
	Images    []string  `json:"images"`
	Created   time.Time `json:"created"`
	// Managed is true if Burano writes the workload: its number of pods is a property of a component, or of the cluster.
	Managed bool `json:"managed"`
	// Object is the id of the component that it is made for; "" for none.
	Object string `json:"object"`
}

// Pod is a pod. Its state is the status that kubectl shows: its phase, or the reason why it does not run well.
type Pod struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	State      string      `json:"state"`
	Healthy    bool        `json:"healthy"` // it runs and is ready, or has succeeded
	Message    string      `json:"message"` // why it is not as it should be; "" for nothing known
	Node       string      `json:"node"`
	Address    string      `json:"address"`
	Owner      *Owner      `json:"owner"`  // nil for a pod without a workload
	Object     string      `json:"object"` // as that of Workload
	Created    time.Time   `json:"created"`
	Containers []Container `json:"containers"` // containers that prepare the pod first, in the order in which they run
}

// Owner is the workload that a pod belongs to.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Container is a container of a pod.
type Container struct {
	Name     string     `json:"name"`
	Image    string     `json:"image"`
	Init     bool       `json:"init"` // it prepares the pod
	State    string     `json:"state"`
	Message  string     `json:"message"`
	Ready    bool       `json:"ready"`
	Restarts int32      `json:"restarts"`
	Started  *time.Time `json:"started"` // nil while it does not run
}

// Event is something that Kubernetes noted about an object. It keeps events for an hour.
type Event struct {
	Type    string    `json:"type"` // Normal or Warning
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
	Last    time.Time `json:"last"`
}

// PodDetails is a pod with its events, the newest first.
type PodDetails struct {
	Pod
	Events []Event `json:"events"`
}

// Kinds of workloads.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindJob         = "Job"
)

// LabelObject is the label of objects that Burano makes for an object of an environment, with that object's id.
const LabelObject = "burano.io/pod"

// AnnotationPublish of "false" keeps a Service from gateways (gateway/publish).
const AnnotationPublish = "burano.io/publish"

// MadeByBurano reports whether Burano has applied an object of Kubernetes.
func MadeByBurano(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Manager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// EventTime is when an event was last seen.
func EventTime(event corev1.Event) time.Time {
	for _, at := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return event.CreationTimestamp.Time
}

// mostEvents bounds the events of one object.
const mostEvents = 500

// ReadRunning lists the workloads and pods in a namespace; "" stands for all.
func ReadRunning(ctx context.Context, config *rest.Config, namespace string) (Running, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Running{}, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	found := Running{Workloads: []Workload{}, Pods: []Pod{}}
	fromMemory := metav1.ListOptions{ResourceVersion: "0"} // of the API server: it may be a moment old, and costs etcd nothing
	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, fromMemory)
	if err != nil {
		return Running{}, fmt.Errorf("list deployments: %w", err)
	}
	for i := range deployments.Items {
		found.Workloads = append(found.Workloads, deployment(&deployments.Items[i]))
	}
	statefulSets, err := client.AppsV1().StatefulSets(namespace).List(ctx, fromMemory)
	if err != nil {
		return Running{}, fmt.Errorf("list stateful sets: %w", err)
	}
	for i := range statefulSets.Items {
		found.Workloads = append(found.Workloads, statefulSet(&statefulSets.Items[i]))
	}
	daemonSets, err := client.AppsV1().DaemonSets(namespace).List(ctx, fromMemory)
	if err != nil {
		return Running{}, fmt.Errorf("list daemon sets: %w", err)
	}
	for i := range daemonSets.Items {
		found.Workloads = append(found.Workloads, daemonSet(&daemonSets.Items[i]))
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, fromMemory)
	if err != nil {
		return Running{}, fmt.Errorf("list jobs: %w", err)
	}
	for i := range jobs.Items {
		found.Workloads = append(found.Workloads, job(&jobs.Items[i]))
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, fromMemory)
	if err != nil {
		return Running{}, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		found.Pods = append(found.Pods, podOf(&pods.Items[i]))
	}
	slices.SortFunc(found.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(found.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// ReadPod reads a pod and its events. An error of apierrors.IsNotFound means that there is none.
func ReadPod(ctx context.Context, config *rest.Config, namespace, name string) (PodDetails, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return PodDetails{}, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return PodDetails{}, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	events, err := eventsOf(ctx, client, namespace, "Pod", name, pod.UID)
	if err != nil {
		return PodDetails{}, fmt.Errorf("list the events of pod %s/%s: %w", namespace, name, err)
	}
	return PodDetails{Pod: podOf(pod), Events: events}, nil
}

// eventsOf lists the events of objects of a kind with these ids, the newest first; name may be "" for any. An event without an id counts where there is a
// name.
func eventsOf(ctx context.Context, client kubernetes.Interface, namespace, kind, name string, ids ...types.UID) ([]Event, error) {
	about := fields.OneTermEqualSelector("involvedObject.kind", kind)
	if name != "" {
		about = fields.AndSelectors(about, fields.OneTermEqualSelector("involvedObject.name", name))
	}
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String(), Limit: mostEvents})
	if err != nil {
		return nil, err
	}
	events := []Event{}
	for _, event := range list.Items {
		id := event.InvolvedObject.UID
		if slices.Contains(ids, id) || id == "" && name != "" { // without the events of a former object of the same name
			events = append(events, eventOf(event))
		}
	}
	newestFirst(events)
	return events, nil
}

func newestFirst(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return b.Last.Compare(a.Last) })
}

func deployment(d *appsv1.Deployment) Workload {
	return workloadOf(kindDeployment, d.ObjectMeta, d.Spec.Template.Spec, orOne(d.Spec.Replicas), d.Status.ReadyReplicas)
}

func statefulSet(s *appsv1.StatefulSet) Workload {
	return workloadOf(kindStatefulSet, s.ObjectMeta, s.Spec.Template.Spec, orOne(s.Spec.Replicas), s.Status.ReadyReplicas)
}

func daemonSet(d *appsv1.DaemonSet) Workload {
	return workloadOf(kindDaemonSet, d.ObjectMeta, d.Spec.Template.Spec, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
}

func job(j *batchv1.Job) Workload {
	return workloadOf(kindJob, j.ObjectMeta, j.Spec.Template.Spec, orOne(j.Spec.Completions), j.Status.Succeeded)
}

func workloadOf(kind string, meta metav1.ObjectMeta, spec corev1.PodSpec, wanted, ready int32) Workload {
	applied := func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Manager && entry.Operation == metav1.ManagedFieldsOperationApply
	}
	return Workload{Kind: kind, Namespace: meta.Namespace, Name: meta.Name, Wanted: wanted, Ready: ready, Images: images(spec),
		Created: meta.CreationTimestamp.UTC(), Managed: slices.ContainsFunc(meta.ManagedFields, applied), Object: meta.Labels[LabelObject]}
}

// orOne is a number that is one where it is left out.
func orOne(number *int32) int32 {
	if number == nil {
		return 1
	}
	return *number
}

func images(spec corev1.PodSpec) []string {
	list := []string{}
	for _, container := range spec.Containers {
		list = append(list, container.Image)
	}
	return list
}

func podOf(p *corev1.Pod) Pod {
	found := Pod{Namespace: p.Namespace, Name: p.Name, State: cmp.Or(p.Status.Reason, string(p.Status.Phase)), Message: p.Status.Message,
		Node: p.Spec.NodeName, Address: p.Status.PodIP, Owner: ownerOf(p), Object: p.Labels[LabelObject], Created: p.CreationTimestamp.UTC(),
		Containers: []Container{}}
	for _, container := range p.Spec.InitContainers {
		found.Containers = append(found.Containers, containerOf(container, p.Status.InitContainerStatuses, true))
	}
	for _, container := range p.Spec.Containers {
		found.Containers = append(found.Containers, containerOf(container, p.Status.ContainerStatuses, false))
	}
	found.Healthy = p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodRunning
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			found.Message = condition.Message // such as that no node has room
		case condition.Type == corev1.PodReady && condition.Status != corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning:
			found.Healthy = false
		}
	}
	if p.Status.Phase != corev1.PodSucceeded {
		for _, container := range found.Containers {
			if container.State != stateRunning && (container.State != stateCompleted || !container.Init) && container.State != stateUnknown {
				found.State, found.Message = container.State, cmp.Or(container.Message, found.Message)
				break // the next pods wait for it
			}
		}
	}
	if p.DeletionTimestamp != nil {
		found.State, found.Healthy = "Terminating", false
	}
	return found
}

// States of containers where Kubernetes gives no reason of its own, and the reason of one that has ended well.
const (
	stateRunning   = "Running"
	stateWaiting   = "Waiting"
	stateEnded     = "Terminated"
	stateCompleted = "Completed"
	stateUnknown   = "Unknown"
)

func containerOf(spec corev1.Container, statuses []corev1.ContainerStatus, prepares bool) Container {
	found := Container{Name: spec.Name, Image: spec.Image, Init: prepares, State: stateUnknown}
	for _, status := range statuses {
		if status.Name != spec.Name {
			continue
		}
		found.Ready, found.Restarts = status.Ready, status.RestartCount
		switch state := status.State; {
		case state.Running != nil:
			started := state.Running.StartedAt.UTC()
			found.State, found.Started = stateRunning, &started
		case state.Terminated != nil:
			found.State, found.Message = cmp.Or(state.Terminated.Reason, stateEnded), state.Terminated.Message
			if state.Terminated.ExitCode != 0 {
				found.Message = cmp.Or(found.Message, fmt.Sprintf("it ended with exit code %d", state.Terminated.ExitCode))
			}
		case state.Waiting != nil:
			found.State, found.Message = cmp.Or(state.Waiting.Reason, stateWaiting), state.Waiting.Message
		}
	}
	return found
}

// ownerOf is the workload that a pod belongs to. A Deployment's pods belong to a ReplicaSet, whose name is the Deployment's and the hash of
// its pods' template.
func ownerOf(p *corev1.Pod) *Owner {
	of := metav1.GetControllerOf(p)
	if of == nil {
		return nil
	}
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; of.Kind == "ReplicaSet" && hash != "" {
		if name, ours := strings.CutSuffix(of.Name, "-"+hash); ours {
			return &Owner{Kind: "Deployment", Name: name}
		}
	}
	return &Owner{Kind: of.Kind, Name: of.Name}
}

func eventOf(e corev1.Event) Event {
	found := Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1), Last: e.LastTimestamp.UTC()}
	if e.Series != nil {
		found.Count, found.Last = max(e.Series.Count, 1), e.Series.LastObservedTime.UTC()
	}
	if e.LastTimestamp.IsZero() && e.Series == nil {
		found.Last = e.EventTime.UTC()
	}
	return found
}
