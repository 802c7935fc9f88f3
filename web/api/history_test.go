package api

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/envelope"
)

// keeper is an application with a secret and a value that code computes.
func keeper(id, name, password string) map[string]any {
	return map[string]any{"?": map[string]any{"id": id, "type": "org.test.Keeper"}, "name": name, "password": password}
}

// upload gives the catalog a version of the package of keepers.
func (s *server) upload(version string) (id string) {
	s.t.Helper()
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.keeper\nName: Keeper\nVersion: " + version + "\nClasses: {org.test.Keeper: Keeper.yaml}\n")},
		"Classes/Keeper.yaml": {Data: []byte(`Namespaces: {=: org.test, std: io.murano}
Name: Keeper
Extends: std:Application
Properties:
  name: {Contract: $.string().notNull()}
  password: {Contract: $.string().notNull()}
  note: {Contract: $.string()}
  size: {Usage: InOut, Contract: $.int().notNull(), Default: 3}
  made: {Usage: Out, Contract: $.string()}
Methods:
  deploy:
    Body:
      - $.made: $.name + ' of ` + version + `'
  grow:
    Scope: Public
    Body:
      - $.size: $.size + 1
`)},
	}))
	meta, err := catalog.ParseMetadata([]byte("{}"))
	require.NoError(s.t, err)
	made, err := s.catalog.Upload(s.t.Context(), callers["{token:demo}"], meta, archive.Bytes())
	require.NoError(s.t, err)
	return made.ID
}

// deployed deploys applications into an environment, in place of its present ones.
func (s *server) deployed(id, query string, applications ...any) {
	s.t.Helper()
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "PUT", "/v1/environments/"+id+"/services", applications, 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy"+query, nil, 200)
	s.awaitIdle(id)
}

