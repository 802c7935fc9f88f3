package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

// Ring is a Sealer of several keys (secret.Sealer).
type Ring interface {
	Sealer
	// Current returns how values begin that are sealed under the active key.
	Current() string
}

// place is a column of sealed values.
type place struct {
	table  string
	key    []string // columns by which a row, and its owner, is found
	column string
	mark   string // before the sealed values; a value without it was written unsealed
	owner  func(key []string) string
}

func (p place) String() string { return p.table + "." + p.column }

// Keys seals values again, and counts them by their keys.
type Keys struct{ *handle }

// Keys are the keys under which values are sealed.
func (s *Store) Keys() Keys { return Keys{s.handle} }

// places are all columns of sealed values. TestEverySealedColumnIsSealedAgain looks for others.
func (s Keys) places() ([]place, error) {
	list := []place{
		{table: "key_proofs", key: []string{"id"}, column: "sealed", owner: func([]string) string { return ProofOwner }},
		{table: "environments", key: []string{"id"}, column: "trust", owner: func(key []string) string { return TrustOwner(key[0]) }},
		{table: "doomed_trusts", key: []string{"id", "environment_id"}, column: "trust", owner: func(key []string) string { return TrustOwner(key[1]) }},
		{table: "delegations", key: []string{"id", "environment_id"}, column: "sealed", owner: func(key []string) string { return TrustOwner(key[1]) }},
		{table: "project_roles", key: []string{"project_id"}, column: "sealed", owner: func(key []string) string { return ProjectRoleOwner(key[0]) }},
		{table: "secrets", key: []string{"environment_id", "name"}, column: "value", owner: func(key []string) string { return SecretOwner(key[0], key[1]) }},
		{table: "snapshot_pieces", key: []string{"snapshot_id", "number"}, column: "value", owner: pieceOwner},
		{table: "sign_ins", key: []string{"id"}, column: "tokens", owner: func(key []string) string { return SignInOwner(key[0]) }},
	}
	for _, whole := range []struct {
		row any
		key []string
	}{
		{&Environment{}, []string{"id"}}, {&Session{}, []string{"id"}}, {&Task{}, []string{"id"}}, {&Template{}, []string{"id"}}, {&Snapshot{}, []string{"id"}}, {&Backup{}, []string{"id"}}, {&Stack{}, []string{"id"}}, {&StackResource{}, []string{"id"}},
		{&PastState{}, []string{"environment_id", "number"}}, {&Component{}, []string{"environment_id", "object_id"}},
		{&Attribute{}, []string{"environment_id", "object_id", "class", "name"}},
	} {
		statement := &gorm.Statement{DB: s.db}
		if err := statement.Parse(whole.row); err != nil {
			return nil, err
		}
		for _, field := range statement.Schema.Fields {
			if field.TagSettings["SERIALIZER"] == "sealed" {
				owner := columnOwner(field)
				list = append(list, place{table: statement.Schema.Table, key: whole.key, column: field.DBName, mark: sealedMark,
					owner: func([]string) string { return owner }})
			}
		}
	}
	return list, nil
}

// pieceOwner is SnapshotOwner of a row's key.
func pieceOwner(key []string) string { return "snapshot/" + key[0] + "/" + key[1] }

// resealed is how many values are read, and then written in one transaction: so few that no writer waits for long.
const resealed = 16

// passes is how often Reseal goes through all columns while others go on to write values under a former key.
const passes = 5

// Reseal seals every value again that is not sealed under the active key, while others read and write: a value that changes at the same
// time stays as its writer wrote it. Ended early and begun again, it goes on with the rest. did is called for each batch. Values that
// cannot be opened stay, and are named by the error.
func (s Keys) Reseal(ctx context.Context, ring Ring, did func(column string, values int64)) error {
	places, err := s.places()
	if err != nil {
		return fmt.Errorf("seal again: %w", err)
	}
	for range passes {
		var found int64
		var damaged []error
		for _, p := range places {
			err := s.resealColumn(ctx, p, ring, &damaged, func(values int64) {
				found += values
				did(p.String(), values)
			})
			if err != nil {
				return fmt.Errorf("seal %s again: %w", p, err)
			}
		}
		if found == 0 {
			return errors.Join(damaged...)
		}
	}
	return fmt.Errorf("values under former keys came again %d times: a server still seals under one; give all servers the same key file", passes)
}

