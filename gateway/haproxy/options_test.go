package haproxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// pages answers requests for /text with a text that is worth compressing, some others with data that must not be compressed, and the rest with the client.
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
		case "/compressed":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, strings.Repeat("words ", 1000))
		case "/range":
			http.ServeContent(w, r, "page.html", time.Time{}, strings.NewReader(strings.Repeat("words ", 1000)))
		case "/final":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Cache-Control", "no-transform")
			fmt.Fprint(w, strings.Repeat("words ", 1000))
		case "/call":
			w.Header().Set("Content-Type", "application/grpc")
			fmt.Fprint(w, strings.Repeat("words ", 1000))
		default:
			fmt.Fprint(w, "for=", r.Header.Get("X-Forwarded-For"))
		}
	}))
	t.Cleanup(server.Close)
	return poolAt("pages", "http", server.Listener)
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
		require.Equal(t, "gzip", encoding(scheme+"://a.org/range", "Accept-Encoding=gzip"))
		require.Empty(t, encoding(scheme+"://a.org/picture", "Accept-Encoding=gzip"))
		require.Empty(t, encoding(scheme+"://a.org/call", "Accept-Encoding=gzip"))
		require.Empty(t, encoding(scheme+"://a.org/final", "Accept-Encoding=gzip"))
		require.Equal(t, "br", encoding(scheme+"://a.org/compressed", "Accept-Encoding=br, gzip"))
		response, body := l.ask(t, scheme+"://a.org/range", "Accept-Encoding=gzip", "Range=bytes=6-10")
		require.Equal(t, []any{http.StatusPartialContent, "", "words"}, []any{response.StatusCode, response.Header.Get("Content-Encoding"), body})
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
	require.False(t, l.serve(t, h).Reloaded)
	evil := `"},{"a":"\' %[src] é` + "\xff"
	l.ask(t, "http://a.org/text?a=%22b", "User-Agent="+evil, "Referer=http://b.org/?token=secret")
	l.ask(t, "https://a.org/else?token=secret")
	l.ask(t, "http://nobody.org/")
	// All texts of clients have their maximum logged length, and have to be escaped.
	quotes := func(count int) string { return strings.Repeat(`"`, count) }
	from(t, l.plain, "127.0.0.7", "GET /"+quotes(3000)+" HTTP/1.1\r\nHost: a.org"+quotes(1000)+"\r\nUser-Agent: "+quotes(1000)+"\r\nReferer: "+quotes(1000)+"\r\nConnection: close\r\n\r\n")
	from(t, l.plain, "127.0.0.7", "G\"ET /\"},{ HTTP/1.1\"\r\n\"\r\n\r\n")
	var lines []map[string]any
	haproxytest.Wait(t, "a line for each request", func() error {
		text, err := l.process.Log()
		if err != nil {
			return err
		}
		require.NotContains(t, text, "unlogged")
		require.NotContains(t, text, "secret")
		lines = nil
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "{") {
				var one map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &one), line)
				lines = append(lines, one)
			}
		}
		if len(lines) < 5 {
			return errors.New(text)
		}
		return nil
	})
	require.Len(t, lines, 5)
	// Threads of HAProxy write them, in any order.
	of := func(field string, value any) map[string]any {
		t.Helper()
		at := slices.IndexFunc(lines, func(one map[string]any) bool { return one[field] == value })
		require.GreaterOrEqual(t, at, 0, "%s %v", field, value)
		return lines[at]
	}
	first, second, third, long, none := of("uri", "/text"), of("uri", "/else"), of("host", "nobody.org"), of("agent", quotes(256)), of("status", 400.0)
	at, err := time.Parse(time.RFC3339, first["time"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, []any{"127.0.0.1", "a.org", "GET", "/text", "HTTP/1.1", "-", 200.0, "http://b.org/"},
		[]any{first["client"], first["host"], first["method"], first["uri"], first["version"], first["tls"], first["status"], first["referer"]})
	require.Equal(t, strings.TrimSuffix(evil, "\xff"), first["agent"])
	require.Greater(t, first["bytes"], 6000.0)
	require.Equal(t, []any{"HTTP/2.0", "TLSv1.3", 200.0}, []any{second["version"], second["tls"], second["status"]})
	require.Equal(t, []any{"nobody.org", 404.0}, []any{third["host"], third["status"]})
	for _, timer := range []string{"milliseconds", "queue", "connect", "response"} {
		require.GreaterOrEqual(t, first[timer], 0.0, timer)
	}
	require.Equal(t, []any{404.0, quotes(512)}, []any{long["status"], long["referer"]})
	require.Greater(t, len(long["uri"].(string)), 1000)
	require.Equal(t, "127.0.0.7", none["client"])
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
