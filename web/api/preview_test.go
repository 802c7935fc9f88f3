package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPreviewSaysWhatADeploymentWouldDo(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := func() string {
		return field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	}
	base := "/burano/v1/environments/" + id + "/sessions/"
	first := session()
	alpha := plainHello("a1", "alpha")
	alpha["greeting"] = "good morning"
	s.call("demo", first, "POST", "/v1/environments/"+id+"/services", []any{alpha, plainHello("a2", "beta")}, 200)
	preview := s.call("demo", "", "GET", base+first+"/preview", nil, 200)
	require.Equal(t, []any{}, field(preview, "problems"))
	added := field(preview, "changes").([]any)
	require.Len(t, added, 4, "the environment, its network and the two applications: %v", added)
	require.Equal(t, map[string]any{"change": "added", "id": "a2", "type": "org.golden.Hello", "name": "beta", "path": "services[1]", "properties": []any{}, "values": []any{}}, added[3])
	require.Empty(t, s.world.Log(), "nothing is done")
	s.call("other", "", "GET", base+first+"/preview", nil, 403)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+first+"/deploy", nil, 200)
	s.awaitIdle(id)

	second := session()
	require.Equal(t, []any{}, field(s.call("demo", "", "GET", base+second+"/preview", nil, 200), "changes"), "nothing was drafted yet")
	changed := plainHello("a1", "alpha the second")
	changed["parts"] = []any{plainHello("p1", "part")}
	changed["count"] = -1
	delete(changed, "greeting")
	changed["fail"] = 0 // which its class converts to false
	s.call("demo", second, "PUT", "/v1/environments/"+id+"/services", []any{changed}, 200)
	preview = s.call("demo", "", "GET", base+second+"/preview", nil, 200)
	require.Equal(t, []any{
		map[string]any{"change": "changed", "id": id, "type": "io.murano.Environment", "name": "one", "path": "", "properties": []any{"services"},
			"values": []any{map[string]any{"name": "services", "before": []any{"a1", "a2"}, "after": []any{"a1"}}},
			"names":  map[string]any{"a1": "alpha the second", "a2": "beta"}},
		map[string]any{"change": "changed", "id": "a1", "type": "org.golden.Hello", "name": "alpha the second", "path": "services[0]", "properties": []any{"count", "greeting", "name", "parts"},
			"values": []any{
				map[string]any{"name": "count", "before": 0.0, "after": -1.0},
				map[string]any{"name": "greeting", "before": "good morning", "after": "hello"},
				map[string]any{"name": "name", "before": "alpha", "after": "alpha the second"},
				map[string]any{"name": "parts", "before": []any{}, "after": []any{"p1"}}},
			"names": map[string]any{"p1": "part"}},
		map[string]any{"change": "added", "id": "p1", "type": "org.golden.Hello", "name": "part", "path": "services[0].parts[0]", "properties": []any{}, "values": []any{}},
		map[string]any{"change": "removed", "id": "a2", "type": "org.golden.Hello", "name": "beta", "path": "services[1]", "properties": []any{}, "values": []any{}},
	}, field(preview, "changes"))
	require.Equal(t, []any{}, field(preview, "losses"), "it has nothing in the cloud")
	problems := field(preview, "problems").([]any)
	require.Len(t, problems, 1)
	require.Equal(t, "services[0].count", field(problems[0], "path"))
}

