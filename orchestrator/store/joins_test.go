package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

func TestAJoinTokenIsOneMachinesUntilItHasJoined(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		s, err := store.New(t.Context(), db, func() time.Time { return now })
		require.NoError(t, err)
		e := environment(t, s, "one")
		in := func(d time.Duration) store.Time { return store.Time(now.Add(d).UnixMicro()) }
		make := func(life time.Duration) (store.JoinToken, store.Delegation) {
			t.Helper()
			trust := store.Delegation{EnvironmentID: e.ID, Kind: store.Trust, Sealed: "sealed"}
			require.NoError(t, s.Delegations().Add(t.Context(), &trust))
			token := store.JoinToken{EnvironmentID: e.ID, ClusterID: "c", Hash: "hash", DelegationID: trust.ID, UserID: "u1", Expires: in(life)}
			require.NoError(t, s.JoinTokens().Add(t.Context(), &token))
			return token, trust
		}
		orphaned := func(trust store.Delegation) bool {
			t.Helper()
			list, err := s.Delegations().Orphaned(t.Context(), 1000, 0, true)
			require.NoError(t, err)
			for _, one := range list {
				if one.ID == trust.ID {
					return true
				}
			}
			return false
		}
		token, trust := make(time.Hour)
		require.False(t, orphaned(trust), "the token holds its trust")
		lab := store.Machine{Node: "lab-1", Address: "198.51.100.7", Port: 22, Login: "root", HostKey: "key of lab-1"}
		require.NoError(t, s.JoinTokens().Bind(t.Context(), token.ID, lab))
		lab.Address = "198.51.100.8"
		require.NoError(t, s.JoinTokens().Bind(t.Context(), token.ID, lab), "the same machine, which was mistaken in its address")
		require.ErrorIs(t, s.JoinTokens().Bind(t.Context(), token.ID, store.Machine{Node: "lab-2", HostKey: "key of lab-2"}), store.ErrBusy)
		bound, err := s.JoinTokens().Get(t.Context(), token.ID)
		require.NoError(t, err)
		require.Equal(t, lab, bound.Machine)

		join := func() (store.Task, error) {
			return s.JoinTokens().Submit(t.Context(), bound, store.Submission{Text: "it joins", Action: store.Action{ObjectID: "c", Method: "add", Args: map[string]any{"name": "lab-1"}}})
		}
		task, err := join()
		require.NoError(t, err)
		require.Equal(t, trust.ID, task.DelegationID)
		_, err = join()
		require.ErrorIs(t, err, store.ErrBusy)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{Failed: true})
		require.NoError(t, err)
		require.False(t, orphaned(trust), "the machine may try again")

		again, err := join()
		require.NoError(t, err)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		spent, err := s.JoinTokens().Get(t.Context(), token.ID)
		require.NoError(t, err)
		require.Equal(t, again.ID, spent.TaskID)
		require.NotNil(t, spent.Spent)
		require.True(t, orphaned(trust), "it has joined")
		_, err = join()
		require.ErrorIs(t, err, store.ErrEnded)
		require.ErrorIs(t, s.JoinTokens().Bind(t.Context(), token.ID, lab), store.ErrEnded)

		late, itsTrust := make(time.Minute)
		require.NoError(t, s.JoinTokens().Remove(t.Context(), e.ID, "c", late.ID))
		require.ErrorIs(t, s.JoinTokens().Remove(t.Context(), e.ID, "c", late.ID), store.ErrNotFound)
		require.True(t, orphaned(itsTrust))
		late, itsTrust = make(time.Minute)
		require.NoError(t, s.JoinTokens().Bind(t.Context(), late.ID, lab))
		bound, err = s.JoinTokens().Get(t.Context(), late.ID)
		require.NoError(t, err)
		now = now.Add(2 * time.Minute)
		require.True(t, orphaned(itsTrust), "it has expired")
		require.ErrorIs(t, s.JoinTokens().Bind(t.Context(), late.ID, lab), store.ErrEnded)
		_, err = join()
		require.ErrorIs(t, err, store.ErrEnded)

		held, itsTrust := make(time.Hour)
		require.NoError(t, s.Delegations().SetStanding(t.Context(), e.ID, itsTrust.ID, ""))
		require.NoError(t, s.Delegations().SetStanding(t.Context(), e.ID, "", itsTrust.ID))
		_, err = s.JoinTokens().Get(t.Context(), held.ID)
		require.ErrorIs(t, err, store.ErrNotFound, "what it worked with was revoked")

		now = now.Add(26 * time.Hour)
		kept, _ := make(time.Hour)
		list, err := s.JoinTokens().List(t.Context(), e.ID, "c")
		require.NoError(t, err)
		require.Len(t, list, 1, "those that have ended long ago are gone")
		require.Equal(t, kept.ID, list[0].ID)

		for i := 1; i < 100; i++ {
			require.NoError(t, s.JoinTokens().Add(t.Context(), &store.JoinToken{EnvironmentID: e.ID, ClusterID: "c", Hash: fmt.Sprint(i), Expires: in(time.Hour)}))
		}
		err = s.JoinTokens().Add(t.Context(), &store.JoinToken{EnvironmentID: e.ID, ClusterID: "c", Expires: in(time.Hour)})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
		_, err = s.JoinTokens().Get(t.Context(), kept.ID)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}
