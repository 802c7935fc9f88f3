package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/timeline"
)

// formerImageVariable names a node image with the minor version of Kubernetes before the other tests' image.
const formerImageVariable = "BURANO_FORMER_NODE_IMAGE"

// formerImage is the file of that image. Without one the test is skipped: make test-upgrade runs it.
func formerImage(t *testing.T) string {
	t.Helper()
	former := os.Getenv(formerImageVariable)
	if former == "" {
		t.Skipf("%s is not set: make test-upgrade sets it", formerImageVariable)
	}
	return former
}

// closedRate is how many requests a second go to pods that a NetworkPolicy closes.
const closedRate = 4

// TestAClusterIsUpgraded upgrades a cluster with two minions and two gateways to an image with a newer Kubernetes, while requests come through
// both gateways. The upgrade is planned, begun, paused beside its former master, rolled back, begun again, paused after the master, and
// continued; the server is killed at steps of it. Requests fail only at the gateway that is being replaced. `make test-upgrade` makes the
// former image.
func TestAClusterIsUpgraded(t *testing.T) { underLoad(t, "") }

// TestAClusterIsUpgradedWhoseCalicoIsInKubernetes is the same with Calico's store in Kubernetes: nodes of all roles have Node objects, which come and go with them.
func TestAClusterIsUpgradedWhoseCalicoIsInKubernetes(t *testing.T) {
	underLoad(t, "    calicoDatastore: kubernetes\n")
}

func underLoad(t *testing.T, lines string) {
	former := formerImage(t)
	l := start(t, "faults")
	u := deployFormer(t, l, former, "scaling.yaml", lines, "nodeCount: 1", "nodeCount: 2", "gatewayCount: 1", "gatewayCount: 2")
	plan := u.upgrade(t, "--image", "burano-node", "--plan")
	t.Logf("the plan:\n%s", plan)
	require.Regexp(t, `from Kubernetes v1\.\d+\.\d+ to v1\.\d+\.\d+ \(image burano-node\), about 7m30s, by guess`, plan)
	for i, node := range []string{"murano-kube-1 +master", "murano-kube-2 +minion", "murano-kube-3 +minion", "murano-gateway-1 +gateway", "murano-gateway-2 +gateway"} {
		require.Regexp(t, fmt.Sprintf(`(?m)^%d +%s +v1\.`, i+1, node), plan)
	}
	before := u.version(t)

	t.Run("versions that do not work together are refused", func(t *testing.T) {
		require.Contains(t, u.fails(t, "--image", "burano-node", "--plan", "--force", "--pause"), "none of the others can be")
		require.Contains(t, u.fails(t, "--image", "nothing"), "The project sees no image nothing")
		minions := u.model
		for _, name := range []string{"murano-kube-2", "murano-kube-3"} {
			minions = strings.Replace(minions, "name: "+name+", flavor: m1.medium, image: burano-former", "name: "+name+", flavor: m1.medium, image: burano-node", 1)
		}
		file := filepath.Join(t.TempDir(), "minions.yaml")
		require.NoError(t, os.WriteFile(file, []byte(minions), 0o600))
		for _, args := range [][]string{{"--dry-run"}, {"--follow"}} {
			output, err := u.lab.try(u.lab.as("burano-demo"), "burano", append([]string{"deploy", file}, args...)...)
			require.Error(t, err, output)
			require.Contains(t, output, "a kubelet must not be newer than the API server")
		}
		joining := strings.NewReplacer("nodeCount: 2", "nodeCount: 3",
			"name: murano-kube-4, flavor: m1.medium, image: burano-former", "name: murano-kube-4, flavor: m1.medium, image: burano-node").Replace(u.model)
		require.NoError(t, os.WriteFile(file, []byte(joining), 0o600))
		output, err := u.lab.try(u.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
		require.Error(t, err, output)
		require.Contains(t, output, "a kubelet must not be newer than the API server: murano-kube-4 would have")
		u.servers(t, 5)
		u.lab.run(t, u.lab.as("burano-demo"), "burano", "deploy", u.file, "--follow")
		u.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})
	})

	_, port, err := net.SplitHostPort(endpointOf(t, environmentNamed(t, u.user, "scaling")))
	require.NoError(t, err)
	gateways := u.floating(t, "murano-gateway-1", "murano-gateway-2")
	closePods(t, l, u.cluster, gateways["murano-gateway-2"])
	closed := startLoadOf(t, net.JoinHostPort(gateways["murano-gateway-2"], closedPort), closedRate)
	loads := startLoads(t, gateways, port, heavyRate)
	var done []timeline.Step

	t.Run("it is paused beside the former master, and goes back", func(t *testing.T) {
		u.upgrade(t, "--image", "burano-node")
		u.beside(t)
		u.pause(t)
		done = append(done, u.ends(t)...)
		require.Contains(t, u.show(t), "0 of 5 nodes are done (paused)")
		u.servers(t, 6)
		u.upgrade(t, "--back")
		done = append(done, u.ends(t)...)
		u.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})
		require.Equal(t, before, u.version(t))
		require.NotContains(t, u.show(t), "UPGRADE")
		u.precious(t)
	})

	t.Run("it goes on when the server dies, and when it was paused", func(t *testing.T) {
		kills := []string{"end:servers", "end:murano-kube-1-r2: etcd member", "end:murano-kube-1: hand over", "end:murano-kube-2: drain"}
		u.lab.stop(t)
		u.lab.launch(t, "--kill-at-step", kills[0], "--max-deaths", strconv.Itoa(len(kills)))
		u.lab.healthy(t)
		_, _ = u.lab.try(u.lab.as("burano-demo"), "burano", "cluster", "upgrade", "scaling", "--image", "burano-node") // the server may die before it has answered
		u.lab.surviveKills(t, kills)
		u.pause(t)
		done = append(done, u.ends(t)...)
		require.Regexp(t, `[2-4] of 5 nodes are done \(paused\)`, u.show(t))
		require.Contains(t, u.fails(t, "--back", "--follow"), "Kubernetes does not go back")
		u.upgrade(t)
		done = append(done, u.ends(t)...)
	})

	for name, load := range loads {
		load.end()
		t.Logf("%s: %s", name, load)
		for _, one := range load.failedOutside(replacementOf(t, done, name)) {
			require.Fail(t, "a request failed", "through %s: %s", name, one)
		}
	}
	closed.end()
	require.Len(t, closed.failed, closed.fresh+closed.kept, "a NetworkPolicy held at all times: %s", closed)
	u.master = "murano-kube-1-r2"
	u.upgraded(t, before)
}

