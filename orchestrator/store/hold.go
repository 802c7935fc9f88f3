package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Hold is one worker's hold on a task: everything that the task writes goes through it and carries the hold's fencing
// number. Once another worker has taken the task over, or the task was given back or has ended, every write is refused with
// ErrFenced; with ErrNotFound when the task is gone with its environment.
type Hold struct {
	store *handle
	task  Task
	guard func() error
	log   taskLog

	attributes attributes
}

// Guard adds a check before every write, in this process; its error is returned. It must be called before the hold is
// used.
func (h *Hold) Guard(guard func() error) { h.guard = guard }

// Task is the task as it was taken.
func (h *Hold) Task() Task { return h.task }

// Fence is the fencing number: it grows with each taking of any task of the environment.
func (h *Hold) Fence() uint64 { return uint64(h.task.Fence) }

// candidates is how many tasks Take looks at: more than one, because tasks with locked rows are skipped.
const candidates = 16

// SuspectDeaths is how many workers die over a task, without a new step being done, until it is a suspect: it may kill them, or may
// only have run beside the cause.
const SuspectDeaths = 2

// Suspect reports whether the task may kill the workers that run it.
func (t Task) Suspect() bool { return t.Deaths >= SuspectDeaths }

// Taking is a worker's request for a task.
type Taking struct {
	Worker string
	Lease  time.Duration
	// Free is how many tasks the worker can hold in addition to its present ones, this one included. A project with as many tasks at
	// the worker already gets none. So one project never has more than half of a worker's places, the next half of the rest, and so
	// on, and there is a place for one more. 0 is no limit.
	Free int
	// Unsuspected leaves out the suspects.
	Unsuspected bool
}

// Take gives a task without a holder to a worker, for as long as the lease: one that was never taken or was given back, or one whose lease has run out. Environments of which a
// task is held are skipped. Of the others, the project with the fewest held tasks, of all workers, comes first, and of a project the oldest task; repairs come after users' tasks.
// before is the task as it was. ErrNotFound when there is none.
func (s Tasks) Take(ctx context.Context, taking Taking) (hold *Hold, before Task, err error) {
	if free, err := s.anyFree(ctx); err != nil || !free {
		return nil, before, cmp.Or(err, ErrNotFound)
	}
	err = s.transaction(ctx, "take a task", func(tx *gorm.DB) error {
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		var found []Task
		held := func(column string) *gorm.DB {
			return tx.Model(&Task{}).Select(column).Joins("JOIN environments ON environments.id = tasks.environment_id").
				Where("worker <> '' AND finished IS NULL AND lease_until > ?", now)
		}
		perProject := func() *gorm.DB { return held("project_id, COUNT(*) AS held").Group("project_id") }
		waiting := tx.Select("tasks.id", "environment_id").Joins("JOIN environments ON environments.id = tasks.environment_id").
			Joins("LEFT JOIN (?) AS busy ON busy.project_id = environments.project_id", perProject()).
			Where("finished IS NULL AND environment_id NOT IN (?)", held("environment_id"))
		if taking.Free > 0 {
			waiting = waiting.Joins("LEFT JOIN (?) AS mine ON mine.project_id = environments.project_id", perProject().Where("worker = ?", taking.Worker)).
				Where("COALESCE(mine.held, 0) < ?", taking.Free)
		}
		if taking.Unsuspected {
			waiting = waiting.Where("deaths + CASE WHEN worker <> '' THEN 1 ELSE 0 END < ?", SuspectDeaths) // a task with an expired lease counts one more death
		}
		if err := waiting.Order("repair, COALESCE(busy.held, 0), tasks.created, tasks.id").Limit(candidates).Find(&found).Error; err != nil {
			return err
		}
		for _, candidate := range found {
			task, was, err := s.take(tx, candidate, taking, now)
			if errors.Is(err, gorm.ErrRecordNotFound) {
				continue // another worker was faster, or is still writing: this one tries again later
			}
			if err != nil {
				return err
			}
			hold, before = &Hold{store: s.handle, task: task}, was
			return nil
		}
		return gorm.ErrRecordNotFound
	})
	return hold, before, err
}

