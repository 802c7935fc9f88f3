package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/orchestrator/store"
)

func TestADeletedEnvironmentCanBeBroughtBackForAWhile(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		s, err := store.New(t.Context(), db, func() time.Time { return now }, store.Undelete(7*24*time.Hour), store.Quotas(quota.Limits{store.QuotaEnvironments: 1}))
		require.NoError(t, err)
		deleted := s.Deleted()
		e := environment(t, s, "one")
		_, ended := deploy(t, s, e)
		hold := take(t, s)
		require.NoError(t, hold.SetAttribute(t.Context(), "a", "c", "code/password", map[string]any{"kept": true}))
		require.NoError(t, hold.SetAttribute(t.Context(), "a", "c", "server", "1"))
		require.NoError(t, hold.SetSecret(t.Context(), "attribute/a/c/password", "sealed"))
		copied := map[string]any{"?": map[string]any{"id": e.ID}, "name": "one"}
		failed, err := hold.Finish(t.Context(), store.Outcome{Objects: copied, ObjectsCopy: copied})
		require.NoError(t, err)
		require.False(t, failed)
		taken := store.Snapshot{ProjectID: "p1", EnvironmentID: e.ID, EnvironmentName: "one", ClusterID: "c", Kind: store.Requested}
		require.NoError(t, s.Snapshots().BeginSnapshot(t.Context(), &taken))
		require.NoError(t, s.Snapshots().KeepSnapshot(t.Context(), taken.ID, 1, 1))

		remove := func() {
			t.Helper()
			_, err := s.Tasks().SubmitDeletion(t.Context(), e.ID, "u2", store.Submission{Text: "Action None is scheduled"})
			require.NoError(t, err)
			hold := take(t, s)
			require.NoError(t, hold.RemoveAttributes(t.Context(), "a", "code/"))
			failed, err := hold.Finish(t.Context(), store.Outcome{})
			require.NoError(t, err)
			require.False(t, failed)
		}
		remove()
		gone := func() {
			t.Helper()
			_, err := s.Environments().Get(t.Context(), e.ID)
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = s.Environments().Head(t.Context(), e.ID)
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = s.Environments().Rename(t.Context(), e.ID, "other")
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
			require.ErrorIs(t, err, store.ErrNotFound)
			for _, project := range []string{"", "p1"} {
				list, _, err := s.Environments().List(t.Context(), project)
				require.NoError(t, err)
				for _, one := range list {
					require.NotEqual(t, e.ID, one.ID)
				}
				page, _, err := s.Environments().Page(t.Context(), project, store.Page{Limit: 10})
				require.NoError(t, err)
				for _, one := range page {
					require.NotEqual(t, e.ID, one.ID)
				}
			}
			tasks, _, err := s.Tasks().List(t.Context(), "", "p1")
			require.NoError(t, err)
			for _, one := range tasks {
				require.NotEqual(t, e.ID, one.EnvironmentID)
			}
			require.NoError(t, s.Keepers().Add(t.Context()))
			claims, err := s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
			require.NoError(t, err)
			for _, one := range claims {
				require.NotEqual(t, e.ID, one.EnvironmentID)
			}
			require.NoError(t, s.Keepers().GiveBack(t.Context(), "w1"))
		}
		gone()
		other := environment(t, s, "one") // the name is free, and deleted ones do not count
		list, err := deleted.Of(t.Context(), "p1")
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Positive(t, list[0].Size)
		list[0].Size = 0
		require.Equal(t, store.DeletedEnvironment{EnvironmentID: e.ID, ProjectID: "p1", Name: "one", UserID: "u2", Deleted: store.Time(now.UnixMicro())}, list[0])
		others, err := deleted.Of(t.Context(), "p2")
		require.NoError(t, err)
		require.Empty(t, others)

		_, err = deleted.Restore(t.Context(), e.ID, "")
		require.Equal(t, fault.Forbidden, fault.KindOf(err), "the project has as many as it may: %v", err)
		require.NoError(t, s.Quotas().SetQuotas(t.Context(), "p1", quota.Limits{store.QuotaEnvironments: 10}))
		_, err = deleted.Restore(t.Context(), e.ID, "")
		require.ErrorIs(t, err, store.ErrDuplicate)
		gone()
		back, err := deleted.Restore(t.Context(), e.ID, "two")
		require.NoError(t, err)
		require.Equal(t, "two", back.Name)
		read, err := s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, "p1", read.ProjectID)
		require.Nil(t, read.Model.ObjectsCopy, "everything is made anew")
		require.Equal(t, "one", read.Model.Objects["name"])
		tasks, _, err := s.Tasks().List(t.Context(), e.ID, "")
		require.NoError(t, err)
		require.Len(t, tasks, 1, "its history is there, without its deletion")
		require.Equal(t, ended.ID, tasks[0].ID)
		_, kept, err := s.Attributes().Get(t.Context(), e.ID, "a", "c", "code/password")
		require.NoError(t, err)
		require.True(t, kept)
		_, kept, err = s.Attributes().Get(t.Context(), e.ID, "a", "c", "server")
		require.NoError(t, err)
		require.False(t, kept)
		_, kept, err = s.Secrets().Get(t.Context(), e.ID, "attribute/a/c/password")
		require.NoError(t, err)
		require.True(t, kept)
		_, sessions, err := s.Environments().List(t.Context(), "p1")
		require.NoError(t, err)
		for _, one := range sessions[e.ID] {
			require.Equal(t, store.Deployed, one.State)
		}
		snapshot, err := s.Snapshots().Snapshot(t.Context(), taken.ID)
		require.NoError(t, err)
		require.Zero(t, snapshot.Orphaned)
		_, err = deleted.Restore(t.Context(), e.ID, "three")
		require.ErrorIs(t, err, store.ErrNotFound)

		remove()
		sweep := func() store.Swept {
			t.Helper()
			swept, err := s.Expired().Sweep(t.Context(), store.Retention{Snapshots: 24 * time.Hour}, func(ctx context.Context, id string) error { return s.Snapshots().DeleteSnapshot(ctx, id) })
			require.NoError(t, err)
			return swept
		}
		now = now.Add(6 * 24 * time.Hour)
		require.Zero(t, sweep(), "nothing is removed of what can be brought back, its snapshots among it")
		require.ErrorIs(t, deleted.Purge(t.Context(), other.ID), store.ErrNotFound, "only deleted ones are purged")
		now = now.Add(2 * 24 * time.Hour)
		swept := sweep()
		require.EqualValues(t, 1, swept.Environments)
		swept.Snapshots += sweep().Snapshots
		require.EqualValues(t, 1, swept.Snapshots)
		_, kept, err = s.Secrets().Get(t.Context(), e.ID, "attribute/a/c/password")
		require.NoError(t, err)
		require.False(t, kept, "secrets go with it")
		_, err = deleted.Environment(t.Context(), e.ID)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = s.Environments().Get(t.Context(), other.ID)
		require.NoError(t, err)
	})
}

