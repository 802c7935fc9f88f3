package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/openstack"
)

// Clusters are the clusters of the model that workloads run in.
type Clusters interface {
	// EnsureOpen connects to a cluster as it is; Close ends all connections.
	EnsureOpen(ctx context.Context, cluster *muranopl.Object) error
	Close()
	Live(cluster *muranopl.Object) (*nodes.Cluster, error)
	Kubernetes(ctx context.Context, cluster *muranopl.Object) (*rest.Config, error)
	PodNetwork(ctx context.Context, cluster *muranopl.Object) (desired.PodNetwork, error)
	GatewayAddresses(cluster *muranopl.Object) []string
	// Await makes the end of the deployment wait until gateways answer at these ports.
	Await(cluster *muranopl.Object, ports ...uint16)
	// Remaining is the cluster of a destroyed object, and StillThere the cluster itself; nil if it is destroyed, too.
	Remaining(ctx context.Context, call muranopl.Call) (*muranopl.Object, error)
	StillThere(ctx context.Context, interpreter *muranopl.Interpreter, was *muranopl.Object) (*muranopl.Object, error)
}

// Regions are the regions of servers.
type Regions interface {
	Of(object *muranopl.Object) string
	Project(ctx context.Context, region string) (*openstack.Project, error)
}

// deleteServices deletes the Services of a namespace with these labels.
func deleteServices(ctx context.Context, api *rest.Config, namespace string, selector labels.Set) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	services := client.CoreV1().Services(namespace)
	found, err := services.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	for _, service := range found.Items {
		if err := services.Delete(ctx, service.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Service %s: %w", service.Name, err)
		}
	}
	return nil
}

// deleteWorkloads deletes the workloads of pods with these labels, then the pods, their disruption budgets, files and Secrets.
func deleteWorkloads(ctx context.Context, api *rest.Config, namespace string, selector labels.Set) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	list := metav1.ListOptions{LabelSelector: selector.String()}
	background := metav1.DeletePropagationBackground
	remove := metav1.DeleteOptions{PropagationPolicy: &background}
	return errors.Join(
		client.AppsV1().Deployments(namespace).DeleteCollection(ctx, remove, list),
		client.AppsV1().StatefulSets(namespace).DeleteCollection(ctx, remove, list),
		client.AppsV1().DaemonSets(namespace).DeleteCollection(ctx, remove, list),
		client.BatchV1().CronJobs(namespace).DeleteCollection(ctx, remove, list),
		client.BatchV1().Jobs(namespace).DeleteCollection(ctx, remove, list),
		client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list),
		client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list),
		client.CoreV1().ConfigMaps(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list),
		client.CoreV1().Secrets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list))
}

// deleteClaims deletes the persistent volumes with these labels that are to go with their pod, and returns the names of the others.
func deleteClaims(ctx context.Context, api *rest.Config, namespace string, selector labels.Set) (kept []string, err error) {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	claims := client.CoreV1().PersistentVolumeClaims(namespace)
	found, err := claims.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pod's persistent volumes: %w", err)
	}
	for _, claim := range found.Items {
		if claim.Labels[labelWithPod] == "" {
			kept = append(kept, claim.Name)
		} else if err := claims.Delete(ctx, claim.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return kept, fmt.Errorf("delete the persistent volume %s: %w", claim.Name, err)
		}
	}
	return kept, nil
}

// waitDeployment waits until every replica of the Deployment runs in its newest form.
func waitDeployment(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	err := follow(ctx, client.AppsV1().RESTClient(), "deployments", namespace, name, func(deployment *appsv1.Deployment) (bool, error) {
		status := deployment.Status
		return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == *deployment.Spec.Replicas &&
			status.AvailableReplicas == *deployment.Spec.Replicas && status.Replicas == *deployment.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the replicas of Deployment %s: %w", name, err)
	}
	return nil
}

// waitStatefulSet waits until every replica of the StatefulSet runs in its newest form.
func waitStatefulSet(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	err := follow(ctx, client.AppsV1().RESTClient(), "statefulsets", namespace, name, func(set *appsv1.StatefulSet) (bool, error) {
		status := set.Status
		return status.ObservedGeneration >= set.Generation && status.UpdateRevision == status.CurrentRevision &&
			status.AvailableReplicas == *set.Spec.Replicas && status.Replicas == *set.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the replicas of StatefulSet %s: %w", name, err)
	}
	return nil
}

// waitDaemonSet waits until a pod in the newest form runs on each node that the DaemonSet is for.
func waitDaemonSet(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	err := follow(ctx, client.AppsV1().RESTClient(), "daemonsets", namespace, name, func(set *appsv1.DaemonSet) (bool, error) {
		status := set.Status
		return status.ObservedGeneration >= set.Generation && status.UpdatedNumberScheduled == status.DesiredNumberScheduled &&
			status.NumberAvailable == status.DesiredNumberScheduled && status.NumberMisscheduled == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the pods of DaemonSet %s: %w", name, err)
	}
	return nil
}

// waitJob waits until the Job has done its work, or has failed.
func waitJob(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	return follow(ctx, client.BatchV1().RESTClient(), "jobs", namespace, name, func(job *batchv1.Job) (bool, error) {
		err := ended(job)
		if errors.Is(err, errJobRuns) {
			return false, nil
		}
		return true, err
	})
}

// follow watches an object until it is as wanted.
func follow[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, client cache.Getter, resource, namespace, name string, wanted func(P) (bool, error)) error {
	source := cache.NewListWatchFromClient(client, resource, namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	_, err := watchtools.UntilWithSync(ctx, source, P(new(T)), nil, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(P)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		return wanted(object)
	})
	return err
}

// waitPods waits until one pod with these labels runs.
func waitPods(ctx context.Context, client kubernetes.Interface, namespace string, selector labels.Set) error {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector.String()
			return client.CoreV1().Pods(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector.String()
			return client.CoreV1().Pods(namespace).Watch(ctx, options)
		},
	}, client)
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && event.Type != watch.Deleted && pod.Status.Phase == corev1.PodRunning, nil
	})
	if err != nil {
		return fmt.Errorf("wait for a pod with %s: %w", selector, err)
	}
	return nil
}

// waitLives waits until the containers of pods without a controller that have no probe run and have lived for a while.
func waitLives(ctx context.Context, client kubernetes.Interface, namespace string, selector labels.Set, lives time.Duration) error {
	began := map[string]time.Time{} // runs of containers, by when they were seen first
	return wait.Every(rolloutLook/4).Until(ctx, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
		if err != nil {
			return wait.Again(err)
		}
		now := time.Now()
		for _, pod := range pods.Items {
			for _, one := range pod.Spec.Containers {
				i := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == one.Name })
				if one.ReadinessProbe != nil {
					continue
				}
				if i < 0 || pod.Status.ContainerStatuses[i].State.Running == nil {
					return wait.Again(fmt.Errorf("container %s of %s does not run", one.Name, pod.Name))
				}
				status := pod.Status.ContainerStatuses[i]
				if began[status.ContainerID].IsZero() {
					began[status.ContainerID] = now
				}
				if now.Sub(began[status.ContainerID]) < lives && now.Sub(status.State.Running.StartedAt.Time) < settled {
					return wait.Again(fmt.Errorf("container %s of %s has not lived for %s yet", one.Name, pod.Name, lives))
				}
			}
		}
		return nil
	})
}
