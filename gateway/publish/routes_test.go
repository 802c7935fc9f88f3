package publish_test

import (
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

var morning = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

type option func(*core.Service)

func in(namespace string) option      { return func(s *core.Service) { s.Namespace = namespace } }
func of(kind core.ServiceType) option { return func(s *core.Service) { s.Spec.Type = kind } }
func younger(by time.Duration) option {
	return func(s *core.Service) { s.CreationTimestamp = meta.NewTime(morning.Add(by)) }
}
func note(key, value string) option {
	return func(s *core.Service) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}
func port(name string, number int32, protocol ...core.Protocol) option {
	return func(s *core.Service) {
		p := core.ServicePort{Name: name, Port: number}
		if len(protocol) > 0 {
			p.Protocol = protocol[0]
		}
		s.Spec.Ports = append(s.Spec.Ports, p)
	}
}

func class(name string) option { return func(s *core.Service) { s.Spec.LoadBalancerClass = &name } }
func sources(networks ...string) option {
	return func(s *core.Service) { s.Spec.LoadBalancerSourceRanges = networks }
}

func service(name string, options ...option) *core.Service {
	s := &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), CreationTimestamp: meta.NewTime(morning)},
		Spec:       core.ServiceSpec{Type: core.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", Selector: map[string]string{"app": name}},
	}
	for _, o := range options {
		o(s)
	}
	if len(s.Spec.Ports) == 0 {
		port("http", 80)(s)
	}
	return s
}

