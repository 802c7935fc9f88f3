package haproxy_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// pair is a certificate of a host followed by its key, as HAProxy reads them.
func pair(t *testing.T, host string, bits int) []byte {
	return slices.Concat(haproxytest.Certificate(t, host, bits))
}

// echo is a backend that returns its requests, and upgrades connections.
func echo(t *testing.T, name string) route.Pool {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			connection, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer connection.Close()
			accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
			fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(accept[:]))
			_, _ = io.Copy(connection, buffered)
			return
		}
		fmt.Fprintf(w, "%s %s for=%s proto=%s host=%s forwarded=%s", name, r.URL.Path, strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Header.Get("X-Forwarded-Proto"), r.Host, r.Header.Get("Forwarded"))
	}))
	t.Cleanup(server.Close)
	return poolAt(name, "http", server.Listener)
}

func site(name string, paths ...route.Path) route.Site {
	return route.Site{Namespace: "default", Ingress: name, Paths: paths}
}

type webLab struct {
	process     *haproxytest.Process
	proxy       *haproxy.Proxy
	plain, safe uint16
	options     route.HTTPOptions
}

func newWebLab(t *testing.T) *webLab {
	process := haproxytest.New(t)
	return &webLab{process: process, proxy: open(t, process.Config()), plain: haproxytest.FreePort(t), safe: haproxytest.FreePort(t)}
}

func (l *webLab) serve(t *testing.T, h route.HTTP, certificates ...haproxy.Certificate) haproxy.Outcome {
	t.Helper()
	h.Listeners = []route.Listener{{Port: l.plain, HTTPOptions: l.options}, {Port: l.safe, TLS: true, HTTPOptions: l.options}}
	outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: h, Certificates: certificates})
	require.NoError(t, err)
	require.Empty(t, outcome.Refused)
	require.Equal(t, []uint16{min(l.plain, l.safe), max(l.plain, l.safe)}, outcome.Serving)
	return outcome
}

