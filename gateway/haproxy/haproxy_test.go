package haproxy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

var update = flag.Bool("update", false, "write the golden files anew")

func web(port uint16, backends ...route.Backend) route.Route {
	return route.Route{Namespace: "default", Service: "web", Port: "http", GatewayPort: port, Protocol: route.TCP, Backends: backends}
}

func open(t *testing.T, c haproxy.Config) *haproxy.Proxy {
	t.Helper()
	p, err := haproxy.Open(t.Context(), c)
	require.NoError(t, err)
	return p
}

func apply(t *testing.T, p *haproxy.Proxy, routes ...route.Route) haproxy.Outcome {
	t.Helper()
	outcome, err := p.Apply(t.Context(), routes, haproxy.Web{})
	require.NoError(t, err)
	require.Empty(t, outcome.Refused)
	return outcome
}

func TestTheConfigurationIsWhatWeMean(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	p := open(t, config)
	port := haproxytest.FreePort(t)
	apply(t, p, web(port, route.Backend{Address: "127.0.0.2", Port: 8080, Ready: true}, route.Backend{Address: "127.0.0.3", Port: 8080, Draining: true}))

	content, err := os.ReadFile(config.ConfigFile)
	require.NoError(t, err)
	text := strings.ReplaceAll(string(content), process.Directory, "/run")
	text = regexp.MustCompile(fmt.Sprintf(`\b%d\b`, port)).ReplaceAllString(text, "8000") // and not within the digest of rules
	text = regexp.MustCompile(`_version=\d+`).ReplaceAllString(text, "_version=N")
	golden := filepath.Join("testdata", "haproxy.cfg")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestListenersAndBackendsAreOfBothVersionsOfIP(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.Bind6 = netip.IPv6Loopback()
	p := open(t, config)
	port := haproxytest.FreePort(t)
	listener, err := net.Listen("tcp6", "[::1]:0")
	require.NoError(t, err)
	six := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "six")
	})}}
	six.Start()
	defer six.Close()
	backend := route.Backend{Address: "::1", Port: netip.MustParseAddrPort(listener.Addr().String()).Port(), Ready: true}
	published := web(port, backend)
	require.True(t, apply(t, p, published).Reloaded)
	require.False(t, apply(t, p, published).Reloaded, "what is as wanted is left alone")
	for _, from := range []string{"127.0.0.1", "::1"} {
		response, err := http.Get("http://" + net.JoinHostPort(from, fmt.Sprint(port)) + "/")
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "six", string(answer))
	}
}

func TestServersChangeAtRunTimeWithoutAReloadAndWithoutAFailedRequest(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	a, b, c := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b"), haproxytest.NewBackend(t, "c")
	port := haproxytest.FreePort(t)

	first := apply(t, p, web(port, a.Ready()))
	require.True(t, first.Reloaded, "a listener appears")
	require.Equal(t, []uint16{port}, first.Serving)
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 50)

	start := time.Now()
	outcome := apply(t, p, web(port, a.Ready(), b.Ready()))
	require.False(t, outcome.Reloaded)
	require.Equal(t, 1, outcome.Changed)
	haproxytest.Wait(t, "the new backend's first answer", func() error {
		if load.Answers()["b"] == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	t.Logf("a second backend: applied and answering after %s", time.Since(start).Round(time.Millisecond))

	outcome = apply(t, p, web(port, a.Draining(), b.Ready(), c.Ready()))
	require.False(t, outcome.Reloaded)
	load.WaitFor(t, 20) // requests in progress
	hits := a.Hits.Load()
	load.WaitFor(t, 100)
	require.Equal(t, hits, a.Hits.Load(), "a draining backend gets nothing new")
	a.Stop(t)

	outcome = apply(t, p, web(port, b.Ready(), c.Ready()))
	require.False(t, outcome.Reloaded)
	load.WaitFor(t, 100)
	outcome = apply(t, p, web(port, b.Ready(), c.Ready()))
	require.Zero(t, outcome.Changed, "what is as wanted is left alone")

	total, failed, worst := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests, none failed, worst %s", total, worst.Round(time.Millisecond))
}

func TestTheOnlyBackendIsReplacedWithoutAFailedRequest(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	apply(t, p, web(port, a.Ready()))
	load := haproxytest.StartLoad(t, port)
	for range 8 {
		require.False(t, apply(t, p, web(port, b.Ready())).Reloaded)
		require.False(t, apply(t, p, web(port, a.Ready())).Reloaded)
		load.WaitFor(t, 5)
	}
	total, failed, worst := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests over 16 replacements, none failed, worst %s", total, worst.Round(time.Millisecond))
}

func TestADrainingBackendKeepsTheConnectionsItHas(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	apply(t, p, web(port, a.Ready()))

	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer connection.Close()
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil }}}
	ask := func() (string, error) {
		response, err := client.Get("http://gateway/")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	answer, err := ask()
	require.NoError(t, err)
	require.Equal(t, "a", answer)

	apply(t, p, web(port, a.Draining(), b.Ready()))
	answer, err = haproxytest.Get(t.Context(), port)
	require.NoError(t, err)
	require.Equal(t, "b", answer)
	answer, err = ask()
	require.NoError(t, err)
	require.Equal(t, "a", answer, "the old connection is where it was")

	require.True(t, apply(t, p, web(port, b.Ready()), web(other, b.Ready())).Reloaded)
	answer, err = ask()
	require.NoError(t, err)
	require.Equal(t, "a", answer, "even after a reload, in the worker before")
}

