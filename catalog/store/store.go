// Package store keeps the catalog's packages and categories in the database.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
)

// Migrations must read the same to SQLite and PostgreSQL.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Store is a catalog.Store over the shared database handle.
type Store struct {
	db     *gorm.DB
	quotas quota.Table
}

var _ catalog.Store = (*Store)(nil)

// Schema is the tables of this store.
func Schema() database.Schema {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return database.Schema{Owner: "catalog", Files: files}
}

// New migrates the catalog's tables and returns the store.
func New(ctx context.Context, db *gorm.DB, options ...Option) (*Store, error) {
	if err := Schema().Migrate(ctx, db); err != nil {
		return nil, err
	}
	s := &Store{db: db, quotas: quotas()}
	for _, option := range options {
		option(s)
	}
	return s, nil
}

type packageRow struct {
	ID          string `gorm:"primaryKey"`
	FullName    string
	Name        string
	Type        string
	Version     string
	Description string
	Author      string
	Supplier    string // JSON
	OwnerID     string
	IsPublic    bool
	Enabled     bool
	Embedded    bool
	Created     int64
	Updated     int64
	Bytes       int64 // of the archive

	// Facts of the files; nil: unknown.
	HasUI           *bool
	HasLogo         *bool
	HasSupplierLogo *bool
}

func (packageRow) TableName() string { return "packages" }

type archiveRow struct {
	PackageID string `gorm:"primaryKey"`
	Content   []byte
}

func (archiveRow) TableName() string { return "package_archives" }

type classRow struct {
	PackageID string
	OwnerID   string
	Name      string
	Position  int
	Parents   string // full names, divided by spaces
}

func (classRow) TableName() string { return "package_classes" }

type tagRow struct {
	PackageID string
	Name      string
	Position  int
}

func (tagRow) TableName() string { return "package_tags" }

type packageCategoryRow struct {
	PackageID  string
	CategoryID string
	Position   int
}

func (packageCategoryRow) TableName() string { return "package_categories" }

func newPackageRow(record catalog.Record) (packageRow, error) {
	supplier, err := json.Marshal(record.Supplier)
	if err != nil {
		return packageRow{}, fmt.Errorf("encode the supplier of package %s: %w", record.FullName, err)
	}
	return packageRow{
		ID: record.ID, FullName: record.FullName, Name: record.Name, Type: record.Type, Version: record.Version,
		Description: record.Description, Author: record.Author, Supplier: string(supplier), OwnerID: record.OwnerID,
		IsPublic: record.Public, Enabled: record.Enabled, Embedded: record.Embedded,
		Created: record.Created.Unix(), Updated: record.Updated.Unix(),
	}, nil
}

func (r packageRow) record() (catalog.Record, error) {
	record := catalog.Record{
		ID: r.ID, FullName: r.FullName, Name: r.Name, Type: r.Type, Version: r.Version,
		Description: r.Description, Author: r.Author, OwnerID: r.OwnerID,
		Public: r.IsPublic, Enabled: r.Enabled, Embedded: r.Embedded,
		Created: seconds(r.Created), Updated: seconds(r.Updated),
		Tags: []string{}, Categories: []string{}, Classes: []string{},
	}
	if err := json.Unmarshal([]byte(r.Supplier), &record.Supplier); err != nil {
		return record, fmt.Errorf("decode the supplier of package %s: %w", r.ID, err)
	}
	if record.Supplier == nil {
		record.Supplier = map[string]any{}
	}
	if r.HasUI != nil && r.HasLogo != nil && r.HasSupplierLogo != nil {
		record.Facts = &catalog.Facts{UI: *r.HasUI, Logo: *r.HasLogo, SupplierLogo: *r.HasSupplierLogo}
	}
	return record, nil
}

func seconds(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// ReplaceEmbedded makes the embedded records exactly these.
func (s *Store) ReplaceEmbedded(ctx context.Context, records []catalog.Record) error {
	return database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error {
		if err := alone(tx); err != nil { // several servers may start at the same time
			return err
		}
		var old []packageRow
		if err := tx.Where("embedded").Find(&old).Error; err != nil {
			return err
		}
		created := map[string]int64{}
		for _, row := range old {
			created[row.ID] = row.Created
		}
		if err := tx.Where("embedded").Delete(&packageRow{}).Error; err != nil {
			return err
		}
		var categories []string // an administrator may have deleted one
		if err := tx.Model(&categoryRow{}).Pluck("name", &categories).Error; err != nil {
			return err
		}
		for _, record := range records {
			record.Categories = slices.DeleteFunc(slices.Clone(record.Categories), func(name string) bool { return !slices.Contains(categories, name) })
			row, err := newPackageRow(record)
			if err != nil {
				return err
			}
			if at, ok := created[row.ID]; ok {
				row.Created = at
			}
			if err := insert(tx, row, record); err != nil {
				return fmt.Errorf("note embedded package %s: %w", record.FullName, err)
			}
		}
		return nil
	})
}