// ask asks for a URL by its host, wherever it is.
func (l *webLab) ask(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				port := l.plain
				if strings.HasSuffix(address, ":443") {
					port = l.safe
				}
				return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
			},
		},
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for _, one := range header {
		name, value, _ := strings.Cut(one, "=")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func (l *webLab) goes(t *testing.T, url, to string) {
	t.Helper()
	response, body := l.ask(t, url)
	name, _, _ := strings.Cut(body, " ")
	if response.StatusCode != http.StatusOK {
		name = fmt.Sprint(response.StatusCode)
	}
	require.Equal(t, to, name, url)
}

func TestRequestsGoWhereTheirHostAndPathSay(t *testing.T) {
	l := newWebLab(t)
	a, b, c, none := echo(t, "a"), echo(t, "b"), echo(t, "c"), route.Pool{Namespace: "default", Service: "none", Port: "80"}
	h := route.HTTP{
		Pools: []route.Pool{a, b, c, none},
		Sites: []route.Site{site("one",
			route.Path{Host: "example.com", Path: "/", Pool: a.Name()},
			route.Path{Host: "example.com", Path: "/shop", Pool: b.Name()},
			route.Path{Host: "example.com", Path: "/shop/cart/", Pool: c.Name()},
			route.Path{Host: "example.com", Path: "/shop/exact", Exact: true, Pool: a.Name()},
			route.Path{Host: "example.com", Path: "/empty", Pool: none.Name()},
			route.Path{Host: "*.example.com", Path: "/", Pool: b.Name()},
			route.Path{Host: "www.example.com", Path: "/here", Pool: c.Name()},
			route.Path{Path: "/any", Pool: c.Name()},
			route.Path{Host: "example.com", Path: "/'%25$&()*+,;=:@!~", Pool: c.Name()},
			route.Path{Host: "safe.org", Path: "/", Pool: a.Name(), Redirect: true},
		)},
	}
	require.True(t, l.serve(t, h).Reloaded)
	for url, to := range map[string]string{
		"http://example.com/":                              "a",
		"http://EXAMPLE.com.:80/x":                         "a",
		"http://example.com/shop":                          "b",
		"http://example.com/shop/":                         "b",
		"http://example.com/shop/x?y=/shop/cart":           "b",
		"http://example.com/shopping":                      "a",
		"http://example.com/shop/cart":                     "c",
		"http://example.com/shop/cart/1":                   "c",
		"http://example.com/shop/exact":                    "a",
		"http://example.com/shop/exact/":                   "b",
		"http://example.com/empty":                         "503",
		"http://q.example.com/":                            "b",
		"http://q.q.example.com/":                          "404",
		"http://www.example.com/here":                      "c",
		"http://www.example.com/else":                      "b",
		"http://else.org/any/x":                            "c",
		"http://else.org/":                                 "404",
		"http://example.com/'%25$&()*+,;=:@!~/x":           "c",
		"http://safe.org/x":                                "308",
		"https://safe.org/x":                               "a",
		"https://example.com/shop":                         "b",
		"http://127.0.0.1/":                                "404",
		"http://example.com/shop/%2e%2e/x":                 "b",
		"http://else.org/any/" + strings.Repeat("x", 4000): "c",
	} {
		l.goes(t, url, to)
	}
	response, _ := l.ask(t, "http://safe.org/x?y=z")
	require.Equal(t, "https://safe.org/x?y=z", response.Header.Get("Location"))
	response, body := l.ask(t, "https://safe.org/x", "X-Forwarded-For=1.2.3.4", "X-Forwarded-Proto=http", "Forwarded=for=1.2.3.4")
	require.Equal(t, 2, response.ProtoMajor)
	require.Equal(t, "a /x for=127.0.0.1 proto=https host=safe.org forwarded=", body)

	// The headers by which applications know clients from ingress-nginx are the gateway's, too.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("X-Real-IP"), r.Header.Values("X-Scheme"), r.Header.Values("X-Forwarded-Scheme"))
	}))
	t.Cleanup(server.Close)
	headers := poolAt("headers", "http", server.Listener)
	h.Pools, h.Sites = append(h.Pools, headers), append(h.Sites, site("headers", route.Path{Host: "headers.org", Path: "/", Pool: headers.Name()}))
	l.serve(t, h)
	for _, scheme := range []string{"http", "https"} {
		_, body := l.ask(t, scheme+"://headers.org/", "X-Real-IP=1.2.3.4", "X-Scheme=x", "X-Forwarded-Scheme=x")
		require.Equal(t, fmt.Sprintf("[127.0.0.1] [%s] [%[1]s]", scheme), body)
	}

	// Hosts and paths change without a reload; requests to a former destination continue.
	h.Sites = append(h.Sites, site("two", route.Path{Host: "new.org", Path: "/", Pool: c.Name()}))
	h.Sites[0].Paths[0].Pool = b.Name()
	h.Sites[0].Paths = h.Sites[0].Paths[:7]
	require.False(t, l.serve(t, h).Reloaded)
	for url, to := range map[string]string{"http://new.org/": "c", "http://example.com/": "b", "http://else.org/any": "404", "http://safe.org/": "404"} {
		l.goes(t, url, to)
	}
	require.False(t, l.serve(t, h).Reloaded)

	// The daemon and HAProxy start again.
	l.process.Stop()
	l.proxy = open(t, l.process.Config())
	l.serve(t, h)
	l.goes(t, "http://new.org/", "c")

	// Nothing is left.
	outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{})
	require.NoError(t, err)
	require.Empty(t, outcome.Serving)
	_, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
	require.Error(t, err)
}

