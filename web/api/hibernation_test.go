package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEnvironmentThatWasNeverDeployedDoesNotSleep(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id
	shown := s.call("reader", "", "GET", path+"/hibernation", nil, 200)
	require.Equal(t, "awake", field(shown, "state"))
	require.Nil(t, field(shown, "since"))
	plan := s.call("reader", "", "GET", path+"/hibernation/preview", nil, 200)
	require.Equal(t, "hibernate", field(plan, "does"))
	require.Equal(t, []any{"it was never deployed"}, field(plan, "obstacles"))
	s.call("demo", "", "POST", path+"/hibernate", nil, 409)
	s.call("demo", "", "POST", path+"/wake", nil, 409)
	s.call("other", "", "POST", path+"/hibernate", nil, 403)
	s.call("other", "", "GET", path+"/hibernation/preview", nil, 403)
	s.call("reader", "", "POST", path+"/wake", nil, 403)
}
