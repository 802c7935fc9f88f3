package store

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Finding is a duty's finding in an environment.
type Finding struct {
	ID            string
	EnvironmentID string
	Duty          string
	ObjectID      string // "" for the environment
	Kind          string
	Subject       string // "" for the object
	Severity      string // info, warning, critical
	Text          string
	Mends         string
	Opened        Time
	Closed        *Time  // nil while it is open
	Tries         int64  // repairs that were started
	NextTry       Time   // by the database's clock: no repair starts before
	TaskID        string // the last repair; "" for none
	Repairable    bool   `gorm:"-"` // its duty has just returned its repair
	Routine       bool   `gorm:"-"` // its repair is everyday work: once closed it is over, and a new finding counts as another one
}

// Same is true if two findings of an environment are about the same problem.
func (f Finding) Same(other Finding) bool {
	return f.Duty == other.Duty && f.ObjectID == other.ObjectID && f.Kind == other.Kind && f.Subject == other.Subject
}

// Findings writes and lists the findings of the keeper's duties.
type Findings struct{ *handle }

// Findings are the findings of the keeper's duties.
func (s *Store) Findings() Findings { return Findings{s.handle} }

// keep opens, changes and closes findings. Unchanged ones are not written.
func (s Findings) keep(tx *gorm.DB, environmentID string, looked Looked) (standing []Finding, err error) {
	now := s.clock()
	var former []Finding
	if err := tx.Where("environment_id = ? AND (closed IS NULL OR closed > ?)", environmentID, now-Time(looked.Again.Microseconds())).
		Order("opened, id").Find(&former).Error; err != nil {
		return nil, err
	}
	for _, found := range looked.Findings {
		at := slices.IndexFunc(former, func(was Finding) bool { return found.Same(was) && !(found.Routine && was.Closed != nil) })
		if at < 0 {
			found.ID, found.EnvironmentID, found.Opened = NewID(), environmentID, now
			found.Mends = looked.Mends(found)
			if err := tx.Create(&found).Error; err != nil {
				return nil, err
			}
			standing = append(standing, found)
			continue
		}
		was := former[at]
		former = slices.Delete(former, at, at+1)
		is := was
		is.Severity, is.Text, is.Mends, is.Repairable, is.Routine = found.Severity, found.Text, found.Mends, found.Repairable, found.Routine
		is.Mends = looked.Mends(is)
		if was.Closed != nil {
			is.Closed, is.Opened = nil, now
		}
		was.Repairable, was.Routine = is.Repairable, is.Routine
		if is != was {
			if err := tx.Model(&Finding{}).Where("id = ?", is.ID).Select("severity", "text", "mends", "closed", "opened").Updates(&is).Error; err != nil {
				return nil, err
			}
		}
		standing = append(standing, is)
	}
	for _, was := range former {
		switch {
		case was.Closed != nil:
		case slices.Contains(looked.Duties, was.Duty):
			if err := tx.Model(&Finding{}).Where("id = ?", was.ID).Update("closed", now).Error; err != nil {
				return nil, err
			}
		default:
			standing = append(standing, was)
		}
	}
	return standing, nil
}

// findingPages are the lists of Findings.
var findingPages = list{
	keys: map[string]string{"id": "findings.id", "opened": "findings.opened", "severity": severityOrder, "closed": "COALESCE(findings.closed, 9223372036854775807)"},
	own:  []Sort{{Key: "severity"}, {Key: "opened"}},
}

// severityOrder is 0 for the worst.
const severityOrder = "CASE findings.severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"

// Forget removes findings that were closed longer ago than age.
func (s Findings) Forget(ctx context.Context, age time.Duration) error {
	return wrap(s.rows(ctx).Where("closed < ?", s.clock()-Time(age.Microseconds())).Delete(&Finding{}).Error, "forget closed findings")
}

// FindingsOf selects findings.
type FindingsOf struct {
	EnvironmentID string
	ProjectID     string // of all its environments, where there is no EnvironmentID
	Closed        bool   // also closed ones that are still stored
}

// List returns a part of the findings of an environment or a project, the worst first. An error is a *SortError or ErrMarker where the page
// is wrong.
func (s Findings) List(ctx context.Context, of FindingsOf, page Page) ([]Finding, error) {
	rows := func() *gorm.DB {
		query := s.reading(ctx).Model(&Finding{})
		if of.EnvironmentID != "" {
			query = query.Where("environment_id = ?", of.EnvironmentID)
		} else {
			query = query.Where("environment_id IN (?)", s.reading(ctx).Model(&Environment{}).Select("id").Where("project_id = ?", of.ProjectID))
		}
		if !of.Closed {
			query = query.Where("closed IS NULL")
		}
		return query
	}
	query, err := findingPages.page(page, rows)
	if err != nil {
		return nil, wrap(err, "list findings")
	}
	return readAll[Finding](query, "list findings")
}

// Counts counts the open findings, by duty and severity, of all environments.
func (s Findings) Counts(ctx context.Context) (counts []FindingCount, err error) {
	err = s.reading(ctx).Model(&Finding{}).Select("duty, severity, COUNT(*) AS number").Where("closed IS NULL").Group("duty, severity").Scan(&counts).Error
	return counts, wrap(err, "count findings")
}

// FindingCount is how many findings of a duty have a severity.
type FindingCount struct {
	Duty, Severity string
	Number         int64
}

// Severity is how many open findings of an environment have a severity.
type Severity struct {
	EnvironmentID, Severity string
	Number                  int
}

// Severities counts the open findings of environments.
func (s Findings) Severities(ctx context.Context, part Part) (list []Severity, err error) {
	var one Severity
	query := part.of(ctx, s.handle, &Finding{}).Where("closed IS NULL").
		Select("environment_id, severity, COUNT(*)").Group("environment_id, severity")
	err = each(query, func() { list = append(list, one) }, &one.EnvironmentID, &one.Severity, &one.Number)
	return list, wrap(err, "count findings")
}
