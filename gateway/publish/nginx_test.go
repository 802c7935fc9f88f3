package publish_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

// nginxLab serves Ingresses with a real HAProxy, from their objects on. Services are servers of their name.
type nginxLab struct {
	proxy       *haproxy.Proxy
	plain, safe uint16
	services    []*core.Service
	slices      []*discovery.EndpointSlice
	secrets     []*core.Secret
}

func newNginxLab(t *testing.T, services ...string) *nginxLab {
	t.Helper()
	process := haproxytest.New(t)
	proxy, err := haproxy.Open(t.Context(), process.Config())
	require.NoError(t, err)
	l := &nginxLab{proxy: proxy, plain: haproxytest.FreePort(t), safe: haproxytest.FreePort(t)}
	for _, name := range services {
		l.add(t, name, httptest.NewServer(answering(name)).Listener)
	}
	return l
}

// answering answers with its name, and with the request.
func answering(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if text := r.Header.Get("Sleep"); text != "" {
			pause, _ := time.ParseDuration(text)
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, "%s %s host=%s prefix=%s proto=%s", name, r.URL.RequestURI(), r.Host, r.Header.Get("X-Forwarded-Prefix"), r.Proto)
	})
}

// add makes a listener a pod of a Service.
func (l *nginxLab) add(t *testing.T, name string, listeners ...net.Listener) {
	t.Helper()
	s := service(name, port("http", 80))
	s.Name, s.Namespace = name, "default"
	l.services = append(l.services, s)
	for i, listener := range listeners {
		t.Cleanup(func() { _ = listener.Close() })
		one := slice(name, "http", int32(listener.Addr().(*net.TCPAddr).Port), at("127.0.0.1", true, true, false))
		one.Name += fmt.Sprint(i)
		l.slices = append(l.slices, one)
	}
}

// serve returns the complaints about Ingresses, of which the first one is the oldest. All that is served passes through its form in etcd.
func (l *nginxLab) serve(t *testing.T, ingresses ...*networking.Ingress) []publish.Complaint {
	t.Helper()
	for i, one := range ingresses {
		one.CreationTimestamp.Time = morning.Add(time.Duration(i) * time.Minute)
	}
	w := publish.World{
		Ingresses: ingresses, Classes: []*networking.IngressClass{ingressClass("burano", publish.Controller)}, Services: l.services, EndpointSlices: l.slices, Secrets: l.secrets,
	}
	sites := publish.SitesOf(w)
	var parts []route.Part
	for _, part := range sites.Parts() {
		value, err := route.EncodePart(part)
		require.NoError(t, err)
		part, err = route.DecodePart(route.PartKey(part), value)
		require.NoError(t, err)
		parts = append(parts, part)
	}
	web := haproxy.Web{HTTP: route.Assemble(parts)}
	web.Listeners = []route.Listener{{Port: l.plain}, {Port: l.safe, TLS: true}}
	shown := make(map[string]bool)
	for _, site := range web.Sites {
		maps.Copy(shown, site.Secrets())
	}
	for name, content := range sites.Certificates {
		if shown[name.String()] {
			web.Shown = append(web.Shown, haproxy.Certificate{Name: name.String(), PEM: content})
		}
	}
	outcome, err := l.proxy.Apply(t.Context(), nil, web)
	require.NoError(t, err)
	require.Empty(t, outcome.Refused)
	return sites.Complaints
}

// asked is a request.
type asked struct {
	method, url, from string
	headers           map[string]string
	body              io.Reader
}

func (l *nginxLab) ask(t *testing.T, a asked) (*http.Response, string) {
	t.Helper()
	dialer := net.Dialer{}
	if a.from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(a.from)}
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := l.plain
			if strings.HasSuffix(address, ":443") {
				to = l.safe
			}
			return dialer.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", to))
		}},
	}
	if a.method == "" {
		a.method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(t.Context(), a.method, a.url, a.body)
	require.NoError(t, err)
	for name, value := range a.headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// raw sends a path as it is, and returns the first line of the answer.
func raw(t *testing.T, port uint16, path, host string) string {
	t.Helper()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(answer), "\n")
	return line
}

// gets is the answer to a request: its status, with the location of a redirect, or the first two words of an echo.
func (l *nginxLab) gets(t *testing.T, url string, headers ...string) string {
	t.Helper()
	a := asked{url: url, headers: map[string]string{}}
	for _, one := range headers {
		name, value, _ := strings.Cut(one, "=")
		if name == "from" {
			a.from = value
			continue
		}
		a.headers[name] = value
	}
	response, body := l.ask(t, a)
	if response.StatusCode != http.StatusOK {
		return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", response.Header.Get("Location")))
	}
	return strings.Join(strings.Fields(body)[:2], " ")
}

// annotated is an Ingress with annotations of ingress-nginx, as NAME=VALUE.
func annotated(name, host string, paths []networking.HTTPIngressPath, annotations ...string) *networking.Ingress {
	ingress := ingressOf(name, 0, host, paths...)
	for _, one := range annotations {
		key, value, _ := strings.Cut(one, "=")
		if !strings.Contains(key, "/") {
			key = nginx.Prefix + key
		}
		ingress.Annotations[key] = value
	}
	return ingress
}

func below(path, service string) []networking.HTTPIngressPath {
	return []networking.HTTPIngressPath{to(path, networking.PathTypePrefix, service)}
}

func specific(path, service string) []networking.HTTPIngressPath {
	return []networking.HTTPIngressPath{to(path, networking.PathTypeImplementationSpecific, service)}
}

