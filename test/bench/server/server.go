// Package server runs the built program as a process of its own, for benchmarks that look at it from outside.
package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/keystone"
)

// Config chooses the program and the cloud that it serves.
type Config struct {
	Endpoint string   // of a cloud with the users of a local cloud: Keystone is below it
	Program  string   // a compiled one; "" to build it
	Args     []string // more flags of serve
}

// Server is a running server.
type Server struct {
	URL, Program string
	Client       *http.Client
	keystone     string
	process      *exec.Cmd
}

// Start starts the program until the benchmark ends.
func Start(b testing.TB, config Config) *Server {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := listener.Addr().String()
	require.NoError(b, listener.Close())
	s := &Server{URL: "http://" + address, keystone: config.Endpoint + "/identity/v3", Program: cmp.Or(config.Program, filepath.Join(b.TempDir(), "burano"))}
	s.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	if config.Program == "" {
		build := exec.Command("go", "build", "-o", s.Program, "./cmd/burano")
		build.Dir = "../../.."
		output, err := build.CombinedOutput()
		require.NoErrorf(b, err, "%s", output)
	}
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	require.NoError(b, err)
	s.process = exec.Command(s.Program, append([]string{"serve", "--listen", address, "--state", b.TempDir()}, config.Args...)...)
	s.process.Env = s.As("burano", "service")
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(b, s.process.Start())
	b.Cleanup(func() {
		_ = s.process.Process.Signal(syscall.SIGTERM)
		ended := s.process.Wait()
		if b.Failed() {
			text, _ := os.ReadFile(log.Name())
			lines := strings.Split(string(text), "\n")
			b.Logf("the end of the server's log:\n%s", strings.Join(lines[max(0, len(lines)-100):], "\n"))
		}
		require.NoError(b, ended, "the server ends cleanly when asked to")
		require.NoError(b, log.Close())
	})
	require.Eventually(b, func() bool {
		response, err := s.Client.Get(s.URL + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
	return s
}

// As is the environment of a program that signs in as a user; the password is the user's name.
func (s *Server) As(name, project string) []string {
	return append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+s.keystone, "OS_USERNAME="+name, "OS_PASSWORD="+name, "OS_PROJECT_NAME="+project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
}

func (s *Server) options(name, project string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{IdentityEndpoint: s.keystone, Username: name, Password: name, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: project, DomainName: "Default"}}
}

// User is the one user of a project of the same name.
type User struct{ Name, Token string }

// Users makes projects with one user each.
func (s *Server) Users(b testing.TB, count int) []User {
	b.Helper()
	ctx := b.Context()
	provider, err := openstack.AuthenticatedClient(ctx, s.options("admin", "admin"))
	require.NoError(b, err)
	identity, err := openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(b, err)
	pages, err := roles.List(identity, roles.ListOpts{Name: "member"}).AllPages(ctx)
	require.NoError(b, err)
	found, err := roles.ExtractRoles(pages)
	require.NoError(b, err)
	require.Len(b, found, 1)
	made := make([]User, count)
	for i := range made {
		name := fmt.Sprintf("load-%03d", i)
		project, err := projects.Create(ctx, identity, projects.CreateOpts{Name: name, DomainID: "default"}).Extract()
		require.NoError(b, err)
		one, err := users.Create(ctx, identity, users.CreateOpts{Name: name, Password: name, DomainID: "default"}).Extract()
		require.NoError(b, err)
		require.NoError(b, roles.Assign(ctx, identity, found[0].ID, roles.AssignOpts{UserID: one.ID, ProjectID: project.ID}).ExtractErr())
		own, err := openstack.AuthenticatedClient(ctx, s.options(name, name))
		require.NoError(b, err)
		made[i] = User{Name: name, Token: own.Token()}
	}
	return made
}

// Memory is a line of the server's status in MiB (proc_pid_status(5)): VmHWM is its peak of memory, VmRSS its memory now.
func (s *Server) Memory(b testing.TB, line string) int {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	require.NoError(b, err)
	_, rest, found := strings.Cut(string(content), line+":")
	require.True(b, found, "the status has no line %s", line)
	kibibytes, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(b, err)
	return kibibytes >> 10
}

// Processor is the processor time of the server and its child processes, also ended ones.
func (s *Server) Processor(b testing.TB) time.Duration {
	b.Helper()
	sum, err := processor(strconv.Itoa(s.process.Process.Pid))
	require.NoError(b, err)
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.process.Process.Pid))
	require.NoError(b, err)
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			used, _ := processor(child) // a process that has ended meanwhile is counted next time
			sum += used
		}
	}
	return sum
}

// processor is the processor time of a process and of the children that it has waited for (utime, stime, cutime and cstime, proc_pid_stat(5), in ticks
// of 10 ms).
func processor(process string) (sum time.Duration, err error) {
	content, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	for _, field := range strings.Fields(rest)[11:15] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum, nil
}
