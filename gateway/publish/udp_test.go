package publish_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

const udpGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: default, generation: 3, creationTimestamp: "2026-01-01T08:00:00Z"}
spec:
  gatewayClassName: burano
  listeners:
  - {name: names, port: 53, protocol: UDP}
  - {name: names-tcp, port: 53, protocol: TCP}
  - {name: tunnel, port: 4789, protocol: UDP}
`

// udpWorld has a Service with a pod of both families, and the slices of both.
func udpWorld(t *testing.T, routes ...string) publish.World {
	w := gatewayWorld(t, []string{udpGateway}, routes...)
	names, protocol, number := "dns", core.ProtocolUDP, int32(5353)
	w.Services = append(w.Services, service("names", port("dns", 53, core.ProtocolUDP), port("dns-tcp", 53)))
	for kind, address := range map[discovery.AddressType]string{discovery.AddressTypeIPv4: "10.244.1.9", discovery.AddressTypeIPv6: "fd00::9"} {
		w.EndpointSlices = append(w.EndpointSlices, &discovery.EndpointSlice{
			ObjectMeta:  meta.ObjectMeta{Namespace: "default", Name: "names-" + string(kind), Labels: map[string]string{discovery.LabelServiceName: "names"}},
			AddressType: kind, Ports: []discovery.EndpointPort{{Name: &names, Protocol: &protocol, Port: &number}}, Endpoints: []discovery.Endpoint{{Addresses: []string{address}}},
		})
	}
	return w
}

func TestAUDPRouteLeadsDatagramsToTheOldestRoutesBackends(t *testing.T) {
	w := udpWorld(t,
		"kind: UDPRoute\n"+routeText("old", `{parentRefs: [{name: edge, sectionName: names}], rules: [{backendRefs: [{name: names, port: 53, weight: 3}, {name: gone, port: 53}, {name: a, port: 80, weight: 0}]}]}`),
		"kind: UDPRoute\n"+routeText("young", `{parentRefs: [{name: edge, port: 53}], rules: [{backendRefs: [{name: names, port: 53}]}]}`),
		"kind: UDPRoute\n"+routeText("wrong", `{parentRefs: [{name: edge, sectionName: names-tcp}, {name: edge, sectionName: tunnel}], rules: [{backendRefs: [{name: names, port: 53}]}]}`))
	s := publish.SitesOf(w)
	ports := s.UDPPorts()
	require.Contains(t, ports, uint16(53))
	flows := ports[53].Flows
	require.Len(t, flows, 1)
	require.Equal(t, "default/old", flows[0].String())
	require.Equal(t, []route.UDPTarget{
		{Weight: 3, Backends: []route.Backend{{Address: "10.244.1.9", Port: 5353, Ready: true}, {Address: "fd00::9", Port: 5353, Ready: true}}}, {Weight: 1}, {Weight: 0},
	}, flows[0].Targets, "pods of both families; shares without a backend are refused")
	require.NotContains(t, ports, uint16(4789), "a port of the nodes")
	for _, site := range s.HTTP.Sites {
		require.NotEqual(t, route.KindUDPRoute, site.Kind, "HAProxy has nothing of it")
	}
	require.Empty(t, s.Pools, "nor its backends")
}

func TestAServiceAndAGatewayDoNotShareAUDPPort(t *testing.T) {
	gateway := publish.SitesOf(udpWorld(t)).UDPPorts()
	older := service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP), younger(-10*365*24*time.Hour))
	won, complaints := publish.ShareUDP([]*core.Service{older}, gateway)
	require.Empty(t, complaints)
	require.Equal(t, []string{"default/dns:a"}, won)
	won, complaints = publish.ShareUDP([]*core.Service{service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP))}, gateway)
	require.Empty(t, won, "a listener without a route has its port, too")
	require.Len(t, complaints, 1)
	require.Equal(t, publish.ReasonConflict, complaints[0].Reason)
}
