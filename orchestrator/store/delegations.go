package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// ErrRevoked is the error when a task's delegation is gone, or was replaced.
var ErrRevoked = errors.New("the delegation was revoked or replaced")

// Kinds of delegations.
const (
	Trust                 = "trust"
	ApplicationCredential = "application_credential"
	Role                  = "role" // the service user's own in the project (ProjectRole)
)

// Delegation is Burano's right in a project: for a user, or with a role of its own. A task's own is a trust, which ends soon after the task, or refers to
// that role; an environment's standing one is there until it is revoked.
type Delegation struct {
	ID            string
	EnvironmentID string // that it is for; it may be gone
	Kind          string
	Standing      bool
	Used          bool   // it had a reference; otherwise it may just be being made
	UserID        string // the user who made it; "" where a former version has not recorded that
	UserName      string
	Roles         Names
	Expires       *Time
	Sealed        string // for TrustOwner: a trust's id, or an application credential as JSON; "" for a role
	Tries         int64  // to revoke it
	NextTry       Time
	Created       Time
}

// Names are a JSON list of texts in a column.
type Names []string

// Value writes the names as JSON (database/sql).
func (n Names) Value() (driver.Value, error) { return encode(append([]string{}, n...)) }

// Scan reads the names from JSON (database/sql).
func (n *Names) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// delegationStack is a stack that Heat changed at a request through a delegation.
type delegationStack struct {
	DelegationID string
	Stack        string
}

// Delegations stores the rights in projects that Burano was given.
type Delegations struct{ *handle }

// Delegations are the rights in projects that Burano was given.
func (s *Store) Delegations() Delegations { return Delegations{s.handle} }

// Add stores a new delegation, before there is a reference to it; its id and time are set here.
func (s Delegations) Add(ctx context.Context, delegation *Delegation) error {
	now, err := s.databaseClock(s.rows(ctx)) // by which another server judges its age
	if err != nil {
		return wrap(err, "keep a delegation")
	}
	delegation.ID, delegation.Created = NewID(), now
	return wrap(s.rows(ctx).Create(delegation).Error, "keep a delegation")
}

// Get returns a delegation, or ErrNotFound.
func (s Delegations) Get(ctx context.Context, id string) (Delegation, error) {
	return readOne[Delegation](s.rows(ctx).Where("id = ?", id), "read a delegation")
}

// Standing returns the environment's standing delegation, or ErrNotFound.
func (s Delegations) Standing(ctx context.Context, environmentID string) (Delegation, error) {
	return standingOf(s.rows(ctx), environmentID)
}

func standingOf(tx *gorm.DB, environmentID string) (Delegation, error) {
	return readOne[Delegation](tx.Where("environment_id = ? AND standing = ?", environmentID, true), "read a standing delegation")
}

// SetStanding makes a delegation the environment's standing one, "" none. It orphans the former one, formerID, "" for none. ErrRevoked
// when the environment has another one in the meantime.
func (s Delegations) SetStanding(ctx context.Context, environmentID, id, formerID string) error {
	return s.transaction(ctx, "set a standing delegation", func(tx *gorm.DB) error {
		if err := locked(tx).Select("id").Where("id = ?", environmentID).Take(&Environment{}).Error; err != nil {
			return err
		}
		former, err := standingOf(tx, environmentID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if former.ID != formerID {
			return ErrRevoked
		}
		if err := orphan(tx, former.ID, 0); err != nil || id == "" {
			return err
		}
		return tx.Model(&Delegation{}).Where("id = ?", id).Updates(map[string]any{"standing": true, "used": true}).Error
	})
}

// orphan detaches a delegation from its environment, and makes it due from a time on. No work begins with it from then on: its join
// tokens are deleted.
func orphan(tx *gorm.DB, id string, from Time) error {
	if err := tx.Where("delegation_id = ?", id).Delete(&JoinToken{}).Error; err != nil {
		return err
	}
	return tx.Model(&Delegation{}).Where("id = ?", id).Updates(map[string]any{"standing": false, "used": true, "tries": 0, "next_try": from}).Error
}

// useDelegation notes that a task works with a delegation; "" is the environment's own of a former version.
func useDelegation(tx *gorm.DB, id string) error {
	if id == "" {
		return nil
	}
	used := tx.Model(&Delegation{}).Where("id = ? AND (standing = ? OR used = ? OR EXISTS (SELECT 1 FROM join_tokens WHERE join_tokens.delegation_id = delegations.id))", id, true, false).
		Update("used", true)
	if used.Error == nil && used.RowsAffected == 0 {
		return ErrRevoked
	}
	return used.Error
}

// NoteStack records that Heat is about to be asked through the task's delegation to change a stack.
func (h *Hold) NoteStack(ctx context.Context, stack string) error {
	if h.task.DelegationID == "" {
		return nil
	}
	return h.holding(ctx, "note a stack that is about to change", func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&delegationStack{h.task.DelegationID, stack}).Error
	})
}

