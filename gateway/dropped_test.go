package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
	"github.com/burano/burano/internal/wait"
)

// TestNothingIsDroppedWhileRoutesChange lets clients use routes that are not changed, and one whose backends are replaced like pods, while everything else
// changes at random: sites, paths, pools, ports, weights, certificates, and the daemon itself. No request fails and none gets another's answer; in the end
// the resulting routes are served. BURANO_GATEWAY_CHANGES is the number of changes, which `make soak` sets to 1,000; from that number on there are 1,000
// requests a second, 50 transfers and 50 WebSockets at a time.
func TestNothingIsDroppedWhileRoutesChange(t *testing.T) {
	changes, rate, long, takes := 40, 200, 5, 2*time.Second
	if text := os.Getenv("BURANO_GATEWAY_CHANGES"); text != "" {
		var err error
		changes, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	if changes >= 1000 {
		rate, long, takes = 1000, 50, 20*time.Second
	}
	w := newChangingWorld(t, takes)
	c := &clients{trusted: w.trusted, takes: takes}
	c.start(t, w, rate, long)

	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range changes {
		<-tick.C
		w.change(t)
	}
	took := time.Since(began)
	w.converges(t)
	c.end()
	t.Logf("%d changes in %s: %s", changes, took.Round(time.Second), c)
	require.Zerof(t, len(c.failed), "the last of them:\n%s", strings.Join(c.failed[max(0, len(c.failed)-20):], "\n"))
	for _, kind := range c.kinds {
		require.Positive(t, c.asked[kind], kind)
	}
}

// steady is a backend that answers with its name, sends something for a while, and speaks as a WebSocket.
func steady(t *testing.T, name string, takes time.Duration) route.Backend {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") == "websocket":
			connection, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer connection.Close()
			accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
			fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(accept[:]))
			_, _ = io.Copy(connection, buffered)
		case r.URL.Path == "/transfer":
			for end := time.Now().Add(takes); time.Now().Before(end); {
				_, _ = w.Write(bytes.Repeat([]byte(name[:1]), pieceSize))
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				select {
				case <-r.Context().Done():
					return
				case <-time.After(pieceEvery):
				}
			}
			_, _ = io.WriteString(w, transferred)
		default:
			_, _ = io.WriteString(w, name)
		}
	}))
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	return route.Backend{Address: at.Addr().String(), Port: at.Port(), Node: "node", Ready: true}
}

// A transfer has pieces, and an end. It takes less than 50 seconds: an old worker of HAProxy ends after 50 further reloads, of which there is one a
// second.
const (
	pieceSize   = 4 << 10
	pieceEvery  = 50 * time.Millisecond
	transferred = "that was all"
)

// changingWorld is the set of served routes. Routes of clients stay; spare is for the changes.
type changingWorld struct {
	node             *node
	stop             func()
	plain, safe, tcp uint16
	trusted          *x509.CertPool
	public           [32]byte
	spare            []route.Backend
	spareNames       map[netip.AddrPort]string
	pools            map[string]route.Pool // of the changes
	sites            map[string]route.Site
	ports            map[uint16]bool // spare ports, and which of them are published
	moving           *haproxytest.Backend
	moves            int
	random           *rand.Rand
}

const (
	keptHost   = "kept.example.org"
	movingHost = "moving.example.org"
)

