package store

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/requestid"
)

// Repair is a task that mends a finding.
type Repair struct {
	Finding   Finding
	TaskFence int64 // of the claim under which it was found
	// Pause is the pause before the finding's next repair.
	Pause time.Duration
	// Most is how many repairs all servers run at a time. Of hibernations by a schedule, and of their ends, it is their own number, and they are no repairs in this.
	Most int
	// AfterFailure is true if it may start after a failed task of a user.
	AfterFailure bool
	// Cloud is true if it needs the project's role, or the environment's standing delegation.
	Cloud  bool
	Action Action
	Text   string // of the first report
}

// SubmitRepair makes the task of a repair. The error is ErrBusy when it must not be started now, because of events since the check or because there are
// enough; ErrRevoked without the delegation that it needs.
func (s Tasks) SubmitRepair(ctx context.Context, repair Repair) (Task, error) {
	var task Task
	environmentID := repair.Finding.EnvironmentID
	err := s.transaction(ctx, "submit a repair", func(tx *gorm.DB) error {
		environment, err := idleEnvironment(tx, environmentID) // locks it
		if err != nil {
			return err
		}
		quiet, err := isQuiet(tx, environmentID, repair.TaskFence)
		if err != nil {
			return err
		}
		id, sleeps := NewID(), (Task{EnvironmentID: environmentID, Action: repair.Action}).Sleeps()
		if !sleeps {
			var running int64
			if err := tx.Model(&Task{}).Where("repair = ? AND finished IS NULL AND NOT "+bySchedule, true).Count(&running).Error; err != nil {
				return err
			}
			if running >= int64(repair.Most) {
				return ErrBusy
			}
		}
		failed, err := hasFailed(tx, environmentID)
		if err != nil {
			return err
		}
		if !quiet || failed && !repair.AfterFailure || admitAwake(tx, environmentID, sleeps) != nil {
			return ErrBusy
		}
		delegationID := ""
		if repair.Cloud {
			if delegationID, err = (Delegations(s)).ofRole(tx, environment); err != nil {
				return err
			}
		}
		if repair.Cloud && delegationID == "" {
			delegation, err := standingOf(tx, environmentID)
			if errors.Is(err, ErrNotFound) {
				return ErrRevoked
			}
			if err != nil {
				return err
			}
			delegationID = delegation.ID
		}
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		changed := tx.Model(&Finding{}).Where("id = ? AND closed IS NULL AND next_try <= ?", repair.Finding.ID, now).
			Updates(map[string]any{"tries": gorm.Expr("tries + 1"), "next_try": now + Time(repair.Pause.Microseconds()), "task_id": id})
		if changed.Error != nil {
			return changed.Error
		}
		if changed.RowsAffected == 0 {
			return ErrBusy
		}
		if sleeps {
			if err := startScheduled(tx, environmentID, id, repair.Most); err != nil {
				return err
			}
		}
		at := s.clock()
		task = Task{ID: id, EnvironmentID: environmentID, Repair: true, DelegationID: delegationID, Action: repair.Action, Result: Document{},
			Objects: ForClasses(environmentID, environment.Model.Objects), RequestID: requestid.From(tx.Statement.Context), Created: at, Updated: at, Started: at}
		if err := tx.Create(&task).Error; err != nil {
			return err
		}
		return Reports(s).add(tx, Report{TaskID: id, Level: "info", Text: repair.Text})
	})
	return task, err
}

// mended writes a repair's changes of the model. There was no other change meanwhile: only tasks change it.
func (s Tasks) mended(tx *gorm.DB, task Task, outcome Outcome) error {
	if outcome.Objects == nil {
		return nil
	}
	var environment Environment
	if err := locked(tx).Select("id", "version").Where("id = ?", task.EnvironmentID).Take(&environment).Error; err != nil {
		return err
	}
	model := Model{Objects: outcome.Objects, ObjectsCopy: outcome.ObjectsCopy, Packages: outcome.Packages}
	if err := (Components(s)).ended(tx, task, environment, model, outcome.Failed, Reached{}); err != nil {
		return err
	}
	return tx.Select("model").Where("id = ?", task.EnvironmentID).Updates(&Environment{Model: model}).Error
}