func TestRewritesAndRedirectsOfIngressNginxAreServed(t *testing.T) {
	l := newNginxLab(t, "a", "b")
	complaints := l.serve(t,
		annotated("groups", "groups.org", specific("/something(/|$)(.*)", "a"), "rewrite-target=/$2", "use-regex=true"),
		annotated("constant", "constant.org", below("/foo", "a"), "rewrite-target=/bar"),
		annotated("regex", "regex.org", append(specific("/v[0-9]+/x", "a"), to("/v[0-9]+/x/long", networking.PathTypePrefix, "b")), "use-regex=true"),
		annotated("beside", "regex.org", below("/", "b")),
		annotated("root", "root.org", below("/", "a"), "app-root=/app?x=1"),
		annotated("permanent", "permanent.org", below("/", "a"), "permanent-redirect=https://new.org$request_uri"),
		annotated("code", "code.org", below("/", "missing"), "permanent-redirect=https://new.org/x", "permanent-redirect-code=308"),
		annotated("temporal", "temporal.org", below("/", "a"), "temporal-redirect=https://new.org/"),
		annotated("www", "www.host.org", below("/", "a"), "from-to-www-redirect=true"),
		annotated("alias", "alias.org", below("/", "a"), "server-alias=alias.net, other.alias.net"),
		annotated("forced", "forced.org", below("/", "a"), "force-ssl-redirect=true"),
		annotated("redirecting", "redirecting.org", below("/", "a"), "burano.io/ssl-redirect=true", "proxy-body-size=1m"),
		annotated("headers", "headers.org", below("/", "a"), "x-forwarded-prefix=/pre", "upstream-vhost=inside.org"),
	)
	require.Empty(t, complaints)
	exact := annotated("a", "a.org", []networking.HTTPIngressPath{to("/", networking.PathTypeExact, "a")}, "app-root=/app")
	require.Empty(t, publish.SitesOf(world(exact)).Complaints, "an Ingress has no conflict with itself")
	for _, one := range [][2]string{
		{"http://groups.org/something", "a /"}, {"http://groups.org/something/new/x?q=1", "a /new/x?q=1"}, {"http://groups.org/SOMETHING/new", "a /new"},
		{"http://groups.org/somethingelse", "404"}, {"http://groups.org/x/something", "404"}, {"https://groups.org/something/new", "a /new"},
		{"http://groups.org/something/%2541", "a /%2541"},
		{"http://constant.org/foo/x", "a /bar"}, {"http://constant.org/foobar", "404"},
		{"http://regex.org/v12/x", "a /v12/x"}, {"http://regex.org/v12/xyz", "a /v12/xyz"}, {"http://regex.org/V1/x/long", "b /V1/x/long"}, {"http://regex.org/v/x", "b /v/x"},
		{"http://root.org/", "302 /app?x=1"}, {"http://root.org/x", "a /x"},
		{"http://permanent.org/x?q=1", "301 https://new.org/x?q=1"}, {"http://code.org/x?q=1", "308 https://new.org/x"}, {"http://temporal.org/x", "302 https://new.org/"},
		{"http://host.org/x?q=1", "308 http://www.host.org/x?q=1"}, {"https://host.org/x", "308 https://www.host.org/x"}, {"http://www.host.org/x", "a /x"},
		{"http://alias.org/x", "a /x"}, {"http://alias.net/x", "a /x"}, {"http://other.alias.net/x", "a /x"},
		{"http://redirecting.org/x", "308 https://redirecting.org/x"}, {"https://redirecting.org/x", "a /x"},
		{"http://forced.org/x?q=1", "308 https://forced.org/x?q=1"}, {"https://forced.org/x", "a /x"},
	} {
		require.Equal(t, one[1], l.gets(t, one[0]), one[0])
	}
	_, body := l.ask(t, asked{url: "http://headers.org/x"})
	require.Contains(t, body, "host=inside.org prefix=/pre")
}

