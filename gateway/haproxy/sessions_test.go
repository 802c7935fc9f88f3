package haproxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// backendAt is a ready backend that listens there.
func backendAt(listener net.Listener) route.Backend {
	at := netip.MustParseAddrPort(listener.Addr().String())
	return route.Backend{Address: at.Addr().String(), Port: at.Port(), Ready: true}
}

// poolAt is the port of a Service with this one backend.
func poolAt(service, port string, listener net.Listener) route.Pool {
	return route.Pool{Namespace: "default", Service: service, Port: port, Backends: []route.Backend{backendAt(listener)}}
}

// greeter is the port of a backend that speaks first, as servers of mail and databases do: a gateway that waits for the client has nothing to pass on.
func greeter(t *testing.T, name string) route.Pool {
	return route.Pool{Namespace: "default", Service: name, Port: "tcp", Backends: []route.Backend{named(t, name)}}
}

// TestCallsOfGRPCReachTheirBackends has a real server and a real client of gRPC: calls and streams, with TLS and without.
func TestCallsOfGRPCReachTheirBackends(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	service := health.NewServer()
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	pool := poolAt("health", "tcp", listener)
	paths := func(port uint16) (list []route.Path) {
		for _, one := range []route.Path{
			{Path: "/grpc.health.v1.Health/Check", Exact: true, Targets: []route.Target{through(pool, route.Filters{H2C: true})}},
			{Host: "streams.org", Path: "/grpc.health.v1.Health", Targets: []route.Target{through(pool, route.Filters{H2C: true})}},
			{Host: "gone.org", Path: "/", Targets: []route.Target{{Weight: 1, Filters: &route.Filters{Status: 503}}}},
		} {
			one.Port = port
			list = append(list, one)
		}
		return list
	}
	site := httpRoute("calls", 0, append(paths(l.plain), paths(l.safe)...)...)
	site.Kind = route.KindGRPCRoute
	site.Opened = []route.Opened{{Port: l.safe}}
	require.NoError(t, route.Part{Site: &site}.Validate())
	l.serve(t, route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site}})
	for port, security := range map[uint16]credentials.TransportCredentials{l.plain: insecure.NewCredentials(), l.safe: credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})} {
		client := func(host string) healthpb.HealthClient {
			connection, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", port), grpc.WithTransportCredentials(security), grpc.WithAuthority(host))
			require.NoError(t, err)
			t.Cleanup(func() { _ = connection.Close() })
			return healthpb.NewHealthClient(connection)
		}
		answer, err := client("any.org").Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, answer.Status)
		_, err = client("any.org").Check(t.Context(), &healthpb.HealthCheckRequest{Service: "unknown"})
		require.Equal(t, codes.NotFound, status.Code(err), "the backend's own answer, which is in trailers")
		stream, err := client("any.org").Watch(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, codes.Unimplemented, status.Code(err), "no rule has this method")
		_, err = client("gone.org").Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.Equal(t, codes.Unavailable, status.Code(err), "the host comes before the method, and its backend is not there")

		service.SetServingStatus("moving", healthpb.HealthCheckResponse_SERVING)
		stream, err = client("streams.org").Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "moving"})
		require.NoError(t, err)
		for _, is := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
			answer, err := stream.Recv()
			require.NoError(t, err)
			require.Equal(t, is, answer.Status)
			service.SetServingStatus("moving", healthpb.HealthCheckResponse_NOT_SERVING)
		}
	}
}

