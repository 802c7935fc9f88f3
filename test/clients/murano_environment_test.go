package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMuranosOwnClientOfEnvironments drives every command of Murano's client about environments, sessions, templates, deployments and
// actions.
func TestMuranosOwnClientOfEnvironments(t *testing.T) {
	output, err := exec.Command(filepath.Join("..", "setup", "packages.sh"), "python3-muranoclient").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	s := start(t)
	s.write(map[string]string{
		"app/manifest.yaml": manifest("org.test.App", "Require: {io.murano: }\n"),
		"app/Classes/C.yaml": `
Namespaces: {=: org.test, std: io.murano}
Name: App
Extends: std:Application
Properties:
  name: {Contract: $.string().notNull()}
Methods:
  greet:
    Scope: Public
    Arguments:
      - whom: {Contract: $.string().notNull()}
    Body:
      - Return: format('{0} greets {1}', $.name, $whom)
  twice:
    Usage: Static
    Scope: Public
    Arguments:
      - x: {Contract: $.int().notNull()}
    Body:
      - Return: 2 * $x
`,
		"app.json":   `{"?": {"type": "org.test.App", "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, "name": "alpha"}`,
		"add.json":   `[{"op": "add", "path": "/-", "value": {"?": {"type": "org.test.App", "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, "name": "alpha"}}]`,
		"model.json": `[{"op": "replace", "path": "/services/0/name", "value": "patched"}]`,
	})
	demo := s.as("demo", "demo")
	client := func(args ...string) string {
		t.Helper()
		out, ok := s.run(demo, murano, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, args ...string) {
		t.Helper()
		out, ok := s.run(demo, murano, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
	}
	first := func(text string) string {
		t.Helper()
		found := id.FindString(text)
		require.NotEmpty(t, found, text)
		return found
	}
	// until polls the list of environments until done returns true; each answer of the client takes a second.
	until := func(done func(list string) bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; {
			list := client("environment-list")
			if done(list) {
				return
			}
			require.NotContains(t, list, "failure")
			require.True(t, time.Now().Before(deadline), list)
		}
	}
	becomes := func(environment, status string) {
		t.Helper()
		until(func(list string) bool { return containsStatus(list, environment, status) })
	}
	client("package-import", "app")

	one := first(client("environment-create", "one"))
	refused("already exists", "environment-create", "one")
	require.Contains(t, client("environment-list"), "| one ")
	require.Contains(t, client("environment-show", "one"), one)
	session := first(client("environment-session-create", one))
	client("environment-apps-edit", "--session-id", session, one, "add.json")
	require.Contains(t, client("environment-show", one, "--session-id", session, "--only-apps"), "alpha")
	client("environment-model-edit", "--session-id", session, one, "model.json")
	require.Contains(t, client("environment-model-show", one, "--path", "/services/0/name", "--session-id", session), "patched")
	client("environment-deploy", "--session-id", session, one)
	becomes(one, "ready")
	refused("is invalid", "environment-deploy", "--session-id", session, one)
	require.Contains(t, client("app-show", one), "patched")
	require.Contains(t, client("deployment-list", one), "success")
	require.Contains(t, client("deployment-list", "--all-environments"), "success")

	task := first(client("environment-action-call", "--action-id", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_greet", "--arguments", "whom=you", "--", one))
	becomes(one, "ready")
	require.Contains(t, client("environment-action-get-result", "--task-id", task, one), "patched greets you")
	refused("Action is not found", "environment-action-call", "--action-id", "nope", one)
	require.Contains(t, client("static-action-call", "org.test.App", "twice", "--arguments", "x=21"), "42")
	require.Contains(t, client("static-action-call", "org.test.App", "nope"), "is not found", "it prints the error and ends well")
	require.Contains(t, client("class-schema", "org.test.App"), `"additionalProperties": false`)

	template := first(client("env-template-create", "plan"))
	client("env-template-add-app", template, "app.json")
	require.Contains(t, client("env-template-list"), "| plan ")
	require.Contains(t, client("env-template-show", template), "alpha")
	client("env-template-update", template, "renamed")
	require.Contains(t, client("env-template-list"), "renamed")
	refused("403", "env-template-clone", template, "copy")
	made := client("env-template-create-env", template, "two")
	require.Contains(t, client("environment-list"), "| two ", made)
	client("env-template-del-app", template, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	require.NotContains(t, client("env-template-show", template), "alpha")
	client("env-template-delete", template)
	refused("not found", "env-template-show", template)

	require.Contains(t, client("environment-rename", "one", "uno"), "uno")
	client("environment-delete", "uno")
	client("environment-delete", "two", "--abandon")
	until(func(list string) bool { return !id.MatchString(list) })
}

// containsStatus reports whether a printed list of environments has this status for the environment.
func containsStatus(list, environment, status string) bool {
	for line := range strings.Lines(list) {
		if strings.Contains(line, environment) && strings.Contains(line, " "+status+" ") {
			return true
		}
	}
	return false
}