func TestWhichServicesArePublished(t *testing.T) {
	noSelector := func(s *core.Service) { s.Spec.Selector = nil }
	headless := func(s *core.Service) { s.Spec.ClusterIP = core.ClusterIPNone }
	cases := map[string]struct {
		service *core.Service
		ports   []uint16
		reasons []string
	}{
		"a service in default, by its own port":           {service("web"), []uint16{80}, nil},
		"a NodePort service in default":                   {service("web", of(core.ServiceTypeNodePort)), []uint16{80}, nil},
		"the Kubernetes API is not":                       {service("kubernetes", noSelector, port("https", 443)), nil, nil},
		"nor when it is asked for":                        {service("kubernetes", port("https", 443), note("burano.io/publish", "true")), nil, []string{publish.ReasonKind}},
		"without a selector it is not":                    {service("web", noSelector), nil, nil},
		"unless it is asked for":                          {service("web", noSelector, note("burano.io/publish", "true")), []uint16{80}, nil},
		"a headless one is not":                           {service("web", headless), nil, nil},
		"a headless one that asks is reported":            {service("web", headless, note("burano.io/publish", "true")), nil, []string{publish.ReasonKind}},
		"an ExternalName is not":                          {service("web", of(core.ServiceTypeExternalName)), nil, nil},
		"one can opt out":                                 {service("web", note("burano.io/publish", "false")), nil, nil},
		"another word is reported and not heeded":         {service("web", note("burano.io/publish", "True")), []uint16{80}, []string{publish.ReasonAnnotation}},
		"another namespace is not published":              {service("dns", in("kube-system")), nil, nil},
		"another namespace with LoadBalancer is":          {service("web", in("shop"), of(core.ServiceTypeLoadBalancer)), []uint16{80}, nil},
		"another namespace that asks is":                  {service("web", in("shop"), note("burano.io/publish", "true")), []uint16{80}, nil},
		"a LoadBalancer can opt out":                      {service("web", in("shop"), of(core.ServiceTypeLoadBalancer), note("burano.io/publish", "false")), nil, nil},
		"only TCP ports":                                  {service("dns", port("a", 5300, core.ProtocolUDP), port("b", 5301, core.ProtocolTCP), port("c", 5302, core.ProtocolSCTP)), []uint16{5301}, nil},
		"UDP of a LoadBalancer":                           {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 5300, core.ProtocolUDP), port("b", 5301)), []uint16{5301, 5300}, nil},
		"UDP that is asked for":                           {service("dns", in("shop"), port("a", 5300, core.ProtocolUDP), note("burano.io/publish", "true")), []uint16{5300}, nil},
		"a LoadBalancer's port of SCTP is reported":       {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 5300, core.ProtocolSCTP), port("b", 5301)), []uint16{5301}, []string{publish.ReasonProtocol}},
		"one number moves the only port of each protocol": {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP), port("b", 53), note("burano.io/gateway-port", "5353")), []uint16{5353, 5353}, nil},
		"a UDP port is moved by its name":                 {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP), port("b", 53), note("burano.io/gateway-port", "a=5353")), []uint16{53, 5353}, nil},
		"both are moved by their number":                  {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP), port("b", 53), note("burano.io/gateway-port", "53=5353")), []uint16{5353, 5353}, nil},
		"a UDP port of the nodes is refused":              {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 4789, core.ProtocolUDP)), nil, []string{publish.ReasonReserved}},
		"limits of connections are not heeded for UDP":    {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 53, core.ProtocolUDP), note("burano.io/max-connections", "9")), []uint16{53}, []string{publish.ReasonUnheeded}},
		"unless it is internal":                           {service("dns", of(core.ServiceTypeLoadBalancer), port("a", 5300, core.ProtocolUDP), port("b", 5301), note("burano.io/internal-ports", "a")), []uint16{5301}, nil},
		"a LoadBalancer of another class is not":          {service("web", of(core.ServiceTypeLoadBalancer), class("example.com/other")), nil, nil},
		"of ours it is":                                   {service("web", in("shop"), of(core.ServiceTypeLoadBalancer), class(publish.Class)), []uint16{80}, nil},
		"of another class it is when asked for":           {service("web", of(core.ServiceTypeLoadBalancer), class("example.com/other"), note("burano.io/publish", "true")), []uint16{80}, nil},
		"one whose clients cannot be understood is not":   {service("web", of(core.ServiceTypeLoadBalancer), sources("everybody")), nil, []string{publish.ReasonSources}},
		"all ports":                                            {service("web", port("http", 80), port("https", 443)), []uint16{80, 443}, nil},
		"a port without a name":                                {service("web", port("", 8080)), []uint16{8080}, nil},
		"a moved port":                                         {service("web", note("burano.io/gateway-port", "8080")), []uint16{8080}, nil},
		"a moved port by name":                                 {service("web", note("burano.io/gateway-port", "http=8080")), []uint16{8080}, nil},
		"several moved ports, by name and number":              {service("web", port("http", 80), port("tls", 443), port("x", 90), note("burano.io/gateway-port", " http=8080, 443 = 8443")), []uint16{90, 8080, 8443}, nil},
		"one number for two ports is reported":                 {service("web", port("http", 80), port("tls", 443), note("burano.io/gateway-port", "8080")), nil, []string{publish.ReasonAnnotation}},
		"no number is reported":                                {service("web", note("burano.io/gateway-port", "http")), nil, []string{publish.ReasonAnnotation}},
		"no port of this name is reported":                     {service("web", note("burano.io/gateway-port", "htpp=8080")), nil, []string{publish.ReasonAnnotation}},
		"a port named twice is reported":                       {service("web", note("burano.io/gateway-port", "http=8080,80=8081")), nil, []string{publish.ReasonAnnotation}},
		"a port too great is reported":                         {service("web", note("burano.io/gateway-port", "http=70000")), nil, []string{publish.ReasonAnnotation}},
		"an internal port is not published":                    {service("web", port("http", 80), port("metrics", 9100), note("burano.io/internal-ports", "metrics")), []uint16{80}, nil},
		"internal ports by name and number":                    {service("web", port("http", 80), port("a", 9000), port("b", 9001), note("burano.io/internal-ports", "a, 9001,")), []uint16{80}, nil},
		"one number suffices when the other port is internal":  {service("web", port("http", 80), port("a", 9000), note("burano.io/internal-ports", "a"), note("burano.io/gateway-port", "81")), []uint16{81}, nil},
		"an internal port that is not there is reported":       {service("web", note("burano.io/internal-ports", "metrics")), []uint16{80}, []string{publish.ReasonAnnotation}},
		"an internal port cannot be moved out":                 {service("web", port("http", 80), port("a", 9000), note("burano.io/internal-ports", "a"), note("burano.io/gateway-port", "a=81")), nil, []string{publish.ReasonAnnotation}},
		"a port of the nodes is refused":                       {service("etcd", port("client", 2379)), nil, []string{publish.ReasonReserved}},
		"a port of the nodes is refused also as a destination": {service("web", note("burano.io/gateway-port", "22")), nil, []string{publish.ReasonReserved}},
		"moved away from a port of the nodes":                  {service("etcd", port("client", 2379), note("burano.io/gateway-port", "12379")), []uint16{12379}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			routes, complaints := publish.Routes([]*core.Service{c.service}, nil, nil)
			var ports []uint16
			for _, r := range routes {
				if r.Protocol == route.ProtocolUDP {
					require.NoError(t, route.UDPOf(r).Validate())
				} else {
					require.NoError(t, r.Validate())
				}
				require.Equal(t, c.service.Name, r.Service)
				require.Equal(t, morning, r.Since)
				ports = append(ports, r.GatewayPort)
			}
			require.Equal(t, c.ports, ports)
			var reasons []string
			for _, complaint := range complaints {
				reasons = append(reasons, complaint.Reason)
				require.Equal(t, c.service.UID, complaint.UID)
				require.NotEmpty(t, complaint.Message)
			}
			require.Equal(t, c.reasons, reasons)
		})
	}
}

