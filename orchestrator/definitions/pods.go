package definitions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// client connects to the API of a cluster that is there.
func (d Definitions) client(ctx context.Context, cluster *muranopl.Object, method string) (*rest.Config, kubernetes.Interface, error) {
	api, err := d.open(ctx, cluster, method)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(api)
	return api, client, err
}

// deleteController deletes a replication controller with its pods. One that is not there is no error.
func (d Definitions) deleteController(ctx context.Context, call muranopl.Call) (any, error) {
	name, _ := call.Args["id"].(string)
	if name == "" {
		return nil, fault.New(fault.Invalid, "deleteReplicationController: id is empty: give the name of the controller")
	}
	api, err := d.open(ctx, call.Object, call.Method.Name)
	if err != nil {
		return nil, err
	}
	one := entry{Kind: kindController, Namespace: known.Namespace, Name: name}
	return nil, d.Runtime.Step(ctx, call.Object, "remove "+one.ref().String(), func(ctx context.Context) error { return d.delete(ctx, api, call.Object, one) })
}

// deletePods deletes the pods that have all of some labels.
func (d Definitions) deletePods(ctx context.Context, call muranopl.Call) (any, error) {
	chosen, err := labelsIn(call.Args["labels"])
	if err != nil {
		return nil, fault.New(fault.Invalid, "deletePods: %w", err)
	}
	_, client, err := d.client(ctx, call.Object, call.Method.Name)
	if err != nil {
		return nil, err
	}
	return nil, d.Runtime.Step(ctx, call.Object, "remove the pods with "+chosen.String(), func(ctx context.Context) error {
		err := client.CoreV1().Pods(known.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: chosen.String()})
		if err != nil {
			return fmt.Errorf("delete the pods with %s: %w", chosen, err)
		}
		return nil
	})
}

// labelsIn reads labels, which are a map or a text of pairs. All pods have no labels at all, so that none is an error.
func labelsIn(value any) (labels.Set, error) {
	set := labels.Set{}
	switch value := value.(type) {
	case string:
		found, err := labels.ConvertSelectorToLabelsMap(value)
		if err != nil {
			return nil, fmt.Errorf("labels are %q: write key=value,other=value: %w", value, err)
		}
		set = found
	case map[string]any:
		for key, one := range value {
			text, is := one.(string)
			if !is {
				return nil, fmt.Errorf("label %s is %v: labels are texts, so write numbers and booleans in quotes", key, one)
			}
			set[key] = text
		}
	default:
		return nil, fmt.Errorf("labels are %v: give a map of texts, or a text such as app=web,tier=front", value)
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("labels are empty, which would be all pods of namespace %s: give at least one", known.Namespace)
	}
	if _, err := labels.ValidatedSelectorFromSet(set); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return set, nil
}

// scale sets the number of pods of a replication controller.
func (d Definitions) scale(ctx context.Context, call muranopl.Call) (any, error) {
	name, _ := call.Args["rcName"].(string)
	size, _ := call.Args["newSize"].(int64)
	_, client, err := d.client(ctx, call.Object, call.Method.Name)
	if err != nil {
		return nil, err
	}
	controllers := client.CoreV1().ReplicationControllers(known.Namespace)
	return nil, d.Runtime.Step(ctx, call.Object, fmt.Sprintf("scale ReplicationController %s to %d", name, size), func(ctx context.Context) error {
		now, err := controllers.GetScale(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return d.noController(ctx, client, call.Object, name)
		}
		if err != nil {
			return fmt.Errorf("read ReplicationController %s: %w", name, err)
		}
		if int64(now.Spec.Replicas) == size {
			return nil
		}
		now.Spec.Replicas = int32(size)
		if _, err := controllers.UpdateScale(ctx, name, now, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("scale ReplicationController %s to %d: %w", name, size, err)
		}
		return nil
	})
}

