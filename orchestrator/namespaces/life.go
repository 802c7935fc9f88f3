package namespaces

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/burano/burano/nodes/kube"
)

// labelOf is on namespaces that Burano has made: the id of the cluster's object. Others are used as they are, and never deleted.
const labelOf = "burano.io/namespace-of"

// Ours reports whether Burano has made a namespace.
func Ours(namespace *corev1.Namespace) bool { return namespace.Labels[labelOf] != "" }

// Enforced is the level that Kubernetes enforces in a namespace; "" for none.
func Enforced(namespace *corev1.Namespace) podsecurity.Level {
	if level := namespace.Labels[podsecurity.EnforceLevelLabel]; IsLevel(level) {
		return podsecurity.Level(level)
	}
	return ""
}

// Object is a namespace of a cluster's pods as Burano makes it.
func Object(name, cluster string, level podsecurity.Level) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelOf: cluster, podsecurity.EnforceLevelLabel: string(level), podsecurity.WarnLevelLabel: string(level)}},
	}
}

// Make makes a namespace, or changes the level of a present one that Burano has made. Another one stays as it is.
func Make(ctx context.Context, api *rest.Config, client kubernetes.Interface, wanted *corev1.Namespace) (made bool, err error) {
	now, err := client.CoreV1().Namespaces().Get(ctx, wanted.Name, metav1.GetOptions{})
	if err == nil && now.DeletionTimestamp != nil {
		if err := kube.Wait(ctx, api, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: wanted.Name}, kube.Gone); err != nil {
			return false, fmt.Errorf("wait for the end of the former namespace %s: %w", wanted.Name, err)
		}
		now, err = client.CoreV1().Namespaces().Get(ctx, wanted.Name, metav1.GetOptions{})
	}
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing:
		return false, fmt.Errorf("read namespace %s: %w", wanted.Name, err)
	case !missing && !Ours(now):
		return false, nil
	}
	return missing, kube.Apply(ctx, api, kube.Manager, wanted)
}

// Gone are the pods that have left the model. Their objects are about to go, but not the claims that stay.
type Gone interface {
	Pod(id string) bool
	// Marks are the labels with the ids of pods, and the label of a claim that goes with its pod.
	Marks() (ids []string, withPod string)
}

// Leaving is a namespace that Burano has made; nil for none. left names an object for which it stays when the pods are gone.
func Leaving(ctx context.Context, api *rest.Config, client kubernetes.Interface, name string, gone Gone) (now *corev1.Namespace, left string, err error) {
	now, err = client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (!Ours(now) || now.DeletionTimestamp != nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	left, err = leftIn(ctx, api, client.Discovery(), name, gone)
	return now, left, err
}

// Delete deletes this very namespace.
func Delete(ctx context.Context, client kubernetes.Interface, now *corev1.Namespace) error {
	err := client.CoreV1().Namespaces().Delete(ctx, now.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(now.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", now.Name, err)
	}
	return nil
}

// passing are kinds whose objects Kubernetes makes by itself.
var passing = []string{"events", "endpoints", "endpointslices", "leases"}

// leftIn names an object in a namespace that is there for its own sake; "" for none.
func leftIn(ctx context.Context, api *rest.Config, found discovery.DiscoveryInterface, namespace string, gone Gone) (string, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(found)
	if err != nil {
		return "", fmt.Errorf("list the kinds of objects: %w", err)
	}
	client, err := metadata.NewForConfig(api)
	if err != nil {
		return "", err
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || slices.Contains(passing, kind.Name) || strings.HasPrefix(group.Group, "metrics.") {
				continue
			}
			objects, err := client.Resource(group.WithResource(kind.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("list the %s of namespace %s: %w", kind.Name, namespace, err)
			}
			for i := range objects.Items {
				if one := &objects.Items[i]; stays(kind.Name, one, gone) {
					return kind.Kind + " " + one.Name, nil
				}
			}
		}
	}
	return "", nil
}

// stays reports whether an object is more than an object of each namespace, or than a trace of pods that have left.
func stays(kind string, object *metav1.PartialObjectMetadata, gone Gone) bool {
	labels, withPod := gone.Marks()
	id := ""
	for _, label := range labels {
		id += object.Labels[label]
	}
	switch {
	case object.DeletionTimestamp != nil, kind == "configmaps" && object.Name == "kube-root-ca.crt", kind == "serviceaccounts" && object.Name == "default":
		return false
	case id == "" || !gone.Pod(id):
		return true
	}
	return kind == "persistentvolumeclaims" && object.Labels[withPod] == ""
}