func TestListenersComeAndGoUnderLoadWithoutAFailedRequestOnTheOthers(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	apply(t, p, web(port, a.Ready()))
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)

	for range 3 {
		outcome := apply(t, p, web(port, a.Ready()), web(other, b.Ready()))
		require.True(t, outcome.Reloaded)
		answer, err := haproxytest.Get(t.Context(), other)
		require.NoError(t, err)
		require.Equal(t, "b", answer)
		load.WaitFor(t, 50)

		outcome = apply(t, p, web(port, a.Ready()))
		require.True(t, outcome.Reloaded)
		haproxytest.Wait(t, "the port to be closed", func() error {
			if answer, err := haproxytest.Get(t.Context(), other); err == nil {
				return fmt.Errorf("%s still answers", answer)
			}
			return nil
		})
		load.WaitFor(t, 50)
	}
	total, failed, worst := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests over 6 reloads, none failed, worst %s", total, worst.Round(time.Millisecond))
}

func TestAnyNumberOfBackendsComesWithoutAReload(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	port := haproxytest.FreePort(t)
	first := haproxytest.NewBackend(t, "first")
	apply(t, p, web(port, first.Ready()))
	load := haproxytest.StartLoad(t, port)

	var backends []route.Backend
	for i := range 9 {
		backends = append(backends, haproxytest.NewBackend(t, fmt.Sprint("b", i)).Ready())
	}
	require.False(t, apply(t, p, web(port, append(backends, first.Ready())...)).Reloaded)
	haproxytest.Wait(t, "answers from all ten", func() error {
		if n := len(load.Answers()); n < 10 {
			return fmt.Errorf("%d answered", n)
		}
		return nil
	})
	_, failed, _ := load.Stop()
	require.Empty(t, failed)
}

// present waits until the running HAProxy has this number of servers, including servers that are about to be removed.
func present(t *testing.T, p *haproxy.Proxy, wanted int) {
	t.Helper()
	haproxytest.Wait(t, "servers that are removed", func() error {
		if n, err := p.Present(); err != nil || n != wanted {
			return errors.Join(err, fmt.Errorf("there are %d, and not %d", n, wanted))
		}
		return nil
	})
}

