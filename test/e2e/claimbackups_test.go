package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/backups"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/stretchr/testify/require"
)

// TestClaimsComeBackFromBackups backs a claim up, by request and by schedule, loses and restores it. Then the whole cluster is lost, and comes back with its data.
func TestClaimsComeBackFromBackups(t *testing.T) {
	soakOnly(t, "`make soak` runs it")
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	cinder := demo.service(t, openstack.NewBlockStorageV3)
	cinder.Microversion = "3.47"
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "backups.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "name: scaling-cluster",
		"name: scaling-cluster\n    storageClasses: [{name: burano-cinder, backend: cinder, default: true}]\n    enableRegistry: false\n    keepVolumes: false\n    claimBackupEvery: 24", 1)), 0o600))
	l.deleteIfFailed(t, "scaling")
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	var c *cluster
	deploy := func() {
		t.Helper()
		burano("deploy", file, "--follow")
		burano("environment", "delegation", "set", "scaling")
		c = l.clusterOf(t, demo, environmentNamed(t, demo, "scaling"))
	}
	gone := func() {
		t.Helper()
		l.eventually(t, 2*time.Minute, "no volume is left", func() error {
			pages, err := volumes.List(cinder, volumes.ListOpts{}).AllPages(t.Context())
			require.NoError(t, err)
			list, err := volumes.ExtractVolumes(pages)
			require.NoError(t, err)
			if len(list) > 0 {
				return fmt.Errorf("there are %v", list)
			}
			return nil
		})
	}
	pod := func(name, claim, phase, script string) {
		t.Helper()
		c.kubectl(t, strings.Replace(fmt.Sprintf(volumeUser, name, "{runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000, runAsNonRoot: true}", script), "claimName: kept",
			"claimName: "+claim, 1), "apply", "-f", "-")
		c.kubectl(t, "", "wait", "pod", name, "--for=jsonpath={.status.phase}="+phase, "--timeout=180s")
	}
	run := func(name, claim, script string) {
		t.Helper()
		pod(name, claim, "Succeeded", script)
		c.kubectl(t, "", "delete", "pod", name)
	}
	type backup struct{ ID, Claim, Kind, Why, Status string }
	listed := func(which ...string) (list []backup) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(burano(append([]string{"cluster", "backup", "list", "scaling", "--output", "json"}, which...)...)), &list))
		return list
	}

	deploy()
	c.kubectl(t, fmt.Sprintf(claimOfCinder, "valued"), "apply", "-f", "-")
	run("fill", "valued", "echo valued > /data/file")
	l.eventually(t, 2*time.Minute, "there is a scheduled backup", func() error {
		if list := listed(); len(list) != 1 || list[0].Claim != "default/valued" || list[0].Kind != "backup" || list[0].Why != "scheduled" {
			return fmt.Errorf("there are %v", list)
		}
		return nil
	})
	pod("user", "valued", "Running", "while :; do sleep 1; done")
	began := time.Now()
	require.Contains(t, burano("cluster", "backup", "create", "scaling", "--claim", "valued", "--reason", "before the flood"), "is complete")
	t.Logf("a backup was complete %.1f s after it was asked for", time.Since(began).Seconds())
	list := listed()
	require.Len(t, list, 2)
	require.Equal(t, backup{list[0].ID, "default/valued", "backup", "requested", "available"}, list[0])
	c.kubectl(t, "", "delete", "pod", "user")
	run("change", "valued", "echo other > /data/file")

	restore := []string{"cluster", "backup", "restore", "scaling", "--backup", list[0].ID}
	output, err := l.try(l.as("burano-demo"), "burano", restore...)
	require.Error(t, err)
	require.Contains(t, output, "there is a claim default/valued, which is left as it is")
	burano(append(restore, "--claim", "default/copied")...)
	run("copy", "copied", "[[ $(</data/file) == valued ]]")
	run("changed", "valued", "[[ $(</data/file) == other ]]")
	burano("cluster", "snapshot", "create", "scaling", "--reason", "before the worst day")
	c.kubectl(t, "", "delete", "pvc", "valued", "copied")
	gone()
	began = time.Now()
	burano(restore...)
	run("back", "valued", "[[ $(</data/file) == valued ]]; echo more > /data/more")
	t.Logf("what was in a backup was read %.1f s after its restore was asked for", time.Since(began).Seconds())
	c.kubectl(t, "", "delete", "pvc", "valued")
	gone()

	// The cluster is lost, with all its volumes. Its snapshot knows of claims that have none.
	burano("environment", "delete", "--yes", "scaling")
	var snapshots []struct{ ID, Reason string }
	require.NoError(t, json.Unmarshal([]byte(burano("cluster", "snapshot", "list", "--output", "json")), &snapshots))
	deploy()
	for _, one := range snapshots {
		if one.Reason == "before the worst day" {
			burano("cluster", "snapshot", "restore", "scaling", "--snapshot", one.ID, "--yes", "--follow")
		}
	}
	c = l.clusterOf(t, demo, environmentNamed(t, demo, "scaling"))
	require.Contains(t, c.kubectl(t, "", "get", "pvc", "valued"), "Bound")
	c.kubectl(t, "", "delete", "pvc", "valued", "copied")
	l.eventually(t, 2*time.Minute, "the volumes that were lost are forgotten", func() error {
		if left := c.kubectl(t, "", "get", "pv", "-o", "name"); left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
	require.Contains(t, listed("--all"), list[0], "it is one of the cluster that was lost")
	burano(restore...)
	run("again", "valued", "[[ $(</data/file) == valued && ! -e /data/more ]]")

	burano("cluster", "backup", "delete", "scaling", "--backup", list[0].ID)
	require.NotContains(t, listed("--all"), list[0])
	burano("environment", "delete", "--yes", "scaling")
	gone()
	pages, err := backups.ListDetail(cinder, backups.ListDetailOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	left, err := backups.ExtractBackups(pages)
	require.NoError(t, err)
	for _, one := range left { // they outlive their cluster
		require.Equal(t, "scheduled", (*one.Metadata)["burano_backup"])
		require.NoError(t, backups.Delete(t.Context(), cinder, one.ID).ExtractErr())
	}
	require.NotEmpty(t, left)
	asBefore(t, demo, found)
}