func TestEachStateOfAnEnvironmentIsKeptAndComesBack(t *testing.T) {
	s := newServer(t)
	pkg := s.upload("1.0.0")
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id
	require.Equal(t, map[string]any{"states": []any{}, "present": 0.0}, s.call("demo", "", "GET", path+"/history", nil, 200))

	digest := strings.Repeat("0a", 32)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/any/deploy?digest=short", nil, 400)
	s.deployed(id, "?file=one.yaml&digest="+digest, keeper("a1", "alpha", "first secret"))
	s.deployed(id, "", keeper("a1", "alpha", "first secret")) // changes nothing
	s.deployed(id, "", keeper("a1", "Alpha", "second secret"), keeper("a2", "beta", "another secret"))
	s.call("demo", "", "POST", "/v1/environments/"+id+"/actions/a1_grow", map[string]any{}, 200)
	s.awaitIdle(id)

	history := s.call("demo", "", "GET", path+"/history", nil, 200)
	require.Equal(t, 3.0, field(history, "present"))
	states := field(history, "states").([]any)
	require.Len(t, states, 3, "a deployment that changes nothing is no state")
	var from []any
	for _, one := range states {
		from = append(from, []any{field(one, "number"), field(one, "method"), field(one, "file"), field(one, "digest"), field(one, "user_id"), field(one, "back")})
	}
	require.Equal(t, []any{[]any{3.0, "grow", "", "", "u-demo", 0.0}, []any{2.0, "deploy", "", "", "u-demo", 0.0}, []any{1.0, "deploy", "one.yaml", digest, "u-demo", 0.0}}, from)
	require.Contains(t, field(states[2], "packages"), map[string]any{"name": "org.test.keeper", "version": "1.0.0", "id": pkg})
	require.NotContains(t, s.send("GET", path+"/history", asDemo, nil).Body.String(), "secret")

	first := s.call("demo", "", "GET", path+"/history/1", nil, 200)
	require.Equal(t, "*** SANITIZED ***", field(first, "model", "services", 0, "password"))
	require.Equal(t, "alpha", field(first, "model", "services", 0, "name"))
	s.call("demo", "", "GET", path+"/history/9", nil, 404)
	s.call("demo", "", "GET", path+"/history/x", nil, 404)
	s.call("other", "", "GET", path+"/history", nil, 403)
	s.call("reader", "", "POST", path+"/history/1/session", map[string]any{}, 403)

	changes := field(s.call("demo", "", "GET", path+"/history/1/changes?to=2", nil, 200), "changes").([]any)
	require.Len(t, changes, 3)
	require.Equal(t, []any{"name", "password"}, field(changes[1], "properties"), "what code computes is no difference")
	require.Equal(t, map[string]any{"name": "password", "before": "*** SANITIZED ***", "after": "*** SANITIZED ***"}, field(changes[1], "values", 1))
	require.Equal(t, "added", field(changes[2], "change"))
	changes = field(s.call("demo", "", "GET", path+"/history/2/changes", nil, 200), "changes").([]any)
	require.Len(t, changes, 1)
	require.Equal(t, []any{map[string]any{"name": "size", "before": 3.0, "after": 4.0}}, field(changes[0], "values"))

	back := func(secrets string) any {
		t.Helper()
		opened := s.call("demo", "", "POST", path+"/history/1/session", map[string]any{"secrets": secrets}, 200)
		session := field(opened, "id").(string)
		preview := s.call("demo", "", "GET", path+"/sessions/"+session+"/preview", nil, 200)
		require.Empty(t, field(preview, "problems"))
		s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
		s.awaitIdle(id)
		require.Equal(t, 1.0, field(s.call("demo", "", "GET", path+"/history", nil, 200), "states", 0, "back"))
		services := s.call("demo", "", "GET", "/v1/environments/"+id+"/services", nil, 200)
		require.Len(t, services, 1)
		require.Equal(t, []any{"alpha", 3.0, "alpha of 1.0.0"}, []any{field(services, 0, "name"), field(services, 0, "size"), field(services, 0, "made")})
		return field(services, 0, "password")
	}
	require.Equal(t, "second secret", back("now"))
	require.Equal(t, "first secret", back("then"))
	s.call("demo", "", "POST", path+"/history/1/session", map[string]any{"secrets": "mine"}, 400)
	require.Equal(t, 5.0, field(s.call("demo", "", "GET", path+"/history", nil, 200), "present"))

	session := field(s.call("demo", "", "POST", path+"/history/2/session", map[string]any{}, 200), "id").(string)
	s.call("demo", session, "PUT", "/v1/environments/"+id+"/services/a1/name", "another", 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	require.Equal(t, []any{6.0, 0.0}, []any{field(s.call("demo", "", "GET", path+"/history", nil, 200), "present"), field(s.call("demo", "", "GET", path+"/history", nil, 200), "states", 0, "back")},
		"an edited draft is not that state")
}

func TestAFailureIsNoStateAndTheLastOneComesBack(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id
	s.deployed(id, "", hello("a1", "alpha"))
	failing := hello("a2", "beta")
	failing["fail"] = true
	s.deployed(id, "", hello("a1", "Alpha"), failing)
	history := s.call("demo", "", "GET", path+"/history", nil, 200)
	require.Equal(t, 0.0, field(history, "present"))
	require.Len(t, field(history, "states"), 1)

	require.Equal(t, map[string]any{"discarded": false}, s.call("demo", "", "POST", path+"/discard", nil, 200), "it has begun")
	session := field(s.call("demo", "", "POST", path+"/history/1/session", map[string]any{}, 200), "id").(string)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	require.Contains(t, s.world.Log(), "destroy beta", "what the failed deployment has made goes")
	require.Equal(t, "ready", field(s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200), "status"))
	require.Equal(t, "alpha", field(s.call("demo", "", "GET", "/v1/environments/"+id+"/services/a1", nil, 200), "name"))
	require.Equal(t, 1.0, field(s.call("demo", "", "GET", path+"/history", nil, 200), "states", 0, "back"))
}

func TestAStateComesBackWithItsPackagesOrNamesThem(t *testing.T) {
	s := newServer(t)
	first := s.upload("1.0.0")
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id
	made := func() any {
		return field(s.call("demo", "", "GET", "/v1/environments/"+id+"/services/a1", nil, 200), "made")
	}
	s.deployed(id, "", keeper("a1", "alpha", "first secret"))
	require.Equal(t, "alpha of 1.0.0", made())
	s.call("demo", "", "DELETE", "/v1/catalog/packages/"+first, nil, 200)
	second := s.upload("2.0.0")
	s.deployed(id, "", keeper("a1", "alpha", "first secret"))
	require.Equal(t, "alpha of 2.0.0", made())
	packages := field(s.call("demo", "", "GET", path+"/history/1/changes?to=2", nil, 200), "packages").([]any)
	require.Equal(t, []any{map[string]any{"name": "org.test.keeper", "before": "1.0.0 (" + first + ")", "after": "2.0.0 (" + second + ")"}}, packages)

	refused := s.send("POST", path+"/history/1/session", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json"}, []byte("{}"))
	require.Equal(t, 409, refused.Code, "%s", refused.Body)
	require.Contains(t, refused.Body.String(), "org.test.keeper 1.0.0")
	s.call("demo", "", "DELETE", "/v1/catalog/packages/"+second, nil, 200)
	s.upload("1.0.0")
	opened := s.call("demo", "", "POST", path+"/history/1/session", map[string]any{}, 200)
	require.Len(t, field(opened, "notes"), 1, "it may be another one: %v", opened)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+field(opened, "id").(string)+"/deploy", nil, 200)
	s.awaitIdle(id)
	require.Equal(t, "alpha of 1.0.0", made())
}

