package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
)

// rememberedFirewall only records its input, so that the test does not close its own machine. The real one has its own tests.
type rememberedFirewall struct {
	mutex   sync.Mutex
	open    []uint16
	guarded bool
}

func (f *rememberedFirewall) Guard(context.Context) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.guarded = true
	return nil
}

func (f *rememberedFirewall) isGuarded() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.guarded
}

func (f *rememberedFirewall) Publish(_ context.Context, ports []uint16) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.open = slices.Clone(ports)
	return nil
}

func (f *rememberedFirewall) Refresh(context.Context) error { return nil }

func (f *rememberedFirewall) admits(port uint16) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Contains(f.open, port)
}

// journal is a log that can be read while it is written.
type journal struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.buffer.Write(p)
}

func (j *journal) String() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.buffer.String()
}

type node struct {
	server   *etcdtest.Server
	etcd     *clientv3.Client
	process  *haproxytest.Process
	firewall *rememberedFirewall
	journal  *journal
	metrics  netip.AddrPort
	resync   time.Duration // 0: the daemon's own
	// HAProxy's time between two reloads, and how many connections it has; 0: as haproxytest has it.
	reloadGap   time.Duration
	connections int
	retryAfter  time.Duration // after a change that failed; 0: HAProxy's own
	writeAfter  time.Duration // until the file follows changes of servers; 0: HAProxy's own
}

func (n *node) socket() string { return filepath.Join(n.process.Directory, "status.sock") }

func newNode(t *testing.T) *node {
	t.Helper()
	server := etcdtest.New(t)
	n := &node{server: server, etcd: server.Client(t), process: haproxytest.New(t), firewall: &rememberedFirewall{}, journal: &journal{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.journal.String())
		}
	})
	return n
}

// run starts the daemon; the function returned ends it and waits.
func (n *node) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	proxy := n.process.Config()
	proxy.RetryAfter, proxy.WriteAfter = n.retryAfter, n.writeAfter
	proxy.ReloadGap, proxy.MaxConnections = cmp.Or(n.reloadGap, proxy.ReloadGap), cmp.Or(n.connections, proxy.MaxConnections)
	go func() {
		ended <- gateway.Run(ctx, gateway.Config{
			Etcd: n.etcd, Name: "murano-gateway-1", SealKey: filepath.Join(n.process.Directory, "seal.key"), HAProxy: proxy, StatusSocket: n.socket(), Metrics: n.metrics, Firewall: n.firewall,
			Resync: n.resync, Logger: slog.New(slog.NewTextHandler(n.journal, nil)),
		})
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-ended)
		})
	}
	t.Cleanup(stop)
	return stop
}

func (n *node) put(t *testing.T, r route.Route) {
	t.Helper()
	value, err := route.Encode(r)
	require.NoError(t, err)
	_, err = n.etcd.Put(t.Context(), route.Key(r), string(value))
	require.NoError(t, err)
}

func answers(t *testing.T, port uint16, name string) {
	t.Helper()
	haproxytest.Wait(t, name, func() error {
		answer, err := haproxytest.Get(t.Context(), port)
		if err == nil && answer != name {
			err = fmt.Errorf("answer from %s", answer)
		}
		return err
	})
}

func web(port uint16, backends ...route.Backend) route.Route {
	return route.Route{Namespace: "default", Service: fmt.Sprint("web-", port), Port: "http", GatewayPort: port, Protocol: route.TCP, Backends: backends}
}

func TestAGatewayIsClosedBeforeEtcdAnswers(t *testing.T) {
	n := newNode(t)
	nowhere, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nowhere.Close() })
	n.etcd = nowhere
	n.run(t)
	require.Eventually(t, n.firewall.isGuarded, 10*time.Second, time.Millisecond)
}

