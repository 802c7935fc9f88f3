package store

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// CreateEnvironment adds the environment and sets its times. It returns ErrDuplicate when the project has one of that name.
func (s *Store) CreateEnvironment(ctx context.Context, environment *Environment) error {
	environment.Created = s.clock()
	environment.Updated = environment.Created
	return wrap(s.rows(ctx).Create(environment).Error, "create an environment")
}

// Environment returns the environment, or ErrNotFound.
func (s *Store) Environment(ctx context.Context, id string) (Environment, error) {
	var environment Environment
	err := s.rows(ctx).Where("id = ?", id).Take(&environment).Error
	return environment, wrap(err, "read an environment")
}

// Environments returns the project's environments ("" for those of all projects) with their sessions, both oldest first and
// without their models.
func (s *Store) Environments(ctx context.Context, projectID string) ([]Environment, map[string][]Session, error) {
	var environments []Environment
	sessions := map[string][]Session{}
	err := s.transaction(ctx, "list environments", func(tx *gorm.DB) error {
		query := tx.Omit("model").Order("created, id")
		if projectID != "" {
			query = query.Where("project_id = ?", projectID)
		}
		if err := query.Find(&environments).Error; err != nil {
			return err
		}
		ids := tx.Model(&Environment{}).Select("id")
		if projectID != "" {
			ids = ids.Where("project_id = ?", projectID)
		}
		var rows []Session
		err := tx.Select("id", "environment_id", "state", "version", "updated").Where("environment_id IN (?)", ids).Order("created, id").Find(&rows).Error
		for _, row := range rows {
			sessions[row.EnvironmentID] = append(sessions[row.EnvironmentID], row)
		}
		return err
	})
	return environments, sessions, err
}

// RenameEnvironment gives the environment another name; ErrDuplicate when the project has one of that name.
func (s *Store) RenameEnvironment(ctx context.Context, id, name string) (Environment, error) {
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

// RemoveEnvironment removes the environment with everything that belongs to it, and dooms its trust.
func (s *Store) RemoveEnvironment(ctx context.Context, id string) error {
	return s.transaction(ctx, "remove an environment", func(tx *gorm.DB) error { return s.remove(tx, id) })
}

func (s *Store) remove(tx *gorm.DB, id string) error {
	var environment Environment
	if err := locked(tx).Select("id", "trust").Where("id = ?", id).Take(&environment).Error; err != nil {
		return err
	}
	if environment.Trust != "" {
		if err := tx.Create(&DoomedTrust{ID: NewID(), EnvironmentID: id, Trust: environment.Trust, Created: s.clock()}).Error; err != nil {
			return err
		}
	}
	// Sessions, tasks, reports, steps, attributes and secrets go with it (ON DELETE CASCADE).
	return tx.Where("id = ?", id).Delete(&Environment{}).Error
}

// DoomTrust keeps a sealed trust that is to be deleted unless the environment takes it (Submit), and returns the row's id.
func (s *Store) DoomTrust(ctx context.Context, environmentID, sealed string) (string, error) {
	row := DoomedTrust{ID: NewID(), EnvironmentID: environmentID, Trust: sealed, Created: s.clock()}
	return row.ID, wrap(s.rows(ctx).Create(&row).Error, "note a trust")
}

// DoomedTrusts returns the trusts that are to be deleted, oldest first: those that were made for the environment, or all
// when environmentID is "". Younger ones than age are left out.
func (s *Store) DoomedTrusts(ctx context.Context, environmentID string, age time.Duration) ([]DoomedTrust, error) {
	query := s.rows(ctx).Where("created <= ?", s.clock()-Time(age.Microseconds())).Order("created, id")
	if environmentID != "" {
		query = query.Where("environment_id = ?", environmentID)
	}
	var rows []DoomedTrust
	return rows, wrap(query.Find(&rows).Error, "list the trusts to delete")
}

// ForgetTrust removes the row of a trust that Keystone no longer has.
func (s *Store) ForgetTrust(ctx context.Context, id string) error {
	return wrap(s.rows(ctx).Where("id = ?", id).Delete(&DoomedTrust{}).Error, "forget a trust")
}
