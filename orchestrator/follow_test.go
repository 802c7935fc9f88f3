package orchestrator_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// readable seals in a readable form, and counts opened values.
type readable struct{ opened atomic.Int64 } // values

func (*readable) Seal(owner string, value []byte) string { return owner + "|" + string(value) }

func (r *readable) Open(owner, sealed string) ([]byte, error) {
	r.opened.Add(1)
	return []byte(strings.TrimPrefix(sealed, owner+"|")), nil
}

// A hundred followers follow one deployment, which then reports ten lines and ends. The rows are read as often as for one, and no model is opened for it.
func TestADeploymentIsLookedAtOnceForAllWhoFollowIt(t *testing.T) {
	const many, lines = 100, 10
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		sealer := &readable{}
		rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		s := orchestrator.New(orchestrator.Config{Store: rows, Logger: slog.New(slog.DiscardHandler)})
		e := store.Environment{ID: "e", ProjectID: listed, Name: "e", Model: store.Model{Objects: objects("e")}}
		require.NoError(t, rows.Environments().Create(t.Context(), &e))
		session, err := rows.Sessions().Open(t.Context(), "e", store.Holder{ID: "u"})
		require.NoError(t, err)
		task, err := rows.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: "e", Method: "deploy"}, Text: "scheduled"})
		require.NoError(t, err)
		hold, _, err := rows.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
		require.NoError(t, err)

		var queries, inside atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group errgroup.Group
		for range many {
			group.Go(func() error {
				var texts []string
				state, err := s.Deployments().Follow(ctx, reader, task.ID, orchestrator.Follower{
					Report: func(report orchestrator.Report) error { texts = append(texts, report.Text); return nil },
					State:  func(string) error { inside.Add(1); return nil },
				})
				if err == nil && (state != "success" || len(texts) != lines+2) {
					err = fmt.Errorf("it ended with %s and %d lines", state, len(texts))
				}
				return err
			})
		}
		require.Eventually(t, func() bool { return inside.Load() == many }, time.Minute, time.Millisecond)
		opened := sealer.opened.Load()
		require.NoError(t, database.Observe(db, func(operation string, _ time.Duration, _ bool) {
			if operation == "row" || operation == "query" {
				queries.Add(1)
			}
		}))
		began := time.Now()
		for i := range lines {
			require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "info", Text: fmt.Sprint("line ", i)}))
		}
		_, err = hold.Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
		require.NoError(t, err)
		require.NoError(t, group.Wait())
		looks := int64(lines+2) + int64(time.Since(began)/time.Second) + 1 // one for each change, and one each second
		const perLook, perWrite = 3, 10                                    // statements at most
		require.LessOrEqual(t, queries.Load(), perLook*looks+perWrite*(lines+1))
		require.LessOrEqual(t, sealer.opened.Load()-opened, int64(4), "what Finish itself opens")
	})
}
