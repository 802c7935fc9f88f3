// Package backup writes a whole database into one file, and a file into a new database of either kind.
//
// The file is a zip: manifest.json describes it, and tables/NAME.jsonl has the rows of a table, a JSON array on each line with the values in the order of
// the manifest's columns. Bytes are {"base64": …}. Nothing of it is specific to one kind of database.
package backup

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

// format is the number of this form of the file.
const format = 1

const (
	manifestName = "manifest.json"
	folder       = "tables/"
)

// Manifest describes a backup.
type Manifest struct {
	Format   int              `json:"format"`
	Program  string           `json:"program"` // the version that wrote it
	Created  time.Time        `json:"created"`
	Versions map[string]int64 `json:"versions"` // of each owner's tables
	Keys     []string         `json:"keys"`     // ids of the keys that its sealed values need
	Tables   []Table          `json:"tables"`   // each after the tables that its rows refer to
}

// Table is one table of a backup.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"` // of its lines
}

// Source is the source of a backup.
type Source struct {
	DB      *gorm.DB
	Schemas []database.Schema // the database has their versions
	Program string
	KeyOf   func(text string) (id string, sealed bool) // of a sealed value
	Now     func() time.Time
}

// Write writes a backup of the database as it is at one moment, however long the writing takes. Readers and writers go on.
func (s Source) Write(ctx context.Context, to io.Writer) (manifest Manifest, err error) {
	manifest = Manifest{Format: format, Program: s.Program, Created: s.Now().UTC(), Versions: map[string]int64{}, Keys: []string{}}
	for _, schema := range s.Schemas {
		if manifest.Versions[schema.Owner], _, err = schema.Version(ctx, s.DB); err != nil {
			return manifest, err
		}
	}
	tables, err := database.TablesOf(ctx, s.Schemas)
	if err != nil {
		return manifest, err
	}
	tables = slices.DeleteFunc(tables, func(table database.Table) bool {
		return slices.ContainsFunc(s.Schemas, func(schema database.Schema) bool { return slices.Contains(schema.Scratch, table.Name) })
	})
	handle, err := s.DB.DB()
	if err != nil {
		return manifest, err
	}
	connection, err := handle.Conn(ctx)
	if err != nil {
		return manifest, err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	// One snapshot for all tables: SQLite's begins with the first read (https://www.sqlite.org/isolation.html).
	begin := []string{"BEGIN"}
	if s.DB.Name() == database.Postgres {
		begin = []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0"}
	}
	for _, statement := range begin {
		if _, err := connection.ExecContext(ctx, statement); err != nil {
			return manifest, fmt.Errorf("begin the backup: %w", err)
		}
	}
	defer func() {
		_, ended := connection.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing was written
		err = errors.Join(err, ended)
	}()
	archive := zip.NewWriter(to)
	for _, table := range tables {
		written, err := s.writeTable(ctx, connection, archive, table, &manifest)
		if err != nil {
			return manifest, fmt.Errorf("back up the table %s: %w", table.Name, err)
		}
		manifest.Tables = append(manifest.Tables, written)
	}
	slices.Sort(manifest.Keys)
	entry, err := archive.Create(manifestName)
	if err != nil {
		return manifest, err
	}
	encoder := json.NewEncoder(entry)
	encoder.SetIndent("", "  ")
	return manifest, errors.Join(encoder.Encode(manifest), archive.Close())
}

func (s Source) writeTable(ctx context.Context, from *sql.Conn, archive *zip.Writer, table database.Table, manifest *Manifest) (Table, error) {
	written := Table{Name: table.Name}
	for _, column := range table.Columns {
		written.Columns = append(written.Columns, column.Name)
	}
	entry, err := archive.Create(folder + table.Name + ".jsonl")
	if err != nil {
		return written, err
	}
	sum := sha256.New()
	lines := bufio.NewWriterSize(io.MultiWriter(entry, sum), 1<<16)
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	rows, err := from.QueryContext(ctx, "SELECT "+strings.Join(written.Columns, ", ")+" FROM "+table.Name)
	if err != nil {
		return written, err
	}
	defer rows.Close()
	values, into := make([]any, len(written.Columns)), make([]any, len(written.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return written, err
		}
		for i, value := range values {
			if text, ok := value.(string); ok {
				if id, sealed := s.KeyOf(text); sealed && !slices.Contains(manifest.Keys, id) {
					manifest.Keys = append(manifest.Keys, id)
				}
			}
			if number, ok := value.(int64); ok && table.Columns[i].Type == "boolean" { // SQLite has none
				value = number != 0
			}
			values[i] = portable(value)
		}
		if err := encoder.Encode(values); err != nil {
			return written, err
		}
		written.Rows++
	}
	if err := errors.Join(rows.Err(), lines.Flush()); err != nil {
		return written, err
	}
	written.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return written, nil
}

// raw is the form of bytes, and of texts that are no UTF-8, in a line.
type raw struct {
	Base64 string `json:"base64"`
	Text   bool   `json:"text,omitempty"`
}

// portable is the form of a value in a line.
func portable(value any) any {
	switch v := value.(type) {
	case []byte:
		return raw{Base64: base64.StdEncoding.EncodeToString(v)}
	case string:
		if !utf8.ValidString(v) {
			return raw{Base64: base64.StdEncoding.EncodeToString([]byte(v)), Text: true}
		}
	}
	return value
}

// stored is the value of a line as a driver takes it.
func stored(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole, nil
		}
		return v.Float64()
	case map[string]any:
		text, _ := v["base64"].(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if v["text"] == true {
			return string(decoded), err
		}
		return decoded, err
	}
	return value, nil
}