func TestTheOlderServiceKeepsAContestedPortAndTheYoungerIsTold(t *testing.T) {
	routes, complaints := publish.Routes([]*core.Service{
		service("b", younger(time.Hour)), service("a", younger(2*time.Hour)), service("c", in("shop"), of(core.ServiceTypeLoadBalancer)),
	}, nil, nil)
	require.Len(t, routes, 1)
	require.Equal(t, "shop/c:http", routes[0].String())
	require.Len(t, complaints, 2)
	require.Equal(t, publish.Complaint{
		Namespace: "default", Name: "b", UID: "uid-b", Reason: publish.ReasonConflict,
		Message: "port http is not published: gateway port 80 belongs to shop/c:http, which is older. Choose another with the annotation burano.io/gateway-port.",
	}, complaints[0])
}

func TestAServiceOfAnotherClassThatIsPublishedAlreadyStays(t *testing.T) {
	web := service("web", of(core.ServiceTypeLoadBalancer), class("example.com/other"))
	routes, complaints := publish.Routes([]*core.Service{web}, nil, map[types.NamespacedName]bool{{Namespace: "default", Name: "web"}: true})
	require.Len(t, routes, 1)
	require.Empty(t, complaints)
	require.Zero(t, publish.StatusOf(web, routes, complaints, []route.Gateway{{Name: "g", Address: netip.MustParseAddr("203.0.113.1")}}), "its status is of another controller")
}

func TestTheClientsOfALoadBalancerAreInItsRoutes(t *testing.T) {
	routes, complaints := publish.Routes([]*core.Service{service("web", of(core.ServiceTypeLoadBalancer), sources(" 203.0.113.0/24", "2001:db8::/32"))}, nil, nil)
	require.Empty(t, complaints)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")}, routes[0].Sources)
	routes, _ = publish.Routes([]*core.Service{service("web", sources("203.0.113.0/24"))}, nil, nil)
	require.Empty(t, routes[0].Sources, "only of type LoadBalancer")
}

