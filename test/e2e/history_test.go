package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestAnEnvironmentHasAPast edits an environment, lets a deployment fail after its first half, goes back, and takes the environment elsewhere. The
// content of a volume outlives all of it, and no output shows a secret.
func TestAnEnvironmentHasAPast(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	text, err := os.ReadFile("testdata/edits.yaml")
	require.NoError(t, err)
	model := strings.Replace(string(text), "name: edits\n", "name: past\n", 1)
	file := filepath.Join(t.TempDir(), "past.yaml")
	var said strings.Builder // all that the commands printed
	burano := func(args ...string) string {
		t.Helper()
		output := l.run(t, l.as("burano-demo"), "burano", args...)
		said.WriteString(output)
		return output
	}
	edit := func(pairs ...string) {
		t.Helper()
		former := model
		model = strings.NewReplacer(pairs...).Replace(model)
		require.NotEqual(t, former, model, "the edit changes something")
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	}
	edit("    entryPoint:", "    secretEnv: PASSWORD=the-first-one\n    entryPoint:")
	burano("deploy", file, "--follow")
	l.deleteIfFailed(t, "past")
	c := l.clusterOf(t, demo, environmentNamed(t, demo, "past"))
	ids := func() (list []string) { // of the project's servers
		pages, err := servers.List(demo.nova(t), nil).AllPages(t.Context())
		require.NoError(t, err)
		all, err := servers.ExtractServers(pages)
		require.NoError(t, err)
		for _, one := range all {
			list = append(list, one.ID)
		}
		return list
	}
	before := ids()
	inPod := func(script string) (string, error) {
		name := strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "id in (store,shop)", "--field-selector", "status.phase=Running", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].metadata.name}"))
		if len(name) == 0 {
			return "", fmt.Errorf("no pod runs")
		}
		return c.tryKubectl("", "exec", name[len(name)-1], "--", "/usr/bin/bash", "-c", script)
	}
	output, err := inPod("echo precious > /data/marker")
	require.NoError(t, err, output)
	holds := func(password string) {
		t.Helper()
		l.eventually(t, time.Minute, "the pod has the marker and the password", func() error {
			output, err := inPod("cat /data/marker; echo $PASSWORD")
			if err != nil || strings.Join(strings.Fields(output), " ") != "precious "+password {
				return fmt.Errorf("%s %w", output, err)
			}
			return nil
		})
		require.Subset(t, ids(), before, "no server was replaced")
	}
	states := func() (list []string, present int) {
		var history struct {
			States []struct {
				Number, Back int
				File, Method string
				Images       []struct{ Name, ID string }
			}
			Present int
		}
		require.NoError(t, json.Unmarshal([]byte(burano("environment", "history", "past", "-o", "json")), &history))
		for _, one := range history.States {
			list = append(list, fmt.Sprintf("%d %s %s %d", one.Number, one.Method, one.File, one.Back))
			require.Len(t, one.Images, 1)
			require.Equal(t, "burano-node", one.Images[0].Name)
			require.NotEmpty(t, one.Images[0].ID)
		}
		return list, history.Present
	}
	holds("the-first-one")

	// Two edits, each a state.
	edit("the-first-one", "the-second-one", "    name: store\n", "    name: shop\n")
	burano("deploy", file, "--follow")
	holds("the-second-one")
	burano("deploy", file, "--follow") // which changes nothing
	edit("    replicas: 1\n", "    replicas: 1\n    labels: tier=front\n")
	burano("deploy", file, "--follow")
	list, present := states()
	require.Equal(t, []string{"3 deploy past.yaml 0", "2 deploy past.yaml 0", "1 deploy past.yaml 0"}, list)
	require.Equal(t, 3, present)
	difference := burano("environment", "diff", "past", "1", "2")
	require.Contains(t, difference, `name: "store" → "shop"`)
	require.Contains(t, difference, "secretEnv")
	require.NotContains(t, difference, "ipAddresses", "what code computes is no difference")

	// This deployment fails after its first application: the second one never runs.
	edit("applications:\n", `applications:
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: broken}
    name: broken
    kubernetesCluster: cluster
    replicas: 1

  - "?": {type: com.example.docker.DockerApp, id: nothing}
    name: nothing
    image: registry.local/there-is-no-such-image:1
    host: broken

`)
	output, err = l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err, output)
	list, present = states()
	require.Len(t, list, 3, "a failure is no state")
	require.Zero(t, present)
	require.Contains(t, c.kubectl(t, "", "get", "deployments", "-o", "name"), "broken")
	require.Contains(t, burano("environment", "rollback", "past", "--dry-run"), "- services[0]")
	burano("environment", "rollback", "past", "--follow")
	holds("the-second-one")
	l.eventually(t, time.Minute, "what the failed deployment has made is gone", func() error {
		if names := c.kubectl(t, "", "get", "deployments", "-o", "name"); strings.Contains(names, "broken") {
			return fmt.Errorf("%s", names)
		}
		return nil
	})

	// Back to the first state, first with the present secrets, and then with its own.
	require.Contains(t, burano("environment", "rollback", "past", "1", "--dry-run"), `name: "shop" → "store"`)
	burano("environment", "rollback", "past", "1", "--follow")
	holds("the-second-one")
	burano("environment", "rollback", "past", "1", "--secrets", "then", "--follow")
	holds("the-first-one")
	list, present = states()
	require.Equal(t, "5 deploy  1", list[0], "%v", list)
	require.Equal(t, 5, present)
	require.Contains(t, burano("environment", "discard", "past"), "there is no draft of yours")

	// Its file changes nothing in its own environment, and is refused elsewhere until it comes with its secrets.
	folder := t.TempDir()
	exported, sealed, key := filepath.Join(folder, "exported.yaml"), filepath.Join(folder, "sealed.yaml"), filepath.Join(folder, "key")
	burano("environment", "export", "past", "-o", exported)
	require.Contains(t, burano("environment", "import", exported, "--dry-run"), "nothing would be added, changed or removed")
	require.Contains(t, burano("deploy", exported, "--dry-run"), "nothing would be added, changed or removed")
	output, err = l.try(l.as("burano-demo"), "burano", "environment", "import", exported, "--name", "elsewhere")
	require.Error(t, err)
	require.Contains(t, output, "secretEnv")
	recipient := strings.TrimSpace(burano("environment", "key", key))
	burano("environment", "export", "past", "--recipient", recipient, "-o", sealed)
	output, err = l.try(l.as("burano-demo"), "burano", "deploy", sealed)
	require.Error(t, err)
	require.Contains(t, output, "burano environment import FILE --key KEYFILE")
	require.Contains(t, burano("environment", "import", sealed, "--key", key, "--name", "elsewhere", "--dry-run"), "environment elsewhere would be made")
	for _, one := range []string{exported, sealed} {
		content, err := os.ReadFile(one)
		require.NoError(t, err)
		said.Write(content)
	}

	// A clone is another cluster with the same secret, and its volume begins empty.
	output = burano("environment", "move", "past", "--to-cloud", "burano-other", "--to-url", l.url, "--dry-run")
	require.Contains(t, output, "OpenStack cannot transfer servers between projects")
	output = burano("environment", "clone", "past", "twin", "--follow")
	l.deleteIfFailed(t, "twin")
	require.Contains(t, output, "the data of volumes is not copied without --data, and begins empty: pages")
	twin := l.clusterOf(t, demo, environmentNamed(t, demo, "twin"))
	require.Len(t, ids(), 2*len(before))
	pod := strings.Fields(twin.kubectl(t, "", "get", "pods", "-l", "id in (store,shop)", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
	require.Len(t, pod, 1)
	output, err = twin.tryKubectl("", "exec", pod[0], "--", "/usr/bin/bash", "-c", "ls /data; echo $PASSWORD")
	require.NoError(t, err, output)
	require.Equal(t, "the-first-one", strings.TrimSpace(output))
	holds("the-first-one")

	for _, secret := range []string{"the-first-one", "the-second-one"} {
		require.NotContains(t, said.String(), secret)
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "past", "twin")
	asBefore(t, demo, found)
}
