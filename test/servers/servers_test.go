package servers

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database/databasetest"
)

// users is the number of simultaneous users.
const users = 6

// TestServersComeAndGoUnderLoad runs one load while three servers of a former version are upgraded one after another, stopped without notice to
// HAProxy, and killed, and while the database fails over to its standby.
func TestServersComeAndGoUnderLoad(t *testing.T) {
	former := os.Getenv("BURANO_FORMER")
	if former == "" {
		t.Skip("BURANO_FORMER is the program of a former version: `make test-servers` builds it")
	}
	pair := databasetest.StartPair(t)
	s := start(t, pair.URL, former)
	before := s.versions(former)
	l := s.startLoad(users)
	defer l.group.Wait()
	defer l.end()
	l.goesOn()
	require.Empty(t, l.phase("as it is"))

	// Servers of a former version know no stop-delay: HAProxy drains them first.
	began := time.Now()
	for _, one := range s.Servers {
		s.SetState(one, "drain")
		l.goesOn() // requests in flight have arrived
		s.Stop(one)
		s.Begin(one, s.program, "--stop-delay", "4s")
		s.SetState(one, "ready")
		s.Offered(one)
		l.goesOn()
	}
	t.Logf("three servers were upgraded in %s", time.Since(began).Round(time.Second))
	require.Empty(t, l.phase("the rolling upgrade"), "nothing was refused")
	require.NotEqual(t, before, s.versions(s.program), "the former version has another database, which was migrated while its servers worked")

	for _, one := range s.Servers {
		require.NoError(t, one.Process.Signal(syscall.SIGTERM))
		require.Eventually(t, func() bool { return one.Readiness() == http.StatusServiceUnavailable }, 3*time.Second, time.Millisecond, "it still answers, and is not ready")
		require.NoError(t, one.Ended())
		s.Begin(one, s.program, "--stop-delay", "4s")
		s.Offered(one)
		l.goesOn()
	}
	require.Empty(t, l.phase("servers that are stopped"), "nothing was refused")
	l.mutex.Lock()
	handed := l.handed
	l.mutex.Unlock()
	require.NotEmpty(t, handed, "no deployment was given back")
	t.Logf("%d deployments were given back, and taken after %v", len(handed), handed)
	require.LessOrEqual(t, slices.Max(handed), 2*time.Second, "a deployment that was given back waits for nobody")

	for _, one := range s.Servers {
		s.Kill(one)
		s.Begin(one, s.program, "--stop-delay", "4s")
		s.Offered(one)
		l.goesOn()
	}
	l.phase("servers that are killed")

	pair.FailOver(5 * time.Second)
	l.goesOn()
	for _, one := range s.Servers {
		s.Offered(one)
	}
	l.phase("the database failed over")

	pair.Standby().Crash()
	l.goesOn()
	l.phase("the database was restarted")
	l.stop()
	l.phase("at the end")
}

// versions are the versions of the database's tables that a program sees and needs.
func (s *servers) versions(program string) string {
	command := exec.CommandContext(s.t.Context(), program, "db", "version", "--state", s.Servers[0].State)
	command.Env = append(s.As("burano", "service"), "BURANO_DATABASE="+s.database)
	output, err := command.CombinedOutput()
	require.NoErrorf(s.t, err, "%s", output)
	return strings.TrimSpace(string(output))
}