// alone makes the transaction the only one that writes packages until it ends; in SQLite every one is.
func alone(tx *gorm.DB) error {
	if tx.Name() != database.Postgres {
		return nil
	}
	return tx.Exec("LOCK TABLE packages IN SHARE ROW EXCLUSIVE MODE").Error
}

// AddPackage stores a package with its zip.
func (s *Store) AddPackage(ctx context.Context, record catalog.Record, archive []byte) error {
	return s.put(ctx, "", record, archive)
}

// ReplacePackage stores a package with its zip in the place of another one, which is removed in the same transaction.
func (s *Store) ReplacePackage(ctx context.Context, formerID string, record catalog.Record, archive []byte) error {
	return s.put(ctx, formerID, record, archive)
}

// put stores a package, in the place of the former where there is one.
func (s *Store) put(ctx context.Context, formerID string, record catalog.Record, archive []byte) error {
	err := database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error {
		packages, bytes := int64(1), int64(len(archive))
		if formerID != "" {
			var former packageRow
			if err := tx.Where("id = ? AND NOT embedded", formerID).Take(&former).Error; err != nil {
				return packageError(formerID, err)
			}
			packages, bytes = 0, bytes-former.Bytes
		}
		// Before the table is locked: all who take both locks take them in this order.
		if err := s.quotas.Admit(tx, record.OwnerID, QuotaPackages, packages); err != nil {
			return err
		}
		if err := s.quotas.Admit(tx, record.OwnerID, quota.Bytes, bytes); err != nil {
			return err
		}
		if record.Public { // no unique key covers the classes of public packages
			if err := alone(tx); err != nil {
				return err
			}
		}
		if formerID != "" {
			removed := tx.Where("id = ?", formerID).Delete(&packageRow{})
			if removed.Error == nil && removed.RowsAffected == 0 {
				removed.Error = gorm.ErrRecordNotFound
			}
			if removed.Error != nil {
				return packageError(formerID, removed.Error)
			}
		}
		if err := checkConflicts(tx, record); err != nil {
			return err
		}
		row, err := newPackageRow(record)
		if err != nil {
			return err
		}
		row.Bytes = int64(len(archive))
		if err := insert(tx, row, record); err != nil {
			return err
		}
		return tx.Create(&archiveRow{PackageID: record.ID, Content: archive}).Error
	})
	if database.IsDuplicate(err) {
		return classTaken() // another upload won the race between the check and the insert
	}
	if err != nil && fault.KindOf(err) == 0 {
		return fmt.Errorf("store package %s: %w", record.FullName, err)
	}
	return err
}

// classTaken and nameTaken are Murano's answers.
func classTaken() error {
	return fault.New(fault.Conflict, "Class with the same full name is already registered in the visibility scope")
}

func nameTaken() error {
	return fault.New(fault.Conflict, "Package with the same full name is already registered in the visibility scope")
}

// checkConflicts refuses a name or class that is there already where the package would be seen: in the owner's project and, when
// it is to be public, among the public packages (Murano's _check_for_existing_classes and _check_for_public_packages_with_fqn).
func checkConflicts(tx *gorm.DB, record catalog.Record) error {
	others := func() *gorm.DB {
		visible := tx.Where("packages.owner_id = ?", record.OwnerID)
		if record.Public {
			visible = visible.Or("packages.is_public")
		}
		return tx.Table("packages").Where("packages.id <> ?", record.ID).Where(visible)
	}
	var there int64
	if len(record.Classes) > 0 {
		err := others().Joins("JOIN package_classes ON package_classes.package_id = packages.id").
			Where("package_classes.name IN ?", record.Classes).Count(&there).Error
		if err != nil {
			return err
		}
		if there > 0 {
			return classTaken()
		}
	}
	if err := others().Where("packages.full_name = ?", record.FullName).Count(&there).Error; err != nil {
		return err
	}
	if there > 0 {
		return nameTaken()
	}
	return nil
}

func insert(tx *gorm.DB, row packageRow, record catalog.Record) error {
	if err := tx.Create(&row).Error; err != nil {
		return err
	}
	// In one order everywhere: two uploads that share classes wait for each other, but never in a circle.
	for _, name := range slices.Sorted(slices.Values(record.Classes)) {
		class := classRow{PackageID: row.ID, OwnerID: row.OwnerID, Name: name, Position: slices.Index(record.Classes, name)}
		if err := tx.Create(&class).Error; err != nil {
			return err
		}
	}
	return label(tx, record)
}

// label stores the package's tags and categories.
func label(tx *gorm.DB, record catalog.Record) error {
	for i, name := range record.Tags {
		if err := tx.Create(&tagRow{PackageID: record.ID, Name: name, Position: i}).Error; err != nil {
			return err
		}
	}
	for i, name := range record.Categories {
		var category categoryRow
		err := tx.Where("name = ?", name).Take(&category).Error
		if database.IsNotFound(err) {
			return fault.New(fault.Invalid, "Category '%s' doesn't exist", name)
		}
		if err != nil {
			return err
		}
		if err := tx.Create(&packageCategoryRow{PackageID: record.ID, CategoryID: category.ID, Position: i}).Error; err != nil {
			return err
		}
	}
	return nil
}

