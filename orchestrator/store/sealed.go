package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/burano/burano/internal/database"
)

// Sealer makes values unreadable for a reader of the database only (secret.Sealer). owner names the value's place.
type Sealer interface {
	Seal(owner string, value []byte) string
	Open(owner, sealed string) ([]byte, error)
}

// sealedMark begins the text of a column that was sealed; no JSON begins so. A text that was written without a Sealer is read as it is.
const sealedMark = "sealed:"

// sealedColumn is the gorm serializer of columns that can hold users' secrets: models, arguments, results, attributes. They are sealed
// whole, because nothing but a form or a class knows which of their values is a secret.
type sealedColumn struct{}

func init() { schema.RegisterSerializer("sealed", sealedColumn{}) }

// sealerKey is the key of the Sealer in the context of a statement.
type sealerKey struct{}

// rows begins a statement that may write.
func (s *handle) rows(ctx context.Context) *gorm.DB {
	return s.db.WithContext(context.WithValue(ctx, sealerKey{}, s.sealer))
}

// reading begins a statement that only reads, outside of any transaction: it waits for no writer.
func (s *handle) reading(ctx context.Context) *gorm.DB { return database.Reading(s.rows(ctx)) }

func columnOwner(field *schema.Field) string { return columnName(field.Schema.Table, field.DBName) }

func columnName(table, column string) string { return "column/" + table + "/" + column }

// opened returns a column's value, in clear.
func opened(sealer Sealer, owner, stored string) (string, error) {
	sealed, ok := strings.CutPrefix(stored, sealedMark)
	if !ok {
		return stored, nil
	}
	if sealer == nil {
		return "", errors.New("the database is sealed, and there is no key to read it")
	}
	text, err := sealer.Open(owner, sealed)
	return string(text), err
}

func scanSealed(sealer Sealer, owner, stored string, into sql.Scanner) error {
	text, err := opened(sealer, owner, stored)
	if err != nil {
		return err
	}
	return into.Scan(text)
}

// unseal opens a stored column: callers read many rows first, and open them when no statement is open any more.
func (s *handle) unseal(table, column, stored string, into sql.Scanner) error {
	return scanSealed(s.sealer, columnName(table, column), stored, into)
}

// Value writes the field, sealed.
func (sealedColumn) Value(ctx context.Context, field *schema.Field, _ reflect.Value, value any) (any, error) {
	if valuer, ok := value.(driver.Valuer); ok {
		var err error
		if value, err = valuer.Value(); err != nil {
			return nil, err
		}
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("column %s: a %T cannot be sealed", field.DBName, value)
	}
	sealer, _ := ctx.Value(sealerKey{}).(Sealer)
	if sealer == nil {
		return text, nil
	}
	return sealedMark + sealer.Seal(columnOwner(field), []byte(text)), nil
}

// Scan reads the field, and opens it where it is sealed.
func (sealedColumn) Scan(ctx context.Context, field *schema.Field, row reflect.Value, stored any) error {
	var text string
	switch v := stored.(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	default:
		return fmt.Errorf("column %s holds %T", field.DBName, stored)
	}
	sealer, _ := ctx.Value(sealerKey{}).(Sealer)
	owner := columnOwner(field)
	value := field.ReflectValueOf(ctx, row)
	into := value.Addr().Interface()
	if model, ok := into.(*Model); ok {
		if shared, ok := ctx.Value(modelsKey{}).(*models); ok {
			var err error
			*model, err = shared.open(owner, text, func() (Model, error) {
				var model Model
				err := scanSealed(sealer, owner, text, &model)
				return model, err
			})
			return err
		}
	}
	if scanner, ok := into.(sql.Scanner); ok {
		return scanSealed(sealer, owner, text, scanner)
	}
	text, err := opened(sealer, owner, text)
	if err != nil {
		return err
	}
	value.SetString(text)
	return nil
}
