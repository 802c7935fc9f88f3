package orchestrator_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// BenchmarkPages measures the processor time of pages of 50 of the 2,000 deployments of a project, each of 100 applications, sealed, over SQLite, and of
// the whole list.
func BenchmarkPages(b *testing.B) {
	const deployments, applications = 2000, 100
	folder := b.TempDir()
	db, err := database.Open(filepath.Join(folder, "burano.db"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(folder, "key"))
	require.NoError(b, err)
	rows, err := store.New(b.Context(), db, nil, store.Sealed(sealer))
	require.NoError(b, err)
	services := make([]any, applications)
	for i := range services {
		services[i] = map[string]any{"?": map[string]any{"id": fmt.Sprint("id-", i), "type": "org.test.Application"}, "name": strings.Repeat("an application ", 20)}
	}
	e := store.Environment{ID: "e", ProjectID: listed, Name: "e", Model: store.Model{Objects: map[string]any{"services": services}}}
	require.NoError(b, rows.Environments().Create(b.Context(), &e))
	for range deployments {
		session, err := rows.Sessions().Open(b.Context(), "e", store.Holder{ID: "u"})
		require.NoError(b, err)
		_, err = rows.Tasks().Submit(b.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: "e", Method: "deploy"}, Text: "scheduled"})
		require.NoError(b, err)
		hold, _, err := rows.Tasks().Take(b.Context(), store.Taking{Worker: "w", Lease: time.Minute})
		require.NoError(b, err)
		_, err = hold.Finish(b.Context(), store.Outcome{Result: store.Document{"isException": false}})
		require.NoError(b, err)
	}
	s := orchestrator.New(orchestrator.Config{Store: rows, Logger: slog.New(slog.DiscardHandler)})
	measure := func(name string, list func() (int, error), want int) {
		b.Run(name, func(b *testing.B) {
			before := processor(b)
			for b.Loop() {
				count, err := list()
				require.NoError(b, err)
				require.Equal(b, want, count)
			}
			b.ReportMetric(float64((processor(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
	page := func(page store.Page) func() (int, error) {
		return func() (int, error) {
			list, _, err := s.Deployments().ProjectPage(b.Context(), reader, page)
			return len(list), err
		}
	}
	first, _, err := s.Deployments().ProjectPage(b.Context(), reader, store.Page{Limit: deployments / 2})
	require.NoError(b, err)
	measure("the first page of 50", page(store.Page{Limit: 50}), 50)
	measure("a page of 50 in the middle", page(store.Page{Limit: 50, Marker: first[len(first)-1].ID}), 50)
	measure("a page of 50 by another order", page(store.Page{Limit: 50, Sort: []store.Sort{{Key: "updated"}}}), 50)
	measure("the whole list", func() (int, error) {
		list, err := s.Deployments().OfProject(b.Context(), reader)
		return len(list), err
	}, deployments)
}

// processor is the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