// Package returns a package's record.
func (s *Store) Package(ctx context.Context, id string) (catalog.Record, error) {
	var row packageRow
	if err := database.Reading(s.db.WithContext(ctx)).Where("id = ?", id).Take(&row).Error; err != nil {
		return catalog.Record{}, packageError(id, err)
	}
	records, err := complete(database.Reading(s.db.WithContext(ctx)), []packageRow{row})
	if err != nil {
		return catalog.Record{}, err
	}
	return records[0], nil
}

// Archive returns the zip as it was uploaded.
func (s *Store) Archive(ctx context.Context, id string) ([]byte, error) {
	var row archiveRow
	if err := database.Reading(s.db.WithContext(ctx)).Where("package_id = ?", id).Take(&row).Error; err != nil {
		return nil, packageError(id, err)
	}
	return row.Content, nil
}

// DeletePackage removes a package and all that belongs to it.
func (s *Store) DeletePackage(ctx context.Context, id string) error {
	done := s.db.WithContext(ctx).Where("id = ?", id).Delete(&packageRow{})
	if done.Error != nil {
		return packageError(id, done.Error)
	}
	if done.RowsAffected == 0 {
		return packageError(id, gorm.ErrRecordNotFound)
	}
	return nil
}

// UpdatePackage changes the changeable fields of a package.
func (s *Store) UpdatePackage(ctx context.Context, id string, change func(*catalog.Record) error) (catalog.Record, error) {
	var record catalog.Record
	err := database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error {
		var row packageRow
		if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("id = ?", id).Take(&row).Error; err != nil {
			return packageError(id, err)
		}
		records, err := complete(tx, []packageRow{row})
		if err != nil {
			return err
		}
		record = records[0]
		if err := change(&record); err != nil {
			return err
		}
		if record.Public && !row.IsPublic {
			if err := errors.Join(alone(tx), checkConflicts(tx, record)); err != nil {
				return err
			}
		}
		done := tx.Model(&packageRow{ID: id}).Updates(map[string]any{"name": record.Name, "description": record.Description,
			"is_public": record.Public, "enabled": record.Enabled, "updated": record.Updated.Unix()})
		if done.Error != nil {
			return done.Error
		}
		for _, table := range []any{&tagRow{}, &packageCategoryRow{}} {
			if err := tx.Where("package_id = ?", id).Delete(table).Error; err != nil {
				return err
			}
		}
		return label(tx, record)
	})
	if database.IsDuplicate(err) {
		return record, nameTaken() // another package became public at the same moment
	}
	if err != nil && fault.KindOf(err) == 0 {
		return record, fmt.Errorf("change package %s: %w", id, err)
	}
	return record, err
}

func packageError(id string, err error) error {
	if database.IsNotFound(err) {
		return fault.New(fault.NotFound, "Package id '%s' not found", id)
	}
	return fmt.Errorf("package %s: %w", id, err)
}

// complete adds tags, categories and classes to the rows, in three queries whatever their number.
func complete(db *gorm.DB, rows []packageRow) ([]catalog.Record, error) {
	records := make([]catalog.Record, 0, len(rows))
	place := make(map[string]int, len(rows))
	ids := make([]string, 0, len(rows))
	for i, row := range rows {
		record, err := row.record()
		if err != nil {
			return nil, err
		}
		records, ids = append(records, record), append(ids, row.ID)
		place[row.ID] = i
	}
	if len(rows) == 0 {
		return records, nil
	}
	type named struct{ PackageID, Name string }
	read := func(query *gorm.DB, add func(record *catalog.Record, name string)) error {
		var list []named
		if err := query.Where("package_id IN ?", ids).Order("package_id, position").Scan(&list).Error; err != nil {
			return err
		}
		for _, item := range list {
			add(&records[place[item.PackageID]], item.Name)
		}
		return nil
	}
	err := read(db.Table("package_tags").Select("package_id", "name"),
		func(record *catalog.Record, name string) { record.Tags = append(record.Tags, name) })
	if err == nil {
		err = read(db.Table("package_classes").Select("package_id", "name"),
			func(record *catalog.Record, name string) { record.Classes = append(record.Classes, name) })
	}
	if err == nil {
		err = read(db.Table("package_categories").Select("package_id", "categories.name").
			Joins("JOIN categories ON categories.id = package_categories.category_id"),
			func(record *catalog.Record, name string) { record.Categories = append(record.Categories, name) })
	}
	if err != nil {
		return nil, fmt.Errorf("read tags, classes and categories: %w", err)
	}
	return records, nil
}