func TestCertificatesChangeAtRunTimeAndAreReadByNobodyElse(t *testing.T) {
	l := newWebLab(t)
	a := echo(t, "a")
	h := route.HTTP{Pools: []route.Pool{a}, Sites: []route.Site{site("one", route.Path{Path: "/", Pool: a.Name()})}}
	shown := func(host string) string {
		t.Helper()
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{InsecureSkipVerify: true, ServerName: host})
		require.NoError(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	const unknown = "this-host-has-no-certificate.invalid"
	l.serve(t, h)
	require.Equal(t, unknown, shown("example.com"))

	first := haproxy.Certificate{Name: "default/first", Hosts: []string{"example.com", "*.example.com"}, PEM: pair(t, "first", 0)}
	second := haproxy.Certificate{Name: "default/second", Hosts: []string{"example.org"}, PEM: pair(t, "second", 2048)}
	require.False(t, l.serve(t, h, first, second).Reloaded)
	require.Equal(t, "first", shown("example.com"))
	require.Equal(t, "first", shown("www.example.com"))
	require.Equal(t, "second", shown("example.org"))
	require.Equal(t, unknown, shown("example.net"))

	// Hosts that have none show that of an Ingress for all, as long as HAProxy takes it.
	given := func(bits []byte) {
		t.Helper()
		h := h
		h.Listeners = []route.Listener{{Port: l.plain}, {Port: l.safe, TLS: true}}
		web := haproxy.Web{HTTP: h, Certificates: []haproxy.Certificate{first, second}}
		if bits != nil {
			web.Default = &haproxy.Certificate{Name: "default/all", PEM: bits}
		}
		outcome, err := l.proxy.Apply(t.Context(), nil, web)
		require.NoError(t, err)
		require.False(t, outcome.Reloaded)
	}
	given(pair(t, "all", 0))
	require.Equal(t, "all", shown("example.net"))
	require.Equal(t, "first", shown("example.com"))
	given(pair(t, "all the others", 2048))
	require.Equal(t, "all the others", shown(""))
	given([]byte("no certificate"))
	require.Equal(t, unknown, shown("example.net"))
	given(pair(t, "all", 0))
	require.Equal(t, "all", shown("example.net"))
	given(nil)
	require.Equal(t, unknown, shown("example.net"))

	// A renewed one, which has handshakes of its own at every instant.
	renewed := first
	renewed.PEM = pair(t, "renewed", 0)
	stop, done := make(chan struct{}), make(chan struct{})
	other := map[string]int{}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				other[shown("example.com")]++
			}
		}
	}()
	for range 10 {
		require.False(t, l.serve(t, h, renewed, second).Reloaded)
		require.False(t, l.serve(t, h, first, second).Reloaded)
	}
	require.False(t, l.serve(t, h, renewed, second).Reloaded)
	close(stop)
	<-done
	require.Zero(t, other[unknown], "%v", other)
	require.Equal(t, "renewed", shown("example.com"))

	// A certificate that HAProxy rejects, and an invalid one, block no others.
	weak := haproxy.Certificate{Name: "default/weak", Hosts: []string{"weak.org"}, PEM: pair(t, "weak", 1024)}
	broken := haproxy.Certificate{Name: "default/broken", Hosts: []string{"broken.org"}, PEM: []byte("no certificate\n\nshow env\n")}
	l.serve(t, h, renewed, weak, broken)
	require.Equal(t, unknown, shown("weak.org"))
	require.Equal(t, "renewed", shown("example.com"))
	require.Equal(t, unknown, shown("example.org"))

	directory := filepath.Join(l.process.Directory, "burano")
	info, err := os.Stat(directory)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	files, err := filepath.Glob(filepath.Join(directory, "*.pem"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	l.process.Stop()
	l.proxy = open(t, l.process.Config())
	l.serve(t, h, renewed)
	require.Equal(t, "renewed", shown("example.com"))
}

// TestTheCertificateOfUnknownHostsIsValidWhateverTheClockWas has one of a former release beside it, which a gateway made whose clock was a year ahead.
func TestTheCertificateOfUnknownHostsIsValidWhateverTheClockWas(t *testing.T) {
	l := newWebLab(t)
	file := filepath.Join(l.process.Directory, "burano", "default.pem")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	begins := time.Now().AddDate(1, 0, 0)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"this-host-has-no-certificate.invalid"}, NotBefore: begins, NotAfter: begins.AddDate(20, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	content := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	require.NoError(t, os.WriteFile(file, content, 0o600))

	shown := func() *x509.Certificate {
		t.Helper()
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0]
	}
	l.serve(t, route.HTTP{})
	certificate := shown()
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	for _, years := range []int{-5, 0, 1, 100} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: time.Now().AddDate(years, 0, 0)})
		require.NoError(t, err, "%d years", years)
	}
	l.proxy = open(t, l.process.Config())
	l.serve(t, route.HTTP{})
	require.Equal(t, certificate.Raw, shown().Raw, "it stays")
}

