package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// history is an environment with a random past: a cluster and applications with volumes, each with a marker of its own.
type history struct {
	t         *testing.T // of all steps: a kubeconfig outlives the step that wrote it
	lab       *lab
	demo      *user
	random    *rand.Rand
	file      string
	cluster   *cluster
	minions   []int // the numbers in the names of the minions, in the file's order
	apps      []*historyApp
	named     int    // how many names were given
	broken    string // a line of the cluster that is refused
	clusterAt int    // the place of the cluster among the applications
	past      map[int64]history
}

type historyApp struct {
	id, name string // the id is the pod's
	volumes  []*historyVolume
}

type historyVolume struct{ path, marker string }

// TestAnyHistoryOfEditsKeepsItsMarkers makes random edits, refused edits, actions, rollbacks, restores and restarts of the server, and after each of them looks
// for the marker in every volume. BURANO_HISTORY is the seed, which a failure prints; BURANO_EDITS is how many.
func TestAnyHistoryOfEditsKeepsItsMarkers(t *testing.T) {
	soakOnly(t, "the table of ordinary edits has one of each; a random history takes minutes")
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("BURANO_HISTORY"), fmt.Sprint(time.Now().UnixNano())), 10, 64)
	require.NoError(t, err)
	count, err := strconv.Atoi(cmp.Or(os.Getenv("BURANO_EDITS"), "40"))
	require.NoError(t, err)
	t.Logf("BURANO_HISTORY=%d", seed)
	l := start(t)
	h := &history{t: t, lab: l, demo: l.user(t, "burano-demo"), random: rand.New(rand.NewPCG(seed, 0)), file: filepath.Join(t.TempDir(), "history.yaml"), minions: []int{2, 3}, past: map[int64]history{}}
	found := inventory(t, h.demo)
	l.deleteIfFailed(t, "history")
	h.add()
	h.add()
	h.deploy(t)
	h.cluster = l.clusterOf(t, h.demo, environmentNamed(t, h.demo, "history"))
	servers := h.cluster.servers
	h.mark(t)
	h.remember(t)
	kinds := []struct {
		name string
		run  func(*testing.T)
	}{
		{"another order", h.reorder}, {"another name of a pod", h.rename}, {"another path", h.remount}, {"a new application", h.grow}, {"a new volume", h.enlarge},
		{"a volume that goes without consent", h.forget}, {"an edit that is refused", h.breaks}, {"nothing", h.deploy}, {"the server dies", h.die},
		{"pods made anew", h.recreate}, {"a volume that goes with consent", h.lose}, {"back to a former state", h.back},
		{"a restored snapshot", h.restore},
	}
	for i := range count {
		kind := kinds[h.random.IntN(len(kinds))]
		if !t.Run(fmt.Sprintf("%d %s", i+1, kind.name), func(t *testing.T) {
			kind.run(t)
			h.keeps(t)
			h.remember(t)
			require.Equal(t, servers, l.clusterOf(t, h.demo, environmentNamed(t, h.demo, "history")).servers, "no server was replaced")
		}) {
			return
		}
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "history")
	asBefore(t, h.demo, found)
}

// text is the file.
func (h *history) text() string {
	node := func(role, name string) string {
		return fmt.Sprintf(`{"?": {type: com.mirantis.docker.kubernetes.Kubernetes%sNode}, instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: %s, flavor: m1.medium, image: burano-node, assignFloatingIp: true}}`, role, name)
	}
	minions := ""
	for _, number := range h.minions {
		minions += fmt.Sprintf("      - %s\n", node("Minion", fmt.Sprintf("murano-kube-%d", number)))
	}
	cluster := fmt.Sprintf(`  - "?": {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: cluster}
    name: history-cluster
    masterNode: %s
    nodeCount: %d
    minionNodes:
%s    gatewayCount: 1
    gatewayNodes: [%s]
    storageClasses: [{name: burano-local, backend: local, default: true}]
%s`, node("Master", "murano-kube-1"), len(h.minions)-1, minions, node("Gateway", "murano-gateway-1"), h.broken)
	var list []string
	for _, app := range h.apps {
		volumes := ""
		for _, one := range app.volumes {
			volumes += fmt.Sprintf("      %s: {\"?\": {type: com.mirantis.docker.DockerPersistentVolume}, size: 10Mi}\n", one.path)
		}
		list = append(list, fmt.Sprintf(`  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: %[1]s}
    name: %[2]s
    kubernetesCluster: cluster
    replicas: 1
  - "?": {type: com.example.docker.DockerApp}
    name: in-%[1]s
    image: registry.local/demo:1
    host: %[1]s
    entryPoint: [/usr/bin/bash, -euc]
    commands: ['trap "exit 0" TERM; while true; do sleep 1 & wait $!; done']
    volumes:
%[3]s      /usr: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr}
      /lib: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib}
      /lib64: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib64}
`, app.id, app.name, volumes))
	}
	list = slices.Insert(list, min(h.clusterAt, len(list)), cluster)
	return "name: history\napplications:\n" + strings.Join(list, "")
}