// TestAClusterIsUpgradedWhoseServerDiesAtEachStep kills the server, and starts it again, when each step of an upgrade of the smallest cluster begins for the
// first time. Requests fail only while the only gateway is being replaced. `make test-upgrade` makes the former image.
func TestAClusterIsUpgradedWhoseServerDiesAtEachStep(t *testing.T) {
	former := formerImage(t)
	l := start(t, "faults")
	u := deployFormer(t, l, former, "scaling.yaml", "")
	before := u.version(t)
	const gateway = "murano-gateway-1"
	requests := u.load(t)

	file := filepath.Join(t.TempDir(), "begun")
	began, deaths := time.Now(), u.diesAtEachStep(t, file)
	done := u.ends(t)
	requests.end()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	names := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, deaths, len(names))
	for i, name := range names {
		at := slices.IndexFunc(done, func(one timeline.Step) bool { return one.Name == name && one.Started.After(deaths[i]) })
		if at < 0 { // the step was found to be done
			t.Logf("%-50s did not begin again", name)
			continue
		}
		t.Logf("%-50s began again after %6.2f s and took %6.2f s", name, done[at].Started.Sub(deaths[i]).Seconds(), done[at].Took().Seconds())
	}
	for _, one := range done {
		require.Contains(t, names, one.Name, "the server died at each step")
	}
	t.Logf("%d deaths, %.0f s; the application: %s", len(deaths), time.Since(began).Seconds(), requests)
	require.Empty(t, requests.failedOutside(replacementOf(t, done, gateway)), "requests that failed while the gateway was not being replaced")

	u.master = "murano-kube-1-r2"
	u.holds(t, []string{"murano-kube-2-r2"}, []string{gateway + "-r2"})
	require.NotEqual(t, before, u.version(t))
	require.NotContains(t, u.show(t), "UPGRADE")
	u.precious(t)
	bothReplicasAnswer(t, l, endpointOf(t, environmentNamed(t, u.user, "scaling")))
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, u.user, u.found)
}