func TestACertificateThatCouldNotBeCheckedChangesNothing(t *testing.T) {
	l := newWebLab(t)
	a := echo(t, "a")
	h := route.HTTP{Pools: []route.Pool{a}, Sites: []route.Site{site("one", route.Path{Path: "/", Pool: a.Name()})}}
	certificate := haproxy.Certificate{Name: "default/first", Hosts: []string{"example.com"}, PEM: pair(t, "first", 0)}
	l.serve(t, h, certificate)
	shown := func() string {
		t.Helper()
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{InsecureSkipVerify: true, ServerName: "example.com"})
		require.NoError(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	require.Equal(t, "first", shown())
	certificate.PEM = pair(t, "renewed", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Listeners = []route.Listener{{Port: l.plain}, {Port: l.safe, TLS: true}}
	_, err := l.proxy.Apply(ctx, nil, haproxy.Web{HTTP: h, Certificates: []haproxy.Certificate{certificate}})
	require.ErrorContains(t, err, "default/first")
	require.Equal(t, "first", shown())
	l.serve(t, h, certificate)
	require.Equal(t, "renewed", shown())
}

func TestWebSocketsPass(t *testing.T) {
	l := newWebLab(t)
	a := echo(t, "a")
	h := route.HTTP{Pools: []route.Pool{a}, Sites: []route.Site{site("one", route.Path{Path: "/", Pool: a.Name()})}}
	l.serve(t, h)
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
	require.NoError(t, err)
	defer connection.Close()
	_, err = fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	speak := func(word string) {
		t.Helper()
		_, err := fmt.Fprintln(connection, word)
		require.NoError(t, err)
		answer, err := reader.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, word+"\n", answer)
	}
	speak("hello")
	b := echo(t, "b")
	h.Pools = append(h.Pools, b)
	h.Sites = append(h.Sites, site("two", route.Path{Host: "b.org", Path: "/", Pool: b.Name()}))
	require.True(t, l.serve(t, h).Reloaded, "a new pool")
	speak("after a reload")
	l.goes(t, "http://b.org/", "b")
}

func TestAKeptConnectionIsAnsweredOnceMoreAfterAReload(t *testing.T) {
	l := newWebLab(t)
	a, b := echo(t, "a"), echo(t, "b")
	h := route.HTTP{Pools: []route.Pool{a}, Sites: []route.Site{site("one", route.Path{Path: "/", Pool: a.Name()})}}
	l.serve(t, h)
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
	require.NoError(t, err)
	defer connection.Close()
	reader := bufio.NewReader(connection)
	ask := func() *http.Response {
		t.Helper()
		_, err := fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		return response
	}
	require.False(t, ask().Close)
	h.Pools = append(h.Pools, b)
	require.True(t, l.serve(t, h).Reloaded, "a new pool")
	require.True(t, ask().Close, "the former worker says that it takes no more")
}

// TestWhatPassesValidationIsNoOtherConfiguration lets HAProxy read users' texts: it accepts them, and finds each path again.
func TestWhatPassesValidationIsNoOtherConfiguration(t *testing.T) {
	l := newWebLab(t)
	b := echo(t, "b")
	empty := route.HTTP{Pools: []route.Pool{b}}
	l.serve(t, empty)
	rapid.Check(t, func(r *rapid.T) {
		path := route.Path{
			Host: rapid.OneOf(rapid.Just(""), rapid.StringMatching(`(\*\.)?[a-z0-9]{1,8}(\.[a-z]{1,3})?`), rapid.String()).Draw(r, "host"),
			Path: rapid.OneOf(rapid.StringMatching(`/[!-~]{0,12}`), rapid.String()).Draw(r, "path"), Exact: rapid.Bool().Draw(r, "exact"), Pool: b.Name(),
		}
		h := empty
		h.Sites = []route.Site{site("any", path)}
		if (route.Part{Site: &h.Sites[0]}).Validate() != nil {
			return
		}
		outcome := l.serve(t, h)
		require.False(r, outcome.Reloaded)
		host := strings.Replace(path.Host, "*", "x", 1)
		if host == "" {
			host = "any.example"
		}
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
		require.NoError(r, err)
		defer connection.Close()
		_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path.Path, host)
		require.NoError(r, err)
		answer, err := io.ReadAll(connection)
		require.NoError(r, err)
		require.Contains(r, string(answer), "\r\nb ", "%+v", path)
	})
}