func newChangingWorld(t *testing.T, takes time.Duration) *changingWorld {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := &changingWorld{
		node: newNode(t), plain: haproxytest.FreePort(t), safe: haproxytest.FreePort(t), tcp: haproxytest.FreePort(t), trusted: x509.NewCertPool(),
		spareNames: make(map[netip.AddrPort]string), pools: make(map[string]route.Pool), sites: make(map[string]route.Site), ports: make(map[uint16]bool),
		random: rand.New(rand.NewPCG(seed, 0)), moving: haproxytest.NewBackend(t, "moving"),
	}
	w.node.reloadGap, w.node.connections = time.Second, 4000
	w.stop = w.node.run(t)
	await(t, "the gateway has a key", func() error {
		found, err := w.node.etcd.Get(t.Context(), route.KeyOf("murano-gateway-1"))
		if err != nil || len(found.Kvs) == 0 {
			return errors.Join(err, errors.New("none"))
		}
		key, err := route.DecodeKey(string(found.Kvs[0].Key), found.Kvs[0].Value)
		w.public = key.Public
		return err
	})
	for i := range 6 {
		name := fmt.Sprintf("spare-%d", i)
		backend := steady(t, name, takes)
		w.spare = append(w.spare, backend)
		w.spareNames[netip.MustParseAddrPort(fmt.Sprintf("%s:%d", backend.Address, backend.Port))] = name
		w.ports[haproxytest.FreePort(t)] = false
	}
	kept := []route.Backend{steady(t, "kept-1", takes), steady(t, "kept-2", takes)}
	w.certify(t, "kept", keptHost)
	pool := route.Pool{Namespace: "default", Service: "kept", Port: "http", Backends: kept}
	h := route.HTTP{
		Listeners: []route.Listener{{Port: w.plain}, {Port: w.safe, TLS: true}}, Pools: []route.Pool{pool, w.movingPool(w.moving.Ready())},
		Sites: []route.Site{
			{Namespace: "default", Ingress: "kept", Paths: []route.Path{{Host: keptHost, Path: "/", Pool: pool.Name()}}, Certificates: []route.Certificate{{Host: keptHost, Secret: "kept"}}},
			{Namespace: "default", Ingress: "moving", Paths: []route.Path{{Host: movingHost, Path: "/", Pool: "default/moving/http"}}},
		},
	}
	for _, part := range h.Parts() {
		w.put(t, part)
	}
	w.node.put(t, web(w.tcp, kept...))
	for i := range 4 {
		w.pools[fmt.Sprintf("pool-%d", i)] = route.Pool{}
		w.repool(t, fmt.Sprintf("pool-%d", i))
	}
	c := &clients{trusted: w.trusted}
	for _, one := range w.uses() {
		await(t, one.name, func() error { return c.once(one) })
	}
	return w
}

func (w *changingWorld) put(t *testing.T, part route.Part) {
	t.Helper()
	value, err := route.EncodePart(part)
	require.NoError(t, err)
	_, err = w.node.etcd.Put(t.Context(), route.PartKey(part), string(value))
	require.NoError(t, err)
}

func (w *changingWorld) delete(t *testing.T, part route.Part) {
	t.Helper()
	_, err := w.node.etcd.Delete(t.Context(), route.PartKey(part))
	require.NoError(t, err)
}

// certify writes a certificate of a host anew, sealed for the gateway.
func (w *changingWorld) certify(t *testing.T, secret, host string) {
	t.Helper()
	certificate, content := selfSigned(t, host)
	w.trusted.AppendCertsFromPEM(certificate)
	box, err := seal.Close(w.public, content)
	require.NoError(t, err)
	sealed := route.Sealed{Gateway: "murano-gateway-1", Namespace: "default", Secret: secret, Box: box}
	value, err := route.EncodeSealed(sealed)
	require.NoError(t, err)
	_, err = w.node.etcd.Put(t.Context(), route.SealedKey(sealed), string(value))
	require.NoError(t, err)
}

func (w *changingWorld) movingPool(backends ...route.Backend) route.Pool {
	return route.Pool{Namespace: "default", Service: "moving", Port: "http", Backends: backends}
}

// some are one or more of the spare backends.
func (w *changingWorld) some() []route.Backend {
	order := w.random.Perm(len(w.spare))
	var backends []route.Backend
	for _, i := range order[:1+w.random.IntN(len(order)-1)] {
		backends = append(backends, w.spare[i])
	}
	return backends
}

// repool gives a pool other backends.
func (w *changingWorld) repool(t *testing.T, name string) {
	pool := route.Pool{Namespace: "default", Service: name, Port: "http", Backends: w.some()}
	w.pools[name] = pool
	w.put(t, route.Part{Pool: &pool})
}

