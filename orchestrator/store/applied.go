package store

import (
	"context"

	"gorm.io/gorm"
)

// Applied is an object that was made of a file under a label. It may be gone.
type Applied struct {
	ProjectID string `gorm:"primaryKey"`
	Label     string `gorm:"primaryKey"`
	Kind      string `gorm:"primaryKey"`
	ID        string `gorm:"primaryKey"`
	Name      string
}

// TableName names the table for gorm.
func (Applied) TableName() string { return "applied" }

// AppliedObjects lists the objects that were made of files.
type AppliedObjects struct{ *handle }

// Applied are the objects that were made of files.
func (s *Store) Applied() AppliedObjects { return AppliedObjects{s.handle} }

// List lists a project's objects under a label.
func (s AppliedObjects) List(ctx context.Context, projectID, label string) ([]Applied, error) {
	list := []Applied{}
	err := s.reading(ctx).Where("project_id = ? AND label = ?", projectID, label).Order("kind, name, id").Find(&list).Error
	return list, wrap(err, "list what is under a label")
}

// Set replaces a project's objects under a label.
func (s AppliedObjects) Set(ctx context.Context, projectID, label string, list []Applied) error {
	return s.transaction(ctx, "write what is under a label", func(tx *gorm.DB) error {
		if err := tx.Where("project_id = ? AND label = ?", projectID, label).Delete(&Applied{}).Error; err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			list[i].ProjectID, list[i].Label = projectID, label
		}
		return tx.Create(&list).Error
	})
}
