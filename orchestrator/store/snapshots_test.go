package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/orchestrator/store"
)

func TestSnapshotsAreListedOnceTheyAreWholeAndOutliveTheirEnvironmentForAWhile(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		s, err := store.New(t.Context(), db, func() time.Time { return now })
		require.NoError(t, err)
		e := environment(t, s, "one")
		write := func(pieces int64) store.Snapshot {
			t.Helper()
			now = now.Add(time.Second)
			snapshot := store.Snapshot{ProjectID: "p1", EnvironmentID: e.ID, EnvironmentName: "one", ClusterID: "c", ClusterName: "cluster", Kind: store.Scheduled}
			require.NoError(t, s.Snapshots().BeginSnapshot(t.Context(), &snapshot))
			for i := range pieces {
				require.NoError(t, s.Snapshots().AddPiece(t.Context(), snapshot.ID, i, fmt.Sprint("piece ", i)))
			}
			return snapshot
		}
		listed := func(want ...store.Snapshot) {
			t.Helper()
			list, err := s.Snapshots().Snapshots(t.Context(), store.SnapshotFilter{ProjectID: "p1", EnvironmentID: e.ID, ClusterID: "c"})
			require.NoError(t, err)
			var ids, wanted []string
			for _, one := range list {
				ids = append(ids, one.ID)
			}
			for _, one := range want {
				wanted = append(wanted, one.ID)
			}
			require.Equal(t, wanted, ids)
		}
		first, second, unfinished := write(200), write(2), write(3)
		require.NoError(t, s.Snapshots().KeepSnapshot(t.Context(), first.ID, 7, 1000))
		require.NoError(t, s.Snapshots().KeepSnapshot(t.Context(), second.ID, 8, 1000))
		listed(second, first)
		_, err = s.Snapshots().Snapshot(t.Context(), unfinished.ID)
		require.ErrorIs(t, err, store.ErrNotFound)
		usage, err := s.Quotas().Quotas(t.Context(), "p1")
		require.NoError(t, err)
		require.EqualValues(t, 205*len("piece 0")+100*2+90, usage[store.QuotaSnapshotBytes].Used)

		require.NoError(t, s.Snapshots().DeleteSnapshot(t.Context(), first.ID))
		listed(second)
		require.NoError(t, s.Snapshots().DeleteSnapshot(t.Context(), first.ID), "again")
		_, there, err := s.Snapshots().Piece(t.Context(), first.ID, 0)
		require.NoError(t, err)
		require.False(t, there)

		keep := store.Retention{Snapshots: 24 * time.Hour}
		require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
		now = now.Add(23 * time.Hour)
		swept, err := s.Expired().Sweep(t.Context(), keep, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.EqualValues(t, 1, swept.Snapshots, "the one that nobody writes any more")
		listed(second)
		now = now.Add(2 * time.Hour)
		swept, err = s.Expired().Sweep(t.Context(), keep, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.EqualValues(t, 1, swept.Snapshots)
		listed()
		var left int64
		require.NoError(t, db.Raw("SELECT COUNT(*) FROM snapshot_pieces").Scan(&left).Error)
		require.Zero(t, left)
	})
}

func TestAPieceBeyondTheQuotaOfAProjectIsRefused(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil, store.Quotas(quota.Limits{store.QuotaSnapshotBytes: 100}))
		require.NoError(t, err)
		snapshot := store.Snapshot{ProjectID: "p1"}
		require.NoError(t, s.Snapshots().BeginSnapshot(t.Context(), &snapshot))
		require.NoError(t, s.Snapshots().AddPiece(t.Context(), snapshot.ID, 0, strings.Repeat("x", 60)))
		err = s.Snapshots().AddPiece(t.Context(), snapshot.ID, 1, strings.Repeat("x", 60))
		require.Equal(t, fault.Forbidden, fault.KindOf(err))
		require.ErrorContains(t, err, "snapshot_bytes: requested 60, but already used 60 of 100")
	})
}
