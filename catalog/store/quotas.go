package store

import (
	"context"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/quota"
)

// QuotaPackages is the number of packages that a project may have uploaded; quota.Bytes is how much they may take as archives.
const QuotaPackages = "packages"

// Option is an option of New.
type Option func(*Store)

// Quotas sets the default limits of a project's objects in this store, which an administrator can change; by default there are none.
func Quotas(limits quota.Limits) Option { return func(s *Store) { s.quotas.Defaults = limits } }

func quotas() quota.Table {
	uploaded := func(tx *gorm.DB, project string) *gorm.DB {
		return tx.Model(&packageRow{}).Where("owner_id = ? AND NOT embedded", project)
	}
	return quota.Table{Name: "package_quotas", Counts: map[string]quota.Count{
		QuotaPackages: func(tx *gorm.DB, project string) (count int64, err error) {
			return count, uploaded(tx, project).Count(&count).Error
		},
		quota.Bytes: func(tx *gorm.DB, project string) (bytes int64, err error) {
			return bytes, uploaded(tx, project).Select("COALESCE(SUM(bytes), 0)").Scan(&bytes).Error
		},
	}}
}

// Quotas returns the limits and the use of a project.
func (s *Store) Quotas(ctx context.Context, projectID string) (map[string]quota.Usage, error) {
	return s.quotas.Usage(database.Reading(s.db.WithContext(ctx)), projectID)
}

// SetQuotas gives a project limits of its own; others of its own stay.
func (s *Store) SetQuotas(ctx context.Context, projectID string, limits quota.Limits) error {
	return database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error { return s.quotas.Set(tx, projectID, limits) })
}

// ClearQuotas takes a project's own limits away.
func (s *Store) ClearQuotas(ctx context.Context, projectID string) error {
	return database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error { return s.quotas.Clear(tx, projectID) })
}
