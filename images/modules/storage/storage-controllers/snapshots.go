package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	common "github.com/kubernetes-csi/external-snapshotter/v8/pkg/common-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/metrics"
	sidecar "github.com/kubernetes-csi/external-snapshotter/v8/pkg/sidecar-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/snapshotter"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// snapshotPrefix and the VolumeSnapshot's uid are the name of a snapshot.
	snapshotPrefix = "snapshot"
	// kindsEvery is how often it is looked whether the cluster knows VolumeSnapshots.
	kindsEvery = 5 * time.Second
	// changesMode is the annotation of a VolumeSnapshotContent of which volumes of another mode than its source's may be made.
	changesMode = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
)

// serveSnapshots makes and deletes the snapshots of VolumeSnapshots, once the cluster has their kinds.
func serveSnapshots(ctx context.Context, link *grpc.ClientConn, snapshots snapshotclient.Interface, client kubernetes.Interface, core informers.SharedInformerFactory) error {
	err := wait.PollUntilContextCancel(ctx, kindsEvery, true, func(ctx context.Context) (bool, error) {
		_, err := snapshots.SnapshotV1().VolumeSnapshotClasses().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if err := snapshotscheme.AddToScheme(scheme.Scheme); err != nil { // Events are of them
		return err
	}
	factory := snapshotinformers.NewSharedInformerFactory(snapshots, resync)
	kinds, groups := factory.Snapshot().V1(), factory.Groupsnapshot().V1() // nothing is asked of the latter: groups of snapshots are off
	binding := common.NewCSISnapshotCommonController(snapshots, client, kinds.VolumeSnapshots(), kinds.VolumeSnapshotContents(), kinds.VolumeSnapshotClasses(),
		groups.VolumeGroupSnapshots(), groups.VolumeGroupSnapshotContents(), groups.VolumeGroupSnapshotClasses(),
		core.Core().V1().PersistentVolumeClaims(), core.Core().V1().PersistentVolumes(), nil, metrics.NewMetricsManager(), resync,
		retries(), retries(), retries(), retries(), false, true, false)
	making := sidecar.NewCSISnapshotSideCarController(snapshots, client, cinderDriver, kinds.VolumeSnapshotContents(), kinds.VolumeSnapshotClasses(),
		snapshotter.NewSnapshotter(link), nil, cinderPatience, resync, snapshotPrefix, -1, "", -1, true, retries(), false, groups.VolumeGroupSnapshotContents(), groups.VolumeGroupSnapshotClasses(), retries())
	factory.Start(ctx.Done())
	core.Start(ctx.Done())
	var working sync.WaitGroup
	working.Go(func() { binding.Run(cinderWorkers, ctx.Done(), &working) })
	working.Go(func() { making.Run(cinderWorkers, ctx.Done(), &working) })
	working.Wait()
	return ctx.Err()
}

// sourceOf is the source of the initial content of a claim's volume; nil for none.
func sourceOf(ctx context.Context, client kubernetes.Interface, snapshots snapshotclient.Interface, claim *v1.PersistentVolumeClaim) (*csi.VolumeContentSource, error) {
	from := claim.Spec.DataSourceRef // the API server sets it where the claim has the former field
	if from == nil {
		return nil, nil
	}
	if from.Namespace != nil && *from.Namespace != claim.Namespace {
		return nil, fmt.Errorf("its source is in namespace %s, and one of its own is served: leave the namespace out", *from.Namespace)
	}
	group := ""
	if from.APIGroup != nil {
		group = *from.APIGroup
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	switch {
	case group == snapshotv1.GroupName && from.Kind == "VolumeSnapshot":
		handle, err := snapshotOf(ctx, snapshots, claim, from.Name)
		if err != nil {
			return nil, fmt.Errorf("VolumeSnapshot %s, of which the volume is to be made: %w", from.Name, err)
		}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: handle}}}, nil
	case group == "" && from.Kind == "PersistentVolumeClaim":
		source, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, from.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("claim %s, of which the volume is to be a copy: %w", from.Name, err)
		}
		if source.Status.Phase != v1.ClaimBound || source.DeletionTimestamp != nil {
			return nil, fmt.Errorf("claim %s, of which the volume is to be a copy, has no volume yet, or is being deleted", from.Name)
		}
		if modeOf(source.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode) {
			return nil, fmt.Errorf("claim %s is of volumeMode %s, and the copy is to be of %s: use the same", from.Name, modeOf(source.Spec.VolumeMode), modeOf(claim.Spec.VolumeMode))
		}
		volume, err := client.CoreV1().PersistentVolumes().Get(ctx, source.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("the volume of claim %s, of which a copy is asked for: %w", from.Name, err)
		}
		if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != cinderDriver {
			return nil, fmt.Errorf("claim %s has no volume of Cinder, so no copy of it is made: use a class of the back-end that it has", from.Name)
		}
		if has := volume.Spec.Capacity[v1.ResourceStorage]; !holds(size, has) {
			return nil, fmt.Errorf("claim %s has %s, and a copy of %s is asked for: ask for as much at least", from.Name, has.String(), size.String())
		}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.Spec.CSI.VolumeHandle}}}, nil
	}
	return nil, fmt.Errorf("a volume of Cinder is made of a VolumeSnapshot or as a copy of a claim, and %s %s is asked for", from.Kind, from.Name)
}

// snapshotOf is Cinder's name of a VolumeSnapshot from which a claim's volume can be made.
func snapshotOf(ctx context.Context, snapshots snapshotclient.Interface, claim *v1.PersistentVolumeClaim, name string) (string, error) {
	snapshot, err := snapshots.SnapshotV1().VolumeSnapshots(claim.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", errors.New("there is none of that name")
	}
	if err != nil {
		return "", err
	}
	status := snapshot.Status
	if snapshot.DeletionTimestamp != nil || status == nil || status.BoundVolumeSnapshotContentName == nil || status.ReadyToUse == nil || !*status.ReadyToUse {
		return "", errors.New("it is not ready to use yet, or is being deleted")
	}
	content, err := snapshots.SnapshotV1().VolumeSnapshotContents().Get(ctx, *status.BoundVolumeSnapshotContentName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	switch {
	case content.Spec.VolumeSnapshotRef.UID != snapshot.UID || content.Status == nil || content.Status.SnapshotHandle == nil:
		return "", errors.New("its VolumeSnapshotContent is not of it")
	case content.Spec.Driver != cinderDriver:
		return "", fmt.Errorf("it is of driver %s: use a class of the back-end that it has", content.Spec.Driver)
	case content.Spec.SourceVolumeMode != nil && *content.Spec.SourceVolumeMode != modeOf(claim.Spec.VolumeMode) && content.Annotations[changesMode] != "true":
		return "", fmt.Errorf("it is of a volume of volumeMode %s, and one of %s is asked for: use the same", *content.Spec.SourceVolumeMode, modeOf(claim.Spec.VolumeMode))
	}
	if size := claim.Spec.Resources.Requests[v1.ResourceStorage]; status.RestoreSize != nil && !holds(size, *status.RestoreSize) {
		return "", fmt.Errorf("it has %s, and a volume of %s is asked for: ask for as much at least", status.RestoreSize.String(), size.String())
	}
	return *content.Status.SnapshotHandle, nil
}

// holds reports whether the volume that Cinder makes for a claim of a size has room for its source. Cinder makes volumes of whole GiB, so the source's
// claim may have asked for less than the source has.
func holds(size, source resource.Quantity) bool {
	const gib = 1 << 30
	return (size.Value()+gib-1)/gib*gib >= source.Value()
}

func modeOf(mode *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if mode == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *mode
}
