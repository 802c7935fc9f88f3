// Package acme_test gets a certificate for a host of a gateway as cert-manager does: an Ingress for the challenge beside the Ingress of the host,
// answered without TLS, and then a Secret.
package acme_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/crypto/acme"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
	"github.com/burano/burano/internal/wait"
)

const (
	node      = "murano-gateway-1"
	namespace = "shop"
	secret    = "shop-tls"
	host      = "shop.example.org"
)

// open is a firewall that admits everything, so that this machine's own rules stay.
type open struct{}

func (open) Guard(context.Context) error             { return nil }
func (open) Publish(context.Context, []uint16) error { return nil }
func (open) Refresh(context.Context) error           { return nil }

// TestAHostGetsItsCertificateByHTTP01 has a real ACME server issue the certificate if BURANO_PEBBLE names the folder of its programs, as in `make test-acme`.
// Otherwise the test sends the request of the challenge itself.
func TestAHostGetsItsCertificateByHTTP01(t *testing.T) {
	g := startGateway(t)
	shop := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "shop") })
	wanted := ingress("shop", host, "/", networking.PathTypePrefix)
	wanted.Annotations = map[string]string{publish.AnnotationRedirect: "true"}
	wanted.Spec.TLS = []networking.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
	world := publish.World{Classes: []*networking.IngressClass{{ObjectMeta: meta.ObjectMeta{Name: "burano"}, Spec: networking.IngressClassSpec{Controller: publish.Controller}}}}
	world.Ingresses = append(world.Ingresses, wanted)
	world.Services, world.EndpointSlices = append(world.Services, service("shop")), append(world.EndpointSlices, endpoints("shop", shop))
	g.publish(t, world)
	g.eventually(t, "plain requests for the host are redirected", func() error {
		return expect(g.plain(t, "/"))(http.StatusPermanentRedirect, "")
	})

	token, answer := "a-token_0", "a-token_0.and-the-thumbprint-of-a-key"
	issuer := newIssuer(t, g.http)
	if issuer != nil {
		token, answer = issuer.challenge(t)
	}
	path := "/.well-known/acme-challenge/" + token
	solver := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked, _, _ := strings.Cut(r.Host, ":") // the server looks at another port than 80
		if r.URL.Path != path || asked != host {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	without := world
	world.Ingresses = append(world.Ingresses, ingress("cm-acme-http-solver-x7k2p", host, path, networking.PathTypeImplementationSpecific))
	world.Services = append(world.Services, service("cm-acme-http-solver-x7k2p"))
	world.EndpointSlices = append(world.EndpointSlices, endpoints("cm-acme-http-solver-x7k2p", solver))
	g.publish(t, world)
	g.eventually(t, "the challenge is answered without TLS", func() error {
		return expect(g.plain(t, path))(http.StatusOK, answer)
	})
	require.NoError(t, expect(g.plain(t, "/.well-known/acme-challenge/another"))(http.StatusPermanentRedirect, ""), "only this path is not redirected")
	if issuer == nil {
		return
	}

	certificate, key, trusted := issuer.certificate(t)
	without.Secrets = []*core.Secret{{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: secret}, Type: core.SecretTypeTLS,
		Data: map[string][]byte{core.TLSCertKey: certificate, core.TLSPrivateKeyKey: key},
	}}
	g.publish(t, without)
	g.eventually(t, "the host shows its certificate", func() error { return g.safe(t, trusted) })
	g.eventually(t, "the challenge is gone", func() error {
		return expect(g.plain(t, path))(http.StatusPermanentRedirect, "")
	})
}

// lab is a gateway.
type lab struct {
	etcd        *clientv3.Client
	http, https uint16
	published   map[string]bool // keys in etcd
}

