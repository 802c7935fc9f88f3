package store

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// Load is the waiting work of all servers over the database.
type Load struct {
	Waiting int64         // tasks that no server runs
	Oldest  time.Duration // how long the oldest of them has waited
	Running int64         // tasks that servers run
	Overdue int64         // of these, the number with an expired lease: their server is gone or cannot reach the database
	// Orphaned are delegations that Keystone still has, but that no task, no environment and no known stack of Heat needs any more.
	Orphaned int64
}

// Load reads the tasks that have not ended.
func (s Tasks) Load(ctx context.Context) (Load, error) {
	var load Load
	err := s.rows(ctx).Transaction(func(tx *gorm.DB) error {
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		var row struct{ Waiting, Oldest, Running, Overdue int64 }
		err = tx.Raw("SELECT COALESCE(SUM(CASE WHEN worker = '' THEN 1 ELSE 0 END), 0) AS waiting, COALESCE(MIN(CASE WHEN worker = '' THEN created END), 0) AS oldest, "+
			"COALESCE(SUM(CASE WHEN worker <> '' THEN 1 ELSE 0 END), 0) AS running, COALESCE(SUM(CASE WHEN worker <> '' AND lease_until <= ? THEN 1 ELSE 0 END), 0) AS overdue "+
			"FROM tasks WHERE finished IS NULL", now).Scan(&row).Error
		if err != nil {
			return err
		}
		load = Load{Waiting: row.Waiting, Running: row.Running, Overdue: row.Overdue}
		if row.Oldest != 0 {
			load.Oldest = max(0, now.Time().Sub(Time(row.Oldest).Time()))
		}
		// Delegations that Heat needs are checked again much later, and were no failure.
		return Delegations(s).orphaned(tx.Model(&Delegation{})).Where("used = ? AND (tries > 0 OR next_try <= ?)", true, now).Count(&load.Orphaned).Error
	})
	return load, wrap(err, "look at what there is to do")
}
