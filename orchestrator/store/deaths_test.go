package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/orchestrator/store"
)

func TestWhatServersDieOverIsRefusedUntilItEnds(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
		s, err := store.New(t.Context(), db, func() time.Time { return now })
		require.NoError(t, err)
		upload := blackbox.Work{Kind: blackbox.Request, Project: "p", What: "POST /v1/catalog/packages", Key: "package"}
		page := blackbox.Work{Kind: blackbox.Request, Project: "p", What: "GET /v1/environments", Key: "page"}
		look := blackbox.Work{Kind: blackbox.Look, What: "look at environment e", Key: "look"}
		died := func(ran ...blackbox.Work) { require.NoError(t, s.Deaths().Note(t.Context(), ran, false, "1")) }
		refused := func(version string) (keys []string) {
			suspects, err := s.Deaths().Suspects(t.Context(), version)
			require.NoError(t, err)
			for key, refused := range suspects {
				if refused {
					keys = append(keys, key)
				}
			}
			return keys
		}
		died()
		for range 3 {
			died(upload, page, look, page)
		}
		require.Empty(t, refused("1"))
		died(upload, page, look)
		require.Equal(t, []string{"package"}, refused("1"), "what comes again and again is not told from what kills")
		require.NoError(t, s.Deaths().Survived(t.Context(), "package"))
		died(upload)
		require.Empty(t, refused("1"))
		died(upload)
		require.Equal(t, []string{"package"}, refused("1"))
		require.Empty(t, refused("2"), "another version may have no such defect")
		for range 3 {
			died(look)
		}
		died(page)
		require.NoError(t, s.Deaths().Note(t.Context(), []blackbox.Work{page}, true, "1"))
		require.ElementsMatch(t, []string{"package", "look"}, refused("1"))
		now = now.Add(25 * time.Hour)
		require.Empty(t, refused("1"))
		died(upload)
		require.Empty(t, refused("1"), "deaths of long ago do not count")
	})
}

func TestATaskIsNotBlamedForADeathBesideRequestsOrLooks(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		deploy(t, s, environment(t, s, "one"))
		look := blackbox.Work{Kind: blackbox.Look, Key: "look"}
		// dies is a server that dies over the task while nothing but this runs.
		dies := func(late bool, beside ...blackbox.Work) {
			hold := take(t, s)
			require.NoError(t, hold.SetAlone(t.Context(), true))
			ran := append(beside, blackbox.Work{Kind: blackbox.Task, Key: hold.Task().ID, Fence: hold.Fence(), Alone: true})
			note := func() { require.NoError(t, s.Deaths().Note(t.Context(), ran, false, "1")) }
			if !late {
				note()
			}
			require.NoError(t, s.Tasks().EndLeases(t.Context()))
			if late { // another server was faster
				taken := take(t, s)
				note()
				require.NoError(t, taken.GiveBack(t.Context(), store.Report{Level: "info", Text: "given back"}))
			}
		}
		alone := func() int64 {
			hold := take(t, s)
			defer func() {
				require.NoError(t, hold.GiveBack(t.Context(), store.Report{Level: "info", Text: "given back"}))
			}()
			return hold.Task().AloneDeaths
		}
		dies(false)
		require.EqualValues(t, 1, alone())
		dies(false, look)
		require.EqualValues(t, 1, alone())
		dies(true, look)
		require.EqualValues(t, 1, alone())
		dies(true)
		require.EqualValues(t, 2, alone())
	})
}
