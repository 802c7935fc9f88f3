package store

import (
	"context"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/requestid"
)

// Submission is a task to be made.
type Submission struct {
	SessionID string // of Submit; the others open a session of their own
	Action    Action
	Text      string // of the first report
	// Trust is a sealed trust for the environment, kept by DoomTrust under the id DoomedTrust; both "" when the environment has
	// one. When the environment got another one in the meantime, this one stays doomed.
	Trust, DoomedTrust string
}

// Submit makes the task, in one transaction with the state of its session, its first report and the environment's trust.
// ErrStale when the session is not open or older than the environment, or another session is deploying.
func (s *Store) Submit(ctx context.Context, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit a task", func(tx *gorm.DB) error {
		session, err := s.editable(tx, submission.SessionID)
		if err != nil {
			return err
		}
		// The draft as it is now that nobody can change it, and not as it was when the submission began: Keystone may have taken its time.
		task, err = s.submit(tx, session, submission, ForClasses(session.EnvironmentID, session.Model.Objects))
		return err
	})
	return task, err
}

// SubmitDeletion opens a session that deletes the environment and submits it, in one transaction. ErrBusy while the
// environment is deploying or deleting.
func (s *Store) SubmitDeletion(ctx context.Context, environmentID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit a deletion", func(tx *gorm.DB) error {
		session, err := s.open(tx, environmentID, userID)
		if err != nil {
			return err
		}
		submission.Action = Action{}
		task, err = s.submit(tx, session, submission, nil)
		return err
	})
	return task, err
}

// SubmitAction opens a session with the environment as it is and submits the submission's action on it, in one transaction.
// ErrBusy while the environment is deploying or deleting.
func (s *Store) SubmitAction(ctx context.Context, environmentID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit an action", func(tx *gorm.DB) error {
		session, err := s.open(tx, environmentID, userID)
		if err != nil {
			return err
		}
		task, err = s.submit(tx, session, submission, ForClasses(environmentID, session.Model.Objects))
		return err
	})
	return task, err
}

// Resubmit submits once more what a task was to do, if it failed and is the environment's newest (else ErrNoFailure), in one transaction.
// ErrBusy while the environment is deploying or deleting.
func (s *Store) Resubmit(ctx context.Context, taskID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit a task again", func(tx *gorm.DB) error {
		var former, newest Task
		if err := tx.Where("id = ?", taskID).Take(&former).Error; err != nil {
			return err
		}
		session, err := s.open(tx, former.EnvironmentID, userID) // locks the environment
		if err != nil {
			return err
		}
		if err := tx.Select("id").Where("environment_id = ?", former.EnvironmentID).Order("started DESC, created DESC, id").Take(&newest).Error; err != nil {
			return err
		}
		failures, _, err := count(tx, taskID)
		if err != nil {
			return err
		}
		if newest.ID != taskID || former.Finished == nil || failures == 0 && former.Result["isException"] != true {
			return ErrNoFailure
		}
		submission.Action = former.Action
		var objects Document
		if former.Objects != nil {
			objects = ForClasses(former.EnvironmentID, session.Model.Objects)
		}
		task, err = s.submit(tx, session, submission, objects)
		return err
	})
	return task, err
}

// submit makes the task of an open session of an environment that is not busy; both are locked. Objects are nil for a deletion.
func (s *Store) submit(tx *gorm.DB, session Session, submission Submission, objects Document) (Task, error) {
	now := s.clock()
	state := Deploying
	if objects == nil {
		state = Deleting
		session.Model.Objects = nil
	}
	if err := tx.Select("state", "model", "updated").Where("id = ?", session.ID).
		Updates(&Session{State: state, Model: session.Model, Updated: now}).Error; err != nil {
		return Task{}, err
	}
	if submission.Trust != "" {
		taken := tx.Model(&Environment{}).Where("id = ? AND trust = ''", session.EnvironmentID).Update("trust", submission.Trust)
		if taken.Error != nil {
			return Task{}, taken.Error
		}
		if taken.RowsAffected == 1 {
			if err := tx.Where("id = ?", submission.DoomedTrust).Delete(&DoomedTrust{}).Error; err != nil {
				return Task{}, err
			}
		}
	}
	task := Task{ID: NewID(), EnvironmentID: session.EnvironmentID, SessionID: session.ID, Action: submission.Action,
		Objects: objects, Result: Document{}, RequestID: requestid.From(tx.Statement.Context), Created: now, Updated: now, Started: now}
	if err := tx.Create(&task).Error; err != nil {
		return Task{}, err
	}
	return task, s.report(tx, Report{TaskID: task.ID, Level: "info", Text: submission.Text})
}

