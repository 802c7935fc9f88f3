package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/orchestrator/store"
)

// The test checks the quotas of all kinds of rows, on both databases.
func TestOfManyWhoMakeSomethingAtOnceAsManyAreLetAsTheQuotaSays(t *testing.T) {
	const most, tries = 5, 20
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil, store.Quotas(quota.Limits{store.QuotaTemplates: most}))
		require.NoError(t, err)
		require.NoError(t, s.Quotas().SetQuotas(t.Context(), "busy", quota.Limits{store.QuotaEnvironments: most, store.QuotaSessions: most}))
		var made atomic.Int64
		race := func(what string, do func(n int) error) {
			t.Helper()
			made.Store(0)
			var all sync.WaitGroup
			for n := range tries {
				all.Go(func() {
					err := do(n)
					if err == nil {
						made.Add(1)
						return
					}
					if fault.KindOf(err) != fault.Forbidden {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, most, made.Load(), what)
		}
		environment := func(project string, n int) *store.Environment {
			return &store.Environment{ID: store.NewID(), ProjectID: project, Name: fmt.Sprint(n), Model: store.Model{Objects: map[string]any{}}}
		}
		race("environments", func(n int) error { return s.Environments().Create(t.Context(), environment("busy", n)) })
		race("templates", func(n int) error {
			return s.Templates().Create(t.Context(), &store.Template{ID: store.NewID(), ProjectID: "busy", Name: fmt.Sprint(n)})
		})
		environments, _, err := s.Environments().List(t.Context(), "busy")
		require.NoError(t, err)
		race("sessions", func(n int) error {
			_, err := s.Sessions().Open(t.Context(), environments[n%len(environments)].ID, store.Holder{ID: "me"})
			return err
		})

		usage, err := s.Quotas().Quotas(t.Context(), "busy")
		require.NoError(t, err)
		require.Equal(t, map[string]quota.Usage{store.QuotaEnvironments: {Limit: most, Used: most}, store.QuotaSessions: {Limit: most, Used: most},
			store.QuotaTemplates: {Limit: most, Used: most, Default: true}, store.QuotaSnapshotBytes: {Limit: quota.Unlimited, Default: true}}, usage)
		err = s.Environments().Create(t.Context(), environment("busy", 99))
		require.EqualError(t, err, "Quota exceeded for environments: requested 1, but already used 5 of 5 in project busy. Delete some, or ask an administrator for more.")

		// The model of an action or a deletion is no draft; another project has its own quota; a raised quota lets more in.
		_, err = s.Tasks().SubmitDeletion(t.Context(), environments[0].ID, "me", store.Submission{Text: "Action None is scheduled"})
		require.NoError(t, err)
		require.NoError(t, s.Environments().Create(t.Context(), environment("calm", 1)))
		require.NoError(t, s.Quotas().SetQuotas(t.Context(), "busy", quota.Limits{store.QuotaEnvironments: quota.Unlimited}))
		require.NoError(t, s.Environments().Create(t.Context(), environment("busy", 99)))
		require.NoError(t, s.Quotas().ClearQuotas(t.Context(), "busy"))
		usage, err = s.Quotas().Quotas(t.Context(), "busy")
		require.NoError(t, err)
		require.Equal(t, quota.Usage{Limit: quota.Unlimited, Used: most + 1, Default: true}, usage[store.QuotaEnvironments])
	})
}

// TestAProjectThatHadMoreThanTheDefaultKeepsIt opens a database of the version without defaults, in which a project has 900 environments.
func TestAProjectThatHadMoreThanTheDefaultKeepsIt(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		limited := store.Quotas(quota.Limits{store.QuotaEnvironments: 1000})
		s, err := store.New(t.Context(), db, nil, limited)
		require.NoError(t, err)
		for n := range 900 {
			require.NoError(t, s.Environments().Create(t.Context(), &store.Environment{ID: store.NewID(), ProjectID: "former", Name: fmt.Sprint(n), Model: store.Model{Objects: map[string]any{}}}))
		}
		limit := func() int64 {
			usage, err := s.Quotas().Quotas(t.Context(), "former")
			require.NoError(t, err)
			return usage[store.QuotaEnvironments].Limit
		}
		require.EqualValues(t, 1000, limit())
		migration, err := fs.ReadFile(os.DirFS("migrations"), "0053_kept_quotas.sql")
		require.NoError(t, err)
		up, _, _ := strings.Cut(string(migration), "-- +goose Down")
		for statement := range strings.SplitSeq(up, ";") {
			if strings.Contains(statement, "INSERT") {
				require.NoError(t, db.Exec(statement).Error)
			}
		}
		require.EqualValues(t, 1350, limit())
		require.NoError(t, s.Quotas().SetQuotas(t.Context(), "former", quota.Limits{store.QuotaEnvironments: 5}))
		require.EqualValues(t, 5, limit(), "an administrator may say otherwise")
		require.NoError(t, s.Quotas().ClearQuotas(t.Context(), "former"))
		require.EqualValues(t, 1350, limit())
	})
}
