// Package dashboard tests the dashboard as people use it: the built program on a local cloud, and scenarios in Debian's Chromium.
package dashboard

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// limit is how long all scenarios, thorough ones too, or all pictures may take together.
const limit = 25 * time.Minute

// TestDashboard runs all scenarios. BURANO_SCENARIOS is a regular expression for the names of scenarios to run, and BURANO_SCENARIO_FILES
// one for their files, or with a ! before it for files to leave out.
func TestDashboard(t *testing.T) {
	s := start(t)
	args := []string{"--test", "--test-reporter=spec", "--test-concurrency=1"}
	if wanted := os.Getenv("BURANO_SCENARIOS"); wanted != "" {
		args = append(args, "--test-name-pattern="+wanted)
	}
	files, err := filepath.Glob("scenarios/*.test.mjs")
	require.NoError(t, err)
	if wanted, others := strings.CutPrefix(os.Getenv("BURANO_SCENARIO_FILES"), "!"); wanted != "" {
		named := regexp.MustCompile(wanted)
		files = slices.DeleteFunc(files, func(file string) bool { return named.MatchString(filepath.Base(file)) == others })
	}
	require.NotEmpty(t, files)
	s.node(limit, append(args, files...)...)
}

// TestScreenshots takes a picture of every page into the folder that BURANO_SCREENSHOTS names.
func TestScreenshots(t *testing.T) {
	if os.Getenv("BURANO_SCREENSHOTS") == "" {
		t.Skip("BURANO_SCREENSHOTS does not name a folder: `make dashboard-screenshots` does")
	}
	start(t).node(limit, "scenarios/screenshots.mjs")
}

// BenchmarkPages measures how long pages with much content take to answer: `make bench-dashboard` runs it.
func BenchmarkPages(b *testing.B) {
	start(b).node(limit, "../bench/dashboard/bench.mjs")
}

// server is a Burano on a whole local cloud without servers.
type server struct {
	t             testing.TB
	url, keystone string
	program       string
}

// start builds the dashboard and the program, and starts it on a local cloud of its own. BURANO_SLOT, a digit, keeps the clouds of several
// checkouts apart.
func start(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, program: filepath.Join(t.TempDir(), "burano")}
	s.do(exec.Command("../../web/dashboard/build.sh"))
	s.do(exec.Command("go", "build", "-o", s.program, "../../cmd/burano"))
	slot := os.Getenv("BURANO_SLOT")
	cloud := localcloudtest.Start(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.5" + slot + ".0/24"),
		SecondCIDR: netip.MustParsePrefix("10.86.12" + slot + ".0/24"), Prefix: "bdb" + slot + "-"})
	s.keystone = cloud.Endpoint() + "/identity/v3"
	s.serve()
	s.image()
	packages, err := filepath.Glob("packages/*")
	require.NoError(t, err)
	for _, folder := range packages {
		command := exec.Command(s.program, "package", "import", folder, "--public")
		command.Env = append(s.as("admin", "admin"), "BURANO_URL="+s.url)
		s.do(command)
	}
	return s
}

// do runs a program that must succeed.
func (s *server) do(command *exec.Cmd) {
	s.t.Helper()
	output, err := command.CombinedOutput()
	require.NoErrorf(s.t, err, "%s\n%s", strings.Join(command.Args, " "), output)
}

// serve starts the program and waits until it is ready. It is ended with the test.
func (s *server) serve() {
	t := s.t
	t.Helper()
	listen := freeAddress(t)
	s.url = "http://" + listen
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	process := exec.Command(s.program, "serve", "--listen", listen, "--state", t.TempDir(), "--websso", "Company=mapped")
	process.Env = s.as("burano", "service")
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		ended := process.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.Contains(line, "level=INFO") })
			t.Logf("what the server warned of:\n%s", strings.Join(lines, "\n"))
		}
		require.NoError(t, ended, "the server ends cleanly when asked to")
		require.NoError(t, log.Close())
	})
	require.Eventually(t, func() bool {
		response, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the server is not ready")
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// as is the environment of a program that signs in as a user of the local cloud, whose password is its name.
func (s *server) as(user, project string) []string {
	return append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+s.keystone, "OS_USERNAME="+user, "OS_PASSWORD="+user, "OS_PROJECT_NAME="+project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
}

// image makes a small image, marked so that forms offer it.
func (s *server) image() {
	s.t.Helper()
	ctx := s.t.Context()
	provider, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{IdentityEndpoint: s.keystone, Username: "admin", Password: "admin",
		TenantName: "admin", DomainName: "Default"})
	require.NoError(s.t, err)
	client, err := openstack.NewImageV2(provider, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(s.t, err)
	public := images.ImageVisibilityPublic
	image, err := images.Create(ctx, client, images.CreateOpts{Name: "burano-node", DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public,
		Properties: map[string]string{"murano_image_info": `{"type": "linux.kubernetes", "title": "Node"}`}}).Extract()
	require.NoError(s.t, err)
	content, err := localcloudtest.TinyServer(ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, imagedata.Upload(ctx, client, image.ID, bytes.NewReader(content)).ExtractErr())
}

// node runs Node and shows its output as it comes.
func (s *server) node(limit time.Duration, args ...string) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "node", args...)
	command.Env = append(os.Environ(), "BURANO_URL="+s.url, "BURANO_KEYSTONE="+s.keystone, "BURANO_PROGRAM="+s.program)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, command.Start())
	timer := time.AfterFunc(limit, func() { _ = command.Process.Signal(syscall.SIGTERM) })
	defer timer.Stop()
	require.NoError(s.t, command.Wait(), "scenarios failed: Node's summary above names them, and pictures of their last moments are in build/scenarios")
}