func startGateway(t *testing.T) *lab {
	t.Helper()
	process := haproxytest.New(t)
	g := &lab{etcd: etcdtest.New(t).Client(t), http: haproxytest.FreePort(t), https: haproxytest.FreePort(t)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, gateway.Config{
			Etcd: g.etcd, Name: node, SealKey: filepath.Join(process.Directory, "seal.key"), HAProxy: process.Config(), Firewall: open{}, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return g
}

func (g *lab) eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	require.NoError(t, wait.Every(5*time.Millisecond).For(30*time.Second).Until(t.Context(), func(context.Context) error {
		if err := try(); err != nil {
			return wait.Again(err)
		}
		return nil
	}), what)
}

// publish writes the routes that the publisher derives from a world, at ports of this test.
func (g *lab) publish(t *testing.T, world publish.World) {
	t.Helper()
	sites := publish.SitesOf(world)
	for _, complaint := range sites.Complaints {
		require.Equal(t, publish.ReasonCertificate, complaint.Reason, complaint.Message)
	}
	http := sites.HTTP
	http.Listeners = []route.Listener{{Port: g.http}, {Port: g.https, TLS: true}}
	written := make(map[string]bool)
	put := func(key string, value []byte, err error) {
		t.Helper()
		require.NoError(t, err)
		_, err = g.etcd.Put(t.Context(), key, string(value))
		require.NoError(t, err)
		written[key] = true
	}
	for _, part := range http.Parts() {
		value, err := route.EncodePart(part)
		put(route.PartKey(part), value, err)
	}
	for name, content := range sites.Certificates {
		box, err := seal.Close(g.key(t), content)
		require.NoError(t, err)
		sealed := route.Sealed{Gateway: node, Namespace: name.Namespace, Secret: name.Name, Box: box}
		value, err := route.EncodeSealed(sealed)
		put(route.SealedKey(sealed), value, err)
	}
	for key := range g.published {
		if !written[key] {
			_, err := g.etcd.Delete(t.Context(), key)
			require.NoError(t, err)
		}
	}
	g.published = written
}

func (g *lab) key(t *testing.T) (public [32]byte) {
	t.Helper()
	g.eventually(t, "the gateway has a key", func() error {
		found, err := g.etcd.Get(t.Context(), route.KeyOf(node))
		if err != nil || len(found.Kvs) == 0 {
			return errors.Join(err, errors.New("none"))
		}
		key, err := route.DecodeKey(string(found.Kvs[0].Key), found.Kvs[0].Value)
		public = key.Public
		return err
	})
	return public
}

// plain asks the host for a path, and follows no redirection.
func (g *lab) plain(t *testing.T, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", g.http, path), nil)
	if err != nil {
		return nil, err
	}
	request.Host = host
	return new(http.Transport).RoundTrip(request)
}

// expect compares an answer.
func expect(answer *http.Response, err error) func(status int, text string) error {
	return func(status int, text string) error {
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != status || string(body) != text {
			return errors.Join(err, fmt.Errorf("the answer is %s: %s", answer.Status, body))
		}
		return err
	}
}

// safe asks the host by TLS.
func (g *lab) safe(t *testing.T, trusted *x509.CertPool) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", g.https))
		},
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		return err
	}
	return expect(client.Do(request))(http.StatusOK, "shop")
}

func serve(t *testing.T, handler http.HandlerFunc) netip.AddrPort {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func ingress(name, host, path string, kind networking.PathType) *networking.Ingress {
	class := "burano"
	return &networking.Ingress{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networking.IngressSpec{IngressClassName: &class, Rules: []networking.IngressRule{{Host: host, IngressRuleValue: networking.IngressRuleValue{
			HTTP: &networking.HTTPIngressRuleValue{Paths: []networking.HTTPIngressPath{{Path: path, PathType: &kind, Backend: networking.IngressBackend{
				Service: &networking.IngressServiceBackend{Name: name, Port: networking.ServiceBackendPort{Number: 8089}},
			}}}},
		}}}},
	}
}

func service(name string) *core.Service {
	return &core.Service{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       core.ServiceSpec{ClusterIP: "10.96.0.10", Selector: map[string]string{"app": name}, Ports: []core.ServicePort{{Name: "http", Port: 8089, Protocol: core.ProtocolTCP}}},
	}
}

func endpoints(service string, at netip.AddrPort) *discovery.EndpointSlice {
	port, number, tcp, yes := "http", int32(at.Port()), core.ProtocolTCP, true
	return &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{discovery.LabelServiceName: service}}, AddressType: discovery.AddressTypeIPv4,
		Ports:     []discovery.EndpointPort{{Name: &port, Port: &number, Protocol: &tcp}},
		Endpoints: []discovery.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discovery.EndpointConditions{Ready: &yes}}},
	}
}

