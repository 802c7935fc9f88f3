package store

import (
	"context"

	"gorm.io/gorm"
)

// Imported is an environment from another program's database, with all its rows. Its ids and times stay.
type Imported struct {
	Environment Environment
	Sessions    []Session
	Tasks       []Task // all of which have ended
	Reports     []Report
	Attributes  []Attribute
	Instances   []InstanceStatistics
	Secrets     map[string]string // sealed, by their names
}

// Import stores an environment in one transaction: all of it is there afterwards, or nothing. It returns ErrDuplicate when one of
// its ids exists, or another environment of its project has its name.
func (s Environments) Import(ctx context.Context, imported Imported) error {
	return s.transaction(ctx, "import environment "+imported.Environment.Name, func(tx *gorm.DB) error {
		if err := s.quotas.Admit(tx, imported.Environment.ProjectID, QuotaEnvironments, 1); err != nil {
			return err
		}
		environment := imported.Environment
		if err := tx.Create(&environment).Error; err != nil {
			return err
		}
		for name, sealed := range imported.Secrets {
			if err := setSecret(tx, environment.ID, name, sealed); err != nil {
				return err
			}
		}
		return firstError(addAll(tx, imported.Sessions), addAll(tx, imported.Tasks), addAll(tx, imported.Reports),
			addAll(tx, imported.Attributes), addAll(tx, imported.Instances))
	})
}

// addAll adds rows, one statement each: a model can be as large as a statement may be.
func addAll[row any](tx *gorm.DB, rows []row) error {
	for i := range rows {
		one := rows[i]
		if err := tx.Create(&one).Error; err != nil {
			return err
		}
	}
	return nil
}

// Import stores a template with its id and its times. It returns ErrDuplicate when its id exists, or another template of its project
// has its name.
func (s Templates) Import(ctx context.Context, template Template) error {
	return s.transaction(ctx, "import template "+template.Name, func(tx *gorm.DB) error {
		if err := s.quotas.Admit(tx, template.ProjectID, QuotaTemplates, 1); err != nil {
			return err
		}
		return tx.Create(&template).Error
	})
}
