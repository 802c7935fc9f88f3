package store

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/internal/blackbox"
)

// Death is a unit of work that ran when servers died.
type Death struct {
	ID        string // the work's key
	Kind      string
	ProjectID string
	What      string
	Version   string // the version of Burano that died last over it
	Alone     int64  // deaths at which nothing else of a tenant ran
	Beside    int64  // the others
	Last      Time
}

const (
	// refusedAlone, refusedBeside and refusedLooks are how many deaths make Burano refuse a unit of work that never completed
	// between them.
	refusedAlone, refusedBeside, refusedLooks = 2, 4, 3
	// deathsKept is how long deaths count after the last one.
	deathsKept = 24 * time.Hour
)

// Deaths counts the deaths of servers, by the work that ran.
type Deaths struct{ *handle }

// Deaths are the deaths of servers.
func (s *Store) Deaths() Deaths { return Deaths{s.handle} }

// Note stores the work that ran when a server of this version died; more is true if the list is not complete. It must be called before that server's
// leases end or are renewed: a task that ran alone, but not without requests and checks beside it, is not blamed.
func (s Deaths) Note(ctx context.Context, ran []blackbox.Work, more bool, version string) error {
	if len(ran) == 0 {
		return nil
	}
	_, alone := blackbox.Alone(ran, more)
	return s.transaction(ctx, "note what ran when the server died", func(tx *gorm.DB) error {
		counted := map[string]bool{}
		for _, work := range ran {
			if work.Key == "" || counted[work.Key] {
				continue
			}
			counted[work.Key] = true
			if work.Kind == blackbox.Task {
				if !alone && work.Alone {
					if err := acquit(tx, work); err != nil {
						return err
					}
				}
				continue
			}
			if err := s.note(tx, work, alone, version); err != nil {
				return err
			}
		}
		return nil
	})
}

// acquit clears the record that a task ran alone when its server died. Another server may have taken it over already.
func acquit(tx *gorm.DB, work blackbox.Work) error {
	task := tx.Model(&Task{}).Where("id = ? AND finished IS NULL", work.Key)
	held := task.Session(&gorm.Session{}).Where("fence = ?", int64(work.Fence)).Update("alone", false)
	if held.Error != nil || held.RowsAffected > 0 {
		return held.Error
	}
	return task.Session(&gorm.Session{}).Where("fence > ? AND alone_deaths > 0", int64(work.Fence)).Update("alone_deaths", gorm.Expr("alone_deaths - 1")).Error
}

func (s Deaths) note(tx *gorm.DB, work blackbox.Work, alone bool, version string) error {
	row := Death{ID: work.Key}
	found := locked(tx).Where("id = ?", work.Key).Limit(1).Find(&row)
	if found.Error != nil {
		return found.Error
	}
	now := s.clock()
	if row.Version != version || row.Last < now-Time(deathsKept.Microseconds()) {
		row.Alone, row.Beside = 0, 0
	}
	row.Kind, row.ProjectID, row.What, row.Version, row.Last = work.Kind, work.Project, work.What, version, now
	if alone {
		row.Alone++
	} else {
		row.Beside++
	}
	if err := tx.Where("last < ?", now-Time(deathsKept.Microseconds())).Delete(&Death{}).Error; err != nil {
		return err
	}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// Suspects returns the units of work over which servers of this version died, by key, and whether they are refused.
func (s Deaths) Suspects(ctx context.Context, version string) (map[string]bool, error) {
	var rows []Death
	err := s.reading(ctx).Where("version = ? AND last >= ?", version, s.clock()-Time(deathsKept.Microseconds())).Find(&rows).Error
	suspects := map[string]bool{}
	for _, row := range rows {
		suspects[row.ID] = row.refused()
	}
	return suspects, wrap(err, "list what servers died over")
}

// refused: beside other work, a recurring request (a check, or a page) cannot be distinguished from the cause.
func (d Death) refused() bool {
	switch {
	case d.Kind == blackbox.Look:
		return d.Alone >= refusedLooks
	case strings.HasPrefix(d.What, "GET "):
		return d.Alone >= refusedAlone
	}
	return d.Alone >= refusedAlone || d.Alone+d.Beside >= refusedBeside
}

// Survived forgets the deaths of a unit of work that has completed since.
func (s Deaths) Survived(ctx context.Context, key string) error {
	return s.transaction(ctx, "forget a death", func(tx *gorm.DB) error { return tx.Where("id = ?", key).Delete(&Death{}).Error })
}