// anyFree reports whether there is a task without a holder. Mostly there is none, and this finds it out without a transaction that
// writes.
func (s Tasks) anyFree(ctx context.Context) (bool, error) {
	now, err := s.databaseClock(s.reading(ctx))
	if err != nil {
		return false, wrap(err, "look for a task")
	}
	var ids []string
	err = s.reading(ctx).Model(&Task{}).Where("finished IS NULL AND (worker = '' OR lease_until <= ?)", now).Limit(1).Pluck("id", &ids).Error
	return len(ids) > 0, wrap(err, "look for a task")
}

// take takes one task. gorm.ErrRecordNotFound when it cannot be had now.
func (s Tasks) take(tx *gorm.DB, candidate Task, taking Taking, now Time) (task, before Task, err error) {
	// A locked row belongs to a live process, or to one that is soon found to be dead: it is not waited for.
	now = max(now, 1)
	free := func() *gorm.DB { return tx.Clauses(clause.Locking{Strength: forUpdate, Options: "SKIP LOCKED"}) }
	var environment Environment
	if err := free().Select("id", "fence").Where("id = ?", candidate.EnvironmentID).Take(&environment).Error; err != nil {
		return task, before, err
	}
	var held int64
	if err := tx.Model(&Task{}).Where("environment_id = ? AND worker <> '' AND finished IS NULL AND lease_until > ?", environment.ID, now).Count(&held).Error; err != nil {
		return task, before, err
	}
	if held > 0 {
		return task, before, gorm.ErrRecordNotFound
	}
	if err := free().Where("id = ? AND finished IS NULL", candidate.ID).Take(&before).Error; err != nil {
		return task, before, err
	}
	task = before
	if before.Worker != "" {
		task.Deaths++
		if before.Alone {
			task.AloneDeaths++
		}
	}
	// At least the time in seconds: a restored database does not fall behind the numbers that nodes have seen.
	task.Fence = max(environment.Fence+1, int64(now/1e6))
	task.Worker, task.LeaseUntil, task.Updated, task.Alone = taking.Worker, now+Time(taking.Lease.Microseconds()), s.clock(), false
	if err := tx.Model(&Environment{}).Where("id = ?", environment.ID).Update("fence", task.Fence).Error; err != nil {
		return task, before, err
	}
	return task, before, tx.Model(&Task{}).Where("id = ?", task.ID).Updates(map[string]any{"worker": task.Worker, "fence": task.Fence,
		"lease_until": task.LeaseUntil, "deaths": task.Deaths, "alone": task.Alone, "alone_deaths": task.AloneDeaths, "updated": task.Updated}).Error
}

// EndLeases makes every lease run out now. Only the one process that uses the database may call it, before it takes a task: then
// all former holders are dead.
func (s Tasks) EndLeases(ctx context.Context) error {
	return wrap(s.rows(ctx).Model(&Task{}).Where("worker <> '' AND finished IS NULL").Update("lease_until", 0).Error, "end the leases of a former process")
}

// holding runs do in a transaction in which the hold cannot be lost.
func (h *Hold) holding(ctx context.Context, what string, do func(tx *gorm.DB) error) error {
	if err := h.guarded(what); err != nil {
		return err
	}
	return h.store.transaction(ctx, what, h.held(do))
}

// noting is holding for the frequent writes of tasks; others may write in the same transaction.
func (h *Hold) noting(ctx context.Context, what string, do func(tx *gorm.DB) error) error {
	if err := h.guarded(what); err != nil {
		return err
	}
	return h.store.write(ctx, what, h, do)
}