// noController is the error for a controller that is not there.
func (d Definitions) noController(ctx context.Context, client kubernetes.Interface, cluster *muranopl.Object, name string) error {
	for _, pod := range d.Objects.All(task.ClassPod) {
		if pod.Text("name") == name && pod.Object("kubernetesCluster") == cluster {
			return fault.New(fault.Invalid, "scaleRc: %s is a %s: change its replicas, or call its scalePodUp or scalePodDown", name, task.ClassPod)
		}
	}
	there, err := client.CoreV1().ReplicationControllers(known.Namespace).List(ctx, metav1.ListOptions{Limit: 20})
	if err != nil {
		return fmt.Errorf("list the replication controllers: %w", err)
	}
	names := []string{}
	for _, one := range there.Items {
		names = append(names, one.Name)
	}
	return fault.New(fault.NotFound, "scaleRc: cluster %s has no ReplicationController %s in namespace %s; it has %s", cluster.Text("name"), name, known.Namespace,
		cmp.Or(strings.Join(names, ", "), "none"))
}

// restart ends the containers of a pod, or of all pods of a controller, on all nodes.
func (d Definitions) restart(ctx context.Context, call muranopl.Call) (any, error) {
	name, _ := call.Args["podName"].(string)
	found, err := d.restartOn(ctx, call.Object, call.Method.Name, name, "")
	if err == nil && found == 0 {
		err = fault.New(fault.NotFound, "restartContainers: in namespace %s of cluster %s runs no pod %s, and no pod of a controller of that name", known.Namespace, call.Object.Text("name"), name)
	}
	return nil, err
}

// restartOnNode is restart for the pods of one minion, which need not have any.
func (d Definitions) restartOnNode(ctx context.Context, call muranopl.Call) (any, error) {
	cluster := call.Object.FindEmbedded(task.ClassCluster)
	if cluster == nil {
		return nil, fault.New(fault.Invalid, "restartContainers: %s belongs to no cluster", call.Object)
	}
	node, err := clusters.NodeNamesOf(d.Clusters).NameOf(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	name, _ := call.Args["podName"].(string)
	_, err = d.restartOn(ctx, cluster, call.Method.Name, name, node)
	return nil, err
}

// restartOn restarts the containers of pods of a name on a node, "" for all nodes, one pod after another. It returns the number of pods of the name.
func (d Definitions) restartOn(ctx context.Context, cluster *muranopl.Object, method, name, node string) (found int, err error) {
	api, client, err := d.client(ctx, cluster, method)
	if err != nil {
		return 0, err
	}
	live, err := d.Live(cluster)
	if err != nil {
		return 0, err
	}
	options := metav1.ListOptions{}
	if node != "" {
		options.FieldSelector = "spec.nodeName=" + node
	}
	all, err := client.CoreV1().Pods(known.Namespace).List(ctx, options)
	if err != nil {
		return 0, fmt.Errorf("list the pods of namespace %s: %w", known.Namespace, err)
	}
	slices.SortFunc(all.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range all.Items {
		if !called(pod, name) || pod.DeletionTimestamp != nil {
			continue
		}
		found++
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning { // its containers are about to begin
			continue
		}
		err := d.Runtime.Step(ctx, cluster, "restart the containers of "+pod.Name, func(ctx context.Context) error { return workloads.RestartPod(ctx, api, live, pod) })
		if err != nil {
			return found, err
		}
		d.Reports.Inform(ctx, cluster, "The containers of %s on %s were restarted", pod.Name, pod.Spec.NodeName)
	}
	return found, nil
}

// called reports whether a pod, or the controller that it belongs to, has a name.
func called(pod corev1.Pod, name string) bool {
	if pod.Name == name {
		return true
	}
	owner := metav1.GetControllerOf(&pod)
	if owner == nil {
		return false
	}
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	return owner.Name == name || owner.Kind == "ReplicaSet" && hash != "" && owner.Name == name+"-"+hash
}
