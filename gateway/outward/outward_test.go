package outward

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHostsAreAdmittedByNameDomainAndPort(t *testing.T) {
	hosts := []string{"registry.example.org", ".Example.net", "192.0.2.7:5000", "[2001:db8::7]:5000", "2001:db8::8"}
	for asked, admitted := range map[string]bool{
		"registry.example.org:443": true, "REGISTRY.example.org.:5000": true, "other.registry.example.org:443": false, "registry.example.org": false,
		"a.b.example.net:443": true, "example.net:443": false, "evilexample.net:443": false, "192.0.2.7:5000": true, "192.0.2.7:443": false,
		"[2001:db8::7]:5000": true, "[2001:db8::8]:443": true, "[2001:db8::9]:443": false, "": false, ":443": false,
	} {
		require.Equal(t, admitted, admits(hosts, asked), asked)
	}
	require.False(t, admits(nil, "registry.example.org:443"))
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func (a authority) issue(t *testing.T, name string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestClientsWithACertificateReachTheHostsAndNoOthers(t *testing.T) {
	own := newAuthority(t)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.URL.Path) })
	plain, secure, other := httptest.NewServer(answer), httptest.NewTLSServer(answer), httptest.NewServer(answer)
	defer plain.Close()
	defer secure.Close()
	defer other.Close()
	host := func(url string) string { _, host, _ := strings.Cut(url, "://"); return host }
	metadata, err := net.Listen("tcp", "127.0.0.3:0")
	require.NoError(t, err)
	defer metadata.Close()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Run(ctx, Config{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{own.issue(t, "master.test")}, ClientCAs: own.pool()}, Client: "nodes",
			Hosts: []string{host(plain.URL), host(secure.URL), metadata.Addr().String()}, Closed: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}, Logger: slog.New(slog.DiscardHandler)})
	}()

	client := func(certificates ...tls.Certificate) *http.Client {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: &tls.Config{RootCAs: own.pool(), ServerName: "master.test", Certificates: certificates, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", listener.Addr().String())
		}
		trusted := x509.NewCertPool()
		trusted.AddCert(secure.Certificate())
		transport := &http.Transport{DialContext: dial, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"}), TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	get := func(client *http.Client, url string) (int, string, error) {
		response, err := client.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, string(text), err
	}
	node := client(own.issue(t, "nodes"))
	for _, address := range []string{plain.URL, secure.URL} {
		status, text, err := get(node, address+"/v2/")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, host(address)+"/v2/", text)
	}
	status, text, err := get(node, other.URL+"/v2/")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, host(other.URL)+" is not among the hosts")
	_, _, err = get(node, "https://"+host(other.URL))
	require.ErrorContains(t, err, "Forbidden")
	status, text, err = get(node, "http://"+metadata.Addr().String())
	require.NoError(t, err)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, text, "127.0.0.3 is no address of a registry")
	_, _, err = get(node, "https://"+metadata.Addr().String())
	require.ErrorContains(t, err, "Bad Gateway")

	for _, stranger := range []*http.Client{client(), client(own.issue(t, "somebody")), client(newAuthority(t).issue(t, "nodes"))} {
		_, _, err := get(stranger, plain.URL)
		require.Error(t, err)
	}

	// A direct request gets an explanation; and a tunnel ends with the proxy.
	direct, err := (&tls.Dialer{Config: &tls.Config{RootCAs: own.pool(), ServerName: "master.test", Certificates: []tls.Certificate{own.issue(t, "nodes")}, MinVersion: tls.VersionTLS12}}).
		DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	defer direct.Close()
	_, err = io.WriteString(direct, "GET /v2/ HTTP/1.1\r\nHost: registry.test\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(direct)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	_, err = io.WriteString(direct, "CONNECT "+host(plain.URL)+" HTTP/1.1\r\nHost: "+host(plain.URL)+"\r\n\r\n")
	require.NoError(t, err)
	response, err = http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	cancel()
	require.NoError(t, <-ended)
	_, err = reader.ReadByte()
	require.Error(t, err)
}
