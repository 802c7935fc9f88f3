package main

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// cinderServer answers as Burano does, and records its calls.
type cinderServer struct {
	csi.ControllerClient
	asked *csi.CreateVolumeRequest
	there string // the zone where an earlier call has made the volume
}

func (c *cinderServer) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest, _ ...grpc.CallOption) (*csi.CreateVolumeResponse, error) {
	c.asked = r
	made := &csi.Volume{VolumeId: "id", CapacityBytes: r.CapacityRange.RequiredBytes}
	zone := r.Parameters[zoneParameter]
	if c.there != "" {
		zone = c.there
	}
	if zone != "" {
		made.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{cinderZone: zone}}}
	}
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

// claimed is a provisioner of a cluster with nodes in two zones, and an order of a class.
func claimed(t *testing.T, parameters map[string]string) (*cinderServer, cinderProvisioner, controller.ProvisionOptions) {
	t.Helper()
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, zone := range map[string]string{"n1": "az1", "n2": "az2", "n3": "az3"} {
		if err := nodes.Add(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cinderZone: zone}}}); err != nil {
			t.Fatal(err)
		}
	}
	server := &cinderServer{}
	retain := v1.PersistentVolumeReclaimDelete
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
	class := &storage.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Parameters: parameters, ReclaimPolicy: &retain, MountOptions: []string{"noatime"}}
	return server, cinderProvisioner{volumes: server, nodes: listers.NewNodeLister(nodes)}, controller.ProvisionOptions{PVName: "pvc-1", PVC: claim, StorageClass: class}
}

func provisioned(t *testing.T, p cinderProvisioner, order controller.ProvisionOptions) *v1.PersistentVolume {
	t.Helper()
	volume, state, err := p.Provision(t.Context(), order)
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("%s, %v", state, err)
	}
	return volume
}

func refused(t *testing.T, p cinderProvisioner, order controller.ProvisionOptions, want string) {
	t.Helper()
	if _, state, err := p.Provision(t.Context(), order); state != controller.ProvisioningFinished || err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%s, %v", state, err)
	}
}

// zoneOf is that to whose nodes a volume keeps.
func zoneOf(volume *v1.PersistentVolume) string {
	for _, one := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if one.Key == cinderZone {
			return strings.Join(one.Values, ",")
		}
	}
	return ""
}

func TestAVolumeIsWhatClassAndClaimSay(t *testing.T) {
	server, p, order := claimed(t, nil)
	volume := provisioned(t, p, order)
	asked := server.asked.VolumeCapabilities[0]
	if volume.Spec.CSI.FSType != "ext4" || asked.GetMount().FsType != "ext4" || asked.GetMount().MountFlags[0] != "noatime" || volume.Spec.MountOptions[0] != "noatime" || zoneOf(volume) != "" {
		t.Fatalf("it is %v", volume.Spec)
	}
	order.StorageClass.Parameters = map[string]string{fileSystemParameter: "xfs"}
	if volume = provisioned(t, p, order); volume.Spec.CSI.FSType != "xfs" || server.asked.VolumeCapabilities[0].GetMount().FsType != "xfs" {
		t.Fatalf("it is %v", volume.Spec)
	}
	block := v1.PersistentVolumeBlock
	order.PVC.Spec.VolumeMode, order.PVC.Spec.AccessModes = &block, []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	volume = provisioned(t, p, order)
	asked = server.asked.VolumeCapabilities[0]
	if *volume.Spec.VolumeMode != block || volume.Spec.CSI.FSType != "" || asked.GetBlock() == nil || asked.AccessMode.Mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		t.Fatalf("it is %v, asked for was %v", volume.Spec, asked)
	}
	order.StorageClass.Parameters = map[string]string{fileSystemParameter: "btrfs"}
	refused(t, p, order, "the parameter csi.storage.k8s.io/fstype with btrfs")
	order.PVC.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
	refused(t, p, order, "ReadWriteMany is asked for")
}

func TestAVolumeIsMadeInTheZoneOfItsPodsNode(t *testing.T) {
	server, p, order := claimed(t, map[string]string{zonesParameter: "az1,az2"})
	order.SelectedNodeName = "n2"
	if volume := provisioned(t, p, order); zoneOf(volume) != "az2" || server.asked.Parameters[zoneParameter] != "az2" {
		t.Fatalf("it is %v", volume.Spec.NodeAffinity)
	}
	server.there = "az1"
	if volume := provisioned(t, p, order); zoneOf(volume) != "az1" {
		t.Fatalf("it is %v, and was made in az1", volume.Spec.NodeAffinity)
	}
	order.SelectedNodeName = "n3"
	refused(t, p, order, `node n3, on which the first pod of the claim is to run, is in zone "az3"`)
	order.SelectedNodeName = "nobody"
	refused(t, p, order, "nobody")
}

func TestAVolumeOfAClassThatDoesNotWaitIsMadeInAZoneThatIsAllowed(t *testing.T) {
	_, p, order := claimed(t, map[string]string{zonesParameter: "az1,az2"})
	first := zoneOf(provisioned(t, p, order))
	if again := zoneOf(provisioned(t, p, order)); again != first {
		t.Fatalf("it is in %s and then in %s", first, again)
	}
	allowed := func(key string, zones ...string) v1.TopologySelectorTerm {
		return v1.TopologySelectorTerm{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: key, Values: zones}}}
	}
	for _, zone := range []string{"az1", "az2"} {
		order.StorageClass.AllowedTopologies = []v1.TopologySelectorTerm{allowed(cinderZone, zone)}
		if found := zoneOf(provisioned(t, p, order)); found != zone {
			t.Fatalf("it is in %s", found)
		}
	}
	order.StorageClass.AllowedTopologies = []v1.TopologySelectorTerm{allowed(cinderZone, "az3")}
	refused(t, p, order, "its allowedTopologies have none of these")
	order.StorageClass.AllowedTopologies = []v1.TopologySelectorTerm{allowed(cinderZone, "az3"), allowed(cinderNode, "true")}
	provisioned(t, p, order)
}

// A class of one zone has its volumes there, and pods of all nodes use them, as ever.
func TestAVolumeOfAClassOfOneZoneIsForAllNodes(t *testing.T) {
	server, p, order := claimed(t, map[string]string{zoneParameter: "anywhere"})
	order.SelectedNodeName = "n3"
	if volume := provisioned(t, p, order); zoneOf(volume) != "" || server.asked.Parameters[zoneParameter] != "anywhere" {
		t.Fatalf("it is %v", volume.Spec.NodeAffinity)
	}
}
