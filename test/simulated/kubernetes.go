package simulated

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// notNamespaced are the kinds of Kubernetes without a namespace, as far as clients here use them.
var notNamespaced = []string{"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "IngressClass", "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment",
	"PriorityClass", "RuntimeClass", "APIService", "CustomResourceDefinition", "GatewayClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration", "CertificateSigningRequest", "FlowSchema", "PriorityLevelConfiguration"}

// elsewhere are groups with kinds that have no types in client-go.
var elsewhere = map[string][]string{
	"apiextensions.k8s.io/v1": {"CustomResourceDefinition"}, "apiregistration.k8s.io/v1": {"APIService"},
	"gateway.networking.k8s.io/v1": {"GatewayClass", "Gateway", "HTTPRoute"}, "snapshot.storage.k8s.io/v1": {"VolumeSnapshotClass"},
}

// discover returns an API server's discovery of the kinds of each group and version.
func discover() (map[string][]byte, error) {
	lists := map[string][]string{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		group := kind.GroupVersion().String()
		if kind.Version == "__internal" || strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") || strings.HasSuffix(kind.Kind, "Event") && kind.Kind != "Event" {
			continue
		}
		lists[group] = append(lists[group], kind.Kind)
	}
	for group, kinds := range elsewhere {
		lists[group] = append(lists[group], kinds...)
	}
	made := map[string][]byte{}
	for group, kinds := range lists {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group}
		slices.Sort(kinds)
		for _, kind := range kinds {
			plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural.Resource, SingularName: singular.Resource, Kind: kind, Namespaced: !slices.Contains(notNamespaced, kind),
				Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, StorageVersionHash: "abcdefghijk="})
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		path := "/apis/" + group
		if !strings.Contains(group, "/") {
			path = "/api/" + group
		}
		made[path] = text
	}
	return made, nil
}

// serveAPI answers as every API server: the connection decides which one.
func (w *World) serveAPI() error {
	server := &http.Server{Handler: http.HandlerFunc(w.api3), ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, nodeOf{}, conn.(*tls.Conn).NetConn().(*channelConn).node)
	}}
	return server.Serve(overTLS{w.api})
}

type nodeOf struct{}

// overTLS is a feed with connections of API servers.
type overTLS struct{ *feed }

// Accept implements net.Listener.
func (o overTLS) Accept() (net.Conn, error) {
	for {
		conn, err := o.feed.Accept()
		if err != nil {
			return nil, err
		}
		through := conn.(*channelConn)
		config, err := through.node.tls(through.pair)
		if err != nil {
			through.node.world.note("%v", err)
			_ = conn.Close()
			continue
		}
		return tls.Server(conn, config), nil
	}
}

func (w *World) api3(out http.ResponseWriter, request *http.Request) {
	n := request.Context().Value(nodeOf{}).(*node)
	path := request.URL.Path
	w.Tally.http("Kubernetes", request)
	out.Header().Set("Content-Type", "application/json")
	if w.Endless.Load() {
		flood(out, request)
		return
	}
	answer := func(text []byte) { _, _ = out.Write(text) }
	switch {
	case path == "/readyz" || path == "/livez" || path == "/version":
		answer([]byte("{}"))
	case request.Method == http.MethodGet && w.kinds[path] != nil:
		answer(w.kinds[path])
	case request.Method == http.MethodPatch && strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch"):
		text, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		kept, _ := w.texts.LoadOrStore(string(text), text)
		n.cluster.mutex.Lock()
		n.cluster.objects[path] = kept.([]byte)
		n.cluster.mutex.Unlock()
		if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
			text = metadataOf(path)
		}
		answer(text)
	case request.Method == http.MethodGet && strings.HasPrefix(path, "/api/v1/nodes"):
		answer(n.cluster.kubelets(strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1/nodes"), "/")+strings.TrimPrefix(request.URL.Query().Get("fieldSelector"), "metadata.name="), path != "/api/v1/nodes"))
	case request.Method == http.MethodGet && path == "/api/v1/namespaces/default/serviceaccounts":
		answer([]byte(`{"kind":"ServiceAccountList","apiVersion":"v1","metadata":{"resourceVersion":"300"},"items":[{"metadata":{"name":"default","namespace":"default","uid":"5b0c1f6e-6a4c-4d9e-9a55-0d0f5f5c7e11","resourceVersion":"290"}}]}`))
	case request.Method == http.MethodGet:
		n.cluster.mutex.Lock()
		text := n.cluster.objects[path]
		n.cluster.mutex.Unlock()
		if text != nil {
			answer(text)
			return
		}
		out.WriteHeader(http.StatusNotFound)
		answer([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`))
	default:
		w.note("Kubernetes %s %s", request.Method, path)
		out.WriteHeader(http.StatusNotImplemented)
	}
}

// metadataOf is the answer to a client that asks for the metadata of the object at a path only.
func metadataOf(path string) []byte {
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"uid":"5b0c1f6e-6a4c-4d9e-9a55-0d0f5f5c7e12","resourceVersion":"310","generation":1}}`,
		path[strings.LastIndex(path, "/")+1:])
}

// kubelets are the nodes of a cluster whose kubelets were started, or the one with this name: as a list, or the one
// alone.
func (c *cluster) kubelets(name string, alone bool) []byte {
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
	c.mutex.Lock()
	nodes := slices.Collect(maps.Values(c.nodes))
	c.mutex.Unlock()
	for _, n := range nodes {
		if (name == "" || n.name == name) && n.runs("kubelet") {
			list.Items = append(list.Items, kubelet(n))
		}
	}
	var text []byte
	var err error
	if alone && len(list.Items) == 1 {
		list.Items[0].TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		text, err = json.Marshal(list.Items[0])
	} else {
		text, err = json.Marshal(list)
	}
	if err != nil {
		panic(err)
	}
	return text
}

// kubelet is the Node object of a kubelet, as full as a real one.
func kubelet(n *node) corev1.Node {
	now := metav1.NewTime(time.Now())
	made := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, UID: "f0a8b1ce-41c2-4c33-8c5c-1e0c6b7f3b0a", ResourceVersion: "900", CreationTimestamp: now,
		Labels:      map[string]string{"kubernetes.io/hostname": n.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"},
		Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
	made.Spec.PodCIDR = "10.244.1.0/24"
	made.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8000000Ki"), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20000000Ki")}
	made.Status.Allocatable = made.Status.Capacity
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse} {
		made.Status.Conditions = append(made.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "KubeletHas", Message: "kubelet has"})
	}
	made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.fixed.String()}, {Type: corev1.NodeHostName, Address: n.name}}
	made.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: n.id, KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.2.0", KernelVersion: "6.12.0", OSImage: "Debian GNU/Linux 12", OperatingSystem: "linux",
		Architecture: "amd64", BootID: n.id, SystemUUID: n.id}
	for _, name := range []string{"coredns", "pause"} {
		made.Status.Images = append(made.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("burano.local/%s:1", name)}, SizeBytes: 40 << 20})
	}
	return made
}