func TestAServerStaysUntilItsLastConnectionEnds(t *testing.T) {
	process := haproxytest.New(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	p := open(t, process.Config())
	apply(t, p, web(port, a.Ready()))
	kept, err := hold(t, port)
	require.NoError(t, err)
	apply(t, p, web(port, b.Ready()))
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)
	present(t, p, 2)
	require.Zero(t, load.Answers()["a"], "it gets nothing")
	require.NoError(t, ask(kept))

	require.False(t, apply(t, p, web(port, a.Ready(), b.Ready())).Reloaded, "it comes back")
	haproxytest.Wait(t, "answers from a", func() error {
		if load.Answers()["a"] == 0 {
			return errors.New("none")
		}
		return nil
	})
	require.NoError(t, ask(kept))
	apply(t, p, web(port, b.Ready()))
	require.NoError(t, p.Close())

	p = open(t, process.Config()) // another daemon waits on
	require.False(t, apply(t, p, web(port, b.Ready())).Reloaded)
	require.NoError(t, ask(kept))
	require.NoError(t, kept.Close())
	present(t, p, 1)
	require.NoError(t, p.FromNothing(t.Context(), []route.Route{web(port, b.Ready())}, haproxy.Web{}))
	require.False(t, apply(t, p, web(port, a.Ready(), b.Ready())).Reloaded, "it comes anew")
	load.WaitFor(t, 20)
	_, failed, _ := load.Stop()
	require.Empty(t, failed)
	require.NoError(t, p.Close())
}

