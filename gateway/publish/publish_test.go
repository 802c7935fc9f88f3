package publish_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	rbac "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

// TestPublishing goes through the life of Services in a real Kubernetes API over a real etcd, with the rights of the publisher only.
func TestPublishing(t *testing.T) {
	c := newCluster(t)
	etcd, admin := c.etcd, c.admin
	services := admin.CoreV1().Services("default")
	endpointSlices := admin.DiscoveryV1().EndpointSlices("default")
	_, err := etcd.Put(t.Context(), route.RoutesPrefix+"9999", "left over from before")
	require.NoError(t, err)
	stop := c.start(t, publish.Run)

	// A Service and its endpoints.
	_, err = services.Create(t.Context(), newService("web", 80), meta.CreateOptions{})
	require.NoError(t, err)
	_, err = endpointSlices.Create(t.Context(), slice("web", "http", 8080, at("10.244.1.2", true, true, false)), meta.CreateOptions{})
	require.NoError(t, err)
	web := awaitRoute(t, etcd, 80, func(r route.Route) bool { return len(r.Backends) == 1 })
	require.Equal(t, "default/web:http", web.String())
	require.Equal(t, []route.Backend{{Address: "10.244.1.2", Port: 8080, Node: "node", Ready: true}}, web.Backends)
	awaitNoRoute(t, etcd, 9999)

	// The endpoint ends.
	list, err := endpointSlices.List(t.Context(), meta.ListOptions{})
	require.NoError(t, err)
	ending := find(list.Items, "web").DeepCopy()
	ending.Endpoints = []discovery.Endpoint{at("10.244.1.2", false, true, true), at("10.244.1.3", true, true, false)}
	start := time.Now()
	_, err = endpointSlices.Update(t.Context(), ending, meta.UpdateOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 80, func(r route.Route) bool {
		return len(r.Backends) == 2 && r.Backends[0].Draining && !r.Backends[0].Ready && r.Backends[1].Ready
	})
	t.Logf("a change of endpoints is in etcd %s after it was sent to the API", time.Since(start).Round(time.Millisecond))

	// A younger Service wants the same port. Creation times are whole seconds, then the name decides; these names do it either way.
	contender, err := services.Create(t.Context(), newService("zebra", 80), meta.CreateOptions{})
	require.NoError(t, err)
	awaitEvents(t, admin, "zebra", publish.ReasonConflict, 1)
	require.Equal(t, "web", awaitRoute(t, etcd, 80, anything).Service)

	// The publisher starts again: nothing is reported twice, nothing is written anew.
	before := revision(t, etcd, 80)
	stop()
	stop = c.start(t, publish.Run)
	awaitEvents(t, admin, "zebra", publish.ReasonConflict, 1)
	third, err := services.Create(t.Context(), newService("marker", 7000), meta.CreateOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 7000, anything)
	require.Equal(t, before, revision(t, etcd, 80), "what did not change is not written")
	awaitEvents(t, admin, "zebra", publish.ReasonConflict, 1)

	// It moves to another port, then to one of the nodes' own.
	annotate(t, admin, "zebra", publish.AnnotationPort, "8081")
	require.Equal(t, "zebra", awaitRoute(t, etcd, 8081, anything).Service)
	annotate(t, admin, "zebra", publish.AnnotationPort, "2379")
	awaitNoRoute(t, etcd, 8081)
	awaitEvents(t, admin, "zebra", publish.ReasonReserved, 1)
	annotate(t, admin, "zebra", publish.AnnotationPort, "eighty")
	awaitEvents(t, admin, "zebra", publish.ReasonAnnotation, 1)
	annotate(t, admin, "zebra", publish.AnnotationPort, "")
	awaitEvents(t, admin, "zebra", publish.ReasonConflict, 2)
	annotate(t, admin, "zebra", publish.AnnotationPublish, "false")

	// Invalid routes in etcd are repaired.
	_, err = etcd.Put(t.Context(), route.RoutesPrefix+"80", "spoilt")
	require.NoError(t, err)
	_, err = etcd.Delete(t.Context(), route.RoutesPrefix+"7000")
	require.NoError(t, err)
	awaitRoute(t, etcd, 80, anything)
	awaitRoute(t, etcd, 7000, anything)

	// The older one goes, and the younger gets the port.
	annotate(t, admin, "zebra", publish.AnnotationPort, "80")
	annotate(t, admin, "zebra", publish.AnnotationPublish, "true")
	awaitEvents(t, admin, "zebra", publish.ReasonConflict, 3)
	require.NoError(t, services.Delete(t.Context(), "web", meta.DeleteOptions{}))
	awaitRoute(t, etcd, 80, func(r route.Route) bool { return r.Service == contender.Name })

	// Another namespace is published when asked for.
	_, err = admin.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "shop"}}, meta.CreateOptions{})
	require.NoError(t, err)
	shop := newService("web", 5000)
	shop.Namespace = "shop"
	_, err = admin.CoreV1().Services("shop").Create(t.Context(), shop, meta.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, services.Delete(t.Context(), third.Name, meta.DeleteOptions{}))
	awaitNoRoute(t, etcd, 7000)
	awaitNoRoute(t, etcd, 5000)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, publish.AnnotationPublish)
	_, err = admin.CoreV1().Services("shop").Patch(t.Context(), "web", types.MergePatchType, patch, meta.PatchOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 5000, anything)

	require.NotContains(t, c.log.String(), "forbidden", "the documented rights suffice")

	// The API goes away: routes stay. It comes back: changes are seen again.
	c.api.stop()
	require.Equal(t, "zebra", awaitRoute(t, etcd, 80, anything).Service)
	c.api.start(t)
	_, err = services.Create(t.Context(), newService("late", 7001), meta.CreateOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 7001, anything)
	stop()
}

