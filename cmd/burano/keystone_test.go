package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/cmd/burano/server"
)

// littleKeystone answers as much as a server needs to start.
func littleKeystone(address string, status int) http.Handler {
	token := fmt.Sprintf(`{"token": {"user": {"id": "u1", "name": "burano", "domain": {"id": "default", "name": "Default"}}, "project": {"id": "p1", "name": "service",
		"domain": {"id": "default", "name": "Default"}}, "roles": [], "expires_at": "2999-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z", "catalog": [{"type": "identity", "name": "keystone", "endpoints":
		[{"interface": "public", "region": "R", "region_id": "R", "url": "http://%s/v3"}]}]}}`, address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Subject-Token", "token")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case status != 0:
			w.WriteHeader(status)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, token)
	})
}

// freeAddress is an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// serving starts a server that expects Keystone at an address, and returns the log that it has written so far.
func serving(t *testing.T, keystone, listen string) (server *exec.Cmd, log func() string) {
	t.Helper()
	return servingIn(t, filepath.Join(t.TempDir(), "state"), keystone, listen)
}

// servingIn does so with this state folder.
func servingIn(t *testing.T, state, keystone, listen string) (server *exec.Cmd, log func() string) {
	t.Helper()
	server = program(t, "serve", "--state", state, "--listen", listen)
	server.Env = append(server.Env, "OS_AUTH_URL=http://"+keystone+"/v3", "OS_USERNAME=burano", "OS_PASSWORD=p", "OS_PROJECT_NAME=service",
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_CLOUD=", "OS_CLIENT_CONFIG_FILE="+os.DevNull)
	written := &complaints{}
	server.Stderr = written // Wait returns when all of it is written
	require.NoError(t, server.Start())
	return server, written.text
}

// complaints keeps the output of a process, and can be read while the process writes.
type complaints struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (c *complaints) Write(text []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.buffer.Write(text)
}

func (c *complaints) text() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.buffer.String()
}

func get(url string) (status int, body string) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

func TestTheStartWaitsForKeystoneAndReadinessIsTheDatabases(t *testing.T) {
	address, listen := freeAddress(t), freeAddress(t)
	server, log := serving(t, address, listen)
	url := "http://" + listen
	answers := func(path string, want int) func() bool {
		return func() bool { status, _ := get(url + path); return status == want }
	}
	require.Eventually(t, answers("/healthz", 200), time.Minute, 20*time.Millisecond, "it lives while it waits: %s", log())
	status, body := get(url + "/readyz")
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"ready": false, "checks": {"database": "ok", "keystone": "failed"}}`, body)
	status, body = get(url + "/v1/environments")
	require.Equal(t, 503, status)
	require.Contains(t, body, "waits for Keystone")
	require.Eventually(t, func() bool { _, body := get(url + "/metrics"); return strings.Contains(body, "burano_keystone_up 0") }, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(log(), "Keystone does not answer") }, time.Minute, 20*time.Millisecond)

	keystone := &http.Server{Handler: littleKeystone(address, 0)}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	go func() { _ = keystone.Serve(listener) }()
	require.Eventually(t, answers("/readyz", 200), time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(log(), "Burano answers") }, time.Minute, 20*time.Millisecond)
	status, _ = get(url + "/v1/environments")
	require.Equal(t, 401, status)
	_, body = get(url + "/metrics")
	require.Contains(t, body, "burano_keystone_up 1")

	require.NoError(t, keystone.Close())
	require.Eventually(t, func() bool { _, body := get(url + "/metrics"); return strings.Contains(body, "burano_keystone_up 0") }, 2*time.Minute, 100*time.Millisecond)
	status, body = get(url + "/readyz")
	require.Equal(t, 200, status, body)
	require.JSONEq(t, `{"ready": true, "checks": {"database": "ok", "memory": "ok", "requests": "ok"}}`, body)
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
}

func TestAServerThatWaitsForKeystoneIsStopped(t *testing.T) {
	listen := freeAddress(t)
	server, log := serving(t, freeAddress(t), listen)
	require.Eventually(t, func() bool { status, _ := get("http://" + listen + "/healthz"); return status == 200 }, time.Minute, 20*time.Millisecond, log())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
}

// After Keystone's first answer (or second, or third: one after the start), the server is told to stop.
func TestAServerThatIsStoppedWhileItStartsEndsWell(t *testing.T) {
	for request := int32(1); request <= 3; request++ {
		for range 5 {
			address := freeAddress(t)
			var server atomic.Pointer[exec.Cmd]
			var asked atomic.Int32
			answers := littleKeystone(address, 0)
			listener, err := net.Listen("tcp", address)
			require.NoError(t, err)
			keystone := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answers.ServeHTTP(w, r)
				if asked.Add(1) == request {
					for server.Load() == nil {
						runtime.Gosched()
					}
					_ = server.Load().Process.Signal(syscall.SIGTERM)
				}
			})}
			go func() { _ = keystone.Serve(listener) }()
			started, log := serving(t, address, freeAddress(t))
			server.Store(started)
			require.NoError(t, started.Wait(), log())
			require.NoError(t, keystone.Close())
		}
	}
}

func TestAServerWhoseCredentialsKeystoneRefusesEnds(t *testing.T) {
	address := freeAddress(t)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	keystone := &http.Server{Handler: littleKeystone(address, http.StatusUnauthorized)}
	go func() { _ = keystone.Serve(listener) }()
	t.Cleanup(func() { require.NoError(t, keystone.Close()) })
	server, log := serving(t, address, freeAddress(t))
	require.Error(t, server.Wait())
	require.Contains(t, log(), "sign in to Keystone")
}

func TestWhatAKilledServerHasLeftIsGoneWithTheNextStart(t *testing.T) {
	state := t.TempDir()
	left := filepath.Join(state, "temporary-files", "check-1", "etcd-1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "db"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(state, "temporary-files", "snapshot-1"), []byte("secret"), 0o600))
	release, err := server.LockState(state)
	require.NoError(t, err)
	listen := freeAddress(t)
	second, _ := servingIn(t, state, freeAddress(t), listen)
	require.Error(t, second.Wait())
	require.FileExists(t, filepath.Join(left, "db"), "it is the server's that has the folder")
	require.NoError(t, release())
	server, log := servingIn(t, state, freeAddress(t), listen)
	require.Eventually(t, func() bool { status, _ := get("http://" + listen + "/healthz"); return status == 200 }, time.Minute, 20*time.Millisecond, "%s", log())
	found, err := os.ReadDir(filepath.Join(state, "temporary-files"))
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
}