func TestTheLimitsOfConnectionsAreInRoutes(t *testing.T) {
	limited := service("web", note("burano.io/idle-timeout", " 90s"), note("burano.io/max-connections", "1000"), note("burano.io/max-connections-per-client", "10"))
	routes, complaints := publish.Routes([]*core.Service{limited}, nil, nil)
	require.Empty(t, complaints)
	require.Equal(t, 90*time.Second, routes[0].Idle)
	require.Equal(t, 1000, routes[0].Connections)
	require.Equal(t, 10, routes[0].ClientConnections)
	for text, wanted := range map[string][]bool{"accept": {true, false}, "send": {false, true}, "accept, send": {true, true}, "send,accept": {true, true}} {
		routes, complaints := publish.Routes([]*core.Service{service("web", note("burano.io/proxy-protocol", text))}, nil, nil)
		require.Empty(t, complaints)
		require.Equal(t, wanted, []bool{routes[0].AcceptProxy, routes[0].SendProxy}, text)
	}
	for name, wrong := range map[string][]string{
		"burano.io/idle-timeout":               {"", "10", "1ms", "200h", "-1s", "1h\ntimeout client 1s"},
		"burano.io/max-connections":            {"", "0", "-1", "many", "1000001", "1 2"},
		"burano.io/max-connections-per-client": {"", "0", "1.5", "99999999999999999999"},
		"burano.io/proxy-protocol":             {"", "true", "v2", "accept send", "send,send", "Send"},
	} {
		for _, value := range wrong {
			routes, complaints := publish.Routes([]*core.Service{service("web", note(name, value))}, nil, nil)
			require.Len(t, routes, 1, "it is published all the same")
			require.Zero(t, routes[0].Idle+time.Duration(routes[0].Connections)+time.Duration(routes[0].ClientConnections))
			require.False(t, routes[0].AcceptProxy || routes[0].SendProxy)
			require.Len(t, complaints, 1, value)
			require.Equal(t, publish.ReasonAnnotation, complaints[0].Reason)
		}
	}
}

func TestWhatTheStatusOfAServiceSays(t *testing.T) {
	gateways := []route.Gateway{{Name: "a", Address: netip.MustParseAddr("203.0.113.2")}, {Name: "b", Address: netip.MustParseAddr("203.0.113.1")}}
	cases := map[string]struct {
		service   *core.Service
		gateways  []route.Gateway
		addresses []string
		published meta.ConditionStatus
		reason    string
	}{
		"all addresses of the gateways":           {service("web", of(core.ServiceTypeLoadBalancer)), gateways, []string{"203.0.113.1", "203.0.113.2"}, meta.ConditionTrue, "Published"},
		"nothing without a gateway":               {service("web", of(core.ServiceTypeLoadBalancer)), nil, nil, meta.ConditionFalse, "NoGateways"},
		"nothing of a ClusterIP":                  {service("web"), gateways, nil, "", ""},
		"nothing of one that opts out":            {service("web", of(core.ServiceTypeLoadBalancer), note("burano.io/publish", "false")), gateways, nil, "", ""},
		"the addresses, and the port that is not": {service("web", of(core.ServiceTypeLoadBalancer), port("http", 80), port("u", 81, core.ProtocolSCTP)), gateways, []string{"203.0.113.1", "203.0.113.2"}, meta.ConditionFalse, publish.ReasonProtocol},
		"no address when no port is published":    {service("web", of(core.ServiceTypeLoadBalancer), port("ssh", 22)), gateways, nil, meta.ConditionFalse, publish.ReasonReserved},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			routes, complaints := publish.Routes([]*core.Service{c.service}, nil, nil)
			status := publish.StatusOf(c.service, routes, complaints, c.gateways)
			require.Equal(t, c.addresses, status.Addresses)
			require.Equal(t, c.published, status.Published)
			require.Equal(t, c.reason, status.Reason)
		})
	}
}

func slice(service string, portName string, number int32, endpoints ...discovery.Endpoint) *discovery.EndpointSlice {
	tcp := core.ProtocolTCP
	return &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Namespace: "default", Name: service + strconv.Itoa(rand.Int()), Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: &portName, Port: &number, Protocol: &tcp}},
		Endpoints:   endpoints,
	}
}

func at(address string, ready, serving, terminating bool) discovery.Endpoint {
	node := "node"
	return discovery.Endpoint{Addresses: []string{address}, NodeName: &node, Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}}
}

