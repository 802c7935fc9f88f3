package clients

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/stretchr/testify/require"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns a client that trusts it.
func (s *server) certificate() *http.Client {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(s.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(s.t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.write(map[string]string{"cert.pem": string(cert), "key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))})
	trusted := x509.NewCertPool()
	require.True(s.t, trusted.AppendCertsFromPEM(cert))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}
}

// slowBody is a request body of which the server gets nothing before it is released; it signals when the server reads
// it.
type slowBody struct {
	io.Reader
	wanted, released chan struct{}
	once             sync.Once
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.once.Do(func() { close(b.wanted) })
	<-b.released
	return b.Reader.Read(p)
}

func TestTheProgramAsAProcess(t *testing.T) {
	s := startKeystone(t)
	s.build()
	client := s.certificate()
	encrypted := []string{"--tls-cert", filepath.Join(s.home, "cert.pem"), "--tls-key", filepath.Join(s.home, "key.pem")}
	first := s.serve(client, "https", encrypted...)
	address := s.url[len("https://"):]

	t.Run("its client knows the certificates that the cloud's are checked with", func(t *testing.T) {
		entry := "auth: {auth_url: '" + s.keystone + "/identity/v3', username: demo, password: demo, project_name: demo, user_domain_name: Default, " +
			"project_domain_name: Default}, region_name: local"
		s.write(map[string]string{"clouds.yaml": "clouds: {named: {" + entry + ", cacert: '" + filepath.Join(s.home, "cert.pem") + "'}, " +
			"unchecked: {" + entry + ", verify: false}, plain: {" + entry + "}}\n"})
		for variable, trusts := range map[string]bool{
			"OS_CACERT=" + filepath.Join(s.home, "cert.pem"): true, "OS_INSECURE=1": true, "OS_REGION_NAME=local": false,
			"OS_CLOUD=named": true, "OS_CLOUD=unchecked": true, "OS_CLOUD=plain": false,
		} {
			out, ok := s.run(s.as("demo", "demo", variable), s.program, "package", "list")
			require.Equal(t, trusts, ok, "%s: %s", variable, out)
			if trusts {
				require.Contains(t, out, "io.murano", variable)
			} else {
				require.Contains(t, out, "certificate signed by unknown authority", variable)
			}
		}
	})
	t.Run("an address that is taken is named, and what to do", func(t *testing.T) {
		out, ok := s.run(s.as("burano", "service"), s.program, "serve", "--listen", address, "--state", t.TempDir())
		require.False(t, ok)
		require.Contains(t, out, "burano: listen at "+address+": ")
		require.Contains(t, out, "address already in use (the setting listen chooses another address)")
	})
	t.Run("what counts is printed and nothing begins", func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		out, ok := s.run(s.as("", "", "BURANO_STATE="+state), s.program, "serve", "--print-config", "--listen", address)
		require.True(t, ok, out)
		require.Contains(t, out, "listen: "+address+"  # --listen\n")
		require.Contains(t, out, "state: "+state+"  # variable BURANO_STATE\n")
		require.NoDirExists(t, state)
	})
	t.Run("a request that runs when it is to stop is answered", func(t *testing.T) {
		provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
			Username: "demo", Password: "demo", DomainName: "Default", TenantName: "demo"})
		require.NoError(t, err)
		var upload bytes.Buffer
		form := multipart.NewWriter(&upload)
		field, err := form.CreateFormField("json")
		require.NoError(t, err)
		_, err = io.WriteString(field, "{}")
		require.NoError(t, err)
		file, err := form.CreateFormFile("file", "one.zip")
		require.NoError(t, err)
		_, err = io.WriteString(file, zipped(t, map[string]string{"manifest.yaml": manifest("org.test.One", ""), "Classes/C.yaml": class("org.test.One")}))
		require.NoError(t, err)
		require.NoError(t, form.Close())
		body := &slowBody{Reader: &upload, wanted: make(chan struct{}), released: make(chan struct{})}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/catalog/packages", body)
		require.NoError(t, err)
		request.Header.Set("Content-Type", form.FormDataContentType())
		request.Header.Set("X-Auth-Token", provider.Token())
		request.Header.Set("Expect", "100-continue")
		answered := make(chan error, 1)
		var status int
		go func() {
			response, err := client.Do(request)
			if err == nil {
				status = response.StatusCode
				err = response.Body.Close()
			}
			answered <- err
		}()
		select {
		case <-body.wanted: // the server works on the request
		case err := <-answered:
			require.FailNow(t, "answered before the body was sent", "%d %v", status, err)
		}
		require.NoError(t, first.Process.Signal(syscall.SIGTERM))
		require.Eventually(t, func() bool {
			connection, err := net.Dial("tcp", address)
			if err == nil {
				_ = connection.Close()
			}
			return err != nil
		}, time.Minute, 20*time.Millisecond, "it takes no more requests")
		close(body.released)
		require.NoError(t, <-answered)
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, <-first.ended, "its exit code is 0")
	})
	t.Run("without Keystone it stays ready, and log and metrics say so", func(t *testing.T) {
		second := s.serve(http.DefaultClient, "http")
		show := func(path string) (int, string) {
			response, err := http.Get(s.url + path)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			return response.StatusCode, string(text)
		}
		s.cloud.CloseClientConnections()
		s.cloud.Close()
		require.Eventually(t, func() bool {
			_, text := show("/metrics")
			return strings.Contains(text, "burano_keystone_up 0")
		}, time.Minute, 50*time.Millisecond)
		status, text := show("/readyz")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"ready": true, "checks": {"database": "ok", "memory": "ok", "requests": "ok"}}`, text)
		log, err := os.ReadFile(second.log)
		require.NoError(t, err)
		require.Regexp(t, `Keystone does not answer.*connection refused`, string(log))
	})
}
