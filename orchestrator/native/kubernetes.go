package native

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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
)

// deleteServices deletes the Services with these labels.
func deleteServices(ctx context.Context, api *rest.Config, selector labels.Set) error {
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

// deleteWorkloads deletes the Deployments with these labels, then the pods and their disruption budgets.
func deleteWorkloads(ctx context.Context, api *rest.Config, selector labels.Set) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	list := metav1.ListOptions{LabelSelector: selector.String()}
	foreground := metav1.DeletePropagationBackground
	return errors.Join(
		client.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &foreground}, list),
		client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list),
		client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list))
}

// waitDeployment waits until every replica of the Deployment runs in its newest form.
func waitDeployment(ctx context.Context, api *rest.Config, name string) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	source := cache.NewListWatchFromClient(client.AppsV1().RESTClient(), "deployments", namespace, only)
	_, err = watchtools.UntilWithSync(ctx, source, &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		status := deployment.Status
		return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == *deployment.Spec.Replicas &&
			status.AvailableReplicas == *deployment.Spec.Replicas && status.Replicas == *deployment.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the replicas of Deployment %s: %w", name, err)
	}
	return nil
}

// waitPods waits until one pod with these labels runs.
func waitPods(ctx context.Context, api *rest.Config, selector labels.Set) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
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
	_, err = watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && event.Type != watch.Deleted && pod.Status.Phase == corev1.PodRunning, nil
	})
	if err != nil {
		return fmt.Errorf("wait for a pod with %s: %w", selector, err)
	}
	return nil
}
