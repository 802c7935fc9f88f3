package workloads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// annotationRecreated changes when the pods of a Deployment are to be made anew: it holds the task that asked for it.
	annotationRecreated = "burano.io/recreated-by"
	// recreateManager owns that annotation, so that applying the Deployment again, which does not have it, leaves it.
	recreateManager = "burano-recreate"
)

// refuseJob is the error for an operation that only pods without an end support.
func refuseJob(pod *muranopl.Object, what string) error {
	if kind := workloadKind(pod.Text("workload")); kind.ends() {
		return fault.New(fault.Invalid, "%s is a %s, whose pods end by themselves: there is nothing %s. Change the model and deploy it", pod, kind, what)
	}
	return nil
}

// refuseScaling is the error for the number of pods of a kind that has none.
func refuseScaling(pod *muranopl.Object) error {
	if pod.Text("workload") == string(kindDaemonSet) {
		return fault.New(fault.Invalid, "%s is a daemonSet, which has a pod on each node that its nodeSelector names: give nodes the labels, or take them away", pod)
	}
	return refuseJob(pod, "to be scaled")
}

// scale is the action that adds replicas (direction 1) or removes some (-1). One always stays.
func (p Pods) scale(direction int64) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		defer p.Clusters.Close()
		if err := refuseScaling(call.Object); err != nil {
			return nil, err
		}
		count, _ := call.Args["count"].(int64)
		now := int64(call.Object.Int("replicas"))
		target := now + direction*count
		if direction < 0 && target < 1 {
			p.Reports.Warn(ctx, call.Object, "At least one replica must remain", fmt.Sprintf("the pod has %d, so that %d can be removed", now, max(now-1, 0)))
			target = min(1, now)
		}
		if target == now {
			return nil, nil
		}
		if err := call.Object.Set("replicas", target); err != nil {
			return nil, err
		}
		_, err := call.Interpreter.Invoke(ctx, call.Object, task.MethodDeploy, nil)
		if err != nil {
			if undo := call.Object.Set("replicas", now); undo != nil {
				p.Reports.Logger.WarnContext(ctx, "the model keeps a number of replicas that are not there", "pod", call.Object.ID(), "error", undo)
			}
		}
		return nil, err
	}
}

// recreate is the action that replaces a pod's replicas by new ones: a new one comes before an old one goes. A single pod without
// replicas is deleted and made anew.
func (p Pods) recreate(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	api, err := p.Kubernetes(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	spec, err := PodSpecOf(call.Object)
	if err != nil {
		return nil, err
	}
	if spec.replicas == 0 && spec.options.kind == kindDeployment {
		err := p.Runtime.Step(ctx, call.Object, "remove the pod", func(ctx context.Context) error {
			return DeleteAndWait(ctx, api, kube.Ref{APIVersion: "v1", Kind: "Pod", Namespace: spec.inNamespace(), Name: kubeName(spec.name)})
		})
		if err != nil {
			return nil, err
		}
		return nil, p.bringUp(ctx, call.Interpreter, call.Object, 0)
	}
	switch spec.options.kind {
	case kindCronJob:
		return nil, refuseJob(call.Object, "to be recreated")
	case kindJob:
		err := p.Runtime.Step(ctx, call.Object, "remove the job", func(ctx context.Context) error {
			client, err := kubernetes.NewForConfig(api)
			if err != nil {
				return err
			}
			return removeJob(ctx, api, client, spec.inNamespace(), kubeName(spec.name))
		})
		if err != nil {
			return nil, err
		}
		return nil, p.bringUp(ctx, call.Interpreter, call.Object, 0)
	}
	p.Reports.Inform(ctx, call.Object, "Replacing the %d replicas of pod %s", spec.replicas, spec.name)
	return nil, p.Runtime.Step(ctx, call.Object, "recreate the pod", func(ctx context.Context) error {
		client, err := kubernetes.NewForConfig(api)
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{annotationRecreated: p.Runtime.TaskID()}}}}})
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: recreateManager}
		switch spec.options.kind {
		case kindStatefulSet:
			_, err = client.AppsV1().StatefulSets(spec.inNamespace()).Patch(ctx, kubeName(spec.name), types.StrategicMergePatchType, patch, options)
		case kindDaemonSet:
			_, err = client.AppsV1().DaemonSets(spec.inNamespace()).Patch(ctx, kubeName(spec.name), types.StrategicMergePatchType, patch, options)
		default:
			_, err = client.AppsV1().Deployments(spec.inNamespace()).Patch(ctx, kubeName(spec.name), types.StrategicMergePatchType, patch, options)
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s does not run: deploy the environment", spec.name)
		}
		if err != nil {
			return fmt.Errorf("have pod %s recreated: %w", spec.name, err)
		}
		return p.waitPod(ctx, call.Object, api, spec)
	})
}

