package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/external-attacher/v4/pkg/attacher"
	attaching "github.com/kubernetes-csi/external-attacher/v4/pkg/controller"
	resizing "github.com/kubernetes-csi/external-resizer/v2/pkg/controller"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// cinderDriver is the provisioner, and the CSI driver, of volumes that are Cinder's.
	cinderDriver = "cinder.burano.io"
	// cinderNode is the label of nodes to which such volumes can be attached, and cinderZone the label of their zone (storage-node passes both to the
	// kubelet).
	cinderNode = "cinder.burano.io/node"
	cinderZone = "cinder.burano.io/zone"
	// cinderFileSystem is the default file system of volumes.
	cinderFileSystem = "ext4"
	// cinderPatience is the limit of one call; a longer operation is asked for again.
	cinderPatience = 90 * time.Second
	// cinderWorkers is how much of each kind is done at the same time.
	cinderWorkers = 10
)

// The parameters of a call that name the volume's owner, for people who look at it in Cinder.
const (
	claimName      = "csi.storage.k8s.io/pvc/name"
	claimNamespace = "csi.storage.k8s.io/pvc/namespace"
)

// provideCinder gives claims volumes of Cinder, attaches these to the nodes of their pods, and grows them with their claims. The calls to the cloud are
// made by the Burano server that connects to the link.
func provideCinder(link *link) part {
	return func(ctx context.Context, config *rest.Config, client kubernetes.Interface, factory informers.SharedInformerFactory) error {
		snapshots, err := snapshotclient.NewForConfig(config)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		volumes := csi.NewControllerClient(link.client)

		patience := cinderPatience
		persistent, attachments, nodes := factory.Core().V1().PersistentVolumes(), factory.Storage().V1().VolumeAttachments(), factory.Storage().V1().CSINodes()
		places := factory.Core().V1().Nodes()
		placesKnown := places.Informer().HasSynced
		handler := attaching.NewCSIHandler(client, cinderDriver, attacher.NewAttacher(link.client), nil, persistent.Lister(), nodes.Lister(), attachments.Lister(),
			&patience, false, true, translation.New(), cinderFileSystem)
		attach := attaching.NewCSIAttachController(klog.FromContext(ctx), client, cinderDriver, handler, attachments, persistent, retries(), retries(), false, 0)
		resize := resizing.NewResizeController(cinderDriver, cinderResizer{ctx, volumes}, client, resync, factory, retries(), false, time.Minute)
		provision := provisionerOf(ctx, client, cinderDriver, cinderProvisioner{client, snapshots, volumes, places.Lister()})
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), placesKnown) {
			return ctx.Err()
		}
		return firstOf(
			func() error { attach.Run(ctx, cinderWorkers, nil); return ctx.Err() },
			func() error { resize.Run(cinderWorkers, ctx, nil); return ctx.Err() },
			func() error { provision.Run(ctx); return ctx.Err() },
			func() error { return serveSnapshots(ctx, link.client, snapshots, client, factory) },
		)
	}
}

// provisionerOf makes and deletes volumes of a driver.
func provisionerOf(ctx context.Context, client kubernetes.Interface, driver string, of controller.Provisioner) *controller.ProvisionController {
	return controller.NewProvisionController(ctx, client, driver, of,
		controller.LeaderElection(false), // it runs only where that is decided
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
		controller.Threadiness(cinderWorkers),
		controller.AddFinalizer(true),
		controller.ProvisionTimeout(cinderPatience),
		controller.DeletionTimeout(cinderPatience),
		controller.RetryIntervalMax(time.Minute))
}

// firstOf runs functions until the first of them ends, and returns its error.
func firstOf(runs ...func() error) error {
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run() }()
	}
	return <-ended
}

// retries are how long is waited before something is tried again that failed.
func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
}

var _ controller.BlockProvisioner = cinderProvisioner{}

// cinderProvisioner has volumes be made and deleted.
type cinderProvisioner struct {
	client    kubernetes.Interface
	snapshots snapshotclient.Interface
	volumes   csi.ControllerClient
	nodes     listers.NodeLister
}

