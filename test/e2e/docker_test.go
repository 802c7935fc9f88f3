package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/images"
)

// withDocker skips a test whose node image has no Docker.
func withDocker(t *testing.T) {
	t.Helper()
	manifest, err := images.ManifestOf((&lab{root: "../.."}).image())
	require.NoError(t, err)
	if manifest.Packages["docker.io"] == "" {
		t.Skip("the node image has no Docker: `make test-docker` builds one that has, and runs this")
	}
}

// TestDockerRunsTheContainersOfACluster runs the usual cases on minions whose runtime is Docker's engine: pods that answer, are recreated, restarted,
// read, asked by probes and by name, images of registries, and one more minion.
func TestDockerRunsTheContainersOfACluster(t *testing.T) {
	withDocker(t)
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	other, mirror := startRegistry(t, "team", "not-for-everybody"), startRegistry(t, "", "")
	other.push(t, l, "team/hello:1")
	mirror.push(t, l, "library/hello:1")

	usual, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	model := strings.Replace(string(usual), "nodeCount: 1", "nodeCount: 2", 1)
	model = strings.Replace(model, "name: scaling-cluster\n", fmt.Sprintf(`name: scaling-cluster
    containerRuntime: docker
    storageClasses: [{name: burano-local, backend: local, default: true}]
    enableRegistry: true
    registrySize: 1Gi
    dockerRegistry: %s
    dockerRegistryUser: team
    dockerRegistryPassword: not-for-everybody
`, other.address), 1)
	file := filepath.Join(t.TempDir(), "docker.yaml")
	try := func(model string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	l.deleteIfFailed(t, "scaling")

	again := l.nodeImageWithout(t, "burano_docker")
	output, err := try(model)
	require.Error(t, err, output)
	require.Contains(t, output, "image burano-node of murano-kube-2 does not say that it has Docker, which containerRuntime asks for: build a node image with it")
	again()
	output, err = try(strings.Replace(model, "containerRuntime: docker", "containerRuntime: docker\n    dockerMirror: https://mirror.example.org/v2/hub", 1))
	require.Error(t, err, output)
	require.Contains(t, output, "dockerMirror has https://mirror.example.org/v2/hub, and Docker takes no mirror with a path")

	output, err = try(model)
	require.NoError(t, err, output)
	require.Contains(t, output, "murano-kube-2: cri-dockerd started")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	c, gateway := s.cluster, endpointOf(t, environment)
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	require.Regexp(t, `^docker://\S+ docker://\S+$`, c.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.containerRuntimeVersion}"))
	require.Regexp(t, `(?m)^k8s_\S+_default_`, s.in(t, "murano-kube-2", "docker ps --format '{{.Names}}'")+s.in(t, "murano-kube-3", "docker ps --format '{{.Names}}'"))
	require.Contains(t, s.in(t, "murano-kube-2", "docker ps --all --format '{{.Names}} {{.Image}}'"), " registry.local/coredns:1.15.0\n", "it is pinned")
	t.Log(s.in(t, "murano-kube-2", "docker info --format '{{.ServerVersion}} {{.Driver}} {{.CgroupDriver}} {{.CgroupVersion}}'; docker system df"))
	_, err = get("http://" + gateway)
	require.NoError(t, err)
	output, err = try(model)
	require.NoError(t, err, output)
	require.NotContains(t, output, "started", "the same again starts nothing")
	require.NotContains(t, output, "files installed")

	t.Run("pods reach each other on both nodes, and by name", func(t *testing.T) {
		require.Len(t, strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "id=web", "-o", "jsonpath={.items[*].metadata.name}")), 2)
		var asked []string
		for _, node := range []string{"murano-kube-2", "murano-kube-3"} {
			name := "on-" + node
			c.kubectl(t, "", "run", name, "--image=registry.local/demo:1", "--port=8080", `--overrides={"spec":{"nodeName":"`+node+`"}}`)
			c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
			asked = append(asked, strings.TrimSpace(c.kubectl(t, "", "get", "pod", name, "-o", "jsonpath={.status.podIP}")))
		}
		c.kubectl(t, "", "expose", "pod", "on-murano-kube-3", "--name=named", "--port=8080")
		for _, node := range []string{"murano-kube-2", "murano-kube-3"} {
			for _, host := range append(asked, "named.default.svc.cluster.local", "named") {
				l.eventually(t, 30*time.Second, host+" answers a pod of "+node, func() error {
					output, err := c.inPod(node, "curl --silent --show-error --max-time 5 http://"+host+":8080/")
					if err != nil || !strings.Contains(output, "Hello from") {
						return fmt.Errorf("%s: %w", output, err)
					}
					return nil
				})
			}
		}
		c.kubectl(t, "", "delete", "service/named", "pod/on-murano-kube-2", "pod/on-murano-kube-3", "--now")
	})
	t.Run("pods are recreated, restarted and read", func(t *testing.T) {
		s.actionsOfThePod(t)
		s.act(t, "web", "scalePodDown", map[string]any{"count": 3})
		result, _ := s.call(t, "web", "getLogs", map[string]any{"lines": 5})
		require.Contains(t, fmt.Sprint(result["result"]), "msg=serving")
		pod := slices.Collect(maps.Keys(s.pods(t)))[0]
		require.Contains(t, c.kubectl(t, "", "logs", pod), "msg=serving")
		require.Contains(t, c.kubectl(t, "", "exec", "-n", "kube-system", "deployment/coredns", "--", "/coredns", "-version"), "CoreDNS-1.15.0")
		l.eventually(t, 2*time.Minute, "what pods use is known", func() error {
			output, err := c.tryKubectl("", "top", "pods", "-l", "id=web")
			if err != nil || !strings.Contains(output, pod) {
				return fmt.Errorf("%s: %w", output, err)
			}
			return nil
		})
	})
	t.Run("a probe that fails has its container started again, and one that answers makes it ready", func(t *testing.T) {
		probed := func(name, kind, probe string) string {
			return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers:\n    - name: demo\n      image: registry.local/demo:1\n      " + kind + ": {periodSeconds: 1, failureThreshold: 1, " + probe + "}\n"
		}
		c.kubectl(t, probed("answers", "readinessProbe", "httpGet: {path: /, port: 8080}"), "apply", "-f", "-")
		c.kubectl(t, probed("fails", "livenessProbe", `exec: {command: [/no-such-program]}`), "apply", "-f", "-")
		c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/answers", "--timeout=60s")
		c.kubectl(t, "", "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/fails", "--timeout=60s")
		c.kubectl(t, "", "delete", "pod", "answers", "fails", "--now")
	})
	t.Run("images come from registries", func(t *testing.T) {
		archive := filepath.Join(t.TempDir(), "hello.tar")
		tag, err := name.NewTag("team/hello:1")
		require.NoError(t, err)
		require.NoError(t, tarball.WriteToFile(archive, tag, l.demoImage(t)))
		l.run(t, l.as("burano-demo"), "burano", "image", "push", archive, "--to", "scaling")
		before := dockerProcesses(t, s)
		output, err := try(strings.Replace(model, "containerRuntime: docker", "containerRuntime: docker\n    dockerMirror: http://"+mirror.address, 1))
		require.NoError(t, err, output)
		require.Contains(t, output, "murano-kube-2: docker started")
		require.Equal(t, before, dockerProcesses(t, s), "what runs goes on while Docker is started anew")
		for pod, image := range map[string]string{"of-other": other.address + "/team/hello:1", "of-hub": "hello:1", "of-own": "registry.scaling-cluster.internal/team/hello:1"} {
			c.kubectl(t, "", "run", pod, "--image="+image, "--image-pull-policy=Always")
			output, err := c.tryKubectl("", "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=90s")
			require.NoErrorf(t, err, "%s%s", output, c.kubectl(t, "", "describe", "pod", pod))
		}
		require.True(t, other.pulls("team/hello "), "%v", other.pulled)
		require.True(t, mirror.pulls("library/hello "), "%v", mirror.pulled)
		c.kubectl(t, "", "delete", "pod", "of-own", "of-hub", "of-other", "--now")
	})
	t.Run("another minion comes, and a server's reboot changes nothing", func(t *testing.T) {
		s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
		s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1"})
		require.Contains(t, s.in(t, "murano-kube-4", "docker image ls"), "registry.local/pause")
		s.act(t, "scaling-cluster", "rebootNode", map[string]any{"node": "murano-kube-4"})
		c.kubectl(t, "", "run", "after", "--image=registry.local/demo:1", `--overrides={"spec":{"nodeName":"murano-kube-4"}}`)
		c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/after", "--timeout=60s")
		c.kubectl(t, "", "delete", "pod", "after", "--now")
	})
	t.Run("minions keep what they began with, and new ones get what the cluster says", func(t *testing.T) {
		mixed := strings.Replace(model, "containerRuntime: docker", "containerRuntime: containerd", 1)
		output, err := try(mixed) // it removes the third minion
		require.NoError(t, err, output)
		require.NotRegexp(t, `murano-kube-[23]: (containerd|kubelet|container images)`, output)
		s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
		runtimes := strings.Fields(c.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.containerRuntimeVersion}"))
		slices.Sort(runtimes)
		require.Regexp(t, `^\[containerd://\S+ docker://\S+ docker://\S+\]$`, fmt.Sprint(runtimes))
	})
	_, err = get("http://" + gateway)
	require.NoError(t, err)

	output = l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	require.Contains(t, output, "is deleted")
	asBefore(t, demo, found)
}

// dockerProcesses are the containers on two nodes, except for the registry, which restarts with another mirror.
func dockerProcesses(t *testing.T, s *scaling) (all []string) {
	t.Helper()
	for _, node := range []string{"murano-kube-2", "murano-kube-3"} {
		all = append(all, regexp.MustCompile(`\S+`).FindAllString(s.in(t, node, "docker ps --format '{{.ID}} {{.Names}}' | grep -v burano-registry | cut -d ' ' -f 1 | xargs docker inspect --format '{{.State.Pid}}' | sort"), -1)...)
	}
	return all
}
