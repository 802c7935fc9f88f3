// Package sshtest runs a real OpenSSH server on loopback for tests.
package sshtest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

const program = "/usr/sbin/sshd"

// Server is an sshd that lets Signer in as the user who runs the test.
type Server struct {
	Address string        // host:port
	Signer  ssh.Signer    // the key it accepts
	Key     []byte        // its private half, OpenSSH PEM
	HostKey ssh.PublicKey // the key it presents
	// Path, when it is set before Start, is where commands are looked for.
	Path string
	// Settings, when they are set before Start, are further lines of its configuration.
	Settings string

	t      testing.TB
	dir    string
	mutex  sync.Mutex // a test may stop the server while it ends itself
	daemon *exec.Cmd
}

// New starts a server; it ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := Prepare(t)
	s.Start()
	return s
}

// Prepare makes keys, configuration and a free port, and does not start the server yet.
func Prepare(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	s.Signer, s.Key = NewKey(t)
	s.HostKey = s.SetHostKey()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "authorized_keys"), ssh.MarshalAuthorizedKey(s.Signer.PublicKey()), 0o600))
	// Scripts that have systemd reload sshd have this one do it.
	systemctl := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != reload ] || kill -HUP \"$(cat %s/pid)\"\n", s.dir)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "bin", "systemctl"), []byte(systemctl), 0o755))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Address = listener.Addr().String()
	require.NoError(t, listener.Close())
	// sshd insists on its folder for privilege separation.
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	t.Cleanup(s.Stop)
	return s
}

// NewKey makes an ed25519 key and its OpenSSH PEM form.
func NewKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

// KeyFile is where the server has its host key.
func (s *Server) KeyFile() string { return filepath.Join(s.dir, "host_key") }

// SetHostKey gives the server a new host key; it presents it from the next Start on.
func (s *Server) SetHostKey() ssh.PublicKey {
	s.t.Helper()
	signer, key := NewKey(s.t)
	require.NoError(s.t, os.WriteFile(s.KeyFile(), key, 0o600))
	return signer.PublicKey()
}

// Start runs sshd and waits until it listens.
func (s *Server) Start() {
	s.t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	host, port, err := net.SplitHostPort(s.Address)
	require.NoError(s.t, err)
	// Bash reads ~/.bashrc for commands that come through sshd, but not in an inner shell (SHLVL): tests must not depend on the start-up files of their
	// user.
	path := cmp.Or(s.Path, filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"))
	config := fmt.Sprintf("ListenAddress %s\nPort %s\nHostKey %[3]s/host_key\nAuthorizedKeysFile %[3]s/authorized_keys\nPidFile %[3]s/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxSessions 50\nMaxStartups 50:30:100\nPermitRootLogin prohibit-password\nSetEnv SHLVL=1 PATH=%[4]q\n%[5]s", host, port, s.dir, path, s.Settings)
	file := filepath.Join(s.dir, "sshd_config")
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	s.daemon = exec.Command(program, "-D", "-e", "-f", file)
	s.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	require.NoError(s.t, err)
	defer log.Close()
	s.daemon.Stdout, s.daemon.Stderr = log, log
	require.NoError(s.t, s.daemon.Start(), "sshd is needed: Debian package openssh-server")
	require.Eventually(s.t, func() bool {
		conn, err := net.DialTimeout("tcp", s.Address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "sshd does not listen")
}

// Stop ends the server and every connection to it, as a power failure would.
func (s *Server) Stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.daemon == nil {
		return
	}
	// Connections have processes in sessions of their own: find them as descendants. All are stopped before the first one ends, parents before their
	// children: else one could still report the end of another.
	s.signal(syscall.SIGSTOP, syscall.SIGKILL)
	_ = s.daemon.Wait()
	s.daemon = nil
}

// Freeze stops the server and every connection to it until the server is ended.
func (s *Server) Freeze() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.signal(syscall.SIGSTOP)
}

func (s *Server) signal(signals ...syscall.Signal) {
	all := append(descendants(s.daemon.Process.Pid), s.daemon.Process.Pid)
	for _, signal := range signals {
		for _, pid := range slices.Backward(all) {
			_ = syscall.Kill(pid, signal)
		}
	}
}

// Cut ends every connection to the server; programs that were started over them still run.
func (s *Server) Cut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, pid := range children(s.daemon.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func children(pid int) (all []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, one := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(one); err == nil {
			all = append(all, child)
		}
	}
	return all
}

func descendants(pid int) (all []int) {
	for _, child := range children(pid) {
		all = append(append(all, descendants(child)...), child)
	}
	return all
}