// issuer is an order for the host at an ACME server, which connects to a port of this machine.
type issuer struct {
	client     *acme.Client
	management string
	trusts     *http.Client
	order      *acme.Order
	challenged *acme.Challenge
}

// newIssuer starts the server; nil where there is none.
func newIssuer(t *testing.T, port uint16) *issuer {
	t.Helper()
	programs := os.Getenv("BURANO_PEBBLE")
	if programs == "" {
		return nil
	}
	directory := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		return file
	}
	certificate, key := haproxytest.Certificate(t, "localhost", 0)
	api, management, dns := haproxytest.FreePort(t), haproxytest.FreePort(t), haproxytest.FreePort(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": fmt.Sprintf("127.0.0.1:%d", api), "managementListenAddress": fmt.Sprintf("127.0.0.1:%d", management), "httpPort": port, "tlsPort": 1,
		"certificate": write("cert.pem", certificate), "privateKey": write("key.pem", key), "keyAlgorithm": "ecdsa",
		"profiles": map[string]any{"default": map[string]any{"description": "as usual", "validityPeriod": 86400}},
	}})
	require.NoError(t, err)
	names := fmt.Sprintf("127.0.0.1:%d", dns)
	start(t, filepath.Join(programs, "pebble-challtestsrv"), "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", fmt.Sprintf("127.0.0.1:%d", haproxytest.FreePort(t)),
		"-dnsserver", names, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "")
	start(t, filepath.Join(programs, "pebble"), "-config", write("pebble.json", config), "-dnsserver", names, "-strict")

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	i := &issuer{trusts: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, management: fmt.Sprintf("https://localhost:%d", management)}
	account, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i.client = &acme.Client{Key: account, HTTPClient: i.trusts, DirectoryURL: fmt.Sprintf("https://localhost:%d/dir", api)}
	require.NoError(t, wait.Every(20*time.Millisecond).For(30*time.Second).Until(t.Context(), func(ctx context.Context) error {
		if _, err := i.client.Discover(ctx); err != nil {
			return wait.Again(err)
		}
		return nil
	}))
	_, err = i.client.Register(t.Context(), &acme.Account{}, acme.AcceptTOS)
	require.NoError(t, err)
	return i
}

// start runs a program until the test ends.
func start(t *testing.T, program string, arguments ...string) {
	t.Helper()
	var log strings.Builder
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	command.Stdout, command.Stderr = &log, &log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", program, log.String())
		}
	})
}

// challenge orders a certificate, and returns the token of its challenge and the expected answer.
func (i *issuer) challenge(t *testing.T) (token, answer string) {
	t.Helper()
	var err error
	i.order, err = i.client.AuthorizeOrder(t.Context(), acme.DomainIDs(host))
	require.NoError(t, err)
	require.Len(t, i.order.AuthzURLs, 1)
	authorization, err := i.client.GetAuthorization(t.Context(), i.order.AuthzURLs[0])
	require.NoError(t, err)
	for _, challenge := range authorization.Challenges {
		if challenge.Type == "http-01" {
			i.challenged = challenge
		}
	}
	require.NotNil(t, i.challenged)
	answer, err = i.client.HTTP01ChallengeResponse(i.challenged.Token)
	require.NoError(t, err)
	return i.challenged.Token, answer
}

// certificate has the challenge validated. It returns the certificate with its chain and the key in PEM, and the pool of its
// issuer.
func (i *issuer) certificate(t *testing.T) (certificate, key []byte, trusted *x509.CertPool) {
	t.Helper()
	_, err := i.client.Accept(t.Context(), i.challenged)
	require.NoError(t, err)
	_, err = i.client.WaitOrder(t.Context(), i.order.URI)
	require.NoError(t, err)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{host}}, crypto.Signer(private))
	require.NoError(t, err)
	chain, _, err := i.client.CreateCertFromOrder(t.Context(), i.order, request, true)
	require.NoError(t, err)
	for _, one := range chain {
		certificate = append(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one})...)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	answer, err := i.trusts.Get(i.management + "/roots/0")
	require.NoError(t, err)
	defer answer.Body.Close()
	root, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	trusted = x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(root))
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), trusted
}
