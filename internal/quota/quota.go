// Package quota limits a project's use of resources: by defaults for all, and by an administrator's limits for one.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
)

// Unlimited is the limit of an unlimited resource.
const Unlimited = -1

// Limits are how much a project may have, by resource. A resource that is not among them is unlimited.
type Limits map[string]int64

// Usage is how much of a resource a project may have, and has.
type Usage struct {
	Limit   int64 `json:"limit"` // Unlimited for none
	Used    int64 `json:"used"`
	Default bool  `json:"default"` // this project has no limit of its own
}

// Count returns a project's use of a resource, in a transaction.
type Count func(tx *gorm.DB, project string) (int64, error)

// Table bounds the resources of one owner of tables. The zero limits of Defaults admit nothing; without Defaults all is unlimited.
type Table struct {
	Name     string // of the table: project_id, resource, most
	Defaults Limits
	Counts   map[string]Count // by resource: all that it bounds
}

type row struct {
	ProjectID string
	Resource  string
	Most      int64
}

// Resources lists the limited resources, sorted.
func (t Table) Resources() []string { return slices.Sorted(maps.Keys(t.Counts)) }

// Admit refuses that a project gets more of a resource than it may have: Forbidden, or TooLarge for bytes. It must be called in the
// transaction that adds it: others that add to the same project's wait for its end.
func (t Table) Admit(tx *gorm.DB, project, resource string, more int64) error {
	limits, _, err := t.of(tx, project)
	if err != nil {
		return err
	}
	limit, bounded := limits[resource]
	if !bounded || limit == Unlimited {
		return nil
	}
	if err := alone(tx, t.Name+"/"+project); err != nil {
		return err
	}
	used, err := t.Counts[resource](tx, project)
	if err != nil {
		return fmt.Errorf("count the %s of project %s: %w", resource, project, err)
	}
	if used+more > limit {
		kind := fault.Forbidden
		if resource == Bytes {
			kind = fault.TooLarge
		}
		return fault.New(kind, "Quota exceeded for %s: requested %d, but already used %d of %d in project %s. Delete some, or ask an administrator for more.",
			resource, more, used, limit, project)
	}
	return nil
}

// Bytes is the one resource that is no number of things.
const Bytes = "package_bytes"

// alone makes the transaction the only one of its name until it ends; in SQLite every one that writes is.
func alone(tx *gorm.DB, name string) error {
	if tx.Name() != database.Postgres {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name).Error
}

// of returns the limits of a project, and which of them are its own.
func (t Table) of(db *gorm.DB, project string) (limits Limits, own map[string]bool, err error) {
	var rows []row
	if err := db.Table(t.Name).Where("project_id = ?", project).Order("resource").Find(&rows).Error; err != nil {
		return nil, nil, fmt.Errorf("read the quotas of project %s: %w", project, err)
	}
	limits, own = maps.Clone(t.Defaults), map[string]bool{}
	if limits == nil {
		limits = Limits{}
	}
	for _, r := range rows {
		if resource, kept := strings.CutPrefix(r.Resource, keptPrefix); !kept {
			limits[r.Resource], own[r.Resource] = r.Most, true
		} else if limit, bounded := t.Defaults[resource]; bounded && limit != Unlimited && !own[resource] {
			limits[resource] = max(limit, r.Most)
		}
	}
	return limits, own, nil
}

// keptPrefix begins the resources of rows with a project's minimum limit, because it had nearly as much before there was a default.
const keptPrefix = "kept/"

// Usage returns the limits and the use of a project.
func (t Table) Usage(db *gorm.DB, project string) (map[string]Usage, error) {
	limits, own, err := t.of(db, project)
	if err != nil {
		return nil, err
	}
	all := map[string]Usage{}
	for resource, count := range t.Counts {
		limit, bounded := limits[resource]
		if !bounded {
			limit = Unlimited
		}
		used, err := count(db, project)
		if err != nil {
			return nil, fmt.Errorf("count the %s of project %s: %w", resource, project, err)
		}
		all[resource] = Usage{Limit: limit, Used: used, Default: !own[resource]}
	}
	return all, nil
}

// Set gives a project limits of its own; its other limits stay. It keeps its present objects.
func (t Table) Set(tx *gorm.DB, project string, limits Limits) error {
	for resource, most := range limits {
		err := tx.Table(t.Name).Clauses(clause.OnConflict{UpdateAll: true, Columns: []clause.Column{{Name: "project_id"}, {Name: "resource"}}}).
			Create(&row{project, resource, most}).Error
		if err != nil {
			return fmt.Errorf("set the quotas of project %s: %w", project, err)
		}
	}
	return nil
}

// Clear removes a project's own limits: the defaults apply again, with its minimum from before there were any.
func (t Table) Clear(tx *gorm.DB, project string) error {
	if err := tx.Table(t.Name).Where("project_id = ? AND resource NOT LIKE ?", project, keptPrefix+"%").Delete(&row{}).Error; err != nil {
		return fmt.Errorf("clear the quotas of project %s: %w", project, err)
	}
	return nil
}