// ForgetStack undoes NoteStack: Heat has refused the change, and has nothing of the task's delegation for it.
func (h *Hold) ForgetStack(ctx context.Context, stack string) error {
	return h.holding(ctx, "forget a stack that was not changed", func(tx *gorm.DB) error {
		return tx.Where("delegation_id = ? AND stack = ?", h.task.DelegationID, stack).Delete(&delegationStack{}).Error
	})
}

// afterFailure is how long the sweep leaves a failed task's delegation alone: Heat may only begin a request of the task.
const afterFailure = Time(30 * time.Second / time.Microsecond)

// release makes the sweep check the delegations of an environment with an ended task: Heat may have given up its trusts of others. A join token is spent
// by the task with which its machine has joined.
func (s Delegations) release(tx *gorm.DB, task Task, failed bool) error {
	now, err := s.databaseClock(tx)
	if err != nil {
		return err
	}
	if !failed {
		if err := tx.Model(&JoinToken{}).Where("task_id = ?", task.ID).Update("spent", now).Error; err != nil {
			return err
		}
	}
	due := func() *gorm.DB {
		return tx.Model(&Delegation{}).Where("environment_id = ? AND standing = ?", task.EnvironmentID, false)
	}
	if err := due().Updates(map[string]any{"tries": 0, "next_try": now}).Error; err != nil || !failed {
		return err
	}
	return due().Where("id = ? AND EXISTS (SELECT 1 FROM delegation_stacks WHERE delegation_id = delegations.id)", task.DelegationID).Update("next_try", now+afterFailure).Error
}

// orphaned selects delegations without a reference. A database can answer each condition by an index: with an OR of two it would read all tasks that have
// not ended, for each delegation.
func (s Delegations) orphaned(query *gorm.DB) *gorm.DB {
	return query.Where("standing = ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.delegation_id = delegations.id AND tasks.finished IS NULL)", false).
		// The id of a former version's is its environment's.
		Where("NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.environment_id = delegations.id AND LENGTH(tasks.delegation_id) = 0 AND tasks.finished IS NULL)").
		Where("NOT EXISTS (SELECT 1 FROM join_tokens WHERE join_tokens.delegation_id = delegations.id AND join_tokens.spent IS NULL AND join_tokens.expires > ?)", s.clock())
}

// Orphaned returns, the longest due first, delegations without a reference that are due by now, and with failed also ones that could not be
// revoked before. One that never had a reference is orphaned at this age.
func (s Delegations) Orphaned(ctx context.Context, limit int, age time.Duration, failed bool) ([]Delegation, error) {
	now, err := s.databaseClock(s.rows(ctx))
	if err != nil {
		return nil, wrap(err, "list orphaned delegations")
	}
	query := s.orphaned(s.rows(ctx)).Where("(used = ? OR created <= ?)", true, now-Time(age.Microseconds()))
	if failed {
		query = query.Where("(next_try <= ? OR tries > 0)", now)
	} else {
		query = query.Where("next_try <= ?", now)
	}
	return readAll[Delegation](query.Order("next_try, created, id").Limit(limit), "list orphaned delegations")
}

// Stacks returns the stacks that Heat was asked through a delegation to change.
func (s Delegations) Stacks(ctx context.Context, id string) ([]string, error) {
	var stacks []string
	err := s.rows(ctx).Model(&delegationStack{}).Where("delegation_id = ?", id).Order("stack").Pluck("stack", &stacks).Error
	return stacks, wrap(err, "list the stacks of a delegation")
}

