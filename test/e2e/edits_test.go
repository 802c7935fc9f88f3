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

// edits is a file that is deployed again and again: a cluster and an application with a volume that contains a marker.
type edits struct {
	lab     *lab
	demo    *user
	file    string
	model   string // the file's content
	cluster *cluster
	servers map[string]string // ids of the first deployment, by names
	pod     string            // the name of the application's pod
	path    string            // where the application mounts the volume
}

const marker = "precious"

// newEdits writes the file, and deploys nothing.
func newEdits(t *testing.T, l *lab) *edits {
	text, err := os.ReadFile("testdata/edits.yaml")
	require.NoError(t, err)
	e := &edits{lab: l, demo: l.user(t, "burano-demo"), file: filepath.Join(t.TempDir(), "edits.yaml"), model: string(text), pod: "store", path: "/data"}
	e.write(t)
	l.deleteIfFailed(t, "edits")
	return e
}

func (e *edits) write(t *testing.T) { require.NoError(t, os.WriteFile(e.file, []byte(e.model), 0o600)) }

// edit replaces texts of the file, in pairs of a present and a new one, at the same time.
func (e *edits) edit(t *testing.T, pairs ...string) {
	t.Helper()
	before := e.model
	e.model = strings.NewReplacer(pairs...).Replace(before)
	require.NotEqual(t, before, e.model, "the edit changes something")
	e.write(t)
}

// reorder puts the pod and the application above the cluster, and the last minion before the first.
func (e *edits) reorder(t *testing.T) {
	head, applications, _ := strings.Cut(e.model, "applications:\n")
	cut := strings.Index(applications, `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod`)
	e.model = head + "applications:\n" + applications[cut:] + "\n" + applications[:cut]
	e.edit(t, "name: murano-kube-2,", "name: murano-kube-3,", "name: murano-kube-3,", "name: murano-kube-2,")
}

// preview returns the preview of deploying the file.
func (e *edits) preview(t *testing.T) string {
	output, err := e.lab.try(e.lab.as("burano-demo"), "burano", "deploy", e.file, "--dry-run")
	if err != nil {
		t.Logf("the preview refuses: %v\n%s", err, output)
	}
	return output
}

// removed are the lines of the preview that remove something.
func (e *edits) removed(t *testing.T) (lines []string) {
	for line := range strings.Lines(e.preview(t)) {
		if strings.HasPrefix(line, "-") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (e *edits) deploy(t *testing.T, flags ...string) string {
	t.Helper()
	return e.lab.run(t, e.lab.as("burano-demo"), "burano", append([]string{"deploy", e.file, "--follow"}, flags...)...)
}

// deployed records the servers of the first deployment.
func (e *edits) deployed(t *testing.T) {
	e.cluster = e.lab.clusterOf(t, e.demo, environmentNamed(t, e.demo, "edits"))
	e.servers = e.cluster.servers
}

// inPod runs a script in the newest pod of the application.
func (e *edits) inPod(t *testing.T, script string) (string, error) {
	return e.cluster.inNewestPod(t, e.pod, script)
}

// inNewestPod runs a script in the newest running pod of a KubernetesPod, by its name.
func (c *cluster) inNewestPod(t *testing.T, pod, script string) (string, error) {
	names := strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "id="+pod, "--field-selector", "status.phase=Running", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(names) == 0 {
		return "", fmt.Errorf("no pod of %s runs", pod)
	}
	return c.tryKubectl("", "exec", names[len(names)-1], "--", "/usr/bin/bash", "-c", script)
}

// mark writes the marker.
func (e *edits) mark(t *testing.T) {
	output, err := e.inPod(t, "echo "+marker+" > "+e.path+"/marker && sync")
	require.NoError(t, err, output)
}

// keeps demands that the application has the marker, that the servers are still the first deployment's, and that one Deployment runs.
func (e *edits) keeps(t *testing.T) {
	t.Helper()
	e.lab.eventually(t, time.Minute, "the application has the marker", func() error {
		output, err := e.inPod(t, "cat "+e.path+"/marker")
		if err != nil || !strings.Contains(output, marker) {
			return fmt.Errorf("%s %w", output, err)
		}
		return nil
	})
	require.Equal(t, e.servers, e.lab.clusterOf(t, e.demo, environmentNamed(t, e.demo, "edits")).servers, "no server was replaced")
	require.Len(t, strings.Fields(e.cluster.kubectl(t, "", "get", "deployments", "-o", "name")), 1, "no former Deployment runs")
}
