package load

import (
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

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
)

// class is the application that is deployed: random words, which a stack of Heat holds.
const class = "io.burano.bench.Words"

// server is the built program as a process of its own.
type server struct {
	url, keystone, program string
	client                 *http.Client
	process                *exec.Cmd
}

// startServer starts the program on the cloud, over SQLite where database is "", until the benchmark ends.
func startServer(b *testing.B, cloud localcloud.Config, database string) *server {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := listener.Addr().String()
	require.NoError(b, listener.Close())
	s := &server{url: "http://" + address, keystone: cloud.Endpoint() + "/identity/v3", program: filepath.Join(b.TempDir(), "burano")}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	build := exec.Command("go", "build", "-o", s.program, "./cmd/burano")
	build.Dir = "../../.."
	output, err := build.CombinedOutput()
	require.NoErrorf(b, err, "%s", output)

	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	require.NoError(b, err)
	args := []string{"serve", "--listen", address, "--state", b.TempDir(), "--embedded-packages", "io.murano",
		"--max-streams", "2000"} // all projects follow their deployments at the same time
	if database != "" {
		args = append(args, "--database", database)
	}
	s.process = exec.Command(s.program, args...)
	s.process.Env = s.as("burano", "service")
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
		response, err := s.client.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
	return s
}

// as is the environment of a program that signs in as a user whose password is its name.
func (s *server) as(name, project string) []string {
	return append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+s.keystone, "OS_USERNAME="+name, "OS_PASSWORD="+name, "OS_PROJECT_NAME="+project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
}

func (s *server) options(name, project string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{IdentityEndpoint: s.keystone, Username: name, Password: name, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: project, DomainName: "Default"}}
}

// users makes projects with one member each.
func (s *server) users(b *testing.B, count int) []*user {
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
	made := make([]*user, count)
	for i := range made {
		name := fmt.Sprintf("load-%03d", i)
		project, err := projects.Create(ctx, identity, projects.CreateOpts{Name: name, DomainID: "default"}).Extract()
		require.NoError(b, err)
		one, err := users.Create(ctx, identity, users.CreateOpts{Name: name, Password: name, DomainID: "default"}).Extract()
		require.NoError(b, err)
		require.NoError(b, roles.Assign(ctx, identity, found[0].ID, roles.AssignOpts{UserID: one.ID, ProjectID: project.ID}).ExtractErr())
		own, err := openstack.AuthenticatedClient(ctx, s.options(name, name))
		require.NoError(b, err)
		made[i] = &user{server: s, name: name, token: own.Token(), kept: map[string][]string{}}
	}
	return made
}

// importWords uploads the application for everybody.
func (s *server) importWords(b *testing.B) {
	b.Helper()
	command := exec.Command(s.program, "package", "import", "package", "--public")
	command.Env = append(s.as("admin", "admin"), "BURANO_URL="+s.url)
	output, err := command.CombinedOutput()
	require.NoErrorf(b, err, "%s", output)
}

// memory is the most that the server has had in memory at a time (VmHWM, proc_pid_status(5)).
func (s *server) memory(b *testing.B) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(content), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// processor is the time of processors that the server has used (utime and stime, proc_pid_stat(5), in ticks of 10 ms).
func (s *server) processor(b *testing.B) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(content), ") ")
	var sum time.Duration
	for _, field := range strings.Fields(rest)[11:13] {
		ticks, err := strconv.Atoi(field)
		require.NoError(b, err)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}
