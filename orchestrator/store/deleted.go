package store

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

const (
	// mostDeleted is how many deleted environments of a project are stored, and mostDeletedBytes how much they may take: the oldest go first.
	mostDeleted      = 100
	mostDeletedBytes = 256 << 20
)

// Undelete makes deleted environments stay for a time, so that they can be restored; 0 removes them at once.
func Undelete(period time.Duration) Option { return func(s *Store) { s.undelete = period } }

// DeletedEnvironment is an environment that was deleted and can be restored.
type DeletedEnvironment struct {
	EnvironmentID string
	ProjectID     string
	Name          string
	UserID        string // the user that deleted it; "" where that is not known
	Abandoned     bool   // it was left in the cloud as it was
	Size          int64  // bytes of the stored rows
	Deleted       Time
}

// deletedAt is the column of an environment with the time of its deletion. Queries and updates of environments leave out deleted ones, unless they are Unscoped.
type deletedAt Time

// QueryClauses is gorm's schema.QueryClausesInterface.
func (deletedAt) QueryClauses(field *schema.Field) []clause.Interface {
	return []clause.Interface{notDeleted{field}}
}

// UpdateClauses is gorm's schema.UpdateClausesInterface.
func (deletedAt) UpdateClauses(field *schema.Field) []clause.Interface {
	return []clause.Interface{notDeleted{field}}
}

type notDeleted struct{ field *schema.Field }

func (notDeleted) Name() string { return "" }

func (notDeleted) Build(clause.Builder) {}

func (notDeleted) MergeClause(*clause.Clause) {}

// ModifyStatement adds the condition, once.
func (n notDeleted) ModifyStatement(statement *gorm.Statement) {
	const added = "environments that are not deleted"
	if _, done := statement.Clauses[added]; done || statement.Unscoped {
		return
	}
	statement.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: n.field.DBName}, Value: 0}}})
	statement.Clauses[added] = clause.Clause{}
}

// DeletedEnvironments are the stored deleted environments.
type DeletedEnvironments struct{ *handle }

// Deleted are the environments that were deleted and are stored.
func (s *Store) Deleted() DeletedEnvironments { return DeletedEnvironments{s.handle} }

// Period is how long they are stored, 0 for not at all.
func (d DeletedEnvironments) Period() time.Duration { return d.undelete }

// Of lists the deleted environments of a project, or all for "", the newest first.
func (d DeletedEnvironments) Of(ctx context.Context, projectID string) (list []DeletedEnvironment, err error) {
	query := d.reading(ctx).Order("deleted DESC, environment_id")
	if projectID != "" {
		query = query.Where("project_id = ?", projectID)
	}
	return list, wrap(query.Find(&list).Error, "list deleted environments")
}

// Environment returns one, or ErrNotFound.
func (d DeletedEnvironments) Environment(ctx context.Context, id string) (DeletedEnvironment, error) {
	return readOne[DeletedEnvironment](d.reading(ctx).Where("environment_id = ?", id), "read a deleted environment")
}

// Restore restores one, under another name where that is not "". ErrDuplicate when that is taken, and a fault when the project has as many environments as it may.
// The next deployment makes resources again that the cloud no longer has.
func (d DeletedEnvironments) Restore(ctx context.Context, id, name string) (environment Environment, err error) {
	err = d.transaction(ctx, "restore a deleted environment", func(tx *gorm.DB) error {
		if err := locked(tx.Unscoped()).Where("id = ? AND deleted <> 0", id).Take(&environment).Error; err != nil {
			return err
		}
		var row DeletedEnvironment
		if err := tx.Where("environment_id = ?", id).Take(&row).Error; err != nil {
			return err
		}
		if err := d.quotas.Admit(tx, row.ProjectID, QuotaEnvironments, 1); err != nil {
			return err
		}
		environment.ProjectID, environment.Name, environment.Deleted, environment.Updated = row.ProjectID, cmp.Or(name, row.Name), 0, d.clock()
		if !row.Abandoned {
			environment.Model.ObjectsCopy = nil
		}
		if err := tx.Unscoped().Select("project_id", "name", "deleted", "updated", "model").Where("id = ?", id).Updates(&environment).Error; err != nil {
			return err
		}
		if !row.Abandoned { // nothing of it is in the cloud any more
			rows, err := componentRows(tx, id)
			if err != nil {
				return err
			}
			if err := replaceComponents(tx, id, environment.Version, rows, described(map[string]Component{}, modelled(environment.Model.Objects).sums)); err != nil {
				return err
			}
		}
		if err := tx.Model(&Snapshot{}).Where("environment_id = ?", id).Update("orphaned", 0).Error; err != nil {
			return err
		}
		return tx.Where("environment_id = ?", id).Delete(&DeletedEnvironment{}).Error
	})
	return environment, err
}

