package upkeep

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

// keptBackups are the rows of an environment's backups.
type keptBackups struct {
	backup.Rows
	schedule *store.BackupSchedule
	list     []store.Backup
	drills   []store.BackupDrill
	left     []store.LeftBackup
}

func (k *keptBackups) Left(context.Context, time.Duration) ([]store.LeftBackup, error) {
	return k.left, nil
}

func (k *keptBackups) Schedule(context.Context, string) (store.BackupSchedule, bool, error) {
	if k.schedule == nil {
		return store.BackupSchedule{}, false, nil
	}
	return *k.schedule, true, nil
}

func (k *keptBackups) List(context.Context, store.BackupFilter) ([]store.Backup, error) {
	return k.list, nil
}

func (k *keptBackups) Drills(context.Context, string, int) ([]store.BackupDrill, error) {
	return k.drills, nil
}

func TestBackupsAreMadeAsTheScheduleSays(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ago := func(hours int) store.Time {
		return store.Time(now.Add(-time.Duration(hours) * time.Hour).UnixMicro())
	}
	rows := &keptBackups{}
	duty := environmentBackupsDuty{Config{Reach: known.Reach{Backups: &backup.Backups{Rows: rows}}}, func() time.Time { return now }}
	environment := &keeper.Environment{ID: "e", Name: "shop", Clusters: []*desired.Cluster{{ID: "cluster"}}}
	look := func() []keeper.Finding {
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		return result.Findings
	}
	require.Empty(t, look(), "there is no schedule")

	rows.schedule = &store.BackupSchedule{EnvironmentID: "e", Hours: 24, Kept: 3, Updated: ago(0)}
	first := look()
	require.Len(t, first, 1, "the first one is made at once")
	require.Equal(t, keeper.Info, first[0].Severity)
	require.Equal(t, &keeper.Repair{ObjectID: "cluster", Method: "backUp", Routine: true, AfterFailure: true, Text: "The environment is backed up, every 24 hours",
		Args: map[string]any{"scheduled": true, "kept": int64(3), "incomplete": false, "reason": "every 24 hours"}}, first[0].Repair)

	rows.list = []store.Backup{{Kind: store.Requested, Created: ago(1)}, {Kind: store.Scheduled, Created: ago(23)}}
	require.Empty(t, look())
	rows.list[1].Created = ago(25)
	require.Equal(t, keeper.Info, look()[0].Severity, "what was asked for does not count")
	rows.list[1].Created = ago(49)
	require.Equal(t, keeper.Warning, look()[0].Severity, "two are missing")
}

func TestTheResultOfADrillIsAFinding(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(before time.Duration) store.Time { return store.Time(now.Add(-before).UnixMicro()) }
	rows := &keptBackups{}
	duty := environmentBackupsDuty{Config{Reach: known.Reach{Backups: &backup.Backups{Rows: rows}}}, func() time.Time { return now }}
	kinds := func(drills ...store.BackupDrill) (kinds []string) {
		rows.drills = drills
		result, err := duty.Look(t.Context(), &keeper.Environment{ID: "e", Name: "shop"})
		require.NoError(t, err)
		for _, one := range result.Findings {
			kinds = append(kinds, one.Kind+" "+string(one.Severity))
		}
		return kinds
	}
	passed := store.BackupDrill{Began: at(3 * time.Hour), Answered: at(179 * time.Minute), Ended: at(178 * time.Minute)}
	failed := store.BackupDrill{Began: at(3 * time.Hour), Failure: "the database did not start", Ended: at(178 * time.Minute)}
	left, runs := passed, store.BackupDrill{Began: at(time.Minute)}
	left.Ended = 0
	require.Empty(t, kinds(runs))
	require.Equal(t, []string{"drill-passed info"}, kinds(runs, passed), "the last one counts until the next one has ended")
	require.Equal(t, []string{"drill-failed warning"}, kinds(failed, passed))
	require.Equal(t, []string{"drill-left warning", "drill-passed info"}, kinds(left))
}

func TestABackupThatWasNotFinishedIsEnded(t *testing.T) {
	rows := &keptBackups{left: []store.LeftBackup{{ID: "b1", EnvironmentID: "another", InCluster: true}, {ID: "b2", EnvironmentID: "e"}}}
	duty := environmentBackupsDuty{Config{Reach: known.Reach{Backups: &backup.Backups{Rows: rows}}}, time.Now}
	environment := &keeper.Environment{ID: "e", Name: "shop", Clusters: []*desired.Cluster{{ID: "cluster"}}}
	result, err := duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Empty(t, result.Findings)
	rows.left = append(rows.left, store.LeftBackup{ID: "b3", EnvironmentID: "e", InCluster: true})
	result, err = duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, "backup-unfinished", result.Findings[0].Kind)
	require.Equal(t, &keeper.Repair{ObjectID: "cluster", Method: "endBackup", Routine: true, AfterFailure: true, Text: "A backup that was not finished is ended"}, result.Findings[0].Repair)
}
