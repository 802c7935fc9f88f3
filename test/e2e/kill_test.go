package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/timeline"
)

// change is a change of the environment of testdata/scaling.yaml during which the server is killed again and again.
type change struct {
	name              string
	call              []string // of the burano program
	sample            []string // the instants at which `make test` kills the server; with @N, each at the N-th time since it was started
	minions, gateways []string // that are there afterwards
	master            string   // too; murano-kube-1 when empty
	flags             []string // of the server
	prepare           func(t *testing.T, l *lab, demo *user)
	thorough          bool // `make soak` alone has it
}

// changes follow each other on one environment. The voters of etcd go from none to three, to five, and back to three; then nodes are replaced.
var changes = []change{
	{
		name:     "deployment",
		call:     []string{"deploy", "test/e2e/testdata/scaling.yaml"},
		sample:   []string{"end:servers", "end:murano-gateway-1: etcd join", "end:apply the pod"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		name:     "scale-up",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "scaleNodesUp", "--arg", "count=2"},
		sample:   []string{"end:murano-kube-3: etcd join"},
		minions:  []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		name:     "scale-down",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "scaleNodesDown", "--arg", "count=2"},
		sample:   []string{"end:murano-kube-1: etcd leave"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		// The new certificates are so old that they are renewed next.
		name:     "rotation of authorities",
		call:     []string{"cluster", "rotate", "certificates", "scaling", "--yes"},
		sample:   []string{"end:next stage of the rotation"},
		thorough: true,
		flags:    []string{"--certificate-age", "16000h", "--keeper-interval", "0s"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		name:     "renewal",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "renewCertificates"},
		sample:   []string{"end:murano-gateway-1: etcd join"},
		thorough: true,
		flags:    []string{"--keeper-interval", "0s"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		name:     "rotation of keys",
		call:     []string{"cluster", "rotate", "keys", "scaling", "--yes"},
		sample:   []string{"end:murano-kube-1: rewrite secrets"},
		thorough: true,
		flags:    []string{"--token-grace", "1s"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		// TestServersThatAreStopped… kills the server during a repair in `make test`.
		name:     "repair",
		thorough: true,
		prepare: func(t *testing.T, l *lab, demo *user) {
			(&scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environmentNamed(t, demo, "scaling"))}).deleteServer(t, "murano-kube-2")
		},
		call:     []string{"action", "call", "scaling", "scaling-cluster", "repairNode", "--arg", "node=murano-kube-2"},
		sample:   []string{"end:servers"},
		minions:  []string{"murano-kube-2"},
		gateways: []string{"murano-gateway-1"},
	},
	// Each of the three nodes is replaced, all of them are made again from a snapshot, and two are replaced in one
	// deployment.
	{
		name:     "replacement of a minion",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "replaceNode", "--arg", "node=murano-kube-2"},
		sample:   []string{"end:servers"},
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1"},
	},
	{
		name:     "replacement of a gateway",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "replaceNode", "--arg", "node=murano-gateway-1"},
		sample:   []string{"begin:murano-gateway-1: close gateway"},
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1-r2"},
	},
	{
		name:     "replacement of the master",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "replaceNode", "--arg", "node=murano-kube-1"},
		sample:   []string{"end:murano-kube-1-r2: etcd member", "end:murano-kube-1: hand over"},
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1-r2"},
		master:   "murano-kube-1-r2",
	},
	{
		name:     "snapshot",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "snapshot"},
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1-r2"},
		master:   "murano-kube-1-r2",
	},
	{
		name:     "restore",
		call:     []string{"action", "call", "scaling", "scaling-cluster", "restore"},
		sample:   []string{"end:murano-kube-1-r2: etcd learners"},
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1-r2"},
		master:   "murano-kube-1-r2",
	},
	{
		name:     "replacement of the master without room for two",
		call:     []string{"deploy", "test/e2e/testdata/surge.yaml"},
		sample:   []string{"end:servers", "end:murano-kube-1-r3: etcd member", "end:murano-kube-1-r2: forget"},
		thorough: true,
		minions:  []string{"murano-kube-2-r2"},
		gateways: []string{"murano-gateway-1-r2"},
		master:   "murano-kube-1-r3",
	},
	{
		// The stack changes once before the nodes are replaced, and three times for each node: the successor is made, gets the floating address,
		// and the former server goes. The server is killed when the second successor is made. At its next start that one exists, so it is killed
		// again when the second former server has gone.
		name:     "replacement of one node after another",
		call:     []string{"deploy", "test/e2e/testdata/rolling.yaml"},
		sample:   []string{"end:servers@5", "end:servers@3"},
		thorough: true,
		minions:  []string{"murano-kube-2-r3"},
		gateways: []string{"murano-gateway-1-r3"},
		master:   "murano-kube-1-r3",
	},
}