// The draft of a session is edited in two tabs: the deployment is that of the preview in the first one.
func TestADeploymentAddsNothingThatItsPreviewDidNotShow(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	shown := func(change func(session string)) (deploy string) {
		session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
		change(session)
		plan := field(s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/sessions/"+session+"/preview", nil, 200), "plan").(string)
		return "/v1/environments/" + id + "/sessions/" + session + "/deploy?plan=" + plan
	}
	refused := func(deploy, more string) {
		t.Helper()
		answer := s.send("POST", deploy, map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
		require.Equal(t, 409, answer.Code)
		require.Contains(t, answer.Body.String(), "The deployment does more than was shown, since something has changed: "+more+". Nothing was done.")
	}
	var session string
	services := "/v1/environments/" + id + "/services"
	deploy := shown(func(opened string) {
		session = opened
		s.call("demo", session, "POST", services, plainHello("a1", "alpha"), 200)
	})
	s.call("demo", session, "POST", services, plainHello("a2", "beta"), 200)
	refused(deploy, "beta (org.golden.Hello) is added") // also at the first deployment
	s.call("demo", session, "DELETE", services+"/a2", nil, 200)
	s.call("demo", "", "POST", deploy, nil, 200)
	s.awaitIdle(id)

	deploy = shown(func(opened string) { session = opened })
	s.call("demo", session, "PUT", services+"/a1/name", "gamma", 200)
	refused(deploy, "gamma (org.golden.Hello) is changed: name")
	s.call("demo", session, "PUT", services+"/a1/name", "alpha", 200)
	s.call("demo", "", "POST", deploy, nil, 200)
	s.awaitIdle(id)
	require.Len(t, field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments"), 2)
}

func TestAPreviewOfAnEnvironmentThatIsNotThereStoresNothing(t *testing.T) {
	s := newServer(t)
	wanted := func(change func(services []any)) map[string]any {
		services := []any{plainHello("a1", "alpha"), plainHello("a2", "beta")}
		change(services)
		return map[string]any{"name": "one", "services": services}
	}
	good := wanted(func([]any) {})
	preview := s.call("demo", "", "POST", "/burano/v1/preview", good, 200)
	require.Equal(t, []any{}, field(preview, "problems"))
	added := field(preview, "changes").([]any)
	require.Len(t, added, 4, "the environment, its network and the two applications: %v", added)
	require.Equal(t, map[string]any{"change": "added", "id": "a2", "type": "org.golden.Hello", "name": "beta", "path": "services[1]", "properties": []any{}, "values": []any{}}, added[3])
	require.Empty(t, s.world.Log(), "nothing is done")
	require.Empty(t, field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments"))

	problems := field(s.call("demo", "", "POST", "/burano/v1/preview", wanted(func(services []any) { services[1].(map[string]any)["count"] = -1 }), 200), "problems").([]any)
	require.Len(t, problems, 1)
	require.Equal(t, "services[1].count", field(problems[0], "path"))

	s.call("demo", "", "POST", "/burano/v1/preview", map[string]any{"name": " ", "services": []any{}}, 400)
	s.call("demo", "", "POST", "/burano/v1/preview", map[string]any{"name": "one"}, 400)
	s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200)
	s.call("demo", "", "POST", "/burano/v1/preview", good, 409)
}

func TestADeletionSaysWhatItWouldCost(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	require.Equal(t, map[string]any{"means": []any{}, "goes": []any{}, "stays": []any{}, "consents": []any{}, "busy": nil, "undelete_seconds": 3600.0}, s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/deletion", nil, 200), "it has no cluster")
	s.call("other", "", "GET", "/burano/v1/environments/"+id+"/deletion", nil, 403)
	s.call("demo", "", "GET", "/burano/v1/environments/gone/deletion", nil, 404)
}

func TestADraftIsCheckedWhenItIsAskedFor(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	services := "/v1/environments/" + id + "/services"
	bad := hello("a1", "alpha")
	bad["count"] = -1
	bad["parts"] = []any{map[string]any{"?": map[string]any{"id": "p1", "type": "org.golden.Hello"}}}
	for _, method := range []string{"POST", "PUT"} {
		refused := s.call("demo", session, method, services+"?validate=true", []any{bad}, 400)
		var paths []any
		for _, problem := range field(refused, "problems").([]any) {
			paths = append(paths, field(problem, "path"))
			require.NotEmpty(t, field(problem, "message"))
		}
		require.ElementsMatch(t, []any{"services[0].count", "services[0].parts[0].name", "services[0].password"}, paths, "all at once, and what the class does not know")
		require.Empty(t, s.call("demo", session, "GET", services, nil, 200), "nothing was drafted")
	}
	s.call("demo", session, "POST", services+"?validate=true", plainHello("a1", "alpha"), 200)
	require.Len(t, s.call("demo", session, "GET", services, nil, 200), 1)
	s.call("demo", session, "PUT", services, []any{bad}, 200) // as Murano takes it
}

// plainHello is hello without the properties that the class does not know.
func plainHello(id, name string) map[string]any {
	made := hello(id, name)
	delete(made, "password")
	return made
}

func TestKeysThatAClassDoesNotKnowAreProblemsOfADraftAndNotOfMuranosAPI(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	wrong := plainHello("a1", "alpha")
	wrong["greetin"], wrong["networking"] = "hi", map[string]any{}
	s.call("demo", session, "PUT", "/v1/environments/"+id+"/services", []any{wrong}, 200)
	problems := field(s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/sessions/"+session+"/preview", nil, 200), "problems").([]any)
	require.Equal(t, []any{
		map[string]any{"path": "services[0].greetin", "class": "org.golden.Hello", "message": "greetin is not known, and has no effect: did you mean greeting?"},
		map[string]any{"path": "services[0].networking", "class": "org.golden.Hello", "message": "networking is not known, and has no effect: leave it out"},
	}, problems)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	require.Equal(t, "ready", field(s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200), "status"), "as in Murano")
}
