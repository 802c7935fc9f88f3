package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Environments reads and writes environments.
type Environments struct{ *handle }

// Environments are the environments.
func (s *Store) Environments() Environments { return Environments{s.handle} }

// Create adds the environment and sets its times. It returns ErrDuplicate when the project has one of that name, and a fault
// when it has as many as it may.
func (s Environments) Create(ctx context.Context, environment *Environment) error {
	return s.transaction(ctx, "create an environment", func(tx *gorm.DB) error { return s.add(tx, environment) })
}

// Try returns the error that Create would, and creates nothing.
func (s Environments) Try(ctx context.Context, environment Environment) error {
	undo := errors.New("only tried")
	err := s.transaction(ctx, "try to create an environment", func(tx *gorm.DB) error { return cmp.Or(s.add(tx, &environment), undo) })
	if errors.Is(err, undo) {
		return nil
	}
	return err
}

func (s Environments) add(tx *gorm.DB, environment *Environment) error {
	if err := s.quotas.Admit(tx, environment.ProjectID, QuotaEnvironments, 1); err != nil {
		return err
	}
	environment.Created = s.clock()
	environment.Updated = environment.Created
	return tx.Create(environment).Error
}

// Get returns the environment, or ErrNotFound.
func (s Environments) Get(ctx context.Context, id string) (Environment, error) {
	return readOne[Environment](s.reading(ctx).Where("id = ?", id), "read an environment")
}

// Head returns the environment without its model, or ErrNotFound.
func (s Environments) Head(ctx context.Context, id string) (Environment, error) {
	return readOne[Environment](s.rows(ctx).Omit("model").Where("id = ?", id), "read an environment")
}

// Peek is Get for readers only: the result is shared, and must not be changed.
func (s Environments) Peek(ctx context.Context, id string) (Environment, error) {
	return s.remembered.environments.Read(id, func() (Environment, error) { return s.Get(s.peeking(ctx), id) })
}

// List returns the project's environments ("" for all projects') with their sessions, both oldest first and without
// their models; the result must not be changed.
func (s Environments) List(ctx context.Context, projectID string) ([]Environment, map[string][]Session, error) {
	read, err := s.remembered.listings.Read(projectID, func() (listing, error) { return s.list(ctx, projectID) })
	return read.environments, read.sessions, wrap(err, "list environments")
}

// list reads them, the sessions first: an environment that is deleted in between is not listed, instead of without its sessions. The rows
// are many, and gorm's own scan would take most of the time.
func (s Environments) list(ctx context.Context, projectID string) (listing, error) {
	sessions, err := s.sessionsOf(ctx, "environment_id IN (?)", s.of(ctx, projectID).Select("id"))
	if err != nil {
		return listing{}, err
	}
	environments, err := readEnvironments(s.of(ctx, projectID).Order("created, id"))
	return listing{environments, sessions}, err
}

// of are a project's environments, or all when projectID is "".
func (s Environments) of(ctx context.Context, projectID string) *gorm.DB {
	query := s.reading(ctx).Model(&Environment{})
	if projectID != "" {
		query = query.Where("project_id = ?", projectID)
	}
	return query
}

func readEnvironments(query *gorm.DB) (environments []Environment, err error) {
	var e Environment
	err = each(query.Select("id", "project_id", "name", "description_text", "version", "created", "updated"),
		func() { environments = append(environments, e) }, &e.ID, &e.ProjectID, &e.Name, &e.DescriptionText, &e.Version, &e.Created, &e.Updated)
	return environments, err
}

// sessionsOf returns, by their environments, the columns that statuses need of the sessions for which the condition holds,
// oldest first.
func (s Environments) sessionsOf(ctx context.Context, condition string, value any) (map[string][]Session, error) {
	sessions := map[string][]Session{}
	var row Session
	query := s.reading(ctx).Model(&Session{}).Select("id", "environment_id", "state", "version", "edited", "updated").Where(condition, value).Order("created, id")
	err := each(query, func() { sessions[row.EnvironmentID] = append(sessions[row.EnvironmentID], row) },
		&row.ID, &row.EnvironmentID, &row.State, &row.Version, &row.Edited, &row.Updated)
	return sessions, err
}

// environmentPages are the lists of Page.
var environmentPages = list{
	keys: map[string]string{"id": "id", "name": "name", "created": "created", "updated": "updated"},
	own:  []Sort{{Key: "created"}},
}

// Page is a part of List. An error is a *SortError or ErrMarker where the page is wrong.
func (s Environments) Page(ctx context.Context, projectID string, page Page) ([]Environment, map[string][]Session, error) {
	for {
		environments, sessions, err := s.page(ctx, projectID, page)
		if err != nil {
			return nil, nil, wrap(err, "list environments")
		}
		whole, err := s.areThere(ctx, environments, sessions)
		if whole || err != nil {
			return environments, sessions, wrap(err, "list environments")
		}
	}
}

func (s Environments) page(ctx context.Context, projectID string, page Page) ([]Environment, map[string][]Session, error) {
	query, err := environmentPages.page(page, func() *gorm.DB { return s.of(ctx, projectID) })
	if err != nil {
		return nil, nil, err
	}
	environments, err := readEnvironments(query)
	if err != nil {
		return nil, nil, err
	}
	all := map[string][]Session{}
	for part := range slices.Chunk(idsOf(environments), maxListedIDs) {
		sessions, err := s.sessionsOf(ctx, "environment_id IN ?", part)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(all, sessions)
	}
	return environments, all, nil
}

