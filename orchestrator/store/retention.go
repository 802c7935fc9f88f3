package store

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

// Retention is how long rows stay after their end; 0 is for ever.
type Retention struct {
	// Deployments go with their reports and steps. Running ones and the KeptDeployments newest ones of each environment stay.
	Deployments time.Duration
	// Reports of deployments that have ended, except for the same newest ones. The states of the deployments stay.
	Reports time.Duration
	// Sessions that were deployed, except each environment's newest one, from which its status comes. Drafts stay.
	Sessions time.Duration
	// Statistics of applications and servers that are gone, and of API servers that no longer report.
	Statistics time.Duration
	// Snapshots of clusters whose environments were deleted.
	Snapshots time.Duration
	// States and StateBytes are how many states of each environment stay, and bytes of their models; 0 is any number. The newest one stays.
	States, StateBytes int64
}

// KeptDeployments is how many deployments of an environment stay in any case, with their reports.
const KeptDeployments = 10

const (
	// sweptTogether is how many rows a transaction of Sweep removes at most.
	sweptTogether = 200
	// sweepLock is PostgreSQL's advisory lock of the server that sweeps.
	sweepLock = 0x627572616e6f0001
)

// errElsewhere is returned while another server sweeps.
var errElsewhere = errors.New("another server sweeps")

// Swept is how many rows of each kind were removed.
type Swept struct{ Deployments, Reports, Sessions, Statistics, Snapshots, States, Environments int64 }

// Expired removes expired rows.
type Expired struct{ *handle }

// Expired are the rows that are stored longer than their retention.
func (s *Store) Expired() Expired { return Expired{s.handle} }

