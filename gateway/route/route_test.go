package route_test

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/route"
)

func TestARouteIsOneReadableDocumentUnderItsPort(t *testing.T) {
	r := route.Route{
		Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Protocol: route.TCP,
		Since: time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC),
		Backends: []route.Backend{
			{Address: "10.244.2.10", Port: 8080, Node: "murano-kube-2", Ready: true},
			{Address: "10.244.2.9", Port: 8080, Draining: true},
		},
	}
	value, err := route.Encode(r)
	require.NoError(t, err)
	require.Equal(t, "/burano/v1/routes/tcp/80", route.Key(r))
	require.JSONEq(t, `{"version":1,"namespace":"default","service":"web","port":"http","gatewayPort":80,"protocol":"TCP",
		"since":"2026-11-21T02:00:00Z","backends":[
		{"address":"10.244.2.9","port":8080,"ready":false,"draining":true},
		{"address":"10.244.2.10","port":8080,"node":"murano-kube-2","ready":true}]}`, string(value))
}

func TestForeignAndBadValuesAreRefusedWithTheKeyAndTheReason(t *testing.T) {
	good := `{"version":1,"namespace":"d","service":"s","port":"80","gatewayPort":80,"protocol":"TCP","since":"2026-01-01T00:00:00Z","later":{"a":1}}`
	_, err := route.Decode("/burano/v1/routes/tcp/80", []byte(good))
	require.NoError(t, err, "fields of the future are no harm")

	cases := map[string]struct{ key, value, reason string }{
		"another folder":          {"/burano/v1/leader", good, "not a route's key"},
		"a name for a port":       {"/burano/v1/routes/tcp/http", good, "does not end with a port"},
		"a port with zeros":       {"/burano/v1/routes/tcp/080", good, "does not end with a port"},
		"a port too great":        {"/burano/v1/routes/tcp/65536", good, "does not end with a port"},
		"another port's value":    {"/burano/v1/routes/tcp/81", good, "about gateway port 80"},
		"no JSON":                 {"/burano/v1/routes/tcp/80", "hello", "invalid character"},
		"empty":                   {"/burano/v1/routes/tcp/80", "", "unexpected end"},
		"a later version":         {"/burano/v1/routes/tcp/80", `{"version":2,"hosts":7}`, "version 2"},
		"another type":            {"/burano/v1/routes/tcp/80", `{"version":1,"backends":"none"}`, "cannot unmarshal"},
		"the port of SSH":         {"/burano/v1/routes/tcp/22", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":22,"protocol":"TCP"}`, "reserved for SSH"},
		"UDP":                     {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":80,"protocol":"UDP"}`, `protocol "UDP"`},
		"a host name":             {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":80,"protocol":"TCP","backends":[{"address":"example","port":1}]}`, `"example" is not an IP address`},
		"a backend without port":  {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":80,"protocol":"TCP","backends":[{"address":"1.2.3.4"}]}`, "port must be"},
		"the same backend twice":  {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":80,"protocol":"TCP","backends":[{"address":"1.2.3.4","port":1},{"address":"1.2.3.4","port":1}]}`, "there twice"},
		"a value without a name":  {"/burano/v1/routes/tcp/80", `{"version":1,"gatewayPort":80,"protocol":"TCP"}`, `service "" is not a name`},
		"a line in a name":        {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s\nfrontend x","port":"1","gatewayPort":80,"protocol":"TCP"}`, `service "s\nfrontend x" is not a name`},
		"configuration injection": {"/burano/v1/routes/tcp/80", `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":80,"protocol":"TCP","backends":[{"address":"1.2.3.4:1\n stats","port":1}]}`, "not an IP address"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := route.Decode(c.key, []byte(c.value))
			require.ErrorContains(t, err, c.reason)
			require.ErrorContains(t, err, c.key)
		})
	}
}

func TestWhatIsEncodedIsDecodedTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRoute(t)
		value, err := route.Encode(r)
		require.NoError(t, err)
		back, err := route.Decode(route.Key(r), value)
		require.NoError(t, err)
		again, err := route.Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(value), string(again))

		slices.Reverse(r.Backends)
		reversed, err := route.Encode(r)
		require.NoError(t, err)
		require.Equal(t, string(value), string(reversed), "the order of backends does not matter")
		require.ElementsMatch(t, r.Backends, back.Backends)
		r.Backends, back.Backends = nil, nil
		require.Equal(t, r, back)
	})
}

func TestRoutesThatDifferInAnyFieldAreNotEqual(t *testing.T) {
	network := netip.MustParsePrefix("10.0.0.0/8")
	full := route.Route{
		Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Protocol: route.TCP, Backends: []route.Backend{{Address: "10.0.0.1", Port: 80}},
		Sources: []netip.Prefix{network}, Idle: time.Minute, Connections: 2, ClientConnections: 1, AcceptProxy: true, SendProxy: true, Affinity: time.Hour, Since: time.Unix(1, 0),
	}
	again := full
	again.Backends, again.Sources = slices.Clone(full.Backends), slices.Clone(full.Sources)
	require.True(t, full.Equal(again))
	value := reflect.ValueOf(&again).Elem()
	for i := range value.NumField() {
		name := value.Type().Field(i).Name
		require.False(t, value.Field(i).IsZero(), "%s is tried", name)
		had := reflect.New(value.Field(i).Type()).Elem()
		had.Set(value.Field(i))
		value.Field(i).SetZero()
		require.False(t, full.Equal(again), "%s", name)
		value.Field(i).Set(had)
	}
	require.True(t, full.Equal(again))
}

func TestEveryPortGoesToItsOldestClaimWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		routes := rapid.SliceOfN(rapid.Custom(anyRoute), 0, 12).Draw(t, "routes")
		slices.SortFunc(routes, func(a, b route.Route) int { return cmp.Compare(a.String(), b.String()) })
		routes = slices.CompactFunc(routes, func(a, b route.Route) bool { return a.String() == b.String() })
		winners, losers := route.Contest(routes)
		require.Len(t, routes, len(winners)+len(losers))

		holders := map[uint16]route.Route{}
		for _, w := range winners {
			_, twice := holders[w.GatewayPort]
			require.False(t, twice, "one route for each port")
			holders[w.GatewayPort] = w
		}
		for _, l := range losers {
			require.Equal(t, holders[l.Route.GatewayPort], l.Holder)
			require.False(t, l.Route.Since.Before(l.Holder.Since), "the older one keeps the port")
			if l.Route.Since.Equal(l.Holder.Since) {
				require.Positive(t, cmp.Or(cmp.Compare(l.Route.Namespace, l.Holder.Namespace), cmp.Compare(l.Route.Service, l.Holder.Service), cmp.Compare(l.Route.Port, l.Holder.Port)))
			}
		}

		shuffled := slices.Clone(routes)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, losersAgain := route.Contest(shuffled)
		require.Equal(t, winners, again)
		require.Equal(t, losers, losersAgain)
	})
}