// TestServersThatComeAndGoLeaveNothingBehind replaces two backends many times under load, with requests over persistent connections, too.
func TestServersThatComeAndGoLeaveNothingBehind(t *testing.T) {
	process := haproxytest.New(t)
	backends := []*haproxytest.Backend{haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b"), haproxytest.NewBackend(t, "c")}
	port, listening := haproxytest.FreePort(t), haproxytest.FreePort(t)
	pool := route.Pool{Namespace: "default", Service: "pool", Port: "80"}
	h := haproxy.Web{}
	h.Listeners = []route.Listener{{Port: listening}}
	h.Sites = []route.Site{{Namespace: "default", Ingress: "site", Paths: []route.Path{{Host: "127.0.0.1", Path: "/", Pool: pool.Name()}}}}
	p := open(t, process.Config())
	var loads []*haproxytest.Load
	for i := range 60 {
		left, right := backends[i%3].Ready(), backends[(i+1)%3].Ready()
		pool.Backends = []route.Backend{left, right}
		h.Pools = []route.Pool{pool}
		outcome, err := p.Apply(t.Context(), []route.Route{web(port, left, right)}, h)
		require.NoError(t, err)
		require.Equal(t, i == 0, outcome.Reloaded)
		if i == 0 {
			loads = append(loads, haproxytest.StartLoad(t, port), haproxytest.StartLoad(t, listening))
		}
		for _, load := range loads {
			load.WaitFor(t, 5)
		}
	}
	present(t, p, 4)
	for _, load := range loads {
		total, failed, _ := load.Stop()
		require.Empty(t, failed)
		t.Logf("%d requests, none failed", total)
	}
	require.NoError(t, p.Close())
}

func TestARestartAdoptsWhatIsThere(t *testing.T) {
	process := haproxytest.New(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	p := open(t, process.Config())
	apply(t, p, web(port, a.Ready()))
	apply(t, p, web(port, b.Ready()))

	again := open(t, process.Config())
	outcome := apply(t, again, web(port, b.Ready()))
	require.False(t, outcome.Reloaded)
	require.Zero(t, outcome.Changed)

	process.Stop() // HAProxy itself restarts: the file has the changes at run time
	require.NoError(t, process.Reload(t.Context()))
	haproxytest.Wait(t, "HAProxy", func() error {
		answer, err := haproxytest.Get(t.Context(), port)
		if err == nil && answer != "b" {
			err = fmt.Errorf("answer from %s", answer)
		}
		return err
	})
	outcome = apply(t, again, web(port, b.Ready()))
	require.False(t, outcome.Reloaded)
	require.Zero(t, outcome.Changed)

	process.Stop() // and when it does not run, it is started
	require.True(t, apply(t, again, web(port, a.Ready())).Reloaded)
	answer, err := haproxytest.Get(t.Context(), port)
	require.NoError(t, err)
	require.Equal(t, "a", answer)
}

func TestOnlyClientsOfARoutesNetworksAreLetIn(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	p := open(t, process.Config())
	r := web(port, a.Ready())
	apply(t, p, r, web(other, a.Ready()))
	load := haproxytest.StartLoad(t, other)
	// The worker before takes connections until it has heard of the new one.
	lets := func(in bool) {
		t.Helper()
		haproxytest.Wait(t, fmt.Sprintf("clients are let in: %t", in), func() error {
			if _, err := haproxytest.Get(t.Context(), port); in != (err == nil) {
				return fmt.Errorf("the answer is %v", err)
			}
			return nil
		})
	}
	lets(true)
	for range 100 { // more than fit into a line
		r.Sources = append(r.Sources, netip.MustParsePrefix(fmt.Sprintf("203.0.113.%d/32", len(r.Sources))))
	}
	require.True(t, apply(t, p, r, web(other, a.Ready())).Reloaded)
	lets(false)
	require.False(t, apply(t, p, r, web(other, a.Ready())).Reloaded)

	r.Sources = append(r.Sources, netip.MustParsePrefix("127.0.0.0/8"))
	require.True(t, apply(t, p, r, web(other, a.Ready())).Reloaded)
	lets(true)
	r.Sources = r.Sources[:1]
	apply(t, p, r, web(other, a.Ready()))
	lets(false)
	r.Sources = nil
	apply(t, p, r, web(other, a.Ready()))
	lets(true)
	_, failed, _ := load.Stop()
	require.Empty(t, failed)
}

// hold opens a connection through a port and has the backend answer on it.
func hold(t *testing.T, port uint16) (net.Conn, error) {
	t.Helper()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection, ask(connection)
}

func ask(connection net.Conn) error {
	_ = connection.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		return err
	}
	_, err := connection.Read(make([]byte, 4096))
	return err
}

func TestAClientHasAsManyConnectionsAsARouteLets(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	p := open(t, process.Config())
	r := web(port, a.Ready())
	r.ClientConnections = 2
	apply(t, p, r, web(other, a.Ready()))
	first, err := hold(t, port)
	require.NoError(t, err)
	_, err = hold(t, port)
	require.NoError(t, err)
	_, err = hold(t, port)
	require.Error(t, err, "the third one")
	_, err = hold(t, other)
	require.NoError(t, err, "another port has no limit")
	require.NoError(t, first.Close())
	haproxytest.Wait(t, "room for another one", func() error { _, err := hold(t, port); return err })
}

func TestAClientHasItsShareOfTheConnectionsOfAllPorts(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.MaxConnections = 16
	a := haproxytest.NewBackend(t, "a")
	ports := []uint16{haproxytest.FreePort(t), haproxytest.FreePort(t)}
	apply(t, open(t, config), web(ports[0], a.Ready()), web(ports[1], a.Ready()))
	var first net.Conn
	for i := range 14 {
		connection, err := hold(t, ports[i%2])
		require.NoError(t, err)
		first = connection
	}
	for _, port := range ports {
		_, err := hold(t, port)
		require.Error(t, err, "the fifteenth")
	}
	require.NoError(t, first.Close())
	haproxytest.Wait(t, "room for another one", func() error { _, err := hold(t, ports[0]); return err })
}

func TestConnectionsAreSilentAsLongAsARouteLets(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	p := open(t, process.Config())
	r := web(port, a.Ready())
	r.Idle = time.Second
	apply(t, p, r, web(other, a.Ready()))
	short, err := hold(t, port)
	require.NoError(t, err)
	long, err := hold(t, other)
	require.NoError(t, err)
	_ = short.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = short.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, ask(long))
}

func TestOnlySoManyConnectionsOfAPortAreServedAtATime(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	p := open(t, process.Config())
	r := web(port, a.Ready())
	r.Connections = 1
	apply(t, p, r)
	first, err := hold(t, port)
	require.NoError(t, err)
	second, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer second.Close()
	answered := make(chan error, 1)
	go func() { answered <- ask(second) }()
	select {
	case err := <-answered:
		require.Fail(t, "the second one is served beside the first", "%v", err)
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, first.Close())
	require.NoError(t, <-answered)
}

