package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Instants at which `make test` kills the server: pods are frozen at the first one.
var (
	killsOfBackup  = []string{"begin:copy claims of shop-cluster", "end:store claim default/store-orders--first of shop-cluster"}
	killsOfRestore = []string{"begin:make claim default/store-orders--first", "end:make claim default/store-orders--first", "begin:fill claim default/store-orders--first", "end:fill claim default/store-orders--first"}
)

// TestBackupsAndRestoresSurviveTheDeathOfTheServer kills the server with SIGKILL during a backup and during the restore of it, and starts it again each time: pods go on, each ends as asked for, and
// nothing is left of the servers that died. `make soak` does so at the beginning and at the end of every step of the backup, and during a drill.
func TestBackupsAndRestoresSurviveTheDeathOfTheServer(t *testing.T) {
	l := start(t, "faults")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	burano("deploy", "test/e2e/testdata/shop.yaml", "--follow")
	l.deleteIfFailed(t, "shop")
	shop := environmentNamed(t, demo, "shop")
	c := l.clusterOf(t, demo, shop)
	// A server that dies while its keeper writes the first snapshot leaves that one unfinished, which counts for hours.
	l.eventually(t, time.Minute, "the keeper takes its first snapshot", func() error {
		if len(demo.must(t, http.MethodGet, "/burano/v1/snapshots", nil)["snapshots"].([]any)) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	whole, filled := killsOfBackup, killsOfRestore
	soak := soaking()
	if soak { // the steps are those of a backup that nobody disturbs
		burano("backup", "create", "shop")
		whole = instants(steps(t, demo, lastDeployment(t, demo, "shop")))
		burano("backup", "delete", backupsOf(t, burano)[0])
	}
	before := quotaUsed(t, demo)

	l.whenDead = func(instant string) { c.thawed(t, instant) }
	counted, began := c.count(t), time.Now()
	l.killed(t, whole, func() {
		_, _ = demo.send(t.Context(), http.MethodPost, "/burano/v1/environments/"+shop["id"].(string)+"/backups", map[string]any{"reason": "killed"})
	})
	l.eventually(t, 3*time.Minute, "the backup ends", func() error {
		if status := environmentNamed(t, demo, "shop")["status"]; status != "ready" {
			return fmt.Errorf("the environment is %s", status)
		}
		return nil
	})
	backups := backupsOf(t, burano)
	require.Len(t, backups, 1, "it is made once")
	c.nothingLeft(t)
	require.Greater(t, quotaUsed(t, demo), before)
	t.Logf("a backup survived %d kills, in %.1f s", len(whole), time.Since(began).Seconds())

	l.whenDead, began = nil, time.Now()
	l.killed(t, filled, func() {
		demo.must(t, http.MethodPost, "/burano/v1/backups/"+backups[0]+"/restore", map[string]any{"name": "shop-again"})
	})
	l.deleteIfFailed(t, "shop-again")
	l.eventually(t, 3*time.Minute, "the restore ends", func() error {
		if status := environmentNamed(t, demo, "shop-again")["status"]; status != "ready" {
			return fmt.Errorf("the environment is %s", status)
		}
		return nil
	})
	again := l.clusterOf(t, demo, environmentNamed(t, demo, "shop-again"))
	again.wentOn(t, counted)
	again.nothingLeft(t)
	t.Logf("a restore survived %d kills, in %.1f s", len(filled), time.Since(began).Seconds())
	burano("environment", "delete", "--yes", "shop-again")

	if soak {
		l.killedDuringADrill(t, demo, backups[0])
	}
	burano("backup", "delete", backups[0])
	l.noPartsLeft(t, demo)
	burano("environment", "delete", "--yes", "shop")
	asBefore(t, demo, found)
}

// killed calls begin on a server that is killed at these instants.
func (l *lab) killed(t *testing.T, kills []string, begin func()) {
	t.Helper()
	l.stop(t)
	l.launch(t, "--kill-at-step", kills[0], "--max-deaths", strconv.Itoa(len(kills)))
	l.healthy(t)
	begin()
	l.surviveKills(t, kills)
}

// killedDuringADrill kills the server while the environment of a drill is deployed, and while it is deleted.
func (l *lab) killedDuringADrill(t *testing.T, demo *user, backup string) {
	t.Helper()
	began := time.Now()
	demo.must(t, http.MethodPost, "/burano/v1/backups/"+backup+"/drill", nil)
	last := func() map[string]any {
		id := environmentNamed(t, demo, "shop")["id"].(string)
		return demo.must(t, http.MethodGet, "/burano/v1/environments/"+id+"/backups/drills", nil)["drills"].([]any)[0].(map[string]any)
	}
	for _, state := range []string{"restoring", "removing"} {
		l.eventually(t, 5*time.Minute, "the drill is "+state, func() error {
			if now := last()["state"]; now != state {
				return fmt.Errorf("it is %s", now)
			}
			return nil
		})
		require.NoError(t, l.server.Process.Kill())
		_ = l.server.Wait()
		l.launch(t)
		l.healthy(t)
	}
	l.eventually(t, 5*time.Minute, "the drill ends", func() error {
		if now := last(); now["ended"] == nil {
			return fmt.Errorf("it is %v", now)
		}
		return nil
	})
	require.Equal(t, "answered", last()["state"], last())
	for _, one := range demo.must(t, http.MethodGet, "/v1/environments", nil)["environments"].([]any) {
		require.Equal(t, "shop", one.(map[string]any)["name"])
	}
	t.Logf("a drill survived two kills, in %.1f s", time.Since(began).Seconds())
}

func backupsOf(t *testing.T, burano func(args ...string) string) (ids []string) {
	t.Helper()
	var list []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(burano("backup", "list", "--output", "json")), &list))
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	return ids
}