// change changes something at random that clients do not use, or replaces the backend of the route whose backends move.
func (w *changingWorld) change(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("site-%d", w.random.IntN(8))
	pools := slices.Sorted(maps.Keys(w.pools))
	pool := func() string { return w.pools[pools[w.random.IntN(len(pools))]].Name() }
	switch w.random.IntN(10) {
	case 0, 1: // an Ingress, with TLS or without
		site := route.Site{Namespace: "default", Ingress: name, Paths: []route.Path{
			{Host: name + ".example.org", Path: "/", Pool: pool()},
			{Host: name + ".example.org", Path: fmt.Sprintf("/%d", w.random.IntN(5)), Exact: w.random.IntN(2) == 0, Pool: pool()},
		}}
		if w.random.IntN(2) == 0 {
			w.certify(t, name, name+".example.org")
			site.Certificates = []route.Certificate{{Host: name + ".example.org", Secret: name}}
		}
		w.sites[name] = site
		w.put(t, route.Part{Site: &site})
	case 2, 3: // a route of Gateway API, which shares its requests, asks for headers and sets some
		kind := "kind-" + name
		paths := []route.Path{{Port: w.plain, Host: kind + ".example.org", Path: "/", Targets: []route.Target{{Pool: pool(), Weight: 1 + w.random.IntN(9)}, {Pool: pool(), Weight: 1}}}}
		if w.random.IntN(2) == 0 {
			header := fmt.Sprintf("x-%d", w.random.IntN(3))
			paths = append(paths, route.Path{Port: w.plain, Host: kind + ".example.org", Path: "/", Match: &route.Match{Headers: []route.Pair{{Name: header, Value: "1"}}}, Targets: []route.Target{
				{Pool: pool(), Weight: 1, Filters: &route.Filters{Response: &route.Headers{Set: []route.Pair{{Name: "x-set", Value: header}}}}},
			}})
		}
		site := route.Site{Namespace: "default", Kind: route.KindHTTPRoute, Name: kind, Paths: paths}
		w.sites[kind] = site
		w.put(t, route.Part{Site: &site})
	case 4: // a site goes
		if names := slices.Sorted(maps.Keys(w.sites)); len(names) > 0 {
			gone := w.sites[names[w.random.IntN(len(names))]]
			delete(w.sites, gone.Ingress+gone.Name)
			w.delete(t, route.Part{Site: &gone})
		}
	case 5: // backends
		w.repool(t, pools[w.random.IntN(len(pools))])
	case 6: // a port comes or goes
		ports := slices.Sorted(maps.Keys(w.ports))
		port := ports[w.random.IntN(len(ports))]
		if w.ports[port] {
			_, err := w.node.etcd.Delete(t.Context(), route.Key(web(port)))
			require.NoError(t, err)
		} else {
			w.node.put(t, web(port, w.some()...))
		}
		w.ports[port] = !w.ports[port]
	case 7: // the certificate of the route that clients use is renewed
		w.certify(t, "kept", keptHost)
	case 8:
		w.move(t)
	case 9: // the daemon starts again, sometimes
		if w.random.IntN(5) == 0 {
			w.stop()
			w.stop = w.node.run(t)
		}
	}
}

// move replaces the backend of the moving route as a Deployment does: the new one is ready, the former one gets no requests any more, and goes.
func (w *changingWorld) move(t *testing.T) {
	t.Helper()
	w.moves++
	former, next := w.moving, haproxytest.NewBackend(t, fmt.Sprintf("moving-%d", w.moves))
	both := w.movingPool(former.Ready(), next.Ready())
	w.put(t, route.Part{Pool: &both})
	asked := func(atLeast int64) func() error {
		return func() error {
			if hits := next.Hits.Load(); hits < atLeast {
				return fmt.Errorf("%d requests", hits)
			}
			return nil
		}
	}
	await(t, "the new backend is asked", asked(1))
	draining := w.movingPool(former.Draining(), next.Ready())
	w.put(t, route.Part{Pool: &draining})
	await(t, "the former backend is left alone", func() error {
		was := former.Hits.Load()
		await(t, "more requests come", asked(next.Hits.Load()+20))
		if now := former.Hits.Load(); now != was {
			return fmt.Errorf("%d more requests", now-was)
		}
		return nil
	})
	former.Stop(t)
	alone := w.movingPool(next.Ready())
	w.put(t, route.Part{Pool: &alone})
	w.moving = next
}

