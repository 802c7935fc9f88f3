package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
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
	s.call("demo", first, "POST", "/v1/environments/"+id+"/services", []any{hello("a1", "alpha"), hello("a2", "beta")}, 200)
	preview := s.call("demo", "", "GET", base+first+"/preview", nil, 200)
	require.Equal(t, []any{}, field(preview, "problems"))
	added := field(preview, "changes").([]any)
	require.Len(t, added, 4, "the environment, its network and the two applications: %v", added)
	require.Equal(t, map[string]any{"change": "added", "id": "a2", "type": "org.golden.Hello", "name": "beta", "path": "services[1]", "properties": []any{}}, added[3])
	require.Empty(t, s.world.Log(), "nothing is done")
	s.call("other", "", "GET", base+first+"/preview", nil, 403)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+first+"/deploy", nil, 200)
	s.settled(id)

	second := session()
	require.Equal(t, []any{}, field(s.call("demo", "", "GET", base+second+"/preview", nil, 200), "changes"), "nothing was drafted yet")
	changed := hello("a1", "alpha the second")
	delete(changed, "password") // which the class does not know
	changed["parts"] = []any{hello("p1", "part")}
	changed["count"] = -1
	s.call("demo", second, "PUT", "/v1/environments/"+id+"/services", []any{changed}, 200)
	preview = s.call("demo", "", "GET", base+second+"/preview", nil, 200)
	require.Equal(t, []any{
		map[string]any{"change": "changed", "id": id, "type": "io.murano.Environment", "name": "one", "path": "", "properties": []any{"services"}},
		map[string]any{"change": "changed", "id": "a1", "type": "org.golden.Hello", "name": "alpha the second", "path": "services[0]", "properties": []any{"count", "name", "parts"}},
		map[string]any{"change": "added", "id": "p1", "type": "org.golden.Hello", "name": "part", "path": "services[0].parts[0]", "properties": []any{}},
		map[string]any{"change": "removed", "id": "a2", "type": "org.golden.Hello", "name": "beta", "path": "services[1]", "properties": []any{}},
	}, field(preview, "changes"))
	problems := field(preview, "problems").([]any)
	require.Len(t, problems, 1)
	require.Equal(t, "services[0].count", field(problems[0], "path"))
}

func TestWhatACallerMayChooseFromIsAskedForThem(t *testing.T) {
	s := newServer(t)
	require.Equal(t, []any{"availability-zones of " + goldenDemo}, field(s.call("demo", "", "GET", "/burano/v1/cloud/availability-zones", nil, 200), "availability_zones"))
	without := newServer(t, func(c *Config) { c.Choices = nil })
	without.call("demo", "", "GET", "/burano/v1/cloud/flavors", nil, 404)
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
		require.ElementsMatch(t, []any{"services[0].count", "services[0].parts[0].name"}, paths, "all at once")
		require.Empty(t, s.call("demo", session, "GET", services, nil, 200), "nothing was drafted")
	}
	s.call("demo", session, "POST", services+"?validate=true", hello("a1", "alpha"), 200)
	require.Len(t, s.call("demo", session, "GET", services, nil, 200), 1)
	s.call("demo", session, "PUT", services, []any{bad}, 200) // as Murano takes it
}

// TestEventsTellStateAndReportsAsTheyCome follows a deployment that waits, and one that warns.
func TestEventsTellStateAndReportsAsTheyCome(t *testing.T) {
	s := newServer(t)
	server := httptest.NewServer(s.echo)
	defer server.Close()
	open := s.world.Hold("deploy alpha")
	defer open()
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", hello("a1", "alpha"), 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	task := field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments", 0, "id").(string)
	follow := func(last string) (next func() string) {
		request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/burano/v1/deployments/"+task+"/events", nil)
		require.NoError(t, err)
		request.Header.Set("X-Auth-Token", "{token:demo}")
		request.Header.Set("Last-Event-ID", last)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		return func() (event string) {
			for lines.Scan() && lines.Text() != "" {
				if !strings.HasPrefix(lines.Text(), "data: {\"created\"") {
					event += lines.Text() + "\n"
				}
			}
			return event
		}
	}
	first := follow("")
	require.Equal(t, "event: report\nid: 1\n", first())
	state := "event: state\ndata: {\"state\":\"running\"}\n"
	second := first()
	if second == state { // the report may come before or after it
		second = first()
	} else {
		require.Equal(t, state, first())
	}
	require.Equal(t, "event: report\nid: 2\n", second)
	again := follow("2")
	require.Equal(t, state, again(), "who comes back is told the state at once, and no report twice")
	open()
	for _, next := range []func() string{first, again} {
		require.Equal(t, "event: report\nid: 3\n", next())
		require.Equal(t, "event: end\ndata: {\"state\":\"success\"}\n", next())
		require.Empty(t, next())
	}
}

func TestErrorsBelowBuranoAreJSONInPlainWords(t *testing.T) {
	s := newServer(t)
	for _, accept := range []string{"", "text/html", "application/json", "text/event-stream"} {
		recorder := s.send("GET", "/burano/v1/deployments/nope/events", map[string]string{"X-Auth-Token": "{token:demo}", "Accept": accept}, nil)
		require.Equal(t, 404, recorder.Code)
		require.JSONEq(t, `{"code": 404, "title": "Not Found", "message": "The resource could not be found: there is no deployment nope"}`, recorder.Body.String())
	}
}

func TestAClusterIsDescribedToThoseWhoMaySeeIt(t *testing.T) {
	s := newServer(t)
	mine := s.settle("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/"
	require.Equal(t, mine["environment"]+"/"+mine["cluster"], field(s.call("demo", "", "GET", path+mine["cluster"], nil, 200), "name"))
	s.call("demo", "", "GET", path+"nothing", nil, 404)
	s.call("other", "", "GET", path+mine["cluster"], nil, 403)
}