// TestChangesSurviveTheDeathOfTheServer kills the server with SIGKILL at native steps of several changes, one after another on one environment: a
// deployment, scaling, replacements of nodes and the restoration of a snapshot. It starts the server again each time: each change must succeed, and
// nothing may exist twice. `make soak` does so in all changes, and kills it at the beginning and at the end of every step: BURANO_SOAK is 1, or
// names the changes in which it does.
func TestChangesSurviveTheDeathOfTheServer(t *testing.T) {
	l := start(t, "faults")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	changes, soak := changes, os.Getenv("BURANO_SOAK")
	if soak == "" {
		changes = slices.DeleteFunc(slices.Clone(changes), func(one change) bool { return one.thorough })
	}
	kills := make([][]string, len(changes))
	for i, change := range changes {
		kills[i] = change.sample
	}
	if soak != "" {
		// The engine records these steps in undisturbed changes.
		for i, change := range changes {
			if change.prepare != nil {
				change.prepare(t, l, demo)
			}
			l.run(t, l.as("burano-demo"), "burano", append(change.call, "--follow")...)
			kills[i] = instants(steps(t, demo, lastDeployment(t, demo, "scaling")))
			t.Logf("%s: %d instants", change.name, len(kills[i]))
			if soak != "1" && !slices.Contains(strings.Split(soak, ","), change.name) {
				kills[i] = nil
			}
		}
		l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
		asBefore(t, demo, found)
	}

	total, began := 0, time.Now()
	for i, change := range changes {
		if !t.Run(change.name, func(t *testing.T) { l.killedDuring(t, demo, change, kills[i], found) }) {
			return
		}
		total += len(kills[i])
	}
	t.Logf("%d kills survived in %.0f s", total, time.Since(began).Seconds())
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// instants are the beginnings and ends of steps, each once and in the order of time: after each instant the server reaches the next
// one, so no start of it is in vain.
func instants(steps []timeline.Step) []string {
	at := map[string]time.Time{}
	for _, step := range steps {
		for instant, when := range map[string]time.Time{"begin:" + step.Name: step.Started, "end:" + step.Name: step.Finished} {
			if first, there := at[instant]; !there || when.Before(first) {
				at[instant] = when
			}
		}
	}
	return slices.SortedFunc(maps.Keys(at), func(a, b string) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a, b)) })
}

// killedDuring begins a change, kills the server at each of the instants, and checks how the change ended. found is the cloud's
// content before the first change.
func (l *lab) killedDuring(t *testing.T, demo *user, change change, kills []string, found map[string][]string) {
	began := time.Now()
	if change.prepare != nil {
		change.prepare(t, l, demo)
	}
	if len(kills) == 0 {
		l.run(t, l.as("burano-demo"), "burano", append(change.call, "--follow")...)
	} else {
		l.stop(t)
		l.launch(t, append(slices.Clone(change.flags), "--kill-at-step", kills[0], "--max-deaths", strconv.Itoa(len(kills)))...)
		l.healthy(t)
		// The server may die before it has answered.
		output, _ := l.try(l.as("burano-demo"), "burano", change.call...)
		t.Logf("%s", output)
		l.surviveKills(t, kills, change.flags...)
	}
	texts := l.endsAsWanted(t, demo, change, found)
	t.Logf("%s: %d kills survived, %.1f s from its call to its end", change.name, len(kills), time.Since(began).Seconds())
	takeovers := len(slices.DeleteFunc(texts, func(text string) bool { return !strings.Contains(text, "has taken it over") }))
	require.Equal(t, len(kills), takeovers, "each is told in the log")
}

// endsAsWanted waits for the end of a change, and demands that its result is there, and nothing twice. It returns the change's reports.
func (l *lab) endsAsWanted(t *testing.T, demo *user, change change, found map[string][]string) (texts []string) {
	t.Helper()
	var environment map[string]any
	l.eventually(t, 5*time.Minute, "the "+change.name+" ends", func() error {
		environment = environmentNamed(t, demo, "scaling")
		if status := environment["status"]; status == "deploying" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
	id := environment["id"].(string)
	deployment := lastDeployment(t, demo, "scaling")
	for _, one := range demo.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments/"+deployment, nil)["reports"].([]any) {
		texts = append(texts, one.(map[string]any)["text"].(string))
	}
	require.Equalf(t, "ready", environment["status"], "%s", strings.Join(texts, "\n"))
	for _, one := range environment["services"].([]any) {
		if service := one.(map[string]any); service["name"] == "scaling-cluster" {
			require.EqualValues(t, len(change.minions), service["nodeCount"], "an action that runs again counts once")
		}
	}

	where := endpointOf(t, environment)
	l.eventually(t, 30*time.Second, "the application answers through the gateway", func() error {
		_, err := get("http://" + where + "/")
		return err
	})
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: id, master: change.master}
	s.holds(t, change.minions, change.gateways)
	nothingTwice(t, l, demo, s.cluster, found, 1+len(change.minions)+len(change.gateways))
	return texts
}