// DeleteAndWait deletes an object and waits until it is gone.
func DeleteAndWait(ctx context.Context, api *rest.Config, ref kube.Ref) error {
	if err := kube.Delete(ctx, api, ref); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rolloutLimit, fmt.Errorf("it did not go within %s", rolloutLimit))
	defer cancel()
	return kube.Wait(ctx, api, ref, kube.Gone)
}

// restartContainers is the action that ends a pod's containers where they are; their kubelets start them again, with the pods'
// addresses and volumes. The next replica's turn comes when one is ready again.
func (p Pods) restartContainers(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	if err := refuseJob(call.Object, "to be restarted"); err != nil {
		return nil, err
	}
	api, _, found, err := p.running(ctx, call)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range found {
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
			continue
		}
		err := p.Runtime.Step(ctx, call.Object, "restart the containers of "+pod.Name, func(ctx context.Context) error {
			live, err := p.Clusters.Live(call.Object.Object("kubernetesCluster"))
			if err != nil {
				return err
			}
			return RestartPod(ctx, api, live, pod)
		})
		if err != nil {
			return nil, err
		}
		p.Reports.Inform(ctx, call.Object, "The containers of %s on %s were restarted", pod.Name, pod.Spec.NodeName)
	}
	return nil, nil
}

// running gives access to the cluster of an action's pod, and lists its running pods there.
func (p Pods) running(ctx context.Context, call muranopl.Call) (*rest.Config, kubernetes.Interface, []corev1.Pod, error) {
	api, err := p.Kubernetes(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, nil, nil, err
	}
	pods, err := listPods(ctx, client, placeOf(call.Object), labels.Set{LabelPod: call.Object.ID()})
	return api, client, pods, err
}

// RestartPod ends the containers of a pod where they are, and waits until their kubelet has started them again.
func RestartPod(ctx context.Context, api *rest.Config, live *nodes.Cluster, pod corev1.Pod) error {
	ended := map[string]string{} // container → id
	var ids []string
	for _, status := range pod.Status.ContainerStatuses {
		if _, id, ok := strings.Cut(status.ContainerID, "://"); ok && status.State.Running != nil {
			ended[status.Name] = status.ContainerID
			ids = append(ids, id)
		}
	}
	if err := live.EndContainers(ctx, pod.Spec.NodeName, ids); err != nil {
		return fmt.Errorf("end the containers of %s: %w", pod.Name, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, rolloutLimit, fmt.Errorf("they were not ready within %s", rolloutLimit))
	defer cancel()
	return waitForPod(limited, api, pod.Namespace, pod.Name, func(now *corev1.Pod) bool {
		ready := 0
		for _, status := range now.Status.ContainerStatuses {
			if status.Ready && status.ContainerID != ended[status.Name] {
				ready++
			}
		}
		return ready == len(now.Spec.Containers) && now.Status.Phase == corev1.PodRunning
	})
}

// restartPoll is how often a pod is looked at whose containers start again.
const restartPoll = 200 * time.Millisecond

// waitForPod waits until a pod is as wanted. One that is gone cannot become so.
func waitForPod(ctx context.Context, api *rest.Config, namespace, name string, wanted func(*corev1.Pod) bool) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	err = wait.Every(restartPoll).Until(ctx, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !wanted(pod) {
			return wait.Again(nil)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the containers of %s: %w", name, err)
	}
	return nil
}
