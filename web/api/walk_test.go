package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/policy"
)

// possessions are the ids of a project's things, by the name of the path parameter that takes them. A route with a parameter that is
// not here fails the walk: add a thing of the project, or a name that all projects share.
type possessions map[string]string

// populate gives the caller's project one of everything. The names of its things hold the mark.
func (s *server) populate(token, mark string) possessions {
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test." + mark + "\nName: " + mark + "-package\n" +
			"Classes: {org.test." + mark + ": A.yaml}\nUI: ui.yaml\nLogo: logo.png\nSupplier: {Logo: logo.png}\n")},
		"Classes/A.yaml": {Data: []byte("Name: org.test." + mark + "\nExtends: io.murano.Application\nProperties: {title: {Contract: $.string()}}\n")},
		"UI/ui.yaml": {Data: []byte("Version: 2\nApplication: {'?': {type: org.test." + mark + "}, title: $.site.title}\n" +
			"Forms: [{site: {fields: [{name: title, type: string, label: Title, required: false}]}}]\n")},
		"logo.png": {Data: []byte("\x89PNG\r\n\x1a\n")},
	}))
	meta, err := catalog.ParseMetadata([]byte("{}"))
	require.NoError(s.t, err)
	owned, err := s.catalog.Upload(s.t.Context(), callers["{token:"+token+"}"], meta, archive.Bytes())
	require.NoError(s.t, err)

	id := field(s.call(token, "", "POST", "/v1/environments", map[string]any{"name": mark + "-environment"}, 200), "id").(string)
	session := field(s.call(token, "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	object := fmt.Sprintf("%x", mark)
	s.call(token, session, "POST", "/v1/environments/"+id+"/services", hello(object, mark+"-application"), 200)
	component := object + "0"
	s.call(token, session, "POST", "/v1/environments/"+id+"/services", map[string]any{"?": map[string]any{"id": component, "type": "org.test." + mark}, "title": mark + "-component"}, 200)
	s.call(token, "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	task := field(s.call(token, "", "POST", "/v1/environments/"+id+"/actions/"+object+"_shout", map[string]any{}, 200), "task_id").(string)
	s.awaitIdle(id)
	session = field(s.call(token, "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)

	s.call(token, "", "PUT", "/burano/v1/environments/"+id+"/delegation", map[string]any{}, 200)

	template := field(s.call(token, "", "POST", "/v1/templates", map[string]any{"name": mark + "-template",
		"services": []any{hello(object, mark+"-application")}}, 200), "id").(string)

	kept := field(s.call(token, "", "POST", "/burano/v1/environments/"+id+"/clusters/"+object+"/snapshots", map[string]any{"reason": mark}, 200), "id").(string)

	gone := field(s.call(token, "", "POST", "/v1/environments", map[string]any{"name": mark + "-deleted"}, 200), "id").(string)
	s.call(token, "", "DELETE", "/v1/environments/"+gone, nil, 200)

	backedUp := store.Backup{ProjectID: callers["{token:"+token+"}"].ProjectID, EnvironmentID: id, EnvironmentName: mark + "-environment", Kind: store.Requested, Reason: mark,
		Model: store.Model{Objects: map[string]any{"name": mark + "-environment"}}}
	require.NoError(s.t, s.rows.Backups().Begin(s.t.Context(), &backedUp))
	require.NoError(s.t, s.rows.Backups().Keep(s.t.Context(), backedUp))

	s.call(token, "", "PUT", "/burano/v1/environments/"+id+"/backups/schedule", map[string]any{"hours": 24, "kept": 7}, 200)
	s.call(token, "", "PUT", "/burano/v1/environments/"+id+"/hibernation/schedule", map[string]any{"zone": "UTC", "sleep": []string{"0 20 * * 1-5"}}, 200)

	joining := store.JoinToken{EnvironmentID: id, ClusterID: object, Hash: mark, UserName: mark, Expires: store.Time(time.Now().Add(time.Hour).UnixMicro())}
	require.NoError(s.t, s.rows.JoinTokens().Add(s.t.Context(), &joining))

	return possessions{"snapshot": kept, "deleted": gone, "backup": backedUp.ID, "token": joining.ID, "environment": id, "session": session, "deployment": task, "task": task, "cluster": object, "component": component, "action": object + "_shout",
		"services/*": object, "model/*": "name", "package": owned.ID, "template": template, "class": "org.test." + mark,
		"host": serverOf(id), "hostlabel": kube.LabelID(serverOf(id), "disk"),
		"project": callers["{token:"+token+"}"].ProjectID}
}

// everybodys are the values of parameters that belong to no project.
func (s *server) everybodys() map[string]string {
	all, err := s.catalog.Categories(s.t.Context(), catalog.CategoryQuery{})
	require.NoError(s.t, err)
	return map[string]string{"state": "1", "category": all[0].ID, "methods": "any", "instance": "any", "kind": "flavors", "image": "any", "label": "any", "namespace": "default", "pod": "web", "workload": "web", "node": "murano-kube-2", "profile": "heap"}
}

// parameters lists the parameters of a route. A parameter "id" gets the name of its kind, and "*" is combined with the
// segment before it.
func parameters(route *echo.Route) []string {
	var names []string
	segments := strings.Split(route.Path, "/")
	for i, segment := range segments {
		switch name, isName := strings.CutPrefix(segment, ":"); {
		case segment == "*":
			names = append(names, segments[i-1]+"/*")
		case isName && name == "id" && strings.HasPrefix(route.Path, "/v1/catalog/packages/"):
			names = append(names, "package")
		case isName && name == "id" && strings.HasPrefix(route.Path, "/v1/catalog/categories/"):
			names = append(names, "category")
		case isName:
			names = append(names, name)
		}
	}
	return names
}

// stream ends the request at the first thing that is sent on: some answers never end by themselves.
type stream struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (r stream) Flush() {
	r.ResponseRecorder.Flush()
	r.end()
}

// visit calls the route with these values of its parameters, and a body that every method of its kind reads.
func (s *server) visit(route *echo.Route, values map[string]string, token, session string) *httptest.ResponseRecorder {
	s.t.Helper()
	names := parameters(route)
	var path []string
	for segment := range strings.SplitSeq(route.Path, "/") {
		if strings.HasPrefix(segment, ":") || segment == "*" {
			value, known := values[names[0]]
			require.Truef(s.t, known, "the walk knows no value of %q in %s %s: see possessions", names[0], route.Method, route.Path)
			segment, names = value, names[1:]
		}
		path = append(path, segment)
	}
	headers := map[string]string{sessionHeader: session}
	if token != "" {
		headers["X-Auth-Token"] = "{token:" + token + "}"
	}
	var payload any
	switch route.Method {
	case http.MethodPost, http.MethodPut:
		payload, headers[echo.HeaderContentType] = map[string]any{"name": "mine-now"}, echo.MIMEApplicationJSON
	case http.MethodPatch:
		payload, headers[echo.HeaderContentType] = []any{map[string]any{"op": "replace", "path": "/name", "value": "mine-now"}}, "application/murano-packages-json-patch"
		if strings.Contains(route.Path, "/model") {
			headers[echo.HeaderContentType] = "application/env-model-json-patch"
		}
	}
	var body []byte
	if payload != nil {
		var err error
		body, err = json.Marshal(payload)
		require.NoError(s.t, err)
	}
	// The limit is for a test that hangs.
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	request := httptest.NewRequestWithContext(ctx, route.Method, strings.Join(path, "/"), bytes.NewReader(body))
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	s.echo.ServeHTTP(stream{recorder, cancel}, request)
	return recorder
}

// walked are the registered routes that need a known caller.
func (s *server) walked() []*echo.Route {
	routes := slices.DeleteFunc(s.echo.Routes(), func(r *echo.Route) bool { return r.Method == echo.RouteNotFound || anonymous(r.Method, r.Path) })
	require.Greater(s.t, len(routes), 30)
	return routes
}

func merged(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, one := range maps {
		for key, value := range one {
			all[key] = value
		}
	}
	return all
}

func TestWithoutATokenThereIsNothing(t *testing.T) {
	s := newServer(t)
	mine := merged(s.populate("demo", "demos"), s.everybodys())
	for _, route := range s.walked() {
		for _, token := range []string{"", "nobody"} {
			recorder := s.visit(route, mine, token, mine["session"])
			require.Equal(t, 401, recorder.Code, "%s %s with the token %q: %s", route.Method, route.Path, token, recorder.Body)
			require.NotContains(t, recorder.Body.String(), "demos", "%s %s", route.Method, route.Path)
		}
	}
}

// TestAnotherProjectReachesNothing walks with the ids of another project: with all of them, and with one among the caller's own.
func TestAnotherProjectReachesNothing(t *testing.T) {
	s := newServer(t)
	theirs, everybodys := s.populate("demo", "demos"), s.everybodys()
	own := s.populate("other", "others")
	picture := func() []any {
		environment := "/v1/environments/" + theirs["environment"]
		return []any{
			s.call("demo", "", "GET", "/v1/environments", nil, 200), s.call("demo", "", "GET", environment, nil, 200),
			s.call("demo", theirs["session"], "GET", environment, nil, 200), s.call("demo", theirs["session"], "GET", environment+"/services", nil, 200),
			s.call("demo", "", "GET", environment+"/deployments", nil, 200), s.call("demo", "", "GET", environment+"/sessions/"+theirs["session"], nil, 200),
			s.call("demo", "", "GET", "/v1/catalog/packages?owned=true", nil, 200), s.call("demo", "", "GET", "/v1/templates/"+theirs["template"], nil, 200),
		}
	}
	before := picture()
	for i, route := range s.walked() {
		name := route.Method + " " + route.Path
		var ids []string // parameters that take a project's things
		for _, parameter := range parameters(route) {
			if _, isOwned := theirs[parameter]; isOwned {
				ids = append(ids, parameter)
			}
		}
		refused := []int{403, 404}
		if len(ids) == 0 {
			refused = nil // things that the caller's own project, or all, may see
		}
		check := func(recorder *httptest.ResponseRecorder, what string, statuses []int) {
			t.Helper()
			if statuses != nil {
				require.Contains(t, statuses, recorder.Code, "%s, %s: %s", name, what, recorder.Body)
			}
			require.NotContains(t, recorder.Body.String(), "demos-", "%s, %s, shows something of another project", name, what)
		}
		check(s.visit(route, merged(theirs, everybodys), "other", theirs["session"]), "all ids of another project", refused)
		sessionless := refused
		if route.Method != http.MethodGet && strings.Contains(route.Path, "/environments/:environment/services") {
			sessionless = []int{400} // whatever the environment is: Murano looks for the session first
		}
		check(s.visit(route, merged(theirs, everybodys), "other", ""), "all ids of another project, without a session", sessionless)
		if len(ids) == 0 {
			continue
		}
		for _, id := range ids {
			if len(ids) == 1 || strings.HasSuffix(id, "/*") {
				continue // nothing besides it; a path below one's own environment
			}
			// A session or a task of another environment is no part of this one: Murano answers 400 to it.
			check(s.visit(route, merged(own, everybodys, map[string]string{id: theirs[id]}), "other", own["session"]),
				"the "+id+" of another project among own ids", []int{400, 403, 404})
		}
		if slices.Contains(ids, "environment") && strings.Contains(route.Path, "/services") {
			check(s.visit(route, merged(own, everybodys), "other", theirs["session"]), "the session of another project", []int{400})
		}
		own = s.renewed("other", own, fmt.Sprintf("others%d", i))
	}
	require.Equal(t, before, picture(), "what belongs to the other project is as it was")
}

// renewed gives the caller everything anew when the last visit took something away.
func (s *server) renewed(token string, own possessions, mark string) possessions {
	s.awaitIdle(own["environment"])
	path := "/v1/environments/" + own["environment"]
	headers := map[string]string{"X-Auth-Token": "{token:" + token + "}"}
	if s.send("GET", path, headers, nil).Code != 200 || s.send("GET", path+"/sessions/"+own["session"], headers, nil).Code != 200 ||
		s.send("GET", "/v1/catalog/packages/"+own["package"], headers, nil).Code != 200 ||
		s.send("GET", "/v1/templates/"+own["template"], headers, nil).Code != 200 {
		return s.populate(token, mark)
	}
	return own
}

// TestAReaderWritesNothing walks with the ids of the reader's own project.
func TestAReaderWritesNothing(t *testing.T) {
	// Routes that give rights need more than a reader; routes that change nothing, or only the caller's own session,
	// are open.
	closed := []string{"GET /burano/v1/audit", "GET /burano/v1/projects", "GET /burano/v1/doctor", "GET /burano/v1/profiles/:profile", "GET /v1/environments/:environment/actions/:task",
		"GET /burano/v1/snapshots/:snapshot/content"}
	opened := []string{"POST /burano/v1/forms/:package", "POST /burano/v1/environments/:environment/components/:component/form", "PUT /burano/v1/session/project"}
	s := newServer(t)
	mine := merged(s.populate("demo", "demos"), s.everybodys())
	s.call("demo", "", "PUT", "/v1/templates/"+mine["template"], map[string]any{"name": "public", "is_public": true}, 200)
	for _, route := range s.walked() {
		name := route.Method + " " + route.Path
		recorder := s.visit(route, mine, "reader", "")
		if reads := route.Method == http.MethodGet || slices.Contains(opened, name); reads && !slices.Contains(closed, name) {
			require.NotEqual(t, 403, recorder.Code, "%s: %s", name, recorder.Body)
		} else {
			require.Equal(t, 403, recorder.Code, "%s: %s", name, recorder.Body)
		}
	}
}

// TestAMemberMayWhatThePolicyGivesThem walks with the member's own ids, each route in a world of its own, because some destroy it.
func TestAMemberMayWhatThePolicyGivesThem(t *testing.T) {
	rule := policy.New().Apply(identity.Caller{Roles: []string{"member"}})
	for _, route := range newServer(t).walked() {
		t.Run(route.Method+" "+route.Path, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			mine := merged(s.populate("demo", "demos"), s.everybodys())
			// Only public templates can be cloned.
			s.call("demo", "", "PUT", "/v1/templates/"+mine["template"], map[string]any{"name": "public", "is_public": true}, 200)
			recorder := s.visit(route, mine, "demo", mine["session"])
			if !rule.May(rules[route.Method+" "+route.Path]) {
				require.Equal(t, 403, recorder.Code, "%s", recorder.Body)
				return
			}
			// The request is not always valid for the route, nor the environment in the right state.
			require.Contains(t, []int{200, 202, 400, 409}, recorder.Code, "%s", recorder.Body)
		})
	}
}
