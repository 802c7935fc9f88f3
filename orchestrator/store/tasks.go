package store

import (
	"context"
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/requestid"
)

// Submission is a task to be made.
type Submission struct {
	SessionID string // of Submit; the others open a session of their own
	Action    Action
	Text      string // of the first report
	Origin    Origin // without Back, which is the session's
	// DelegationID is the task's delegation: one that was made for it, or the environment's standing one. ErrRevoked when it is neither
	// any more.
	DelegationID string
}

// sleeps reports whether it hibernates the environment, or wakes it.
func (s Submission) sleeps(environmentID string) bool {
	return Task{EnvironmentID: environmentID, Action: s.Action}.Sleeps()
}

// Tasks submits, lists and hands out tasks.
type Tasks struct{ *handle }

// Tasks are the tasks of environments.
func (s *Store) Tasks() Tasks { return Tasks{s.handle} }

// Submit makes the task, in one transaction with the state of its session, its first report and the environment's trust.
// ErrStale when the session is not open or older than the environment, or another session is deploying. The task's objects are shared and
// must not be changed.
func (s Tasks) Submit(ctx context.Context, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(s.peeking(ctx), "submit a task", func(tx *gorm.DB) error {
		session, err := Sessions(s).editable(tx, submission.SessionID)
		if err != nil {
			return err
		}
		// The draft is read now that no other process can change it, and not when the submission began: Keystone may have taken its time.
		task, err = s.submit(tx, session, submission, ForClasses(session.EnvironmentID, session.Model.Objects))
		return err
	})
	return task, err
}

// SubmitDeletion opens a session that deletes the environment and submits it, in one transaction. ErrBusy while the
// environment is deploying or deleting.
func (s Tasks) SubmitDeletion(ctx context.Context, environmentID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit a deletion", func(tx *gorm.DB) error {
		session, err := Sessions(s).open(tx, environmentID, userID)
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
func (s Tasks) SubmitAction(ctx context.Context, environmentID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit an action", func(tx *gorm.DB) error {
		session, err := Sessions(s).open(tx, environmentID, userID)
		if err != nil {
			return err
		}
		task, err = s.submit(tx, session, submission, ForClasses(environmentID, session.Model.Objects))
		return err
	})
	return task, err
}

// Resubmit submits a failed task once more, if it is the newest that a user has submitted in the environment (else ErrNoFailure), in one transaction. ErrBusy while the
// environment is deploying or deleting. A deployment that was rejected is submitted with its draft as that is now; ErrStale when the draft is gone or older than the
// environment.
func (s Tasks) Resubmit(ctx context.Context, taskID, userID string, submission Submission) (Task, error) {
	var task Task
	err := s.transaction(ctx, "submit a task again", func(tx *gorm.DB) error {
		var former, newest Task
		if err := tx.Where("id = ?", taskID).Take(&former).Error; err != nil {
			return err
		}
		environment, err := idleEnvironment(tx, former.EnvironmentID) // locks it
		if err != nil {
			return err
		}
		if err := tx.Select("id").Where("environment_id = ? AND repair = ?", former.EnvironmentID, false).Order("started DESC, created DESC, id").Take(&newest).Error; err != nil {
			return err
		}
		counts, err := countsOf(tx, taskID)
		if err != nil {
			return err
		}
		if newest.ID != taskID || former.Finished == nil || counts.Errors == 0 && former.Result["isException"] != true {
			return ErrNoFailure
		}
		submission.Action, submission.Origin.File, submission.Origin.Digest, submission.Origin.Back = former.Action, former.Origin.File, former.Origin.Digest, former.Origin.Back
		// The plan's losses count still, but the draft may have been mended: its objects come after the point (preview.EndsOf).
		submission.Action.Plan, _, _ = strings.Cut(submission.Action.Plan, ".")
		var session Session
		if former.Stage == Rejected {
			session, err = Sessions(s).editable(tx, former.SessionID)
			if errors.Is(err, gorm.ErrRecordNotFound) {
				err = ErrStale
			}
		} else {
			session, err = Sessions(s).begin(tx, environment, Holder{ID: userID})
		}
		if err != nil {
			return err
		}
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
func (s Tasks) submit(tx *gorm.DB, session Session, submission Submission, objects Document) (Task, error) {
	if err := admitAwake(tx, session.EnvironmentID, objects == nil || submission.sleeps(session.EnvironmentID)); err != nil {
		return Task{}, err
	}
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
	if err := useDelegation(tx, submission.DelegationID); err != nil {
		return Task{}, err
	}
	if session.Model.Back != nil {
		submission.Origin.Back = *session.Model.Back
	}
	task := Task{ID: NewID(), EnvironmentID: session.EnvironmentID, SessionID: session.ID, DelegationID: submission.DelegationID, Origin: submission.Origin, Action: submission.Action,
		Stage: Planned, Objects: objects, Result: Document{}, RequestID: requestid.From(tx.Statement.Context), Created: now, Updated: now, Started: now}
	if err := tx.Create(&task).Error; err != nil {
		return Task{}, err
	}
	return task, Reports(s).add(tx, Report{TaskID: task.ID, Level: "info", Text: submission.Text})
}

// Cancel marks the task as cancelled by the user; its worker then ends it. A second cancellation changes nothing. ErrEnded
// when the task has ended, ErrNotFound when there is none.
func (s Tasks) Cancel(ctx context.Context, id, userID, text string) error {
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
		return Reports(s).add(tx, Report{TaskID: id, Level: "warning", Text: text})
	})
	s.changed(id)
	return err
}

// Get returns the task, or ErrNotFound.
func (s Tasks) Get(ctx context.Context, id string) (Task, error) {
	return readOne[Task](s.reading(ctx).Where("id = ?", id), "read a task")
}