// Provision is controller.Provisioner's.
func (p cinderProvisioner) Provision(ctx context.Context, order controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	claim := order.PVC
	if err := suitsCinder(claim.Spec); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	fileSystem, err := fileSystemOf(order.StorageClass.Parameters)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	zone, err := p.zone(order)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	source, err := sourceOf(ctx, p.client, p.snapshots, claim)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	parameters := map[string]string{claimName: claim.Name, claimNamespace: claim.Namespace}
	for name, value := range order.StorageClass.Parameters {
		parameters[name] = value
	}
	if zone != "" {
		parameters[zoneParameter] = zone
	}
	made, err := p.volumes.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: order.PVName, CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()}, Parameters: parameters, VolumeContentSource: source,
		VolumeCapabilities: capabilitiesOf(claim.Spec, fileSystem, order.StorageClass.MountOptions)})
	if err != nil {
		return nil, provisioning(err), said(err)
	}
	if isBlock(claim.Spec.VolumeMode) {
		fileSystem = ""
	}
	if zone != "" { // an earlier call, for another node, may have made it elsewhere
		for _, place := range made.Volume.AccessibleTopology {
			zone = cmp.Or(place.Segments[cinderZone], zone)
		}
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: order.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *order.StorageClass.ReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			MountOptions:                  order.StorageClass.MountOptions,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(made.Volume.CapacityBytes, resource.BinarySI)},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: cinderDriver, VolumeHandle: made.Volume.VolumeId, FSType: fileSystem}},
			NodeAffinity:                  affinity(zone),
		},
	}, controller.ProvisioningFinished, nil
}

// provisioning reports whether a volume may exist, or may come to exist, although the call failed.
func provisioning(err error) controller.ProvisioningState {
	if errors.Is(err, errAlone) {
		return controller.ProvisioningNoChange
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.ResourceExhausted, codes.FailedPrecondition, codes.OutOfRange, codes.AlreadyExists, codes.PermissionDenied:
		return controller.ProvisioningFinished
	}
	return controller.ProvisioningInBackground
}

// said is an error for people: without gRPC's wrapping.
func said(err error) error {
	if told, ok := status.FromError(err); ok {
		return errors.New(told.Message())
	}
	return err
}

// suitsCinder returns the property of a claim that a volume of Cinder cannot have.
func suitsCinder(claim v1.PersistentVolumeClaimSpec) error {
	for _, mode := range claim.AccessModes {
		if mode != v1.ReadWriteOnce && mode != v1.ReadWriteOncePod {
			return fmt.Errorf("a volume of Cinder is attached to one node at a time, and %s is asked for: use a class of another back-end, or ReadWriteOnce", mode)
		}
	}
	if claim.Selector != nil {
		return errors.New("a volume of Cinder is made for its claim, and a selector is asked for: leave it out")
	}
	return nil
}

// Delete is controller.Provisioner's.
func (p cinderProvisioner) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != cinderDriver {
		return &controller.IgnoredError{Reason: "it is no volume of Cinder"}
	}
	_, err := p.volumes.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle})
	if err != nil {
		return said(err)
	}
	return nil
}

// cinderResizer has volumes grow.
type cinderResizer struct {
	ctx     context.Context // resizer.Resizer has none
	volumes csi.ControllerClient
}

// Name is resizer.Resizer's.
func (cinderResizer) Name() string { return cinderDriver }

// DriverSupportsControlPlaneExpansion is resizer.Resizer's.
func (cinderResizer) DriverSupportsControlPlaneExpansion() bool { return true }

// CanSupport is resizer.Resizer's.
func (cinderResizer) CanSupport(volume *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == cinderDriver
}

// Resize is resizer.Resizer's. Errors stay gRPC's: by their code it is decided whether the size may be taken back.
func (r cinderResizer) Resize(volume *v1.PersistentVolume, size resource.Quantity) (resource.Quantity, bool, error) {
	ctx, cancel := context.WithTimeout(r.ctx, cinderPatience)
	defer cancel()
	request := &csi.ControllerExpandVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle, CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()}}
	if isBlock(volume.Spec.VolumeMode) {
		request.VolumeCapability = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	grown, err := r.volumes.ControllerExpandVolume(ctx, request)
	if err != nil {
		return volume.Spec.Capacity[v1.ResourceStorage], false, err
	}
	return *resource.NewQuantity(grown.CapacityBytes, resource.BinarySI), grown.NodeExpansionRequired, nil
}