// CancelTask notes who wants the task's end, which its worker brings about. It changes nothing when somebody did already. ErrEnded
// when the task has ended, ErrNotFound when there is none.
func (s *Store) CancelTask(ctx context.Context, id, userID, text string) error {
	err := s.transaction(ctx, "cancel a task", func(tx *gorm.DB) error {
		var task Task
		if err := locked(tx).Select("id", "finished", "cancelled_by").Where("id = ?", id).Take(&task).Error; err != nil {
			return err
		}
		if task.Finished != nil {
			return ErrEnded
		}
		if task.CancelledBy != "" {
			return nil
		}
		if err := tx.Model(&Task{}).Where("id = ?", id).Update("cancelled_by", userID).Error; err != nil {
			return err
		}
		return s.report(tx, Report{TaskID: id, Level: "warning", Text: text})
	})
	s.watchers.changed(id)
	return err
}

// Task returns the task, or ErrNotFound.
func (s *Store) Task(ctx context.Context, id string) (Task, error) {
	var task Task
	err := s.rows(ctx).Where("id = ?", id).Take(&task).Error
	return task, wrap(err, "read a task")
}

// Counts are the numbers of a task's reports by level.
type Counts struct{ Errors, Warnings int64 }

// Tasks returns the tasks of an environment, or of all environments of a project (the other argument is ""), newest first,
// with the numbers of their reports.
func (s *Store) Tasks(ctx context.Context, environmentID, projectID string) ([]Task, map[string]Counts, error) {
	var tasks []Task
	counts := map[string]Counts{}
	err := s.transaction(ctx, "list tasks", func(tx *gorm.DB) error {
		selected := func() *gorm.DB {
			if projectID != "" {
				return tx.Where("environment_id IN (?)", tx.Model(&Environment{}).Select("id").Where("project_id = ?", projectID))
			}
			return tx.Where("environment_id = ?", environmentID)
		}
		if err := selected().Order("started DESC, created DESC, id").Find(&tasks).Error; err != nil {
			return err
		}
		var rows []struct {
			TaskID string
			Level  string
			Number int64
		}
		ids := selected().Model(&Task{}).Select("id")
		err := tx.Model(&Report{}).Select("task_id, level, COUNT(*) AS number").Where("task_id IN (?) AND level IN ?", ids, []string{"error", "warning"}).
			Group("task_id, level").Find(&rows).Error
		for _, row := range rows {
			c := counts[row.TaskID]
			if row.Level == "error" {
				c.Errors = row.Number
			} else {
				c.Warnings = row.Number
			}
			counts[row.TaskID] = c
		}
		return err
	})
	return tasks, counts, err
}

func count(tx *gorm.DB, taskID string) (errors, warnings int64, err error) {
	of := func(level string) (number int64, err error) {
		err = tx.Model(&Report{}).Where("task_id = ? AND level = ?", taskID, level).Count(&number).Error
		return number, err
	}
	if errors, err = of("error"); err != nil {
		return 0, 0, err
	}
	warnings, err = of("warning")
	return errors, warnings, err
}

// Counts returns the numbers of a task's reports by level.
func (s *Store) Counts(ctx context.Context, taskID string) (Counts, error) {
	errors, warnings, err := count(s.rows(ctx), taskID)
	return Counts{Errors: errors, Warnings: warnings}, wrap(err, "count reports")
}

// report adds a line to a task's log; its id, number and time are set here.
func (s *Store) report(tx *gorm.DB, report Report) error {
	// The task's row is locked first where rows can be (PostgreSQL), so that two reports never get one number.
	var task Task
	if err := locked(tx).Select("id").Where("id = ?", report.TaskID).Take(&task).Error; err != nil {
		return err
	}
	var last int64
	if err := tx.Model(&Report{}).Select("COALESCE(MAX(number), 0)").Where("task_id = ?", report.TaskID).Scan(&last).Error; err != nil {
		return err
	}
	report.ID, report.Number, report.Created = NewID(), last+1, s.clock()
	return tx.Create(&report).Error
}

// Reports returns the task's log, oldest first: the lines whose number is above after.
func (s *Store) Reports(ctx context.Context, taskID string, after int64) ([]Report, error) {
	var reports []Report
	err := s.rows(ctx).Where("task_id = ? AND number > ?", taskID, after).Order("number").Find(&reports).Error
	return reports, wrap(err, "list reports")
}

// LastReports returns, by object id, the newest report about each of the objects in the environment's tasks.
func (s *Store) LastReports(ctx context.Context, environmentID string) (map[string]Report, error) {
	var reports []Report
	tasks := s.db.Model(&Task{}).Select("id").Where("environment_id = ?", environmentID)
	err := s.rows(ctx).Where("entity_id IS NOT NULL AND task_id IN (?)", tasks).Order("created, number").Find(&reports).Error
	last := map[string]Report{}
	for _, report := range reports {
		last[*report.EntityID] = report
	}
	return last, wrap(err, "list reports")
}