func TestAccessRulesOfIngressNginxHold(t *testing.T) {
	l := newNginxLab(t, "a", "b")
	arrived, release := make(chan struct{}, 16), make(chan struct{})
	l.add(t, "waits", httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		answering("waits").ServeHTTP(w, r)
	})).Listener)
	complaints := l.serve(t,
		annotated("open", "list.org", below("/", "a")),
		annotated("list", "list.org", below("/admin", "a"), "whitelist-source-range=127.0.0.8/30, 192.0.2.1,2001:db8::/32", "denylist-source-range=127.0.0.9"),
		annotated("anywhere", "", below("/", "a")),
		annotated("guarded", "", below("/admin", "a"), "whitelist-source-range=127.0.0.8"),
		annotated("rate", "rate.org", below("/", "a"), "limit-rps=1", "limit-burst-multiplier=60", "limit-whitelist=127.0.0.9"),
		annotated("minute", "minute.org", below("/", "a"), "limit-rpm=1", "limit-burst-multiplier=2"),
		annotated("connections", "connections.org", below("/", "waits"), "limit-connections=1"),
		annotated("body", "body.org", below("/", "a"), "proxy-body-size=1k"),
	)
	require.Empty(t, complaints)
	for _, one := range [][3]string{
		{"http://list.org/admin", "127.0.0.8", "a /admin"}, {"http://list.org/admin", "127.0.0.9", "403"}, {"http://list.org/admin", "127.0.0.7", "403"}, {"http://list.org/", "127.0.0.7", "a /"},
		{"http://list.org/admin?x", "127.0.0.10", "a /admin?x"},
	} {
		require.Equal(t, one[2], l.gets(t, one[0], "from="+one[1]), "%s %s", one[0], one[1])
	}
	// No other form of a path leads around its rules.
	for _, path := range []string{"//admin", "/%61dmin", "/x/../admin", "/./admin", "/x%2f..%2fadmin", "/%2e/admin", "/admi%6E", "/x/.."} {
		require.Contains(t, raw(t, l.plain, path, "list.org"), " 400 ", path)
	}
	require.Contains(t, raw(t, l.plain, "//admin", "rate.org"), " 200 ", "a host with one path")
	require.Contains(t, raw(t, l.plain, "//admin", "unknown.org"), " 400 ", "paths of any host")
	require.Equal(t, "a /", l.gets(t, "http://unknown.org/"))
	require.Equal(t, "403", l.gets(t, "http://unknown.org/admin", "from=127.0.0.7"))
	require.Equal(t, "a /a%20b.c/..d", l.gets(t, "http://list.org/a%20b.c/..d", "from=127.0.0.7"))

	count := func(url, from string, times int) (served int) {
		for range times {
			if l.gets(t, url, "from="+from) == "a /" {
				served++
			}
		}
		return served
	}
	require.Equal(t, 60, count("http://rate.org/", "127.0.0.7", 70))
	require.Equal(t, 70, count("http://rate.org/", "127.0.0.9", 70), "one without limits")
	require.Equal(t, "a /", l.gets(t, "http://rate.org/", "from=127.0.0.10"), "another client")
	require.Equal(t, 2, count("http://minute.org/", "127.0.0.7", 12))

	slow := make(chan string)
	go func() { slow <- l.gets(t, "http://connections.org/") }()
	<-arrived
	require.Equal(t, "503", l.gets(t, "http://connections.org/"))
	require.Equal(t, "503", l.gets(t, "http://connections.org/"), "a refused request does not count")
	close(release)
	require.Equal(t, "waits /", <-slow)
	haproxytest.Wait(t, "the end of the request", func() error {
		if is := l.gets(t, "http://connections.org/"); is != "waits /" {
			return errors.New(is)
		}
		return nil
	})

	for size, status := range map[int]int{1024: 200, 1025: 413} {
		response, _ := l.ask(t, asked{method: http.MethodPost, url: "http://body.org/", body: strings.NewReader(strings.Repeat("x", size))})
		require.Equal(t, status, response.StatusCode, size)
	}
}

func TestAnIngressWithARefusedAnnotationIsClosed(t *testing.T) {
	for _, one := range []string{
		"whitelist-source-range=everyone", "whitelist-source-range=", "denylist-source-range=10.0.0.0/33", "auth-type=basic", "auth-url=https://auth.org", "auth-tls-secret=default/ca",
		"configuration-snippet=deny all;", "server-snippet=x", "auth-snippet=x", "some-new-snippet=x", "auth-new=x", "limit-new=x", "limit-rps=many", "ssl-redirect=perhaps",
		"force-ssl-redirect=perhaps", "ssl-passthrough=true", "enable-modsecurity=true", "satisfy=any", "backend-protocol=AJP", "rewrite-target=no path", "permanent-redirect=https://$host/",
		"server-alias=~^www", "affinity=ip", "session-cookie-name=a b",
	} {
		name, _, _ := strings.Cut(one, "=")
		sites := publish.SitesOf(world(annotated("main", "a.org", below("/", "a")), annotated("closed", "a.org", append(below("/admin", "a"), to("/x(/|$)(.*)", networking.PathTypeImplementationSpecific, "a")), one, "use-regex=true")))
		require.Equal(t, []string{"closed " + publish.ReasonRefused}, reasons(sites.Complaints), one)
		require.Contains(t, sites.Complaints[0].Message, nginx.Prefix+name)
		for _, site := range sites.HTTP.Sites {
			for _, path := range site.Paths {
				if site.Ingress == "closed" {
					require.Equal(t, route.ClosedPool("default").Name(), path.Pool, one)
					require.Equal(t, http.StatusServiceUnavailable, path.Rules[0].Targets[0].Filters.Status, one)
				} else {
					require.Empty(t, path.Rules)
				}
			}
		}
		at := slices.IndexFunc(sites.HTTP.Sites, func(s route.Site) bool { return s.Ingress == "closed" })
		require.Len(t, sites.HTTP.Sites[at].Paths, 2, one)
		require.Contains(t, sites.Pools, route.ClosedPool("default"), "an earlier gateway answers 503")
	}
	l := newNginxLab(t, "a")
	l.serve(t, annotated("main", "a.org", below("/", "a")),
		annotated("closed", "a.org", append(below("/admin", "a"), to("/x(/|$)(.*)", networking.PathTypeImplementationSpecific, "a"), to("/long/(.*)*$", networking.PathTypeImplementationSpecific, "a")), "configuration-snippet=deny all;", "use-regex=true"),
		annotated("slow", "a.org", specific("/slow/(a+)+$", "a"), "use-regex=true"),
		annotated("ignoring", "b.org", below("/", "a"), "configuration-snippet=deny all;", "burano.io/nginx-annotations=ignore"))
	for url, to := range map[string]string{
		"http://a.org/": "a /", "http://a.org/admin": "503", "http://a.org/admin/x": "503", "http://a.org/x/y": "503", "http://a.org/long/x": "503", "http://a.org/slow/aaa": "503", "http://b.org/": "a /",
	} {
		require.Equal(t, to, l.gets(t, url), url)
	}
}

