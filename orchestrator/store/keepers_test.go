package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/store"
)

func TestWhatADeploymentHasSeenIsLookedAtLater(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		e := environment(t, s, "one")
		keeper := func() (row store.Keeper) {
			require.NoError(t, db.Where("environment_id = ?", e.ID).Take(&row).Error)
			return row
		}
		deployed := func(outcome store.Outcome) store.Keeper {
			deploy(t, s, e)
			_, err := take(t, s).Finish(t.Context(), outcome)
			require.NoError(t, err)
			return keeper()
		}
		looks := func(found ...store.Finding) store.Claim {
			require.NoError(t, db.Model(&store.Keeper{}).Where("environment_id = ?", e.ID).Update("due", 0).Error)
			claims, err := s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			_, err = s.Keepers().EndLook(t.Context(), claims[0], store.Looked{Duties: []string{"health", "servers"}, Findings: found,
				Due: store.Dues{"health": claims[0].Now + store.Time(time.Second.Microseconds()), "servers": claims[0].Now}, Mends: func(store.Finding) string { return "" }})
			require.NoError(t, err)
			return claims[0]
		}
		well := store.Outcome{Looked: map[string]time.Duration{"health": time.Minute}}

		first := deployed(well)
		require.Equal(t, store.Dues{"health": first.Due + store.Time(time.Minute.Microseconds())}, first.Duties, "the others come at once")
		require.Empty(t, looks().Found)
		before := keeper()
		again := deployed(well)
		require.Equal(t, store.Dues{"health": before.Duties["health"]}, again.Duties, "deployments do not put it off again and again")
		require.Equal(t, store.Dues{}, deployed(store.Outcome{Failed: true, Looked: well.Looked}).Duties, "a deployment that failed may have seen nothing")

		looks(store.Finding{Duty: "health", Kind: "node-unreachable", Severity: "warning"}, store.Finding{Duty: "servers", Kind: "no-delegation", Severity: "info"})
		require.Equal(t, store.Dues{}, deployed(well).Duties, "what was found is to be closed")
		require.Equal(t, []string{"health"}, looks().Found)
		require.Empty(t, looks().Found)
	})
}

func TestADutyIsDueAtOnceWhenItIsAskedFor(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		e := environment(t, s, "one")
		require.NoError(t, s.Backups().LookNow(t.Context(), e.ID), "an environment without a keeper is looked at soon")
		deploy(t, s, e)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		claims, err := s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
		require.NoError(t, err)
		later := claims[0].Now + store.Time(time.Hour.Microseconds())
		_, err = s.Keepers().EndLook(t.Context(), claims[0], store.Looked{Due: store.Dues{"health": later, store.BackupsDuty: later}, Mends: func(store.Finding) string { return "" }})
		require.NoError(t, err)
		claims, err = s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
		require.NoError(t, err)
		require.Empty(t, claims)
		require.NoError(t, s.Backups().LookNow(t.Context(), e.ID))
		claims, err = s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		require.Equal(t, store.Dues{"health": later}, claims[0].Duties)
	})
}
