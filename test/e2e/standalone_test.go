package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

const standaloneModel = `name: standalone
applications:
  - "?": {type: com.mirantis.docker.DockerStandaloneHost, id: host}
    name: docker
    instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: docker-1, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
    containerRuntime: %[2]s
    dockerRegistry: %[1]s
    dockerRegistryUser: team
    dockerRegistryPassword: not-for-everybody
  - "?": {type: com.example.docker.DockerApp}
    name: front
    host: host
    image: registry.local/demo:1
    ports: "80:8080"
    env: POD_NAME=first
    volumes:
      /kept: {"?": {type: com.mirantis.docker.DockerPersistentVolume}, size: 10Mi}
      /shared: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /srv/shared}
      /scratch: {"?": {type: com.mirantis.docker.DockerTempVolume}, size: 10Mi}
  - "?": {type: com.example.docker.DockerApp}
    name: back
    host: host
    image: %[1]s/team/hello:1
    ports: "8090:8080"
    secretEnv: POD_NAME=out-of-sight
    publish: false
`

// standalone is a host of containers without a cluster.
type standalone struct {
	*scaling
	applications *applications
	floating     string
}

// TestContainersRunOnAStandaloneHost deploys two applications on one server, one of them from a registry that demands credentials, changes one,
// reboots the server, and removes one.
func TestContainersRunOnAStandaloneHost(t *testing.T) {
	containersRunOnAStandaloneHost(t, "containerd")
}

// TestDockerRunsTheContainersOfAStandaloneHost is the same with Docker's engine.
func TestDockerRunsTheContainersOfAStandaloneHost(t *testing.T) {
	withDocker(t)
	containersRunOnAStandaloneHost(t, "docker")
}

