package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnAdministratorSaysHowMuchAProjectMayHave(t *testing.T) {
	s := newServer(t)
	project := callers["{token:demo}"].ProjectID
	path := "/burano/v1/quotas/" + project
	unlimited := map[string]any{"limit": -1.0, "used": 0.0, "default": true}
	require.Equal(t, map[string]any{"project_id": project, "quotas": map[string]any{"environments": unlimited, "sessions": unlimited, "templates": unlimited,
		"packages": unlimited, "package_bytes": unlimited, "snapshot_bytes": unlimited}}, s.call("demo", "", "GET", path, nil, 200))
	s.call("other", "", "GET", path, nil, 403)
	s.call("demo", "", "PUT", path, map[string]any{"environments": 100}, 403)
	s.call("demo", "", "DELETE", path, nil, 403)
	for _, wrong := range []map[string]any{{"environments": -2}, {"environments": "5"}, {"environments": 1.5}, {"cats": 1}, {}} {
		s.call("admin", "", "PUT", path, wrong, 400)
	}

	answer := s.call("admin", "", "PUT", path, map[string]any{"environments": 1, "sessions": 1, "packages": 0}, 200)
	require.Equal(t, map[string]any{"limit": 1.0, "used": 0.0, "default": false}, field(answer, "quotas", "environments"))
	require.Equal(t, unlimited, field(answer, "quotas", "templates"))
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	refused := s.send("POST", "/v1/environments", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json"}, []byte(`{"name": "two"}`))
	require.Equal(t, 403, refused.Code)
	require.Contains(t, refused.Body.String(), "Quota exceeded for environments: requested 1, but already used 1 of 1")
	s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 403)
	s.call("other", "", "POST", "/v1/environments", map[string]any{"name": "two"}, 200)

	require.Equal(t, map[string]any{"limit": -1.0, "used": 1.0, "default": true}, field(s.call("admin", "", "DELETE", path, nil, 200), "quotas", "environments"))
	s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "two"}, 200)
}
