package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// writeCertificate puts a new certificate of this number for 127.0.0.1 in the place of the old one.
func writeCertificate(t *testing.T, options *Options, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(options.TLSKey, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	require.NoError(t, os.WriteFile(options.TLSCert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
}

func TestTheServerSpeaksTLSAndStopsGracefully(t *testing.T) {
	folder := t.TempDir()
	options := &Options{Listen: "127.0.0.1:0", metricsListen: "127.0.0.1:0", stopPatience: time.Minute,
		TLSCert: filepath.Join(folder, "cert.pem"), TLSKey: filepath.Join(folder, "key.pem")}
	logger := slog.New(slog.DiscardHandler)
	_, err := options.open(http.NotFoundHandler(), prometheus.NewRegistry(), func() {}, logger)
	require.ErrorContains(t, err, "cert.pem", "a certificate that is not there is known at the start")
	writeCertificate(t, options, 1)

	begun, end := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-end
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	d, err := options.open(handler, prometheus.NewRegistry(), func() { close(stopped) }, logger)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()

	address := d.listen[0].Addr().String()
	number := func() int64 {
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, number())
	_, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	require.Error(t, err)
	writeCertificate(t, options, 2)
	require.Eventually(t, func() bool { return number() == 2 }, 30*time.Second, 50*time.Millisecond, "a renewed certificate is taken up")

	response, err := http.Get("http://" + d.listen[1].Addr().String() + "/metrics")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 200, response.StatusCode)

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	slow := make(chan error, 1)
	go func() {
		response, err := client.Get("https://" + address + "/slow")
		if err == nil {
			err = response.Body.Close()
		}
		slow <- err
	}()
	<-begun
	stop()
	<-stopped // streams have got the order to end
	close(end)
	require.NoError(t, <-slow, "a request that had begun is answered")
	require.NoError(t, <-served)
}

func TestAServerThatIsStoppedTakesRequestsForItsDelayAndIsNotReady(t *testing.T) {
	options := &Options{Listen: "127.0.0.1:0", stopDelay: time.Hour, stopPatience: time.Minute}
	logger := slog.New(slog.DiscardHandler)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	streamsEnd := make(chan struct{})
	l, err := options.open(ok, prometheus.NewRegistry(), func() { close(streamsEnd) }, logger)
	require.NoError(t, err)
	l.begin(ok)
	told, tell := context.WithCancel(t.Context())
	enough := errors.New("it was an hour")
	end := make(chan struct{})
	served := make(chan error, 1)
	go func() { served <- l.serve(told, func(context.Context) error { <-end; return enough }) }()
	ask := func(path string) *http.Response {
		response, err := http.Get("http://" + l.listen[0].Addr().String() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	require.Equal(t, http.StatusOK, ask("/readyz").StatusCode)
	require.False(t, ask("/v1").Close)
	tell()
	require.Eventually(t, func() bool { return ask("/readyz").StatusCode == http.StatusServiceUnavailable }, 30*time.Second, time.Millisecond)
	answer := ask("/v1")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.True(t, answer.Close, "the next request takes another connection")
	select {
	case <-streamsEnd:
		require.Fail(t, "streams end while requests are still taken")
	default:
	}
	close(end)
	require.ErrorIs(t, <-served, enough)
	<-streamsEnd

	// One that has not begun to answer stops at once.
	l, err = options.open(ok, prometheus.NewRegistry(), func() {}, logger)
	require.NoError(t, err)
	require.NoError(t, l.serve(told, func(ctx context.Context) error { <-ctx.Done(); return nil }))
}

func TestAServerTakesAsManyConnectionsAsItsMemoryAllows(t *testing.T) {
	require.Equal(t, 2048, mostConnections(fstest.MapFS{}))
	require.Equal(t, 4096, mostConnections(fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 8388608 kB\n")}}))
}
