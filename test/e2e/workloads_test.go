package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rollouts gives the pod other images and another environment, also such as do not run, and goes back, while requests come; then a job runs.
func (s *scaling) rollouts(t *testing.T, gateway string) {
	const object, first, second = "web", "registry.local/demo:1", "registry.local/demo:2"
	for node := range strings.FieldsSeq(s.cluster.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")) {
		s.in(t, node, "ctr --namespace k8s.io images tag "+first+" "+second)
	}
	if more := len(s.pods(t)) - 2; more > 0 {
		s.act(t, object, "scalePodDown", map[string]any{"count": more})
	}
	images := func() string {
		return s.cluster.kubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image} {.status.updatedReplicas} of {.status.replicas}")
	}
	a := &applications{lab: s.lab, user: s.user}
	load := startLoad(t, gateway)

	s.act(t, object, "rollout", map[string]any{"image": second})
	require.Equal(t, second+" 2 of 2", images())
	require.Equal(t, second, a.application(t, s.environment, "Hello")["image"], "the next deployment keeps it")

	began := time.Now()
	result, lines := s.call(t, object, "rollout", map[string]any{"image": "registry.local/none:1"})
	require.Equal(t, true, result["isException"])
	require.Contains(t, fmt.Sprint(lines), "container hello of web-")
	require.Contains(t, fmt.Sprint(lines), "its image registry.local/none:1 cannot be pulled")
	require.Less(t, time.Since(began), 3*time.Minute)
	require.Equal(t, second, a.application(t, s.environment, "Hello")["image"])
	s.act(t, object, "scalePodUp", map[string]any{}) // a deployment like any other
	require.Equal(t, second+" 3 of 3", images())

	s.act(t, object, "rollback", map[string]any{})
	require.Equal(t, first+" 3 of 3", images(), "what never came up is left out")
	require.Equal(t, first, a.application(t, s.environment, "Hello")["image"])

	s.act(t, object, "pauseRollout", map[string]any{})
	before := s.pods(t)
	require.Contains(t, fmt.Sprint(s.act(t, object, "rollout", map[string]any{"image": second})["warning"]), "is paused")
	require.Equal(t, before, s.pods(t))
	s.act(t, object, "resumeRollout", map[string]any{})
	require.Equal(t, second+" 3 of 3", images())

	// A change of the environment that does not run, and what mends it.
	change := func(env string) (map[string]any, string) {
		session := a.draft(t, s.environment)
		n, all := a.services(t, s.environment, "Hello")
		all["env"] = env
		s.user.must(t, http.MethodPut, fmt.Sprintf("/v1/environments/%s/services/%d", s.environment, n), all, "X-Configuration-Session", session)
		return a.try(t, s.environment, session)
	}
	task, log := change("LISTEN=nowhere")
	require.NotEqual(t, "success", task["state"])
	require.Regexp(t, `it ended with exit code 1 \(Error\), and was started again [34] times`, log)
	require.Regexp(t, `(?s)The last lines of container hello of web-.*level=ERROR msg=stopped`, log)
	task, log = change("MODE=well")
	require.Equal(t, "success", task["state"], log)
	require.Equal(t, second+" 3 of 3", images())
	after := s.pods(t)
	task, log = change("MODE=well")
	require.Equal(t, "success", task["state"], log)
	require.Equal(t, after, s.pods(t), "changing nothing touches nothing")
	load.end()
	t.Logf("%s", load)
	require.Empty(t, load.failed, load.String())
	require.Greater(t, load.fresh+load.kept, 1000, "there was a load")

	result, _ = s.call(t, object, "getLogs", map[string]any{"lines": 5})
	logs := result["result"].([]any)
	require.Len(t, logs, 3)
	for _, one := range logs {
		require.Contains(t, one.(map[string]any)["text"], "msg=serving")
		require.Equal(t, "hello", one.(map[string]any)["container"])
	}
	s.job(t, a)
}

// job has a job run to its end, fail, and be taken away.
func (s *scaling) job(t *testing.T, a *applications) {
	session := a.draft(t, s.environment)
	add := func(service map[string]any) {
		s.user.must(t, http.MethodPost, "/v1/environments/"+s.environment+"/services", service, "X-Configuration-Session", session)
	}
	add(map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesPod", "id": "once"}, "name": "once", "replicas": 1, "workload": "job",
		"retries": 0, "kubernetesCluster": a.application(t, s.environment, "scaling-cluster")["?"].(map[string]any)["id"]})
	add(map[string]any{"?": map[string]any{"type": "com.example.docker.DockerApp", "id": "version"}, "name": "version", "image": "registry.local/coredns:1.15.0",
		"host": "once", "commands": []string{"-version"}, "secretEnv": "WORD=pencil-and-paper"})
	task, log := a.try(t, s.environment, session)
	require.Equal(t, "success", task["state"], log)
	require.Equal(t, "1", s.cluster.kubectl(t, "", "get", "job", "once", "-o", "jsonpath={.status.succeeded}"))
	written := s.cluster.kubectl(t, "", "get", "job,pod", "-l", "id=once", "-o", "yaml")
	require.NotContains(t, written, "pencil-and-paper")
	require.NotContains(t, log, "pencil-and-paper")
	require.Equal(t, "pencil-and-paper", s.cluster.kubectl(t, "", "get", "secret", "-l", "burano.io/pod=once", "-o", "go-template={{range .items}}{{.data.WORD | base64decode}}{{end}}"))
	result, _ := s.call(t, "once", "getLogs", map[string]any{})
	require.Contains(t, fmt.Sprint(result["result"]), "CoreDNS-1.15.0")

	change := func(commands ...string) (map[string]any, string) {
		session = a.draft(t, s.environment)
		n, service := a.services(t, s.environment, "version")
		service["commands"], service["secretEnv"] = commands, "WORD=pencil-and-paper" // answers mask secrets
		s.user.must(t, http.MethodPut, fmt.Sprintf("/v1/environments/%s/services/%d", s.environment, n), service, "X-Configuration-Session", session)
		return a.try(t, s.environment, session)
	}
	task, log = change("-nonsense")
	require.NotEqual(t, "success", task["state"])
	require.Contains(t, log, "the job has failed")
	require.Contains(t, log, "-nonsense")
	task, log = change("-version")
	require.Equal(t, "success", task["state"], log)
}

// services returns the number of an application of an environment, and what its model says.
func (a *applications) services(t *testing.T, environment, name string) (int, map[string]any) {
	t.Helper()
	all := a.user.must(t, http.MethodGet, "/v1/environments/"+environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == name })
	require.GreaterOrEqual(t, n, 0)
	return n, all[n].(map[string]any)
}
