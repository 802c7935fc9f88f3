package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Keeper is the schedule of an environment's checks, and their lease.
type Keeper struct {
	EnvironmentID string
	Worker        string // the process that checks; "" while none does
	Fence         int64  // grows with each claim
	LeaseUntil    Time   // by the database's clock, as Due
	Due           Time   // of the duty that is due first
	Duties        Dues
}

// Dues are when duties are due, by their names.
type Dues map[string]Time

// Value writes them as JSON (database/sql).
func (d Dues) Value() (driver.Value, error) {
	if d == nil {
		d = Dues{}
	}
	return encode(map[string]Time(d))
}

// Scan reads them from JSON (database/sql).
func (d *Dues) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, (*map[string]Time)(d))
}

// Claim is a keeper that a worker has claimed, with the environment's present fencing number.
type Claim struct {
	Keeper
	TaskFence int64
	Now       Time     // of the claim, by the database's clock
	Found     []string // the duties with open findings above severity info
}

// idleKeepers are the keepers without a holder, of environments in which no task runs or waits.
func idleKeepers(query *gorm.DB, now Time) *gorm.DB {
	return query.Where("due <= ? AND (worker = '' OR lease_until <= ?)", now, now).
		Where("NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.environment_id = keepers.environment_id AND tasks.finished IS NULL)")
}

// Keepers claims environments for the checks of the keeper.
type Keepers struct{ *handle }

// Keepers are the schedules of the checks of environments.
func (s *Store) Keepers() Keepers { return Keepers{s.handle} }

// Claim gives due keepers to a worker for as long as the lease, at most that many, the longest due first.
func (s Keepers) Claim(ctx context.Context, worker string, lease time.Duration, most int) ([]Claim, error) {
	now, err := s.databaseClock(s.reading(ctx))
	if err != nil {
		return nil, wrap(err, "look for keepers that are due")
	}
	var ids []string // mostly there are none, which this finds out without a transaction that writes
	if err := idleKeepers(s.reading(ctx).Model(&Keeper{}), now).Order("due, environment_id").Limit(most).Pluck("environment_id", &ids).Error; err != nil || len(ids) == 0 {
		return nil, wrap(err, "look for keepers that are due")
	}
	var claims []Claim
	err = s.transaction(ctx, "claim keepers", func(tx *gorm.DB) error {
		claims = nil
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		var rows []Keeper
		free := tx.Clauses(clause.Locking{Strength: forUpdate, Options: "SKIP LOCKED"})
		if err := idleKeepers(free, now).Where("environment_id IN ?", ids).Order("due, environment_id").Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		var fences []Environment
		got := make([]string, len(rows))
		for i, row := range rows {
			got[i] = row.EnvironmentID
		}
		if err := tx.Select("id", "fence").Where("id IN ?", got).Find(&fences).Error; err != nil {
			return err
		}
		var found []Finding
		if err := tx.Model(&Finding{}).Distinct("environment_id", "duty").Where("environment_id IN ? AND closed IS NULL AND severity <> ?", got, "info").Find(&found).Error; err != nil {
			return err
		}
		until := now + Time(lease.Microseconds())
		for _, row := range rows {
			at := slices.IndexFunc(fences, func(e Environment) bool { return e.ID == row.EnvironmentID })
			if at < 0 {
				continue
			}
			row.Worker, row.Fence, row.LeaseUntil = worker, row.Fence+1, until
			claim := Claim{Keeper: row, TaskFence: fences[at].Fence, Now: now}
			for _, one := range found {
				if one.EnvironmentID == row.EnvironmentID {
					claim.Found = append(claim.Found, one.Duty)
				}
			}
			claims = append(claims, claim)
		}
		return tx.Model(&Keeper{}).Where("environment_id IN ?", got).
			Updates(map[string]any{"worker": worker, "fence": gorm.Expr("fence + 1"), "lease_until": until}).Error
	})
	return claims, err
}