func TestPortsOfTheNodesAreReserved(t *testing.T) {
	ports := route.ReservedPorts()
	require.Subset(t, ports, []uint16{22, 179, 2379, 2380, 4789, 6443, 10250, 10256})
	require.True(t, slices.IsSorted(ports))
	for _, usual := range []uint16{80, 443, 8080, 5432, 27017} {
		require.NotContains(t, ports, usual)
	}
}

func TestAGatewayServesWhatIsForItAndForAll(t *testing.T) {
	only, other := []string{"gateway-1"}, []string{"gateway-2", "gateway-3"}
	h := route.HTTP{
		Listeners: []route.Listener{{Port: 80}, {Port: 81, Gateways: only}, {Port: 82, Gateways: other}},
		Sites: []route.Site{{
			Namespace: "default", Kind: route.KindHTTPRoute, Name: "web",
			Paths:        []route.Path{{Path: "/"}, {Path: "/only", Gateways: only}, {Path: "/other", Gateways: other}},
			Sessions:     []route.Session{{Host: "all"}, {Host: "only", Gateways: only}, {Host: "other", Gateways: other}},
			Certificates: []route.Certificate{{Host: "all"}, {Host: "only", Gateways: only}, {Host: "other", Gateways: other}},
		}},
		Pools: []route.Pool{{Namespace: "default", Service: "web", Port: "http"}},
	}
	own := h.For("gateway-1")
	require.Equal(t, h.Listeners[:2], own.Listeners)
	require.Equal(t, h.Sites[0].Paths[:2], own.Sites[0].Paths)
	require.Equal(t, h.Sites[0].Sessions[:2], own.Sites[0].Sessions)
	require.Equal(t, h.Sites[0].Certificates[:2], own.Sites[0].Certificates)
	require.Equal(t, h.Pools, own.Pools)
	require.Len(t, h.Sites[0].Paths, 3, "what etcd says stays as it was read")
	require.Equal(t, h.Listeners[2], h.For("gateway-3").Listeners[1])
	bad := route.Part{Listener: &route.Listener{Port: 80, Gateways: []string{"a\nb"}}}
	require.ErrorContains(t, bad.Validate(), "is not a name")
}

