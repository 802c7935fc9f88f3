package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

// with is an application of the test package with other properties.
func with(id, name string, properties map[string]any) map[string]any {
	made := hello(id, name)
	for key, value := range properties {
		made[key] = value
	}
	return made
}

// components are the states of an environment's components by their ids, as a session drafts it; "" is the environment's.
func (s *server) components(id, session string) (states map[string]any, answer any) {
	s.t.Helper()
	answer = s.call("demo", session, "GET", "/burano/v1/environments/"+id+"/components", nil, 200)
	states = map[string]any{"": field(answer, "state")}
	for _, one := range field(answer, "components").([]any) {
		states[field(one, "id").(string)] = field(one, "state")
	}
	return states, answer
}

// listed is an environment in the list with states.
func (s *server) listed(id string) any {
	s.t.Helper()
	for _, one := range field(s.call("demo", "", "GET", "/burano/v1/environments", nil, 200), "environments").([]any) {
		if field(one, "id") == id {
			return one
		}
	}
	s.t.Fatal("it is not listed")
	return nil
}

type states = map[string]any

func TestAStateBelongsToAComponentAndAnActionClearsNoFailure(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/v1/environments/" + id
	require.Equal(t, "new", field(s.listed(id), "state"))
	session := field(s.call("demo", "", "POST", path+"/configure", nil, 200), "id").(string)
	require.Equal(t, "new", field(s.listed(id), "state"), "a draft without changes")
	s.call("demo", session, "POST", path+"/services", with("a1", "alpha", nil), 200)
	require.Equal(t, "changed", field(s.listed(id), "state"))
	now, answer := s.components(id, session)
	require.Equal(t, states{"": "changed", "a1": "not deployed"}, now)
	require.Equal(t, "added", field(answer, "components", 0, "change"))
	s.call("demo", "", "DELETE", path+"/sessions/"+session, nil, 200)

	bad := with("b1", "beta", map[string]any{"parts": []any{with("b2", "part", map[string]any{"fail": true})}})
	s.deployed(id, "", with("a1", "alpha", nil), bad)
	now, answer = s.components(id, "")
	require.Equal(t, states{"": "failed", "a1": "ready", "b1": "failed"}, now)
	require.Equal(t, true, field(answer, "components", 1, "deployment", "failed"))
	require.Contains(t, field(answer, "components", 1, "deployment", "text"), "asked to fail")
	require.Equal(t, "beta", field(answer, "components", 1, "name"))
	require.Equal(t, "org.golden.Hello", field(answer, "components", 1, "type"))
	require.Equal(t, "deploy failure", field(s.call("demo", "", "GET", path, nil, 200), "status"))

	s.call("demo", "", "POST", path+"/actions/a1_shout", map[string]any{}, 200)
	s.awaitIdle(id)
	require.Equal(t, "ready", field(s.call("demo", "", "GET", path, nil, 200), "status"), "Murano's rule")
	one := s.listed(id)
	require.Equal(t, "failed", field(one, "state"))
	require.Equal(t, "ready", field(one, "status"))
	require.Equal(t, map[string]any{"failed": 1.0, "ready": 1.0}, field(one, "components"))
	page := s.call("demo", "", "GET", "/burano/v1/environments?limit=1&sort=name", nil, 200)
	require.Equal(t, []any{one}, field(page, "environments"))

	s.deployed(id, "", with("a1", "alpha", nil), with("b1", "beta", nil))
	now, _ = s.components(id, "")
	require.Equal(t, states{"": "ready", "a1": "ready", "b1": "ready"}, now)

	// A change belongs to its component.
	session = field(s.call("demo", "", "POST", path+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "PUT", path+"/services/a1/greeting", "servus", 200)
	s.call("demo", session, "DELETE", path+"/services/b1", nil, 200)
	now, answer = s.components(id, session)
	require.Equal(t, states{"": "changed", "a1": "changed", "b1": "ready"}, now)
	require.Equal(t, "changed", field(answer, "components", 0, "change"))
	require.Equal(t, "removed", field(answer, "components", 1, "change"))
	now, _ = s.components(id, "")
	require.Equal(t, states{"": "changed", "a1": "ready", "b1": "ready"}, now)
	s.call("demo", "", "DELETE", path+"/sessions/"+session, nil, 200)

	// And so do an action that failed, and findings.
	s.call("demo", "", "POST", path+"/actions/b1_boom", map[string]any{}, 200)
	s.awaitIdle(id)
	s.call("demo", "", "POST", path+"/actions/b1_shout", map[string]any{}, 200)
	s.awaitIdle(id)
	s.find(id, store.Finding{Duty: "health", ObjectID: "a1", Kind: "node-not-ready", Severity: "critical", Text: "it takes no pods", Mends: "deploy"})
	now, answer = s.components(id, "")
	require.Equal(t, states{"": "unhealthy", "a1": "unhealthy", "b1": "action failed"}, now)
	require.Equal(t, "boom", field(answer, "components", 1, "failures", 0, "method"))
	require.Equal(t, map[string]any{"critical": 1.0}, field(answer, "components", 0, "findings"))
	require.Equal(t, "unhealthy", field(s.listed(id), "state"))
	s.call("other", "", "GET", "/burano/v1/environments/"+id+"/components", nil, 403)
}

func TestARunningTaskIsTheStateOfItsComponents(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	s.deployed(id, "", with("a1", "alpha", nil), with("b1", "beta", map[string]any{"fail": true}))
	open := s.world.Hold("deploy gamma")
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", with("c1", "gamma", nil), 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	now, _ := s.components(id, "")
	require.Equal(t, states{"": "deploying", "a1": "deploying", "b1": "deploying"}, now)
	require.Equal(t, "deploying", field(s.listed(id), "state"))
	open()
	s.awaitIdle(id)
	now, _ = s.components(id, "")
	require.Equal(t, states{"": "failed", "a1": "ready", "b1": "failed", "c1": "ready"}, now)
}
