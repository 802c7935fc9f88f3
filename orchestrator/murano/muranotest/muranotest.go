// Package muranotest has the rest of a real OpenStack Murano: its database, and one of its stacks.
package muranotest

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/murano.sql
var dump string

// Stack is the stack of the environment "deployed", in JSON: its name, its template and the types of its resources.
//
//go:embed testdata/stack.json
var Stack string

// Model is the document that the database has of an environment: its model as it was deployed, in JSON.
func Model(t *testing.T, environment string) string {
	t.Helper()
	for line := range strings.Lines(dump) {
		if _, row, found := strings.Cut(line, "INSERT INTO `environment` VALUES ("); found && strings.Contains(row, ",'"+environment+"',") {
			_, row, _ = strings.Cut(row, ",'{")
			row, _, _ = strings.Cut(row, "}',")
			return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\'`, `'`).Replace("{" + row + "}")
		}
	}
	t.Fatalf("the database of Murano has no environment %s", environment)
	return ""
}

// Database starts a MariaDB with the database of a real Murano (Zed, Debian 12), see testdata/README.md. It returns the address for a reader, and a
// function that runs statements in it.
func Database(t *testing.T) (dsn string, run func(statement string)) {
	folder, err := os.MkdirTemp("", "burano-mariadb-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	var owner *syscall.Credential
	if os.Geteuid() == 0 { // as root it refuses to run
		nobody, err := user.Lookup("nobody")
		require.NoError(t, err)
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		require.NoError(t, os.Chown(folder, uid, gid))
		owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	command := func(name string, args ...string) *exec.Cmd {
		path, err := exec.LookPath(name)
		require.NoError(t, err, "install Debian's package mariadb-server (`make setup`)")
		c := exec.Command(path, append([]string{"--no-defaults"}, args...)...)
		c.Dir = folder
		c.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGKILL}
		return c
	}
	data, socket := filepath.Join(folder, "data"), filepath.Join(folder, "socket")
	out, err := command("mariadb-install-db", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput()
	require.NoError(t, err, string(out))
	server := command("mariadbd", "--datadir="+data, "--socket="+socket, "--skip-networking", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0")
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := func(text string) error {
		c := command("mariadb", "--socket="+socket, "--user=root", "--default-character-set=utf8mb3")
		c.Stdin = strings.NewReader(text)
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	require.Eventually(t, func() bool { return client("SELECT 1") == nil }, time.Minute, 50*time.Millisecond)
	require.NoError(t, client("CREATE DATABASE murano CHARACTER SET utf8mb3; USE murano; SET FOREIGN_KEY_CHECKS = 0; "+dump+
		"; CREATE USER reader IDENTIFIED BY 'p@ss'; GRANT SELECT ON murano.* TO reader"))
	return "mysql+pymysql://reader:p%40ss@localhost/murano?unix_socket=" + socket, func(statement string) { require.NoError(t, client("USE murano; "+statement)) }
}