func (h *history) try(t *testing.T, flags ...string) (string, error) {
	require.NoError(t, os.WriteFile(h.file, []byte(h.text()), 0o600))
	return h.lab.try(h.lab.as("burano-demo"), "burano", append([]string{"deploy", h.file, "--follow"}, flags...)...)
}

func (h *history) deploy(t *testing.T) {
	t.Helper()
	output, err := h.try(t)
	require.NoError(t, err, output)
}

func (h *history) name(prefix string) string {
	h.named++
	return fmt.Sprintf("%s%d", prefix, h.named)
}

func (h *history) app() *historyApp { return h.apps[h.random.IntN(len(h.apps))] }

// add adds an application with a volume to the file.
func (h *history) add() {
	name := h.name("app")
	app := &historyApp{id: name, name: name}
	h.apps = append(h.apps, app)
	h.mount(app)
}

func (h *history) mount(app *historyApp) {
	app.volumes = append(app.volumes, &historyVolume{path: h.name("/data"), marker: h.name("precious")})
}

// mark writes the missing markers.
func (h *history) mark(t *testing.T) {
	t.Helper()
	for _, app := range h.apps {
		for _, one := range app.volumes {
			output, err := h.cluster.inNewestPod(t, app.name, fmt.Sprintf("test -e %[1]s/marker || echo %[2]s > %[1]s/marker; sync", one.path, one.marker))
			require.NoError(t, err, output)
		}
	}
}

func (h *history) keeps(t *testing.T) {
	t.Helper()
	for _, app := range h.apps {
		for _, one := range app.volumes {
			h.lab.eventually(t, time.Minute, fmt.Sprintf("%s has its marker in %s", app.id, one.path), func() error {
				output, err := h.cluster.inNewestPod(t, app.name, "cat "+one.path+"/marker")
				if err == nil && strings.TrimSpace(output) != one.marker {
					err = fmt.Errorf("%q instead of %s", output, one.marker)
				}
				return err
			})
		}
	}
	require.Len(t, strings.Fields(h.cluster.kubectl(t, "", "get", "deployments", "-o", "name")), len(h.apps), "no former Deployment runs")
}

func (h *history) reorder(t *testing.T) {
	h.random.Shuffle(len(h.apps), func(i, k int) { h.apps[i], h.apps[k] = h.apps[k], h.apps[i] })
	h.random.Shuffle(len(h.minions), func(i, k int) { h.minions[i], h.minions[k] = h.minions[k], h.minions[i] })
	h.clusterAt = h.random.IntN(len(h.apps) + 1)
	h.deploy(t)
}

func (h *history) rename(t *testing.T) {
	h.app().name = h.name("renamed")
	h.deploy(t)
}

func (h *history) remount(t *testing.T) {
	volumes := h.app().volumes
	volumes[h.random.IntN(len(volumes))].path = h.name("/other")
	h.deploy(t)
}

func (h *history) grow(t *testing.T) {
	if len(h.apps) < 5 {
		h.add()
	}
	h.deploy(t)
	h.mark(t)
}

func (h *history) enlarge(t *testing.T) {
	if app := h.app(); len(app.volumes) < 3 {
		h.mount(app)
	}
	h.deploy(t)
	h.mark(t)
}

// forget removes a volume from the file, which is refused, and puts it back.
func (h *history) forget(t *testing.T) {
	app := h.app()
	kept := app.volumes
	app.volumes = slices.Delete(slices.Clone(kept), 0, 1)
	output, err := h.try(t)
	require.Error(t, err, output)
	require.Contains(t, output, "--allow-destroy")
	app.volumes = kept
}

// breaks deploys a file that is refused. The next deployment has the file as it was.
func (h *history) breaks(t *testing.T) {
	h.broken = "    masterCount: 17\n"
	output, err := h.try(t)
	h.broken = ""
	require.Error(t, err, output)
}

