package backup

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

// Archive is a backup that is open.
type Archive struct {
	Manifest Manifest
	files    *zip.ReadCloser
}

// Open opens the backup at path and reads its manifest.
func Open(path string) (*Archive, error) {
	files, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("open the backup %s: %w", path, err)
	}
	a := &Archive{files: files}
	entry, err := files.Open(manifestName)
	if err == nil {
		err = errors.Join(json.NewDecoder(entry).Decode(&a.Manifest), entry.Close())
	}
	if err == nil && a.Manifest.Format != format {
		err = fmt.Errorf("its form is %d, and this Burano reads %d", a.Manifest.Format, format)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is no backup that can be restored: %w", path, err), files.Close())
	}
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.files.Close() }

// Load fills an empty database: it creates the tables in the version of the backup, fills them in one transaction, and then migrates them. did is called
// for each table.
func (a *Archive) Load(ctx context.Context, db *gorm.DB, schemas []database.Schema, did func(Table)) error {
	for _, schema := range schemas {
		if err := schema.MigrateTo(ctx, db, a.Manifest.Versions[schema.Owner]); err != nil {
			return err
		}
	}
	tables, err := database.Tables(ctx, db)
	if err != nil {
		return err
	}
	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if tx.Name() == database.Postgres {
			if err := tx.Exec("SET LOCAL statement_timeout = 0").Error; err != nil {
				return err
			}
		}
		for _, table := range slices.Backward(tables) { // rows that migrations have written
			if slices.ContainsFunc(a.Manifest.Tables, func(t Table) bool { return t.Name == table.Name }) {
				if err := tx.Exec("DELETE FROM " + table.Name).Error; err != nil {
					return err
				}
			}
		}
		for _, table := range a.Manifest.Tables {
			at := slices.IndexFunc(tables, func(t database.Table) bool { return t.Name == table.Name })
			if at < 0 {
				return fmt.Errorf("restore the table %s: this Burano has none of this name", table.Name)
			}
			if err := a.loadTable(tx, table, tables[at]); err != nil {
				return fmt.Errorf("restore the table %s: %w", table.Name, err)
			}
			did(table)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		if err := schema.Migrate(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

func (a *Archive) loadTable(tx *gorm.DB, table Table, to database.Table) error {
	for _, name := range table.Columns {
		if !slices.ContainsFunc(to.Columns, func(c database.Column) bool { return c.Name == name }) {
			return fmt.Errorf("it has no column %s", name)
		}
	}
	entry, err := a.files.Open(folder + table.Name + ".jsonl")
	if err != nil {
		return err
	}
	defer entry.Close()
	sum := sha256.New()
	lines := bufio.NewReaderSize(io.TeeReader(entry, sum), 1<<16)
	decoder := json.NewDecoder(lines)
	decoder.UseNumber()
	insert := "INSERT INTO " + table.Name + " (" + strings.Join(table.Columns, ", ") + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(table.Columns)), ", ") + ")"
	var rows int64
	for ; ; rows++ {
		var values []any
		err := decoder.Decode(&values)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", rows+1, err)
		}
		if len(values) != len(table.Columns) {
			return fmt.Errorf("line %d has %d values, and there are %d columns", rows+1, len(values), len(table.Columns))
		}
		for i, value := range values {
			if values[i], err = stored(value); err != nil {
				return fmt.Errorf("line %d: %w", rows+1, err)
			}
		}
		if err := tx.Exec(insert, values...).Error; err != nil {
			return fmt.Errorf("line %d: %w", rows+1, err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); rows != table.Rows || got != table.SHA256 {
		return fmt.Errorf("the file is damaged: it has %d rows with the checksum %s, and there should be %d with %s", rows, got, table.Rows, table.SHA256)
	}
	return nil
}
