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
)

// Sealer makes values unreadable for whoever has the database only (secret.Sealer). owner says what a value belongs to.
type Sealer interface {
	Seal(owner string, value []byte) string
	Open(owner, sealed string) ([]byte, error)
}

// sealedMark begins the text of a column that was sealed; no JSON begins so. What was written without a Sealer is read as it is.
const sealedMark = "sealed:"

// sealedColumn is the gorm serializer of columns that can hold users' secrets: models, arguments, results, attributes. They are sealed
// whole, because nothing but a form or a class knows which of their values is a secret.
type sealedColumn struct{}

func init() { schema.RegisterSerializer("sealed", sealedColumn{}) }

// sealerKey is the key of the Sealer in the context of a statement.
type sealerKey struct{}

// rows begins a statement.
func (s *Store) rows(ctx context.Context) *gorm.DB {
	return s.db.WithContext(context.WithValue(ctx, sealerKey{}, s.sealer))
}

func columnOwner(field *schema.Field) string {
	return "column/" + field.Schema.Table + "/" + field.DBName
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
	if sealed, ok := strings.CutPrefix(text, sealedMark); ok {
		sealer, _ := ctx.Value(sealerKey{}).(Sealer)
		if sealer == nil {
			return errors.New("the database is sealed, and there is no key to read it")
		}
		opened, err := sealer.Open(columnOwner(field), sealed)
		if err != nil {
			return err
		}
		text = string(opened)
	}
	value := field.ReflectValueOf(ctx, row)
	if scanner, ok := value.Addr().Interface().(sql.Scanner); ok {
		return scanner.Scan(text)
	}
	value.SetString(text)
	return nil
}