func TestReloadsAreGathered(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	ports := []uint16{haproxytest.FreePort(t), haproxytest.FreePort(t), haproxytest.FreePort(t)}
	config := process.Config()
	config.ReloadGap = 5 * time.Second // longer than the two changes that are gathered take on a busy machine
	p := open(t, config)
	began := time.Now()
	require.True(t, apply(t, p, web(ports[0], a.Ready())).Reloaded)
	outcome := apply(t, p, web(ports[0], a.Ready()), web(ports[1], a.Ready()))
	require.True(t, outcome.Waiting)
	require.Equal(t, []uint16{ports[0]}, outcome.Serving)
	b := haproxytest.NewBackend(t, "b")
	outcome = apply(t, p, web(ports[0], b.Ready()), web(ports[1], a.Ready()), web(ports[2], a.Ready()))
	require.True(t, outcome.Waiting)
	answer, err := haproxytest.Get(t.Context(), ports[0])
	require.NoError(t, err)
	require.Equal(t, "b", answer, "backends do not wait")
	haproxytest.Wait(t, "the reload of both", func() error {
		outcome = apply(t, p, web(ports[0], b.Ready()), web(ports[1], a.Ready()), web(ports[2], a.Ready()))
		if outcome.Waiting {
			return errors.New("not yet")
		}
		return nil
	})
	require.Len(t, outcome.Serving, 3)
	require.GreaterOrEqual(t, time.Since(began), config.ReloadGap)
}

func TestManyServersAreCheckedLessOften(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	p := open(t, config)
	inter := func() string {
		t.Helper()
		content, err := os.ReadFile(config.ConfigFile)
		require.NoError(t, err)
		return regexp.MustCompile(`default-server .*`).FindString(string(content))
	}
	var routes []route.Route
	for range 63 {
		routes = append(routes, web(haproxytest.FreePort(t)))
		for i := range 8 {
			routes[0].Backends = append(routes[0].Backends, route.Backend{Address: fmt.Sprintf("127.1.%d.%d", len(routes), i), Port: 8080, Ready: true})
		}
	}
	few := routes[0]
	few.Backends = few.Backends[:8]
	apply(t, p, few)
	require.Contains(t, inter(), " inter 500")
	require.True(t, apply(t, p, routes...).Reloaded)
	require.Contains(t, inter(), " inter 1000", "1,008 checks a second would be too many")
	p = open(t, config)
	require.False(t, apply(t, p, routes...).Reloaded, "another daemon finds it as it should be")
	require.Contains(t, inter(), " inter 1000")
	routes[0] = few
	_, done := p.Change(routes[:1], nil)
	require.False(t, done, "the file is to have another head")
	require.False(t, apply(t, p, routes...).Reloaded, "those that stay may be checked less often until the next reload")
	require.Contains(t, inter(), " inter 500")
}

// TestAMachineThatAllowsFewFilesServesManyPorts has fewer files than HAProxy's sum of two for each connection and one for each server that is checked.
func TestAMachineThatAllowsFewFilesServesManyPorts(t *testing.T) {
	process := haproxytest.New(t)
	process.Files = 1500
	p := open(t, process.Config())
	a := haproxytest.NewBackend(t, "a")
	var routes []route.Route
	for range 100 {
		r := web(haproxytest.FreePort(t), a.Ready())
		for i := range 7 {
			r.Backends = append(r.Backends, route.Backend{Address: fmt.Sprintf("127.1.0.%d", i), Port: a.Address.Port(), Ready: true})
		}
		routes = append(routes, r)
	}
	apply(t, p, routes[0])
	require.Len(t, apply(t, p, routes...).Serving, len(routes))
	for _, r := range routes {
		answer, err := haproxytest.Get(t.Context(), r.GatewayPort)
		require.NoError(t, err)
		require.Equal(t, "a", answer)
	}
}