func TestAnnotationsWithoutInfluenceOnAccessAreIgnoredWithAnEvent(t *testing.T) {
	sites := publish.SitesOf(world(annotated("a", "a.org", below("/", "a"), "proxy-buffer-size=8k", "brand-new=x", "proxy-body-size=much")))
	require.Equal(t, []string{"a.org/ default/a/http"}, pathsOf(sites))
	require.Equal(t, []string{"a " + publish.ReasonIgnored}, reasons(sites.Complaints))
	require.Len(t, sites.Complaints, 1, "an Ingress has one Event of a reason")
	for _, name := range []string{"brand-new", "proxy-body-size", "proxy-buffer-size"} {
		require.Contains(t, sites.Complaints[0].Message, nginx.Prefix+name+": ")
	}
	many := annotated("many", "a.org", below("/", "a"))
	for i := range 2000 {
		many.Annotations[fmt.Sprintf("%sunknown-%04d", nginx.Prefix, i)] = "x"
		many.Annotations[fmt.Sprintf("%sauth-%04d", nginx.Prefix, i)] = "x"
	}
	sites = publish.SitesOf(world(many))
	require.Len(t, sites.Complaints, 2)
	for _, c := range sites.Complaints {
		require.Contains(t, c.Message, "; and 1990 more.")
		require.Less(t, len(c.Message), 4000)
	}
}

func TestOnePassMakesABoundedNumberOfEvents(t *testing.T) {
	var complaints []publish.Complaint
	for i := range 250 {
		complaints = append(complaints, publish.Complaint{Kind: "Ingress", Namespace: "default", Name: fmt.Sprint("i", i), Reason: publish.ReasonPath, Message: "x"})
	}
	complaints = append(complaints, complaints[0])
	client := fake.NewClientset()
	report := publish.Reporter(client)
	for pass, events := range []int{100, 200, 250, 250} {
		more, err := report(t.Context(), complaints)
		require.NoError(t, err)
		require.Equal(t, events < 250, more, pass)
		list, err := client.CoreV1().Events("default").List(t.Context(), meta.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, events)
	}
}

func TestARegularExpressionTakesNoPathOfAnotherNamespace(t *testing.T) {
	at := func(namespace string, i *networking.Ingress, age time.Duration) *networking.Ingress {
		i.Namespace, i.CreationTimestamp.Time = namespace, morning.Add(age)
		return i
	}
	for _, one := range []struct {
		own, regex string
		conflict   bool
	}{
		{"/", "/.*|/aaaaaaaaaa", true}, {"/", "/a*", true}, {"/admin", "/.*|/aaaaaaaaaa", true}, {"/shop/cart", "/shop/(.*)", true}, {"/shop", "/shop(/|$)(.*)", true}, {"/shop/", "/shop/[a-z]+", true},
		{"/", "/shop/[a-z]+", false}, {"/shopping", "/shop(/|$)(.*)", false}, {"/other", "/shop/[a-z]+", false},
	} {
		first, second := at("default", annotated("first", "a.org", below(one.own, "a")), 0), at("other", annotated("second", "a.org", specific(one.regex, "a"), "use-regex=true"), time.Minute)
		conflicts := func(ingresses ...*networking.Ingress) bool {
			return slices.Contains(reasons(publish.SitesOf(world(ingresses...)).Complaints), "second "+publish.ReasonPathConflict)
		}
		require.Equal(t, one.conflict, conflicts(first, second), one.regex)
		require.False(t, conflicts(first, at("default", second.DeepCopy(), time.Minute)), "the same namespace")
		require.False(t, conflicts(first, at("other", second.DeepCopy(), -time.Minute)), "an older one")
		exact := at("default", annotated("first", "a.org", []networking.HTTPIngressPath{to(one.own, networking.PathTypeExact, "a")}), 0)
		require.False(t, conflicts(exact, second), "an exact path has its requests anyway")
	}
	regexes := []*networking.Ingress{
		at("default", annotated("first", "a.org", specific("/v[0-9]+", "a"), "use-regex=true"), 0),
		at("other", annotated("second", "a.org", specific("/.*|/aaaaaaaaaaaaaa", "a"), "use-regex=true"), time.Minute),
	}
	require.Contains(t, reasons(publish.SitesOf(world(regexes...)).Complaints), "second "+publish.ReasonPathConflict)
}