// Renew makes the leases of keepers that a worker holds end this long from now.
func (s Keepers) Renew(ctx context.Context, worker string, environmentIDs []string, lease time.Duration) error {
	now, err := s.databaseClock(s.rows(ctx))
	if err != nil {
		return wrap(err, "renew the leases of keepers")
	}
	return wrap(s.rows(ctx).Model(&Keeper{}).Where("environment_id IN ? AND worker = ? AND lease_until > ?", environmentIDs, worker, now).
		Update("lease_until", now+Time(lease.Microseconds())).Error, "renew the leases of keepers")
}

// GiveBack releases all keepers that a worker holds.
func (s Keepers) GiveBack(ctx context.Context, worker string) error {
	return wrap(s.rows(ctx).Model(&Keeper{}).Where("worker = ?", worker).Updates(map[string]any{"worker": "", "lease_until": 0}).Error, "give keepers back")
}

// EndLeases releases all keepers. Only the one process that uses the database may call it, before it claims any.
func (s Keepers) EndLeases(ctx context.Context) error {
	return wrap(s.rows(ctx).Model(&Keeper{}).Where("worker <> ''").Updates(map[string]any{"worker": "", "lease_until": 0}).Error, "end the leases of a former process")
}

// Add gives a keeper to each environment that has none.
func (s Keepers) Add(ctx context.Context) error {
	const missing = "FROM environments WHERE deleted = 0 AND NOT EXISTS (SELECT 1 FROM keepers WHERE keepers.environment_id = environments.id)"
	var count int64
	if err := s.reading(ctx).Raw("SELECT COUNT(*) " + missing).Scan(&count).Error; err != nil || count == 0 {
		return wrap(err, "look for environments without a keeper")
	}
	return s.transaction(ctx, "give environments a keeper", func(tx *gorm.DB) error {
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		return tx.Exec("INSERT INTO keepers (environment_id, worker, fence, lease_until, due, duties) SELECT id, '', 0, 0, ?, '{}' "+missing+" ON CONFLICT DO NOTHING", now).Error
	})
}

// lookSoon makes all duties of an environment due, because something in it has changed. Duties that have just been done, and have no open finding, are due
// after their given time, or at their former time if that is earlier.
func (s Keepers) lookSoon(tx *gorm.DB, environmentID string, done map[string]time.Duration) error {
	now, err := s.databaseClock(tx)
	if err != nil {
		return err
	}
	row := Keeper{EnvironmentID: environmentID, Due: now, Duties: Dues{}}
	if len(done) > 0 {
		var former Keeper
		var found []string
		if err := tx.Where("environment_id = ?", environmentID).Limit(1).Find(&former).Error; err != nil {
			return err
		}
		if err := tx.Model(&Finding{}).Where("environment_id = ? AND closed IS NULL", environmentID).Pluck("duty", &found).Error; err != nil {
			return err
		}
		for name, pause := range done {
			if slices.Contains(found, name) {
				continue
			}
			row.Duties[name] = now + Time(pause.Microseconds())
			if due, known := former.Duties[name]; known {
				row.Duties[name] = min(row.Duties[name], due)
			}
		}
	}
	return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "environment_id"}}, DoUpdates: clause.AssignmentColumns([]string{"due", "duties"})}).Create(&row).Error
}

// KeptEnvironment is a keeper's view of an environment.
type KeptEnvironment struct {
	Environment
	Failed bool // its newest deployment, action or deletion by a user
}

// Kept returns it as a keeper sees it; its model is shared, and must not be changed.
func (s Environments) Kept(ctx context.Context, id string) (KeptEnvironment, error) {
	row, err := s.Peek(ctx, id)
	if err != nil {
		return KeptEnvironment{}, err
	}
	failed, err := hasFailed(s.reading(ctx), id)
	return KeptEnvironment{row, failed}, wrap(err, "read an environment")
}

