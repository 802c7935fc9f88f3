package haproxy_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/route"
)

func TestPagesOfOtherOriginsReadWhatCORSAdmits(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	pool := echo(t, "pod")
	cors := func(path string, c route.CORS) route.Path {
		return l.path("", path, through(pool, route.Filters{CORS: &c}))
	}
	site := httpRoute("one", 0,
		cors("/named", route.CORS{Origins: []string{"https://www.a.org", "https://*.b.org", "http://*"}, Methods: []string{"GET", "PUT"}, Headers: []string{"X-A", "X-B"}, Expose: []string{"X-C"}, Credentials: true, MaxAge: 60}),
		cors("/any", route.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"}, Expose: []string{"*"}, MaxAge: 5}),
		cors("/secret", route.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Expose: []string{"*"}, Credentials: true, MaxAge: 5}),
	)
	require.NoError(t, route.Part{Site: &site}.Validate())
	l.serve(t, route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site}})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", l.plain))
	}}}
	ask := func(method, path, origin string, headers ...string) (int, map[string]string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://any.org"+path, nil)
		require.NoError(t, err)
		if origin != "" {
			request.Header.Set("Origin", origin)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set("Access-Control-Request-"+headers[i], headers[i+1])
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		said := make(map[string]string)
		for _, name := range []string{"Allow-Origin", "Allow-Credentials", "Allow-Methods", "Allow-Headers", "Expose-Headers", "Max-Age"} {
			if value := response.Header.Get("Access-Control-" + name); value != "" {
				said[name] = value
			}
		}
		require.Equal(t, "Origin", response.Header.Get("Vary"), "a cache keeps the answers for origins apart")
		return response.StatusCode, said
	}
	for _, origin := range []string{"https://www.a.org", "https://x.b.org", "https://x.y.b.org", "http://anything.org:8080", "https://WWW.a.org"} {
		status, said := ask("OPTIONS", "/named", origin, "Method", "PUT", "Headers", "x-a")
		require.Equal(t, http.StatusNoContent, status)
		require.Equal(t, map[string]string{"Allow-Origin": origin, "Allow-Credentials": "true", "Allow-Methods": "GET, PUT", "Allow-Headers": "X-A, X-B", "Expose-Headers": "X-C", "Max-Age": "60"}, said)
		status, said = ask("GET", "/named", origin)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, map[string]string{"Allow-Origin": origin, "Allow-Credentials": "true", "Expose-Headers": "X-C"}, said)
	}
	for _, origin := range []string{"https://a.org", "https://www.a.org.evil.org", "https://b.org", "https://.b.or", "https://evilb.org", "null", "https://www.a.org:8443", "http://"} {
		_, said := ask("OPTIONS", "/named", origin, "Method", "PUT")
		require.Empty(t, said, origin)
		status, said := ask("GET", "/named", origin)
		require.Equal(t, http.StatusOK, status, "a request is answered: the browser withholds the answer")
		require.Empty(t, said, origin)
	}
	_, said := ask("OPTIONS", "/any", "https://any.org", "Method", "PATCH", "Headers", "x-one,x-two")
	require.Equal(t, map[string]string{"Allow-Origin": "https://any.org", "Allow-Methods": "PATCH", "Allow-Headers": "x-one,x-two", "Expose-Headers": "*", "Max-Age": "5"}, said)
	_, said = ask("OPTIONS", "/any", "https://any.org", "Method", "PATCH")
	require.NotContains(t, said, "Allow-Headers")
	_, said = ask("GET", "/secret", "https://any.org")
	require.Equal(t, map[string]string{"Allow-Origin": "https://any.org", "Allow-Credentials": "true"}, said)
	status, said := ask("OPTIONS", "/any", "")
	require.Equal(t, http.StatusOK, status, "what is no preflight request is for the pod")
	require.Empty(t, said)
	for _, c := range []route.CORS{{Origins: []string{"https://a.org/x"}}, {Origins: []string{"https://*.*.org"}}, {Origins: []string{"x"}}, {Headers: []string{"a b"}}, {Methods: []string{"get"}}, {Origins: []string{"*"}, MaxAge: -1}} {
		require.Error(t, route.Filters{CORS: &c}.Validate())
	}
}