func containersRunOnAStandaloneHost(t *testing.T, runtime string) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	registry := startRegistry(t, "team", "not-for-everybody")
	registry.push(t, l, "team/hello:1")
	model := filepath.Join(t.TempDir(), "standalone.yaml")
	require.NoError(t, os.WriteFile(model, fmt.Appendf(nil, standaloneModel, registry.address, runtime), 0o600))
	l.deleteIfFailed(t, "standalone")
	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
	t.Logf("a server and two containers took %.1f s", time.Since(began).Seconds())
	require.Contains(t, log, "docker-1: kubelet started")
	require.NotContains(t, log, "out-of-sight")
	require.True(t, registry.pulls("team/hello "), "%v", registry.pulled)

	environment := environmentNamed(t, demo, "standalone")
	a := &applications{lab: l, user: demo}
	h := &standalone{applications: a, scaling: &scaling{lab: l, user: demo, environment: environment["id"].(string)}}
	instance := a.application(t, h.environment, "docker")["instance"].(map[string]any)
	h.floating = instance["floatingIpAddress"].(string)
	h.cluster = &cluster{lab: l, servers: map[string]string{"docker-1": instance["openstackId"].(string)}}
	if runtime == "docker" {
		require.Contains(t, log, "docker-1: cri-dockerd started")
		listed, err := h.cluster.on("docker-1", "docker", "ps", "--format", "{{.Names}}")
		require.NoError(t, err, listed)
		require.Regexp(t, `(?m)^k8s_front_front-docker-1_default_`, listed)
		require.Regexp(t, `(?m)^k8s_back_back-docker-1_default_`, listed)
	}

	t.Run("endpoints tell who reaches what", func(t *testing.T) {
		fixed := instance["ipAddresses"].([]any)[0].(string)
		require.Equal(t, []string{"host 172.31.0.1:80", "internal 172.31.0.1:80", "cloud " + fixed + ":80", "public " + h.floating + ":80"}, h.endpoints(t, "front"))
		require.Equal(t, []string{"host 172.31.0.1:8090", "internal 172.31.0.1:8090"}, h.endpoints(t, "back"))
		require.Contains(t, h.page(t), "Hello from first\n")
		_, err := get("http://" + h.floating + ":8090/")
		require.Error(t, err)
		for _, process := range h.processes(t) { // each container reaches both, itself among them
			for port, name := range map[string]string{"80": "first", "8090": "out-of-sight"} {
				text, err := h.cluster.on("docker-1", "nsenter", "--net", "--target", process, "curl", "--silent", "--show-error", "--max-time", "5", "http://172.31.0.1:"+port+"/")
				require.NoError(t, err, text)
				require.Contains(t, text, "Hello from "+name+"\n")
			}
		}
	})

	t.Run("what has not changed runs on", func(t *testing.T) {
		before := h.processes(t)
		task, log := a.try(t, h.environment, a.draft(t, h.environment))
		require.Equal(t, "success", task["state"], log)
		require.NotContains(t, log, "started")
		require.Equal(t, before, h.processes(t))

		task, log = h.changed(t, a, "front", func(front map[string]any) { front["env"] = "POD_NAME=second" })
		require.Equal(t, "success", task["state"], log)
		require.Contains(t, h.page(t), "Hello from second\n")
		after := h.processes(t)
		require.Len(t, slices.DeleteFunc(slices.Clone(after), func(one string) bool { return slices.Contains(before, one) }), 1, "%v became %v", before, after)
	})

	t.Run("a container has its files, and is made anew with others", func(t *testing.T) {
		files := func(front, key string) (all, log string) {
			t.Helper()
			before := h.processes(t)
			task, log := h.changed(t, a, "front", func(described map[string]any) {
				described["files"] = map[string]any{"/etc/front.conf": front, "/etc/front.key": map[string]any{"text": key, "secret": true, "mode": "0400"}}
				if front == "" {
					described["files"] = map[string]any{}
				}
			})
			require.Equal(t, "success", task["state"], log)
			for _, process := range h.processes(t) {
				if slices.Contains(before, process) {
					continue
				}
				text, _ := h.cluster.on("docker-1", "bash", "-c", "cd /proc/"+process+"/root/etc; cat front.conf front.key; stat -c %a front.conf front.key")
				all += text
			}
			return all, log
		}
		all, log := files("first\n", "only-for-front\n")
		require.Equal(t, "first\nonly-for-front\n444\n400\n", all)
		require.NotContains(t, log, "only-for-front")
		all, _ = files("second\n", "only-for-front\n")
		require.Equal(t, "second\nonly-for-front\n444\n400\n", all)
		there, err := h.cluster.on("docker-1", "bash", "-c", "ls /var/lib/burano/volumes/files/front | wc -l; stat -c %a /var/lib/burano/volumes/files")
		require.NoError(t, err, there)
		require.Equal(t, "2\n700\n", there, "the former ones are gone")
		files("", "")
		there, err = h.cluster.on("docker-1", "ls", "-A", "/var/lib/burano/volumes/files")
		require.NoError(t, err, there)
		require.Empty(t, there)
	})

	t.Run("a port that is taken is refused", func(t *testing.T) {
		before := h.processes(t)
		task, log := h.changed(t, a, "back", func(back map[string]any) { back["ports"] = "80:8080" })
		require.NotEqual(t, "success", task["state"], log)
		require.Contains(t, log, "Port 80 is already used on the Docker host docker")
		require.Equal(t, before, h.processes(t))
		task, log = h.changed(t, a, "back", func(back map[string]any) { back["ports"] = "8090:8080" })
		require.Equal(t, "success", task["state"], log)
		require.Equal(t, before, h.processes(t), "it is what it was")
	})

	t.Run("an image that cannot be had is told, and the next deployment mends it", func(t *testing.T) {
		soakOnly(t, "make soak runs this: a registry has 45 s to give an image")
		good := registry.address + "/team/hello:1"
		task, log := h.changed(t, a, "back", func(back map[string]any) {
			back["ports"], back["image"] = "8090:8080", registry.address+"/team/missing:1"
		})
		require.NotEqual(t, "success", task["state"], log)
		require.Regexp(t, `container back of back-docker-1: its image \S+/team/missing:1 cannot be pulled`, log)
		require.Contains(t, h.page(t), "Hello from second\n")
		task, log = h.changed(t, a, "back", func(back map[string]any) { back["image"] = good })
		require.Equal(t, "success", task["state"], log)
	})

	t.Run("containers come back after a reboot, with their volumes", func(t *testing.T) {
		kept, err := h.cluster.on("docker-1", "/bin/bash", "-c", "find /var/lib/burano/volumes -mindepth 3; touch /var/lib/burano/volumes/kept/front/kept/file; ls -d /srv/shared")
		require.NoError(t, err, kept)
		require.Equal(t, "/var/lib/burano/volumes/kept/front/kept\n/srv/shared\n", kept)
		before := h.processes(t)
		require.NoError(t, servers.Reboot(t.Context(), demo.nova(t), h.cluster.servers["docker-1"], servers.RebootOpts{Type: servers.SoftReboot}).ExtractErr())
		began := time.Now()
		l.eventually(t, 3*time.Minute, "both containers run again", func() error {
			text, err := h.cluster.on("docker-1", "pidof", "demo")
			now := strings.Fields(text)
			if err != nil || len(now) != 2 || slices.ContainsFunc(now, func(one string) bool { return slices.Contains(before, one) }) {
				return fmt.Errorf("%v run, and %v did: %w", now, before, err)
			}
			_, err = get("http://" + h.floating + "/")
			return err
		})
		t.Logf("containers were back %.1f s after the reboot was asked for", time.Since(began).Seconds())
		require.Contains(t, h.page(t), "Hello from second\n")
		task, log := a.try(t, h.environment, a.draft(t, h.environment))
		require.Equal(t, "success", task["state"], log)
		text, err := h.cluster.on("docker-1", "ls", "/var/lib/burano/volumes/kept/front/kept")
		require.NoError(t, err, text)
		require.Equal(t, "file\n", text)
	})

	t.Run("actions restart containers and read their logs", func(t *testing.T) {
		before := h.processes(t)
		h.act(t, "docker", "restartContainers", map[string]any{"container": "back"})
		after := h.processes(t)
		require.Len(t, after, 2)
		require.Len(t, slices.DeleteFunc(slices.Clone(after), func(one string) bool { return slices.Contains(before, one) }), 1, "%v became %v", before, after)
		result, _ := h.call(t, "docker", "getLogs", map[string]any{"lines": 5})
		for n, name := range []string{"front", "back"} {
			wrote := result["result"].([]any)[n].(map[string]any)
			require.Equal(t, name, wrote["container"])
			require.Contains(t, wrote["text"], "msg=serving")
			require.NotContains(t, wrote["text"], "out-of-sight")
		}
	})

	t.Run("an application that is removed takes its container along", func(t *testing.T) {
		session := a.draft(t, h.environment)
		back := a.application(t, h.environment, "back")["?"].(map[string]any)["id"].(string)
		demo.must(t, http.MethodDelete, "/v1/environments/"+h.environment+"/services/"+back, nil, "X-Configuration-Session", session)
		task, log := a.try(t, h.environment, session)
		require.Equal(t, "success", task["state"], log)
		require.Len(t, h.processes(t), 1)
		require.Equal(t, []any{"front"}, a.application(t, h.environment, "docker")["containers"])
		require.Contains(t, h.page(t), "Hello from second\n")
	})
	a.remove(t, "standalone")
	asBefore(t, demo, found)
}

