package api

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// shelved uploads a package of these files and returns its id.
func (s *server) shelved(token string, files fstest.MapFS) string {
	s.t.Helper()
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, files))
	meta, err := catalog.ParseMetadata([]byte("{}"))
	require.NoError(s.t, err)
	record, err := s.catalog.Upload(s.t.Context(), callers["{token:"+token+"}"], meta, archive.Bytes())
	require.NoError(s.t, err)
	return record.ID
}

func TestAPackageTellsWhatItsFilesHold(t *testing.T) {
	s := newServer(t)
	plain := s.shelved("demo", fstest.MapFS{
		"manifest.yaml":  {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Plain\nVersion: 1.2.3\nClasses: {org.test.Plain: A.yaml}\n")},
		"Classes/A.yaml": {Data: []byte("Name: org.test.Plain\n")},
	})
	rich := s.shelved("demo", fstest.MapFS{
		"manifest.yaml":  {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Rich\nClasses: {org.test.Rich: A.yaml}\n")},
		"Classes/A.yaml": {Data: []byte("Name: org.test.Rich\n")},
		"UI/ui.yaml":     {Data: []byte("Version: 2\n")},
		"logo.png":       {Data: []byte("\x89PNG\r\n\x1a\n")},
	})
	told := func(answer any) []any {
		return []any{field(answer, "version"), field(answer, "embedded"), field(answer, "has_ui"), field(answer, "has_logo"), field(answer, "has_supplier_logo")}
	}
	require.Equal(t, []any{"1.2.3", false, false, false, false}, told(s.call("demo", "", "GET", "/burano/v1/packages/"+plain, nil, 200)))
	require.Equal(t, []any{"0.0.0", false, true, true, false}, told(s.call("demo", "", "GET", "/burano/v1/packages/"+rich, nil, 200)))
	all := field(s.call("demo", "", "GET", "/burano/v1/packages?catalog=true&limit=100&order_by=fqn", nil, 200), "packages").([]any)
	require.Len(t, field(s.call("demo", "", "GET", "/v1/catalog/packages?catalog=true&limit=100", nil, 200), "packages"), len(all), "the same as in Murano's list")
	seen := 0
	for _, one := range all {
		require.NotNil(t, field(one, "has_ui"), field(one, "fully_qualified_name"))
		if field(one, "embedded") == true {
			seen++
		}
	}
	require.Positive(t, seen)
	first := s.call("demo", "", "GET", "/burano/v1/packages?catalog=true&limit=1", nil, 200)
	require.Len(t, field(first, "packages"), 1)
	require.NotEmpty(t, field(first, "next_marker"))
	require.NotContains(t, s.call("demo", "", "GET", "/v1/catalog/packages/"+rich, nil, 200), "has_ui", "Murano's answer is as it was")
	s.call("other", "", "GET", "/burano/v1/packages/"+rich, nil, 403)
	s.call("demo", "", "GET", "/burano/v1/packages/nothing", nil, 404)
}

func TestClassesAndObjectsAreFoundByWhatTheyExtend(t *testing.T) {
	s := newServer(t)
	s.shelved("demo", fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Loud\nRequire: {org.golden.Hello: }\n" +
			"Classes: {org.test.Loud: A.yaml, org.test.Louder: B.yaml}\n")},
		"Classes/A.yaml": {Data: []byte("Namespaces: {=: org.test, g: org.golden}\nName: Loud\nExtends: g:Hello\n")},
		"Classes/B.yaml": {Data: []byte("Namespaces: {=: org.test}\nName: Louder\nExtends: [Loud]\n")},
	})
	names := func(token, class string) []any {
		var found []any
		for _, one := range field(s.call(token, "", "GET", "/burano/v1/classes?extends="+class, nil, 200), "classes").([]any) {
			found = append(found, field(one, "name"))
		}
		return found
	}
	require.Equal(t, []any{"org.golden.Hello", "org.test.Loud", "org.test.Louder"}, names("demo", "org.golden.Hello"))
	require.Equal(t, []any{"org.golden.Hello"}, names("other", "org.golden.Hello"), "another project's package tells nothing")
	require.Contains(t, names("demo", "io.murano.Application"), "org.test.Louder")
	require.Contains(t, names("demo", ""), "io.murano.Object")
	require.Empty(t, names("demo", "org.test.Nothing"))

	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	first := hello("a1", "alpha")
	first["parts"] = []any{map[string]any{"?": map[string]any{"id": "p1", "type": "org.test.Louder", "name": "part"}, "greeting": "ho"}}
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", first, 200)
	path := "/burano/v1/environments/" + id + "/objects"
	require.Empty(t, field(s.call("demo", "", "GET", path+"?class=org.golden.Hello", nil, 200), "objects"), "nothing is deployed yet")
	require.Equal(t, []any{
		map[string]any{"id": "a1", "type": "org.golden.Hello", "name": "alpha", "path": "services[0]"},
		map[string]any{"id": "p1", "type": "org.test.Louder", "name": "part", "path": "services[0].parts[0]"},
	}, field(s.call("demo", session, "GET", path+"?class=org.golden.Hello", nil, 200), "objects"))
	require.Len(t, field(s.call("demo", session, "GET", path+"?class=org.test.Loud", nil, 200), "objects"), 1)
	require.Empty(t, field(s.call("demo", session, "GET", path+"?class=org.test.Nothing", nil, 200), "objects"))
	require.Greater(t, len(field(s.call("demo", session, "GET", path, nil, 200), "objects").([]any)), 2, "the environment and its network, too")
	s.call("other", "", "GET", path, nil, 403)
}

