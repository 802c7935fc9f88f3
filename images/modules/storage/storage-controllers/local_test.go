package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// aNode records its calls.
type aNode struct {
	csi.UnimplementedControllerServer
	answer error
	asked  []string
}

func (n *aNode) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	n.asked = append(n.asked, "create "+r.Name)
	return &csi.CreateVolumeResponse{}, n.answer
}

func (n *aNode) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	n.asked = append(n.asked, "delete "+r.VolumeId)
	return &csi.DeleteVolumeResponse{}, n.answer
}

func TestClaimsGetDirectoriesOfTheirNodes(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	defer web.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := &aNode{}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	csi.RegisterControllerServer(server, node)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, address := range map[string]string{"n1": "127.0.0.1", "lost": ""} {
		one := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if address != "" {
			one.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}, {Type: v1.NodeInternalIP, Address: address}}
		}
		if err := known.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	trusting := web.Client().Transport.(*http.Transport).TLSClientConfig
	p := localProvisioner{nodes: listers.NewNodeLister(known), secured: trusting, port: listener.Addr().(*net.TCPAddr).Port}
	retain := v1.PersistentVolumeReclaimRetain
	order := func(node string, change func(*v1.PersistentVolumeClaimSpec)) controller.ProvisionOptions {
		claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
		if change != nil {
			change(&claim.Spec)
		}
		return controller.ProvisionOptions{PVName: "pvc-1", PVC: claim, SelectedNodeName: node, StorageClass: &storage.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, ReclaimPolicy: &retain}}
	}
	made, state, err := p.Provision(t.Context(), order("n1", nil))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("%s: %v", state, err)
	}
	terms := made.Spec.NodeAffinity.Required.NodeSelectorTerms
	if made.Spec.CSI.Driver != localDriver || made.Spec.CSI.VolumeHandle != "pvc-1" || made.Spec.PersistentVolumeReclaimPolicy != retain || terms[0].MatchExpressions[0].Values[0] != "n1" ||
		made.Spec.Capacity.Storage().String() != "1Gi" {
		t.Fatalf("it made %+v", made.Spec)
	}

	block := v1.PersistentVolumeBlock
	for want, change := range map[string]func(*v1.PersistentVolumeClaimSpec){
		"no block device":                  func(c *v1.PersistentVolumeClaimSpec) { c.VolumeMode = &block },
		"ReadWriteMany is asked for":       func(c *v1.PersistentVolumeClaimSpec) { c.AccessModes = append(c.AccessModes, v1.ReadWriteMany) },
		"begins empty":                     func(c *v1.PersistentVolumeClaimSpec) { c.DataSource = &v1.TypedLocalObjectReference{} },
		"a selector is asked for":          func(c *v1.PersistentVolumeClaimSpec) { c.Selector = &metav1.LabelSelector{} },
		"say volumeBindingMode: WaitForFi": func(*v1.PersistentVolumeClaimSpec) {},
	} {
		on := "n1"
		if strings.HasPrefix(want, "say volumeBindingMode") {
			on = ""
		}
		_, state, err := p.Provision(t.Context(), order(on, change))
		if err == nil || state != controller.ProvisioningFinished || !strings.Contains(err.Error(), want) {
			t.Fatalf("want %q, got %s: %v", want, state, err)
		}
	}

	node.answer = status.Error(codes.ResourceExhausted, "full")
	if _, state, err := p.Provision(t.Context(), order("n1", nil)); state != controller.ProvisioningReschedule {
		t.Fatalf("a node that is full: %s: %v", state, err)
	}
	node.answer = status.Error(codes.DeadlineExceeded, "nobody has answered")
	if _, state, err := p.Provision(t.Context(), order("n1", nil)); state != controller.ProvisioningReschedule {
		t.Fatalf("a node that does not answer: %s: %v", state, err)
	}
	if _, state, err := p.Provision(t.Context(), order("lost", nil)); state != controller.ProvisioningReschedule {
		t.Fatalf("a node without an address: %s: %v", state, err)
	}
	node.answer = status.Error(codes.Internal, "a mishap")
	if _, state, err := p.Provision(t.Context(), order("n1", nil)); state != controller.ProvisioningInBackground {
		t.Fatalf("a node that may have made it: %s: %v", state, err)
	}
	if err := p.Delete(t.Context(), made); err == nil {
		t.Fatal("a volume that is still there counts as removed")
	}
	node.answer = nil
	if err := p.Delete(t.Context(), made); err != nil || node.asked[len(node.asked)-1] != "delete pvc-1" {
		t.Fatalf("%v: %v", node.asked, err)
	}
	made.Spec.CSI.VolumeAttributes[localNode] = "gone"
	if err := p.Delete(t.Context(), made); err != nil {
		t.Fatalf("what a node had that is gone: %v", err)
	}
	server.Stop()
	if _, state, err := p.Provision(t.Context(), order("n1", nil)); state != controller.ProvisioningReschedule || !strings.Contains(err.Error(), "storage-node.service runs there") {
		t.Fatalf("a node that serves no volumes: %s: %v", state, err)
	}
}
