package clients

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
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
  seen: {Contract: $.string(), Usage: Out}
Methods:
  deploy:
    Body:
      - $.seen: $.name
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
  twice:
    Usage: Static
    Scope: Public
    Arguments:
      - text: {Contract: $.string().notNull()}
    Body:
      - Return: $text + $text
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

	code := func(wanted int, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), s.program, args...)
		command.Dir, command.Env = s.home, demo
		out, err := command.CombinedOutput()
		if wanted != 0 {
			require.Error(t, err)
		}
		require.Equal(t, wanted, command.ProcessState.ExitCode(), "%v: %s", args, out)
		return string(out)
	}
	require.Regexp(t, `^environment one would be made\n(?s:.*)\+ services\[0\] +org.test.App +alpha`, code(2, "deploy", "good.yaml", "--dry-run"))
	require.Regexp(t, `\+ Environment one\n(?s:.*)\+ services\[0\] +org.test.App +alpha`, code(2, "apply", "-f", "good.yaml", "--dry-run"))
	require.Contains(t, code(1, "deploy", "wrong.yaml", "--dry-run"), "! services[0].name")
	require.Contains(t, code(1, "apply", "-f", "wrong.yaml", "--dry-run"), "wrong.yaml:2: ")
	require.NotContains(t, burano("environment", "list"), "one", "a preview stores nothing")
	refused("services[0].name", "deploy", "wrong.yaml")
	require.NotContains(t, burano("environment", "list"), "one", "what could not be deployed leaves nothing")
	require.Regexp(t, `Deployment finished\ndeployment [0-9a-f]{32}: success\n$`, burano("deploy", "good.yaml", "--follow"))
	require.Regexp(t, `^nothing would be added, changed or removed\n= servers, volumes and clusters were not looked at: find Neutron in the service catalog: [^\n]*; the deployment looks again before its first change\n$`,
		code(0, "deploy", "good.yaml", "--dry-run"), "this cloud has Keystone alone")
	require.Contains(t, code(0, "apply", "-f", "good.yaml", "--dry-run"), "1 as described")
	code(2, "apply", "-f", "more.yaml", "--dry-run")
	preview := burano("deploy", "more.yaml", "--dry-run")
	require.Regexp(t, `(?m)^~ services\[0\] +org.test.App +beta +name$`, preview)
	require.Contains(t, preview, `name: "alpha" → "beta"`)
	require.Regexp(t, `(?m)^\+ services\[1\] +org.test.App +gamma`, preview)
	refused("! services[1]", "deploy", "wrong.yaml", "--dry-run")
	refused("answered 400", "deploy", "wrong.yaml")

	require.Contains(t, burano("action", "call", "one", "alpha", "greet", "--arg", "whom=you", "--follow"), `"alpha greets you"`)
	called := regexp.MustCompile(`task ([0-9a-f]{32})`).FindStringSubmatch(burano("action", "call", "one", "alpha", "greet", "--arg", "whom=them"))
	require.NotNil(t, called)
	burano("deployment", "show", called[1], "--follow")
	require.Equal(t, "\"alpha greets them\"\n", burano("action", "result", "one", called[1]))
	refused("was not found", "action", "result", "one", strings.Repeat("f", 32))
	require.Regexp(t, `"action": "greet"`, burano("action", "list", "one", "-o", "json"))
	greeting := burano("action", "show", "one", "alpha", "greet")
	require.Contains(t, greeting, "(required)")
	require.Contains(t, burano("class", "actions", "org.test.App"), "twice")
	require.Regexp(t, `(?m)^org.test.App +io.murano.Application +org.test.App +0.0.0$`, burano("class", "list", "--extends", "io.murano.Application"))
	objectOf := regexp.MustCompile(`(?m)^(\S+) +org.test.App +alpha`).FindStringSubmatch(burano("environment", "objects", "one"))
	require.NotNil(t, objectOf)
	burano("environment", "reports", "one", objectOf[1])
	require.Contains(t, burano("deployment", "steps", "one"), "SECONDS")
	require.Regexp(t, `(?m) +org.test.App +alpha +services\[0\]$`, burano("environment", "objects", "one", "--class", "io.murano.Application"))
	require.Equal(t, "\"hoho\"\n", burano("class", "call", "org.test.App", "twice", "--arg", "text=ho"))
	refused("text", "class", "call", "org.test.App", "twice")
	refused("org.test.None", "class", "call", "org.test.None", "twice")
	require.Contains(t, burano("class", "schema", "org.test.App", "--package", "org.test.App"), `"fail"`)
	refused("org.test.None", "class", "schema", "org.test.None")
	refused("no Kubernetes cluster", "cluster", "show", "one")

	refused("completed_w_errors", "deploy", "fails.yaml", "--follow")
	refused("asked to fail", "action", "result", "one", deploymentID(t, burano("deployment", "list", "one", "-o", "json")))
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
	require.Contains(t, burano("session", "show", "one", session.ID), "opened")
	require.Regexp(t, `(?m)^`+session.ID+` +demo +up to date `, burano("session", "list", "one"))
	require.Contains(t, burano("session", "delete", "one", session.ID), "deleted")
	refused("is not found", "session", "show", "one", session.ID)

	require.Equal(t, "one is called uno now\n", burano("environment", "rename", "one", "uno"))
	require.Contains(t, burano("template", "create", "plan", "--file", "more.yaml", "--description", "for all"), "made")
	require.Contains(t, burano("template", "show", "plan"), "org.test.App")
	require.Equal(t, "plan is called design now\n", burano("template", "rename", "plan", "design"))
	require.Equal(t, "design is called plan now\n", burano("template", "rename", "design", "plan"))
	var plan struct {
		Services []struct {
			Name   string
			Header struct{ ID string } `json:"?"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(burano("template", "show", "plan", "-o", "json")), &plan))
	require.Len(t, plan.Services, 2)
	require.Contains(t, burano("template", "remove", "plan", plan.Services[0].Header.ID), "removed")
	require.Contains(t, burano("template", "add", "plan", "good.yaml"), "1 applications added")
	require.Contains(t, burano("template", "create", "open", "--public", "--file", "good.yaml"), "made")
	require.Contains(t, burano("template", "list"), "open")
	require.Contains(t, burano("template", "clone", "open", "copy"), "made")
	burano("template", "delete", "open")
	burano("template", "delete", "copy")
	made := burano("template", "create-environment", "plan", "two", "--region", "local")
	drafted := regexp.MustCompile(`in session ([0-9a-f]{32})`).FindStringSubmatch(made)
	require.NotNil(t, drafted, made)
	require.Contains(t, burano("session", "deploy", "two", drafted[1], "--follow"), "Deployment finished")
	require.Contains(t, burano("template", "delete", "plan"), "deleted")
	refused("there is no template", "template", "show", "plan")

	require.Contains(t, burano("environment", "create", "three", "--description", "empty"), "three")
	require.Contains(t, burano("environment", "delete", "--yes", "three", "--abandon"), "three is deleted")
	admin := s.as("admin", "admin")
	everybodys, ok := s.run(admin, s.program, "environment", "list", "--all-projects", "-o", "json")
	require.True(t, ok, everybodys)
	var rows []struct{ ID, Name string }
	require.NoError(t, json.Unmarshal([]byte(everybodys), &rows))
	require.Len(t, rows, 2)
	shown, ok := s.run(admin, s.program, "environment", "show", rows[0].ID)
	require.True(t, ok, shown)
	none, ok := s.run(admin, s.program, "environment", "list", "-o", "json")
	require.True(t, ok, none)
	require.Equal(t, "[]\n", none)
	refused("Access was denied", "environment", "list", "--all-projects")
	refused("name that by --network", "environment", "create", "four", "--subnet", "one")

	out, ok := s.run(demo, s.program, "environment", "delete", "--yes", "uno", "nothing", "two", "--timeout", time.Minute.String())
	require.False(t, ok, out)
	require.Contains(t, out, "uno is deleted")
	require.Contains(t, out, "two is deleted")
	require.Contains(t, out, `no environment "nothing"`)
}

// deploymentID is the id of the first, which is the newest, of a list.
func deploymentID(t *testing.T, list string) string {
	t.Helper()
	var rows []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(list), &rows), list)
	return rows[0].ID
}

func TestThePreviewOfAClusterThatIsNotThereSaysWhatIsRefused(t *testing.T) {
	s := startKeystone(t)
	s.build()
	s.serve(http.DefaultClient, "http", "--embedded-packages", "com.mirantis.docker.Interfaces,com.mirantis.docker.kubernetes.KubernetesCluster")
	s.write(map[string]string{"names.yaml": `name: names
applications:
- ?: {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: cluster}
  name: "Cluster ☂ 1"
  storageClasses:
  - {name: SSD+fast, backend: cinder, default: true}
  masterNode:
    ?: {type: com.mirantis.docker.kubernetes.KubernetesMasterNode}
    instance: {?: {type: io.murano.resources.LinuxMuranoInstance}, name: case-kube-1, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
  nodeCount: 1
  minionNodes:
  - ?: {type: com.mirantis.docker.kubernetes.KubernetesMinionNode}
    instance: {?: {type: io.murano.resources.LinuxMuranoInstance}, name: Kube_Node.1, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
  gatewayCount: 1
  gatewayNodes:
  - ?: {type: com.mirantis.docker.kubernetes.KubernetesGatewayNode}
    instance: {?: {type: io.murano.resources.LinuxMuranoInstance}, name: case-gateway-1, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
`})
	for _, args := range [][]string{{"deploy", "names.yaml", "--dry-run"}, {"apply", "-f", "names.yaml", "--dry-run"}} {
		command := exec.CommandContext(t.Context(), s.program, args...)
		command.Dir, command.Env = s.home, s.as("demo", "demo")
		out, err := command.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 1, command.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), "Kube_Node.1 is no name for a server of a cluster")
		require.Contains(t, string(out), "SSD+fast")
	}
}
