package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/external-attacher/v4/pkg/attacher"
	attaching "github.com/kubernetes-csi/external-attacher/v4/pkg/controller"
	resizing "github.com/kubernetes-csi/external-resizer/v2/pkg/controller"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// manilaDriver is the provisioner, and the CSI driver, of shares of Manila.
	manilaDriver = "manila.burano.io"
	// manilaNode is the label of nodes that can mount them (storage-node passes it to the kubelet).
	manilaNode = "manila.burano.io/node"
	// manilaService is the name of the Controller service for shares on the connection of the Burano server (orchestrator/volumes/shares.go), beside the
	// service for volumes of Cinder.
	manilaService = "io.burano.manila.v1.Controller"
)

// manilaConnection calls the Controller service for shares.
type manilaConnection struct{ grpc.ClientConnInterface }

// Invoke is grpc.ClientConnInterface's.
func (c manilaConnection) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, strings.Replace(method, csi.Controller_ServiceDesc.ServiceName, manilaService, 1), request, answer, options...)
}

// provideManila gives claims shares of Manila, and nodes of their pods access to them, and grows shares with their claims. The calls to the cloud are made
// by the Burano server that connects to the link.
func provideManila(link *link) part {
	return func(ctx context.Context, _ *rest.Config, client kubernetes.Interface, factory informers.SharedInformerFactory) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		shares := csi.NewControllerClient(manilaConnection{link.client})

		patience := cinderPatience
		persistent, attachments, nodes := factory.Core().V1().PersistentVolumes(), factory.Storage().V1().VolumeAttachments(), factory.Storage().V1().CSINodes()
		handler := attaching.NewCSIHandler(client, manilaDriver, manilaAttacher{shares}, nil, persistent.Lister(), nodes.Lister(), attachments.Lister(), &patience, true, true, translation.New(), "")
		attach := attaching.NewCSIAttachController(klog.FromContext(ctx), client, manilaDriver, handler, attachments, persistent, retries(), retries(), false, 0)
		resize := resizing.NewResizeController(manilaDriver, manilaResizer{cinderResizer{ctx, shares}}, client, resync, factory, retries(), false, time.Minute)
		provision := provisionerOf(ctx, client, manilaDriver, manilaProvisioner{shares})
		factory.Start(ctx.Done())
		return firstOf(
			func() error { attach.Run(ctx, cinderWorkers, nil); return ctx.Err() },
			func() error { resize.Run(cinderWorkers, ctx, nil); return ctx.Err() },
			func() error { provision.Run(ctx); return ctx.Err() },
		)
	}
}

// manilaProvisioner has shares be made and deleted.
type manilaProvisioner struct{ shares csi.ControllerClient }

// Provision is controller.Provisioner's.
func (p manilaProvisioner) Provision(ctx context.Context, order controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	claim := order.PVC
	if err := suitsManila(claim.Spec); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	parameters := map[string]string{claimName: claim.Name, claimNamespace: claim.Namespace}
	for name, value := range order.StorageClass.Parameters {
		parameters[name] = value
	}
	made, err := p.shares.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: order.PVName, CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()}, Parameters: parameters,
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: order.StorageClass.MountOptions}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		}}})
	if err != nil {
		return nil, provisioning(err), said(err)
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: order.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *order.StorageClass.ReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes,
			MountOptions:                  order.StorageClass.MountOptions,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(made.Volume.CapacityBytes, resource.BinarySI)},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: manilaDriver, VolumeHandle: made.Volume.VolumeId}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: manilaNode, Operator: v1.NodeSelectorOpIn, Values: []string{"true"}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// suitsManila returns the property of a claim that a share cannot have.
func suitsManila(claim v1.PersistentVolumeClaimSpec) error {
	if isBlock(claim.VolumeMode) {
		return errors.New("a share of Manila is a file system, and a block device is asked for: use volumeMode: Filesystem, or a class of the back-end cinder")
	}
	if claim.DataSource != nil || claim.DataSourceRef != nil {
		return errors.New("a share of Manila begins empty here, and a source is asked for: leave it out")
	}
	if claim.Selector != nil {
		return errors.New("a share of Manila is made for its claim, and a selector is asked for: leave it out")
	}
	return nil
}

// Delete is controller.Provisioner's.
func (p manilaProvisioner) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != manilaDriver {
		return &controller.IgnoredError{Reason: "it is no share of Manila"}
	}
	if _, err := p.shares.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle}); err != nil {
		return said(err)
	}
	return nil
}

var _ attacher.Attacher = manilaAttacher{}

// manilaAttacher gives nodes access to shares, and takes it back.
type manilaAttacher struct{ shares csi.ControllerClient }

// Attach is attacher.Attacher's. After an error the node may have access.
func (a manilaAttacher) Attach(ctx context.Context, share string, readOnly bool, node string, capability *csi.VolumeCapability, attributes, secrets map[string]string) (map[string]string, bool, error) {
	given, err := a.shares.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: share, NodeId: node, VolumeCapability: capability, Readonly: readOnly,
		VolumeContext: attributes, Secrets: secrets})
	if err != nil {
		return nil, false, err
	}
	return given.PublishContext, false, nil
}

// Detach is attacher.Attacher's.
func (a manilaAttacher) Detach(ctx context.Context, share, node string, secrets map[string]string) error {
	_, err := a.shares.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: share, NodeId: node, Secrets: secrets})
	return err
}

// manilaResizer has shares grow, as volumes do.
type manilaResizer struct{ cinderResizer }

// Name is resizer.Resizer's.
func (manilaResizer) Name() string { return manilaDriver }

// CanSupport is resizer.Resizer's.
func (manilaResizer) CanSupport(volume *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == manilaDriver
}
