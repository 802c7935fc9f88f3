// Package databasetest gives tests a real PostgreSQL: Debian's programs, on loopback, in a folder that goes with the test.
package databasetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	// programs is where Debian's package postgresql has them, by version.
	programs = "/usr/lib/postgresql/*/bin"
	// password is for a server that only this machine reaches and that lives as long as a test.
	password = "test"
)

// Server is a PostgreSQL server of a test.
type Server struct {
	URL string // of its database

	t      testing.TB
	port   int
	run    func(program string, args ...string) *exec.Cmd // one of PostgreSQL's, in the server's folder
	launch func() *exec.Cmd
	now    *exec.Cmd
}

// Postgres starts a server for the test and returns the URL of its empty database.
func Postgres(t testing.TB) string {
	t.Helper()
	return Start(t).URL
}

// Start starts a server for the test.
func Start(t testing.TB) *Server {
	t.Helper()
	found, err := filepath.Glob(programs)
	require.NoError(t, err)
	require.NotEmpty(t, found, "there is no PostgreSQL in %s: install Debian's package postgresql (`make setup`)", programs)
	return begin(t, slices.Max(found), func(s *Server, data, secret string) *exec.Cmd {
		return s.run("initdb", "--pgdata", data, "--username", "burano", "--pwfile", secret, "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-sync")
	})
}

// begin starts a server on a folder data that fill has filled; secret is a file with the password.
func begin(t testing.TB, bin string, fill func(s *Server, data, secret string) *exec.Cmd) *Server {
	t.Helper()
	// The folder is not the test's own: the server runs as another user when the test runs as root, which it refuses to be.
	folder, err := os.MkdirTemp("", "burano-postgres-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	secret := filepath.Join(folder, "password")
	require.NoError(t, os.WriteFile(secret, []byte(password+"\n"), 0o600))
	credential := owner(t, folder)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	s := &Server{t: t, port: port, URL: address(port) + "?sslmode=disable"}
	s.run = func(program string, args ...string) *exec.Cmd {
		command := exec.Command(filepath.Join(bin, program), args...)
		command.Dir = folder
		command.Env = []string{"LC_ALL=C.UTF-8", "TZ=UTC", "PATH=" + os.Getenv("PATH"), "PGPASSWORD=" + password}
		// The server ends with the test's process, whatever ends that.
		command.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGQUIT}
		return command
	}
	data := filepath.Join(folder, "data")
	output, err := fill(s, data, secret).CombinedOutput()
	require.NoErrorf(t, err, "%s", output)

	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	s.launch = func() *exec.Cmd {
		server := s.run("postgres", "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "fsync=off", "-c", "max_connections=60", "-c", "shared_buffers=16MB")
		server.Stdout, server.Stderr = log, log
		return server
	}
	t.Cleanup(func() {
		if s.now.ProcessState == nil { // it was not stopped for good
			s.stop(syscall.SIGINT)
		}
	})
	s.start()
	return s
}

// address is the URL of the database of the servers at these ports of this machine.
func address(ports ...int) string {
	var hosts []string
	for _, port := range ports {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return "postgres://burano:" + password + "@" + strings.Join(hosts, ",") + "/postgres"
}

func (s *Server) start() {
	s.t.Helper()
	s.now = s.launch()
	require.NoError(s.t, s.now.Start())
	require.Eventuallyf(s.t, func() bool { return answers(s.t.Context(), s.URL) }, time.Minute, 20*time.Millisecond,
		"PostgreSQL does not answer; its log is %s/log", s.now.Dir)
}

// stop ends the server: SIGINT is its "fast shutdown", SIGQUIT its "immediate" one, as after a crash
// (https://www.postgresql.org/docs/15/server-shutdown.html).
func (s *Server) stop(how syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.now.Process.Signal(how))
	_ = s.now.Wait()
}

// Crash ends the server as a crash does, and starts it again. Committed transactions stay.
func (s *Server) Crash() {
	s.t.Helper()
	s.stop(syscall.SIGQUIT)
	s.start()
}

// Stop ends the server as a crash does, until Begin.
func (s *Server) Stop() {
	s.t.Helper()
	s.stop(syscall.SIGQUIT)
}

// Begin starts the server again after Stop.
func (s *Server) Begin() {
	s.t.Helper()
	s.start()
}

// owner gives the folder to the user that a server of root's test runs as.
func owner(t testing.TB, folder string) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err := strconv.Atoi(account.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(account.Gid)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, gid))
	}))
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return false
	}
	return connection.Close(ctx) == nil
}
