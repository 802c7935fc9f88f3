package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Delete deletes one object, and in the background the objects that it controls, also of a kind that keeps them by default (ReplicationController). One that
// is not there is no error. It does not wait until the object is gone.
func Delete(ctx context.Context, config *rest.Config, ref Ref) error {
	client, err := NewClient(config)
	if err != nil {
		return err
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	background := metav1.DeletePropagationBackground
	err = persist(ctx, func(ctx context.Context) error {
		resource, err := client.resource(version.WithKind(ref.Kind), ref.Namespace)
		if err != nil {
			return err
		}
		err = resource.Delete(ctx, ref.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	return nil
}

// Labels reads the labels of an object of any kind.
func Labels(ctx context.Context, config *rest.Config, ref Ref) (labels map[string]string, found bool, err error) {
	client, err := NewClient(config)
	if err != nil {
		return nil, false, err
	}
	resource, namespace, err := client.place(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", ref, err)
	}
	object, err := client.metadata.Resource(resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", ref, err)
	}
	return object.Labels, true, nil
}