func (s Keys) resealColumn(ctx context.Context, p place, ring Ring, damaged *[]error, did func(int64)) error {
	current := p.mark + ring.Current()
	tuple := "(" + strings.Join(p.key, ", ") + ")"
	var last []any
	for {
		query := s.db.WithContext(ctx).Table(p.table).Select(append(slices.Clone(p.key), p.column)).
			Where("substr("+p.column+", 1, ?) <> ?", len(current), current).Order(strings.Join(p.key, ", ")).Limit(resealed)
		if p.mark == "" {
			query = query.Where(p.column + " <> ''") // none is stored
		}
		if last != nil {
			query = query.Where(tuple+" > ?", last)
		}
		var rows []map[string]any
		if err := query.Find(&rows).Error; err != nil {
			return err
		}
		type change struct {
			key            []any
			former, sealed string
		}
		var changes []change
		for _, row := range rows {
			last = nil
			key := make([]string, len(p.key))
			for i, name := range p.key {
				last = append(last, row[name])
				key[i] = fmt.Sprint(row[name])
			}
			former := fmt.Sprint(row[p.column])
			value, err := p.open(ring, key, former)
			if err != nil {
				*damaged = append(*damaged, fmt.Errorf("%s of %s: %w", p, strings.Join(key, ", "), err))
				continue
			}
			changes = append(changes, change{last, former, p.mark + ring.Seal(p.owner(key), value)})
		}
		if len(rows) == 0 {
			return nil
		}
		var written int64
		err := s.transaction(ctx, "write what was sealed again", func(tx *gorm.DB) error {
			written = 0
			for _, c := range changes {
				updated := tx.Table(p.table).Where(tuple+" = ? AND "+p.column+" = ?", c.key, c.former).Update(p.column, c.sealed)
				if updated.Error != nil {
					return updated.Error
				}
				written += updated.RowsAffected
			}
			return nil
		})
		if err != nil {
			return err
		}
		if written > 0 {
			did(written)
		}
		if len(rows) < resealed {
			return nil
		}
	}
}

func (p place) open(ring Ring, key []string, text string) ([]byte, error) {
	sealed, ok := strings.CutPrefix(text, p.mark)
	if !ok {
		return []byte(text), nil
	}
	return ring.Open(p.owner(key), sealed)
}

// SealedValues is how many values of a column are sealed under a key.
type SealedValues struct {
	Column string // table.column
	KeyID  string // "" where the values do not have it, as in the first form
	Number int64
}

// SealedValues counts the sealed values of all columns, by the keys that they name. It reads every text of the database, also columns
// that Reseal does not seal, so that no value is lost with a key.
func (s Keys) SealedValues(ctx context.Context) ([]SealedValues, error) {
	places, err := s.places()
	if err != nil {
		return nil, fmt.Errorf("count sealed values: %w", err)
	}
	tables, err := database.Tables(ctx, s.db)
	if err != nil {
		return nil, fmt.Errorf("count sealed values: %w", err)
	}
	const idEnd, idSize = 3, 16 // of "v2:" and a key's id
	var list []SealedValues
	for _, table := range tables {
		for _, column := range table.Columns {
			if !column.IsText() {
				continue
			}
			known := slices.ContainsFunc(places, func(p place) bool { return p.table == table.Name && p.column == column.Name })
			for _, mark := range []string{"", sealedMark} {
				begins := func(version string) string {
					return fmt.Sprintf("substr(%s, 1, %d) = '%s%s'", column.Name, len(mark)+len(version), mark, version)
				}
				var rows []struct {
					KeyID  string
					Number int64
				}
				id := fmt.Sprintf("CASE WHEN %s THEN substr(%s, %d, %d) ELSE '' END", begins("v2:"), column.Name, len(mark)+idEnd+1, idSize)
				err := s.db.WithContext(ctx).Raw("SELECT " + id + " AS key_id, COUNT(*) AS number FROM " + table.Name + " WHERE " + begins("v1:") + " OR " + begins("v2:") +
					" GROUP BY 1 ORDER BY 1").Scan(&rows).Error
				if err != nil {
					return nil, fmt.Errorf("count the sealed values of %s.%s: %w", table.Name, column.Name, err)
				}
				for _, row := range rows {
					// A user's text may begin like a sealed value of the first form, which was only ever in known columns.
					if known || isID(row.KeyID, idSize) {
						list = append(list, SealedValues{Column: table.Name + "." + column.Name, KeyID: row.KeyID, Number: row.Number})
					}
				}
			}
		}
	}
	return list, nil
}

func isID(text string, size int) bool {
	return len(text) == size && strings.Trim(text, "0123456789abcdef") == ""
}

// KeyOf turns a function that returns the key of a sealed value (secret.KeyOf) into one for any text in the database.
func KeyOf(of func(sealed string) (id string, ok bool)) func(text string) (id string, ok bool) {
	return func(text string) (string, bool) { return of(strings.TrimPrefix(text, sealedMark)) }
}
