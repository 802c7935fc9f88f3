package haproxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/route"
)

// TestRequestsOfAnotherListenersSessionsAreMisdirected has a port of HTTPS, and one that passes other sessions through.
func TestRequestsOfAnotherListenersSessionsAreMisdirected(t *testing.T) {
	for _, passes := range []bool{false, true} {
		l := ruleLab{newWebLab(t)}
		a, b := echo(t, "a"), echo(t, "b")
		path := func(host string, pool route.Pool) route.Path {
			return route.Path{Port: l.safe, Host: host, Path: "/", Targets: []route.Target{all(pool)}}
		}
		gateway := func(name string, hosts ...string) route.Site {
			site := route.Site{Namespace: "default", Kind: route.KindGateway, Name: name}
			for _, host := range hosts {
				site.Opened = append(site.Opened, route.Opened{Port: l.safe, Host: host, Owner: "default/" + name})
			}
			require.NoError(t, route.Part{Site: &site}.Validate())
			return site
		}
		h := route.HTTP{Pools: []route.Pool{a, b}, Listeners: []route.Listener{{Port: l.safe, TLS: true, Passes: passes, Names: passes}}, Sites: []route.Site{
			httpRoute("one", 0, path("any.org", a), path("own.org", a), path("*.wild.org", a), path("deep.wild.org", a), path("other.net", b)),
			gateway("edge", "", "own.org", "*.wild.org", "deep.wild.org"), gateway("other", "other.net"),
			{Namespace: "default", Ingress: "ingress", Paths: []route.Path{
				{Host: "ingress.org", Path: "/", Pool: b.Name()}, at("rules.org", restricted("/", b, onlyFrom("127.0.0.1"))),
			}},
		}}
		unknown := func(status int) int { return status }
		if passes { // an Ingress for any host
			h.Sites = append(h.Sites, site("any", route.Path{Path: "/", Pool: b.Name()}))
			unknown = func(int) int { return http.StatusOK }
		}
		web := haproxy.Web{HTTP: h}
		outcome, err := l.proxy.Apply(t.Context(), nil, web)
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		require.NoError(t, l.proxy.FromNothing(t.Context(), nil, web))
		for _, one := range []struct {
			session, host string
			status        int
		}{
			{"any.org", "any.org", 200}, {"any.org", "own.org", 421}, {"any.org", "unknown.org", unknown(404)}, {"unknown.org", "any.org", 200}, {"unknown.org", "unknown.org", unknown(404)},
			{"own.org", "own.org", 200}, {"own.org", "any.org", 421}, {"own.org", "unknown.org", unknown(421)}, {"OWN.org", "own.org:443", 200},
			{"x.wild.org", "x.wild.org", 200}, {"x.wild.org", "y.wild.org", 200}, {"x.wild.org", "a.b.wild.org", 200}, {"x.wild.org", "deep.wild.org", 421}, {"deep.wild.org", "x.wild.org", 421},
			{"", "own.org", 200}, {"", "x.wild.org", 200}, // it may be for any host
			{"own.org", "other.net", 200}, {"other.net", "own.org", 200}, // of another Gateway
			{"own.org", "rules.org", 200}, {"own.org", "ingress.org", 200}, {"ingress.org", "ingress.org", 200},
		} {
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: one.session, NextProtos: []string{"h2"}}}
					return dialer.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", l.safe))
				},
			}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+one.host+"/", nil)
			require.NoError(t, err)
			response, err := client.Do(request)
			require.NoError(t, err, "%+v", one)
			require.NoError(t, response.Body.Close())
			require.Equal(t, one.status, response.StatusCode, "%+v, passes: %t", one, passes)
			require.Equal(t, 2, response.ProtoMajor)
		}
		h.Sites[1] = gateway("edge", "", "own.org", "any.org")
		outcome, err = l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: h})
		require.NoError(t, err)
		require.False(t, outcome.Reloaded, "listeners come and go at run time")
	}
}