// TestTooManyServersAreNotChecked has more servers than can be checked within 16 seconds.
func TestTooManyServersAreNotChecked(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	p := open(t, config)
	checked := func() (with, without int) {
		t.Helper()
		content, err := os.ReadFile(config.ConfigFile)
		require.NoError(t, err)
		with = len(regexp.MustCompile(`(?m)^  server .* check`).FindAllString(string(content), -1))
		return with, strings.Count(string(content), "\n  server ") - with
	}
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	all := []route.Route{web(port, a.Ready())}
	for i := range 100 { // HAProxy reads 16,000 of one section for seconds
		r := web(haproxytest.FreePort(t))
		for j := range 160 {
			r.Backends = append(r.Backends, route.Backend{Address: fmt.Sprintf("127.9.%d.%d", i, j), Port: a.Address.Port(), Ready: true})
		}
		all = append(all, r)
	}
	answers := func() {
		t.Helper()
		answer, err := haproxytest.Get(t.Context(), port)
		require.NoError(t, err)
		require.Equal(t, "a", answer)
	}
	apply(t, p, all[0])
	with, without := checked()
	require.Equal(t, []int{1, 0}, []int{with, without})
	require.True(t, apply(t, p, all...).Reloaded)
	with, without = checked()
	require.Equal(t, []int{0, 16_001}, []int{with, without})
	answers()
	p = open(t, config)
	require.False(t, apply(t, p, all...).Reloaded, "another daemon finds it as it should be")
	require.True(t, apply(t, p, all[0]).Reloaded)
	with, without = checked()
	require.Equal(t, []int{1, 0}, []int{with, without}, "they are checked again")
	answers()
}

func TestConnectionsToAServerThatIsDownEnd(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.DeadAfter = 2 * time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	backend := route.Backend{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).AddrPort().Port(), Ready: true}
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- connection // open, and silent
		}
	}()
	port := haproxytest.FreePort(t)
	p := open(t, config)
	apply(t, p, web(port, backend))
	client, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	var served net.Conn // referred to, so that it stays open
	haproxytest.Wait(t, "the connection at the server", func() error {
		select {
		case connection := <-accepted:
			_ = connection.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, _ := connection.Read(make([]byte, 1)); n == 1 {
				served = connection
				return nil
			}
			_ = connection.Close() // a check
		default:
		}
		return errors.New("not there yet")
	})
	require.NoError(t, p.EndDead())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, l.Close())
	down := time.Now()
	haproxytest.Wait(t, "the end of the connection", func() error {
		require.NoError(t, p.EndDead())
		select {
		case err := <-ended:
			require.ErrorIs(t, err, io.EOF)
			return nil
		default:
			return errors.New("it is open")
		}
	})
	require.GreaterOrEqual(t, time.Since(down), config.DeadAfter-time.Second, "HAProxy tells whole seconds")
	require.NoError(t, served.Close())
}

