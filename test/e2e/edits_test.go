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

// refused deploys the file, which must be refused with this text.
func (e *edits) refused(t *testing.T, text string) {
	t.Helper()
	output, err := e.lab.try(e.lab.as("burano-demo"), "burano", "deploy", e.file, "--follow")
	require.Error(t, err, output)
	require.Contains(t, output, text)
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

func (e *edits) claims(t *testing.T) []string {
	return strings.Fields(e.cluster.kubectl(t, "", "get", "pvc", "-o", "name"))
}

// TestOrdinaryEditsLoseNoData deploys a file again and again with edits that people make, each with its preview first. Its nodes and the content of a volume
// outlive all of them, and an edit that would leave the volume without its application needs consent.
func TestOrdinaryEditsLoseNoData(t *testing.T) {
	l := start(t)
	e := newEdits(t, l)
	found := inventory(t, e.demo)
	e.deploy(t)
	e.deployed(t)
	e.mark(t)
	claims := e.claims(t)
	require.Len(t, claims, 1)
	claim := strings.TrimPrefix(claims[0], "persistentvolumeclaim/")
	volume := `      /var/data: {"?": {type: com.mirantis.docker.DockerPersistentVolume}, size: 10Mi}` + "\n"

	for _, one := range []struct {
		name    string
		change  func()
		shown   []string // lines of the preview have these texts
		hidden  []string // and none of these
		refused string   // the refusal of the deployment without consent
		consent string
		loses   bool // the application has no marker any more
	}{
		{name: "the order of lists and applications, and an id in the file", change: func() {
			e.reorder(t)
			e.edit(t, ", id: store}", ", id: shop}", "host: store", "host: shop")
		}, hidden: []string{"removed"}},
		{name: "a renamed pod and a renamed application", change: func() {
			e.edit(t, "    name: store\n", "    name: shop\n", "name: pages\n", "name: sheets\n")
			e.pod = "shop"
		}, hidden: []string{"uses no more"}},
		{name: "another path of a volume", change: func() {
			e.edit(t, "      /data: {", "      /var/data: {")
			e.path = "/var/data"
		}},
		{name: "no volume", change: func() { e.edit(t, volume, "") },
			shown:   []string{"pod shop uses no more, and leaves in the cluster with its data: claim " + claim + " (10Mi, made ", "allow it with --allow-destroy shop"},
			refused: "it would not be deployed: pod shop uses no more, and leaves in the cluster with its data: claim " + claim, consent: "shop", loses: true},
		{name: "the volume again", change: func() { e.edit(t, "    volumes:\n", "    volumes:\n"+volume) }},
	} {
		if !t.Run(one.name, func(t *testing.T) {
			one.change()
			preview := e.preview(t)
			for _, text := range one.shown {
				require.Contains(t, preview, text)
			}
			for _, text := range one.hidden {
				require.NotContains(t, preview, text)
			}
			var flags []string
			if one.refused != "" {
				e.refused(t, one.refused)
				e.keeps(t)
				flags = []string{"--allow-destroy", one.consent}
			}
			e.deploy(t, flags...)
			require.Equal(t, claims, e.claims(t), "no claim was made or deleted")
			if one.loses {
				_, err := e.inPod(t, "cat "+e.path+"/marker")
				require.Error(t, err)
			} else {
				e.keeps(t)
			}
		}) {
			return
		}
	}
	e.refusals(t)
	e.drift(t)

	output, err := l.try(l.as("burano-demo"), "burano", "environment", "delete", "edits")
	require.Error(t, err, "nobody agreed")
	for _, text := range []string{"- cluster edits-cluster (", "- server murano-kube-1 (", "- claim " + claim + " (10Mi, made ", "Agree to it with --yes, or with --allow-destroy edits-cluster"} {
		require.Contains(t, output, text)
	}
	e.keeps(t)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--allow-destroy", "edits-cluster", "edits")
	asBefore(t, e.demo, found)
}

// refusals are edits that are refused before anything is changed: once they are undone nothing differs.
func (e *edits) refusals(t *testing.T) {
	before := e.model
	for name, edit := range map[string]struct {
		pairs  []string
		refuse string
	}{
		"an unknown key":     {[]string{"    replicas: 1", "    replicaz: 1"}, "replicaz is not known, and has no effect: did you mean replicas?"},
		"an unknown flavor":  {[]string{"name: murano-gateway-1, flavor: m1.medium", "name: murano-gateway-1, flavor: m1.vast"}, "m1.vast"},
		"a class of storage": {[]string{"DockerPersistentVolume}, size: 10Mi", "DockerPersistentVolume}, size: 10Mi, storageClass: golden"}, "golden"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { e.model = before; e.write(t) }()
			e.edit(t, edit.pairs...)
			require.Contains(t, e.preview(t), edit.refuse)
			e.refused(t, edit.refuse)
			e.keeps(t)
			require.Equal(t, "ready", environmentNamed(t, e.demo, "edits")["status"])
		})
	}
	t.Run("a smaller claim", func(t *testing.T) {
		defer func() { e.model = before; e.write(t) }()
		e.edit(t, "size: 10Mi", "size: 5Mi")
		require.Contains(t, e.preview(t), "stays 10Mi; a claim does not shrink")
		e.deploy(t)
		e.keeps(t)
	})
	e.deploy(t)
	require.Contains(t, e.lab.run(t, e.lab.as("burano-demo"), "burano", "deploy", e.file, "--dry-run"), "nothing would be added, changed or removed", "the exit code is 0")
}

// drift changes properties of the model with kubectl, and has a deployment restore them.
func (e *edits) drift(t *testing.T) {
	e.cluster.kubectl(t, "", "scale", "deployment/"+e.pod, "--replicas=0")
	shown := e.preview(t)
	require.Contains(t, shown, "~ in pod "+e.pod+": Deployment default/"+e.pod)
	require.Contains(t, shown, "spec.replicas: 0 → 1")
	e.deploy(t)
	e.keeps(t)
}