// surviveKills waits until the server has died at each of the instants, of which it already has the first, and starts it again with the
// next one. After the last instant the server runs without kills. The other flags are the same for all.
func (l *lab) surviveKills(t *testing.T, kills []string, others ...string) {
	t.Helper()
	for i, kill := range kills {
		exited := make(chan error, 1)
		go func() { exited <- l.server.Wait() }()
		select {
		case err := <-exited:
			status, ok := l.server.ProcessState.Sys().(syscall.WaitStatus)
			require.Truef(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "killed at %s: %v", kill, err)
		case <-time.After(10 * time.Minute):
			require.NoError(t, l.server.Process.Kill())
			<-exited
			require.FailNowf(t, "the server was not killed", "the change did not come to %s", kill)
		}
		if l.whenDead != nil {
			l.whenDead(kill)
		}
		flags := append(slices.Clone(others), "--max-deaths", strconv.Itoa(len(kills))) // simultaneous steps begin before any of them is done
		if i+1 < len(kills) {
			flags = append(flags, "--kill-at-step", kills[i+1])
		}
		l.launch(t, flags...)
	}
	l.healthy(t)
}

// stop stops the server as an operator does.
func (l *lab) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, l.server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, l.server.Wait(), "the server ends cleanly when asked to")
}

// lastDeployment returns the id of the newest deployment of an environment.
func lastDeployment(t *testing.T, u *user, environment string) string {
	t.Helper()
	id := environmentNamed(t, u, environment)["id"].(string)
	return u.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments", nil)["deployments"].([]any)[0].(map[string]any)["id"].(string)
}

// stepsOf returns the names of a deployment's native steps in the order of their start.
func stepsOf(t *testing.T, u *user, deployment string) []string {
	t.Helper()
	var names []string
	for _, one := range u.must(t, http.MethodGet, "/burano/v1/deployments/"+deployment+"/steps", nil)["steps"].([]any) {
		names = append(names, one.(map[string]any)["name"].(string))
	}
	return names
}

// nothingTwice compares the content of Heat, Nova, Neutron and Kubernetes with the needs of an environment of so many servers
// with the demonstration's application; found was there before. Names of servers and members of etcd are compared by holds.
func nothingTwice(t *testing.T, l *lab, u *user, c *cluster, found map[string][]string, servers int) {
	t.Helper()
	now := withoutTrusts(inventory(t, u))
	// A server has one port, and the router's interface is one more.
	want := map[string]int{"servers": servers, "stacks": 1, "networks": 1, "ports": servers + 1, "routers": 1, "floating IPs": servers, "security groups": 3, "volumes": 0}
	for kind, count := range want {
		require.Lenf(t, now[kind], len(found[kind])+count, "%s: %v", kind, now[kind])
	}
	require.Len(t, want, len(now), "every kind is compared")
	l.eventually(t, time.Minute, "the trust through which the stack was made, and Heat's own through it, are left", func() error {
		if trusts := inventory(t, u)["trusts"]; len(trusts) != len(found["trusts"])+2 {
			return fmt.Errorf("%v", trusts)
		}
		return nil
	})
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Replicas *int }
		}
	}
	for kind, want := range map[string]int{"deployments": 1, "replicasets": 1, "pods": 2, "services": 2, "poddisruptionbudgets": 1} {
		l.eventually(t, time.Minute, "as many "+kind+" as wanted", func() error {
			list.Items = nil
			require.NoError(t, json.Unmarshal([]byte(c.kubectl(t, "", "get", kind, "-o", "json")), &list))
			used := 0
			for _, item := range list.Items {
				if item.Spec.Replicas == nil || *item.Spec.Replicas > 0 { // a Deployment keeps its former ReplicaSets
					used++
				}
			}
			if used != want {
				return fmt.Errorf("%v", list.Items)
			}
			return nil
		})
	}
}
