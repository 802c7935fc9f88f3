// Package site runs the built program for tests as operators do: as one server over SQLite, or as several over PostgreSQL with one key behind HAProxy.
package site

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/keystone"
)

// Config is a program, its cloud and its servers.
type Config struct {
	Program  string   // one that was built
	Keystone string   // the address of version 3, which has the users of the local cloud
	Database string   // of PostgreSQL, for three servers behind HAProxy; "": one server over SQLite
	Flags    []string // of serve, besides the site's own
}

// Site is the servers and the proxy before them.
type Site struct {
	Servers []*Server
	Proxy   *Proxy // nil for one server

	t      testing.TB
	config Config
}

// Server is one server, which comes and goes at one address with one state folder.
type Server struct {
	Name, Address, State string
	Process              *os.Process   // of its last start
	ended                chan struct{} // closed when it has ended, with err
	err                  error
}

// Start starts the servers of a site until the test ends; each must then end cleanly.
func Start(t testing.TB, config Config) *Site {
	t.Helper()
	s := &Site{t: t, config: config}
	names := []string{"one"}
	if config.Database != "" {
		names = append(names, "two", "three")
	}
	for _, name := range names {
		one := &Server{Name: name, Address: freeAddress(t), State: t.TempDir()}
		if len(s.Servers) > 0 {
			key, err := os.ReadFile(filepath.Join(s.Servers[0].State, "secret.key"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(one.State, "secret.key"), key, 0o600))
		}
		s.Begin(one, config.Program)
		s.Servers = append(s.Servers, one)
		t.Cleanup(func() {
			ended := s.stop(one)
			if t.Failed() || ended != nil {
				t.Logf("the end of the log of server %s, without requests:\n%s", one.Name, one.log(t))
			}
			require.NoErrorf(t, ended, "server %s ends cleanly, and not before it is told to", one.Name)
		})
	}
	if config.Database != "" {
		s.startProxy(t)
	}
	return s
}

// log is the end of the server's log, without requests.
func (s *Server) log(t testing.TB) string {
	text, err := os.ReadFile(filepath.Join(s.State, "log"))
	require.NoError(t, err)
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(string(text))), func(line string) bool { return strings.Contains(line, "msg=request") })
	return strings.Join(lines[max(0, len(lines)-100):], "")
}

func freeAddress(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// As is the environment of a program that signs in as a user whose password has its name.
func (s *Site) As(name, project string) []string {
	return append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+s.config.Keystone, "OS_USERNAME="+name, "OS_PASSWORD="+name, "OS_PROJECT_NAME="+project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
}

// Token is a token of a user whose password, and project, have its name.
func (s *Site) Token(t testing.TB, name string) string {
	t.Helper()
	provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.config.Keystone, Username: name, Password: name,
		TenantName: name, DomainName: "Default"})
	require.NoError(t, err)
	return provider.Token()
}

// Begin starts a server with this program, with more flags, and waits until it is ready.
func (s *Site) Begin(one *Server, program string, flags ...string) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(one.State, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer log.Close()
	process := exec.Command(cmp.Or(program, s.config.Program), slices.Concat([]string{"serve", "--listen", one.Address, "--state", one.State}, s.config.Flags, flags)...)
	process.Env = append(s.As("burano", "service"), "BURANO_DATABASE="+s.config.Database)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, process.Start())
	ended := make(chan struct{})
	one.Process, one.ended = process.Process, ended
	go func() {
		one.err = process.Wait()
		close(ended)
	}()
	require.Eventuallyf(s.t, func() bool { return one.Readiness() == http.StatusOK }, time.Minute, 20*time.Millisecond, "server %s is not ready", one.Name)
}

// Readiness is the status of the server's own answer at /readyz; 0 without an answer.
func (s *Server) Readiness() int {
	response, err := http.Get("http://" + s.Address + "/readyz")
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// Stop stops a server as an operator does.
func (s *Site) Stop(one *Server) {
	s.t.Helper()
	require.NoErrorf(s.t, s.stop(one), "server %s ends cleanly when it is told to", one.Name)
}

func (s *Site) stop(one *Server) error {
	_ = one.Process.Signal(syscall.SIGTERM) // it may have ended, which the next line returns
	return one.Ended()
}

// Ended waits until a stopped server has ended.
func (s *Server) Ended() error {
	<-s.ended
	return s.err
}

// Kill ends a server as a crash does.
func (s *Site) Kill(one *Server) {
	s.t.Helper()
	require.NoError(s.t, one.Process.Kill())
	<-one.ended
}
