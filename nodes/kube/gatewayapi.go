package kube

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// GatewayAPIFile is where the node image has the definitions of the kinds of Gateway API that gateways serve, of its standard channel.
const GatewayAPIFile = "/opt/burano/manifests/gateway-api.yaml"

//go:embed manifests/gateway-class.yaml
var gatewayClass []byte

// bundleVersion is the annotation of the definitions with their release.
const bundleVersion = "gateway.networking.k8s.io/bundle-version"

// EnsureGatewayAPI makes a cluster know the kinds of Gateway API by their definitions, and the class of gateways, burano. A foreign definition stays as it
// is. So does a definition of this or a later release, and a class of that name. left names them.
func EnsureGatewayAPI(ctx context.Context, config *rest.Config, definitions []runtime.Object) (left []string, err error) {
	return ensureDefinitions(ctx, config, older, definitions, gatewayClass)
}

// ensureDefinitions makes a cluster know kinds of objects by their definitions, and have objects of them. An existing object stays as it is unless it is
// outdated; left names objects of another maker. The definitions, which several clusters may share, are not changed.
func ensureDefinitions(ctx context.Context, config *rest.Config, outdated func(has, wanted *unstructured.Unstructured) bool, definitions []runtime.Object, of []byte) (left []string, err error) {
	objects, err := Objects(of)
	if err != nil {
		return nil, err
	}
	client, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Concat(definitions, objects) {
		object, err := plain(one)
		if err != nil {
			return nil, err
		}
		resource, err := client.resource(object.GroupVersionKind(), "")
		if err != nil {
			return nil, fmt.Errorf("apply %s: %w", describe(object), err)
		}
		has, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case err == nil && !outdated(has, object):
			if !ours(has) {
				left = append(left, describe(object))
			}
			continue
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("look for %s: %w", describe(object), err)
		}
		if err := client.Apply(ctx, Manager, one); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func ours(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == Manager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// older is true if an object is ours, and of an earlier release than another.
func older(has, other *unstructured.Unstructured) bool {
	one, err := semver.NewVersion(has.GetAnnotations()[bundleVersion])
	if err != nil || !ours(has) {
		return false
	}
	two, err := semver.NewVersion(other.GetAnnotations()[bundleVersion])
	return err == nil && one.LessThan(two)
}
