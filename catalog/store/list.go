package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/database"
)

// Packages returns the records that match the query, in its order.
func (s *Store) Packages(ctx context.Context, query catalog.Query) ([]catalog.Record, error) {
	tx := scoped(database.Reading(s.db.WithContext(ctx)).Table("packages").Select("packages.*"), query)
	if len(query.IDs) > 0 {
		tx = tx.Where("packages.id IN ?", query.IDs)
	}
	for column, value := range map[string]string{"full_name": query.FullName, "name": query.Name, "type": query.Type} {
		if value != "" {
			tx = tx.Where("packages."+column+" = ?", value)
		}
	}
	if query.ClassName != "" {
		tx = tx.Where("packages.id IN (SELECT package_id FROM package_classes WHERE name = ?)", query.ClassName)
	}
	if len(query.Tags) > 0 {
		tx = tx.Where("packages.id IN (SELECT package_id FROM package_tags WHERE name IN ?)", query.Tags)
	}
	if len(query.Categories) > 0 {
		tx = tx.Where(`packages.id IN (SELECT pc.package_id FROM package_categories pc JOIN categories c ON c.id = pc.category_id
			WHERE c.name IN ?)`, query.Categories)
	}
	keys, arguments := orderKeys(query)
	if len(query.Search) > 0 {
		rank, values := searchRank(query.Search)
		tx = tx.Where(rank+" < ?", append(values, unranked)...)
	}
	tx = paged(tx, keys, arguments, "packages", query.Marker, query.Descending)
	if query.Limit > 0 {
		tx = tx.Limit(query.Limit)
	}
	var rows []packageRow
	if err := tx.Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	return complete(database.Reading(s.db.WithContext(ctx)), rows)
}

func scoped(tx *gorm.DB, query catalog.Query) *gorm.DB {
	switch query.Scope {
	case catalog.ScopeUsable:
		tx = tx.Where("(packages.owner_id = ? OR packages.is_public)", query.Project)
	case catalog.ScopeOwned:
		tx = tx.Where("packages.owner_id = ?", query.Project)
	case catalog.ScopeAll:
	}
	if !query.IncludeDisabled {
		tx = tx.Where("packages.enabled")
	}
	return tx
}

// orderKeys returns the SQL expressions that the query orders by, the id last, and the values of their placeholders.
func orderKeys(query catalog.Query) (keys []string, arguments []any) {
	if len(query.Search) > 0 {
		rank, values := searchRank(query.Search)
		if query.Descending {
			rank = "-" + rank // the best come first in both directions
		}
		keys, arguments = append(keys, rank), append(arguments, values...)
	}
	for _, order := range query.OrderBy {
		switch order {
		case catalog.OrderName:
			keys = append(keys, "LOWER(packages.name)")
		case catalog.OrderFullName:
			keys = append(keys, "LOWER(packages.full_name)")
		case catalog.OrderCreated:
			keys = append(keys, "packages.created")
		}
	}
	return append(keys, "packages.id"), arguments
}

// unranked is the rank of a package in which no word is found.
const unranked = 100

// searchRank returns an SQL expression: the place of the first text, in Murano's order, that contains one of the words.
func searchRank(words []string) (expression string, values []any) {
	const like = ` LIKE LOWER(?) ESCAPE '\'`
	texts := []string{
		"LOWER(packages.name)" + like,
		"LOWER(packages.full_name)" + like,
		"LOWER(packages.description)" + like,
		`EXISTS (SELECT 1 FROM package_categories pc JOIN categories c ON c.id = pc.category_id
			WHERE pc.package_id = packages.id AND LOWER(c.name)` + like + ")",
		"EXISTS (SELECT 1 FROM package_tags t WHERE t.package_id = packages.id AND LOWER(t.name)" + like + ")",
		"EXISTS (SELECT 1 FROM package_classes k WHERE k.package_id = packages.id AND LOWER(k.name)" + like + ")",
		"LOWER(packages.author)" + like,
		"LOWER(packages.supplier)" + like,
		"LOWER(packages.type)" + like,
		"LOWER(packages.id)" + like,
		"LOWER(packages.owner_id)" + like,
	}
	var b strings.Builder
	b.WriteString("(CASE")
	for place, text := range texts {
		for _, word := range words {
			fmt.Fprintf(&b, " WHEN %s THEN %d", text, place)
			values = append(values, database.Like(word))
		}
	}
	fmt.Fprintf(&b, " ELSE %d END)", unranked)
	return b.String(), values
}

// paged orders by the keys and leaves out everything up to the row of the marker. The keys are expressions over the table, so the
// same text gives the marker's values inside the sub-select; row values compare alike in SQLite and PostgreSQL.
func paged(tx *gorm.DB, keys []string, arguments []any, table, marker string, descending bool) *gorm.DB {
	direction, after := "ASC", ">"
	if descending {
		direction, after = "DESC", "<"
	}
	if marker != "" {
		list := strings.Join(keys, ", ")
		values := append(append(append([]any{}, arguments...), arguments...), marker)
		tx = tx.Where(fmt.Sprintf("(%s) %s (SELECT %s FROM %s WHERE %s.id = ?)", list, after, list, table, table), values...)
	}
	ordering := strings.Join(keys, " "+direction+", ") + " " + direction
	return tx.Clauses(clause.OrderBy{Expression: clause.Expr{SQL: ordering, Vars: arguments, WithoutParentheses: true}})
}
