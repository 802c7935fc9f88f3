package api

import (
	"fmt"
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

func TestAScheduleOfAHibernationIsSetShownAndEnded(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id + "/hibernation"
	require.Nil(t, field(s.call("reader", "", "GET", path, nil, 200), "schedule"))
	s.call("demo", "", "DELETE", path+"/schedule", nil, 404)
	wanted := map[string]any{"zone": "Europe/Berlin", "sleep": []string{"0 20 * * 1-5"}}
	s.call("reader", "", "PUT", path+"/schedule", wanted, 403)
	s.call("other", "", "PUT", path+"/schedule", wanted, 403)
	require.Contains(t, fmt.Sprint(s.call("demo", "", "PUT", path+"/schedule", map[string]any{"zone": "Europe/Berlin", "sleep": []string{"0 20 * *"}}, 400)), "needs five")
	s.call("demo", "", "PUT", path+"/schedule", map[string]any{"zone": "Europe/Berlin"}, 400)
	s.call("demo", "", "PUT", path+"/schedule", map[string]any{"zone": "Berlin", "sleep": []string{"0 20 * * 1-5"}}, 400)
	set := s.call("demo", "", "PUT", path+"/schedule", wanted, 200)
	shown := s.call("reader", "", "GET", path, nil, 200)
	require.Equal(t, field(set, "schedule"), field(shown, "schedule"))
	require.Equal(t, "awake", field(shown, "state"))
	require.Equal(t, []any{"0 20 * * 1-5"}, field(shown, "schedule", "sleep"))
	require.Equal(t, []any{}, field(shown, "schedule", "wake"))
	require.Contains(t, field(shown, "schedule", "next_sleep"), "T20:00:00+0")
	require.Nil(t, field(shown, "schedule", "next_wake"))
	require.Equal(t, false, field(shown, "schedule", "delegated"))
	s.call("reader", "", "DELETE", path+"/schedule", nil, 403)
	s.call("demo", "", "DELETE", path+"/schedule", nil, 200)
	require.Nil(t, field(s.call("demo", "", "GET", path, nil, 200), "schedule"))
}
