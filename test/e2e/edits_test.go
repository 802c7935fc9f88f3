package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrdinaryEditsLoseNoData deploys a file again and again with edits that people make, each with its preview first: its nodes and the content of a volume
// outlive all of them, and an edit that would leave the volume without its application wants consent.
func TestOrdinaryEditsLoseNoData(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	text, err := os.ReadFile("testdata/edits.yaml")
	require.NoError(t, err)
	model := string(text)
	file := filepath.Join(t.TempDir(), "edits.yaml")
	write := func() { require.NoError(t, os.WriteFile(file, []byte(model), 0o600)) }
	edit := func(pairs ...string) {
		before := model
		model = strings.NewReplacer(pairs...).Replace(model)
		require.NotEqual(t, before, model, "the edit changes something")
		write()
	}
	preview := func() string {
		output, _ := l.try(l.as("burano-demo"), "burano", "deploy", file, "--dry-run") // its exit code is 2 where something changes
		return output
	}
	deploy := func(flags ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", append([]string{"deploy", file, "--follow"}, flags...)...)
	}
	write()
	deploy()
	l.deleteIfFailed(t, "edits")
	environment := environmentNamed(t, demo, "edits")
	c := l.clusterOf(t, demo, environment)
	servers := c.servers
	inPod := func(pod, script string) (string, error) {
		name := strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "id="+pod, "--field-selector", "status.phase=Running", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].metadata.name}"))
		if len(name) == 0 {
			return "", fmt.Errorf("no pod of %s runs", pod)
		}
		output, err := c.tryKubectl("", "exec", name[len(name)-1], "--", "/usr/bin/bash", "-c", script)
		return output, err
	}
	keeps := func(pod, path string) {
		t.Helper()
		l.eventually(t, time.Minute, "pod "+pod+" has the marker", func() error {
			output, err := inPod(pod, "cat "+path+"/marker")
			if err != nil || !strings.Contains(output, "precious") {
				return fmt.Errorf("%s %w", output, err)
			}
			return nil
		})
		require.Equal(t, servers, l.clusterOf(t, demo, environmentNamed(t, demo, "edits")).servers, "no server was replaced")
		require.Len(t, strings.Fields(c.kubectl(t, "", "get", "deployments", "-o", "name")), 1, "no former Deployment runs")
	}
	output, err := inPod("store", "echo precious > /data/marker")
	require.NoError(t, err, output)

	// The order of lists and applications decides nothing.
	applications := strings.SplitAfter(model, "applications:\n")
	cut := strings.Index(applications[1], `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod`)
	model = applications[0] + applications[1][cut:] + "\n" + applications[1][:cut]
	edit("name: murano-kube-2,", "name: murano-kube-3,", "name: murano-kube-3,", "name: murano-kube-2,", ", id: store}", ", id: shop}", "host: store", "host: shop")
	require.NotContains(t, preview(), "removed")
	deploy()
	keeps("store", "/data")

	// A renamed pod and a renamed application are the same ones.
	edit("    name: store\n", "    name: shop\n", "name: pages\n", "name: sheets\n")
	require.NotContains(t, preview(), "uses no more")
	deploy()
	keeps("shop", "/data")
	claims := c.kubectl(t, "", "get", "pvc", "-o", "name")
	require.Len(t, strings.Fields(claims), 1, claims)

	// So is a volume at another path.
	edit("      /data: {", "      /var/data: {")
	deploy()
	keeps("shop", "/var/data")

	// Without its volume the application would begin empty.
	claim := strings.TrimPrefix(strings.TrimSpace(claims), "persistentvolumeclaim/")
	volume := `      /var/data: {"?": {type: com.mirantis.docker.DockerPersistentVolume}, size: 10Mi}` + "\n"
	edit(volume, "")
	output = preview()
	require.Contains(t, output, "pod shop uses no more, and leaves in the cluster with its data: claim "+claim+" (10Mi, made ")
	require.Contains(t, output, "allow it with --allow-destroy shop")
	output, err = l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err)
	require.Contains(t, output, "pod shop would not use any more: claim "+claim)
	keeps("shop", "/var/data")
	deploy("--allow-destroy", "shop")
	_, err = inPod("shop", "cat /var/data/marker")
	require.Error(t, err, "the application has no volume")
	require.Equal(t, claims, c.kubectl(t, "", "get", "pvc", "-o", "name"), "the claim stays")
	edit("    volumes:\n", "    volumes:\n"+volume)
	deploy()
	keeps("shop", "/var/data")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "edits")
	asBefore(t, demo, found)
}