// TestTLSSessionsAreOpenedForBackendsThatDoNotSpeakHTTP has one port that opens sessions for such a backend and for requests, and passes others through.
func TestTLSSessionsAreOpenedForBackendsThatDoNotSpeakHTTP(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	mail, web, sealed := greeter(t, "mail"), echo(t, "web"), greeter(t, "sealed")
	terminated := func(host string, targets ...route.Target) route.Site {
		return route.Site{Namespace: "default", Kind: route.KindTLSRoute, Name: "opened", Terminated: []route.Session{{Port: l.safe, Host: host, Targets: targets}}}
	}
	page := l.path("web.org", "/", all(web))
	page.Port = l.safe
	h := route.HTTP{Pools: []route.Pool{mail, web, sealed}, Listeners: []route.Listener{{Port: l.safe, TLS: true, Passes: true, Names: true, NoIngress: true}}, Sites: []route.Site{
		httpRoute("web", 0, page),
		{Namespace: "default", Kind: route.KindGateway, Name: "edge", Opened: []route.Opened{{Port: l.safe, Host: "web.org"}}},
		{Namespace: "default", Kind: route.KindTLSRoute, Name: "sealed", Sessions: []route.Session{{Port: l.safe, Host: "sealed.org", Targets: []route.Target{all(sealed)}}}},
		terminated("*.mail.org", all(mail)),
	}}
	certificates := []haproxy.Certificate{{Name: "mail", Hosts: []string{"*.mail.org"}, PEM: pair(t, "*.mail.org", 0)}}
	serve := func() haproxy.Outcome {
		t.Helper()
		for _, site := range h.Sites {
			require.NoError(t, route.Part{Site: &site}.Validate())
		}
		outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: h, Certificates: certificates})
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		return outcome
	}
	says := func(host string) string {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"smtp", "h2"}})
		if err != nil {
			return "refused"
		}
		defer connection.Close()
		if names := connection.ConnectionState().PeerCertificates[0].DNSNames; host == "a.mail.org" {
			require.Equal(t, []string{"*.mail.org"}, names)
			require.Empty(t, connection.ConnectionState().NegotiatedProtocol, "HTTP is not offered for what is none")
		}
		content, _ := io.ReadAll(connection) // nothing when it is ended
		return string(content)
	}
	serve()
	require.Equal(t, "mail", says("a.mail.org"))
	require.Equal(t, "mail", says("b.c.mail.org"))
	require.Equal(t, "refused", says("mail.org"))
	_, body := l.ask(t, "https://web.org/x")
	require.Contains(t, body, "web /x for=127.0.0.1 proto=https")
	raw, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe))
	require.NoError(t, err)
	require.NoError(t, raw.SetDeadline(time.Now().Add(20*time.Second)))
	hello := tls.Client(raw, &tls.Config{ServerName: "sealed.org", InsecureSkipVerify: true})
	require.Error(t, hello.Handshake(), "the backend's greeting is no TLS, and reached the client unopened")
	require.NoError(t, raw.Close())

	other := greeter(t, "other")
	h.Pools = append(h.Pools, other)
	h.Sites[3] = terminated("*.mail.org", all(other))
	serve() // a pool that nothing led to is a new backend
	require.Equal(t, "other", says("a.mail.org"))
	h.Sites[3] = terminated("new.org", all(other))
	require.False(t, serve().Reloaded, "names change at run time")
	require.Equal(t, "other", says("new.org"))
	require.Equal(t, "refused", says("a.mail.org"))
	h.Pools[3].Backends = nil
	serve()
	require.Empty(t, says("new.org"), "it is opened, and there is nobody to pass it on to")
	h.Sites = h.Sites[:3]
	serve()
	require.Equal(t, "refused", says("new.org"))
}

func TestAPortOfTCPRoutesPassesConnectionsOn(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	one, two := greeter(t, "one"), greeter(t, "two")
	h := route.HTTP{Pools: []route.Pool{one, two}, Listeners: []route.Listener{{Port: l.plain, TCP: true, NoIngress: true}}}
	to := func(name string, age time.Duration, targets ...route.Target) route.Site {
		site := httpRoute(name, age)
		site.Kind, site.Connections = route.KindTCPRoute, []route.Session{{Port: l.plain, Targets: targets}}
		require.NoError(t, route.Part{Site: &site}.Validate())
		return site
	}
	serve := func(sites ...route.Site) haproxy.Outcome {
		t.Helper()
		h.Sites = sites
		outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: h})
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		return outcome
	}
	says := func() string {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
		require.NoError(t, err)
		defer connection.Close()
		content, err := io.ReadAll(connection)
		if err != nil {
			return ""
		}
		return string(content)
	}
	serve(to("first", 0, all(one)), to("second", time.Hour, all(two)))
	require.Equal(t, "one", says(), "of two routes the older one")
	require.False(t, serve(to("second", time.Hour, all(two)), to("first", 2*time.Hour, all(one))).Reloaded)
	require.Equal(t, "two", says())

	share := func(pool route.Pool, weight int) route.Target {
		return route.Target{Pool: pool.Name(), Weight: weight}
	}
	require.False(t, serve(to("both", 0, share(one, 3), share(two, 1))).Reloaded)
	counts := make(map[string]int)
	for range 400 {
		counts[says()]++
	}
	require.Equal(t, 400, counts["one"]+counts["two"])
	require.InDelta(t, 300, counts["one"], 60)

	serve()
	require.Empty(t, says(), "a port without a route passes nothing on")
	h.Listeners = nil
	serve()
	haproxytest.Wait(t, "the port is closed", func() error {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
		if err != nil {
			return nil
		}
		return fmt.Errorf("it is open: %w", connection.Close())
	})
}
