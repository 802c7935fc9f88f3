package api

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

const formsClass = `
Namespaces: {=: org.test, std: io.murano}
Name: Site
Extends: std:Application
Properties:
  title: {Contract: $.string().notNull()}
  size: {Contract: $.int().notNull()}
  secret: {Contract: $.string()}
Methods:
  choices:
    Usage: Static
    Scope: Public
    Body:
      Return: {smallest: 2, sizes: {s: Small, l: Large}}
  broken:
    Usage: Static
    Scope: Public
    Body:
      - Throw: Broken
        Message: no choices today
`

const formsUI = `
Version: 2.4
ParametersSource: choices
Application:
  ?: {type: org.test.Site}
  title: $.site.title
  size: $.site.size
  secret: $.site.secret
Forms:
- site:
    fields:
    - {name: title, type: string, label: Title, maxLength: 10}
    - {name: size, type: integer, minValue: $smallest, initial: $smallest}
    - {name: kind, type: choice, choices: $sizes, initial: s}
    - {name: secret, type: password}
    validators:
    - {expr: $.site.title != secret, message: The title tells the secret}
`

// formed uploads a package with this UI definition, none when it is "".
func (s *server) formed(token, definition string) string {
	files := fstest.MapFS{
		"manifest.yaml":     {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Site\nName: A site\nVersion: 1.2.3\nClasses: {org.test.Site: Site.yaml}\n")},
		"Classes/Site.yaml": {Data: []byte(formsClass)},
	}
	if definition != "" {
		files["UI/ui.yaml"] = &fstest.MapFile{Data: []byte(definition)}
	}
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, files))
	meta, err := catalog.ParseMetadata([]byte("{}"))
	require.NoError(s.t, err)
	record, err := s.catalog.Upload(s.t.Context(), callers["{token:"+token+"}"], meta, archive.Bytes())
	require.NoError(s.t, err)
	return "/burano/v1/forms/" + record.ID
}

// From a package's forms to an object in a draft, with the server's answers alone.
func TestFormsAreEvaluatedByTheServer(t *testing.T) {
	s := newServer(t)
	path := s.formed("demo", formsUI)
	shown := s.call("demo", "", "GET", path, nil, 200)
	require.Equal(t, true, field(shown, "named"))
	form := field(shown, "forms").([]any)[0]
	require.Equal(t, "site", field(form, "name"))
	fields := field(form, "fields").([]any)
	require.Equal(t, map[string]any{"name": "title", "type": "string", "label": "Title", "required": true, "hidden": false, "secret": false,
		"initial": "", "max_length": 10.0}, fields[0])
	require.Equal(t, 2.0, field(fields[1], "min_value"), "what the class's method says")
	require.Equal(t, 2.0, field(fields[1], "initial"))
	require.ElementsMatch(t, []any{map[string]any{"value": "s", "label": "Small"}, map[string]any{"value": "l", "label": "Large"}}, field(fields[2], "choices"))
	require.Equal(t, true, field(fields[3], "secret"))
	require.NotContains(t, shown, "errors", "nothing was filled in")
	s.call("other", "", "GET", path, nil, 403)
	s.call("other", "", "POST", path, map[string]any{}, 403)
	for _, bad := range []any{nil, []any{}, "text", map[string]any{"values": []any{}}, map[string]any{"values": map[string]any{"site": 1}}, map[string]any{"name": 5}} {
		s.call("demo", "", "POST", path, bad, 400)
	}

	wrong := s.call("demo", "", "POST", path, map[string]any{"values": map[string]any{"site": map[string]any{"title": "a long title", "size": 1, "secret": "Secret!"}}}, 200)
	require.Nil(t, field(wrong, "model"))
	require.Equal(t, []any{
		map[string]any{"form": "site", "field": "title", "message": "Ensure this value has at most 10 characters (it has 12)."},
		map[string]any{"form": "site", "field": "size", "message": "Ensure this value is greater than or equal to 2."},
		map[string]any{"form": "site", "field": "secret", "message": "The password must contain at least one letter, one number and one special character"},
		map[string]any{"form": "", "field": "name", "message": "The application needs a name"},
	}, field(wrong, "errors"))
	values := map[string]any{"site": map[string]any{"title": "secret", "secret": "Secret1!"}}
	wrong = s.call("demo", "", "POST", path, map[string]any{"name": "my-site", "values": values}, 200)
	require.Equal(t, []any{map[string]any{"form": "site", "field": "", "message": "The title tells the secret"}}, field(wrong, "errors"))

	values["site"].(map[string]any)["title"] = "mine"
	right := s.call("demo", "", "POST", path, map[string]any{"name": "my-site", "values": values}, 200)
	require.Empty(t, field(right, "errors"))
	model := field(right, "model").(map[string]any)
	require.Equal(t, 2.0, model["size"])

	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services?validate=true", model, 200)
	drafted := s.call("demo", session, "GET", "/v1/environments/"+id+"/services", nil, 200).([]any)
	require.Len(t, drafted, 1)
	require.Equal(t, "my-site", field(field(drafted[0], "?"), "name"))
	require.Equal(t, field(model["?"], "id"), field(field(drafted[0], "?"), "id"))
}

func TestFormsThatCannotBeShownSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		definition string
		status     int
		message    string
	}{
		"none":             {"", 404, "org.test.Site) has no forms"},
		"no YAML":          {"a: [", 400, "ui.yaml:1:1: this is no YAML"},
		"no application":   {"Version: 2\n", 400, "there is no Application"},
		"no such method":   {"ParametersSource: nothing\nApplication: {'?': {type: org.test.Site}}\n", 400, "nothing"},
		"a method throws":  {"ParametersSource: org.test.Site.broken\nApplication: {'?': {type: org.test.Site}}\n", 400, "no choices today"},
		"not in the model": {"Version: 2\nApplication:\n  ?: {type: org.test.Site}\n  title: nothing($)\n", 400, "there is no function nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			headers := map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json", "Accept": "application/json"}
			answer := s.send("POST", s.formed("demo", c.definition), headers, []byte(`{"name": "one"}`))
			require.Equal(t, c.status, answer.Code, "%s", answer.Body)
			require.Contains(t, answer.Body.String(), c.message)
		})
	}
	s := newServer(t)
	path := s.formed("demo", formsUI)
	for _, body := range []any{map[string]any{"values": []any{}}, map[string]any{"values": map[string]any{"site": 1}}, map[string]any{"name": 1}, nil} {
		s.call("demo", "", "POST", path, body, 400)
	}
	s.call("demo", "", "GET", "/burano/v1/forms/nothing", nil, 404)
}

// An application that a form made, and that the API has changed since, is edited by its form in a draft.
func TestAComponentIsEditedByItsForm(t *testing.T) {
	s := newServer(t)
	path := s.formed("demo", formsUI)
	values := map[string]any{"site": map[string]any{"title": "mine", "secret": "Secret1!"}}
	model := field(s.call("demo", "", "POST", path, map[string]any{"name": "my-site", "values": values}, 200), "model").(map[string]any)
	environment := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+environment+"/configure", nil, 200), "id").(string)
	services := "/v1/environments/" + environment + "/services"
	s.call("demo", session, "POST", services, model, 200)
	id := field(model["?"], "id").(string)
	form := "/burano/v1/environments/" + environment + "/components/" + id + "/form"
	s.call("demo", session, "PUT", services+"/"+id+"/size", 5, 200)

	today := s.call("demo", session, "GET", form, nil, 200)
	require.Equal(t, map[string]any{"title": "mine", "size": 5.0, "kind": "s"}, field(field(today, "values"), "site"))
	require.Equal(t, []any{map[string]any{"form": "site", "field": "secret"}}, field(today, "kept"))
	require.Equal(t, []any{"secret", "size", "title"}, field(today, "covered"))
	require.Equal(t, path, "/burano/v1/forms/"+field(today, "package").(string))
	require.Equal(t, "my-site", field(today, "name"))
	s.call("other", session, "GET", form, nil, 403)
	s.call("demo", "", "GET", form, nil, 404) // it is in the draft only
	s.call("demo", "", "PUT", form, map[string]any{}, 404)
	s.call("demo", session, "PUT", form, nil, 400)

	wrong := s.call("demo", session, "PUT", form, map[string]any{"values": map[string]any{"site": map[string]any{"size": 1}}}, 200)
	require.Equal(t, []any{map[string]any{"form": "site", "field": "size", "message": "Ensure this value is greater than or equal to 2."}}, field(wrong, "errors"))
	change := map[string]any{"values": map[string]any{"site": map[string]any{"title": "ours", "secret": ""}}}
	tried := s.call("demo", session, "POST", form, change, 200)
	require.Equal(t, []any{"title"}, field(tried, "changed"))
	drafted := func() map[string]any {
		return s.call("demo", session, "GET", services, nil, 200).([]any)[0].(map[string]any)
	}
	require.Equal(t, "mine", drafted()["title"], "nothing was changed")
	done := s.call("demo", session, "PUT", form, change, 200)
	require.Equal(t, []any{}, field(done, "conflicts"))
	now := drafted()
	require.Equal(t, []any{"ours", "Secret1!"}, []any{now["title"], now["secret"]})
	require.Equal(t, id, field(now["?"], "id"))
	require.Equal(t, 5.0, now["size"])

	// Objects without a form have none.
	s.call("demo", session, "POST", services, map[string]any{"?": map[string]any{"id": "plain", "type": "io.murano.Application"}}, 200)
	s.call("demo", session, "GET", "/burano/v1/environments/"+environment+"/components/plain/form", nil, 404)
}
