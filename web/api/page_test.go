package api

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListsComeInPages turns the pages of each list over HTTP, and asks for pages that do not exist.
func TestListsComeInPages(t *testing.T) {
	s := newServer(t)
	for i := range 5 {
		name := fmt.Sprint("number ", i)
		s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": name}, 200)
		s.call("demo", "", "POST", "/v1/templates", map[string]any{"name": name}, 200)
	}
	id := field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments", 0, "id").(string)
	for range 3 {
		session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
		s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
		s.awaitIdle(id)
	}
	deployments := "/v1/environments/" + id + "/deployments"
	task := field(s.call("demo", "", "GET", deployments, nil, 200), "deployments", 0, "id").(string)
	for path, key := range map[string]string{"/v1/environments": "environments", "/v1/templates": "templates", "/v1/deployments": "deployments",
		deployments: "deployments", deployments + "/" + task: "reports"} {
		whole := s.call("demo", "", "GET", path, nil, 200)
		require.NotContains(t, whole, "next_marker", path)
		var ids, turned []string
		for _, one := range field(whole, key).([]any) {
			ids = append(ids, field(one, "id").(string))
		}
		require.Greater(t, len(ids), 1, path)
		for marker := ""; ; {
			query := "?limit=2"
			if marker != "" {
				query += "&marker=" + marker
			}
			page := s.call("demo", "", "GET", path+query, nil, 200).(map[string]any)
			list := page[key].([]any)
			require.LessOrEqual(t, len(list), 2)
			for _, one := range list {
				turned = append(turned, field(one, "id").(string))
				if key == "deployments" {
					require.NotContains(t, one, "description")
					require.NotContains(t, one, "result")
					require.Equal(t, "deploy", field(one, "action", "method"))
					require.Equal(t, "success", field(one, "state"))
				}
			}
			if page["next_marker"] == nil {
				break
			}
			marker = page["next_marker"].(string)
		}
		require.Equal(t, ids, turned, path)
		backward := s.call("demo", "", "GET", path+"?sort=id:desc", nil, 200)
		slices.Sort(ids)
		slices.Reverse(ids)
		for i, want := range ids {
			require.Equal(t, want, field(backward, key, i, "id"), path)
		}
		for _, query := range []string{"?limit=0", "?limit=many", "?marker=nobody", "?sort=model", "?sort=id:up"} {
			answer := s.send("GET", path+query, map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
			require.Equal(t, http.StatusBadRequest, answer.Code, "%s%s: %s", path, query, answer.Body)
		}
	}
	shown := s.call("demo", "", "GET", "/burano/v1/deployments/"+task, nil, 200)
	require.Equal(t, field(s.call("demo", "", "GET", deployments, nil, 200), "deployments", 0), shown)
}