// await waits longer than the other tests of this package: beside all these clients a change may take its time.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	err := wait.Every(time.Millisecond).For(2*time.Minute).Until(t.Context(), func(context.Context) error {
		if err := try(); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	require.NoError(t, err, what)
}

// converges waits until the resulting routes are served.
func (w *changingWorld) converges(t *testing.T) {
	t.Helper()
	of := func(pool string) (names []string) {
		for _, one := range w.pools {
			if one.Name() == pool {
				for _, backend := range one.Backends {
					names = append(names, w.spareNames[netip.MustParseAddrPort(fmt.Sprintf("%s:%d", backend.Address, backend.Port))])
				}
			}
		}
		return names
	}
	c := &clients{trusted: w.trusted}
	for name, site := range w.sites {
		one := use{name: name, port: w.plain, host: site.Paths[0].Host, path: "/", from: of(site.Paths[0].Pool)}
		for _, target := range site.Paths[0].Targets {
			one.from = append(one.from, of(target.Pool)...)
		}
		if len(site.Certificates) > 0 {
			one.port, one.tls = w.safe, true
		}
		await(t, name, func() error { return c.once(one) })
	}
	for port, published := range w.ports {
		await(t, fmt.Sprintf("port %d", port), func() error {
			if answer, err := haproxytest.Get(t.Context(), port); (err == nil) != published {
				return fmt.Errorf("published: %t; %q, %v", published, answer, err)
			}
			return nil
		})
	}
}

// use is one kind of request.
type use struct {
	name string
	port uint16
	tls  bool
	host string
	path string
	from []string // the allowed responders: names, or the beginning of a name with a dash
}

// uses returns the requests to the unchanged routes.
func (w *changingWorld) uses() []use {
	kept := []string{"kept-"}
	return []use{
		{name: "a port", port: w.tcp, host: keptHost, path: "/", from: kept},
		{name: "HTTP", port: w.plain, host: keptHost, path: "/", from: kept},
		{name: "HTTPS", port: w.safe, tls: true, host: keptHost, path: "/", from: kept},
		{name: "backends that are replaced", port: w.plain, host: movingHost, path: "/", from: []string{"moving"}},
	}
}

// clients count failures. They repeat nothing: a request without an answer has failed. A persistent connection is closed only when an answer requests it
// (Connection: close, RFC 9112 section 9.6). One without HTTP's rules is closed after the duration of a transfer: with a worker of HAProxy that a reload
// has replaced it ends at the 50th reload after that.
type clients struct {
	trusted *x509.CertPool
	stop    context.CancelFunc
	group   sync.WaitGroup
	takes   time.Duration // a transfer, and a WebSocket
	kinds   []string

	mutex   sync.Mutex
	asked   map[string]int
	failed  []string
	slowest time.Duration
}

// start lets clients send rate requests a second, half on new and half on persistent connections, with long transfers and WebSockets at a time.
func (c *clients) start(t *testing.T, w *changingWorld, rate, long int) {
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.asked = stop, make(map[string]int)
	t.Cleanup(c.end)
	const each = 5
	uses := w.uses()
	pause := 2 * each * len(uses) * int(time.Second) / rate
	for _, one := range uses {
		c.kinds = append(c.kinds, one.name+", new connections", one.name+", kept connections")
		for range each {
			c.repeat(ctx, one.name+", new connections", time.Duration(pause), func(context.Context) error { return c.once(one) })
			var connection net.Conn
			var reader *bufio.Reader
			var since time.Time
			c.repeat(ctx, one.name+", kept connections", time.Duration(pause), func(context.Context) (err error) {
				if connection == nil {
					if connection, err = c.dial(one); err != nil {
						connection = nil
						return err
					}
					reader, since = bufio.NewReader(connection), time.Now()
				}
				last, err := request(connection, reader, one, "keep-alive")
				last = last || one.port == w.tcp && time.Since(since) > c.takes
				if err != nil || last {
					connection.Close()
					connection = nil
				}
				return err
			})
		}
	}
	c.kinds = append(c.kinds, "transfers", "WebSockets")
	for i := range long {
		one := uses[i%3]
		c.repeat(ctx, "transfers", time.Millisecond, func(context.Context) error { return c.transfer(one) })
		c.repeat(ctx, "WebSockets", time.Millisecond, func(ctx context.Context) error { return c.speak(ctx, one) })
	}
}

