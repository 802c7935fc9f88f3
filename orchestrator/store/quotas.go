package store

import (
	"context"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/quota"
)

// Resources with a quota per project. A session counts while it is open and can be deployed: as a draft of its environment's
// present version.
const (
	QuotaEnvironments = "environments"
	QuotaSessions     = "sessions"
	QuotaTemplates    = "templates"
)

// Quotas are a project's limits without an administrator's setting; without them it is unlimited.
func Quotas(limits quota.Limits) Option { return func(s *Store) { s.quotas.Defaults = limits } }

func quotas() quota.Table {
	of := func(model any) quota.Count {
		return func(tx *gorm.DB, project string) (count int64, err error) {
			return count, tx.Model(model).Where("project_id = ?", project).Count(&count).Error
		}
	}
	open := func(tx *gorm.DB, project string) (count int64, err error) {
		environments := tx.Session(&gorm.Session{NewDB: true}).Model(&Environment{}).Select("1").
			Where("environments.id = sessions.environment_id AND environments.version = sessions.version AND project_id = ?", project)
		return count, tx.Model(&Session{}).Where("state = ? AND EXISTS (?)", Opened, environments).Count(&count).Error
	}
	snapshots := func(tx *gorm.DB, project string) (bytes int64, err error) {
		return bytes, tx.Model(&Snapshot{}).Select("COALESCE(SUM(stored), 0)").Where("project_id = ?", project).Scan(&bytes).Error
	}
	return quota.Table{Name: "quotas", Counts: map[string]quota.Count{QuotaEnvironments: of(&Environment{}), QuotaSessions: open, QuotaTemplates: of(&Template{}),
		QuotaSnapshotBytes: snapshots}}
}

// ProjectQuotas reads and sets the limits of projects.
type ProjectQuotas struct{ *handle }

// Quotas are the limits of projects.
func (s *Store) Quotas() ProjectQuotas { return ProjectQuotas{s.handle} }

// Quotas returns a project's limits and usage.
func (s ProjectQuotas) Quotas(ctx context.Context, projectID string) (map[string]quota.Usage, error) {
	return s.quotas.Usage(s.reading(ctx), projectID)
}

// SetQuotas gives a project limits of its own; its other limits stay.
func (s ProjectQuotas) SetQuotas(ctx context.Context, projectID string, limits quota.Limits) error {
	return s.transaction(ctx, "set quotas", func(tx *gorm.DB) error { return s.quotas.Set(tx, projectID, limits) })
}

// ClearQuotas removes a project's own limits.
func (s ProjectQuotas) ClearQuotas(ctx context.Context, projectID string) error {
	return s.transaction(ctx, "clear quotas", func(tx *gorm.DB) error { return s.quotas.Clear(tx, projectID) })
}
