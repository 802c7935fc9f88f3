package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"
	"github.com/stretchr/testify/require"
)

// backupContainer is the container of the project's object store in which the test's backups are.
const backupContainer = "burano-snapshots"

// TestBackupsAndDrillsComeBySchedule has backups made and tried while nobody asks for them; an hour of the schedule has 30 seconds. One application keeps its numbers in memory until a backup comes. The
// project damages a part of a backup in its object store: the next drill reports it, and removes its environment as the others do.
func TestBackupsAndDrillsComeBySchedule(t *testing.T) {
	soakOnly(t, "`make soak` runs this: what is due, what is kept and what a drill leaves have tests in orchestrator and web/api; TestAnEnvironmentComesBackFromItsBackup restores one")
	l := start(t, "faults")
	demo := l.user(t, "burano-demo")
	l.stop(t)
	l.launch(t, "--snapshot-container", backupContainer, "--keeper-interval", "5s", "--hour", "30s")
	l.healthy(t)
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	project := demo.project(t)
	l.run(t, l.as("burano-admin"), "burano", "project", "enable", "--project", project) // who drills by schedule is not signed in
	t.Cleanup(func() { l.run(t, l.as("burano-admin"), "burano", "project", "disable", "--project", project) })
	found := inventory(t, demo) // with the trust of that role
	burano("package", "import", "test/packages/io.burano.test.Till")
	burano("deploy", l.shopWithTill(t), "--follow")
	l.deleteIfFailed(t, "shop")
	environment := environmentNamed(t, demo, "shop")
	s := &scaling{lab: l, user: demo, environment: environment["id"].(string), cluster: l.clusterOf(t, demo, environment)}
	s.cluster.kubectl(t, "", "create", "namespace", "others")
	for _, name := range []string{"used", "spare"} {
		s.cluster.kubectl(t, fmt.Sprintf(shopClaim, name, "others"), "apply", "-f", "-")
		s.cluster.fill(t, "others", name, "echo precious of "+name+" > /data/marker", true)
	}

	began := time.Now()
	burano("backup", "schedule", "shop", "--every", "1", "--keep", "2", "--drill-every", "1000")
	seen := map[string]bool{}
	l.eventually(t, 4*time.Minute, "four backups were made, and two are kept", func() error {
		kept := backupsOf(t, burano)
		for _, id := range kept {
			seen[id] = true
		}
		if len(seen) < 4 || len(kept) != 2 {
			return fmt.Errorf("%d were made, and there are %d", len(seen), len(kept))
		}
		return nil
	})
	t.Logf("four backups of five claims were made by schedule, and two are kept, after %.0f s", time.Since(began).Seconds())
	drilled := s.drilled(t, "drill-passed")
	t.Logf("a drill came by schedule: %s", drilled)

	burano("backup", "schedule", "shop", "--every", "1000", "--keep", "2", "--drill-every", "1000") // nothing more is due
	s.tillIsTaken(t, burano)

	damaged := l.damage(t, demo)
	burano("backup", "schedule", "shop", "--every", "1000", "--keep", "2", "--drill-every", "1")
	why := s.drilled(t, "drill-failed")
	t.Logf("of %d damaged objects a drill reports: %s", damaged, why)
	require.Contains(t, why, "could not be restored")
	burano("backup", "create", "shop", "--reason", "after the damage")
	s.drilled(t, "drill-passed")

	burano("backup", "schedule", "shop", "--never")
	l.eventually(t, 2*time.Minute, "the last drill has ended", func() error {
		if list := demo.must(t, http.MethodGet, "/v1/environments", nil)["environments"].([]any); len(list) != 1 {
			return fmt.Errorf("there are %d environments", len(list))
		}
		return nil
	})
	s.claimIsUnused(t, burano)
	burano(append([]string{"backup", "delete"}, backupsOf(t, burano)...)...)
	l.noPartsLeft(t, demo)
	burano("environment", "delete", "--yes", "shop")
	asBefore(t, demo, found)
}

// claimIsUnused removes the till, whose claim then is a finding until a command deletes it.
func (s *scaling) claimIsUnused(t *testing.T, burano func(args ...string) string) {
	t.Helper()
	burano("deploy", "test/e2e/testdata/shop.yaml", "--allow-destroy", "till,desk", "--follow")
	var unused []struct{ Kind, Name, Size string }
	s.finds(t, "claims-unused")
	require.NoError(t, json.Unmarshal([]byte(burano("cluster", "volumes", "list", "shop", "--output", "json")), &unused))
	of := slices.IndexFunc(unused, func(one struct{ Kind, Name, Size string }) bool { return strings.Contains(one.Name, "till") })
	require.GreaterOrEqual(t, of, 0, unused)
	require.Equal(t, []string{"claim", "10Mi"}, []string{unused[of].Kind, unused[of].Size})
	refused, err := s.lab.try(s.lab.as("burano-demo"), "burano", "cluster", "volumes", "delete", "shop", unused[of].Name)
	require.Error(t, err)
	require.Contains(t, refused, "this is deleted, with its data: claim "+unused[of].Name)
	burano("cluster", "volumes", "delete", "shop", "--all", "--yes")
	require.NotContains(t, s.cluster.kubectl(t, "", "get", "persistentvolumeclaims", "-A"), "till")
	s.lab.eventually(t, 2*time.Minute, "nothing is unused", func() error {
		for _, one := range s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/findings", nil)["findings"].([]any) {
			if one.(map[string]any)["kind"] == "claims-unused" {
				return fmt.Errorf("there is %v", one)
			}
		}
		return nil
	})
}