func (h *Hold) guarded(what string) error {
	if h.guard == nil {
		return nil
	}
	if err := h.guard(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// held adds to do a check that the hold is not lost; a nil hold needs none.
func (h *Hold) held(do func(tx *gorm.DB) error) func(tx *gorm.DB) error {
	if h == nil {
		return do
	}
	return func(tx *gorm.DB) error {
		var task Task
		// The row is locked where rows can be (PostgreSQL): a taking waits, and two reports never get one number.
		if err := locked(tx).Select("id", "worker", "fence", "finished").Where("id = ?", h.task.ID).Take(&task).Error; err != nil {
			return err
		}
		if task.Fence != h.task.Fence || task.Worker != h.task.Worker || task.Finished != nil {
			return ErrFenced
		}
		return do(tx)
	}
}

// Wanted are requests of others about a held task.
type Wanted struct {
	CancelledBy string // the user that cancelled it; "" for none
	Way         bool   // it is a repair, and a user's task waits for its environment
}

// Renew makes the lease end this long from now, and returns the requests of others about the task.
func (h *Hold) Renew(ctx context.Context, lease time.Duration) (wanted Wanted, err error) {
	err = h.holding(ctx, "renew the lease of a task", func(tx *gorm.DB) error {
		now, err := h.store.databaseClock(tx)
		if err != nil {
			return err
		}
		var task Task
		if err := tx.Select("cancelled_by").Where("id = ?", h.task.ID).Take(&task).Error; err != nil {
			return err
		}
		wanted.CancelledBy = task.CancelledBy
		if h.task.Repair {
			var waiting int64
			if err := tx.Model(&Task{}).Where("environment_id = ? AND finished IS NULL AND repair = ?", h.task.EnvironmentID, false).Count(&waiting).Error; err != nil {
				return err
			}
			wanted.Way = waiting > 0
		}
		return tx.Model(&Task{}).Where("id = ?", h.task.ID).Update("lease_until", now+Time(lease.Microseconds())).Error
	})
	return wanted, err
}

// SetAlone stores whether the worker runs nothing beside the task: if it dies meanwhile, nothing else can be the cause.
func (h *Hold) SetAlone(ctx context.Context, alone bool) error {
	return h.holding(ctx, "write whether a task runs alone", func(tx *gorm.DB) error {
		return tx.Model(&Task{}).Where("id = ?", h.task.ID).Update("alone", alone).Error
	})
}

// GiveBack ends the hold, with a last report, so that any worker can take the task and go on.
func (h *Hold) GiveBack(ctx context.Context, report Report) error {
	err := h.holding(ctx, "give a task back", func(tx *gorm.DB) error {
		if err := h.noteLeft(tx); err != nil {
			return err
		}
		if err := h.report(tx, report); err != nil {
			return err
		}
		if err := tx.Model(&Task{}).Where("id = ?", h.task.ID).Updates(map[string]any{"worker": "", "lease_until": 0, "updated": h.store.clock()}).Error; err != nil {
			return err
		}
		return tellWaiting(tx)
	})
	h.store.changed(h.task.ID)
	return err
}

// Outcome is how a task ended.
type Outcome struct {
	Failed bool
	Result Document
	// Objects and ObjectsCopy become the environment's model. When Objects is nil, the draft becomes the model, with the actions of the former model. The copy stays
	// as it is, unless the deployment is rejected. A deletion that failed changes neither. Ignored after a successful deletion.
	Objects, ObjectsCopy map[string]any
	// Packages are the versions of packages that it was made with; part of the model.
	Packages map[string][]string
	// Parts are the parts of the state after the task.
	Parts Parts
	// Reached is how far it has come with the components, for their records.
	Reached Reached
	// Looked are the duties of the keeper that a deployment does itself, and when they are due again after it. Ignored where there were errors or warnings.
	Looked map[string]time.Duration
}

// removeBy removes the environment of a deletion that went well.
func (s Environments) removeBy(tx *gorm.DB, task Task) error {
	var session Session
	if err := tx.Select("user_id").Where("id = ?", task.SessionID).Limit(1).Find(&session).Error; err != nil {
		return err
	}
	return s.remove(tx, task.EnvironmentID, session.UserID, false)
}

// Finish writes the end of the task: its result, its last report, the state of its session, the environment's model and next version, all in one
// transaction. Errors reported during the task make it a failed one. A successful deletion removes the environment and orphans its delegations. A
// deployment of an already deployed environment that failed before it changed anything is rejected: model and version stay as they are, and the session
// is a draft again. The result failed is set for a failed task.
func (h *Hold) Finish(ctx context.Context, outcome Outcome) (failed bool, err error) {
	s, task := h.store, h.task
	if task.Sleeps() {
		outcome.Objects = nil
	}
	err = h.holding(ctx, "finish a task", func(tx *gorm.DB) error {
		if err := h.noteLeft(tx); err != nil {
			return err
		}
		counts, err := countsOf(tx, task.ID)
		if err != nil {
			return err
		}
		failed = outcome.Failed || counts.Errors > 0
		deletion := task.Objects == nil
		if deletion && !failed {
			return Environments{s}.removeBy(tx, task)
		}
		text, state := "Deployment finished", Deployed
		if failed {
			state = DeployFailure
		}
		if task.Repair {
			text = "Repair finished"
		}
		if deletion {
			text, state = "Deletion finished", DeleteFailure
		}
		if counts.Errors > 0 {
			text += " with errors"
		} else if counts.Warnings > 0 {
			text += " with warnings"
		}
		rejected, err := h.rejected(tx, failed && outcome.Objects == nil)
		if err != nil {
			return err
		}
		if rejected {
			if err := h.report(tx, Report{Level: "info", Text: textRejected}); err != nil {
				return err
			}
		}
		if err := h.report(tx, Report{Level: "info", Text: text}); err != nil {
			return err
		}
		if err := (Delegations{s}).release(tx, task, failed); err != nil {
			return err
		}
		now := s.clock()
		if err := tx.Select("result", "finished", "updated").Where("id = ?", task.ID).
			Updates(&Task{Result: outcome.Result, Finished: &now, Updated: now}).Error; err != nil {
			return err
		}
		var looked map[string]time.Duration
		if task.Kind() == "deployment" && !failed && counts.Warnings == 0 {
			looked = outcome.Looked
		}
		if err := (Keepers{s}).lookSoon(tx, task.EnvironmentID, looked); err != nil {
			return err
		}
		if task.Sleeps() {
			return h.slept(tx, failed, outcome.Reached)
		}
		if task.Repair {
			return Tasks{s}.mended(tx, task, outcome)
		}
		if err := tx.Model(&Session{}).Where("id = ?", task.SessionID).Updates(map[string]any{"state": state, "updated": now}).Error; err != nil || rejected {
			return err
		}
		if !deletion {
			if err := (past{tx, task.EnvironmentID}).keep(task, failed, outcome, now); err != nil {
				return err
			}
		}
		columns := []string{"id", "version"}
		if outcome.Objects == nil {
			columns = append(columns, "model")
		}
		var environment Environment
		if err := locked(tx).Select(columns).Where("id = ?", task.EnvironmentID).Take(&environment).Error; err != nil {
			return err
		}
		model := environment.Model
		switch {
		case outcome.Objects != nil:
			model = Model{Objects: outcome.Objects, ObjectsCopy: outcome.ObjectsCopy, Packages: outcome.Packages}
		case !deletion:
			model.Objects = withActions(ForAPI(task.Objects), environment.Model.Objects)
		}
		if err := (Components{s}).ended(tx, task, environment, model, failed, outcome.Reached); err != nil {
			return err
		}
		return tx.Select("model", "version", "updated").Where("id = ?", task.EnvironmentID).
			Updates(&Environment{Model: model, Version: environment.Version + 1, Updated: now}).Error
	})
	s.changed(task.ID)
	return failed, err
}

// textRejected is the end of a deployment that is rejected.
const textRejected = "Nothing was changed, and the environment is as it was before. The change stays as a draft: correct it and deploy it again, or discard it (burano environment discard)"

// rejected writes the rejection of a failed deployment, if it is rejected. An environment that was never deployed has nothing to go back to: as in Murano, the
// draft becomes its model.
func (h *Hold) rejected(tx *gorm.DB, failed bool) (bool, error) {
	if !failed || h.task.Kind() != "deployment" {
		return false, nil
	}
	var environment Environment
	if err := locked(tx).Select("id", "model").Where("id = ?", h.task.EnvironmentID).Take(&environment).Error; err != nil || environment.Model.ObjectsCopy == nil {
		return false, err
	}
	changed := tx.Model(&Task{}).Where("id = ? AND stage = ?", h.task.ID, Planned).Update("stage", Rejected)
	return changed.RowsAffected > 0, changed.Error
}

// Begin records that the task is about to change the cloud or nodes: from now on it is not rejected.
func (h *Hold) Begin(ctx context.Context) error {
	return h.holding(ctx, "begin a task", h.begin)
}

func (h *Hold) begin(tx *gorm.DB) error {
	return tx.Model(&Task{}).Where("id = ?", h.task.ID).Update("stage", Begun).Error
}

// SaveObjectsCopy is Begin, and writes the model that the engine is about to make, and the versions of packages, before it makes any of
// it.
func (h *Hold) SaveObjectsCopy(ctx context.Context, objects map[string]any, packages map[string][]string) error {
	return h.holding(h.store.peeking(ctx), "save the copy of an object model", func(tx *gorm.DB) error {
		if err := h.begin(tx); err != nil {
			return err
		}
		var environment Environment
		if err := locked(tx).Select("id", "model").Where("id = ?", h.task.EnvironmentID).Take(&environment).Error; err != nil {
			return err
		}
		environment.Model.ObjectsCopy, environment.Model.Packages = objects, packages
		return tx.Select("model").Where("id = ?", h.task.EnvironmentID).Updates(&Environment{Model: environment.Model}).Error
	})
}

func (h *Hold) report(tx *gorm.DB, report Report) error {
	report.TaskID = h.task.ID
	return Reports{h.store}.number(tx, report) // the task's row is locked
}

// StartStep adds the step as running and returns its id; its task is set here.
func (h *Hold) StartStep(ctx context.Context, step Step) (string, error) {
	step.TaskID, step.ID, step.Started = h.task.ID, NewID(), h.store.clock()
	err := h.noting(ctx, "write a step", func(tx *gorm.DB) error { return tx.Create(&step).Error })
	h.store.changed(step.TaskID)
	return step.ID, err
}

// EndStep writes the end of a step; problem is "" when it succeeded. The first success of a step is progress of the task, and
// forgets the workers that died over the task before.
func (h *Hold) EndStep(ctx context.Context, id, problem string) error {
	return h.noting(ctx, "write a step", func(tx *gorm.DB) error {
		if problem == "" && h.task.Deaths > 0 {
			var step Step
			if err := tx.Where("id = ? AND task_id = ?", id, h.task.ID).Take(&step).Error; err != nil {
				return err
			}
			var done int64
			if err := tx.Model(&Step{}).Where("task_id = ? AND object_id = ? AND name = ? AND finished IS NOT NULL AND error = ''", h.task.ID, step.ObjectID, step.Name).
				Count(&done).Error; err != nil {
				return err
			}
			if done == 0 {
				if err := tx.Model(&Task{}).Where("id = ? AND deaths > 0", h.task.ID).Updates(map[string]any{"deaths": 0, "alone_deaths": 0}).Error; err != nil {
					return err
				}
			}
		}
		return affected(tx.Model(&Step{}).Where("id = ? AND task_id = ?", id, h.task.ID).Updates(map[string]any{"finished": h.store.clock(), "error": problem}))
	})
}

// SetSecret stores a sealed secret of the environment; it is durable on return.
func (h *Hold) SetSecret(ctx context.Context, name, sealed string) error {
	return h.noting(ctx, "write a secret", func(tx *gorm.DB) error { return setSecret(tx, h.task.EnvironmentID, name, sealed) })
}
