package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"
)

// aPage is two replicas of httpd, which ends at once on SIGTERM.
const aPage = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: web}
    name: web
    kubernetesCluster: cluster
    replicas: 2

  - "?": {type: io.burano.HTTPd}
    name: papers
    host: web
    page: first
`

// trouble is an application whose model cannot run.
type trouble struct {
	model        string // properties beside its name and its host
	wrong, right string // lines of it
	says         string // the report
	port         string // at which it answers once its model is correct
}

const demoApp = `  - "?": {type: com.example.docker.DockerApp}
    name: NAME
    host: HOST
    image: registry.local/demo:1
`

// troubles are keyed by their pods. The programs of their node are the only ones that the image has.
var troubles = map[string]trouble{
	"image": {model: demoApp + "    ports: \"8091:8080\"\n", wrong: "registry.local/none:1", right: "registry.local/demo:1", port: "8091",
		says: `container image of image-\S+: its image registry.local/none:1 cannot be pulled`},
	"crash": {model: demoApp + "    ports: \"8092:8080\"\n    env: LISTEN=nowhere\n", wrong: "LISTEN=nowhere", right: "MODE=well", port: "8092",
		says: `(?s)The last lines of container crash of crash-\S+:\n\S+ level=ERROR msg=stopped.*container crash of crash-\S+: it ended with exit code 1 \(Error\), and was started again [34] times`},
	"twins": {model: demoApp + "    ports: \"8093:8080\"\n" + strings.ReplaceAll(demoApp, "NAME", "second") + "    ports: \"8094:8080\"\n",
		wrong: `"8094:8080"`, right: "\"8094:8081\"\n    env: LISTEN=:8081", port: "8094",
		says: `Port 8080 is already used in the Pod twins: by container (twins|second), so that (twins|second) needs another one`},
	"gateway": {model: demoApp + "    ports: \"80:8080\"\n", wrong: `"80:8080"`, right: `"8097:8080"`, port: "8097",
		says: `gateway is not published at port 80: there the gateways publish default/web-papers:tcp-80, which is older`},
	"full": {model: demoApp + `    ports: "8095:8080"
    entryPoint: [/usr/bin/bash, -euc]
    commands: ['trap "exit 0" TERM; head -c 30M /dev/zero >/data/full; while true; do sleep 1; done']
    volumes:
      /data: {"?": {type: com.mirantis.docker.DockerTempVolume}, size: 10Mi}
      /usr: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr}
      /lib: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib}
      /lib64: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib64}