// diesAtEachStep begins the upgrade and starts the server again whenever it has died, until the upgrade has ended. It returns when the server died.
func (u *upgrading) diesAtEachStep(t *testing.T, file string) (deaths []time.Time) {
	t.Helper()
	flags := []string{"--kill-at-new-steps", file, "--max-deaths", "1000"}
	u.lab.stop(t)
	u.lab.launch(t, flags...)
	u.lab.healthy(t)
	_, _ = u.lab.try(u.lab.as("burano-demo"), "burano", "cluster", "upgrade", "scaling", "--image", "burano-node") // the server may die before it has answered
	for limit := time.Now().Add(20 * time.Minute); ; {
		exited := make(chan error, 1)
		go func() { exited <- u.lab.server.Wait() }()
		for alive := true; alive; {
			select {
			case err := <-exited:
				status, ok := u.lab.server.ProcessState.Sys().(syscall.WaitStatus)
				require.Truef(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "killed: %v", err)
				deaths = append(deaths, time.Now())
				alive = false
			case <-time.After(time.Second):
				require.True(t, time.Now().Before(limit), "the upgrade does not end")
				got, err := u.user.send(t.Context(), http.MethodGet, "/v1/environments/"+u.environment, nil)
				if err != nil || got.Status != http.StatusOK || strings.Contains(string(got.Body), `"status":"deploying"`) || len(deaths) == 0 {
					continue
				}
				require.NoError(t, u.lab.server.Process.Signal(syscall.SIGTERM))
				require.NoError(t, <-exited)
				u.lab.launch(t)
				u.lab.healthy(t)
				return deaths
			}
		}
		u.lab.launch(t, flags...)
	}
}

