package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// localDriver is the provisioner, and the CSI driver, of volumes that are directories of one node.
	localDriver = "local.burano.io"
	// localPort is where nodes make and remove such volumes.
	localPort = 10271
	// localNode is the attribute of a volume with the node of its directory.
	localNode = "node"
	// localPatience is the limit for a node to make a volume, and removalPatience to remove the content of one.
	localPatience   = 15 * time.Second
	removalPatience = 10 * time.Minute
)

// provideLocal has claims of local volumes get directories of the nodes that their first pods are scheduled to.
func provideLocal(ctx context.Context, config *rest.Config, client kubernetes.Interface, factory informers.SharedInformerFactory) error {
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	nodes := factory.Core().V1().Nodes()
	provisioner := localProvisioner{nodes: nodes.Lister(), secured: secured, port: localPort}
	synced := nodes.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return ctx.Err()
	}
	controller.NewProvisionController(ctx, client, localDriver, provisioner,
		controller.LeaderElection(false), // it runs only where that is decided
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
		controller.Threadiness(10),
		controller.AddFinalizer(true),
		controller.DeletionTimeout(removalPatience),
		controller.RetryIntervalMax(time.Minute),
	).Run(ctx)
	return ctx.Err()
}

// localProvisioner has nodes make and remove volumes.
type localProvisioner struct {
	nodes   listers.NodeLister
	secured *tls.Config // with the certificate of the controllers
	port    int
}

// Provision is controller.Provisioner's.
func (p localProvisioner) Provision(ctx context.Context, order controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	claim := order.PVC
	if err := suits(claim.Spec); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if order.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("a local volume is made on the node of its first pod: have class %s say volumeBindingMode: WaitForFirstConsumer", order.StorageClass.Name)
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	err := p.call(ctx, order.SelectedNodeName, localPatience, func(ctx context.Context, node csi.ControllerClient) error {
		_, err := node.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: order.PVName, CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()}})
		return err
	})
	switch status.Code(err) {
	case codes.OK:
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded: // another node may do
		return nil, controller.ProvisioningReschedule, err
	default:
		return nil, controller.ProvisioningInBackground, err
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: order.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *order.StorageClass.ReclaimPolicy,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: size},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: localDriver, VolumeHandle: order.PVName,
				VolumeAttributes: map[string]string{localNode: order.SelectedNodeName}}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{order.SelectedNodeName}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// suits returns the property of a claim that a directory cannot have.
func suits(claim v1.PersistentVolumeClaimSpec) error {
	if claim.VolumeMode != nil && *claim.VolumeMode != v1.PersistentVolumeFilesystem {
		return errors.New("a local volume is a directory and no block device: use a class of another back-end, or volumeMode: Filesystem")
	}
	for _, mode := range claim.AccessModes {
		if mode != v1.ReadWriteOnce && mode != v1.ReadWriteOncePod {
			return fmt.Errorf("a local volume is on one node, and %s is asked for: use a class of another back-end, or ReadWriteOnce", mode)
		}
	}
	if claim.DataSource != nil || claim.DataSourceRef != nil {
		return errors.New("a local volume begins empty, and a source is asked for: use a class of another back-end")
	}
	if claim.Selector != nil {
		return errors.New("a local volume is made for its claim, and a selector is asked for: leave it out")
	}
	return nil
}

// Delete is controller.Provisioner's. The volumes of a lost node are gone with it.
func (p localProvisioner) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != localDriver {
		return &controller.IgnoredError{Reason: "it is no local volume"}
	}
	err := p.call(ctx, volume.Spec.CSI.VolumeAttributes[localNode], removalPatience, func(ctx context.Context, node csi.ControllerClient) error {
		_, err := node.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// call asks a node for something. That there is no such node is the API's error NotFound.
func (p localProvisioner) call(ctx context.Context, name string, patience time.Duration, ask func(context.Context, csi.ControllerClient) error) error {
	node, err := p.nodes.Get(name)
	if err != nil {
		return err
	}
	address := ""
	for _, one := range node.Status.Addresses {
		if one.Type == v1.NodeInternalIP && address == "" {
			address = one.Address
		}
	}
	if address == "" {
		return status.Errorf(codes.Unavailable, "node %s has no address", name)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secured := p.secured.Clone()
	secured.ServerName, secured.NextProtos = "", nil // that of the address, and not of the API server
	connection, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, strconv.Itoa(p.port)), grpc.WithTransportCredentials(credentials.NewTLS(secured)))
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := ask(ctx, csi.NewControllerClient(connection)); err != nil {
		if status.Code(err) == codes.Unavailable {
			return status.Errorf(codes.Unavailable, "node %s does not make or remove local volumes now (storage-node.service runs there, of an image that has it?): %s", name, status.Convert(err).Message())
		}
		return err
	}
	return nil
}
