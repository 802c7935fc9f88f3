package workloads

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/orchestrator/known"
)

func TestItIsSaidWhoHasAPortOfTheGateways(t *testing.T) {
	routes := []route.Route{{Namespace: "shop", Service: "till", Port: "tcp-80", GatewayPort: 80}}
	require.Equal(t, "there the gateways publish shop/till:tcp-80, which is older", holderIn(routes, 80))
	require.Equal(t, "gateways need it for SSH", holderIn(routes, 22))
	require.Empty(t, holderIn(routes, 81))
}

func TestContainersOfAPodHavePortsOfTheirOwn(t *testing.T) {
	with := func(name string, ports ...port) container { return container{name: name, ports: ports} }
	web, dns := port{number: 80, published: 80, protocol: "TCP"}, port{number: 80, published: 81, protocol: "UDP"}
	spec := podSpec{name: "front"}
	require.Nil(t, clashing(spec, []container{with("a", web, port{number: 80, published: 82, protocol: "TCP"}), with("b", dns)}))
	err := clashing(spec, []container{with("a", web), with("b", port{number: 80, published: 8080, protocol: "TCP"})})
	require.EqualError(t, err, "Port 80 is already used in the Pod front: by container a, so that b needs another one")
	require.Equal(t, []string{"com.mirantis.docker.PortConflictException"}, muranopl.AsException(err).Names)
}

func TestAPortThatIsPublishedTwiceIsOpenedOnce(t *testing.T) {
	twice := []port{{number: 80, published: 80, protocol: "TCP", scope: "public"}, {number: 80, published: 8080, protocol: "TCP", scope: "host"},
		{number: 80, published: 81, protocol: "TCP", scope: "internal"}, {number: 80, published: 80, protocol: "UDP", scope: "public"}}
	require.Equal(t, []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: "TCP"}, {ContainerPort: 80, Protocol: "UDP"}}, openedPorts(twice))
}

func TestAPodWhoseContainersShareAPortMayRunAlready(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(ports [2]int32, started ...time.Time) (pod corev1.Pod) {
		for _, number := range ports {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: number}}})
		}
		for _, at := range started {
			status := corev1.ContainerStatus{}
			if !at.IsZero() {
				status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		return pod
	}
	before := now.Add(-time.Hour)
	require.True(t, runsWith(pod([2]int32{80, 80}, before, before), 80, now))
	require.False(t, runsWith(pod([2]int32{80, 81}, before, before), 80, now), "it has had another port")
	require.False(t, runsWith(pod([2]int32{80, 80}, before, now.Add(-time.Second)), 80, now), "one was just started")
	require.False(t, runsWith(pod([2]int32{80, 80}, before, time.Time{}), 80, now), "one is about to be started again")
	require.False(t, runsWith(pod([2]int32{80, 80}), 80, now))
}

func TestOnlyPortsForGatewaysAreLookedFor(t *testing.T) {
	one := container{name: "Web", ports: []port{{number: 8080, published: 80, protocol: "TCP", scope: "public"}, {number: 53, published: 53, protocol: "UDP", scope: "public"},
		{number: 9090, published: 9090, protocol: "TCP", scope: "internal"}}}
	require.Equal(t, map[portKey]string{{"front-web", 80}: ""}, publicPorts(podSpec{name: "front"}, []hosted{{container: one}}))
}

func TestWhatThePublisherSaidLastIsTold(t *testing.T) {
	said := func(message string, hour int) corev1.Event {
		return corev1.Event{Message: message, LastTimestamp: metav1.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/default/events" || r.URL.Query().Get("fieldSelector") != "involvedObject.kind=Service,type=Warning,involvedObject.name=front-web" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
			Items: []corev1.Event{said("port tcp-80 is not published: a", 1), said("port tcp-80 is not published: b", 2), said("port tcp-81 is not published: c", 3)}})
	}))
	t.Cleanup(server.Close)
	api := &rest.Config{Host: server.URL}
	require.Equal(t, "port tcp-80 is not published: b", complaintOf(t.Context(), api, known.Namespace, portKey{"front-web", 80}))
	require.Empty(t, complaintOf(t.Context(), api, known.Namespace, portKey{"front-web", 90}))
	require.Empty(t, complaintOf(t.Context(), api, known.Namespace, portKey{"other", 80}))
}
