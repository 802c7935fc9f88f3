package store_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
)

func TestOfManyWhoUploadAtOnceAsManyAreLetAsTheQuotaSays(t *testing.T) {
	test := func(t *testing.T, db *gorm.DB, err error) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		s, err := store.New(t.Context(), db, store.Quotas(quota.Limits{store.QuotaPackages: 5}))
		require.NoError(t, err)
		archive := bytes.Repeat([]byte("x"), 100)
		race := func(project string, wanted int, kind fault.Kind) {
			t.Helper()
			var added atomic.Int64
			var all sync.WaitGroup
			for n := range 20 {
				all.Go(func() {
					r := record("a", fmt.Sprintf("%s.App%d", project, n), project)
					r.ID, r.Public = fmt.Sprintf("%s%02d", project, n), n%2 == 0 // some lock the table, too
					switch err := s.AddPackage(t.Context(), r, archive); {
					case err == nil:
						added.Add(1)
					case fault.KindOf(err) != kind:
						t.Errorf("%s: %v", r.FullName, err)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, wanted, added.Load())
		}
		race("numbered", 5, fault.Forbidden)
		require.NoError(t, s.SetQuotas(t.Context(), "weighed", quota.Limits{store.QuotaPackages: quota.Unlimited, quota.Bytes: 399}))
		race("weighed", 3, fault.TooLarge)
		usage, err := s.Quotas(t.Context(), "weighed")
		require.NoError(t, err)
		require.Equal(t, map[string]quota.Usage{store.QuotaPackages: {Limit: quota.Unlimited, Used: 3}, quota.Bytes: {Limit: 399, Used: 300}}, usage)
		require.NoError(t, s.DeletePackage(t.Context(), firstOf(t, db, "weighed")))
		usage, err = s.Quotas(t.Context(), "weighed")
		require.NoError(t, err)
		require.EqualValues(t, 200, usage[quota.Bytes].Used)
	}
	t.Run("SQLite", func(t *testing.T) {
		db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
		test(t, db, err)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), time.Minute)
		test(t, db, err)
	})
}

func firstOf(t *testing.T, db *gorm.DB, project string) (id string) {
	t.Helper()
	require.NoError(t, db.Table("packages").Where("owner_id = ?", project).Limit(1).Pluck("id", &id).Error)
	return id
}

// Uploads from before quotas existed count too.
func TestTheBytesOfFormerPackagesAreCounted(t *testing.T) {
	test := func(t *testing.T, db *gorm.DB, err error) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		require.NoError(t, store.Schema().MigrateTo(t.Context(), db, 2))
		require.NoError(t, db.Exec(`INSERT INTO packages (id, full_name, name, type, version, description, author, supplier, owner_id, is_public, enabled, embedded, created, updated)
			VALUES ('a', 'org.A', 'A', 'Library', '1.0.0', '', '', '{}', 'former', false, true, false, 0, 0)`).Error)
		require.NoError(t, db.Exec(`INSERT INTO package_archives (package_id, content) VALUES ('a', ?)`, bytes.Repeat([]byte{0, 0xff}, 500)).Error)
		s, err := store.New(t.Context(), db)
		require.NoError(t, err)
		usage, err := s.Quotas(t.Context(), "former")
		require.NoError(t, err)
		require.Equal(t, map[string]quota.Usage{store.QuotaPackages: {Limit: quota.Unlimited, Used: 1, Default: true},
			quota.Bytes: {Limit: quota.Unlimited, Used: 1000, Default: true}}, usage)
	}
	t.Run("SQLite", func(t *testing.T) {
		db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
		test(t, db, err)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), time.Minute)
		test(t, db, err)
	})
}