func TestTheConfigurationOfAFormerReleaseIsTakenOverWithoutALostConnection(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	config := process.Config()
	former, err := os.ReadFile(filepath.Join("testdata", "former.cfg"))
	require.NoError(t, err)
	user, err := user.Current()
	require.NoError(t, err)
	text := strings.NewReplacer("/run/admin.sock", config.Socket, "8000", fmt.Sprint(port), "127.0.0.2:8080", fmt.Sprintf("127.0.0.1:%d", a.Ready().Port),
		"user haproxy\n", "user "+user.Username+"\n", "  group haproxy\n", "").Replace(string(former))
	require.NoError(t, os.WriteFile(config.ConfigFile, []byte(text), 0o600))
	require.NoError(t, process.Reload(t.Context()))
	load := haproxytest.StartLoad(t, port)
	haproxytest.Wait(t, "answers", func() error {
		if load.Answers()["a"] == 0 {
			return errors.New("none")
		}
		return nil
	})
	kept, err := hold(t, port)
	require.NoError(t, err)
	load.WaitFor(t, 20)
	broken := true
	config.RetryAfter = time.Nanosecond
	config.Reload = func(ctx context.Context) error {
		if broken {
			return errors.New("no memory")
		}
		return process.Reload(ctx)
	}
	p := open(t, config)
	_, err = p.Apply(t.Context(), []route.Route{web(port, a.Ready())}, haproxy.Web{})
	require.ErrorContains(t, err, "no memory")
	broken = false // the former file is back, without the new part
	require.True(t, apply(t, p, web(port, a.Ready())).Reloaded)
	require.False(t, apply(t, p, web(port, a.Ready())).Reloaded)
	load.WaitFor(t, 50)
	require.NoError(t, ask(kept))
	content, err := os.ReadFile(config.ConfigFile)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^  clitcpka-idle 30s?$`, string(content), "seconds, in HAProxy's eyes")
	require.Regexp(t, `(?m)^  srvtcpka-intvl 10s?$`, string(content))
	require.Contains(t, string(content), "backend clients")
}

// TestPlacesOfAFormerReleaseGo begins beside an HAProxy that runs with the places that the release before had, of which some are free, and one was used.
func TestPlacesOfAFormerReleaseGo(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	a, b, c := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b"), haproxytest.NewBackend(t, "c")
	port := haproxytest.FreePort(t)
	apply(t, open(t, config), web(port, a.Ready(), b.Ready()))
	content, err := os.ReadFile(config.ConfigFile)
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^  server .*\n`).ReplaceAllString(string(content), "")
	text += fmt.Sprintf("  server s1 %s check\n  server s2 %s check weight 0\n", a.Address, b.Address)
	for i := range 6 {
		text += fmt.Sprintf("  server s%d 0.0.0.0:1 check disabled\n", i+3)
	}
	for _, name := range []string{config.ConfigFile, config.ConfigFile + ".last-good"} {
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	var kept net.Conn
	haproxytest.Wait(t, "HAProxy", func() error { kept, err = hold(t, port); return err })
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)

	p := open(t, config)
	outcome := apply(t, p, web(port, a.Ready(), b.Draining()))
	require.False(t, outcome.Reloaded)
	require.Zero(t, outcome.Changed)
	present(t, p, 2)
	outcome = apply(t, p, web(port, b.Ready(), c.Ready()))
	require.False(t, outcome.Reloaded)
	require.Equal(t, 3, outcome.Changed)
	haproxytest.Wait(t, "answers from c", func() error {
		if load.Answers()["c"] == 0 {
			return errors.New("none")
		}
		return nil
	})
	require.NoError(t, ask(kept), "a serves who is there")
	require.NoError(t, kept.Close())
	present(t, p, 2)
	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	haproxytest.Wait(t, "HAProxy", func() error { _, err := p.Worker(); return err })
	require.Zero(t, apply(t, p, web(port, b.Ready(), c.Ready())).Changed)
	require.NoError(t, p.FromNothing(t.Context(), []route.Route{web(port, b.Ready(), c.Ready())}, haproxy.Web{}))
	require.NoError(t, p.Close())
	load.Stop() // HAProxy was stopped
}

// TestWhatAServerCannotBeToldAtRunTimeIsReadByAReload puts an unknown server in the way.
func TestWhatAServerCannotBeToldAtRunTimeIsReadByAReload(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	p := open(t, config)
	apply(t, p, web(port, a.Ready()))
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)
	require.NoError(t, p.Tell(fmt.Sprintf("add server port-%d/%s 127.0.0.1:1", port, strings.ReplaceAll(b.Address.String(), ":", "-"))))
	require.True(t, apply(t, p, web(port, a.Ready(), b.Ready())).Reloaded)
	haproxytest.Wait(t, "answers from b", func() error {
		if load.Answers()["b"] == 0 {
			return errors.New("none")
		}
		return nil
	})
	_, failed, _ := load.Stop()
	require.Empty(t, failed)
	require.NoError(t, p.FromNothing(t.Context(), []route.Route{web(port, a.Ready(), b.Ready())}, haproxy.Web{}))
}

