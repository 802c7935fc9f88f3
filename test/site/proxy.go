package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy is HAProxy with the configuration of docs/operators.md.
type Proxy struct {
	Address     string
	Certificate string // its file
	Trusted     *x509.CertPool
	socket      string
}

// startProxy starts HAProxy. The test's package is two folders below the repository's.
func (s *Site) startProxy(t testing.TB) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "operators.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(document), "```haproxy\n")
	require.True(t, found)
	config, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	folder := t.TempDir()
	p := &Proxy{Address: freeAddress(t), Certificate: filepath.Join(folder, "cert.pem"), socket: filepath.Join(folder, "burano.sock"), Trusted: x509.NewCertPool()}
	p.makeCertificate(t, filepath.Join(folder, "burano.pem"))
	// Only addresses differ from the document.
	for from, to := range map[string]string{"bind :8082": "bind " + p.Address, "/etc/haproxy/burano.pem": filepath.Join(folder, "burano.pem"), "/run/haproxy/burano.sock": p.socket,
		"log /dev/log local0": "log stdout format raw local0", "10.0.0.11:8082": s.Servers[0].Address, "10.0.0.12:8082": s.Servers[1].Address, "10.0.0.13:8082": s.Servers[2].Address} {
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
	s.Proxy = p
	for _, one := range s.Servers {
		s.Offered(one)
	}
}

// makeCertificate writes a certificate with its key in HAProxy's form, and the certificate alone for clients.
func (p *Proxy) makeCertificate(t testing.TB, path string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.True(t, p.Trusted.AppendCertsFromPEM(cert))
	require.NoError(t, os.WriteFile(p.Certificate, cert, 0o600))
	require.NoError(t, os.WriteFile(path, append(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), 0o600))
}

// say sends a command to HAProxy's socket and returns the answer.
func (p *Proxy) say(command string) (string, error) {
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

// SetState is an operator's command before and after work on a server: drain, ready.
func (s *Site) SetState(one *Server, state string) {
	s.t.Helper()
	answer, err := s.Proxy.say("set server burano/" + one.Name + " state " + state)
	require.NoError(s.t, err)
	require.Empty(s.t, strings.TrimSpace(answer))
}

// Offered waits until the proxy sends requests to a server.
func (s *Site) Offered(one *Server) {
	s.t.Helper()
	require.Eventuallyf(s.t, func() bool { return s.status(one) == "UP" }, time.Minute, 20*time.Millisecond, "HAProxy does not send requests to server %s", one.Name)
}

// status is HAProxy's status of a server: UP, DOWN, DRAIN and others.
func (s *Site) status(one *Server) string {
	answer, err := s.Proxy.say("show stat")
	if err != nil {
		return ""
	}
	// The columns pxname, svname and status (HAProxy management guide, 9.1).
	for line := range strings.Lines(answer) {
		if fields := strings.Split(line, ","); len(fields) > 17 && fields[0] == "burano" && fields[1] == one.Name {
			return fields[17]
		}
	}
	return ""
}
