package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample are the instants at which `make test` kills the server in a deployment; `make soak` kills it at the beginning and at the
// end of every step.
var sample = []string{"end:servers", "begin:murano-kube-1: etcd users", "end:murano-gateway-1: etcd join", "end:apply the pod"}

// TestADeploymentSurvivesTheDeathOfItsServer kills the server with SIGKILL at native steps of one deployment, one after another, and
// starts it again each time: the deployment ends well, and nothing exists twice.
func TestADeploymentSurvivesTheDeathOfItsServer(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	kills := sample
	if os.Getenv("BURANO_SOAK") != "" {
		// The steps are those that the engine records of a deployment that nobody disturbs.
		l.run(t, l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml", "--follow")
		kills = nil
		for _, step := range stepsOf(t, demo, lastDeployment(t, demo, "demo")) {
			for _, kill := range []string{"begin:" + step, "end:" + step} {
				if !slices.Contains(kills, kill) {
					kills = append(kills, kill)
				}
			}
		}
		l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "demo")
		require.Equal(t, found, inventory(t, demo), "the cloud holds what it held before")
	}

	l.stop(t)
	l.launch(t, "--kill-at-step", kills[0])
	l.healthy(t)
	began := time.Now()
	// The server may die before it has answered.
	output, _ := l.try(l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml")
	t.Logf("%s", output)
	l.surviveKills(t, kills)

	environment := environmentNamed(t, demo, "demo")
	l.eventually(t, 3*time.Minute, "the deployment ends", func() error {
		environment = environmentNamed(t, demo, "demo")
		if status := environment["status"]; status == "deploying" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
	t.Logf("%d kills survived, %.1f s from the call of deploy to its end", len(kills), time.Since(began).Seconds())
	id := environment["id"].(string)
	deployment := lastDeployment(t, demo, "demo")
	var texts []string
	for _, one := range demo.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments/"+deployment, nil)["reports"].([]any) {
		texts = append(texts, one.(map[string]any)["text"].(string))
	}
	require.Equalf(t, "ready", environment["status"], "%s", strings.Join(texts, "\n"))
	takeovers := len(slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !strings.Contains(text, "has taken it over") }))
	require.Equal(t, len(kills), takeovers, "each is told in the log")

	where := endpointOf(t, environment)
	l.eventually(t, 30*time.Second, "the application answers through the gateway", func() error {
		_, err := get("http://" + where + "/")
		return err
	})
	cluster := l.clusterOf(t, demo, environment)
	nodesAreReady(t, cluster, demo)
	nothingTwice(t, l, demo, cluster)

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "demo")
	require.Equal(t, found, inventory(t, demo), "the cloud holds what it held before")
}

// surviveKills waits until the server has died at each of the instants, of which it knows the first, and starts it again with the next.
// After the last it runs without.
func (l *lab) surviveKills(t *testing.T, kills []string) {
	t.Helper()
	for i, kill := range kills {
		exited := make(chan error, 1)
		go func() { exited <- l.server.Wait() }()
		select {
		case err := <-exited:
			status, ok := l.server.ProcessState.Sys().(syscall.WaitStatus)
			require.Truef(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "killed at %s: %v", kill, err)
		case <-time.After(2 * time.Minute):
			require.NoError(t, l.server.Process.Kill())
			<-exited
			require.FailNowf(t, "the server was not killed", "the deployment did not come to %s", kill)
		}
		var flags []string
		if i+1 < len(kills) {
			flags = []string{"--kill-at-step", kills[i+1]}
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

// nothingTwice compares what there is in Heat, Nova, Neutron and Kubernetes with what the demonstration wants; etcd's members are
// compared by nodesAreReady.
func nothingTwice(t *testing.T, l *lab, u *user, c *cluster) {
	t.Helper()
	now := inventory(t, u)
	require.Equal(t, []string{"murano-gateway-1", "murano-kube-1", "murano-kube-2"}, now["servers"])
	for kind, want := range map[string]int{"stacks": 1, "routers": 1, "floating IPs": 3, "trusts": 1, "security groups": 3} {
		require.Lenf(t, now[kind], want, "%s: %v", kind, now[kind])
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	for kind, want := range map[string]int{"nodes": 1, "deployments": 1, "replicasets": 1, "pods": 2, "services": 2} {
		l.eventually(t, time.Minute, "as many "+kind+" as wanted", func() error {
			list.Items = nil
			require.NoError(t, json.Unmarshal([]byte(c.kubectl(t, "", "get", kind, "-o", "json")), &list))
			if len(list.Items) != want {
				return fmt.Errorf("%v", list.Items)
			}
			return nil
		})
	}
}