func TestANamespaceHasABoundOfRegularExpressionsAndOfConditions(t *testing.T) {
	var ingresses []*networking.Ingress
	for space := range 6 {
		for i := range 70 {
			one := annotated(fmt.Sprint("regex", i), fmt.Sprintf("h%d-%d.org", space, i), specific("/api/[a-z]+", "a"), "use-regex=true", "permanent-redirect=https://a.org/")
			one.Namespace = fmt.Sprint("n", space)
			ingresses = append(ingresses, one)
		}
	}
	sites := publish.SitesOf(world(ingresses...))
	open, closed := map[string]int{}, map[string]int{}
	for _, site := range sites.HTTP.Sites {
		for _, p := range site.Paths {
			if p.Rules[0].Match != nil {
				open[site.Namespace]++
			} else if p.Path == "/api/" && p.Rules[0].Targets[0].Filters.Status == http.StatusServiceUnavailable {
				closed[site.Namespace]++
			}
		}
	}
	require.Equal(t, map[string]int{"n0": 64, "n1": 64, "n2": 64, "n3": 64}, open)
	require.Equal(t, map[string]int{"n0": 6, "n1": 6, "n2": 6, "n3": 6, "n4": 70, "n5": 70}, closed)
	require.Contains(t, reasons(sites.Complaints), "regex64 "+publish.ReasonRefused)

	ingresses = nil
	for i := range 40 {
		host := fmt.Sprintf("h%d.org", i)
		ingresses = append(ingresses, annotated(fmt.Sprint("main", i), host, below("/", "a")),
			annotated(fmt.Sprintf("next%02d", i), host, below("/", "b"), "canary=true", fmt.Sprintf("canary-by-header=X-%02d", min(i, 36)), "canary-weight=10"))
	}
	ingresses = append(ingresses, annotated("weighted", "w.org", below("/", "a")), annotated("weighted-next", "w.org", below("/", "b"), "canary=true", "canary-weight=10"))
	sites = publish.SitesOf(world(ingresses...))
	canaries := 0
	for _, site := range sites.HTTP.Sites {
		for _, p := range site.Paths {
			if len(p.Rules) > 1 {
				canaries++
			}
		}
	}
	require.Equal(t, 32, canaries)
	require.Len(t, sites.Complaints, 8)
	require.Contains(t, reasons(sites.Complaints), "next32 "+publish.ReasonRefused)
	require.NotContains(t, reasons(sites.Complaints), "weighted-next "+publish.ReasonRefused)

	any := annotated("any", "", specific("/x[0-9]+", "a"), "use-regex=true")
	sites = publish.SitesOf(world(any))
	require.Equal(t, []string{"any " + publish.ReasonRefused}, reasons(sites.Complaints))
	require.Equal(t, http.StatusServiceUnavailable, sites.HTTP.Sites[0].Paths[0].Rules[0].Targets[0].Filters.Status)
	require.True(t, slices.ContainsFunc(nginx.Examine(any, nginx.Classes{}), func(l nginx.Line) bool { return l.Verdict == nginx.Refused }))
}

func TestAPathThatRulesOfAccessDoNotCoverIsClosed(t *testing.T) {
	exact := func(path string) []networking.HTTPIngressPath {
		return []networking.HTTPIngressPath{to(path, networking.PathTypeExact, "a")}
	}
	untyped := below("/admin", "a")
	untyped[0].PathType = nil
	for i, one := range []struct {
		paths  []networking.HTTPIngressPath
		more   string
		closed bool
	}{
		{specific("/admin", "a"), "", true}, {untyped, "", true}, {specific("/admin/", "a"), "", false}, {specific("/", "a"), "", false}, {specific("", "a"), "", false}, {below("/admin", "a"), "", false},
		{exact("/admin"), "", false}, {specific("/admin", "a"), "rewrite-target=/x", true},
		{below("/@admin", "a"), "", true}, {exact("/caf%C3%A9"), "", true}, {below("/a:b", "a"), "", true}, {below("/a-b_c.d~e/9", "a"), "", false},
		{specific("/admin", "a"), "use-regex=true", false}, {specific("/admin(/|$)(.*)", "a"), "use-regex=true", false}, {specific("/v[0-9]{1,2}/(?:a|b)[^/]+/x.php", "a"), "use-regex=true", false},
		{specific("/@admin/.*", "a"), "use-regex=true", true}, {specific("/a[b@]+", "a"), "use-regex=true", true}, {specific("/a(b|c:d)", "a"), "use-regex=true", true}, {specific("/a%40", "a"), "use-regex=true", true},
	} {
		for _, rule := range []string{"whitelist-source-range=10.0.0.0/8", "denylist-source-range=10.0.0.0/8", "limit-rps=1"} {
			ingress := annotated("a", "a.org", one.paths, rule)
			if one.more != "" {
				ingress = annotated("a", "a.org", one.paths, rule, one.more)
			}
			sites := publish.SitesOf(world(ingress))
			refused := slices.ContainsFunc(nginx.Examine(ingress, nginx.Classes{}), func(l nginx.Line) bool { return l.Verdict == nginx.Refused })
			require.Equal(t, one.closed, refused, "%d %s", i, one.paths[0].Path)
			require.Equal(t, one.closed, slices.Contains(reasons(sites.Complaints), "a "+publish.ReasonRefused), "%d %s", i, one.paths[0].Path)
			for _, p := range sites.HTTP.Sites[0].Paths {
				f := p.Rules[0].Targets[0].Filters
				require.Equal(t, one.closed, f.Status == http.StatusServiceUnavailable, p.Path)
			}
			delete(ingress.Annotations, nginx.Prefix+strings.Split(rule, "=")[0])
			require.Empty(t, publish.SitesOf(world(ingress)).Complaints, "without rules of access")
		}
	}
	message := publish.SitesOf(world(annotated("a", "a.org", specific("/admin", "a"), "limit-rps=1"))).Complaints[0].Message
	require.Contains(t, message, `the path "/admin" is refused`)
	require.Contains(t, message, "pathType: Prefix or Exact")
}