// hasFailed reports whether the newest user's task in an environment failed that was not rejected: a rejected one leaves the environment as
// it was.
func hasFailed(tx *gorm.DB, environmentID string) (bool, error) {
	var states []State
	err := tx.Model(&Session{}).Where("environment_id = ? AND state <> ?", environmentID, Opened).
		Where("NOT (state = ? AND version = (SELECT version FROM environments WHERE id = ?))", DeployFailure, environmentID).Order("version DESC, updated DESC").Limit(1).Pluck("state", &states).Error
	return len(states) > 0 && states[0] != Deployed, err
}

// Names returns the names of an environment's secrets with this prefix and suffix.
func (s Secrets) Names(ctx context.Context, environmentID, prefix, suffix string) ([]string, error) {
	var names []string
	err := s.reading(ctx).Model(&secretRow{}).Where("environment_id = ? AND name LIKE ?", environmentID, prefix+"%"+suffix).Order("name").Pluck("name", &names).Error
	return names, wrap(err, "list secrets")
}

// Looked is the result of a check of an environment.
type Looked struct {
	// Duties are the completed duties. Their findings that are not named any more are closed.
	Duties   []string
	Findings []Finding
	// Due is when the duties are due next.
	Due Dues
	// Again is how long after its closing a finding counts as the same one when it is found again: its repairs go on
	// counting.
	Again time.Duration
	// Mends returns the remedy of a finding that is otherwise complete.
	Mends func(Finding) string
}

// discardedPause is the pause before the next check of an environment in which a task ran during a check.
const discardedPause = 5 * time.Second

// EndLook ends a claim. It stores the findings, unless a task has begun meanwhile, and returns the open ones. ErrFenced when another worker has
// claimed the environment.
func (s Keepers) EndLook(ctx context.Context, claim Claim, looked Looked) (standing []Finding, err error) {
	err = s.write(ctx, "keep what was found", nil, func(tx *gorm.DB) error {
		standing = nil
		var row Keeper
		if err := locked(tx).Where("environment_id = ?", claim.EnvironmentID).Take(&row).Error; err != nil {
			return err
		}
		if row.Worker != claim.Worker || row.Fence != claim.Fence {
			return ErrFenced
		}
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		free := map[string]any{"worker": "", "lease_until": 0, "due": now + Time(discardedPause.Microseconds())}
		quiet, err := isQuiet(tx, claim.EnvironmentID, claim.TaskFence)
		if err != nil {
			return err
		}
		if !quiet {
			return tx.Model(&Keeper{}).Where("environment_id = ?", row.EnvironmentID).Updates(free).Error
		}
		for name, due := range looked.Due {
			if row.Duties == nil {
				row.Duties = Dues{}
			}
			row.Duties[name] = due
		}
		next := now + Time(time.Hour.Microseconds())
		for _, due := range row.Duties {
			next = min(next, due)
		}
		free["duties"], free["due"] = row.Duties, next
		if err := tx.Model(&Keeper{}).Where("environment_id = ?", row.EnvironmentID).Updates(free).Error; err != nil {
			return err
		}
		standing, err = Findings(s).keep(tx, claim.EnvironmentID, looked)
		return err
	})
	return standing, err
}

// isQuiet reports whether no task of an environment waits or runs, nor has begun since the one with this number.
func isQuiet(tx *gorm.DB, environmentID string, fence int64) (bool, error) {
	var environment Environment
	if err := tx.Select("id", "fence").Where("id = ?", environmentID).Take(&environment).Error; err != nil {
		return false, err
	}
	var unfinished int64
	err := tx.Model(&Task{}).Where("environment_id = ? AND finished IS NULL", environmentID).Count(&unfinished).Error
	return environment.Fence == fence && unfinished == 0, err
}

// Overdue counts the environments whose check is overdue by this time.
func (s Keepers) Overdue(ctx context.Context, since time.Duration) (count int64, err error) {
	now, err := s.databaseClock(s.reading(ctx))
	if err == nil {
		err = idleKeepers(s.reading(ctx).Model(&Keeper{}), now-Time(since.Microseconds())).Count(&count).Error
	}
	return count, wrap(err, "count keepers that are overdue")
}
