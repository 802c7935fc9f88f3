// Package clients tests the command-line clients, Murano's own and Burano's, on a real server: the program itself, with the local
// cloud's Keystone.
package clients

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/keystone"
)

// server is a Burano with the local cloud's Keystone, and its program.
type server struct {
	t        *testing.T
	program  string
	keystone string
	url      string
	home     string // folder for clients
	cloud    *httptest.Server
	running  *process // set where a test starts and ends it itself
}

// startKeystone starts the local cloud's Keystone alone.
func startKeystone(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, home: t.TempDir()}
	listener := httptest.NewUnstartedServer(nil)
	s.keystone = "http://" + listener.Listener.Addr().String()
	identity, err := keystone.New(keystone.Config{StateDir: t.TempDir(), Endpoint: s.keystone})
	require.NoError(t, err)
	listener.Config.Handler = withGlance(t, identity, s.keystone)
	listener.Start()
	t.Cleanup(listener.Close)
	s.cloud = listener
	return s
}

// start starts both for the test. Of the packages that come with Burano the server offers the core library only.
func start(t *testing.T) *server {
	t.Helper()
	s := startKeystone(t)
	s.build()
	s.serve(http.DefaultClient, "http")
	return s
}

// programs are the compiled programs, by their build tags: linking one takes longer than most of the tests.
var programs = struct {
	sync.Mutex
	folder string
	built  map[string]string
}{built: map[string]string{}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(programs.folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build builds the program, with these build tags, where no test has done it before.
func (s *server) build(tags ...string) {
	t := s.t
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	wanted := strings.Join(tags, ",")
	if s.program = programs.built[wanted]; s.program != "" {
		return
	}
	if programs.folder == "" {
		folder, err := os.MkdirTemp("", "clients-")
		require.NoError(t, err)
		programs.folder = folder
	}
	s.program = filepath.Join(programs.folder, "burano"+strings.Join(tags, "-"))
	build := exec.Command("go", "build", "-tags", wanted, "-o", s.program, "./cmd/burano")
	build.Dir = filepath.Join("..", "..")
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	programs.built[wanted] = s.program
}

// process is a started server, and the file of its log.
type process struct {
	*exec.Cmd
	log   string
	ended chan error
}

// serve starts the program as a server and waits until it is ready. A server that is to be killed at a step may also be dead then: it can
// take a task over before it is ready. The server ends with the test.
func (s *server) serve(client *http.Client, scheme string, flags ...string) *process {
	t := s.t
	t.Helper()
	address := freeAddress(t)
	s.url = scheme + "://" + address
	file, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	defer file.Close()
	p := &process{log: file.Name(), ended: make(chan error, 1)}
	p.Cmd = exec.Command(s.program, append([]string{"serve", "--listen", address, "--state", t.TempDir(), "--embedded-packages", "io.murano"}, flags...)...)
	p.Env = s.as("burano", "service")
	p.Stdout, p.Stderr = file, file
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.Start())
	go func() {
		p.ended <- p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM) // the test may have ended it
		require.NoError(t, <-p.ended, "the server ends cleanly when asked to")
		if t.Failed() {
			text, _ := os.ReadFile(p.log)
			t.Logf("the server's log:\n%s", text)
		}
	})
	mortal := slices.Contains(flags, "--kill-at-step")
	require.Eventually(t, func() bool {
		response, err := client.Get(s.url + "/readyz")
		if err != nil {
			return mortal && len(p.ended) > 0
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the server is not ready; its log is %s", p.log)
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// as returns the variables of a user of the local cloud, whose password is its name.
func (s *server) as(user, project string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "LC_ALL=C.UTF-8", "COLUMNS=200", "BURANO_URL=" + s.url, "MURANO_URL=" + s.url,
		"OS_AUTH_URL=" + s.keystone + "/identity/v3", "OS_USERNAME=" + user, "OS_PASSWORD=" + user, "OS_PROJECT_NAME=" + project,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME=" + keystone.Region}, more...)
}

// run runs a program in the clients' folder and returns both its output streams together, and whether it succeeded.
func (s *server) run(environment []string, program string, args ...string) (string, bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = s.home, environment
	output, err := command.CombinedOutput()
	require.NoError(s.t, ctx.Err(), "%s %s", program, strings.Join(args, " "))
	// A preview with changes exits with 2.
	return string(output), err == nil || slices.Contains(args, "--dry-run") && command.ProcessState.ExitCode() == 2
}

// write makes files below the clients' folder.
func (s *server) write(files map[string]string) {
	s.t.Helper()
	for name, content := range files {
		path := filepath.Join(s.home, name)
		require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(s.t, os.WriteFile(path, []byte(content), 0o600))
	}
}
