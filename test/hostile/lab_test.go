// Package hostile attacks a server: the built program over SQLite, with the local cloud's Keystone. Through each attack the server lives, its memory
// stays within a bound, and another project is answered.
package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/localcloud/keystone"
)

const (
	// mostBytes is what the server may have in memory at a time: what it has at rest, and a quarter of a small machine's.
	mostBytes = 1 << 30
	// promptly is how long another project waits for 19 of 20 answers, and atLast for the others: tests run beside each other.
	promptly = time.Second
	atLast   = 10 * time.Second
)

// lab is a server, a hostile project and another one.
type lab struct {
	t              *testing.T
	state          string
	address        string
	hostile, other string // tokens
	process        *exec.Cmd
}

// program is that of BURANO_PROGRAM, or one that is built.
func program(t *testing.T) string {
	if path := os.Getenv("BURANO_PROGRAM"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "burano")
	build := exec.Command("go", "build", "-o", path, "./cmd/burano")
	build.Dir = filepath.Join("..", "..")
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	return path
}

func start(t *testing.T) *lab {
	t.Helper()
	cloud := httptest.NewUnstartedServer(nil)
	endpoint := "http://" + cloud.Listener.Addr().String()
	identity, err := keystone.New(keystone.Config{StateDir: t.TempDir(), Endpoint: endpoint})
	require.NoError(t, err)
	cloud.Config.Handler = http.StripPrefix("/identity", identity.Handler())
	cloud.Start()
	t.Cleanup(cloud.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &lab{t: t, state: t.TempDir(), address: listener.Addr().String()}
	require.NoError(t, listener.Close())
	endpoint += "/identity/v3"
	token := func(name string) string {
		provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: endpoint, Username: name, Password: name, DomainName: "Default",
			Scope: &gophercloud.AuthScope{ProjectName: name, DomainName: "Default"}})
		require.NoError(t, err)
		return provider.Token()
	}
	l.hostile, l.other = token("demo"), token("admin")

	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	l.process = exec.Command(program(t), "serve", "--listen", l.address, "--state", l.state, "--embedded-packages", "io.murano")
	l.process.Env = append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+endpoint, "OS_USERNAME=burano", "OS_PASSWORD=burano", "OS_PROJECT_NAME=service",
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
	l.process.Stdout, l.process.Stderr = log, log
	l.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, l.process.Start())
	t.Cleanup(func() {
		_ = l.process.Process.Signal(syscall.SIGTERM) // it may be dead, which the next line says
		err := l.process.Wait()
		require.NoError(t, log.Close())
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the end of the server's log:\n%s", text[max(0, len(text)-8<<10):])
		}
		require.NoError(t, err, "the server lives until it is told to stop")
	})
	require.NoError(t, wait.Every(100*time.Millisecond).For(time.Minute).Until(t.Context(), func(context.Context) error {
		response, err := http.Get("http://" + l.address + "/readyz")
		if err != nil {
			return wait.Again(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return wait.Again(fmt.Errorf("it answers %s", response.Status))
		}
		return nil
	}))
	return l
}

// ask sends JSON (nil: none) with a token and returns the status and the answer.
func (l *lab) ask(ctx context.Context, token, method, path string, body any, headers ...string) (int, []byte, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+l.address+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// dial opens a connection of the attacker, until the test ends, and sends a text.
func (l *lab) dial(t *testing.T, text string) (net.Conn, error) {
	connection, err := net.Dial("tcp", l.address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetWriteDeadline(time.Now().Add(5 * time.Second)) // the server may have ended it
	_, _ = io.WriteString(connection, text)
	return connection, nil
}

// through asks as another project all the while that an attack lasts, and looks at the server's memory.
func (l *lab) through(t *testing.T, attack func(t *testing.T)) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var waited []time.Duration
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for ctx.Err() == nil {
				began := time.Now()
				asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), atLast)
				status, answer, err := l.ask(asking, l.other, http.MethodGet, "/v1/environments", nil)
				cancel()
				if err != nil || status != http.StatusOK {
					return fmt.Errorf("another project is answered %d %s %w", status, answer, err)
				}
				waited = append(waited, time.Since(began))
				if err := wait.Pause(ctx, 50*time.Millisecond); err != nil {
					return nil
				}
			}
			return nil
		}()
	}()
	attack(t)
	end()
	require.NoError(t, <-failed)
	slices.Sort(waited)
	require.NotEmpty(t, waited)
	most, slowest, memory := waited[(len(waited)-1)*19/20], waited[len(waited)-1], l.memory(t)
	t.Logf("another project was answered %d times, within %s and once %s; the server had %d MiB at most", len(waited), most, slowest, memory>>20)
	require.Less(t, most, promptly)
	require.Less(t, memory, int64(mostBytes))
}

// memory is the most that the server has had at a time.
func (l *lab) memory(t *testing.T) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.process.Process.Pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(content), "VmHWM:")
	require.True(t, found, "the server is dead")
	kibibytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kibibytes << 10
}

func TestAServerLivesThroughAttacksOnItsAPI(t *testing.T) {
	l := start(t)
	for _, attack := range []struct {
		name string
		run  func(t *testing.T, l *lab)
	}{
		{"connections of strangers", connections}, {"headers of strangers", headers}, {"bodies that are half sent", bodies}, {"readers that do not read", readers},
		{"results that multiply", results},
	} {
		t.Run(attack.name, func(t *testing.T) { l.through(t, func(t *testing.T) { attack.run(t, l) }) })
	}
}
