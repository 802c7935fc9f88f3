package main

import (
	"context"
	"net"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
)

// named is a Controller service that returns its name.
type named struct {
	csi.UnimplementedControllerServer
	name string
}

func (n *named) CreateVolume(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: n.name, CapacityBytes: 1 << 30}}, nil
}

func TestSharesAreAskedForBesideVolumesOnOneConnection(t *testing.T) {
	at := grpc.NewServer()
	csi.RegisterControllerServer(at, &named{name: "volume"})
	description := csi.Controller_ServiceDesc
	description.ServiceName = "io.burano.manila.v1.Controller"
	at.RegisterService(&description, &named{name: "share"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = at.Serve(listener) }()
	t.Cleanup(at.Stop)
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for name, connection := range map[string]grpc.ClientConnInterface{"volume": client, "share": manilaConnection{client}} {
		made, err := csi.NewControllerClient(connection).CreateVolume(t.Context(), &csi.CreateVolumeRequest{})
		if err != nil || made.Volume.VolumeId != name {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}

	_, _, order := claimed(t, map[string]string{"type": "fast"})
	order.PVC.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	volume, _, err := manilaProvisioner{csi.NewControllerClient(manilaConnection{client})}.Provision(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	if volume.Spec.CSI.Driver != manilaDriver || volume.Spec.CSI.VolumeHandle != "share" || volume.Spec.AccessModes[0] != v1.ReadWriteMany {
		t.Errorf("it is %v", volume.Spec)
	}
	block := v1.PersistentVolumeBlock
	order.PVC.Spec.VolumeMode = &block
	if _, _, err := (manilaProvisioner{}).Provision(t.Context(), order); err == nil {
		t.Error("a share is no block device")
	}
}
