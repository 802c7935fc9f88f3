package clients

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestApplyMakesAProjectWhatFilesDescribe applies files with all kinds of documents, unchanged, and changed.
func TestApplyMakesAProjectWhatFilesDescribe(t *testing.T) {
	s := start(t)
	const app = `
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
`
	const manifest = "Format: 1.4\nType: Application\nFullName: org.test.App\nName: app\nTags: [own]\nClasses: {org.test.App: App.yaml}\nRequire: {org.test.Base: , io.murano: }\n"
	environment := func(name, fields string) string {
		return "kind: Environment\nname: demo\napplications:\n- '?': {type: org.test.App, id: app}\n  name: " + name + "\n" + fields
	}
	s.write(map[string]string{
		"org.test.App/manifest.yaml": manifest, "org.test.App/Classes/App.yaml": app,
		"org.test.Base/manifest.yaml": "Format: 1.4\nType: Library\nFullName: org.test.Base\nName: base\nClasses: {org.test.Base: Base.yaml}\n", "org.test.Base/Classes/Base.yaml": "Name: org.test.Base\n",
		"files/all.yaml": "kind: Template\nname: small\ndescription: one\napplications: [{'?': {type: org.test.App, id: app}, name: alpha}]\n---\n" +
			"kind: Package\npath: ../org.test.App\ncategories: [Web]\ntags: [ours]\n",
		"files/demo.yml": environment("alpha", ""), "quota.yaml": "kind: Quota\nlimits: {environments: 2, packages: unlimited}\n",
		"new-wrong.yaml": "name: other\napplications:\n- '?': {type: org.test.App, id: app}\n  name:\n",
	})
	demo := s.as("demo", "demo")
	burano := func(environment []string, args ...string) string {
		t.Helper()
		out, ok := s.run(environment, s.program, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, args ...string) {
		t.Helper()
		out, ok := s.run(demo, s.program, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
	}

	look := burano(demo, "apply", "-f", "files", "--dry-run")
	require.Regexp(t, `^\+ Package org.test.Base\n\+ Package org.test.App\n\+ Template small\n\+ Environment demo\n(?s:.*)\+ services\[0\] +org.test.App +alpha(?s:.*)`+
		`> its applications are checked when the packages are there\n4 would be added, 0 would be changed, 0 as described\n$`, look)
	require.Equal(t, look, burano(demo, "apply", "-f", "files", "--dry-run"), "the first has made nothing")
	made := burano(demo, "apply", "-f", "files", "--wait")
	require.Regexp(t, `4 added, 0 changed, 0 as described\nenvironment demo \([0-9a-f]{32}\) is being deployed\n(?s:.*)deployment [0-9a-f]{32}: success\n$`, made)
	require.Regexp(t, `(?m)^Categories +Web$`, burano(demo, "package", "show", "org.test.App"))
	require.Equal(t, "= Package org.test.App\n= Template small\n= Environment demo\n0 added, 0 changed, 3 as described\n", burano(demo, "apply", "-f", "files", "--wait"))
	require.Equal(t, 1, strings.Count(burano(demo, "deployment", "list", "demo"), " deploy "), "what is as described is not deployed again")

	s.write(map[string]string{
		"org.test.App/Classes/App.yaml": app + "  greet: {Scope: Public, Body: [{Return: hello}]}\n",
		"files/all.yaml": "kind: Template\nname: small\ndescription: two\napplications: [{'?': {type: org.test.App, id: app}, name: beta}]\n---\n" +
			"kind: Package\npath: ../org.test.App\ntags: [theirs]\n",
		"files/demo.yml": environment("beta", ""),
	})
	change := burano(demo, "apply", "-f", "files/all.yaml", "-f", "files/demo.yml", "--wait")
	for _, line := range []string{`~ Package org.test.App\n    tags: \["ours","own"\] → \["own","theirs"\]\n    Classes/App.yaml: "[0-9a-f]{12}" → "[0-9a-f]{12}"\n~ Template small\n    description: "one" → "two"\n    applications: `,
		`~ Environment demo\n~ services\[0\] +org.test.App +beta +name\n    name: "alpha" → "beta"\n> its applications are checked when the packages are there\n= servers, volumes and clusters were not looked at: [^\n]*\n0 added, 3 changed, 0 as described\n`} {
		require.Regexp(t, line, change)
	}
	require.Regexp(t, `(?m)^Categories +Web$`, burano(demo, "package", "show", "org.test.App"), "what the file does not name stays")
	require.Contains(t, burano(demo, "action", "call", "demo", "beta", "greet", "--follow"), `"hello"`)
	require.Contains(t, burano(demo, "apply", "-f", "files"), "3 as described")

	// An environment whose deployment was begun stays, though the answer was lost; one whose order was lost is removed.
	for _, lost := range []struct {
		what, name string
		performed  bool
	}{{"the order", "unordered", false}, {"the answer", "unanswered", true}} {
		s.write(map[string]string{lost.name + ".yaml": "kind: Environment\nname: " + lost.name + "\napplications:\n- '?': {type: org.test.App, id: app}\n  name: alpha\n"})
		out, ok := s.run(append(demo, "BURANO_URL="+s.deploysThrough(lost.performed)), s.program, "apply", "-f", lost.name+".yaml", "--wait")
		require.False(t, ok, "%s is lost: %s", lost.what, out)
	}
	require.NotContains(t, burano(demo, "environment", "list"), "unordered")
	require.Equal(t, "= Environment unanswered\n0 added, 0 changed, 1 as described\n", burano(demo, "apply", "-f", "unanswered.yaml", "--wait"))
	require.Equal(t, 1, strings.Count(burano(demo, "deployment", "list", "unanswered"), " deploy "), "the deployment that nobody heard of was the one that was wanted")
	burano(demo, "environment", "delete", "--yes", "unanswered")

	// A mistake is reported with its line, and nothing is begun.
	s.write(map[string]string{"files/all.yaml": "kind: Template\nname: small\ndescription: three\n", "files/demo.yml": environment("", "")})
	refused("files/demo.yml:5: org.test.App.name", "apply", "-f", "files")
	require.Regexp(t, `(?m)^Description +two$`, burano(demo, "template", "show", "small"))
	refused("new-wrong.yaml:4: org.test.App.name", "apply", "-f", "new-wrong.yaml")
	require.NotContains(t, burano(demo, "environment", "list"), "other", "what could not be deployed leaves nothing")
	s.write(map[string]string{"files/demo.yml": environment("beta", "  nmae: x\n"), "no.yaml": "kind: Package\npath: nothing\n"})
	refused("no.yaml:2: ", "apply", "-f", "no.yaml")
	refused("Access was denied", "apply", "-f", "quota.yaml")
	s.write(map[string]string{"no.yaml": "kind: Quota\nlimits: {moons: 2}\n"})
	refused("no.yaml:1: Quota: there is no quota of \"moons\": there are those of environments, ", "apply", "-f", "no.yaml")

	_, project := s.token("demo", "demo")
	s.write(map[string]string{"quota.yaml": "kind: Quota\nproject: " + project + "\nlimits: {environments: 2, packages: unlimited}\n"})
	admin := s.as("admin", "admin")
	require.Equal(t, "~ Quota "+project+"\n    environments: 1000 → 2\n    packages: 500 → -1\n0 added, 1 changed, 0 as described\n", burano(admin, "apply", "-f", "quota.yaml"))
	require.Contains(t, burano(admin, "apply", "-f", "quota.yaml"), "1 as described")
	require.Regexp(t, `environments +1 +2 +an administrator`, burano(demo, "quota", "show"))

	// A failed deployment is tried again, and --wait reports how it ended.
	s.write(map[string]string{"files/demo.yml": environment("beta", "  fail: true\n")})
	refused("environment demo: the deployment ended in state completed_w_errors", "apply", "-f", "files/demo.yml", "--wait")
	refused("environment demo: the deployment ended in state completed_w_errors", "apply", "-f", "files/demo.yml", "--wait")
	s.write(map[string]string{"same.yaml": environment("beta", "  fail: false\n"), "files/demo.yml": environment("gamma", "")})
	burano(demo, "apply", "-f", "same.yaml", "--wait")

	// An application credential is as good as a password for everything except deployments.
	keystone := s.identityOf("demo", "demo")
	me, err := tokens.Get(t.Context(), keystone, keystone.Token()).ExtractUser()
	require.NoError(t, err)
	credential, err := applicationcredentials.Create(t.Context(), keystone, me.ID, applicationcredentials.CreateOpts{Name: "automation", Unrestricted: true}).Extract()
	require.NoError(t, err)
	byCredential := slices.DeleteFunc(s.as("", "", "OS_APPLICATION_CREDENTIAL_ID="+credential.ID, "OS_APPLICATION_CREDENTIAL_SECRET="+credential.Secret), func(variable string) bool {
		return strings.HasPrefix(variable, "OS_USER") || strings.HasPrefix(variable, "OS_PROJECT") || strings.HasPrefix(variable, "OS_PASSWORD")
	})
	s.write(map[string]string{"by.yaml": "kind: Template\nname: by\n---\nkind: Package\npath: org.test.App\ntags: [by]\n"})
	require.Contains(t, burano(byCredential, "apply", "-f", "by.yaml"), "1 added, 1 changed")
	require.Contains(t, burano(byCredential, "apply", "-f", "by.yaml", "-f", "same.yaml"), "3 as described")
	// Keystone takes no trust from one, and a deployment needs it.
	out, ok := s.run(byCredential, s.program, "apply", "-f", "files/demo.yml")
	require.False(t, ok, out)
	require.Contains(t, out, "Environment demo: ")
	require.Contains(t, out, "sign in with a password")
}

// deploysThrough returns the address of a proxy that breaks the connection when a deployment is ordered: after the server has performed
// the order, or before the server gets it.
func (s *server) deploysThrough(performed bool) string {
	target, err := url.Parse(s.url)
	require.NoError(s.t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/deploy") {
			proxy.ServeHTTP(w, r)
			return
		}
		if performed {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			environment := path.Base(path.Dir(path.Dir(path.Dir(r.URL.Path))))
			said, ok := s.run(s.as("demo", "demo"), s.program, "deployment", "show", environment, "--follow")
			assert.True(s.t, ok, said)
		}
		panic(http.ErrAbortHandler)
	}))
	s.t.Cleanup(way.Close)
	return way.URL
}