func TestAnExportHasTheDescriptionAndTheMetadataOfTheEnvironment(t *testing.T) {
	s := newServer(t)
	s.upload("1.0.0")
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one", "description_text": "the first"}, 200), "id").(string)
	path := "/v1/environments/" + id
	s.deployed(id, "", keeper("a1", "alpha", "first secret"))
	export := func() any { return s.call("demo", "", "GET", "/burano"+path+"/export", nil, 200) }
	require.Equal(t, map[string]any{}, field(export(), "metadata"))
	session := field(s.call("demo", "", "POST", path+"/configure", nil, 200), "id").(string)
	recorder := s.send("PATCH", path+"/model", map[string]string{"X-Auth-Token": "{token:demo}", "X-Configuration-Session": session,
		"Content-Type": "application/env-model-json-patch"}, []byte(`[{"op": "add", "path": "/?/metadata", "value": {"org.test": {"tier": "front"}}}]`))
	require.Equal(t, 200, recorder.Code, recorder.Body)
	preview := s.call("demo", "", "GET", "/burano"+path+"/sessions/"+session+"/preview", nil, 200)
	require.Equal(t, []any{"?.metadata"}, field(preview, "changes", 0, "properties"), "a preview shows it")
	s.call("demo", "", "POST", path+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	require.Equal(t, "the first", field(export(), "description"))
	require.Equal(t, map[string]any{"org.test": map[string]any{"tier": "front"}}, field(export(), "metadata"))
}

func TestAnExportHasNoSecretsUnlessTheyAreSealed(t *testing.T) {
	s := newServer(t)
	s.upload("1.0.0")
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id + "/export"
	s.deployed(id, "", keeper("a1", "alpha", "first secret"))
	s.deployed(id, "", keeper("a1", "Alpha", "second secret"))

	export := s.call("demo", "", "GET", path, nil, 200)
	application := func(password any, name string) map[string]any {
		return map[string]any{"?": map[string]any{"id": "a1", "type": "org.test.Keeper"}, "name": name, "password": password, "size": 3.0}
	}
	require.Equal(t, []any{application("*** SANITIZED ***", "Alpha")}, field(export, "applications"), "neither null, nor what code computes, nor actions")
	require.Nil(t, field(export, "defaultNetworks"), "each environment gets these")
	require.Equal(t, "one", field(export, "name"))
	require.Equal(t, []any{application("*** SANITIZED ***", "alpha")}, field(s.call("demo", "", "GET", path+"?state=1", nil, 200), "applications"))

	key, err := envelope.NewKey()
	require.NoError(t, err)
	sealed := s.call("demo", "", "POST", path, map[string]any{"recipient": key.Recipient()}, 200)
	require.NotContains(t, field(sealed, "applications", 0, "password"), "secret")
	opened, err := key.Open(field(sealed, "applications"))
	require.NoError(t, err)
	require.Equal(t, []any{application("second secret", "Alpha")}, opened)
	s.call("demo", "", "POST", path, map[string]any{"recipient": "me"}, 400)
	s.call("demo", "", "POST", path, map[string]any{}, 400)
	s.call("reader", "", "POST", path, map[string]any{"recipient": key.Recipient()}, 403)
	s.call("other", "", "GET", path, nil, 403)

	// Into the same environment the file changes nothing.
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "PUT", "/v1/environments/"+id+"/services", field(export, "applications"), 200)
	require.Empty(t, field(s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/sessions/"+session+"/preview", nil, 200), "changes"))
	// Elsewhere the mark is refused.
	s.call("demo", "", "POST", "/burano/v1/preview", map[string]any{"name": "two", "services": field(export, "applications")}, 400)
}