func TestAGuardedIngressThatCannotBeWrittenIsClosed(t *testing.T) {
	var networks []string
	for i := range 256 {
		networks = append(networks, fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%x/128", 4096+i))
	}
	list := strings.Join(networks, ",")
	var paths []networking.HTTPIngressPath
	for i := range 64 {
		paths = append(paths, to(fmt.Sprintf("/p%d", i), networking.PathTypePrefix, "a"))
	}
	ingress := annotated("large", "a.org", append(paths, to("/x/[0-9]+", networking.PathTypeImplementationSpecific, "a")), "whitelist-source-range="+list, "denylist-source-range="+list, "limit-rps=1", "limit-whitelist="+list, "rewrite-target=/")
	sites := publish.SitesOf(world(annotated("main", "a.org", below("/", "a")), ingress))
	require.Empty(t, sites.Complaints)
	at := slices.IndexFunc(sites.HTTP.Sites, func(s route.Site) bool { return s.Ingress == "large" })
	part := route.Part{Site: &sites.HTTP.Sites[at]}
	whole, err := route.EncodePart(part)
	require.NoError(t, err)
	require.Greater(t, len(whole), 1400<<10)
	value, err := sites.Encode(part)
	require.NoError(t, err)
	require.Less(t, len(value), 100<<10)
	read, err := route.DecodePart(route.PartKey(part), value)
	require.NoError(t, err)
	require.Len(t, read.Site.Paths, 65)
	for _, p := range read.Site.Paths {
		require.Equal(t, http.StatusServiceUnavailable, p.Rules[0].Targets[0].Filters.Status)
	}
	require.Equal(t, &route.Match{Regex: "/x/[0-9]+"}, read.Site.Paths[64].Rules[0].Match)
	require.Equal(t, []string{"large " + publish.ReasonRefused}, reasons(sites.Complaints))

	// A guarded path without a pool is closed, and one without rules is left out.
	for rule, closed := range map[string]bool{"whitelist-source-range=10.0.0.0/8": true, "proxy-body-size=1m": false} {
		resource := annotated("resource", "a.org", below("/admin", "a"), rule)
		resource.Spec.Rules[0].HTTP.Paths[0].Backend = networking.IngressBackend{Resource: &core.TypedLocalObjectReference{Kind: "Bucket", Name: "x"}}
		resource.Spec.DefaultBackend = &resource.Spec.Rules[0].HTTP.Paths[0].Backend
		sites = publish.SitesOf(world(annotated("main", "a.org", below("/", "a")), resource))
		require.Equal(t, []string{"resource " + publish.ReasonBackend}, reasons(sites.Complaints))
		has := sites.HTTP.Sites[1].Paths
		require.Equal(t, closed, len(has) > 0 && has[0].Path == "/admin" && has[0].Rules[0].Targets[0].Filters.Status == http.StatusServiceUnavailable, rule)
	}
}

func TestCanariesOfIngressNginxGetTheirShare(t *testing.T) {
	l := newNginxLab(t, "a", "b")
	groups := specific("/x(/|$)(.*)", "a")
	complaints := l.serve(t,
		annotated("main", "a.org", below("/", "a"), "whitelist-source-range=127.0.0.1"),
		annotated("second", "a.org", below("/", "b"), "canary=true", "canary-weight=50", "canary-by-header=Canary", "canary-by-cookie=canary"),
		annotated("value", "value.org", below("/", "a")),
		annotated("value-canary", "value.org", below("/", "b"), "canary=true", "canary-by-header=Region", "canary-by-header-value=north 'pole'"),
		annotated("regex", "regex.org", groups, "rewrite-target=/$2"),
		annotated("regex-canary", "regex.org", specific("/x(/|$)(.*)", "b"), "canary=true", "canary-by-header=Canary"),
		annotated("all", "all.org", below("/", "a")),
		annotated("all-canary", "all.org", below("/", "b"), "canary=true", "canary-weight=10", "canary-weight-total=10"),
		annotated("lonely", "lonely.org", below("/", "b"), "canary=true", "canary-weight=10"),
	)
	require.Equal(t, []string{"lonely " + publish.ReasonPath}, reasons(complaints))
	seen := map[string]int{}
	for range 60 {
		seen[l.gets(t, "http://a.org/")]++
	}
	require.Len(t, seen, 2, "%v", seen)
	for _, one := range []struct{ url, header, to string }{
		{"http://a.org/", "Canary=always", "b /"}, {"http://a.org/", "Canary=never", "a /"}, {"http://a.org/", "Cookie=canary=always", "b /"}, {"http://a.org/", "Cookie=canary=never", "a /"},
		{"http://value.org/", "Region=north 'pole'", "b /"}, {"http://value.org/", "Region=always", "a /"}, {"http://value.org/", "x=y", "a /"},
		{"http://regex.org/x/y", "Canary=always", "b /y"}, {"http://regex.org/x/y", "x=y", "a /y"}, {"http://all.org/", "x=y", "b /"}, {"http://lonely.org/", "x=y", "404"},
		{"http://a.org/", "from=127.0.0.7", "403"},
	} {
		require.Equal(t, one.to, l.gets(t, one.url, one.header), "%s %s", one.url, one.header)
	}
	response, _ := l.ask(t, asked{url: "http://a.org/", from: "127.0.0.7", headers: map[string]string{"Canary": "always"}})
	require.Equal(t, http.StatusForbidden, response.StatusCode, "the access rules of the main Ingress hold for its canary")
}

func TestSessionsHashesAndTimesOfIngressNginx(t *testing.T) {
	l := newNginxLab(t, "slow")
	l.add(t, "many", httptest.NewServer(answering("one")).Listener, httptest.NewServer(answering("two")).Listener)
	require.Empty(t, l.serve(t,
		annotated("sticky", "sticky.org", below("/", "many"), "affinity=cookie", "session-cookie-name=stay", "session-cookie-max-age=600", "session-cookie-samesite=Lax", "session-cookie-secure=true"),
		annotated("hash", "hash.org", below("/", "many"), "upstream-hash-by=$http_x_user"),
		annotated("uri", "uri.org", below("/", "many"), "upstream-hash-by=$request_uri"),
		annotated("times", "times.org", below("/", "slow"), "proxy-read-timeout=1", "proxy-connect-timeout=2s"),
		annotated("cors", "cors.org", below("/", "slow"), "enable-cors=true", "cors-allow-origin=https://*.page.org, https://page.org", "cors-allow-methods=GET, PUT", "cors-expose-headers=X-Own", "cors-max-age=60"),
		annotated("any", "any.org", below("/", "slow"), "enable-cors=true"),
	))
	sticks := func() {
		t.Helper()
		response, body := l.ask(t, asked{url: "http://sticky.org/"})
		cookie := response.Header.Get("Set-Cookie")
		for _, part := range []string{"stay=", "Max-Age=600", "SameSite=Lax", "Secure", "HttpOnly"} {
			require.Contains(t, strings.ToLower(cookie), strings.ToLower(part))
		}
		value, _, _ := strings.Cut(cookie, ";")
		for range 8 {
			_, again := l.ask(t, asked{url: "http://sticky.org/", headers: map[string]string{"Cookie": value}})
			require.Equal(t, strings.Fields(body)[0], strings.Fields(again)[0])
		}
	}
	sticks()
	for _, host := range []string{"hash.org", "uri.org"} {
		whose := map[string]bool{}
		for i := range 24 {
			url, headers := "http://"+host+"/", map[string]string{"X-User": fmt.Sprint(i)}
			if host == "uri.org" {
				url = fmt.Sprintf("http://uri.org/?x=%d", i)
			}
			_, first := l.ask(t, asked{url: url, headers: headers})
			_, second := l.ask(t, asked{url: url, headers: headers})
			require.Equal(t, first, second)
			whose[strings.Fields(first)[0]] = true
		}
		require.Len(t, whose, 2, host)
	}
	require.Equal(t, "504", l.gets(t, "http://times.org/", "Sleep=5s"))
	require.Equal(t, "slow /", l.gets(t, "http://times.org/"))

	preflight := func(host, origin string) http.Header {
		response, _ := l.ask(t, asked{method: http.MethodOptions, url: "http://" + host + "/", headers: map[string]string{"Origin": origin, "Access-Control-Request-Method": "PUT"}})
		return response.Header
	}
	headers := preflight("cors.org", "https://my.page.org")
	require.Equal(t, []string{"https://my.page.org", "GET, PUT", "60", "true"}, []string{
		headers.Get("Access-Control-Allow-Origin"), headers.Get("Access-Control-Allow-Methods"), headers.Get("Access-Control-Max-Age"), headers.Get("Access-Control-Allow-Credentials")})
	require.Empty(t, preflight("cors.org", "https://evil.org").Get("Access-Control-Allow-Origin"))
	require.Empty(t, preflight("any.org", "https://evil.org").Get("Access-Control-Allow-Credentials"), "browsers refuse the origin * with credentials")

	// A pod that comes at run time has its cookie, too.
	last := l.slices[len(l.slices)-1]
	third := httptest.NewServer(answering("three"))
	t.Cleanup(third.Close)
	added := slice("many", "http", int32(third.Listener.Addr().(*net.TCPAddr).Port), at("127.0.0.1", true, true, false))
	added.Name = last.Name + "-third"
	l.slices = append(l.slices, added)
	l.serve(t, annotated("sticky", "sticky.org", below("/", "many"), "affinity=cookie", "session-cookie-name=stay", "session-cookie-max-age=600", "session-cookie-samesite=Lax", "session-cookie-secure=true"))
	l.slices = l.slices[:len(l.slices)-2]
	l.slices = append(l.slices, added)
	l.serve(t, annotated("sticky", "sticky.org", below("/", "many"), "affinity=cookie", "session-cookie-name=stay", "session-cookie-max-age=600", "session-cookie-samesite=Lax", "session-cookie-secure=true"))
	for range 6 {
		sticks()
	}
}

func TestBackendsOfIngressNginxAreAskedOverTLS(t *testing.T) {
	l := newNginxLab(t)
	inside, others := haproxytest.NewAuthority(t, "inside"), haproxytest.NewAuthority(t, "others")
	for name, authority := range map[string]haproxytest.Authority{"good": inside, "foreign": others} {
		server := httptest.NewUnstartedServer(answering(name))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*authority.Pair(t, "pod.org")}}
		server.EnableHTTP2 = true
		server.StartTLS()
		l.add(t, name, server.Listener)
	}
	certificate, key := inside.Sign(t, "gateway")
	secret := tlsSecret("own", certificate, key)
	secret.Data["ca.crt"] = []byte(inside.PEM)
	l.secrets = append(l.secrets, secret)
	verified := []string{"backend-protocol=HTTPS", "proxy-ssl-secret=default/own", "proxy-ssl-verify=on", "proxy-ssl-name=pod.org"}
	complaints := l.serve(t,
		annotated("any", "any.org", below("/", "foreign"), "backend-protocol=HTTPS"),
		annotated("calls", "calls.org", below("/", "foreign"), "backend-protocol=GRPCS"),
		annotated("good", "good.org", below("/", "good"), verified...),
		annotated("foreign", "foreign.org", below("/", "foreign"), verified...),
		annotated("missing", "missing.org", below("/", "good"), "backend-protocol=HTTPS", "proxy-ssl-secret=default/none"),
		annotated("nameless", "nameless.org", below("/", "good"), "backend-protocol=HTTPS", "proxy-ssl-verify=on"),
	)
	require.Equal(t, []string{"missing " + publish.ReasonRefused, "nameless " + publish.ReasonRefused}, reasons(complaints))
	for url, to := range map[string]string{
		"http://any.org/": "foreign /", "http://good.org/": "good /", "http://foreign.org/": "503", "http://missing.org/": "503", "http://nameless.org/": "503",
	} {
		require.Equal(t, to, l.gets(t, url), url)
	}
	_, body := l.ask(t, asked{url: "http://calls.org/"})
	require.Contains(t, body, "proto=HTTP/2.0")
}

