package databasetest

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Pair is a primary and its standby, which has each transaction before it is acknowledged (synchronous replication), as a cluster of Patroni in
// its synchronous mode.
type Pair struct {
	URL              string // of whichever of the two takes writes
	primary, standby *Server
}

// StartPair starts both for the test.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	primary := Start(t)
	standby := begin(t, filepath.Dir(primary.now.Path), func(s *Server, data, _ string) *exec.Cmd {
		return s.run("pg_basebackup", "--pgdata", data, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync",
			"--host", "127.0.0.1", "--port", strconv.Itoa(primary.port), "--username", "burano")
	})
	primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'", nil)
	primary.ask("SELECT pg_reload_conf()", nil)
	require.Eventually(t, func() bool {
		var following int
		primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", &following)
		return following == 1
	}, time.Minute, 20*time.Millisecond, "the standby does not follow")
	return &Pair{URL: address(primary.port, standby.port) + "?sslmode=disable&target_session_attrs=read-write", primary: primary, standby: standby}
}

// FailOver ends the primary as a crash does, and promotes the standby after a time away without writes.
func (p *Pair) FailOver(away time.Duration) {
	p.primary.t.Helper()
	p.primary.Stop()
	noticed := time.NewTimer(away) // the time in which a cluster's manager notices and decides
	defer noticed.Stop()
	<-noticed.C
	var promoted bool
	p.standby.ask("SELECT pg_promote()", &promoted)
	require.True(p.primary.t, promoted)
}

// Standby is the server that takes writes after FailOver.
func (p *Pair) Standby() *Server { return p.standby }

// ask has the server answer a question into answer; nil: there is none.
func (s *Server) ask(question string, answer any) {
	s.t.Helper()
	connection, err := pgx.Connect(s.t.Context(), s.URL)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, connection.Close(s.t.Context())) }()
	if answer == nil {
		_, err = connection.Exec(s.t.Context(), question)
	} else {
		err = connection.QueryRow(s.t.Context(), question).Scan(answer)
	}
	require.NoError(s.t, err, question)
}