// TestStatusesOfLoadBalancers follows the status of Services in a real Kubernetes API while gateways come and go, and leaves that of others alone.
func TestStatusesOfLoadBalancers(t *testing.T) {
	c := newCluster(t)
	etcd, admin := c.etcd, c.admin
	c.start(t, publish.Run)
	services := admin.CoreV1().Services("default")
	balancer := func(name string, number int32) *core.Service {
		s := newService(name, number)
		s.Spec.Type = core.ServiceTypeLoadBalancer
		return s
	}
	gateway := func(name, address string) {
		t.Helper()
		g := route.Gateway{Name: name, Address: netip.MustParseAddr(address)}
		value, err := route.EncodeGateway(g)
		require.NoError(t, err)
		_, err = etcd.Put(t.Context(), route.GatewayKey(g), string(value))
		require.NoError(t, err)
	}
	status := func(name string) (addresses []string, condition meta.Condition) {
		t.Helper()
		found, err := services.Get(t.Context(), name, meta.GetOptions{})
		require.NoError(t, err)
		for _, one := range found.Status.LoadBalancer.Ingress {
			addresses = append(addresses, one.IP)
		}
		if published := apimeta.FindStatusCondition(found.Status.Conditions, publish.Published); published != nil {
			condition = *published
		}
		return addresses, condition
	}
	says := func(name, reason string, wanted ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			addresses, condition := status(name)
			return slices.Equal(addresses, wanted) && condition.Reason == reason
		}, 20*time.Second, 10*time.Millisecond, "the status of %s: %s %v", name, reason, wanted)
	}

	_, err := services.Create(t.Context(), balancer("web", 80), meta.CreateOptions{})
	require.NoError(t, err)
	says("web", "NoGateways")
	gateway("murano-gateway-2", "203.0.113.2")
	says("web", "Published", "203.0.113.2")
	gateway("murano-gateway-1", "203.0.113.1")
	says("web", "Published", "203.0.113.1", "203.0.113.2")
	_, before := status("web")
	gateway("murano-gateway-1", "203.0.113.9") // another floating address
	says("web", "Published", "203.0.113.2", "203.0.113.9")
	_, after := status("web")
	require.Equal(t, before.LastTransitionTime, after.LastTransitionTime)
	_, err = etcd.Delete(t.Context(), route.GatewaysPrefix+"murano-gateway-2")
	require.NoError(t, err)
	says("web", "Published", "203.0.113.9")

	// One with a port that cannot be published, and one that loses its port.
	partly := balancer("partly", 81)
	partly.Spec.Ports = append(partly.Spec.Ports, core.ServicePort{Name: "dns", Port: 5300, Protocol: core.ProtocolSCTP})
	_, err = services.Create(t.Context(), partly, meta.CreateOptions{})
	require.NoError(t, err)
	says("partly", publish.ReasonProtocol, "203.0.113.9")
	awaitEvents(t, admin, "partly", publish.ReasonProtocol, 1)
	_, err = services.Create(t.Context(), balancer("zebra", 80), meta.CreateOptions{})
	require.NoError(t, err)
	says("zebra", publish.ReasonConflict)
	annotate(t, admin, "web", publish.AnnotationPublish, "false")
	says("web", "")
	says("zebra", "Published", "203.0.113.9")

	// Services of others, by class and by the writer of the address, stay as they are.
	foreign, class := balancer("foreign", 82), "example.com/other"
	foreign.Spec.LoadBalancerClass = &class
	taken := balancer("taken", 83)
	for _, one := range []*core.Service{foreign, taken} {
		annotated := one.DeepCopy()
		annotated.Annotations = map[string]string{publish.AnnotationPublish: "false"}
		made, err := services.Create(t.Context(), annotated, meta.CreateOptions{})
		require.NoError(t, err)
		made.Status.LoadBalancer.Ingress = []core.LoadBalancerIngress{{IP: "198.51.100.7"}}
		_, err = services.UpdateStatus(t.Context(), made, meta.UpdateOptions{})
		require.NoError(t, err)
		annotate(t, admin, one.Name, publish.AnnotationPublish, "true")
		awaitRoute(t, etcd, uint16(one.Spec.Ports[0].Port), anything)
	}
	gateway("murano-gateway-1", "203.0.113.10")
	says("zebra", "Published", "203.0.113.10")
	says("foreign", "", "198.51.100.7")
	says("taken", "", "198.51.100.7")

	// It becomes another type, and gets no address.
	_, err = services.Patch(t.Context(), "zebra", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`), meta.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { addresses, _ := status("zebra"); return len(addresses) == 0 }, 20*time.Second, 10*time.Millisecond)
	require.NotContains(t, c.log.String(), "forbidden", "the documented rights suffice")
}

func TestAPublisherThatDoesNotLeadWritesNothing(t *testing.T) {
	c := newCluster(t)
	etcd := c.etcd
	_, err := c.admin.CoreV1().Services("default").Create(t.Context(), newService("web", 80), meta.CreateOptions{})
	require.NoError(t, err)
	c.start(t, func(ctx context.Context, config publish.Config) error {
		config.Guard = func() []clientv3.Cmp {
			return []clientv3.Cmp{clientv3.Compare(clientv3.Value("/burano/v1/leader"), "=", "me")}
		}
		return publish.Run(ctx, config)
	})
	require.Eventually(t, func() bool { return strings.Contains(c.log.String(), "leads now") }, 20*time.Second, 10*time.Millisecond)
	awaitNoRoute(t, etcd, 80)
	_, err = etcd.Put(t.Context(), "/burano/v1/leader", "me")
	require.NoError(t, err)
	awaitRoute(t, etcd, 80, anything)
}

func TestOneOfSeveralPublishersLeadsAndAnotherTakesOver(t *testing.T) {
	c := newCluster(t)
	etcd, admin := c.etcd, c.admin
	stops := map[string]func(){}
	for _, name := range []string{"one", "two"} {
		own := c.server.Client(t)
		stops[name] = c.start(t, func(ctx context.Context, config publish.Config) error {
			config.Etcd = own
			return publish.Lead(ctx, config, name)
		})
	}
	leads := func() string {
		found, err := etcd.Get(t.Context(), "/burano/v1/leader", clientv3.WithFirstCreate()...)
		require.NoError(t, err)
		if len(found.Kvs) == 0 {
			return ""
		}
		return string(found.Kvs[0].Value)
	}
	_, err := admin.CoreV1().Services("default").Create(t.Context(), newService("web", 80), meta.CreateOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 80, anything)
	first := leads()
	require.Contains(t, stops, first)
	stops[first]()
	_, err = admin.CoreV1().Services("default").Create(t.Context(), newService("other", 81), meta.CreateOptions{})
	require.NoError(t, err)
	awaitRoute(t, etcd, 81, anything)
	require.Contains(t, stops, leads())
	require.NotEqual(t, first, leads())
}

// cluster is a real Kubernetes API over a real etcd, in which the user "publisher" has the publisher's rights.
type cluster struct {
	server *etcdtest.Server
	etcd   *clientv3.Client
	api    *apiServer
	admin  *kubernetes.Clientset
	log    journal // of all publishers
}

// newCluster skips the test where there is no Kubernetes.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	binary := os.Getenv("BURANO_KUBERNETES_BINARY")
	if binary == "" {
		t.Skip("BURANO_KUBERNETES_BINARY is not set: make test sets it to the Kubernetes binary that make image builds")
	}
	c := &cluster{server: etcdtest.New(t)}
	c.etcd, c.api = c.server.Client(t), startAPI(t, binary, c.server.URL)
	var err error
	c.admin, err = kubernetes.NewForConfig(c.api.config("admin", "system:masters"))
	require.NoError(t, err)
	allow(t, c.admin, "publisher")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	return c
}

// start runs a publisher until it is stopped or the test ends.
func (c *cluster) start(t *testing.T, run func(context.Context, publish.Config) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	config := publish.Config{
		Kubernetes: c.api.config("publisher"), Etcd: c.etcd, Logger: slog.New(slog.NewTextHandler(&c.log, nil)), Resync: 300 * time.Millisecond,
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	return stop
}

func anything(route.Route) bool { return true }

func newService(name string, number int32) *core.Service {
	return &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec:       core.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []core.ServicePort{{Name: "http", Port: number}}},
	}
}

func find(list []discovery.EndpointSlice, service string) *discovery.EndpointSlice {
	i := slices.IndexFunc(list, func(s discovery.EndpointSlice) bool { return s.Labels[discovery.LabelServiceName] == service })
	return &list[i]
}

func annotate(t *testing.T, client kubernetes.Interface, service, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if value == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
	}
	_, err := client.CoreV1().Services("default").Patch(t.Context(), service, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	require.NoError(t, err)
}

func awaitRoute(t *testing.T, etcd *clientv3.Client, port uint16, condition func(route.Route) bool) (found route.Route) {
	t.Helper()
	key := route.RoutesPrefix + strconv.Itoa(int(port))
	require.Eventually(t, func() bool {
		response, err := etcd.Get(t.Context(), key)
		if err != nil || len(response.Kvs) == 0 {
			return false
		}
		found, err = route.Decode(key, response.Kvs[0].Value)
		return err == nil && condition(found)
	}, 40*time.Second, 2*time.Millisecond, "the route of port %d", port)
	return found
}

func awaitNoRoute(t *testing.T, etcd *clientv3.Client, port uint16) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := etcd.Get(t.Context(), route.RoutesPrefix+strconv.Itoa(int(port)))
		return err == nil && len(response.Kvs) == 0
	}, 20*time.Second, 2*time.Millisecond, "the route of port %d should go", port)
}

// revision is when the route of a port was last written.
func revision(t *testing.T, etcd *clientv3.Client, port uint16) int64 {
	t.Helper()
	response, err := etcd.Get(t.Context(), route.RoutesPrefix+strconv.Itoa(int(port)))
	require.NoError(t, err)
	require.Len(t, response.Kvs, 1)
	return response.Kvs[0].ModRevision
}

// awaitEvents waits until there is one Event for this reason, with this count.
func awaitEvents(t *testing.T, client kubernetes.Interface, service, reason string, times int32) {
	t.Helper()
	var events *core.EventList
	require.Eventually(t, func() bool {
		var err error
		events, err = client.CoreV1().Events("default").List(t.Context(), meta.ListOptions{FieldSelector: "involvedObject.name=" + service + ",reason=" + reason})
		return err == nil && len(events.Items) == 1 && events.Items[0].Count == times && events.Items[0].InvolvedObject.Kind == "Service"
	}, 20*time.Second, 5*time.Millisecond, "event %s of %s with the count %d", reason, service, times)
}

// allow gives the publisher the rights that its documentation names, and no others; they are in effect when it returns.
func allow(t *testing.T, admin kubernetes.Interface, user string) {
	t.Helper()
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbac.ClusterRole{
		ObjectMeta: meta.ObjectMeta{Name: user},
		Rules: []rbac.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets", "namespaces", "configmaps"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes", "backendtlspolicies", "referencegrants"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gatewayclasses/status", "gateways/status", "listenersets/status", "httproutes/status", "grpcroutes/status", "tcproutes/status", "tlsroutes/status", "udproutes/status", "backendtlspolicies/status"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}, meta.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbac.ClusterRoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: user},
		Subjects:   []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: user}},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: user},
	}, meta.CreateOptions{})
	require.NoError(t, err)
	// The API hears of the role and of its binding a moment after it has stored them, and refuses until then.
	require.Eventually(t, func() bool {
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorization.SubjectAccessReview{
			Spec: authorization.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorization.ResourceAttributes{Verb: "list", Resource: "services"}},
		}, meta.CreateOptions{})
		return err == nil && review.Status.Allowed
	}, 20*time.Second, 5*time.Millisecond, "the rights of %s in effect", user)
}

// journal is a log that can be read while it is written.
type journal struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.buffer.Write(p)
}

func (j *journal) String() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.buffer.String()
}

// apiServer is a kube-apiserver on loopback with an authority of its own.
type apiServer struct {
	binary, etcd, directory string
	port                    int
	authority               *x509.Certificate
	key                     *ecdsa.PrivateKey
	test                    *testing.T
	process                 *os.Process
	ended                   chan struct{}
}

func startAPI(t *testing.T, binary, etcd string) *apiServer {
	t.Helper()
	a := &apiServer{binary: binary, etcd: etcd, directory: t.TempDir(), test: t}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a.port = l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.authority = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	own, err := x509.CreateCertificate(rand.Reader, a.authority, a.authority, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.authority, err = x509.ParseCertificate(own)
	require.NoError(t, err)
	a.write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own}))
	certificate, key := a.issue("127.0.0.1")
	a.write("server.crt", certificate)
	a.write("server.key", key)
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			content, _ := os.ReadFile(filepath.Join(a.directory, "log"))
			t.Logf("the end of kube-apiserver's log:\n%s", content[max(0, len(content)-4000):])
		}
	})
	a.start(t)
	return a
}

func (a *apiServer) write(name string, content []byte) {
	require.NoError(a.test, os.WriteFile(filepath.Join(a.directory, name), content, 0o600))
}

func (a *apiServer) issue(name string, groups ...string) (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.test, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.test, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.authority, &private.PublicKey, a.key)
	require.NoError(a.test, err)
	bytes, err := x509.MarshalECPrivateKey(private)
	require.NoError(a.test, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes})
}

func (a *apiServer) config(user string, groups ...string) *rest.Config {
	certificate, key := a.issue(user, groups...)
	authority, err := os.ReadFile(filepath.Join(a.directory, "ca.crt"))
	require.NoError(a.test, err)
	return &rest.Config{
		QPS:             -1, // no limit
		Host:            fmt.Sprintf("https://127.0.0.1:%d", a.port),
		TLSClientConfig: rest.TLSClientConfig{CAData: authority, CertData: certificate, KeyData: key},
	}
}

// start starts the server and waits until it is ready.
func (a *apiServer) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(a.directory, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(a.directory, name) }
	command := exec.Command(a.binary, "kube-apiserver",
		"--etcd-servers="+a.etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", a.port),
		"--tls-cert-file="+file("server.crt"), "--tls-private-key-file="+file("server.key"), "--client-ca-file="+file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+file("server.key"), "--service-account-signing-key-file="+file("server.key"),
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none")
	command.Stdout, command.Stderr = log, log
	// Should the test's process die, the server goes too. The signal is tied to the starting thread, which therefore stays.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	a.ended = make(chan struct{})
	go func(ended chan struct{}) {
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		_ = log.Close()
		close(ended)
	}(a.ended)
	require.NoError(t, <-started)
	a.process = command.Process
	client, err := kubernetes.NewForConfig(a.config("admin", "system:masters"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}, time.Minute, 50*time.Millisecond, "kube-apiserver ready")
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "default", meta.GetOptions{})
		return err == nil
	}, 20*time.Second, 20*time.Millisecond, "namespace default")
}

func (a *apiServer) stop() {
	if a.process == nil {
		return
	}
	_ = a.process.Kill()
	<-a.ended
	a.process = nil
}
