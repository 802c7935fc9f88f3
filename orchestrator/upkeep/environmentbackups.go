package upkeep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

// environmentBackupsDuty backs environments up as often as their schedules demand. It needs no cloud.
type environmentBackupsDuty struct {
	Config
	now func() time.Time
}

func (environmentBackupsDuty) Name() string { return store.BackupsDuty }

func (b environmentBackupsDuty) Every() time.Duration { return b.hours(1) / 6 }

func (b environmentBackupsDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	drills, err := b.Backups.Drills(ctx, environment.ID, 2)
	if err != nil {
		return result, err
	}
	result.Findings = b.drilled(environment, drills)
	left, err := b.Backups.Left(ctx, 0)
	if err != nil {
		return result, err
	}
	isLeft := func(one store.LeftBackup) bool { return one.InCluster && one.EnvironmentID == environment.ID }
	if slices.ContainsFunc(left, isLeft) && len(environment.Clusters) > 0 {
		result.Findings = append(result.Findings, keeper.Finding{Kind: "backup-unfinished", Severity: keeper.Warning,
			Text:  fmt.Sprintf("A backup of environment %s was not finished: its applications may wait for the end of it, and nodes may have copies of claims", environment.Name),
			Mends: "Burano ends it by itself, and so does the next backup",
			Repair: &keeper.Repair{ObjectID: environment.Clusters[0].ID, Method: known.EndBackup, Routine: true, AfterFailure: true,
				Text: "A backup that was not finished is ended"}})
	}
	schedule, found, err := b.Backups.Schedule(ctx, environment.ID)
	if err != nil || !found || len(environment.Clusters) == 0 {
		return result, err
	}
	list, err := b.Backups.List(ctx, store.BackupFilter{EnvironmentID: environment.ID, Whole: true})
	if err != nil {
		return result, err
	}
	if due := b.due(environment, schedule, list); due != nil {
		result.Findings = append(result.Findings, *due)
	}
	return result, nil
}

// due is the finding that a backup is to be made now; nil when none is.
func (b environmentBackupsDuty) due(environment *keeper.Environment, schedule store.BackupSchedule, list []store.Backup) *keeper.Finding {
	every := b.hours(schedule.Hours)
	last := schedule.Updated.Time()
	there := false
	for _, one := range list {
		if one.Kind == store.Scheduled {
			last, there = one.Created.Time(), true
			break
		}
	}
	age := b.now().Sub(last)
	if there && age < every {
		return nil
	}
	finding := keeper.Finding{Kind: "backup-due", Severity: keeper.Info,
		Text:  fmt.Sprintf("Environment %s has no scheduled backup of the last %d hours", environment.Name, schedule.Hours),
		Mends: "Burano makes one by itself, as the environment's schedule says (burano backup schedule)",
		Repair: &keeper.Repair{ObjectID: environment.Clusters[0].ID, Method: known.BackUp, Routine: true, AfterFailure: true,
			Args: map[string]any{known.ArgumentScheduled: true, known.ArgumentKept: schedule.Kept, known.ArgumentIncomplete: schedule.Incomplete, known.ArgumentReason: fmt.Sprintf("every %d hours", schedule.Hours)},
			Text: fmt.Sprintf("The environment is backed up, every %d hours", schedule.Hours)}}
	if age > overdue*every {
		finding.Severity = keeper.Warning
		finding.Mends = "It is tried again by itself. The log of the last try names what is wrong (burano deployment list " + environment.Name + ")"
	}
	return &finding
}

// leftAfter is how long after a drill has its answer its environment may be there.
const leftAfter = time.Hour

// drilled is how the last drill went, the newest first in the list.
func (b environmentBackupsDuty) drilled(environment *keeper.Environment, drills []store.BackupDrill) (findings []keeper.Finding) {
	for _, one := range drills {
		answers := one.Answered != 0 || one.Failure != ""
		if answers && one.Ended == 0 && b.now().Sub(one.Began.Time()) > leftAfter {
			findings = append(findings, keeper.Finding{Kind: "drill-left", Subject: one.CloneName, Severity: keeper.Warning,
				Text:  fmt.Sprintf("Environment %s, which a drill of a backup of %s has made, could not be removed", one.CloneName, environment.Name),
				Mends: "It is tried again by itself. The log of its deletion names what is wrong (burano deployment show " + one.CloneName + ")"})
		}
		if !answers {
			continue
		}
		at := one.Began.Time().Format(time.RFC1123)
		if one.Failure != "" {
			return append(findings, keeper.Finding{Kind: "drill-failed", Severity: keeper.Warning, Text: fmt.Sprintf("Backup %s of environment %s could not be restored on %s: %s", one.BackupID, environment.Name, at, one.Failure),
				Mends: "Mend what it names, make another backup, and try again (burano backup drill " + environment.Name + ")"})
		}
		return append(findings, keeper.Finding{Kind: "drill-passed", Severity: keeper.Info, Text: fmt.Sprintf("Backup %s of environment %s was restored beside on %s, and answered after %.0f s", one.BackupID, environment.Name, at,
			one.Answered.Time().Sub(one.Began.Time()).Seconds()), Mends: "Nothing is to be done: the next drill takes its place"})
	}
	return findings
}