// TestTheGuideIsTrue runs each example of the guide: Ingresses in YAML, and below each the requests with their answers.
func TestTheGuideIsTrue(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "from-ingress-nginx.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(yaml|text)\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	l := newNginxLab(t, "web", "api", "next")
	examples, requests := 0, 0
	for _, block := range blocks {
		if block[1] == "yaml" {
			var ingresses []*networking.Ingress
			for document := range strings.SplitSeq(block[2], "\n---\n") {
				if !strings.Contains(document, "kind: Ingress\n") {
					continue
				}
				var one networking.Ingress
				text, err := yaml.ToJSON([]byte(document))
				require.NoError(t, err)
				decoder := json.NewDecoder(bytes.NewReader(text))
				decoder.DisallowUnknownFields()
				require.NoError(t, decoder.Decode(&one), document)
				one.Namespace, one.UID = "default", "guide"
				ingresses = append(ingresses, &one)
			}
			if len(ingresses) > 0 {
				examples++
				require.Empty(t, l.serve(t, ingresses...), block[2])
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			left, to, is := strings.Cut(strings.TrimSpace(line), " -> ")
			if !is {
				continue
			}
			requests++
			words := strings.Fields(left)
			require.Equal(t, to, l.gets(t, words[0], words[1:]...), line)
		}
	}
	require.GreaterOrEqual(t, examples, 4)
	require.GreaterOrEqual(t, requests, 10)
}

// TestTheGuideHasTheTable compares the table of the guide with the annotations.
func TestTheGuideHasTheTable(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "from-ingress-nginx.md"))
	require.NoError(t, err)
	// Annotations with the same treatment share a line.
	names, order := make(map[string][]string), []string(nil)
	for _, row := range nginx.Table() {
		text := row.Text
		if row.Instead != "" {
			text += "; instead: " + row.Instead
		}
		cells := strings.TrimSuffix(fmt.Sprintf("%s | %s |", row.Verdict, text), " ")
		if row.Text == "" {
			cells = fmt.Sprintf("%s | |", row.Verdict)
		}
		if names[cells] == nil {
			order = append(order, cells)
		}
		names[cells] = append(names[cells], "`"+row.Name+"`")
	}
	require.Greater(t, len(nginx.Table()), 100)
	var lines, told []string
	for _, cells := range order {
		for some := range slices.Chunk(names[cells], 8) {
			lines = append(lines, fmt.Sprintf("| %s | %s", strings.Join(some, ", "), cells))
		}
	}
	for line := range strings.Lines(string(guide)) {
		if strings.HasPrefix(line, "| `") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	require.Equal(t, lines, told, "the table of docs/from-ingress-nginx.md is that of gateway/nginx:\n%s", strings.Join(lines, "\n"))
}

