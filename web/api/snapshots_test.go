package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSnapshotsAreTheirProjectsAndStayWhenTheEnvironmentGoes(t *testing.T) {
	s := newServer(t)
	mine, others := s.populate("demo", "demos"), s.populate("other", "others")
	path := "/burano/v1/snapshots/" + mine["snapshot"]
	shown := s.call("demo", "", "GET", path, nil, 200)
	require.Equal(t, "what came later", field(shown, "loss"))
	require.Equal(t, mine["cluster"], field(shown, "cluster_id"))
	require.NotContains(t, shown, "secrets")
	verified, err := time.Parse(time.RFC3339Nano, field(shown, "verified").(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), verified, time.Minute)
	list := field(s.call("reader", "", "GET", "/burano/v1/snapshots", nil, 200), "snapshots").([]any)
	require.Equal(t, []any{shown}, list)
	require.Empty(t, field(s.call("demo", "", "GET", "/burano/v1/snapshots?cluster=another", nil, 200), "snapshots"))
	require.Equal(t, "all that Kubernetes knows", s.send("GET", path+"/content", asDemo, nil).Body.String())
	for _, what := range []string{path, path + "/content"} {
		s.call("other", "", "GET", what, nil, 404)
	}
	s.call("reader", "", "GET", path+"/content", nil, 403)
	s.call("other", "", "DELETE", path, nil, 404)
	s.call("demo", "", "POST", "/burano/v1/environments/"+others["environment"]+"/clusters/"+others["cluster"]+"/snapshots", nil, 403)

	s.call("demo", "", "DELETE", "/v1/environments/"+mine["environment"]+"?abandon=true", nil, 200)
	require.NotNil(t, field(s.call("demo", "", "GET", path, nil, 200), "environment_deleted"))
	s.call("demo", "", "DELETE", path, nil, 200)
	s.call("demo", "", "GET", path, nil, 404)
	s.call("other", "", "GET", "/burano/v1/snapshots/"+others["snapshot"], nil, 200)
}