func TestACandidateThatHAProxyRefusesIsNotUsed(t *testing.T) {
	process := haproxytest.New(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	config := process.Config()
	apply(t, open(t, config), web(port, a.Ready()))
	before, err := os.ReadFile(config.ConfigFile)
	require.NoError(t, err)

	bad := config
	bad.User = "nobody-of-this-name"
	_, err = haproxy.Open(t.Context(), bad)
	require.ErrorContains(t, err, "nobody-of-this-name")
	require.ErrorContains(t, err, "the candidate is not used")
	after, err := os.ReadFile(config.ConfigFile)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	leftovers, err := filepath.Glob(filepath.Join(process.Directory, "transactions", "*"))
	require.NoError(t, err)
	require.Empty(t, slices.DeleteFunc(leftovers, func(name string) bool { i, err := os.Stat(name); return err == nil && i.IsDir() }))

	apply(t, open(t, config), web(port, b.Ready()))
	answer, err := haproxytest.Get(t.Context(), port)
	require.NoError(t, err)
	require.Equal(t, "b", answer)
}

func TestAReloadThatFailsLeavesTheLastGoodConfigurationAndServersStillChange(t *testing.T) {
	process := haproxytest.New(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	config := process.Config()
	broken := true
	config.RetryAfter = time.Hour
	config.Reload = func(ctx context.Context) error {
		if broken {
			return errors.New("no memory")
		}
		return process.Reload(ctx)
	}
	broken = false
	p := open(t, config)
	apply(t, p, web(port, a.Ready()))
	broken = true

	for range 2 {
		outcome, err := p.Apply(t.Context(), []route.Route{web(port, a.Ready(), b.Ready()), web(other, b.Ready())}, haproxy.Web{})
		require.ErrorContains(t, err, "no memory")
		require.Equal(t, []uint16{port}, outcome.Serving)
		require.ErrorContains(t, outcome.Refused[other], "no memory")
	}
	require.Eventually(t, func() bool { answer, _ := haproxytest.Get(t.Context(), port); return answer == "b" }, 30*time.Second, time.Millisecond)

	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	require.Eventually(t, func() bool { answer, _ := haproxytest.Get(t.Context(), port); return answer == "b" }, 30*time.Second, 5*time.Millisecond,
		"the file has the listeners of before and the servers of now")

	broken = false
	p = open(t, config) // nor is the failure remembered by a new process
	require.True(t, apply(t, p, web(port, a.Ready(), b.Ready()), web(other, b.Ready())).Reloaded)
}

func TestAReloadThatTheMasterMissedIsAskedForAgain(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	config := process.Config()
	missed := 0
	config.Reload = func(ctx context.Context) error {
		if missed++; missed == 2 {
			return nil
		}
		return process.Reload(ctx)
	}
	config.ReloadTimeout = 3 * time.Second
	p := open(t, config)
	apply(t, p, web(port, a.Ready()))
	require.True(t, apply(t, p, web(port, a.Ready()), web(other, a.Ready())).Waiting, "the one that was missed may still come")
	require.Equal(t, 3, missed)
	haproxytest.Wait(t, "no reload to come", func() error {
		if apply(t, p, web(port, a.Ready()), web(other, a.Ready())).Waiting {
			return errors.New("one may still come")
		}
		return nil
	})
}

func TestAPortThatAnotherProgramHoldsIsRefusedAndTheOthersAreServed(t *testing.T) {
	process := haproxytest.New(t)
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	squatter, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	taken := squatter.Addr().(*net.TCPAddr).AddrPort().Port()

	p := open(t, process.Config())
	outcome, err := p.Apply(t.Context(), []route.Route{web(port, a.Ready()), web(taken, a.Ready())}, haproxy.Web{})
	require.NoError(t, err)
	require.Equal(t, []uint16{port}, outcome.Serving)
	require.ErrorContains(t, outcome.Refused[taken], "another program")

	require.NoError(t, squatter.Close())
	apply(t, p, web(port, a.Ready()), web(taken, a.Ready()))
	answer, err := haproxytest.Get(t.Context(), taken)
	require.NoError(t, err)
	require.Equal(t, "a", answer)
}

func TestAnAlgorithmThatServersCannotChangeUnderIsRefused(t *testing.T) {
	config := haproxytest.New(t).Config()
	config.Balance = "source"
	_, err := haproxy.Open(t.Context(), config)
	require.ErrorContains(t, err, "leastconn or roundrobin")
}

func TestAConfigurationOfOthersIsKeptBesideOurs(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	require.NoError(t, os.WriteFile(config.ConfigFile, []byte("global\n  daemon\n"), 0o644))
	open(t, config)
	kept, err := os.ReadFile(config.ConfigFile + ".before-burano")
	require.NoError(t, err)
	require.Equal(t, "global\n  daemon\n", string(kept))
}