func TestDeletedEnvironmentsAreBounded(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		s, err := store.New(t.Context(), db, func() time.Time { now = now.Add(time.Second); return now }, store.Undelete(time.Hour))
		require.NoError(t, err)
		var ids []string
		for range 103 {
			e := environment(t, s, "one")
			removed, err := s.Environments().RemoveUndeployed(t.Context(), e.ID, "u1")
			require.NoError(t, err)
			require.True(t, removed)
			ids = append(ids, e.ID)
		}
		list, err := s.Deleted().Of(t.Context(), "p1")
		require.NoError(t, err)
		require.Len(t, list, 100)
		require.Equal(t, ids[102], list[0].EnvironmentID)
		require.Equal(t, ids[3], list[99].EnvironmentID, "the oldest are gone")
		require.NoError(t, s.Deleted().Purge(t.Context(), ids[3]))

		// Where the setting is off they are removed, and stored ones go.
		s, err = store.New(t.Context(), db, func() time.Time { now = now.Add(time.Second); return now })
		require.NoError(t, err)
		e := environment(t, s, "two")
		require.NoError(t, s.Environments().Remove(t.Context(), e.ID, "u1"))
		swept, err := s.Expired().Sweep(t.Context(), store.Retention{}, nil)
		require.NoError(t, err)
		require.EqualValues(t, 99, swept.Environments)
	})
}
