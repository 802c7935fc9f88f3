package clients

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBuranosClientOfEnvironments(t *testing.T) {
	s := start(t)
	s.write(map[string]string{
		"app/manifest.yaml": "Format: 1.4\nType: Application\nFullName: org.test.App\nName: app\nClasses: {org.test.App: App.yaml}\nRequire: {io.murano: }\n",
		"app/Classes/App.yaml": `
Namespaces: {=: org.test, std: io.murano}
Name: App
Extends: std:Application
Properties:
  name: {Contract: $.string().notNull()}
  fail: {Contract: $.bool().notNull(), Default: false}
Methods:
  deploy:
    Body:
      - If: $.fail
        Then:
          - Throw: AskedTo
            Message: asked to fail
  greet:
    Scope: Public
    Arguments:
      - whom: {Contract: $.string().notNull()}
    Body:
      - Return: format('{0} greets {1}', $.name, $whom)
`,
		"good.yaml":  "name: one\napplications: [{'?': {type: org.test.App, id: app}, name: alpha}]\n",
		"more.yaml":  "name: one\napplications: [{'?': {type: org.test.App, id: app}, name: beta}, {'?': {type: org.test.App, id: two}, name: gamma}]\n",
		"wrong.yaml": "name: one\napplications: [{'?': {type: org.test.App, id: app}, name: null}, {'?': {type: org.test.Nope, id: two}}]\n",
		"fails.yaml": "name: one\napplications: [{'?': {type: org.test.App, id: app}, name: alpha, fail: true}]\n",
		"patch.json": `[{"op": "replace", "path": "/services/0/name", "value": "patched"}]`,
	})
	demo := s.as("demo", "demo")
	burano := func(args ...string) string {
		t.Helper()
		out, ok := s.run(demo, s.program, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, args ...string) {
		t.Helper()
		out, ok := s.run(demo, s.program, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
	}
	burano("package", "import", "app")

	require.Equal(t, "environment one would be made, with 1 applications; they are checked when they are deployed\n", burano("deploy", "good.yaml", "--dry-run"))
	refused("services[0].name", "deploy", "wrong.yaml")
	require.NotContains(t, burano("environment", "list"), "one", "what could not be deployed leaves nothing")
	require.Contains(t, burano("deploy", "good.yaml", "--follow"), "Deployment finished")
	require.Equal(t, "nothing would be added, changed or removed\n", burano("deploy", "good.yaml", "--dry-run"))
	preview := burano("deploy", "more.yaml", "--dry-run")
	require.Regexp(t, `(?m)^~ services\[0\] +org.test.App +beta +name$`, preview)
	require.Regexp(t, `(?m)^\+ services\[1\] +org.test.App +gamma`, preview)
	refused("! services[1]", "deploy", "wrong.yaml", "--dry-run")
	refused("answered 400", "deploy", "wrong.yaml")

	require.Contains(t, burano("action", "call", "one", "alpha", "greet", "--arg", "whom=you", "--follow"), `"alpha greets you"`)
	refused("completed_w_errors", "deploy", "fails.yaml", "--follow")
	deployments := burano("deployment", "list", "one")
	require.Regexp(t, `(?m)^[0-9a-f]{32} +[0-9a-f]{32} +deploy +completed_w_errors `, deployments)
	require.Contains(t, deployments, " greet ")
	require.Contains(t, burano("deployment", "show", "one"), "asked to fail")
	refused("completed_w_errors", "deployment", "retry", "one", "--follow")
	refused("there is nothing to cancel", "deployment", "cancel", "one")
	require.Contains(t, burano("deploy", "good.yaml", "--follow"), "Deployment finished")
	refused("there is nothing to try again", "deployment", "retry", "one")

	var session struct{ ID, State string }
	require.NoError(t, json.Unmarshal([]byte(burano("session", "create", "one", "-o", "json")), &session))
	require.Equal(t, "opened", session.State)
	burano("environment", "model", "one", "--session", session.ID, "--patch", "patch.json")
	require.Equal(t, "\"patched\"\n", burano("environment", "model", "one", "--session", session.ID, "--path", "services/0/name"))
	require.Contains(t, burano("session", "preview", "one", session.ID), "patched")
	require.Contains(t, burano("session", "deploy", "one", session.ID, "--follow"), "Deployment finished")
	require.Equal(t, "\"patched\"\n", burano("environment", "model", "one", "--path", "services/0/name"))
	refused("open a session", "environment", "model", "one", "--patch", "patch.json")
	require.NoError(t, json.Unmarshal([]byte(burano("session", "create", "one", "-o", "json")), &session))
	require.Contains(t, burano("session", "delete", "one", session.ID), "deleted")
	refused("is not found", "session", "show", "one", session.ID)

	require.Equal(t, "one is called uno now\n", burano("environment", "rename", "one", "uno"))
	require.Contains(t, burano("template", "create", "plan", "--file", "more.yaml", "--description", "for all"), "made")
	require.Contains(t, burano("template", "show", "plan"), "org.test.App")
	made := burano("template", "create-environment", "plan", "two")
	drafted := regexp.MustCompile(`in session ([0-9a-f]{32})`).FindStringSubmatch(made)
	require.NotNil(t, drafted, made)
	require.Contains(t, burano("session", "deploy", "two", drafted[1], "--follow"), "Deployment finished")
	require.Contains(t, burano("template", "delete", "plan"), "deleted")
	refused("there is no template", "template", "show", "plan")

	require.Contains(t, burano("environment", "create", "three", "--description", "empty"), "three")
	require.Contains(t, burano("environment", "delete", "three", "--abandon"), "three is deleted")
	for _, name := range []string{"uno", "two"} {
		require.Contains(t, burano("environment", "delete", name, "--timeout", time.Minute.String()), "is deleted")
	}
}
