package kube

import (
	"context"
	_ "embed"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// SnapshotsFile is where the node image has the definitions of VolumeSnapshots. Where it has them, its storage-controllers serve these.
const SnapshotsFile = "/opt/burano/manifests/volume-snapshots.yaml"

//go:embed manifests/snapshot-class.yaml
var snapshotClass []byte

// EnsureSnapshots makes a cluster know VolumeSnapshots by their definitions, and the default class of Cinder's snapshots, cinder. A definition, or a class
// of that name, by another maker stays as it is; left names it.
func EnsureSnapshots(ctx context.Context, config *rest.Config, definitions []runtime.Object) (left []string, err error) {
	return ensureDefinitions(ctx, config, func(has, _ *unstructured.Unstructured) bool { return ours(has) }, definitions, snapshotClass)
}

// VolumeSnapshots are a back-end's names of the cluster's snapshots; none if the cluster has no VolumeSnapshots.
func VolumeSnapshots(ctx context.Context, config *rest.Config, of Storage) (handles []string, err error) {
	client, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	list, err := client.dynamic.Resource(schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at snapshots of volumes: %w", err)
	}
	for _, one := range list.Items {
		driver, _, _ := unstructured.NestedString(one.Object, "spec", "driver")
		handle, _, _ := unstructured.NestedString(one.Object, "status", "snapshotHandle")
		if driver == of.Driver() && handle != "" {
			handles = append(handles, handle)
		}
	}
	return handles, nil
}
