package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnObjectsReportsAreReadOverAllRuns(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	deploy := func(fails bool) string {
		session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
		outer := hello("a1", "alpha")
		outer["fail"] = fails
		outer["parts"] = []any{hello("p1", "part")}
		s.call("demo", session, "PUT", "/v1/environments/"+id+"/services", []any{outer, hello("a2", "beta")}, 200)
		s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
		s.awaitIdle(id)
		return field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments", 0, "id").(string)
	}
	first, second := deploy(true), deploy(false)
	path := "/burano/v1/environments/" + id + "/reports?object="
	reports := field(s.call("demo", "", "GET", path+"a1", nil, 200), "reports").([]any)
	tasks, entities := map[any]bool{}, map[any]bool{}
	for _, report := range reports {
		tasks[field(report, "task_id")], entities[field(report, "entity_id")] = true, true
	}
	require.Equal(t, map[any]bool{first: true, second: true}, tasks)
	require.Equal(t, map[any]bool{"a1": true, "p1": true}, entities, "what is in it counts, others do not")
	require.Equal(t, second, field(reports[0], "task_id"), "the newest come first")
	page := s.call("demo", "", "GET", path+"a1&limit=1", nil, 200)
	require.Equal(t, field(reports[0], "id"), field(page, "reports", 0, "id"))
	next := s.call("demo", "", "GET", path+"a1&limit=1&marker="+field(page, "next_marker").(string), nil, 200)
	require.Equal(t, field(reports[1], "id"), field(next, "reports", 0, "id"))
	require.Empty(t, field(s.call("demo", "", "GET", path+"nothing", nil, 200), "reports"))
	s.call("demo", "", "GET", path, nil, 400)
	s.call("demo", "", "GET", path+"a1&sort=text", nil, 400)
	s.call("other", "", "GET", path+"a1", nil, 403)

	progress := s.call("demo", "", "GET", "/burano/v1/deployments/"+second+"/progress", nil, 200)
	require.Equal(t, "success", field(progress, "state"))
	require.NotContains(t, progress, "description")
	require.Positive(t, field(progress, "reports"))
	steps := s.call("demo", "", "GET", "/burano/v1/deployments/"+second+"/steps", nil, 200)
	require.EqualValues(t, len(field(steps, "steps").([]any)), field(progress, "steps", "done"))
	require.Equal(t, []any{}, field(steps, "steps", 0, "waits_for"))
	require.NotEmpty(t, field(steps, "steps", 0, "id"))
	s.call("other", "", "GET", "/burano/v1/deployments/"+second+"/progress", nil, 403)
}