// areThere reports whether the environments without a session still exist: one that was deleted after it was read has none either, and would
// look ready.
func (s Environments) areThere(ctx context.Context, environments []Environment, sessions map[string][]Session) (bool, error) {
	lonely := slices.DeleteFunc(idsOf(environments), func(id string) bool { return len(sessions[id]) > 0 })
	for part := range slices.Chunk(lonely, maxListedIDs) {
		var count int64
		if err := s.reading(ctx).Model(&Environment{}).Where("id IN ?", part).Count(&count).Error; err != nil || int(count) < len(part) {
			return false, err
		}
	}
	return true, nil
}

func idsOf(environments []Environment) []string {
	ids := make([]string, len(environments))
	for i, environment := range environments {
		ids[i] = environment.ID
	}
	return ids
}

// each calls take after the columns of each row were read into the places.
func each(query *gorm.DB, take func(), places ...any) (err error) {
	rows, err := query.Rows()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		take()
	}
	return rows.Err()
}

// Rename gives the environment another name; ErrDuplicate if it is taken in the project.
func (s Environments) Rename(ctx context.Context, id, name string) (Environment, error) {
	var environment Environment
	err := s.transaction(ctx, "rename an environment", func(tx *gorm.DB) error {
		if err := locked(tx).Where("id = ?", id).Take(&environment).Error; err != nil {
			return err
		}
		environment.Name, environment.Updated = name, s.clock()
		return tx.Model(&Environment{}).Where("id = ?", id).Updates(map[string]any{"name": environment.Name, "updated": environment.Updated}).Error
	})
	return environment, err
}

// Remove removes the environment with all its rows, also unfinished tasks (Abandoned), and orphans its delegations.
func (s Environments) Remove(ctx context.Context, id, userID string) error {
	var unfinished []Task
	err := s.transaction(ctx, "remove an environment", func(tx *gorm.DB) error {
		// Locked first, so that no task begins or ends meanwhile.
		if err := locked(tx).Select("id").Where("id = ?", id).Take(&Environment{}).Error; err != nil {
			return err
		}
		if err := tx.Select("id").Where("environment_id = ? AND finished IS NULL", id).Find(&unfinished).Error; err != nil {
			return err
		}
		for _, task := range unfinished {
			if err := tx.Create(&abandonedTask{ID: task.ID, Created: s.clock()}).Error; err != nil {
				return err
			}
		}
		return s.remove(tx, id, userID, true)
	})
	for _, task := range unfinished {
		s.changed(task.ID)
	}
	return err
}

// RemoveUndeployed is Remove for an environment that was never deployed, which it checks in the same transaction; removed is
// false if it was. ErrBusy while the environment is deploying or deleting.
func (s Environments) RemoveUndeployed(ctx context.Context, id, userID string) (removed bool, err error) {
	err = s.transaction(ctx, "remove an environment that was never deployed", func(tx *gorm.DB) error {
		removed = false
		var environment Environment
		if err := locked(tx).Select("id", "model").Where("id = ?", id).Take(&environment).Error; err != nil {
			return err
		}
		if busy, err := isBusy(tx, id); err != nil || busy {
			return firstError(err, ErrBusy)
		}
		if environment.Model.ObjectsCopy != nil {
			return nil
		}
		removed = true
		return s.remove(tx, id, userID, false)
	})
	return removed, err
}

// abandonedTask is a task that had not ended when its environment was abandoned.
type abandonedTask struct {
	ID      string
	Created Time
}

// Abandoned reports whether a task that is gone had not ended when its environment was abandoned.
func (s Environments) Abandoned(ctx context.Context, taskID string) (bool, error) {
	var count int64
	err := s.rows(ctx).Model(&abandonedTask{}).Where("id = ?", taskID).Count(&count).Error
	return count > 0, wrap(err, "look for an abandoned task")
}

// ForgetAbandoned removes the records of tasks that were abandoned longer ago than age.
func (s Environments) ForgetAbandoned(ctx context.Context, age time.Duration) error {
	return wrap(s.rows(ctx).Where("created < ?", s.clock()-Time(age.Microseconds())).Delete(&abandonedTask{}).Error, "forget abandoned tasks")
}

// remove removes an environment: for good, or, with Undelete, for a while. abandoned is set if its resources were left in
// the cloud.
func (s Environments) remove(tx *gorm.DB, id, userID string, abandoned bool) error {
	var environment Environment
	if err := locked(tx).Select("id", "trust").Where("id = ?", id).Take(&environment).Error; err != nil {
		return err
	}
	now := s.clock()
	if environment.Trust != "" {
		// A former version's trust, unless it was adopted.
		row := Delegation{ID: id, EnvironmentID: id, Kind: Trust, Used: true, Sealed: environment.Trust, Created: now}
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
	}
	if err := tx.Model(&Delegation{}).Where("environment_id = ?", id).
		Updates(map[string]any{"standing": false, "used": true, "tries": 0, "next_try": now}).Error; err != nil {
		return err
	}
	if err := (Snapshots(s)).orphan(tx, id); err != nil {
		return err
	}
	if s.undelete > 0 {
		return s.keepDeleted(tx, id, userID, abandoned)
	}
	// Sessions, tasks, reports, steps, attributes and secrets go with it (ON DELETE CASCADE).
	return tx.Where("id = ?", id).Delete(&Environment{}).Error
}