`, wrong: "    entryPoint: [/usr/bin/bash, -euc]\n    commands: ['trap \"exit 0\" TERM; head -c 30M /dev/zero >/data/full; while true; do sleep 1; done']\n", right: "", port: "8095",
		says: `full-\S+: it was ended: Evicted Usage of EmptyDir volume "\S+" exceeds the limit "10Mi"`},
	"quota": {model: demoApp + "    ports: \"8096:8080\"\n    resources: {requests: {ephemeral-storage: 10Mi}}\n", port: "8096",
		says: `quota: the quota of the namespace has no room for a pod: .*exceeded quota: small`},
}

// troubled is the model of all of them, with the error or corrected.
func troubled(right bool) string {
	var model strings.Builder
	for name, one := range troubles {
		fmt.Fprintf(&model, "  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: %[1]s}\n    name: %[1]s\n    kubernetesCluster: cluster\n    replicas: 1\n", name)
		text := one.model
		if name == "image" { // whose model is correct
			text = strings.Replace(text, one.right, one.wrong, 1)
		}
		if right {
			text = strings.Replace(text, one.wrong, one.right, 1)
		}
		model.WriteString(strings.ReplaceAll(strings.ReplaceAll(text, "NAME", name), "HOST", name))
	}
	return model.String()
}

// TestApplicationsThatFailSayWhyAndHeal has a project without room for its servers, and applications that cannot run. Each is reported with its cause
// within minutes, while the others run, and is healthy after the next deployment. Before that, pods of a program that ends at once are replaced while
// requests come.
func TestApplicationsThatFailSayWhyAndHeal(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it waits minutes for what may pass by itself")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.pushApplications(t, "httpd")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	cluster, _, _ := strings.Cut(string(text), "\n  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod")
	file := filepath.Join(t.TempDir(), "troubles.yaml")
	try := func(model string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(cluster, "name: scaling\n", "name: troubles\n", 1)+model), 0o600))
		return l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy := func(model string) string {
		t.Helper()
		output, err := try(model)
		require.NoError(t, err, output)
		return output
	}

	limit := l.projectQuota(t, demo)
	limit(2)
	output, err := try(aPage)
	require.Error(t, err, output)
	require.Contains(t, output, "the project's quota of instances is exceeded: 3 more are needed and 2 of 2 are left, so 1 are missing")
	require.Equal(t, found["servers"], inventory(t, demo)["servers"])
	limit(20)
	began := time.Now()
	deploy(aPage)
	l.deleteIfFailed(t, "troubles")
	t.Logf("a cluster and two pods took %.1f s", time.Since(began).Seconds())
	environment := environmentNamed(t, demo, "troubles")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	gateway, _, _ := strings.Cut(endpointOf(t, environment), ":")

	t.Run("a rolling update loses no request", func(t *testing.T) { s.losesNothing(t, gateway+":80", deploy) })
	t.Run("each application that fails says why, and heals", func(t *testing.T) {
		s.cluster.kubectl(t, "", "create", "quota", "small", "--hard=requests.ephemeral-storage=1Mi")
		began := time.Now()
		output, err := try(aPage + troubled(false))
		require.Error(t, err, output)
		t.Logf("everything was said after %.1f s:\n%s", time.Since(began).Seconds(), output)
		for name, one := range troubles {
			require.Regexp(t, one.says, output, name)
		}
		require.Contains(t, page(t, "http://"+gateway+"/"), "first", "what ran goes on")
		s.cluster.kubectl(t, "", "delete", "quota", "small")
		began = time.Now()
		output = deploy(aPage + troubled(true))
		t.Logf("everything was well after %.1f s", time.Since(began).Seconds())
		require.NotContains(t, output, "is not published")
		for name, one := range troubles {
			l.eventually(t, 10*time.Second, name+" answers", func() error {
				_, err := get("http://" + gateway + ":" + one.port + "/")
				return err
			})
		}
	})
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "troubles")
	asBefore(t, demo, found)
}

// projectQuota returns a function that sets the project's quota of servers.
func (l *lab) projectQuota(t *testing.T, u *user) func(int) {
	t.Helper()
	keystone := u.keystone(t)
	project, err := tokens.Get(t.Context(), keystone, u.provider.Token()).ExtractProject()
	require.NoError(t, err)
	nova := l.user(t, "burano-admin").nova(t)
	return func(instances int) {
		t.Helper()
		_, err := quotasets.Update(t.Context(), nova, project.ID, quotasets.UpdateOpts{Instances: &instances}).Extract()
		require.NoError(t, err)
	}
}

// losesNothing replaces the pods of the page while requests come, by an action and by a change. At first the pods have the form of Burano's versions
// before pods lingered: a deployment without changes leaves them, and the next change makes them linger.
func (s *scaling) losesNothing(t *testing.T, where string, deploy func(string) string) {
	change := func(to string) { deploy(strings.Replace(aPage, "page: first", "page: "+to, 1)) }
	lingers := func() string {
		return s.cluster.kubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].lifecycle.preStop.sleep.seconds} of {.spec.template.spec.terminationGracePeriodSeconds}")
	}
	require.Equal(t, "3 of 33", lingers())
	s.cluster.kubectl(t, "", "patch", "deployment", "web", "--type=json", "--patch",
		`[{"op": "remove", "path": "/spec/template/spec/containers/0/lifecycle"}, {"op": "replace", "path": "/spec/template/spec/terminationGracePeriodSeconds", "value": 30}]`)
	s.cluster.kubectl(t, "", "rollout", "status", "deployment", "web", "--timeout=60s")
	former := s.pods(t)
	change("first")
	require.Equal(t, former, s.pods(t), "changing nothing touches nothing")
	require.Equal(t, " of 30", lingers())
	replaced := func(what string) []failure {
		load := startLoad(t, where)
		s.act(t, "web", "recreatePod", map[string]any{})
		change(what)
		load.end()
		t.Logf("%s: %s", what, load)
		require.Greater(t, load.fresh, 100, "there was a load")
		var failed []failure
		for _, one := range load.failed {
			if !strings.Contains(one.String(), "(keep-alive)") { // httpd ends idle connections, and refuses no new one
				failed = append(failed, one)
			}
		}
		return failed
	}
	t.Logf("of pods that do not linger: %d requests on new connections failed", len(replaced("second")))
	require.Equal(t, "3 of 33", lingers())
	require.Empty(t, replaced("third"))
	change("first")
}
