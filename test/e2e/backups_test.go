package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shopClaim is a claim that Burano did not make.
const shopClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: %[2]s, labels: {made-by: kubectl}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}}
`

// TestAnEnvironmentComesBackFromItsBackup backs an environment up while an application counts in two volumes, with three claims more, one of which no pod uses. It restores the backup in another
// project of another Burano. The application must go on from one moment that both volumes agree on, and that is not before the backup.
func TestAnEnvironmentComesBackFromItsBackup(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	burano("deploy", "test/e2e/testdata/shop.yaml", "--follow")
	l.deleteIfFailed(t, "shop")
	c := l.clusterOf(t, demo, environmentNamed(t, demo, "shop"))
	c.kubectl(t, "", "create", "namespace", "others")
	for name, namespace := range map[string]string{"idle": "default", "used": "others", "spare": "others"} {
		c.kubectl(t, fmt.Sprintf(shopClaim, name, namespace), "apply", "-f", "-")
		c.fill(t, namespace, name, "echo precious of "+name+" > /data/marker; chmod 640 /data/marker; mkdir -p /data/deep/er; ln -s ../marker /data/deep/link", true)
	}
	c.fill(t, "others", "used", "while :; do sleep 1; done", false)

	counted := c.count(t)
	began := time.Now()
	log := burano("backup", "create", "shop", "--reason", "before the sale")
	t.Logf("a backup of five claims was whole %.1f s after it was asked for:\n%s", time.Since(began).Seconds(), log)
	var list []struct {
		ID, Reason string
		Held       float64
		Clusters   []struct {
			Claims []struct{ Namespace, Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(burano("backup", "list", "shop", "--output", "json")), &list))
	require.Len(t, list, 1)
	require.Equal(t, "before the sale", list[0].Reason)
	require.Len(t, list[0].Clusters[0].Claims, 5)
	require.Greater(t, c.count(t), counted, "it goes on")
	c.nothingLeft(t)

	l.restoredElsewhere(t, list[0].ID, counted)

	refused, err := l.try(l.as("burano-demo"), "burano", "environment", "clone", "shop", "shop-copy", "--data")
	require.Error(t, err)
	require.Contains(t, refused, "the files of claim others/used (10Mi) are copied")
	require.Contains(t, refused, "nothing was done: repeat the command with --yes")
	counted, began = c.count(t), time.Now()
	log = burano("environment", "clone", "shop", "shop-copy", "--data", "--yes")
	l.deleteIfFailed(t, "shop-copy")
	t.Logf("cloned with its data in %.1f s:\n%s", time.Since(began).Seconds(), log)
	l.clusterOf(t, demo, environmentNamed(t, demo, "shop-copy")).wentOn(t, counted)
	require.Len(t, strings.Split(strings.TrimSpace(burano("backup", "list")), "\n"), 2, "the head, and the backup that was asked for")
	burano("environment", "delete", "--yes", "shop-copy")
	burano("environment", "delete", "--yes", "shop")
	burano("backup", "delete", list[0].ID)
	asBefore(t, demo, found)
}

// restoredElsewhere moves a backup of the shop as a file to another project of another Burano, and restores it there.
func (l *lab) restoredElsewhere(t *testing.T, backup string, counted int) {
	elsewhere := *l
	elsewhere.startServer(t)
	elsewhere.stop(t)
	elsewhere.launch(t, "--snapshot-container", backupContainer)
	elsewhere.healthy(t)
	other := elsewhere.user(t, "burano-other")
	found := inventory(t, other)
	there := func(args ...string) string {
		t.Helper()
		return elsewhere.run(t, elsewhere.as("burano-other"), "burano", args...)
	}
	folder := t.TempDir()
	key, file := filepath.Join(folder, "key"), filepath.Join(folder, "shop.backup")
	recipient := strings.TrimSpace(there("environment", "key", key))
	began := time.Now()
	l.run(t, l.as("burano-demo"), "burano", "backup", "download", backup, "--recipient", recipient, "--file", file)
	about, err := os.Stat(file)
	require.NoError(t, err)
	id := strings.TrimSpace(there("backup", "upload", file, "--key", key))
	t.Logf("a file of %d bytes was downloaded, checked and uploaded in %.1f s:\n%s", about.Size(), time.Since(began).Seconds(), there("backup", "check", file, "--key", key))
	parts := objectsOf(t, other)
	require.Len(t, parts, 6, "the upload is in the project's object store: the etcd and five claims")
	require.NoError(t, os.Truncate(file, about.Size()/2))
	refused, err := elsewhere.try(elsewhere.as("burano-other"), "burano", "backup", "upload", file, "--key", key)
	require.Error(t, err)
	require.Contains(t, refused, "its end is missing")
	require.Len(t, strings.Split(strings.TrimSpace(there("backup", "list")), "\n"), 2, "the head and one backup")
	require.Equal(t, parts, objectsOf(t, other), "the broken upload has left nothing")

	began = time.Now()
	log := there("backup", "restore", id, "--name", "shop-again", "--follow")
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = elsewhere.try(elsewhere.as("burano-other"), "burano", "environment", "delete", "--yes", "shop-again")
		}
	})
	t.Logf("restored in another project of another Burano in %.1f s:\n%s", time.Since(began).Seconds(), log)
	again := elsewhere.clusterOf(t, other, environmentNamed(t, other, "shop-again"))
	again.wentOn(t, counted)
	for name, namespace := range map[string]string{"idle": "default", "used": "others", "spare": "others"} {
		again.fill(t, namespace, name, "[[ $(</data/deep/link) == *of?"+name+" && $(stat -c %a /data/marker) == 640 ]]", true)
	}
	there("environment", "delete", "--yes", "shop-again")
	there("backup", "delete", id)
	asBefore(t, other, found)
}

// count is the number up to which the application of the shop has counted in both volumes.
func (c *cluster) count(t *testing.T) int {
	t.Helper()
	var first, second int
	_, err := fmt.Sscan(c.inStore(t, "tail -n 1 /first/count; tail -n 1 /second/count"), &first, &second)
	require.NoError(t, err)
	require.InDelta(t, first, second, 100)
	return min(first, second)
}

func (c *cluster) inStore(t *testing.T, script string) (output string) {
	t.Helper()
	return c.inPodOf(t, "store", script)
}

// inPodOf runs a script of bash's in a pod of this id, once it runs.
func (c *cluster) inPodOf(t *testing.T, id, script string) (output string) {
	t.Helper()
	c.lab.eventually(t, 2*time.Minute, "the application runs", func() error {
		name := strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "id="+id, "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
		if len(name) == 0 {
			return fmt.Errorf("it does not: %s", c.kubectl(t, "", "get", "pods", "-A"))
		}
		var err error
		output, err = c.tryKubectl("", "exec", name[0], "--", "/usr/bin/bash", "-euc", script)
		if err != nil {
			return fmt.Errorf("%s %w", output, err)
		}
		return nil
	})
	return output
}

// wentOn makes sure that the application began where a backup was taken: at a number that both volumes agree on, and that is not lower than the
// count before the backup.
func (c *cluster) wentOn(t *testing.T, counted int) {
	t.Helper()
	starts := strings.Split(strings.TrimSpace(c.inStore(t, "cat /first/starts")), "\n")
	require.Len(t, starts, 2, "it began twice: when it was made, and after the restore")
	var first, second int
	_, err := fmt.Sscan(starts[1], &first, &second)
	require.NoError(t, err)
	require.GreaterOrEqual(t, second, counted, "nothing is lost that was counted before the backup was asked for")
	require.Contains(t, []int{second, second + 1}, first, "the volumes are of one moment")
	t.Logf("the application had counted to %d when the backup was asked for, and went on from %d", counted, second)
}

// fill runs a script of bash's over a claim, to its end or for ever.
func (c *cluster) fill(t *testing.T, namespace, claim, script string, ends bool) {
	t.Helper()
	pod := strings.Replace(fmt.Sprintf(volumeUser, "user-"+claim, "{}", script), "claimName: kept", "claimName: "+claim, 1)
	phase := "Running"
	if ends {
		phase = "Succeeded"
	}
	c.kubectl(t, pod, "--namespace", namespace, "apply", "-f", "-")
	c.kubectl(t, "", "--namespace", namespace, "wait", "pod", "user-"+claim, "--for=jsonpath={.status.phase}="+phase, "--timeout=180s")
	if ends {
		c.kubectl(t, "", "--namespace", namespace, "delete", "pod", "user-"+claim)
	}
}
