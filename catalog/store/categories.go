package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
)

type categoryRow struct {
	ID      string `gorm:"primaryKey"`
	Name    string
	Created int64
	Updated int64
}

func (categoryRow) TableName() string { return "categories" }

const packageCount = "(SELECT COUNT(*) FROM package_categories pc WHERE pc.category_id = categories.id)"

type countedCategory struct {
	ID           string
	Name         string
	Created      int64
	Updated      int64
	PackageCount int
}

func (c countedCategory) category() catalog.Category {
	return catalog.Category{ID: c.ID, Name: c.Name, PackageCount: c.PackageCount, Created: seconds(c.Created), Updated: seconds(c.Updated)}
}

// Categories lists categories in the query's order, by name where it names none.
func (s *Store) Categories(ctx context.Context, query catalog.CategoryQuery) ([]catalog.Category, error) {
	if query.Marker != "" {
		if _, err := s.Category(ctx, query.Marker); err != nil {
			return nil, err
		}
	}
	sortKeys := query.SortKeys
	if len(sortKeys) == 0 {
		sortKeys = []string{"name"}
	}
	var keys []string
	for _, key := range append(slices.Clone(sortKeys), "id") {
		switch key {
		case "name":
			key = "LOWER(categories.name)"
		case "package_count":
			key = packageCount
		case "created", "updated", "id":
			key = "categories." + key
		default:
			return nil, fault.New(fault.Invalid, "Invalid sort key: %s. Must be one of the following: %v", key, catalog.CategorySortKeys())
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	tx := database.Reading(s.db.WithContext(ctx)).Table("categories").Select("categories.*, " + packageCount + " AS package_count")
	tx = paged(tx, keys, nil, "categories", query.Marker, query.Descending)
	if query.Limit > 0 {
		tx = tx.Limit(query.Limit)
	}
	var rows []countedCategory
	if err := tx.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("list categories: %w", err)
	}
	categories := make([]catalog.Category, 0, len(rows))
	for _, row := range rows {
		categories = append(categories, row.category())
	}
	return categories, nil
}

// Category returns a category.
func (s *Store) Category(ctx context.Context, id string) (catalog.Category, error) {
	var row countedCategory
	err := database.Reading(s.db.WithContext(ctx)).Table("categories").Select("categories.*, "+packageCount+" AS package_count").
		Where("categories.id = ?", id).Take(&row).Error
	if err != nil {
		return catalog.Category{}, categoryError(id, err)
	}
	return row.category(), nil
}

// AddCategory stores a category.
func (s *Store) AddCategory(ctx context.Context, category catalog.Category) error {
	err := s.db.WithContext(ctx).Create(&categoryRow{ID: category.ID, Name: category.Name,
		Created: category.Created.Unix(), Updated: category.Updated.Unix()}).Error
	if database.IsDuplicate(err) {
		return fault.New(fault.Conflict, "Category with specified name is already exist")
	}
	return err
}

// DeleteCategory removes a category without packages.
func (s *Store) DeleteCategory(ctx context.Context, id string) error {
	return database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error {
		// A package that comes with Burano does not keep a category: nobody could take it away from that.
		embedded := tx.Model(&packageRow{}).Select("id").Where("embedded")
		var packages int64
		if err := tx.Table("package_categories").Where("category_id = ? AND package_id NOT IN (?)", id, embedded).Count(&packages).Error; err != nil {
			return categoryError(id, err)
		}
		if packages > 0 {
			return fault.New(fault.Forbidden, "It's impossible to delete categories assigned to the package, uploaded to the catalog")
		}
		if err := tx.Where("category_id = ?", id).Delete(&packageCategoryRow{}).Error; err != nil {
			return categoryError(id, err)
		}
		done := tx.Where("id = ?", id).Delete(&categoryRow{})
		if done.Error == nil && done.RowsAffected == 0 {
			return categoryError(id, gorm.ErrRecordNotFound)
		}
		return done.Error
	})
}

func categoryError(id string, err error) error {
	if database.IsNotFound(err) {
		return fault.New(fault.NotFound, "Category id '%s' not found", id)
	}
	return fmt.Errorf("category %s: %w", id, err)
}