// quotaUsed is how many bytes of snapshots and backups count for the project.
func quotaUsed(t *testing.T, u *user) float64 {
	t.Helper()
	project := u.must(t, http.MethodGet, "/burano/v1/session", nil)["project"].(map[string]any)["id"].(string)
	quotas := u.must(t, http.MethodGet, "/burano/v1/quotas/"+project, nil)["quotas"].(map[string]any)
	return quotas["snapshot_bytes"].(map[string]any)["used"].(float64)
}

// noPartsLeft makes sure that nothing counts for the project's quota but snapshots that it sees, and none of a drill.
func (l *lab) noPartsLeft(t *testing.T, u *user) {
	t.Helper()
	l.eventually(t, time.Minute, "backups and drills leave nothing", func() error { // the keeper may take a snapshot meanwhile
		var seen float64
		for _, one := range u.must(t, http.MethodGet, "/burano/v1/snapshots", nil)["snapshots"].([]any) {
			snapshot := one.(map[string]any)
			if strings.Contains(snapshot["environment_name"].(string), "-drill-") {
				return fmt.Errorf("there is a snapshot of a drill: %v", snapshot)
			}
			seen += snapshot["stored"].(float64)
		}
		if used := quotaUsed(t, u); used != seen {
			return fmt.Errorf("%.0f bytes count, and the snapshots have %.0f", used, seen)
		}
		return nil
	})
}

// thawed makes sure that pods go on soon after the server has died.
func (c *cluster) thawed(t *testing.T, instant string) {
	t.Helper()
	const frozen = `for one in $(find /sys/fs/cgroup -path '*kubepods*' \( -name cgroup.freeze -o -name freezer.state \)); do case $(cat "$one") in 0 | THAWED) ;; *) echo "$one" ;; esac; done`
	began := time.Now()
	c.lab.eventually(t, 10*time.Second, "pods go on after the death of the server at "+instant, func() error {
		for _, node := range []string{"murano-kube-2", "murano-kube-3"} {
			output, err := c.on(node, "/bin/bash", "-c", frozen)
			if err != nil || output != "" {
				return fmt.Errorf("on %s: %s %v", node, output, err)
			}
		}
		return nil
	})
	t.Logf("pods run %.1f s after the death of the server at %s", time.Since(began).Seconds(), instant)
}

// nothingLeft makes sure that a cluster has neither copies nor pods of a backup or a restore.
func (c *cluster) nothingLeft(t *testing.T) {
	t.Helper()
	require.Empty(t, strings.TrimSpace(c.kubectl(t, "", "get", "pods", "-A", "-l", "burano.io/holds-for", "-o", "name")))
	for _, node := range []string{"murano-kube-2", "murano-kube-3"} {
		left, err := c.on(node, "/bin/bash", "-c", "ls /var/lib/burano/backup 2>/dev/null | wc -l")
		require.NoError(t, err, left)
		require.Equal(t, "0", strings.TrimSpace(left))
	}
}