// upgraded demands that all nodes have other servers, and another Kubernetes than before.
func (u *upgrading) upgraded(t *testing.T, before string) {
	t.Helper()
	u.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	after := u.version(t)
	require.NotEqual(t, before, after)
	require.Equal(t, strings.Repeat(after+" ", 2), u.cluster.kubectl(t, "", "get", "nodes", "-l", "!burano.io/podless", "-o", "jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion} {end}"))
	u.precious(t)
	require.NotContains(t, u.show(t), "UPGRADE")
	bothReplicasAnswer(t, u.lab, endpointOf(t, environmentNamed(t, u.user, "scaling")))
	openPods(t, u.lab, u.cluster, u.floating(t, "murano-gateway-2-r2")["murano-gateway-2-r2"])

	require.Contains(t, u.upgrade(t, "--image", "burano-node", "--plan"), "all nodes have image burano-node already")
	require.Contains(t, u.fails(t, "--image", "burano-former", "--plan"), "Kubernetes does not go back: the API server is "+strings.TrimPrefix(after, "v"))
	refused := func() {
		output, err := u.lab.try(u.lab.as("burano-demo"), "burano", "deploy", u.file, "--dry-run") // which has the former image everywhere
		require.Error(t, err, output)
		require.Contains(t, output, "Kubernetes does not go back")
	}
	refused()
	master := u.cluster.servers[u.masterName()]
	require.NoError(t, servers.Stop(t.Context(), u.user.nova(t), master).ExtractErr())
	refused() // by the images of its servers: a master that does not answer is no reason to go back
	require.NoError(t, servers.Start(t.Context(), u.user.nova(t), master).ExtractErr())
	u.lab.eventually(t, time.Minute, "the API serves again", func() error {
		output, err := u.cluster.tried("get", "nodes")
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
	u.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	require.Equal(t, strings.Repeat(after+" ", 3), u.cluster.kubectl(t, "", "get", "nodes", "-l", "!burano.io/podless", "-o", "jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion} {end}"), "a node that comes later")

	u.lab.run(t, u.lab.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, u.user, u.found)
}

// TestAClusterGetsAnotherImageOfTheSameKubernetes changes the image of the smallest cluster by an upgrade, which is paused, rolled back, and
// completed in a second try: with the same Kubernetes a rollback is possible at any time. `make soak` runs it.
func TestAClusterGetsAnotherImageOfTheSameKubernetes(t *testing.T) {
	soakOnly(t, "make soak runs this: it replaces the nodes of a cluster three times, which other tests do once")
	l := start(t)
	u := deployFormer(t, l, l.image(), "scaling.yaml", "")
	require.Regexp(t, `about 4m30s, by guess\n3 nodes are replaced one after another`, u.upgrade(t, "--image", "burano-node", "--plan"))
	u.upgrade(t, "--image", "burano-node")
	u.beside(t)
	u.pause(t)
	u.ends(t)
	u.servers(t, 4)
	require.Contains(t, u.show(t), "0 of 3 nodes are done (paused)")
	u.upgrade(t, "--back")
	u.ends(t)
	u.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	u.precious(t)
	u.upgrade(t, "--image", "burano-node")
	u.ends(t)
	u.master = "murano-kube-1-r2"
	u.holds(t, []string{"murano-kube-2-r2"}, []string{"murano-gateway-1-r2"})
	u.precious(t)
	require.NotContains(t, u.show(t), "UPGRADE")
	require.Contains(t, u.upgrade(t, "--image", "burano-node", "--plan"), "all nodes have image burano-node already")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, u.user, u.found)
}

// upgrading is a cluster during its upgrade.
type upgrading struct {
	*scaling
	model, file string
	found       map[string][]string
}

// deployFormer deploys the cluster of a file of testdata as environment scaling, with an image burano-former made of another file, with further lines of the
// cluster, and with replacements (old, new, …).
func deployFormer(t *testing.T, l *lab, image, name, lines string, words ...string) *upgrading {
	demo := l.user(t, "burano-demo")
	u := &upgrading{file: filepath.Join(t.TempDir(), name), found: inventory(t, demo)}
	l.run(t, l.as("burano-admin"), "burano", "image", "upload", "--name", "burano-former", "--public", image)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	words = append(words, "image: burano-node", "image: burano-former", "name: scaling-cluster\n", "name: scaling-cluster\n"+lines)
	u.model = strings.NewReplacer(words...).Replace(string(text))
	require.NoError(t, os.WriteFile(u.file, []byte(u.model), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", u.file, "--follow")
	environment := environmentNamed(t, demo, "scaling")
	u.scaling = &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), registered: strings.Contains(lines, "calicoDatastore: kubernetes")}
	u.cluster.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")
	return u
}

func (u *upgrading) upgrade(t *testing.T, args ...string) string {
	t.Helper()
	return u.lab.run(t, u.lab.as("burano-demo"), "burano", append([]string{"cluster", "upgrade", "scaling"}, args...)...)
}

// beside waits until the master's successor is made.
func (u *upgrading) beside(t *testing.T) {
	t.Helper()
	u.lab.eventually(t, 2*time.Minute, "the master's successor is there", func() error {
		if found := inventory(t, u.user)["servers"]; !slices.Contains(found, "murano-kube-1-r2") {
			return fmt.Errorf("there are %v", found)
		}
		return nil
	})
}

// pause pauses the upgrade as soon as it has begun.
func (u *upgrading) pause(t *testing.T) {
	t.Helper()
	u.lab.eventually(t, 2*time.Minute, "the upgrade takes the pause", func() error {
		output, err := u.lab.try(u.lab.as("burano-demo"), "burano", "cluster", "upgrade", "scaling", "--pause")
		if err != nil {
			return errors.New(output)
		}
		return nil
	})
}

func (u *upgrading) fails(t *testing.T, args ...string) string {
	t.Helper()
	if !slices.Contains(args, "--plan") && !slices.Contains(args, "--follow") {
		args = append(args, "--follow")
	}
	output, err := u.lab.try(u.lab.as("burano-demo"), "burano", append([]string{"cluster", "upgrade", "scaling"}, args...)...)
	require.Error(t, err, output)
	return output
}

// ends waits until the running task has succeeded, and returns its steps.
func (u *upgrading) ends(t *testing.T) []timeline.Step {
	t.Helper()
	began := time.Now()
	var environment map[string]any
	u.lab.eventually(t, 10*time.Minute, "the upgrade ends", func() error {
		if environment = environmentNamed(t, u.user, "scaling"); environment["status"] == "deploying" {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	deployment := lastDeployment(t, u.user, "scaling")
	var texts []string
	for _, one := range u.user.must(t, http.MethodGet, "/v1/environments/"+u.environment+"/deployments/"+deployment, nil)["reports"].([]any) {
		texts = append(texts, one.(map[string]any)["text"].(string))
	}
	t.Logf("%.1f s:\n  %s", time.Since(began).Seconds(), strings.Join(texts, "\n  "))
	require.Equal(t, "ready", environment["status"])
	return steps(t, u.user, deployment)
}

func (u *upgrading) show(t *testing.T) string {
	t.Helper()
	output, _ := u.lab.try(u.lab.as("burano-demo"), "burano", "cluster", "show", "scaling")
	return output
}

// version is the API server's version.
func (u *upgrading) version(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(u.cluster.kubectl(t, "", "version")) {
		if said, ok := strings.CutPrefix(line, "Server Version: "); ok {
			return strings.TrimSpace(said)
		}
	}
	require.Fail(t, "the API server does not say its version")
	return ""
}

func (u *upgrading) precious(t *testing.T) {
	t.Helper()
	require.Equal(t, "swordfish", u.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"))
}

// servers demands so many servers in Nova.
func (u *upgrading) servers(t *testing.T, count int) {
	t.Helper()
	require.Len(t, inventory(t, u.user)["servers"], count)
}
