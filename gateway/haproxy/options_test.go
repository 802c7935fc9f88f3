package haproxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// pages answers requests for /text with a text that is worth a compression, for /picture with one that is not, and others with their path.
func pages(t *testing.T) route.Pool {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/text":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, strings.Repeat("words ", 1000))
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, strings.Repeat("words ", 1000))
		default:
			fmt.Fprint(w, "for=", r.Header.Get("X-Forwarded-For"))
		}
	}))
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	return route.Pool{Namespace: "default", Service: "pages", Port: "http", Backends: []route.Backend{{Address: at.Addr().String(), Port: at.Port(), Ready: true}}}
}

func TestTextsAreCompressedForWhoTakesThat(t *testing.T) {
	l := newWebLab(t)
	pool := pages(t)
	h := route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site("one", route.Path{Host: "a.org", Path: "/", Pool: pool.Name()})}}
	l.serve(t, h)
	encoding := func(url string, header ...string) string {
		t.Helper()
		response, _ := l.ask(t, url, header...)
		require.Equal(t, http.StatusOK, response.StatusCode)
		return response.Header.Get("Content-Encoding")
	}
	require.Empty(t, encoding("http://a.org/text", "Accept-Encoding=gzip"), "nobody has asked for it")
	l.options.Compress = true
	require.True(t, l.serve(t, h).Reloaded)
	for _, scheme := range []string{"http", "https"} {
		require.Equal(t, "gzip", encoding(scheme+"://a.org/text", "Accept-Encoding=br, gzip"))
		require.Empty(t, encoding(scheme+"://a.org/text", "Accept-Encoding=identity"))
		require.Empty(t, encoding(scheme+"://a.org/picture", "Accept-Encoding=gzip"))
	}
	require.False(t, l.serve(t, h).Reloaded)
}

func TestRequestsAreLoggedAsJSONWhateverTheySay(t *testing.T) {
	l := newWebLab(t)
	pool := pages(t)
	h := route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site("one", route.Path{Host: "a.org", Path: "/", Pool: pool.Name()})}}
	l.serve(t, h)
	l.ask(t, "http://a.org/unlogged")
	l.options.AccessLog = true
	require.True(t, l.serve(t, h).Reloaded)
	evil := `"},{"a":"\' %[src] é` + "\xff"
	l.ask(t, "http://a.org/text?a=%22b", "User-Agent="+evil, "Referer=http://b.org/")
	l.ask(t, "https://a.org/else")
	l.ask(t, "http://nobody.org/")
	var lines []map[string]any
	haproxytest.Wait(t, "three lines", func() error {
		text, err := l.process.Log()
		if err != nil {
			return err
		}
		require.NotContains(t, text, "unlogged")
		lines = nil
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "{") {
				var one map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &one), line)
				lines = append(lines, one)
			}
		}
		if len(lines) < 3 {
			return errors.New(text)
		}
		return nil
	})
	require.Len(t, lines, 3)
	first, second, third := lines[0], lines[1], lines[2]
	at, err := time.Parse(time.RFC3339, first["time"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, []any{"127.0.0.1", "a.org", "GET", "/text?a=%22b", "HTTP/1.1", "-", 200.0, "http://b.org/"},
		[]any{first["client"], first["host"], first["method"], first["uri"], first["version"], first["tls"], first["status"], first["referer"]})
	require.Equal(t, strings.TrimSuffix(evil, "\xff"), first["agent"])
	require.Greater(t, first["bytes"], 6000.0)
	require.Equal(t, []any{"HTTP/2.0", "TLSv1.3", 200.0}, []any{second["version"], second["tls"], second["status"]})
	require.Equal(t, []any{"nobody.org", 404.0}, []any{third["host"], third["status"]})
}

func TestABalancerInFrontSaysWhoseRequestsAre(t *testing.T) {
	l := newWebLab(t)
	pool := pages(t)
	h := route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site("one", route.Path{Host: "a.org", Path: "/", Pool: pool.Name()})}}
	l.options.AcceptProxy = true
	l.serve(t, h)
	const request = "GET / HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\n\r\n"
	require.Contains(t, from(t, l.plain, "127.0.0.7", "PROXY TCP4 192.0.2.9 192.0.2.1 40000 80\r\n"+request), "for=192.0.2.9")
	require.Empty(t, from(t, l.plain, "127.0.0.7", request))
}
