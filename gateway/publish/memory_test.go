package publish

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/route"
)

// TestWhatIsRememberedOfServicesChangesNothing goes through any history of Services and slices, each change of which is another object.
func TestWhatIsRememberedOfServicesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		services, endpoints, published := map[int]*core.Service{}, map[int]*discovery.EndpointSlice{}, map[types.NamespacedName]bool{}
		var remembered memory
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			number := rapid.IntRange(0, 5).Draw(t, "number")
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				service := someService(number, rapid.Int32Range(79, 83).Draw(t, "port")*80)
				if rapid.Bool().Draw(t, "of another class") {
					other := "other"
					service.Spec.LoadBalancerClass = &other
				}
				services[number] = service
			case 1:
				delete(services, number)
			case 2:
				endpoints[number] = someSlice(fmt.Sprint("slice-", number), rapid.IntRange(0, 5).Draw(t, "service"), rapid.IntRange(0, 3).Draw(t, "endpoints"), rapid.Bool().Draw(t, "ready"))
			case 3:
				delete(endpoints, number)
			case 4:
				published[types.NamespacedName{Namespace: "default", Name: fmt.Sprint("web-", number)}] = rapid.Bool().Draw(t, "published")
			}
			var all []*core.Service
			var parts []*discovery.EndpointSlice
			for _, one := range services { // in any order, as an informer lists them
				all = append(all, one)
			}
			for _, one := range endpoints {
				parts = append(parts, one)
			}
			anew, given := share(all, parts, published, wishes{}, nil), share(all, parts, published, wishes{}, remembered)
			require.Equal(t, anew.routes, given.routes)
			require.Equal(t, anew.complaints, given.complaints)
			require.Len(t, given.memory, len(all))
			remembered = given.memory
		}
	})
}

func someService(number int, port int32) *core.Service {
	return &core.Service{
		ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", number), UID: types.UID(fmt.Sprint(number)), CreationTimestamp: meta.NewTime(time.Unix(int64(number), 0))},
		Spec: core.ServiceSpec{
			Type: core.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, Ports: []core.ServicePort{{Name: "http", Port: port, Protocol: core.ProtocolTCP}},
		},
	}
}

func someSlice(name string, service, endpoints int, ready bool) *discovery.EndpointSlice {
	port, node, portName := int32(8080), "node", "http"
	slice := &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discovery.LabelServiceName: fmt.Sprint("web-", service)}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: &portName, Port: &port}},
	}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i, service/250, service%250)}, NodeName: &node, Conditions: discovery.EndpointConditions{Ready: &ready},
		})
	}
	return slice
}

// BenchmarkAServiceOf5000Changes measures a change of the endpoints of one Service until etcd has it, without Kubernetes' part.
func BenchmarkAServiceOf5000Changes(b *testing.B) {
	var services []*core.Service
	var endpoints []*discovery.EndpointSlice
	for i := range 5000 {
		services = append(services, someService(i, int32(20_000+i)))
		endpoints = append(endpoints, someSlice(fmt.Sprint("slice-", i), i, 4, true))
	}
	s := &store{etcd: etcdtest.New(b).Client(b), logger: slog.New(slog.DiscardHandler)}
	var remembered memory
	publish := func() {
		published, _, err := s.holds(b.Context())
		require.NoError(b, err)
		given := share(slices.Clone(services), endpoints, published, wishes{}, remembered)
		require.Len(b, given.routes, len(services))
		require.NoError(b, s.write(b.Context(), given.routes, nil, &Sites{}, []route.PublicKey{}))
		remembered = given.memory
	}
	publish()
	ready := true
	for b.Loop() {
		ready = !ready
		endpoints[1234] = someSlice("slice-1234", 1234, 4, ready)
		publish()
	}
}
