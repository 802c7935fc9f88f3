package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Answers reports whether the database answers.
func Answers(ctx context.Context, db *gorm.DB) error {
	handle, err := db.DB()
	if err != nil {
		return err
	}
	var one int
	if err := handle.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}

// Observe calls done for each statement with its operation (create, query, update, delete, row, raw), its duration, and whether it failed. A missing or
// duplicate row is no failure.
func Observe(db *gorm.DB, done func(operation string, took time.Duration, failed bool)) error {
	const began = "burano:began"
	before := func(tx *gorm.DB) { tx.InstanceSet(began, time.Now()) }
	after := func(operation string) func(*gorm.DB) {
		return func(tx *gorm.DB) {
			if value, ok := tx.InstanceGet(began); ok && !tx.DryRun { // a part of another statement is made in a dry run
				failed := tx.Error != nil && !IsNotFound(tx.Error) && !IsDuplicate(tx.Error)
				done(operation, time.Since(value.(time.Time)), failed)
			}
		}
	}
	callbacks := db.Callback()
	return errors.Join(
		callbacks.Create().Before("*").Register("burano:before", before), callbacks.Create().After("*").Register("burano:after", after("create")),
		callbacks.Query().Before("*").Register("burano:before", before), callbacks.Query().After("*").Register("burano:after", after("query")),
		callbacks.Update().Before("*").Register("burano:before", before), callbacks.Update().After("*").Register("burano:after", after("update")),
		callbacks.Delete().Before("*").Register("burano:before", before), callbacks.Delete().After("*").Register("burano:after", after("delete")),
		callbacks.Row().Before("*").Register("burano:before", before), callbacks.Row().After("*").Register("burano:after", after("row")),
		callbacks.Raw().Before("*").Register("burano:before", before), callbacks.Raw().After("*").Register("burano:after", after("raw")),
	)
}