func TestBackendsAreReadyEndpointsAndThoseThatEndButStillServe(t *testing.T) {
	six := slice("web", "http", 8080, at("fd00::1", true, true, false))
	six.AddressType = discovery.AddressTypeIPv6
	foreign := slice("web", "http", 8080, at("10.0.0.66", true, true, false))
	foreign.Namespace = "elsewhere"
	routes, complaints := publish.Routes([]*core.Service{service("web")}, []*discovery.EndpointSlice{
		slice("web", "http", 8080,
			at("10.0.0.10", true, true, false), at("10.0.0.2", false, true, true), at("10.0.0.3", false, false, true), at("10.0.0.4", false, false, false),
			discovery.Endpoint{Addresses: []string{"10.0.0.5"}}, discovery.Endpoint{}, discovery.Endpoint{Addresses: []string{"no address"}}),
		slice("web", "http", 8081, at("10.0.0.2", true, true, false)),
		slice("web", "http", 8080, at("10.0.0.10", false, true, true), at("10.0.0.2", false, true, true)),
		slice("web", "metrics", 9100, at("10.0.0.10", true, true, false)),
		slice("other", "http", 8080, at("10.0.0.99", true, true, false)),
		six, foreign,
	}, nil)
	require.Empty(t, complaints)
	require.Equal(t, []route.Backend{
		{Address: "10.0.0.2", Port: 8080, Node: "node", Draining: true},
		{Address: "10.0.0.2", Port: 8081, Node: "node", Ready: true},
		{Address: "10.0.0.5", Port: 8080, Ready: true},
		{Address: "10.0.0.10", Port: 8080, Node: "node", Ready: true},
	}, routes[0].Backends)
}

func TestEndpointsThatSomebodyListsHimselfMayBeOfTheOtherVersionOfIP(t *testing.T) {
	six := func(s *core.Service) { s.Spec.IPFamilies = []core.IPFamily{core.IPv6Protocol} }
	own := func(s *core.Service) { s.Spec.Selector = nil }
	published := note("burano.io/publish", "true")
	plain, both := slice("web", "http", 8080, at("10.0.0.10", true, true, false)), slice("web", "http", 8080, at("fd00::1", true, true, false))
	both.AddressType = discovery.AddressTypeIPv6
	for name, one := range map[string]struct {
		service *core.Service
		slices  []*discovery.EndpointSlice
		want    string
	}{
		"they are taken":                      {service("web", six, own, published), []*discovery.EndpointSlice{plain}, "10.0.0.10"},
		"unless there are some of the first":  {service("web", six, own, published), []*discovery.EndpointSlice{plain, both}, "fd00::1"},
		"those that Kubernetes lists are not": {service("web", six), []*discovery.EndpointSlice{plain}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			routes, complaints := publish.Routes([]*core.Service{one.service}, one.slices, nil)
			require.Empty(t, complaints)
			found := ""
			for _, backend := range routes[0].Backends {
				found += backend.Address
			}
			require.Equal(t, one.want, found)
		})
	}
}

