package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Manager is the field manager under which Burano applies objects.
const Manager = "burano"

// Shared is a config whose clients all use one transport, and so one connection, where each would make its own.
func Shared(config *rest.Config) (*rest.Config, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a connection to the API server: %w", err)
	}
	return &rest.Config{Host: config.Host, Transport: transport, UserAgent: config.UserAgent, QPS: config.QPS, Burst: config.Burst, WarningHandler: config.WarningHandler}, nil
}

// Protobuf has typed clients of a config speak protobuf, which is read much faster than JSON: nodes list their images.
func Protobuf(config *rest.Config) *rest.Config {
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	return config
}

// Client applies objects of any kind and waits for them. It asks the API server about each group of kinds once, and not about those that every API server has.
type Client struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface // which answers with no more than that
	discovery discovery.DiscoveryInterface
	groups    map[schema.GroupVersion][]metav1.APIResource
}

// NewClient makes a client; it is not for use by several goroutines at once.
func NewClient(config *rest.Config) (*Client, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	answers, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return &Client{dynamic: objects, metadata: answers, discovery: kinds, groups: map[schema.GroupVersion][]metav1.APIResource{}}, nil
}

// Apply makes objects be as given, by server-side apply as fieldManager: what others set stays, conflicts are ours to win.
// Objects are applied in order and may be unstructured or typed, typed ones with apiVersion and kind set.
func Apply(ctx context.Context, config *rest.Config, fieldManager string, objects ...runtime.Object) error {
	client, err := NewClient(config)
	if err != nil {
		return err
	}
	return client.Apply(ctx, fieldManager, objects...)
}

// Apply is the function Apply with this client.
func (c *Client) Apply(ctx context.Context, fieldManager string, objects ...runtime.Object) error {
	for _, object := range objects {
		content, err := plain(object)
		if err != nil {
			return err
		}
		text, err := textOf(object, content)
		if err != nil {
			return err
		}
		if err := c.apply(ctx, fieldManager, content, text); err != nil {
			return fmt.Errorf("apply %s: %w", describe(content), plainly(err))
		}
	}
	return nil
}

// apply has the API server answer with metadata alone: nobody reads what it makes of an object, and some are large.
func (c *Client) apply(ctx context.Context, fieldManager string, content *unstructured.Unstructured, text []byte) error {
	resource, namespace, err := c.place(content.GroupVersionKind(), content.GetNamespace())
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}.ToPatchOptions()
	_, err = c.metadata.Resource(resource).Namespace(namespace).Patch(ctx, content.GetName(), types.ApplyPatchType, text, options)
	return err
}

// Leaves tells whether Apply of an object would leave a field of the one that is there as it is. It is false when there is none, or when it would be
// refused.
func Leaves(ctx context.Context, config *rest.Config, fieldManager string, object runtime.Object, field ...string) (bool, error) {
	now, then, err := try(ctx, config, fieldManager, object)
	if apierrors.IsInvalid(err) || err == nil && now == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before, _, _ := unstructured.NestedFieldNoCopy(now.Object, field...)
	after, _, _ := unstructured.NestedFieldNoCopy(then.Object, field...)
	return equality.Semantic.DeepEqual(before, after), nil
}

// plain gives an object the form that server-side apply sends: only what was set, no status, no server's fields.
func plain(object runtime.Object) (*unstructured.Unstructured, error) {
	var content *unstructured.Unstructured
	switch object := object.(type) {
	case *written:
		content = object.Unstructured
	case *unstructured.Unstructured:
		content = object
	default:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("apply a %T: %w", object, err)
		}
		content = &unstructured.Unstructured{Object: fields}
		unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content.Object, "spec", "template", "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content.Object, "status")
	}
	if content.GetAPIVersion() == "" || content.GetKind() == "" || content.GetName() == "" {
		return nil, fmt.Errorf("apply a %T: apiVersion, kind and metadata.name must be set", object)
	}
	return content, nil
}

// textOf is the JSON of an object that plain gave its form.
func textOf(object runtime.Object, content *unstructured.Unstructured) ([]byte, error) {
	if written, is := object.(*written); is {
		return written.text, nil
	}
	text, err := json.Marshal(content.Object)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", describe(content), err)
	}
	return text, nil
}

func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// resource finds how the objects of a kind are called in URLs. A namespaced object without namespace is in "default".
func (c *Client) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	resource, namespace, err := c.place(kind, namespace)
	if err != nil {
		return nil, err
	}
	return c.dynamic.Resource(resource).Namespace(namespace), nil
}

// place is what resource finds; namespace is "" for objects that are in none.
func (c *Client) place(kind schema.GroupVersionKind, in string) (resource schema.GroupVersionResource, namespace string, err error) {
	version := kind.GroupVersion()
	resources, known := c.groups[version]
	if always, is := builtIn[kind]; is {
		resources, known = []metav1.APIResource{always}, true
	}
	if !known {
		list, err := c.discovery.ServerResourcesForGroupVersion(version.String())
		if err != nil {
			return resource, "", fmt.Errorf("ask for the kinds of %s: %w", version, err)
		}
		resources = list.APIResources
		c.groups[version] = resources
	}
	for _, one := range resources {
		if one.Kind != kind.Kind || isSubresource(one.Name) {
			continue
		}
		if one.Namespaced {
			namespace = cmp.Or(in, metav1.NamespaceDefault)
		}
		return version.WithResource(one.Name), namespace, nil
	}
	return resource, "", &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}

// builtIn are kinds that every API server has.
var builtIn = kinds(map[string][]string{
	"v1 ns":                           {"ConfigMap", "Endpoints", "Event", "PersistentVolumeClaim", "Pod", "ReplicationController", "Secret", "Service", "ServiceAccount"},
	"v1":                              {"Namespace", "Node", "PersistentVolume"},
	"apps/v1 ns":                      {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch/v1 ns":                     {"CronJob", "Job"},
	"policy/v1 ns":                    {"PodDisruptionBudget"},
	"rbac.authorization.k8s.io/v1 ns": {"Role", "RoleBinding"},
	"rbac.authorization.k8s.io/v1":    {"ClusterRole", "ClusterRoleBinding"},
	"networking.k8s.io/v1":            {"IngressClass"},
	"discovery.k8s.io/v1 ns":          {"EndpointSlice"},
	"storage.k8s.io/v1":               {"StorageClass"},
	"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io/v1":       {"APIService"},
})

// kinds are those of groups by their versions, with " ns" behind a version for kinds whose objects are in namespaces.
func kinds(of map[string][]string) map[schema.GroupVersionKind]metav1.APIResource {
	all := map[schema.GroupVersionKind]metav1.APIResource{}
	for text, names := range of {
		text, namespaced := strings.CutSuffix(text, " ns")
		version, _ := schema.ParseGroupVersion(text)
		for _, name := range names {
			kind := version.WithKind(name)
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			all[kind] = metav1.APIResource{Name: plural.Resource, Kind: name, Namespaced: namespaced}
		}
	}
	return all
}

func isSubresource(name string) bool {
	for _, letter := range name {
		if letter == '/' {
			return true
		}
	}
	return false
}

// errWatchEnded says that a watch has to be begun again.
var errWatchEnded = errors.New("the watch ended")