// shopWithTill is the file of the shop with an application that has hooks for backups.
func (l *lab) shopWithTill(t *testing.T) string {
	t.Helper()
	var text []byte
	for _, name := range []string{"shop.yaml", "till.yaml"} {
		part, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		text = append(text, part...)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// drilled waits for the finding of this kind that a drill leaves when its environment is gone, and returns its text.
func (s *scaling) drilled(t *testing.T, kind string) (text string) {
	t.Helper()
	s.lab.eventually(t, 5*time.Minute, "a drill leaves the finding "+kind, func() error {
		list := s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/findings", nil)["findings"].([]any)
		for _, one := range list {
			if finding := one.(map[string]any); finding["kind"] == kind {
				text = finding["text"].(string)
			}
		}
		if text == "" {
			return fmt.Errorf("findings are %v", list)
		}
		return nil
	})
	return text
}

// tillIsTaken makes a backup while the till has numbers in memory, restores it beside, and measures both.
func (s *scaling) tillIsTaken(t *testing.T, burano func(args ...string) string) {
	t.Helper()
	number := func(of *cluster, file string) (n int) {
		_, err := fmt.Sscan(of.inPodOf(t, "desk", "tail -n 1 "+file), &n)
		require.NoError(t, err)
		return n
	}
	var counted, before int
	var made time.Duration
	s.lab.eventually(t, time.Minute, "a backup is made", func() error { // the last one of the schedule may not be whole yet
		counted, before = s.cluster.count(t), number(s.cluster, "/dev/shm/now")
		began := time.Now()
		output, err := s.lab.try(s.lab.as("burano-demo"), "burano", "backup", "create", "shop")
		made = time.Since(began)
		if err != nil {
			return fmt.Errorf("%s %w", output, err)
		}
		return nil
	})
	taken := backupsOf(t, burano)[0]
	saved := number(s.cluster, "/till/saved")
	require.GreaterOrEqual(t, saved, before, "it was asked to write")
	s.lab.eventually(t, time.Minute, "the till goes on after the backup", func() error {
		if now := number(s.cluster, "/dev/shm/now"); now <= saved {
			return fmt.Errorf("it is at %d", now)
		}
		return nil
	})

	began := time.Now()
	burano("backup", "restore", taken, "--name", "shop-again", "--follow")
	s.lab.deleteIfFailed(t, "shop-again")
	t.Logf("a backup of five claims took %.1f s, and its restore beside %.1f s", made.Seconds(), time.Since(began).Seconds())
	again := s.lab.clusterOf(t, s.user, environmentNamed(t, s.user, "shop-again"))
	again.wentOn(t, counted)
	starts := strings.Fields(again.inPodOf(t, "desk", "cat /till/starts"))
	require.Equal(t, fmt.Sprint(saved), starts[len(starts)-1], "it goes on from what it had in memory: %v", starts)
	burano("environment", "delete", "--yes", "shop-again")
}

// damage overwrites the parts of backups with files of claims in the project's object store, and returns how many objects these are.
func (l *lab) damage(t *testing.T, u *user) (damaged int) {
	t.Helper()
	var snapshots []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "list", "--output", "json")), &snapshots))
	swift := u.service(t, openstack.NewObjectStorageV1)
	for _, name := range objectsOf(t, u) {
		of, _, _ := strings.Cut(name, "/")
		if slices.ContainsFunc(snapshots, func(one struct{ ID string }) bool { return one.ID == of }) { // of etcd
			continue
		}
		require.NoError(t, objects.Create(t.Context(), swift, backupContainer, name, objects.CreateOpts{Content: strings.NewReader("damaged")}).Err)
		damaged++
	}
	require.Positive(t, damaged)
	return damaged
}

// objectsOf are the names of the objects in the container for snapshots of a user's project.
func objectsOf(t *testing.T, u *user) []string {
	t.Helper()
	pages, err := objects.List(u.service(t, openstack.NewObjectStorageV1), backupContainer, nil).AllPages(t.Context())
	require.NoError(t, err)
	names, err := objects.ExtractNames(pages)
	require.NoError(t, err)
	return names
}
