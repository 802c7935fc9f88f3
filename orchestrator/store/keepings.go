package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/catalog/yaql"
)

// Rows of native code, during and after a task: steps, attributes, secrets. They are written through a Hold.

// Steps returns the task's steps in the order of their start.
func (s Tasks) Steps(ctx context.Context, taskID string) ([]Step, error) {
	return readAll[Step](s.reading(ctx).Where("task_id = ?", taskID).Order("started, id"), "list steps")
}

// Attributes reads the attributes of objects.
type Attributes struct{ *handle }

// Attributes are the attributes of objects.
func (s *Store) Attributes() Attributes { return Attributes{s.handle} }

// Get returns the value that SetAttribute stored; false when there is none.
func (s Attributes) Get(ctx context.Context, environmentID, objectID, class, name string) (any, bool, error) {
	var row Attribute
	err := wrap(s.reading(ctx).Where("environment_id = ? AND object_id = ? AND class = ? AND name = ?", environmentID, objectID, class, name).
		Limit(1).Find(&row).Error, "read an attribute")
	if err != nil || row.Name == "" {
		return nil, false, err
	}
	return attributeOf(row)
}

// attributeOf returns the value of a row.
func attributeOf(row Attribute) (any, bool, error) {
	var value any
	if err := decode(row.Value, &value); err != nil {
		return nil, false, fmt.Errorf("read the attribute %s of %s: %w", row.Name, row.ObjectID, err)
	}
	return yaql.FromJSON(value), true, nil
}

// secretRow is a row of the table secrets.
type secretRow struct {
	EnvironmentID string
	Name          string
	Value         string // sealed
}

// TableName names the table for gorm.
func (secretRow) TableName() string { return "secrets" }

// Secrets stores sealed secrets.
type Secrets struct{ *handle }

// Secrets are the sealed secrets of environments.
func (s *Store) Secrets() Secrets { return Secrets{s.handle} }

// Get returns the sealed secret of that name; false when there is none.
func (s Secrets) Get(ctx context.Context, environmentID, name string) (string, bool, error) {
	var row secretRow
	err := s.reading(ctx).Where("environment_id = ? AND name = ?", environmentID, name).Limit(1).Find(&row).Error
	return row.Value, row.Name != "", wrap(err, "read a secret")
}

// Set stores a sealed secret outside of any task; it is durable on return.
func (s Secrets) Set(ctx context.Context, environmentID, name, sealed string) error {
	return wrap(setSecret(s.rows(ctx), environmentID, name, sealed), "write a secret")
}

func setSecret(tx *gorm.DB, environmentID, name, sealed string) error {
	row := secretRow{EnvironmentID: environmentID, Name: name, Value: sealed}
	return tx.Clauses(clause.OnConflict{UpdateAll: true, Columns: []clause.Column{{Name: "environment_id"}, {Name: "name"}}}).Create(&row).Error
}