// TrustsOfStack returns the trusts and roles through which Heat was asked to change a stack of the environment, the oldest first.
func (s Delegations) TrustsOfStack(ctx context.Context, environmentID, stack string) ([]Delegation, error) {
	return readAll[Delegation](s.rows(ctx).Where("environment_id = ? AND kind IN (?) AND EXISTS (SELECT 1 FROM delegation_stacks WHERE delegation_id = delegations.id AND stack = ?)",
		environmentID, []string{Trust, Role}, stack).Order("created, id"), "list the trusts of a stack")
}

// NewerRole reports whether a later task of the environment has also sent Heat a request with the project's role. Only the newest such row shows
// which trusts Heat has.
func (s Delegations) NewerRole(ctx context.Context, row Delegation) (bool, error) {
	var newer int64
	err := s.rows(ctx).Model(&Delegation{}).Where("environment_id = ? AND kind = ? AND (created > ? OR created = ? AND id > ?) AND EXISTS (SELECT 1 FROM delegation_stacks WHERE delegation_id = delegations.id)",
		row.EnvironmentID, Role, row.Created, row.Created, row.ID).Count(&newer).Error
	return newer > 0, wrap(err, "look for a later task by a role")
}

// Postpone postpones the next check of an orphaned delegation; failed counts as a try.
func (s Delegations) Postpone(ctx context.Context, id string, pause time.Duration, failed bool) error {
	now, err := s.databaseClock(s.rows(ctx))
	if err != nil {
		return wrap(err, "postpone a delegation")
	}
	changes := map[string]any{"next_try": now + Time(pause.Microseconds()), "tries": 0}
	if failed {
		changes["tries"] = gorm.Expr("tries + 1")
	}
	return wrap(s.rows(ctx).Model(&Delegation{}).Where("id = ?", id).Updates(changes).Error, "postpone a delegation")
}

// Forget removes a delegation that has no use any more.
func (s Delegations) Forget(ctx context.Context, id string) error {
	return s.transaction(ctx, "forget a delegation", func(tx *gorm.DB) error {
		// A former version's has its environment's id; the environment is locked before its rows.
		if err := tx.Model(&Environment{}).Where("id = ?", id).Update("trust", "").Error; err != nil {
			return err
		}
		return tx.Where("id = ?", id).Delete(&Delegation{}).Error
	})
}

// AdoptTrusts makes delegations of a former version's trusts: of environments, and of the ones to be deleted. A server of that version may still be at
// work on the same database.
func (s Delegations) AdoptTrusts(ctx context.Context) error {
	const columns = "INSERT INTO delegations (id, environment_id, kind, standing, used, user_id, user_name, roles, expires, sealed, tries, next_try, created) "
	var former int64
	if err := s.rows(ctx).Raw("SELECT (SELECT COUNT(*) FROM environments WHERE trust <> '') + (SELECT COUNT(*) FROM doomed_trusts)").Scan(&former).Error; err != nil || former == 0 {
		return wrap(err, "look for the trusts of a former version")
	}
	return s.transaction(ctx, "adopt the trusts of a former version", func(tx *gorm.DB) error {
		if err := tx.Exec(columns+"SELECT id, id, 'trust', ?, ?, '', '', '[]', NULL, trust, 0, 0, updated FROM environments WHERE trust <> '' AND "+
			"NOT EXISTS (SELECT 1 FROM delegations WHERE delegations.id = environments.id)", false, true).Error; err != nil {
			return err
		}
		// A new one is in both tables for a moment: only trusts of some age are taken to be revoked.
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		old := now - Time(time.Hour/time.Microsecond)
		if err := tx.Exec(columns+"SELECT id, environment_id, 'trust', ?, ?, '', '', '[]', NULL, trust, 0, 0, created FROM doomed_trusts WHERE created <= ? OR "+
			"NOT EXISTS (SELECT 1 FROM environments WHERE environments.id = doomed_trusts.environment_id)", false, true, old).Error; err != nil {
			return err
		}
		return tx.Exec("DELETE FROM doomed_trusts WHERE EXISTS (SELECT 1 FROM delegations WHERE delegations.id = doomed_trusts.id)").Error
	})
}