// repeat does something again and again until the context ends, and counts it.
func (c *clients) repeat(ctx context.Context, kind string, pause time.Duration, do func(ctx context.Context) error) {
	c.group.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
			if ctx.Err() != nil {
				return
			}
			began := time.Now()
			err := do(ctx)
			c.mutex.Lock()
			c.asked[kind]++
			if kind != "transfers" && kind != "WebSockets" {
				c.slowest = max(c.slowest, time.Since(began))
			}
			if err != nil {
				c.failed = append(c.failed, fmt.Sprintf("%s, %s: %v", began.Format("15:04:05.000"), kind, err))
			}
			c.mutex.Unlock()
		}
	})
}

// end stops the clients and waits for requests in progress.
func (c *clients) end() {
	c.stop()
	c.group.Wait()
}

func (c *clients) String() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	total := 0
	for _, n := range c.asked {
		total += n
	}
	return fmt.Sprintf("%d requests, %d of them transfers of %s and %d WebSockets, %d failed, slowest %s", total, c.asked["transfers"], c.takes, c.asked["WebSockets"], len(c.failed), c.slowest.Round(time.Millisecond))
}

const patience = 30 * time.Second

func (c *clients) dial(one use) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: patience}
	address := fmt.Sprintf("127.0.0.1:%d", one.port)
	var connection net.Conn
	var err error
	if one.tls {
		connection, err = tls.DialWithDialer(dialer, "tcp", address, &tls.Config{ServerName: one.host, RootCAs: c.trusted, NextProtos: []string{"http/1.1"}})
	} else {
		connection, err = dialer.Dial("tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return connection, nil
}

// once asks on a connection of its own.
func (c *clients) once(one use) error {
	connection, err := c.dial(one)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = request(connection, bufio.NewReader(connection), one, "close")
	return err
}

// request sends a request and reads the answer; last is true when the gateway closes the connection.
func request(connection net.Conn, reader *bufio.Reader, one use, kept string) (last bool, err error) {
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n\r\n", one.path, one.host, kept); err != nil {
		return false, fmt.Errorf("send a request: %w", err)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return false, fmt.Errorf("read an answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, fmt.Errorf("read an answer: %w", err)
	}
	if response.StatusCode != http.StatusOK || !slices.ContainsFunc(one.from, func(name string) bool { return strings.HasPrefix(string(body), name) }) {
		return false, fmt.Errorf("%s: %.100q, and not from one of %v", response.Status, body, one.from)
	}
	return response.Close, nil
}

// transfer reads something that takes seconds to its end.
func (c *clients) transfer(one use) error {
	connection, err := c.dial(one)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(c.takes + patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(connection, "GET /transfer HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", one.host); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.HasSuffix(body, []byte(transferred))) {
		err = fmt.Errorf("%s with %d bytes and no end", response.Status, len(body))
	}
	return err
}

// speak has a WebSocket echo words for as long as a transfer takes.
func (c *clients) speak(ctx context.Context, one use) error {
	connection, err := c.dial(one)
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := fmt.Fprintf(connection, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", one.host); err != nil {
		return err
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return errors.New(response.Status)
	}
	for i, end := 0, time.Now().Add(c.takes); time.Now().Before(end) && ctx.Err() == nil; i++ {
		if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		word := fmt.Sprintf("word %d\n", i)
		if _, err := io.WriteString(connection, word); err != nil {
			return err
		}
		if answer, err := reader.ReadString('\n'); err != nil || answer != word {
			return fmt.Errorf("after %d words: %q, %w", i, answer, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pieceEvery):
		}
	}
	return nil
}
