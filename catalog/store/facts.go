package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/database"
)

// NoteFacts stores the facts from a package's files, unless the package was deleted meanwhile.
func (s *Store) NoteFacts(ctx context.Context, id string, facts catalog.Facts, parents map[string][]string) error {
	err := database.Transaction(s.db.WithContext(ctx), nil, func(tx *gorm.DB) error {
		done := tx.Model(&packageRow{ID: id}).Updates(map[string]any{"has_ui": facts.UI, "has_logo": facts.Logo, "has_supplier_logo": facts.SupplierLogo})
		if done.Error != nil || done.RowsAffected == 0 {
			return done.Error
		}
		for class, names := range parents {
			if err := tx.Model(&classRow{}).Where("package_id = ? AND name = ?", id, class).Update("parents", strings.Join(names, " ")).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note what is in package %s: %w", id, err)
	}
	return nil
}

// Parents returns the parents of the classes of packages.
func (s *Store) Parents(ctx context.Context, ids []string) (map[string]map[string][]string, error) {
	var rows []classRow
	found := map[string]map[string][]string{}
	if len(ids) == 0 {
		return found, nil
	}
	if err := database.Reading(s.db.WithContext(ctx)).Where("package_id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read the parents of classes: %w", err)
	}
	for _, row := range rows {
		if found[row.PackageID] == nil {
			found[row.PackageID] = map[string][]string{}
		}
		found[row.PackageID][row.Name] = strings.Fields(row.Parents)
	}
	return found, nil
}