// Purge removes one for good. Its snapshots stay for as long as any deleted environment's.
func (d DeletedEnvironments) Purge(ctx context.Context, id string) error {
	return d.transaction(ctx, "purge a deleted environment", func(tx *gorm.DB) error {
		return affected(tx.Unscoped().Where("id = ? AND deleted <> 0", id).Delete(&Environment{}))
	})
}

// sweepDeleted purges the environments that were deleted before the time.
func (s Expired) sweepDeleted(ctx context.Context, swept *Swept) (more bool, err error) {
	err = s.sweeping(ctx, "purge deleted environments", func(tx *gorm.DB) error {
		var ids []string
		if err := tx.Model(&DeletedEnvironment{}).Where("deleted < ?", s.clock()-Time(s.undelete.Microseconds())).Order("deleted").Limit(1).Pluck("environment_id", &ids).Error; err != nil || len(ids) == 0 {
			return err
		}
		more = true
		swept.Environments++
		return tx.Unscoped().Where("id = ? AND deleted <> 0", ids[0]).Delete(&Environment{}).Error
	})
	return more && err == nil, err
}

// keepDeleted keeps an environment in place of removing it: its model, drafts, ended tasks and secrets. Rows that trigger work for it go, and so do the
// project's oldest deleted environments where there are too many.
func (s Environments) keepDeleted(tx *gorm.DB, id, userID string, abandoned bool) error {
	var environment Environment
	if err := tx.Select("id", "project_id", "name").Where("id = ?", id).Take(&environment).Error; err != nil {
		return err
	}
	var sessions []string
	if err := tx.Model(&Task{}).Where("environment_id = ? AND finished IS NULL", id).Pluck("session_id", &sessions).Error; err != nil {
		return err
	}
	for _, gone := range []struct {
		condition string
		row       any
	}{{"environment_id = ? AND finished IS NULL", &Task{}}, {"environment_id = ?", &Keeper{}}, {"environment_id = ?", &Finding{}}, {"environment_id = ?", &JoinToken{}},
		{"environment_id = ?", &Hibernation{}}} {
		if err := tx.Where(gone.condition, id).Delete(gone.row).Error; err != nil {
			return err
		}
	}
	if err := tx.Where("environment_id = ? AND (id IN ? OR state IN ?)", id, sessions, []State{Deploying, Deleting}).Delete(&Session{}).Error; err != nil {
		return err
	}
	row := DeletedEnvironment{EnvironmentID: id, ProjectID: environment.ProjectID, Name: environment.Name, UserID: userID, Abandoned: abandoned, Deleted: s.clock()}
	if err := tx.Raw("SELECT (SELECT LENGTH(model) FROM environments WHERE id = ?) + (SELECT COALESCE(SUM(LENGTH(model)), 0) FROM sessions WHERE environment_id = ?) + "+
		"(SELECT COALESCE(SUM(LENGTH(objects) + LENGTH(result)), 0) FROM tasks WHERE environment_id = ?) + (SELECT COALESCE(SUM(LENGTH(value)), 0) FROM secrets WHERE environment_id = ?) + "+
		"(SELECT COALESCE(SUM(LENGTH(value)), 0) FROM attributes WHERE environment_id = ?) + (SELECT COALESCE(SUM(LENGTH(model)), 0) FROM states WHERE environment_id = ?)", id, id, id, id, id, id).Scan(&row.Size).Error; err != nil {
		return err
	}
	err := tx.Model(&Environment{}).Where("id = ?", id).Updates(map[string]any{"project_id": "", "name": id, "trust": "", "deleted": row.Deleted}).Error
	if err != nil {
		return err
	}
	if err := tx.Create(&row).Error; err != nil {
		return err
	}
	return s.boundDeleted(tx, environment.ProjectID)
}

// boundDeleted purges the project's oldest deleted environments where they are too many or take too much.
func (s Environments) boundDeleted(tx *gorm.DB, projectID string) error {
	var list []DeletedEnvironment
	if err := tx.Select("environment_id", "size").Where("project_id = ?", projectID).Order("deleted DESC, environment_id").Find(&list).Error; err != nil {
		return err
	}
	size := int64(0)
	for i, one := range list {
		if size += one.Size; i < mostDeleted && size <= mostDeletedBytes {
			continue
		}
		if err := tx.Unscoped().Where("id = ? AND deleted <> 0", one.EnvironmentID).Delete(&Environment{}).Error; err != nil {
			return err
		}
	}
	return nil
}