func TestRoutesAreValidAndIndependentOfTheOrderOfWhatKubernetesSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-c]`)
		services := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) *core.Service {
			s := service(name.Draw(t, "name"), in(rapid.SampledFrom([]string{"default", "shop"}).Draw(t, "namespace")),
				of(rapid.SampledFrom([]core.ServiceType{core.ServiceTypeClusterIP, core.ServiceTypeLoadBalancer}).Draw(t, "type")),
				younger(time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second), port("http", rapid.SampledFrom([]int32{22, 80, 81, 443}).Draw(t, "port")))
			s.UID = types.UID(s.Namespace + "/" + s.Name)
			if rapid.Bool().Draw(t, "annotated") {
				note("burano.io/gateway-port", rapid.SampledFrom([]string{"80", "http=81", "x=1", "6443", "="}).Draw(t, "annotation"))(s)
			}
			return s
		}), 0, 8, func(s *core.Service) types.UID { return s.UID }).Draw(t, "services")
		endpointSlices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *discovery.EndpointSlice {
			return slice(name.Draw(t, "of"), "http", 8080, at("10.0.0."+strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "address")), rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "serving"), rapid.Bool().Draw(t, "terminating")))
		}), 0, 6).Draw(t, "slices")

		routes, complaints := publish.Routes(services, endpointSlices, nil)
		seen := map[uint16]bool{}
		for _, r := range routes {
			require.NoError(t, r.Validate())
			require.False(t, seen[r.GatewayPort])
			seen[r.GatewayPort] = true
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		random.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
		random.Shuffle(len(endpointSlices), func(i, j int) { endpointSlices[i], endpointSlices[j] = endpointSlices[j], endpointSlices[i] })
		again, complaintsAgain := publish.Routes(services, endpointSlices, nil)
		require.Equal(t, routes, again)
		require.Equal(t, complaints, complaintsAgain)
	})
}

func FuzzAnnotations(f *testing.F) {
	f.Add("true", "8080", "metrics")
	f.Add("false", "http=8080,https=8443", "9100,,x")
	f.Fuzz(func(t *testing.T, published, ports, internal string) {
		routes, _ := publish.Routes([]*core.Service{service("web", port("http", 80), port("https", 443),
			note("burano.io/publish", published), note("burano.io/gateway-port", ports), note("burano.io/internal-ports", internal))}, nil, nil)
		for _, r := range routes {
			require.NoError(t, r.Validate())
		}
	})
}

func TestAClientOfAServiceKeepsItsPodAsLongAsItSays(t *testing.T) {
	affine := func(seconds *int32) option {
		return func(s *core.Service) {
			s.Spec.SessionAffinity = core.ServiceAffinityClientIP
			if seconds != nil {
				s.Spec.SessionAffinityConfig = &core.SessionAffinityConfig{ClientIP: &core.ClientIPConfig{TimeoutSeconds: seconds}}
			}
		}
	}
	minute := int32(60)
	routes, complaints := publish.Routes([]*core.Service{service("a", port("", 80)), service("b", port("", 81), affine(nil)), service("c", port("", 82), affine(&minute))}, nil, nil)
	require.Empty(t, complaints)
	require.Equal(t, []time.Duration{0, 3 * time.Hour, time.Minute}, []time.Duration{routes[0].Affinity, routes[1].Affinity, routes[2].Affinity})
	for _, r := range routes {
		value, err := route.Encode(r)
		require.NoError(t, err)
		read, err := route.Decode(route.Key(r), value)
		require.NoError(t, err)
		require.True(t, r.Equal(read))
	}
}

func TestWhatAServiceAsksForInVainIsToldAndIsServedAllTheSame(t *testing.T) {
	close := core.ServiceTrafficDistributionPreferClose
	s := service("a", port("", 80), of(core.ServiceTypeLoadBalancer), func(s *core.Service) {
		s.Spec.LoadBalancerIP, s.Spec.ExternalTrafficPolicy, s.Spec.TrafficDistribution = "192.0.2.1", core.ServiceExternalTrafficPolicyLocal, &close
	})
	names := slice("a", "", 8080)
	names.AddressType = discovery.AddressTypeFQDN
	routes, complaints := publish.Routes([]*core.Service{s}, []*discovery.EndpointSlice{names}, nil)
	require.Len(t, routes, 1)
	require.Len(t, complaints, 4)
	for i, word := range []string{"externalTrafficPolicy Local", "loadBalancerIP 192.0.2.1", "EndpointSlice", "trafficDistribution PreferClose"} {
		require.Equal(t, publish.ReasonUnheeded, complaints[i].Reason)
		require.Contains(t, complaints[i].Message, word)
	}
	status := publish.StatusOf(s, routes, complaints, []route.Gateway{{Name: "g", Address: netip.MustParseAddr("10.0.0.1")}})
	require.Equal(t, meta.ConditionTrue, status.Published, "its ports are served")
	require.Equal(t, publish.ReasonUnheeded, status.Reason)
	require.Contains(t, status.Message, "loadBalancerIP 192.0.2.1 is not heeded")
	require.Equal(t, []string{"10.0.0.1"}, status.Addresses)
}