func FuzzDecode(f *testing.F) {
	f.Add("/burano/v1/routes/tcp/80", []byte(`{"version":1,"namespace":"d","service":"s","port":"80","gatewayPort":80,"protocol":"TCP","backends":[{"address":"::1","port":1,"ready":true}]}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		r, err := route.Decode(key, value)
		if err != nil {
			return
		}
		require.Equal(t, key, route.Key(r))
		_, err = route.Encode(r)
		require.NoError(t, err)
	})
}

func anyRoute(t *rapid.T) route.Route {
	name := rapid.StringMatching(`[a-z]([a-z0-9-]{0,6}[a-z0-9])?`)
	port := func(p uint16) bool { _, reserved := route.Reserved(p); return !reserved }
	backend := rapid.Custom(func(t *rapid.T) route.Backend {
		bytes := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		return route.Backend{
			Address: netip.AddrFrom4([4]byte(bytes)).String(), Port: rapid.Uint16Min(1).Draw(t, "port"),
			Node: rapid.OneOf(rapid.Just(""), name).Draw(t, "node"), Ready: rapid.Bool().Draw(t, "ready"), Draining: rapid.Bool().Draw(t, "draining"),
		}
	})
	return route.Route{
		Namespace: name.Draw(t, "namespace"), Service: name.Draw(t, "service"),
		Port:        rapid.OneOf(name, rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(int(rapid.Uint16().Draw(t, "number"))) })).Draw(t, "port"),
		GatewayPort: rapid.OneOf(rapid.Uint16Range(80, 84), rapid.Uint16Min(1)).Filter(port).Draw(t, "gateway port"), Protocol: route.TCP,
		AcceptProxy: rapid.Bool().Draw(t, "accept"), SendProxy: rapid.Bool().Draw(t, "send"), Affinity: time.Duration(rapid.IntRange(0, 86400).Draw(t, "affinity")) * time.Second,
		Since:    time.Unix(rapid.Int64Range(0, 3).Draw(t, "since"), 0).UTC(),
		Backends: rapid.SliceOfNDistinct(backend, 0, 5, func(b route.Backend) string { return b.Address + strconv.Itoa(int(b.Port)) }).Draw(t, "backends"),
	}
}

func TestAUDPPortIsReadAsItWasWritten(t *testing.T) {
	u := route.UDP{Port: 53, Since: time.Unix(3, 0).UTC(), Flows: []route.Flow{
		{Kind: route.KindUDPRoute, Namespace: "shop", Name: "names", Gateways: []string{"gateway-2"}, Targets: []route.UDPTarget{{Weight: 1, Backends: []route.Backend{}}}},
		{Kind: route.KindService, Namespace: "shop", Name: "names", ServicePort: "dns", Sources: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Targets: []route.UDPTarget{{Weight: 3, Sticky: true, Backends: []route.Backend{{Address: "10.1.1.1", Port: 53, Ready: true}}}}},
	}}
	value, err := route.EncodeUDP(u)
	require.NoError(t, err)
	again, err := route.DecodeUDP(route.UDPKey(u), value)
	require.NoError(t, err)
	require.Equal(t, u, again)
	of, some := u.For("gateway-1")
	require.True(t, some)
	require.Equal(t, "shop/names:dns", of.String())
	of, _ = u.For("gateway-2")
	require.Equal(t, "shop/names", of.String())
	for wrong, change := range map[string]func(*route.UDP){
		"reserved":      func(u *route.UDP) { u.Port = 4789 },
		"1 to 65535":    func(u *route.UDP) { u.Port = 0 },
		"no kind":       func(u *route.UDP) { u.Flows[0].Kind = "TCPRoute" },
		"is not a name": func(u *route.UDP) { u.Flows[0].Gateways = []string{"a\nb"} },
		"weights are":   func(u *route.UDP) { u.Flows[0].Targets = []route.UDPTarget{{Weight: -1}} },
		"not an IP": func(u *route.UDP) {
			u.Flows[0].Targets = []route.UDPTarget{{Backends: []route.Backend{{Address: "fe80::1%a", Port: 1}}}}
		},
		"at most 64":      func(u *route.UDP) { u.Flows[0].Targets = make([]route.UDPTarget, 65) },
		"networks of cli": func(u *route.UDP) { u.Flows[0].Sources = []netip.Prefix{{}} },
	} {
		bad := route.UDP{Port: 53, Flows: []route.Flow{{Kind: route.KindUDPRoute, Namespace: "shop", Name: "names"}}}
		change(&bad)
		require.ErrorContains(t, bad.Validate(), wrong)
	}
	_, err = route.DecodeUDP(route.UDPPrefix+"54", value)
	require.ErrorContains(t, err, "about UDP port 53")
	_, err = route.Decode(route.UDPKey(u), value)
	require.Error(t, err, "a gateway of a former release leaves it out")
}

func FuzzDecodeUDP(f *testing.F) {
	f.Add("/burano/v1/routes/udp/53", []byte(`{"version":1,"port":53,"flows":[{"kind":"Service","namespace":"d","name":"s","servicePort":"dns","targets":[{"weight":1,"backends":[{"address":"::1","port":1,"ready":true}]}]}]}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		u, err := route.DecodeUDP(key, value)
		if err != nil {
			return
		}
		require.Equal(t, key, route.UDPKey(u))
		_, err = route.EncodeUDP(u)
		require.NoError(t, err)
	})
}
