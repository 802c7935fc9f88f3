package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

// find keeps findings of an environment, as a keeper does.
func (s *server) find(environmentID string, found ...store.Finding) {
	s.t.Helper()
	require.NoError(s.t, s.rows.Keepers().Add(s.t.Context()))
	claims, err := s.rows.Keepers().Claim(s.t.Context(), "keeper", time.Minute, 100)
	require.NoError(s.t, err)
	for _, claim := range claims {
		looked := store.Looked{Duties: []string{"health"}, Mends: func(f store.Finding) string { return f.Mends }}
		if claim.EnvironmentID == environmentID {
			looked.Findings = found
		}
		_, err := s.rows.Keepers().EndLook(s.t.Context(), claim, looked)
		require.NoError(s.t, err)
	}
}

func TestFindingsAreListedByEnvironmentAndProjectTheWorstFirst(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id + "/findings"
	require.Equal(t, map[string]any{"findings": []any{}}, s.call("demo", "", "GET", path, nil, 200))
	s.find(id, store.Finding{Duty: "health", ObjectID: "c", Kind: "node-not-ready", Subject: "n", Severity: "warning", Text: "it takes no pods", Mends: "deploy"},
		store.Finding{Duty: "health", Kind: "api-unanswered", Severity: "critical", Text: "nobody answers", Mends: "start it"})

	list := s.call("demo", "", "GET", path, nil, 200)
	require.Equal(t, list, s.call("reader", "", "GET", "/burano/v1/findings", nil, 200))
	found := field(list, "findings").([]any)
	require.Len(t, found, 2)
	require.Equal(t, "critical", field(found[0], "severity"))
	require.Nil(t, field(found[0], "subject"))
	require.Equal(t, "n", field(found[1], "subject"))
	require.Equal(t, id, field(found[1], "environment_id"))
	require.Nil(t, field(found[1], "closed"))

	page := s.call("demo", "", "GET", path+"?limit=1", nil, 200)
	require.Equal(t, found[:1], field(page, "findings"))
	require.Equal(t, found[1:], field(s.call("demo", "", "GET", path+"?limit=1&marker="+field(page, "next_marker").(string), nil, 200), "findings"))

	require.NoError(t, s.db.Exec("UPDATE keepers SET due = 0").Error)
	s.find(id)
	require.Empty(t, field(s.call("demo", "", "GET", path, nil, 200), "findings"))
	require.Len(t, field(s.call("demo", "", "GET", path+"?closed=true", nil, 200), "findings"), 2)
	s.call("demo", "", "GET", path+"?closed=perhaps", nil, 400)
	s.call("demo", "", "GET", path+"?sort=beauty", nil, 400)
	s.call("other", "", "GET", path, nil, 403)
	require.Empty(t, field(s.call("other", "", "GET", "/burano/v1/findings?closed=true", nil, 200), "findings"))
	s.call("demo", "", "GET", "/burano/v1/environments/nope/findings", nil, 404)
}