// Sweep removes expired rows, in transactions so small that no writer waits for long. Of several servers over one database one sweeps at a
// time; the others do nothing. remove removes a snapshot with its pieces.
func (s Expired) Sweep(ctx context.Context, keep Retention, remove func(ctx context.Context, id string) error) (swept Swept, err error) {
	snapshots := func(ctx context.Context, until Time, swept *Swept) (bool, error) {
		return s.sweepSnapshots(ctx, until, swept, remove)
	}
	steps := []struct {
		keep  time.Duration
		sweep func(ctx context.Context, until Time, swept *Swept) (more bool, err error)
	}{
		{keep.Reports, s.sweepReports}, {keep.Deployments, s.sweepDeployments}, {keep.Sessions, s.sweepSessions}, {keep.Statistics, s.sweepStatistics},
		{keep.Snapshots, snapshots},
	}
	for _, step := range steps {
		until := s.clock() - Time(step.keep.Microseconds())
		for more := step.keep > 0; more; {
			if more, err = step.sweep(ctx, until, &swept); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = s.sweepStates(ctx, keep, &swept)
	}
	for more := err == nil; more && err == nil; {
		more, err = s.sweepDeleted(ctx, &swept)
	}
	for more := err == nil; more && err == nil; {
		more, err = s.sweepAbandoned(ctx, &swept, remove)
	}
	if errors.Is(err, errElsewhere) {
		err = nil
	}
	return swept, err
}

// sweeping runs do in a transaction of the one server that sweeps.
func (s Expired) sweeping(ctx context.Context, what string, do func(tx *gorm.DB) error) error {
	return s.transaction(ctx, what, func(tx *gorm.DB) error {
		if tx.Name() == database.Postgres {
			mine := false
			if err := tx.Raw("SELECT pg_try_advisory_xact_lock(?)", int64(sweepLock)).Scan(&mine).Error; err != nil {
				return err
			}
			if !mine {
				return errElsewhere
			}
		}
		return do(tx)
	})
}

// olderTasks are the tasks that ended before the time, without the newest ones of their environments. The condition narrows them.
func (s Expired) olderTasks(ctx context.Context, until Time, condition string) (ids []string, err error) {
	query := s.reading(ctx).Model(&Task{}).Where("finished < ?", until).
		Where("started < (SELECT newer.started FROM tasks AS newer WHERE newer.environment_id = tasks.environment_id ORDER BY newer.started DESC LIMIT 1 OFFSET ?)", KeptDeployments-1)
	if condition != "" {
		query = query.Where(condition)
	}
	var id string
	err = each(query.Select("id").Order("finished, id").Limit(sweptTogether), func() { ids = append(ids, id) }, &id)
	return ids, wrap(err, "look for old deployments")
}

func (s Expired) sweepReports(ctx context.Context, until Time, swept *Swept) (more bool, err error) {
	tasks, err := s.olderTasks(ctx, until, "EXISTS (SELECT 1 FROM reports WHERE reports.task_id = tasks.id)")
	for _, id := range tasks {
		if err := s.sweepLog(ctx, id, swept); err != nil {
			return false, err
		}
	}
	return len(tasks) == sweptTogether, err
}

// sweepLog removes the reports of a task that has ended. Its row records the source of its state.
func (s Expired) sweepLog(ctx context.Context, taskID string, swept *Swept) error {
	for {
		removed := int64(0)
		err := s.sweeping(ctx, "remove old reports", func(tx *gorm.DB) error {
			var ids []string
			var former gone
			var id, level string
			oldest := tx.Model(&Report{}).Select("id, level").Where("task_id = ?", taskID).Order("number").Limit(sweptTogether)
			if err := each(oldest, func() { ids = append(ids, id); former.add(level) }, &id, &level); err != nil || len(ids) == 0 {
				return err
			}
			removed = int64(len(ids))
			if err := tx.Where("id IN ?", ids).Delete(&Report{}).Error; err != nil {
				return err
			}
			return former.note(tx, taskID)
		})
		if err != nil || removed == 0 {
			return err
		}
		swept.Reports += removed
	}
}

func (s Expired) sweepDeployments(ctx context.Context, until Time, swept *Swept) (more bool, err error) {
	tasks, err := s.olderTasks(ctx, until, "")
	for _, id := range tasks {
		if err := s.sweepLog(ctx, id, swept); err != nil {
			return false, err
		}
		for more := true; more; {
			err := s.sweeping(ctx, "remove an old deployment", func(tx *gorm.DB) error {
				var steps []string
				if err := tx.Model(&Step{}).Where("task_id = ?", id).Limit(sweptTogether).Pluck("id", &steps).Error; err != nil {
					return err
				}
				if more = len(steps) > 0; more {
					return tx.Where("id IN ?", steps).Delete(&Step{}).Error
				}
				return tx.Where("id = ?", id).Delete(&Task{}).Error
			})
			if err != nil {
				return false, err
			}
		}
		swept.Deployments++
	}
	return len(tasks) == sweptTogether, err
}

func (s Expired) sweepSessions(ctx context.Context, until Time, swept *Swept) (more bool, err error) {
	ended := []State{Deployed, DeployFailure, DeleteFailure}
	err = s.sweeping(ctx, "remove old sessions", func(tx *gorm.DB) error {
		var ids []string
		err := tx.Model(&Session{}).Where("state IN ? AND updated < ?", ended, until).
			Where("EXISTS (SELECT 1 FROM sessions AS newer WHERE newer.environment_id = sessions.environment_id AND newer.state IN ? AND "+
				"(newer.version > sessions.version OR newer.version = sessions.version AND newer.updated > sessions.updated))", ended).
			Order("updated, id").Limit(sweptTogether).Pluck("id", &ids).Error
		more = len(ids) == sweptTogether
		if err != nil || len(ids) == 0 {
			return err
		}
		swept.Sessions += int64(len(ids))
		return tx.Where("id IN ?", ids).Delete(&Session{}).Error
	})
	return more, err
}

func (s Expired) sweepStatistics(ctx context.Context, until Time, swept *Swept) (more bool, err error) {
	err = s.sweeping(ctx, "remove old statistics", func(tx *gorm.DB) error {
		old := tx.Where("updated < ?", until).Delete(&RequestStatistics{})
		if old.Error != nil {
			return old.Error
		}
		var rows []InstanceStatistics
		if err := tx.Select("environment_id", "instance_id").Where("destroyed < ?", until).Limit(sweptTogether).Find(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			if err := tx.Where("environment_id = ? AND instance_id = ?", row.EnvironmentID, row.InstanceID).Delete(&InstanceStatistics{}).Error; err != nil {
				return err
			}
		}
		more = len(rows) == sweptTogether
		swept.Statistics += old.RowsAffected + int64(len(rows))
		return nil
	})
	return more, err
}