func TestARouteIsServedMomentsAfterItIsWritten(t *testing.T) {
	n := newNode(t)
	n.resync = time.Hour // so that changes trigger the work
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.run(t)

	start := time.Now()
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	t.Logf("first route of all, HAProxy started for it: answers %s after the write", time.Since(start).Round(time.Millisecond))

	start = time.Now()
	n.put(t, web(other, a.Ready()))
	answers(t, other, "a")
	t.Logf("another route, by a reload: answers %s after the write", time.Since(start).Round(time.Millisecond))

	start = time.Now()
	n.put(t, web(port, b.Ready()))
	answers(t, port, "b")
	t.Logf("another backend, at run time: answers %s after the write", time.Since(start).Round(time.Millisecond))
	haproxytest.Wait(t, "the firewall", func() error {
		if !n.firewall.admits(port) || !n.firewall.admits(other) {
			return errors.New("closed")
		}
		return nil
	})
}

func TestAGatewayTellsHowItIs(t *testing.T) {
	n := newNode(t)
	n.metrics = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), haproxytest.FreePort(t))
	_, err := gateway.AskStatus(t.Context(), n.socket())
	require.ErrorContains(t, err, "systemctl status burano-gateway")
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	other := taken.Addr().(*net.TCPAddr).AddrPort().Port()
	n.put(t, web(port, a.Ready()))
	n.put(t, web(other, a.Ready()))
	n.run(t)
	answers(t, port, "a")
	var found gateway.Status
	haproxytest.Wait(t, "its status", func() error {
		found, err = gateway.AskStatus(t.Context(), n.socket())
		if err == nil && (!found.Etcd || len(found.Ports) != 2) {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
	for _, one := range found.Ports {
		if one.Number == port {
			require.Equal(t, fmt.Sprintf("default/web-%d:http", port), one.Service)
			require.Empty(t, one.Problem)
			require.Positive(t, one.Listener.ConnectionsTotal)
		} else {
			require.Contains(t, one.Problem, "another program")
			require.Nil(t, one.Listener)
		}
	}
	response, err := http.Get("http://" + n.metrics.String() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for _, line := range []string{
		"burano_gateway_haproxy_up 1", "burano_gateway_etcd_up 1",
		fmt.Sprintf(`burano_gateway_backends{port="%d",service="default/web-%d:http",state="up"} 1`, port, port),
		fmt.Sprintf(`burano_gateway_port_refused{port="%d",service="default/web-%d:http"} 1`, other, other),
		"burano_gateway_reloads_total", fmt.Sprintf(`burano_gateway_connections_total{port="%d"`, port),
	} {
		require.Contains(t, string(metrics), line)
	}
	elsewhere, err := http.Get("http://" + n.metrics.String() + "/status")
	require.NoError(t, err)
	defer elsewhere.Body.Close()
	require.Equal(t, http.StatusNotFound, elsewhere.StatusCode, "who sees metrics does not see all")
}

func TestBackendsAndListenersChangeUnderLoadWithoutAFailedRequest(t *testing.T) {
	n := newNode(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	load := haproxytest.StartLoad(t, port)

	n.put(t, web(port, a.Ready(), b.Ready()))
	haproxytest.Wait(t, "answers from b", func() error {
		if load.Answers()["b"] == 0 {
			return errors.New("none")
		}
		return nil
	})
	n.put(t, web(other, a.Ready()))
	answers(t, other, "a")
	n.put(t, web(port, a.Draining(), b.Ready()))
	haproxytest.Wait(t, "a to be left alone", func() error {
		before := load.Answers()
		load.WaitFor(t, 20)
		if after := load.Answers(); after["a"] != before["a"] {
			return fmt.Errorf("%d more", after["a"]-before["a"])
		}
		return nil
	})
	_, err := n.etcd.Delete(t.Context(), route.Key(web(other)))
	require.NoError(t, err)
	haproxytest.Wait(t, "the port to be closed", func() error {
		if n.firewall.admits(other) {
			return errors.New("the firewall admits it")
		}
		if answer, err := haproxytest.Get(t.Context(), other); err == nil {
			return fmt.Errorf("%s answers", answer)
		}
		return nil
	})
	n.put(t, web(port, b.Ready()))
	load.WaitFor(t, 50)
	a.Stop(t)
	load.WaitFor(t, 100)
	total, failed, worst := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests, none failed, worst %s", total, worst.Round(time.Millisecond))
}

func TestADaemonThatIsStoppedBringsItsReloadToItsEnd(t *testing.T) {
	n := newNode(t)
	a := haproxytest.NewBackend(t, "a")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	stop := n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	stop()

	proxy := n.process.Config()
	begun, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	proxy.Reload = func(ctx context.Context) error {
		once.Do(func() { close(begun) })
		<-released
		return n.process.Reload(ctx)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- gateway.Run(ctx, gateway.Config{Etcd: n.etcd, HAProxy: proxy, Firewall: n.firewall}) }()
	n.put(t, web(other, a.Ready()))
	<-begun
	cancel()
	close(released)
	require.NoError(t, <-ended)
	for _, served := range []uint16{port, other} {
		answer, err := haproxytest.Get(t.Context(), served)
		require.NoError(t, err)
		require.Equal(t, "a", answer)
	}
	configuration, err := os.ReadFile(proxy.ConfigFile)
	require.NoError(t, err)
	require.Contains(t, string(configuration), fmt.Sprintf("frontend port-%d ", other))
}

func TestARestartedDaemonAdoptsWhatIsThereAndCatchesUp(t *testing.T) {
	n := newNode(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	stop := n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	load := haproxytest.StartLoad(t, port)
	stop()
	load.WaitFor(t, 50) // HAProxy goes on without the daemon
	n.put(t, web(port, b.Ready()))
	n.put(t, web(other, b.Ready()))
	n.run(t)
	answers(t, port, "b")
	answers(t, other, "b")
	_, failed, _ := load.Stop()
	require.Empty(t, failed)
	require.NotContains(t, n.journal.String(), "level=ERROR")
}

func TestEtcdMayGoAwayAndComeBackWithItsHistoryCompacted(t *testing.T) {
	n := newNode(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, gone := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.put(t, web(port, a.Ready()))
	n.put(t, web(gone, a.Ready()))
	n.run(t)
	answers(t, port, "a")
	answers(t, gone, "a")

	n.server.Stop()
	haproxytest.Wait(t, "the loss to be noticed", func() error {
		if !strings.Contains(n.journal.String(), "lost etcd") {
			return errors.New("not yet")
		}
		return nil
	})
	answers(t, port, "a")

	// While the daemon cannot see it, the routes change and the revisions that the watch would go on from are compacted.
	elsewhere := n.server.Elsewhere(t)
	elsewhere.Start(t)
	etcd := elsewhere.Client(t)
	value, err := route.Encode(web(port, b.Ready()))
	require.NoError(t, err)
	_, err = etcd.Delete(t.Context(), route.Key(web(gone)))
	require.NoError(t, err)
	response, err := etcd.Put(t.Context(), route.Key(web(port)), string(value))
	require.NoError(t, err)
	_, err = etcd.Compact(t.Context(), response.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	elsewhere.Stop()

	n.server.Start(t)
	answers(t, port, "b")
	haproxytest.Wait(t, "the deleted route to be closed", func() error {
		if n.firewall.admits(gone) {
			return errors.New("open")
		}
		return nil
	})
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	said := regexp.MustCompile(`lost etcd.*following=`+route.RoutesPrefix).FindAllString(n.journal.String(), -1)
	require.Len(t, said, 1, "said once, not at each attempt")
	require.Contains(t, n.journal.String(), "etcd answers again")
}

func TestForeignValuesAreLoggedOnceAndHinderNobody(t *testing.T) {
	n := newNode(t)
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	for key, value := range map[string]string{
		"/burano/v1/routes/tcp/80":   "hello",
		"/burano/v1/routes/tcp/http": "{}",
		"/burano/v1/routes/tcp/22":   `{"version":1,"namespace":"d","service":"s","port":"1","gatewayPort":22,"protocol":"TCP"}`,
		"/burano/v1/leader":          "somebody",
	} {
		_, err := n.etcd.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	log := n.journal.String()
	require.Equal(t, 3, strings.Count(log, "cannot be understood"), log)
	require.Contains(t, log, "reserved for SSH")
	require.False(t, n.firewall.admits(22))

	_, err := n.etcd.Put(t.Context(), route.Key(web(port)), "spoilt")
	require.NoError(t, err)
	haproxytest.Wait(t, "the spoilt route to be closed", func() error {
		if n.firewall.admits(port) {
			return errors.New("open")
		}
		return nil
	})
}

func TestAHostIsServedByTLSMomentsAfterItsCertificateIsSealed(t *testing.T) {
	n := newNode(t)
	stop := n.run(t)
	a := haproxytest.NewBackend(t, "a")
	port := haproxytest.FreePort(t)
	pool := route.Pool{Namespace: "default", Service: "a", Port: "http", Backends: []route.Backend{a.Ready()}}
	h := route.HTTP{
		Listeners: []route.Listener{{Port: port, TLS: true}}, Pools: []route.Pool{pool},
		Sites: []route.Site{{Namespace: "default", Ingress: "web", Paths: []route.Path{{Host: "a.org", Path: "/", Pool: pool.Name()}}, Certificates: []route.Certificate{{Host: "a.org", Secret: "good"}}}},
	}
	for _, part := range h.Parts() {
		value, err := route.EncodePart(part)
		require.NoError(t, err)
		_, err = n.etcd.Put(t.Context(), route.PartKey(part), string(value))
		require.NoError(t, err)
	}
	ask := func(trusted *x509.CertPool) error {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
			},
		}}
		response, err := client.Get("https://a.org/")
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	haproxytest.Wait(t, "the certificate of unknown hosts", func() error {
		if err := ask(nil); !strings.Contains(fmt.Sprint(err), "this-host-has-no-certificate.invalid") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	haproxytest.Wait(t, "the firewall to admit it", func() error {
		if !n.firewall.admits(port) {
			return errors.New("closed")
		}
		return nil
	})

	found, err := n.etcd.Get(t.Context(), route.KeyOf("murano-gateway-1"))
	require.NoError(t, err)
	require.Len(t, found.Kvs, 1)
	key, err := route.DecodeKey(string(found.Kvs[0].Key), found.Kvs[0].Value)
	require.NoError(t, err)
	certificate, content := selfSigned(t, "a.org")
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	put := func(gateway string, public [32]byte) {
		t.Helper()
		box, err := seal.Close(public, content)
		require.NoError(t, err)
		sealed := route.Sealed{Gateway: gateway, Namespace: "default", Secret: "good", Box: box}
		value, err := route.EncodeSealed(sealed)
		require.NoError(t, err)
		_, err = n.etcd.Put(t.Context(), route.SealedKey(sealed), string(value))
		require.NoError(t, err)
	}
	put("murano-gateway-1", [32]byte{1}) // for a key that this gateway does not have
	haproxytest.Wait(t, "a word about it", func() error {
		if !strings.Contains(n.journal.String(), "the box is for another key") {
			return errors.New("none")
		}
		return nil
	})
	put("murano-gateway-1", key.Public)
	start := time.Now()
	haproxytest.Wait(t, "the host's certificate", func() error { return ask(trusted) })
	t.Logf("the certificate is shown %s after it was written", time.Since(start).Round(time.Millisecond))

	// The daemon has the same key when it starts again, and served routes stay.
	stop()
	require.NoError(t, ask(trusted))
	n.run(t)
	haproxytest.Wait(t, "the ports", func() error {
		found, err := gateway.AskStatus(t.Context(), n.socket())
		if err == nil && (len(found.Ports) != 1 || found.Ports[0].Service != "Ingresses" || found.Ports[0].Listener == nil) {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
	require.NoError(t, ask(trusted))
}

// selfSigned is a certificate, and the same with its key.
func selfSigned(t *testing.T, name string) (certificate, pair []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, append(slices.Clone(certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
}
