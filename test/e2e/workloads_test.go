package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

const (
	firstImage  = "registry.local/demo:1"
	secondImage = "glance.local/demo:2" // the same, which Burano copies to the nodes
)

// rollouts gives the pod another image, which Glance has, and goes back, while requests come.
func (s *scaling) rollouts(t *testing.T, gateway string) {
	file := filepath.Join(t.TempDir(), "demo.tar")
	tag, err := name.NewTag(secondImage)
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(file, tag, s.lab.demoImage(t)))
	require.Contains(t, s.lab.run(t, s.lab.as("burano-demo"), "burano", "image", "push", file), "is pushed")
	a := &applications{lab: s.lab, user: s.user}
	load := startLoad(t, gateway)
	lines := s.act(t, "web", "rollout", map[string]any{"image": secondImage})
	for node := range strings.FieldsSeq(s.cluster.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")) {
		require.Contains(t, lines["info"], node+": container image "+secondImage+" brought")
	}
	require.Equal(t, secondImage+" 2 of 2", s.images(t))
	require.Equal(t, secondImage, a.application(t, s.environment, "Hello")["image"], "the next deployment keeps it")
	s.act(t, "web", "rollback", map[string]any{})
	require.Equal(t, firstImage+" 2 of 2", s.images(t))
	require.Equal(t, firstImage, a.application(t, s.environment, "Hello")["image"])
	load.end()
	t.Logf("%s", load)
	s.cluster.noneFailed(t, load.failed)
	require.Greater(t, load.fresh+load.kept, 100, "there was a load")

	result, _ := s.call(t, "web", "getLogs", map[string]any{"lines": 5})
	wrote := map[any]any{} // also of pods that are about to end
	for _, one := range result["result"].([]any) {
		require.Equal(t, "hello", one.(map[string]any)["container"])
		wrote[one.(map[string]any)["pod"]] = one.(map[string]any)["text"]
	}
	for pod := range s.pods(t) {
		require.Contains(t, wrote[pod], "msg=serving")
	}
}

// images returns the image of the pod's Deployment, and how many of its replicas have it.
func (s *scaling) images(t *testing.T) string {
	t.Helper()
	return s.cluster.kubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image} {.status.updatedReplicas} of {.status.replicas}")
}

// failingRollouts gives the pod an image and an environment that do not run, mends both, and does the same to a job, while requests come. It takes
// minutes, most of them patience for errors that may pass by themselves.
func (s *scaling) failingRollouts(t *testing.T, gateway string) {
	soakOnly(t, "`make soak` runs this: it waits minutes for containers that do not come up")
	a := &applications{lab: s.lab, user: s.user}
	replicas := len(s.pods(t))
	all := func(image string) string { return fmt.Sprintf("%s %d of %d", image, replicas, replicas) }
	load := startLoad(t, gateway)

	s.act(t, "web", "rollout", map[string]any{"image": secondImage})
	result, lines := s.call(t, "web", "rollout", map[string]any{"image": "registry.local/none:1"})
	require.Equal(t, true, result["isException"])
	require.Contains(t, fmt.Sprint(lines), "container hello of web-")
	require.Contains(t, fmt.Sprint(lines), "its image registry.local/none:1 cannot be pulled")
	require.Equal(t, secondImage, a.application(t, s.environment, "Hello")["image"])
	s.act(t, "web", "scalePodUp", map[string]any{}) // a deployment like any other
	replicas++
	require.Equal(t, all(secondImage), s.images(t))
	s.act(t, "web", "rollback", map[string]any{})
	require.Equal(t, all(firstImage), s.images(t), "what never came up is left out")

	s.act(t, "web", "pauseRollout", map[string]any{})
	before := s.pods(t)
	require.Contains(t, fmt.Sprint(s.act(t, "web", "rollout", map[string]any{"image": secondImage})["warning"]), "is paused")
	require.Equal(t, before, s.pods(t))
	s.act(t, "web", "resumeRollout", map[string]any{})
	require.Equal(t, all(secondImage), s.images(t))

	// A change of the environment that does not run, and its correction.
	change := func(env string) (map[string]any, string) {
		return s.changed(t, a, "Hello", func(hello map[string]any) { hello["env"] = env })
	}
	task, log := change("LISTEN=nowhere")
	require.NotEqual(t, "success", task["state"])
	require.Regexp(t, `it ended with exit code 1 \(Error\), and was started again [34] times`, log)
	require.Regexp(t, `(?s)The last lines of container hello of web-.*level=ERROR msg=stopped`, log)
	task, log = change("MODE=well")
	require.Equal(t, "success", task["state"], log)
	require.Equal(t, all(secondImage), s.images(t))
	after := s.pods(t)
	task, log = change("MODE=well")
	require.Equal(t, "success", task["state"], log)
	require.Equal(t, after, s.pods(t), "changing nothing touches nothing")
	load.end()
	t.Logf("%s", load)
	s.cluster.noneFailed(t, load.failed)

	commands := func(commands ...string) (map[string]any, string) {
		return s.changed(t, a, "version", func(version map[string]any) {
			version["commands"], version["secretEnv"] = commands, jobSecret // answers mask secrets
		})
	}
	task, log = commands("-nonsense")
	require.NotEqual(t, "success", task["state"])
	require.Contains(t, log, "the job has failed")
	require.Contains(t, log, "-nonsense")
	task, log = commands("-version")
	require.Equal(t, "success", task["state"], log)
}

const jobSecret = "WORD=pencil-and-paper"

// aJob is the model of a job that runs to its end.
const aJob = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: once}
    name: once
    kubernetesCluster: cluster
    replicas: 1
    workload: job
    retries: 0

  - "?": {type: com.example.docker.DockerApp, id: version}
    name: version
    image: registry.local/coredns:1.15.0
    host: once
    commands: [-version]
    secretEnv: ` + jobSecret + `
`

// ran demands that aJob has run once; log is its deployment's.
func (s *scaling) ran(t *testing.T, log string) {
	require.Equal(t, "1", s.cluster.kubectl(t, "", "get", "job", "once", "-o", "jsonpath={.status.succeeded}"))
	require.Contains(t, s.cluster.kubectl(t, "", "logs", "job/once"), "CoreDNS-1.15.0")
	_, word, _ := strings.Cut(jobSecret, "=")
	require.NotContains(t, s.cluster.kubectl(t, "", "get", "job,pod", "-l", "id=once", "-o", "yaml"), word)
	require.NotContains(t, log, word)
	require.Equal(t, word, s.cluster.kubectl(t, "", "get", "secret", "-l", "burano.io/container=version", "-o", "go-template={{range .items}}{{.data.WORD | base64decode}}{{end}}"))
}

// changed deploys a change of an application's model.
func (s *scaling) changed(t *testing.T, a *applications, name string, change func(map[string]any)) (task map[string]any, log string) {
	t.Helper()
	session := a.draft(t, s.environment)
	all := s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == name })
	require.GreaterOrEqual(t, n, 0)
	service := all[n].(map[string]any)
	change(service)
	s.user.must(t, http.MethodPut, fmt.Sprintf("/v1/environments/%s/services/%d", s.environment, n), service, "X-Configuration-Session", session)
	return a.try(t, s.environment, session)
}
