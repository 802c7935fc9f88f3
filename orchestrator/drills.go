package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/store"
)

const (
	// drillPause is the interval between checks of a drill, and drillBegins how long its environment may take to be
	// written.
	drillPause  = 3 * time.Second
	drillBegins = time.Minute
	// drillTime is how long a drill's environment may take until it answers. It is removed then.
	drillTime = 2 * time.Hour
	// drillsKept is how long the results of drills stay.
	drillsKept = 90 * 24 * time.Hour
	// drillReports is the most lines of a log that are read for the reason why a drill failed.
	drillReports = 10_000
	// dueEvery is the interval between searches for due drills.
	dueEvery = time.Minute
)

// byRole reports whether Burano works in a project with a role of its own.
func (b *Backups) byRole(ctx context.Context, projectID string) (bool, error) {
	role, err := b.service.store.ProjectRoles().Get(ctx, projectID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && role.Disabled == nil, err
}

// Drill tests whether a backup of the caller's project can be restored: it makes a second environment of it, and removes that as soon as it answers or has failed.
func (b *Backups) Drill(ctx context.Context, caller identity.Caller, id string) (store.BackupDrill, error) {
	from, err := b.Show(ctx, caller, id)
	if err != nil {
		return store.BackupDrill{}, err
	}
	if from.EnvironmentID == "" {
		return store.BackupDrill{}, fault.New(fault.Invalid, "Backup %s was uploaded, and the project has no environment that it is of: drills are of an environment's backups. Restore it (burano backup restore)", id)
	}
	drill := store.BackupDrill{ProjectID: from.ProjectID, EnvironmentID: from.EnvironmentID, BackupID: from.ID, UserID: caller.UserID, UserName: caller.UserName,
		CloneName: from.EnvironmentName + "-drill-" + store.NewID()[:6]}
	if err := b.rows.AddDrill(ctx, &drill, drillBegins); err != nil {
		return drill, err
	}
	_, err = b.Restore(ctx, caller, from.ID, Restoration{Name: drill.CloneName, id: drill.CloneID, prepare: func(clone store.Environment) error {
		by, err := b.byRole(ctx, from.ProjectID)
		if err == nil && !by { // the removal comes later, perhaps without the caller
			_, err = b.service.Delegations().Set(ctx, caller, clone.ID, Delegate{})
		}
		return err
	}})
	if err != nil {
		drill.Failure = err.Error()
		drill.Ended = b.now()
	}
	return drill, errors.Join(err, b.rows.NoteDrill(context.WithoutCancel(ctx), drill, drillPause))
}

func (b *Backups) now() store.Time { return store.Time(b.service.now().UTC().UnixMicro()) }

// Drills lists the last drills of an environment's backups, the newest first.
func (b *Backups) Drills(ctx context.Context, caller identity.Caller, environmentID string) ([]store.BackupDrill, error) {
	if _, err := b.service.environmentHead(ctx, caller, environmentID); err != nil {
		return nil, err
	}
	return b.rows.Drills(ctx, environmentID, 20)
}

// RunDrills advances drills until ctx ends. Several servers may run it.
func (b *Backups) RunDrills(ctx context.Context) {
	var looked time.Time
	for ctx.Err() == nil {
		err := b.AdvanceDrills(ctx)
		if now := b.service.now(); err == nil && now.Sub(looked) > min(dueEvery, b.hour) {
			looked, err = now, b.Tidy(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.service.log.WarnContext(ctx, "a drill of a backup could not go on; it is tried again", "error", err)
		}
		_ = wait.Pause(ctx, drillPause) // its error is the end of ctx
	}
}

// AdvanceDrills does the next thing of each drill whose time has come.
func (b *Backups) AdvanceDrills(ctx context.Context) error {
	for {
		drill, found, err := b.rows.TakeDrill(ctx, drillBegins)
		if err != nil || !found {
			return err
		}
		if err := b.advance(ctx, drill); err != nil {
			return err
		}
	}
}

// Tidy begins the drills that are due by schedules. It removes the remains of backups, restorations and uploads whose servers died, and old results of drills.
func (b *Backups) Tidy(ctx context.Context) error {
	due, err := b.rows.DrillsDue(ctx, b.hour)
	if err != nil {
		return err
	}
	failures := []error{b.keep.Sweep(ctx, b.service.now()), b.sweepUnbegun(ctx), b.rows.ForgetDrills(ctx, b.now()-store.Time(drillsKept.Microseconds()))}
	for _, schedule := range due {
		list, err := b.rows.List(ctx, store.BackupFilter{EnvironmentID: schedule.EnvironmentID, Whole: true})
		list = slices.DeleteFunc(list, func(one store.Backup) bool { return one.Kind == store.Passing })
		if err == nil && len(list) > 0 {
			caller := identity.Caller{ProjectID: list[0].ProjectID, UserName: "the schedule of " + schedule.UserName}
			_, err = b.Drill(ctx, caller, list[0].ID)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// advance does the next step of a drill: it finds out whether the second environment answers, and then removes it.
func (b *Backups) advance(ctx context.Context, drill store.BackupDrill) error {
	clone, err := b.service.store.Environments().Head(ctx, drill.CloneID)
	if errors.Is(err, store.ErrNotFound) {
		if drill.Answered == 0 && drill.Failure == "" {
			drill.Failure = "the environment beside was not made, because the server died, or it was deleted before it answered"
		}
		if err = b.purge(ctx, drill.CloneID); err == nil {
			drill.Ended = b.now()
		}
		return errors.Join(err, b.rows.NoteDrill(ctx, drill, drillPause))
	}
	if err != nil {
		return err
	}
	sessions, err := b.service.store.Sessions().PeekList(ctx, clone.ID)
	if err != nil {
		return err
	}
	now, _ := status(sessions)
	running := now == string(store.Deploying) || now == string(store.Deleting)
	if drill.Answered == 0 && drill.Failure == "" {
		switch {
		case running && b.service.now().Sub(drill.Began.Time()) > drillTime:
			drill.Failure = fmt.Sprintf("it did not answer within %s", drillTime)
		case running:
		default:
			if drill.Failure, err = b.failure(ctx, clone.ID, now == "ready"); err == nil && drill.Failure == "" {
				drill.Answered = b.now()
			}
		}
	} else if !running {
		err = b.removeClone(ctx, drill, clone)
	}
	return errors.Join(err, b.rows.NoteDrill(ctx, drill, drillPause))
}

// failure is why the newest deployment of an environment failed; "" for one that is ready, and was deployed.
func (b *Backups) failure(ctx context.Context, environmentID string, ready bool) (string, error) {
	tasks, _, err := b.service.store.Tasks().List(ctx, environmentID, "")
	switch {
	case err != nil:
		return "", err
	case len(tasks) == 0:
		return "its deployment was not begun, because the server died", nil
	case ready:
		return "", nil
	}
	reports, err := b.service.store.Reports().List(ctx, tasks[0].ID, 0, drillReports)
	for _, one := range reports { // the first one has the cause
		if one.Level == "error" {
			return one.Text, err
		}
	}
	return "its deployment failed", err
}

// removeClone deletes the environment of a drill, by an ordinary task.
func (b *Backups) removeClone(ctx context.Context, drill store.BackupDrill, clone store.Environment) error {
	if removed, err := b.service.store.Environments().RemoveUndeployed(ctx, clone.ID, drill.UserID); removed || err != nil {
		return b.service.Environments().removed(clone.ID, err)
	}
	by, err := b.byRole(ctx, clone.ProjectID)
	if err != nil {
		return err
	}
	var delegation store.Delegation
	if by {
		delegation, err = b.service.Delegations().delegate(ctx, identity.Caller{ProjectID: clone.ProjectID, UserID: drill.UserID, UserName: drill.UserName}, clone)
	} else {
		delegation, err = b.service.store.Delegations().Standing(ctx, clone.ID)
	}
	if err != nil {
		return fmt.Errorf("remove environment %s of a drill: %w", clone.Name, err)
	}
	_, err = b.service.store.Tasks().SubmitDeletion(ctx, clone.ID, drill.UserID, store.Submission{Text: "The drill has ended: the environment is removed", DelegationID: delegation.ID})
	if err != nil {
		b.service.Delegations().giveBack(ctx, delegation)
		if fault.KindOf(err) == fault.Conflict || errors.Is(err, store.ErrBusy) {
			return nil // a later check tries again
		}
		return err
	}
	b.service.engine.Wake()
	return nil
}