// page is the answer of the application front to a client outside.
func (h *standalone) page(t *testing.T) (text string) {
	t.Helper()
	text, err := get("http://" + h.floating + "/")
	require.NoError(t, err)
	return text
}

// processes are the processes of the running containers, all of which are the demonstration's.
func (h *standalone) processes(t *testing.T) []string {
	t.Helper()
	text, err := h.cluster.on("docker-1", "pidof", "demo")
	require.NoError(t, err, text)
	return slices.Sorted(slices.Values(strings.Fields(text)))
}

// endpoints are the scopes and addresses of an application.
func (h *standalone) endpoints(t *testing.T, name string) (all []string) {
	t.Helper()
	for _, one := range h.applications.application(t, h.environment, name)["applicationEndpoints"].([]any) {
		endpoint := one.(map[string]any)
		all = append(all, fmt.Sprintf("%s %s:%.0f", endpoint["scope"], endpoint["address"], endpoint["port"]))
	}
	return all
}

const guestbookModel = `name: visitors
applications:
  - "?": {type: com.mirantis.docker.DockerStandaloneHost, id: host}
    name: docker
    instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: docker-1, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
  - "?": {type: io.burano.PostgreSQL, id: store}
    name: ledger
    host: host
    database: ledger
    size: 1Gi
    publish: true
  - "?": {type: io.burano.Guestbook}
    name: guestbook
    host: host
    database: store
`

// TestAGuestbookRunsOnAStandaloneHost connects two applications of the catalog on one server, with images from Glance.
func TestAGuestbookRunsOnAStandaloneHost(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for each image; TestContainersRunOnAStandaloneHost runs the demonstration's")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	folder := t.TempDir()
	model := filepath.Join(folder, "visitors.yaml")
	require.NoError(t, os.WriteFile(model, []byte(guestbookModel), 0o600))
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", model, "--follow")
	require.Error(t, err, output)
	require.Contains(t, output, "Glance has no container image glance.local/")
	require.Equal(t, found["servers"], inventory(t, demo)["servers"], "it was refused before anything was made")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "visitors")
	for _, name := range []string{"postgresql", "guestbook"} {
		file := filepath.Join(folder, name+".tar")
		l.run(t, nil, "burano", "image", "build-from", name, "--output", file)
		l.run(t, l.as("burano-demo"), "burano", "image", "push", file)
	}
	l.deleteIfFailed(t, "visitors")
	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
	t.Logf("a server with a database and a page took %.1f s", time.Since(began).Seconds())
	require.Contains(t, log, "docker-1: container image glance.local/postgresql:15 brought")
	s := &scaling{lab: l, user: demo, environment: environmentNamed(t, demo, "visitors")["id"].(string)}
	a := &applications{lab: l, user: demo}
	shown, _ := s.call(t, "ledger", "showPassword", map[string]any{})
	instance := a.application(t, s.environment, "docker")["instance"].(map[string]any)
	floating := instance["floatingIpAddress"].(string)
	response, err := http.PostForm("http://"+floating+"/", url.Values{"entry": {"I was here"}}) // follows to the page
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, servers.Reboot(t.Context(), demo.nova(t), instance["openstackId"].(string), servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	l.eventually(t, 3*time.Minute, "the page shows what was written before the reboot", func() error {
		text, err := get("http://" + floating + "/")
		if err == nil && !strings.Contains(text, "<li>I was here</li>") {
			err = fmt.Errorf("it is %q", text)
		}
		return err
	})
	require.Equal(t, "1", rows(t, floating+":5432", shown["result"].(string), "SELECT count(*) FROM pg_database WHERE datname = 'ledger'"))
	a.remove(t, "visitors")
	asBefore(t, demo, found)
}