// TestApplyKnowsWhetherHiddenParametersChange: no answer has them, and the server compares.
func TestApplyKnowsWhetherHiddenParametersChange(t *testing.T) {
	s := start(t)
	const document = "kind: Template\nname: hiding\napplications: [{'?': {type: org.test.Hiding, id: h}, name: h, templateParameters: {phrase: battery staple}}]\n"
	s.write(map[string]string{
		"org.test.Hiding/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Hiding\nName: h\nDescription: h\nAuthor: h\nTags: [h]\n",
		"org.test.Hiding/template.yaml": "heat_template_version: 2016-10-14\nparameters: {phrase: {type: string, hidden: true}}\nresources: {r: {type: OS::Heat::RandomString}}\n",
		"hiding.yaml":                   document, "other.yaml": strings.Replace(document, "battery", "correct", 1),
	})
	demo := s.as("demo", "demo")
	apply := func(file string) string {
		t.Helper()
		out, ok := s.run(demo, s.program, "apply", "-f", file)
		require.True(t, ok, out)
		return out
	}
	out, ok := s.run(demo, s.program, "package", "import", "org.test.Hiding")
	require.True(t, ok, out)
	require.Contains(t, apply("hiding.yaml"), "1 added, 0 changed")
	require.Contains(t, apply("hiding.yaml"), "0 added, 0 changed, 1 as described")
	require.Contains(t, apply("other.yaml"), "0 added, 1 changed")
	require.Contains(t, apply("other.yaml"), "0 added, 0 changed, 1 as described")
}
