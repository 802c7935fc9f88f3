package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/store"
)

// TestServersTellEachOtherWhatTheyChange has two servers over one PostgreSQL, which loses their connections once.
func TestServersTellEachOtherWhatTheyChange(t *testing.T) {
	server := databasetest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var ended []chan error
	given := make(chan struct{}, 1)
	serve := func(given func()) (*store.Store, *gorm.DB) {
		db, err := database.OpenPostgres(t.Context(), server.URL, 10*time.Second)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- s.Share(ctx, given) }()
		ended = append(ended, done)
		return s, db
	}
	one, _ := serve(func() {})
	other, db := serve(func() { given <- struct{}{} })
	t.Cleanup(func() {
		cancel()
		for _, done := range ended {
			require.NoError(t, <-done)
		}
	})
	e := environment(t, one, "one")
	_, task := deploy(t, one, e)
	hold := take(t, one)
	changed, release := other.Tasks().Watch(task.ID)
	defer release()
	woken := func(when string) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "info", Text: "a line"})) // the connection may not be there yet
			select {
			case <-changed:
				return true
			case <-time.After(100 * time.Millisecond):
				return false
			}
		}, 30*time.Second, time.Millisecond, when)
	}
	woken("at first")
	require.NoError(t, db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'").Error)
	woken("after the connections were lost")
	require.Empty(t, given, "nobody has given a task back")
	require.NoError(t, hold.GiveBack(t.Context(), store.Report{Level: "info", Text: "given back"}))
	select {
	case <-given:
	case <-time.After(30 * time.Second):
		require.FailNow(t, "the other server is not told that a task waits")
	}
}
