// Package servers checks the promises to operators (docs/operators.md, "Several servers") with several servers of Burano behind HAProxy, over
// PostgreSQL. Servers are upgraded from a former version, stopped and killed, and the database fails over. Meanwhile no repeated request is
// refused, no acknowledged change is lost, and no deployment ends because of it.
//
// BURANO_FORMER is the program of the former version; `make test-servers` builds it.
package servers

import (
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/localcloudtest"
	"github.com/burano/burano/test/site"
)

// servers is a cloud and three servers behind a proxy.
type servers struct {
	*site.Site
	t        *testing.T
	program  string // today's
	database string
}

// start starts the cloud, and the servers as a program.
func start(t *testing.T, database, program string) *servers {
	slot := os.Getenv("BURANO_SLOT")
	cloud := localcloudtest.Start(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.14" + slot + ".0/24"), Prefix: "bls" + slot + "-", Logger: slog.New(slog.DiscardHandler)})
	today, err := filepath.Abs(filepath.Join("..", "..", "build", "burano"))
	require.NoError(t, err)
	require.FileExists(t, today, "`make build` makes it")
	s := &servers{t: t, database: database, program: today}
	s.Site = site.Start(t, site.Config{Program: program, Keystone: cloud.Endpoint() + "/identity/v3", Database: database,
		Flags: []string{"--embedded-packages", "io.murano", "--trusted-proxies", "127.0.0.1"}})
	s.run("admin", "package", "import", "package", "--public")
	return s
}

// run runs a command of today's program through the proxy, and returns its output.
func (s *servers) run(user string, args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.program, args...)
	command.Env = append(s.As(user, user), "BURANO_URL=https://"+s.Proxy.Address, "OS_CACERT="+s.Proxy.Certificate)
	output, err := command.CombinedOutput()
	require.NoErrorf(s.t, err, "%v: %s", args, output)
	return string(output)
}
