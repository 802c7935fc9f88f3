package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// Table is a table as it is in the database.
type Table struct {
	Name    string
	Columns []Column
	Refers  []string // tables that its rows refer to
}

// Column is a column of a table.
type Column struct {
	Name string
	Type string // in lower case, as the database calls it
}

// IsText reports whether the column holds texts.
func (c Column) IsText() bool {
	return c.Type == "text" || strings.HasPrefix(c.Type, "varchar") || strings.HasPrefix(c.Type, "character varying")
}

// columns and references of all tables, in SQL.
var (
	columnsOf = map[string]string{
		Postgres: "SELECT c.table_name, c.column_name, lower(c.data_type) AS type FROM information_schema.columns c JOIN information_schema.tables t " +
			"ON t.table_schema = c.table_schema AND t.table_name = c.table_name WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' " +
			"ORDER BY c.table_name, c.ordinal_position",
		"sqlite": "SELECT m.name AS table_name, p.name AS column_name, lower(p.type) AS type FROM sqlite_master m JOIN pragma_table_info(m.name) p " +
			"WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY m.name, p.cid",
	}
	referencesOf = map[string]string{
		Postgres: "SELECT DISTINCT a.relname AS table_name, b.relname AS refers FROM pg_constraint c JOIN pg_class a ON a.oid = c.conrelid " +
			"JOIN pg_class b ON b.oid = c.confrelid JOIN pg_namespace n ON n.oid = a.relnamespace WHERE c.contype = 'f' AND n.nspname = current_schema()",
		"sqlite": `SELECT DISTINCT m.name AS table_name, p."table" AS refers FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) p WHERE m.type = 'table'`,
	}
)

// Tables describes all tables of the database, each after the tables that its rows refer to.
func Tables(ctx context.Context, db *gorm.DB) ([]Table, error) {
	var columns []struct{ TableName, ColumnName, Type string }
	var references []struct{ TableName, Refers string }
	db = db.WithContext(ctx)
	if err := db.Raw(columnsOf[db.Name()]).Scan(&columns).Error; err != nil {
		return nil, fmt.Errorf("list the columns of the database: %w", err)
	}
	if err := db.Raw(referencesOf[db.Name()]).Scan(&references).Error; err != nil {
		return nil, fmt.Errorf("list the references in the database: %w", err)
	}
	var rest []Table
	for _, column := range columns {
		if len(rest) == 0 || rest[len(rest)-1].Name != column.TableName {
			rest = append(rest, Table{Name: column.TableName})
		}
		last := &rest[len(rest)-1]
		last.Columns = append(last.Columns, Column{column.ColumnName, column.Type})
	}
	for i := range rest {
		for _, reference := range references {
			if reference.TableName == rest[i].Name && reference.Refers != rest[i].Name {
				rest[i].Refers = append(rest[i].Refers, reference.Refers)
			}
		}
	}
	var tables []Table
	there := func(name string) bool {
		return slices.ContainsFunc(tables, func(t Table) bool { return t.Name == name })
	}
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(t Table) bool {
			return !slices.ContainsFunc(t.Refers, func(name string) bool { return !there(name) })
		})
		if next < 0 {
			return nil, fmt.Errorf("the tables %s refer to each other in a ring", rest[0].Name)
		}
		tables = append(tables, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return tables, nil
}

// TablesOf describes the tables that the schemas make.
func TablesOf(ctx context.Context, schemas []Schema) (tables []Table, err error) {
	db, err := Open(":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, Close(db)) }()
	for _, schema := range schemas {
		if err := schema.Migrate(ctx, db); err != nil {
			return nil, err
		}
	}
	all, err := Tables(ctx, db)
	return slices.DeleteFunc(all, func(table Table) bool {
		return slices.ContainsFunc(schemas, func(s Schema) bool { return table.Name == s.Table() })
	}), err
}
