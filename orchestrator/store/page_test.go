package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/store"
)

// plainSealer seals in a readable form, and counts opened values.
type plainSealer struct{ opened atomic.Int64 } // bytes

func (*plainSealer) Seal(owner string, value []byte) string { return owner + "|" + string(value) }

func (p *plainSealer) Open(owner, sealed string) ([]byte, error) {
	value, ok := strings.CutPrefix(sealed, owner+"|")
	if !ok {
		return nil, fmt.Errorf("it was not sealed for %s", owner)
	}
	p.opened.Add(int64(len(value)))
	return []byte(value), nil
}

// large is a model of so many applications.
func large(applications int) map[string]any {
	services := make([]any, applications)
	for i := range services {
		services[i] = map[string]any{"?": map[string]any{"id": fmt.Sprint("id-", i), "type": "org.test.Application"}, "name": strings.Repeat("an application ", 20)}
	}
	return map[string]any{"name": "large", "services": services}
}

// TestAPageHasTheRowsOfTheListAndReadsNoModel turns the pages of each list in each order, forward, and compares them with the whole list.
func TestAPageHasTheRowsOfTheListAndReadsNoModel(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		const many, applications = 23, 100
		sealer := &plainSealer{}
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		e := store.Environment{ID: "e", ProjectID: "p", Name: "e", Model: store.Model{Objects: map[string]any{}}}
		require.NoError(t, s.Environments().Create(t.Context(), &e))
		var tasks []store.Task
		var reports []store.Report
		for i := range many {
			at := store.Time(1000 + i/4) // some at the same time
			task := store.Task{ID: fmt.Sprintf("t%02d", (i*7)%many), EnvironmentID: "e", SessionID: "s", Action: store.Action{ObjectID: "e", Method: "deploy"},
				Objects: large(applications), Result: store.Document{"isException": false}, Created: at, Updated: at, Started: at}
			if i%3 > 0 {
				task.Finished = &at
			}
			tasks = append(tasks, task)
			reports = append(reports, store.Report{ID: fmt.Sprintf("r%02d", (i*5)%many), TaskID: task.ID, Number: 1, Level: []string{"info", "warning", "error"}[i%3]})
		}
		insert := func(rows any) { // as the store does it
			t.Helper()
			require.NoError(t, s.Insert(t.Context(), rows))
		}
		insert(&tasks)
		insert(&reports)

		all, counts, err := s.Tasks().List(t.Context(), "", "p")
		require.NoError(t, err)
		require.Len(t, all, many)
		require.Len(t, all[0].Objects["services"], applications)
		before := sealer.opened.Load()
		for _, order := range [][]store.Sort{nil, {{Key: "created"}}, {{Key: "finished", Descending: true}, {Key: "started"}}, {{Key: "id", Descending: true}}} {
			whole, err := s.Tasks().Page(t.Context(), "e", "", store.Page{Sort: order})
			require.NoError(t, err)
			require.Len(t, whole, many)
			var turned []store.TaskState
			for marker := ""; ; {
				part, err := s.Tasks().Page(t.Context(), "", "p", store.Page{Limit: 5, Marker: marker, Sort: order})
				require.NoError(t, err)
				if len(part) == 0 {
					break
				}
				turned, marker = append(turned, part...), part[len(part)-1].ID
			}
			require.Equal(t, whole, turned, "%v", order)
			if order == nil {
				for i, task := range whole {
					require.Equal(t, all[i].ID, task.ID)
					require.Equal(t, all[i].Action, task.Action)
					require.Equal(t, all[i].Finished, task.Finished)
					require.Equal(t, counts[task.ID], task.Counts)
				}
			}
		}
		opened := sealer.opened.Load() - before
		require.Positive(t, opened, "actions are sealed")
		require.Less(t, opened, int64(4*2*many*200), "models were opened for a page")

		_, err = s.Tasks().Page(t.Context(), "e", "", store.Page{Marker: "nobody"})
		require.ErrorIs(t, err, store.ErrMarker)
		_, err = s.Tasks().Page(t.Context(), "other", "", store.Page{Marker: "t01"})
		require.ErrorIs(t, err, store.ErrMarker, "of another environment")
		var sorting *store.SortError
		_, err = s.Tasks().Page(t.Context(), "e", "", store.Page{Sort: []store.Sort{{Key: "objects"}}})
		require.ErrorAs(t, err, &sorting)

		state, err := s.Tasks().State(t.Context(), all[0].ID)
		require.NoError(t, err)
		require.Equal(t, all[0].Finished, state.Finished)
		require.Equal(t, counts[all[0].ID], state.Counts)
		_, err = s.Tasks().State(t.Context(), "nobody")
		require.ErrorIs(t, err, store.ErrNotFound)

		for i := range many {
			row := store.Environment{ID: fmt.Sprintf("e%02d", (i*7)%many), ProjectID: "q", Name: fmt.Sprint("name ", i%5, "-", i), Model: store.Model{Objects: large(applications)}}
			require.NoError(t, s.Environments().Create(t.Context(), &row))
			_, err := s.Sessions().Open(t.Context(), row.ID, store.Holder{ID: "u"})
			require.NoError(t, err)
			template := store.Template{ID: row.ID, ProjectID: "q", Name: row.Name, Services: store.List{}, Public: i%2 == 0}
			require.NoError(t, s.Templates().Create(t.Context(), &template))
		}
		wholeRows, wholeSessions, err := s.Environments().List(t.Context(), "q")
		require.NoError(t, err)
		before = sealer.opened.Load()
		var ids []string
		for marker := ""; ; {
			part, sessions, err := s.Environments().Page(t.Context(), "q", store.Page{Limit: 4, Marker: marker})
			require.NoError(t, err)
			if len(part) == 0 {
				break
			}
			for _, row := range part {
				require.Equal(t, wholeRows[len(ids)], row)
				require.Equal(t, wholeSessions[row.ID], sessions[row.ID])
				ids, marker = append(ids, row.ID), row.ID
			}
		}
		require.Len(t, ids, many)
		byName, _, err := s.Environments().Page(t.Context(), "q", store.Page{Sort: []store.Sort{{Key: "name", Descending: true}}})
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(byName, func(a, b store.Environment) int { return strings.Compare(b.Name, a.Name) }))
		templates, err := s.Templates().List(t.Context(), "r", store.OwnOrPublic, store.Page{Limit: 100, Marker: "e00"})
		require.NoError(t, err)
		for _, template := range templates {
			require.True(t, template.Public, "a template of another project")
		}
		require.Equal(t, before, sealer.opened.Load())
	})
}
