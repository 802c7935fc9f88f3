// Package haproxytest runs a real HAProxy in master-worker mode on loopback for tests, with backends and load to try it.
package haproxytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
)

// Process is an HAProxy with a directory of its own. It is started by the first reload, as systemd would do it, and ended with the test.
type Process struct {
	Directory string
	Files     int // how many files it may have open, whatever it asks for; 0: as many as this process
	log       string
	mutex     sync.Mutex
	master    *os.Process
	ended     chan struct{}
}

// New prepares an HAProxy; see [Process.Config].
func New(t testing.TB) *Process {
	t.Helper()
	// Not t.TempDir: with a long test name the path would not fit into the 108 bytes of a socket's address.
	directory, err := os.MkdirTemp("", "haproxy-")
	require.NoError(t, err)
	p := &Process{Directory: directory, log: filepath.Join(directory, "log")}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			content, _ := os.ReadFile(p.log)
			configuration, _ := os.ReadFile(filepath.Join(directory, "haproxy.cfg"))
			t.Logf("HAProxy's log:\n%s\nits configuration:\n%s", content, configuration)
		}
		_ = os.RemoveAll(directory)
	})
	return p
}

// Config is the configuration with which package haproxy drives this process.
func (p *Process) Config() haproxy.Config {
	return haproxy.Config{
		ConfigFile:     filepath.Join(p.Directory, "haproxy.cfg"),
		Socket:         filepath.Join(p.Directory, "admin.sock"),
		MaxConnections: 500,
		ReloadGap:      time.Nanosecond,
		Bind:           netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		Reload:         p.Reload,
	}
}

// Log returns HAProxy's output.
func (p *Process) Log() (string, error) {
	content, err := os.ReadFile(p.log)
	return string(content), err
}

// Reload starts HAProxy, or has the running master take its configuration file over.
func (p *Process) Reload(context.Context) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.master != nil && !p.gone() {
		p.awaitMaster() // systemd waits for the end of a reload before it begins another, too
		return p.master.Signal(syscall.SIGUSR2)
	}
	return p.start()
}

func (p *Process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	words := []string{"haproxy", "-W", "-f", filepath.Join(p.Directory, "haproxy.cfg"), "-S", filepath.Join(p.Directory, "master.sock")}
	if p.Files > 0 {
		words = append([]string{"prlimit", "--nofile=" + strconv.Itoa(p.Files), "setpriv", "--bounding-set=-sys_resource"}, words...)
	}
	command := exec.Command(words[0], words[1:]...)
	command.Stdout, command.Stderr = log, log
	// Should the test's process die, HAProxy goes too. The signal is tied to the starting thread, which therefore stays.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		_ = log.Close()
		close(ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start haproxy (Debian package haproxy): %w", err)
	}
	p.master, p.ended = command.Process, ended
	return nil
}

// gone reports whether the master has ended by itself.
func (p *Process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// KillWorkers kills the workers. The master ends then, as one that it did not stop has ended; Reload starts both again.
func (p *Process) KillWorkers(t testing.TB) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.awaitMaster()
	workers := p.workers()
	require.NotEmpty(t, workers)
	for _, worker := range workers {
		require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	}
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the master does not end")
	}
}

// Stop ends HAProxy with all its workers; Reload starts it again.
func (p *Process) Stop() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.master == nil {
		return
	}
	p.awaitMaster()
	workers := p.workers()
	_ = p.master.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.master.Kill()
		<-p.ended
	}
	p.master = nil
	// A master that is ended while it still starts leaves its worker, which notices that a little later and goes too.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for slices.ContainsFunc(workers, alive) {
		select {
		case <-deadline:
			for _, worker := range slices.DeleteFunc(workers, func(pid int) bool { return !alive(pid) }) {
				_ = syscall.Kill(worker, syscall.SIGKILL)
			}
			return
		case <-tick.C:
		}
	}
}

// awaitMaster waits until the master answers: before, it does not handle signals yet, and would be ended without its worker.
func (p *Process) awaitMaster() {
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if connection, err := net.Dial("unix", filepath.Join(p.Directory, "master.sock")); err == nil {
			_ = connection.SetDeadline(time.Now().Add(time.Second))
			_, _ = connection.Write([]byte("show proc\n"))
			n, _ := connection.Read(make([]byte, 1))
			_ = connection.Close()
			if n > 0 {
				return
			}
		}
		select {
		case <-deadline:
			return
		case <-p.ended:
			return
		case <-tick.C:
		}
	}
}

// workers are the process ids of the master's children.
func (p *Process) workers() (pids []int) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.master.Pid, p.master.Pid))
	if err != nil {
		return nil
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether an HAProxy of this number still has its files open (an ended one that waits to be collected has not).
func alive(pid int) bool {
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Base(target) == "haproxy"
}

// given are the ports that FreePort has given away.
var given sync.Map

// FreePort finds an unused TCP port on loopback, a different one each time. It is below the range of outgoing connections: one of these may take it before
// HAProxy listens.
func FreePort(t testing.TB) uint16 {
	t.Helper()
	for range 1000 {
		port := uint16(20_000 + rand.IntN(12_000))
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		require.NoError(t, listener.Close())
		if _, taken := given.LoadOrStore(port, true); !taken {
			return port
		}
	}
	require.FailNow(t, "none of 1,000 ports is free")
	return 0
}

// Wait calls condition until it returns nil, and fails the test with its last error after half a minute, in which a busy machine comes to it.
func Wait(t testing.TB, what string, condition func() error) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			require.NoError(t, errors.Join(errors.New("waited for "+what), err))
		case <-tick.C:
		}
	}
}
