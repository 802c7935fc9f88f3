package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const hidingTemplate = `heat_template_version: 2016-10-14
parameters:
  pin: {type: number, hidden: true}
  phrase: {type: string, hidden: true}
  hosts: {type: comma_delimited_list, hidden: true, default: a}
  open: {type: boolean, hidden: true, default: true}
  flavor: {type: string}
resources:
  r: {type: OS::Heat::RandomString}
`

// TestParametersThatATemplateHidesAreShownToNobody has names that are none of secrets: the class decides. A template with environments of Heat is read the
// same; so is the class of a package that is gone.
func TestParametersThatATemplateHidesAreShownToNobody(t *testing.T) {
	for name, files := range map[string][]zipEntry{"alone": nil, "with environments": {{name: "Resources/HotEnvironments/a.yaml", content: "parameters: {flavor: m1.small}\n"}}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			archive := zipArchive(t, append([]zipEntry{{name: "manifest.yaml", content: "Format: Heat.HOT/1.0\nType: Application\nFullName: org.Hiding\nName: x\nDescription: x\nAuthor: x\nTags: []\n"},
				{name: "template.yaml", content: hidingTemplate}}, files...)...)
			body, kind := uploadForm(t, archive)
			uploaded := s.send("POST", "/v1/catalog/packages", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": kind}, body)
			require.Equal(t, 200, uploaded.Code, uploaded.Body)

			const mark = "*** SANITIZED ***"
			given := func() map[string]any {
				return map[string]any{"pin": 86421357, "phrase": "battery staple", "hosts": []any{"inner.example.org"}, "open": false, "flavor": "m1.small"}
			}
			application := map[string]any{"?": map[string]any{"id": "h", "type": "org.Hiding"}, "name": "x", "templateParameters": given()}
			shown := map[string]any{"pin": mark, "phrase": mark, "hosts": mark, "open": false, "flavor": "m1.small"}
			id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
			session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
			environment := "/v1/environments/" + id
			s.call("demo", session, "POST", environment+"/services", application, 200)
			template := field(s.call("demo", "", "POST", "/v1/templates", map[string]any{"name": "t", "is_public": true, "services": []any{application}}, 200), "id").(string)

			read := func(session string) {
				t.Helper()
				for path, of := range map[string][]any{environment: {"services", 0}, environment + "/services": {0}, environment + "/services/h": nil, environment + "/model": {"services", 0},
					environment + "/model/services/h": nil} {
					require.EqualValues(t, shown, field(s.call("demo", session, "GET", path, nil, 200), append(of, "templateParameters")...), path)
				}
				require.Equal(t, mark, s.call("demo", session, "GET", environment+"/services/h/templateParameters/phrase", nil, 200))
				require.NotContains(t, fmt.Sprint(s.call("demo", session, "GET", environment+"/model", nil, 200)), "staple")
			}
			read(session)
			for _, caller := range []string{"demo", "other"} {
				require.EqualValues(t, shown, field(s.call(caller, "", "GET", "/v1/templates/"+template, nil, 200), "services", 0, "templateParameters"))
			}

			// Whether a template would change is known all the same.
			differs := func(change func(parameters map[string]any)) any {
				t.Helper()
				other := map[string]any{"?": map[string]any{"id": "h", "type": "org.Hiding"}, "name": "x", "templateParameters": given()}
				change(other["templateParameters"].(map[string]any))
				return field(s.call("demo", "", "POST", "/burano/v1/templates/"+template+"/preview", map[string]any{"services": []any{other}}, 200), "changed")
			}
			require.Equal(t, false, differs(func(map[string]any) {}))
			require.Equal(t, false, differs(func(parameters map[string]any) { parameters["phrase"] = mark }))
			require.Equal(t, true, differs(func(parameters map[string]any) { parameters["phrase"] = "other staple" }))
			require.Equal(t, true, differs(func(parameters map[string]any) { delete(parameters, "hosts") }))
			s.call("other", "", "POST", "/burano/v1/templates/"+template+"/preview", map[string]any{"services": []any{}}, 403)
			s.call("demo", "", "POST", "/burano/v1/templates/"+template+"/preview", map[string]any{"services": "h"}, 400)

			// The read value is written back: nothing is lost, and nothing is revealed.
			application["templateParameters"], application["name"] = shown, "renamed"
			require.Equal(t, []any{application}, s.call("demo", session, "PUT", environment+"/services", []any{application}, 200))
			stored := func() any {
				rows, err := s.rows.Sessions().Peek(t.Context(), session)
				require.NoError(t, err)
				return field(rows.Model.Objects, "services", 0, "templateParameters")
			}
			require.Equal(t, fmt.Sprint(given()), fmt.Sprint(stored()))
			made := s.call("other", "", "POST", "/v1/templates/"+template+"/create-environment", map[string]any{"name": "of it"}, 200)
			row, err := s.rows.Sessions().Peek(t.Context(), field(made, "session_id").(string))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(given()), fmt.Sprint(field(row.Model.Objects, "services", 0, "templateParameters")), "an environment of a template gets its secrets")

			s.call("demo", "", "POST", environment+"/sessions/"+session+"/deploy", nil, 200)
			s.awaitIdle(id)
			for _, path := range []string{environment + "/deployments", "/v1/deployments"} {
				require.EqualValues(t, shown, field(s.call("demo", "", "GET", path, nil, 200), "deployments", 0, "description", "services", 0, "templateParameters"), path)
			}
			read("")

			session = field(s.call("demo", "", "POST", environment+"/configure", nil, 200), "id").(string)
			s.call("demo", session, "PUT", environment+"/services/h/templateParameters/phrase", "correct horse", 200)
			preview := s.call("demo", "", "GET", "/burano/v1/environments/"+id+"/sessions/"+session+"/preview", nil, 200)
			require.Equal(t, "templateParameters", field(preview, "changes", 0, "values", 0, "name"), preview)
			require.Equal(t, mark, field(preview, "changes", 0, "values", 0, "after", "phrase"))
			require.NotContains(t, fmt.Sprint(preview), "staple")
			require.NotContains(t, fmt.Sprint(preview), "horse")

			hiding := field(s.call("demo", "", "GET", "/v1/catalog/packages?fqn=org.Hiding", nil, 200), "packages", 0, "id").(string)
			s.call("demo", "", "DELETE", "/v1/catalog/packages/"+hiding, nil, 200)
			require.Equal(t, mark, s.call("demo", "", "GET", environment+"/services/h/templateParameters/flavor", nil, 200), "of a class that nobody knows any more everything is hidden")
		})
	}
}
