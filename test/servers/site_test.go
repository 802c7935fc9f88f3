// Package servers holds several servers of Burano behind HAProxy, over PostgreSQL, to what operators are promised (docs/operators.md, "Several
// servers"): while servers are upgraded from a former version, stopped and killed, and the database fails over, nothing is refused that a
// client asks for once more, nothing that was acknowledged is lost, and no deployment ends because of it.
//
// BURANO_FORMER is the program of the former version; `make test-servers` builds it.
package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// site is everything of a test: the cloud, the servers and the proxy before them.
type site struct {
	t        *testing.T
	program  string // today's
	keystone string
	database string
	servers  []*server
	proxy    *proxy
}

// server is one server, which comes and goes at one address with one state folder.
type server struct {
	name, address, state string
	process              *exec.Cmd
	ended                chan error
}

// newSite starts the cloud, and three servers of the program behind a proxy.
func newSite(t *testing.T, database, program string) *site {
	slot := os.Getenv("BURANO_SLOT")
	cloud := localcloudtest.Start(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.14" + slot + ".0/24"), Prefix: "bls" + slot + "-", Logger: slog.New(slog.DiscardHandler)})
	today, err := filepath.Abs(filepath.Join("..", "..", "build", "burano"))
	require.NoError(t, err)
	require.FileExists(t, today, "`make build` makes it")
	s := &site{t: t, keystone: cloud.Endpoint() + "/identity/v3", database: database, program: today}
	for _, name := range []string{"one", "two", "three"} {
		one := &server{name: name, address: freeAddress(t), state: t.TempDir()}
		if len(s.servers) > 0 {
			key, err := os.ReadFile(filepath.Join(s.servers[0].state, "secret.key"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(one.state, "secret.key"), key, 0o600))
		}
		s.servers = append(s.servers, one)
		s.start(one, program)
	}
	t.Cleanup(func() {
		for _, one := range s.servers {
			s.stop(one)
			if t.Failed() {
				text, err := os.ReadFile(filepath.Join(one.state, "log"))
				require.NoError(t, err)
				var told []string
				for line := range strings.Lines(string(text)) {
					if !strings.Contains(line, "msg=request") {
						told = append(told, line)
					}
				}
				t.Logf("the log of server %s, without requests:\n%s", one.name, strings.Join(told[max(0, len(told)-100):], ""))
			}
		}
	})
	s.startProxy()
	s.run("admin", "package", "import", "package", "--public")
	return s
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// as is the environment of a program that signs in as a user whose password, and project, have its name.
func (s *site) as(name, project string) []string {
	return append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+s.keystone, "OS_USERNAME="+name, "OS_PASSWORD="+name, "OS_PROJECT_NAME="+project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
}

// run runs a command of today's program through the proxy, and returns what it says.
func (s *site) run(user string, args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.program, args...)
	command.Env = append(s.as(user, user), "BURANO_URL="+s.proxy.url, "OS_CACERT="+s.proxy.certificate)
	output, err := command.CombinedOutput()
	require.NoErrorf(s.t, err, "%v: %s", args, output)
	return string(output)
}

// start starts a server as this program, with more flags, and waits until it is ready.
func (s *site) start(one *server, program string, flags ...string) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(one.state, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer log.Close()
	one.process = exec.Command(program, append([]string{"serve", "--listen", one.address, "--state", one.state, "--embedded-packages", "io.murano",
		"--trusted-proxies", "127.0.0.1"}, flags...)...)
	one.process.Env = append(s.as("burano", "service"), "BURANO_DATABASE="+s.database)
	one.process.Stdout, one.process.Stderr = log, log
	one.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, one.process.Start())
	ended := make(chan error, 1)
	one.ended = ended
	go func(process *exec.Cmd) { ended <- process.Wait() }(one.process)
	require.Eventually(s.t, func() bool { return one.readiness() == http.StatusOK }, time.Minute, 20*time.Millisecond, "server %s is not ready", one.name)
}

// readiness is what the server itself answers at /readyz; 0 when it does not answer.
func (s *server) readiness() int {
	response, err := http.Get("http://" + s.address + "/readyz")
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// stop stops a server as an operator does.
func (s *site) stop(one *server) {
	s.t.Helper()
	require.NoError(s.t, one.process.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, <-one.ended, "server %s ends cleanly when asked to", one.name)
}

// kill ends a server as a crash does.
func (s *site) kill(one *server) {
	s.t.Helper()
	require.NoError(s.t, one.process.Process.Kill())
	<-one.ended
}

// proxy is HAProxy, configured as docs/operators.md shows it.
type proxy struct {
	url, certificate, socket string
	trusted                  *x509.CertPool
}

func (s *site) startProxy() {
	t := s.t
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "operators.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(document), "```haproxy\n")
	require.True(t, found)
	config, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	folder, address := t.TempDir(), freeAddress(t)
	p := &proxy{url: "https://" + address, certificate: filepath.Join(folder, "cert.pem"), socket: filepath.Join(folder, "burano.sock"), trusted: x509.NewCertPool()}
	p.makeCertificate(t, filepath.Join(folder, "burano.pem"))
	// Only places are others than in the document.
	for from, to := range map[string]string{"bind :8082": "bind " + address, "/etc/haproxy/burano.pem": filepath.Join(folder, "burano.pem"), "/run/haproxy/burano.sock": p.socket,
		"log /dev/log local0": "log stdout format raw local0", "10.0.0.11:8082": s.servers[0].address, "10.0.0.12:8082": s.servers[1].address, "10.0.0.13:8082": s.servers[2].address} {
		require.Contains(t, config, from)
		config = strings.ReplaceAll(config, from, to)
	}
	path := filepath.Join(folder, "haproxy.cfg")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	process := exec.Command("haproxy", "-db", "-f", path)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			lines := strings.Split(string(text), "\n")
			t.Logf("the end of HAProxy's log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})
	s.proxy = p
	for _, one := range s.servers {
		s.offered(one)
	}
}

// makeCertificate writes a certificate with its key as HAProxy takes them, and the certificate alone for clients.
func (p *proxy) makeCertificate(t *testing.T, path string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.True(t, p.trusted.AppendCertsFromPEM(cert))
	require.NoError(t, os.WriteFile(p.certificate, cert, 0o600))
	require.NoError(t, os.WriteFile(path, append(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), 0o600))
}

// say sends a command to HAProxy's socket and returns the answer.
func (p *proxy) say(command string) (string, error) {
	connection, err := net.Dial("unix", p.socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, command); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}

// setState is what an operator does before and after work on a server: drain, ready.
func (s *site) setState(one *server, state string) {
	s.t.Helper()
	answer, err := s.proxy.say("set server burano/" + one.name + " state " + state)
	require.NoError(s.t, err)
	require.Empty(s.t, strings.TrimSpace(answer))
}

// offered waits until the proxy sends requests to a server.
func (s *site) offered(one *server) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.status(one) == "UP" }, time.Minute, 20*time.Millisecond, "HAProxy does not send requests to server %s", one.name)
}

// status is what HAProxy thinks of a server: UP, DOWN, DRAIN and others.
func (s *site) status(one *server) string {
	answer, err := s.proxy.say("show stat")
	if err != nil {
		return ""
	}
	// The columns pxname, svname and status (HAProxy management guide, 9.1).
	for line := range strings.Lines(answer) {
		if fields := strings.Split(line, ","); len(fields) > 17 && fields[0] == "burano" && fields[1] == one.name {
			return fields[17]
		}
	}
	return ""
}
