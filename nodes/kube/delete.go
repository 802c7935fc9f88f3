package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Delete deletes one object; one that is not there is no error. It does not wait until the object is gone.
func Delete(ctx context.Context, config *rest.Config, ref Ref) error {
	client, err := NewClient(config)
	if err != nil {
		return err
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	err = persist(ctx, func(ctx context.Context) error {
		resource, err := client.resource(version.WithKind(ref.Kind), ref.Namespace)
		if err != nil {
			return err
		}
		err = resource.Delete(ctx, ref.Name, metav1.DeleteOptions{})
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
