package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestAnEnvironmentSleepsAndWakes hibernates a cluster with an application and wakes it, while the keeper looks often. The server of Burano is killed in the middle of both. Then it sleeps by a
// schedule. At the end the environment is deleted while it sleeps.
func TestAnEnvironmentSleepsAndWakes(t *testing.T) {
	soakOnly(t, "it stops and starts all servers three times")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	s, environment, _ := l.scaled(t, demo, "name: scaling-cluster", "name: scaling-cluster\n    autoRepair: true")
	l.relaunch(t, watchful...)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
	where := endpointOf(t, environment)
	s.cluster.kubectl(t, "", "create", "configmap", "kept", "--from-literal=word=burano")
	names := []string{"murano-kube-1", "murano-kube-2", "murano-gateway-1"}
	before := map[string]string{}
	for _, name := range names {
		before[name] = s.cluster.servers[name]
	}
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	status := func(name string) string {
		server, err := servers.Get(t.Context(), demo.nova(t), before[name]).Extract()
		require.NoError(t, err)
		return server.Status
	}
	all := func(wanted string) {
		t.Helper()
		for _, name := range names {
			require.Equal(t, wanted, status(name), name)
		}
	}
	state := func() any {
		return demo.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/hibernation", nil)["state"]
	}
	becomes := func(wanted string) {
		t.Helper()
		l.eventually(t, 3*time.Minute, "the environment is "+wanted, func() error {
			if now := state(); now != wanted || environmentNamed(t, demo, "scaling")["status"] != "ready" {
				return fmt.Errorf("it is %v", now)
			}
			return nil
		})
	}
	killed := func(when string, is func() bool) {
		t.Helper()
		l.eventually(t, time.Minute, when, func() error {
			if !is() {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		require.NoError(t, l.server.Process.Kill())
		require.Error(t, l.server.Wait())
		l.launch(t, watchful...)
		l.healthy(t)
	}
	answers := func() {
		t.Helper()
		_, err := get("http://" + where)
		require.NoError(t, err, "through the gateway, at the moment at which the environment is awake")
		require.Equal(t, "burano", s.cluster.kubectl(t, "", "get", "configmap", "kept", "-o", "jsonpath={.data.word}"))
		bothReplicasAnswer(t, l, where)
	}

	require.Contains(t, burano("environment", "hibernate", "scaling", "--dry-run"), "- stops murano-gateway-1 (gateway)\n- stops murano-kube-2 (minion)\n- stops murano-kube-1 (master)")
	began := time.Now()
	t.Log(burano("environment", "hibernate", "scaling", "--follow"))
	t.Logf("asleep after %.1f s", time.Since(began).Seconds())
	all("SHUTOFF")
	require.Equal(t, "asleep", state())
	require.Contains(t, burano("environment", "list"), "asleep")
	refused, err := l.try(l.as("burano-demo"), "burano", "deploy", s.file)
	require.Error(t, err)
	require.Contains(t, refused, "wake it first")
	refused, err = l.try(l.as("burano-demo"), "burano", "environment", "hibernate", "scaling")
	require.Error(t, err)
	require.Contains(t, refused, "is asleep already")
	s.finds(t)
	l.relaunch(t, watchful...) // which looks at every environment
	s.finds(t)
	all("SHUTOFF")

	require.Contains(t, burano("environment", "wake", "scaling", "--dry-run"), "+ starts murano-kube-1 (master)")
	began = time.Now()
	t.Log(burano("environment", "wake", "scaling", "--follow"))
	t.Logf("awake after %.1f s", time.Since(began).Seconds())
	answers()
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	s.finds(t)
	_, err = l.try(l.as("burano-demo"), "burano", "environment", "wake", "scaling")
	require.Error(t, err)

	t.Log(burano("environment", "hibernate", "scaling"))
	killed("the gateway is off", func() bool { return status("murano-gateway-1") == "SHUTOFF" })
	becomes("asleep")
	all("SHUTOFF")
	t.Log(burano("environment", "wake", "scaling"))
	killed("the master runs", func() bool { return status("murano-kube-1") == "ACTIVE" })
	becomes("awake")
	all("ACTIVE")
	answers()
	s.finds(t)
	for name, id := range before {
		require.Equal(t, id, s.cluster.servers[name], "no server was replaced")
	}

	soon := time.Now().UTC().Add(time.Minute)
	burano("environment", "hibernation", "set", "scaling", "--sleep", fmt.Sprintf("%d %d * * *", soon.Minute(), soon.Hour()), "--wake", fmt.Sprintf("%d %d * * *", soon.Minute(), (soon.Hour()+12)%24))
	require.Contains(t, burano("environment", "hibernation", "show", "scaling"), soon.Format("T15:04:00Z"))
	becomes("asleep")
	all("SHUTOFF")
	t.Log(burano("environment", "wake", "scaling", "--follow"))
	l.relaunch(t, watchful...) // which looks at every environment
	s.finds(t)
	require.Equal(t, "awake", state(), "a user has woken it, which holds until the next time to sleep")
	burano("environment", "hibernation", "unset", "scaling")

	burano("environment", "hibernate", "scaling", "--follow")
	burano("environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}