// TestThePublisherAndTheCheckAgree asks both about each annotation of the table.
func TestThePublisherAndTheCheckAgree(t *testing.T) {
	for _, row := range nginx.Table() {
		for _, value := range []string{"true", "x", "1", "/", "https://a.org", "10.0.0.0/8", "cookie", "on", ""} {
			ingress := annotated("a", "a.org", below("/", "a"), row.Name+"="+value)
			if row.Name == "canary" {
				continue // it is served where another Ingress has the path
			}
			sites := publish.SitesOf(world(ingress))
			refused := slices.ContainsFunc(nginx.Examine(ingress, nginx.Classes{Names: []string{"burano"}}), func(l nginx.Line) bool { return l.Verdict == nginx.Refused })
			require.Equal(t, refused, slices.ContainsFunc(sites.Complaints, func(c publish.Complaint) bool { return c.Reason == publish.ReasonRefused }), "%s=%s", row.Name, value)
			closed := len(sites.HTTP.Sites[0].Paths[0].Rules) > 0 && func() bool {
				f := sites.HTTP.Sites[0].Paths[0].Rules[0].Targets[0].Filters
				return f != nil && f.Status == http.StatusServiceUnavailable
			}()
			require.Equal(t, refused, closed, "%s=%s", row.Name, value)
		}
	}
}

// FuzzAnnotationsReachGatewaysInTheirForm checks that each annotation gives sites that etcd takes, whatever it is.
func FuzzAnnotationsReachGatewaysInTheirForm(f *testing.F) {
	for _, row := range nginx.Table() {
		for _, value := range []string{"true", "1", "/$1", "a\nb", `'"\`, "%[src]", "10.0.0.0/8", "~"} {
			f.Add(row.Name, value, "/a(/|$)(.*)")
		}
	}
	f.Fuzz(func(t *testing.T, name, value, path string) {
		ingress := annotated("a", "a.org", specific(path, "a"), "use-regex=true")
		ingress.Annotations[nginx.Prefix+name] = value
		sites := publish.SitesOf(world(ingress, annotated("b", "a.org", specific(path, "b"))))
		for _, part := range sites.Parts() {
			encoded, err := route.EncodePart(part)
			require.NoError(t, err)
			require.True(t, json.Valid(encoded))
			_, err = route.DecodePart(route.PartKey(part), encoded)
			require.NoError(t, err)
		}
	})
}