func TestAPackageIsReplacedAtOnceOrNotAtAll(t *testing.T) {
	s := newServer(t)
	of := func(name, version string) []byte {
		return zipArchive(t, zipEntry{name: "manifest.yaml", content: "Format: 1.4\nType: Application\nFullName: " + name + "\nVersion: " + version + "\nClasses: {" + name + ": A.yaml}\n"},
			zipEntry{name: "Classes/A.yaml", content: "Name: " + name + "\n"})
	}
	put := func(token, id string, archive []byte, status int) any {
		t.Helper()
		body, contentType := uploadForm(t, archive)
		answer := s.send("PUT", "/burano/v1/packages/"+id, map[string]string{"X-Auth-Token": "{token:" + token + "}", "Content-Type": contentType}, body)
		require.Equal(t, status, answer.Code, answer.Body.String())
		if status != 200 {
			return nil
		}
		var value any
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &value))
		return value
	}
	body, contentType := uploadForm(t, of("org.test.One", "1.0.0"))
	require.Equal(t, 200, s.send("POST", "/v1/catalog/packages", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": contentType}, body).Code)
	versions := func() map[string]string {
		found := map[string]string{}
		for _, one := range field(s.call("demo", "", "GET", "/burano/v1/packages?owned=true", nil, 200), "packages").([]any) {
			found[field(one, "id").(string)] = field(one, "version").(string)
		}
		return found
	}
	before := versions()
	require.Len(t, before, 1)
	var id string
	for id = range before {
	}
	put("demo", id, []byte("no zip"), 400)
	put("demo", id, of("org.test.Other", "1.0.0"), 400)
	put("other", id, of("org.test.One", "2.0.0"), 403)
	put("demo", "nothing", of("org.test.One", "2.0.0"), 404)
	require.Equal(t, before, versions(), "what is refused changes nothing")
	next := field(put("demo", id, of("org.test.One", "2.0.0"), 200), "id").(string)
	require.Equal(t, map[string]string{next: "2.0.0"}, versions())
	put("demo", id, of("org.test.One", "3.0.0"), 404)
	put("demo", next, of("org.test.One", "3.0.0"), 200)
	require.Len(t, versions(), 1)
}