// die kills the server in the middle of a deployment.
func (h *history) die(t *testing.T) {
	h.app().name = h.name("killed")
	require.NoError(t, os.WriteFile(h.file, []byte(h.text()), 0o600))
	h.lab.run(t, h.lab.as("burano-demo"), "burano", "deploy", h.file)
	require.NoError(t, h.lab.server.Process.Signal(syscall.SIGKILL))
	_ = h.lab.server.Wait()
	h.lab.launch(t)
	h.lab.healthy(t)
	h.lab.run(t, h.lab.as("burano-demo"), "burano", "deployment", "show", "history", "--follow")
}

func (h *history) recreate(t *testing.T) { h.act(t, "recreatePod") }

func (h *history) act(t *testing.T, action string) {
	s := &scaling{lab: h.lab, user: h.demo, cluster: h.cluster, environment: environmentNamed(t, h.demo, "history")["id"].(string)}
	s.act(t, h.app().name, action, map[string]any{})
}

// lose removes a volume from the file with consent. Its claim stays in the cluster, and a former state still has it.
func (h *history) lose(t *testing.T) {
	app := h.app()
	if len(app.volumes) < 2 {
		h.forget(t)
		h.deploy(t)
		return
	}
	at := h.random.IntN(len(app.volumes))
	app.volumes = slices.Delete(slices.Clone(app.volumes), at, at+1)
	output, err := h.try(t, "--allow-destroy", app.id)
	require.NoError(t, err, output)
}

// applications are copies of the applications and their volumes.
func (h *history) applications() []*historyApp {
	var list []*historyApp
	for _, app := range h.apps {
		again := &historyApp{id: app.id, name: app.name}
		for _, one := range app.volumes {
			again.volumes = append(again.volumes, &historyVolume{path: one.path, marker: one.marker})
		}
		list = append(list, again)
	}
	return list
}

// remember records the file of the environment's present state, by the state's number.
func (h *history) remember(t *testing.T) {
	t.Helper()
	var states struct{ Present int64 }
	require.NoError(t, json.Unmarshal([]byte(h.lab.run(t, h.lab.as("burano-demo"), "burano", "environment", "history", "history", "-o", "json")), &states))
	require.NotZero(t, states.Present, "the environment is in a state")
	if _, isKnown := h.past[states.Present]; !isKnown {
		h.past[states.Present] = history{apps: h.applications(), minions: slices.Clone(h.minions), clusterAt: h.clusterAt}
	}
}

// losers are the applications with a volume that a former state does not have.
func (h *history) losers(former history) (ids []string) {
	has := map[string]bool{}
	for _, app := range former.apps {
		for _, one := range app.volumes {
			has[one.marker] = true
		}
	}
	for _, app := range h.apps {
		if slices.ContainsFunc(app.volumes, func(one *historyVolume) bool { return !has[one.marker] }) {
			ids = append(ids, app.id)
		}
	}
	return ids
}

// back deploys a former state. Volumes that the state does not have stay without their application, which wants consent, and those that it has are back.
func (h *history) back(t *testing.T) {
	numbers := slices.Sorted(maps.Keys(h.past))
	number := numbers[h.random.IntN(len(numbers))]
	former := h.past[number]
	command := []string{"environment", "rollback", "history", fmt.Sprint(number), "--follow"}
	losers := h.losers(former)
	t.Logf("back to state %d, without volumes of %v", number, losers)
	if len(losers) > 0 {
		output, err := h.lab.try(h.lab.as("burano-demo"), "burano", command...)
		require.Error(t, err, output)
		require.Contains(t, output, "--allow-destroy")
		h.keeps(t)
		command = append(command, "--allow-destroy", strings.Join(losers, ","))
	}
	h.lab.run(t, h.lab.as("burano-demo"), "burano", command...)
	h.apps, h.minions, h.clusterAt = former.apps, slices.Clone(former.minions), former.clusterAt
	h.apps = h.applications() // the state stays as it was
}

// restore takes a snapshot of the cluster, makes some edits, and restores the snapshot: the next deployment finds Kubernetes as it was before the edits.
func (h *history) restore(t *testing.T) {
	h.lab.run(t, h.lab.as("burano-demo"), "burano", "cluster", "snapshot", "create", "history")
	var list []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(h.lab.run(t, h.lab.as("burano-demo"), "burano", "cluster", "snapshot", "list", "history", "-o", "json")), &list))
	edits := []func(*testing.T){h.rename, h.remount, h.reorder, h.recreate, h.lose}
	for range 1 + h.random.IntN(2) {
		edits[h.random.IntN(len(edits))](t)
	}
	h.lab.run(t, h.lab.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "history", "--snapshot", list[0].ID, "--yes", "--follow")
	h.cluster = h.lab.clusterOf(h.t, h.demo, environmentNamed(t, h.demo, "history"))
	h.deploy(t)
}
