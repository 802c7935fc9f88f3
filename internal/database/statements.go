package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"modernc.org/sqlite"
)

// maxStatements is the number of prepared statements of a connection to SQLite; the one that was not used for longest goes first. A list in a statement
// makes another one of each length.
const maxStatements = 256

// openSQLite returns a handle of so many connections.
func openSQLite(dsn string, connections int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	handle := sql.OpenDB(preparing{connector})
	handle.SetMaxOpenConns(connections)
	handle.SetMaxIdleConns(connections)
	return handle, nil
}

// preparing opens connections to SQLite that parse a statement once and not with each use, which takes longer than most take to run.
// PostgreSQL's driver does so by itself.
type preparing struct{ driver.Connector }

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := simplelru.NewLRU[string, sqliteStatement](maxStatements, nil)
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return &preparedConnection{sqliteConnection: made.(sqliteConnection), kept: kept}, nil
}

// The parts of SQLite's driver that database/sql uses.
type (
	sqliteConnection interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
		driver.Pinger
		driver.SessionResetter
		driver.Validator
	}
	sqliteStatement interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	sqliteRows interface {
		driver.RowsColumnTypeDatabaseTypeName
		driver.RowsColumnTypeLength
		driver.RowsColumnTypeNullable
		driver.RowsColumnTypePrecisionScale
		driver.RowsColumnTypeScanType
	}
)

// preparedConnection keeps statements by their texts. One that runs is not among them, so that the same text can be run beside it. SQLite
// prepares them anew by itself when a table has changed (https://www.sqlite.org/c3ref/prepare.html). database/sql uses a connection, and
// the rows that are read through it, by one goroutine at a time.
type preparedConnection struct {
	sqliteConnection
	kept *simplelru.LRU[string, sqliteStatement]
}

// ExecContext implements driver.ExecerContext.
func (c *preparedConnection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !keepable(query) {
		return c.sqliteConnection.ExecContext(ctx, query, args)
	}
	statement, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := statement.ExecContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, statement.Close())
	}
	return result, c.keep(query, statement)
}

// QueryContext implements driver.QueryerContext.
func (c *preparedConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !keepable(query) {
		return c.sqliteConnection.QueryContext(ctx, query, args)
	}
	statement, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := statement.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, statement.Close())
	}
	return &preparedRows{sqliteRows: rows.(sqliteRows), connection: c, query: query, statement: statement}, nil
}

// Close implements driver.Conn.
func (c *preparedConnection) Close() error {
	var errs []error
	for _, statement := range c.kept.Values() {
		errs = append(errs, statement.Close())
	}
	c.kept.Purge()
	return errors.Join(append(errs, c.sqliteConnection.Close())...)
}

// keepable reports whether a statement is likely to be repeated: changes of tables and settings are not.
func keepable(query string) bool {
	verb, _, _ := strings.Cut(query, " ")
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
		return true
	}
	return false
}

// take returns the statement of a text, which belongs to the caller until it is returned or closed.
func (c *preparedConnection) take(ctx context.Context, query string) (sqliteStatement, error) {
	if statement, there := c.kept.Peek(query); there {
		c.kept.Remove(query)
		return statement, nil
	}
	statement, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.(sqliteStatement), nil
}

// keep keeps a statement that has ended well, unless there is one of that text again.
func (c *preparedConnection) keep(query string, statement sqliteStatement) error {
	if c.kept.Contains(query) {
		return statement.Close()
	}
	if c.kept.Len() == maxStatements {
		_, oldest, _ := c.kept.RemoveOldest()
		if err := oldest.Close(); err != nil {
			return errors.Join(err, statement.Close())
		}
	}
	c.kept.Add(query, statement)
	return nil
}

// preparedRows keeps their statement once they are read.
type preparedRows struct {
	sqliteRows
	connection *preparedConnection
	query      string
	statement  sqliteStatement // nil: they are closed
}

// Close implements driver.Rows.
func (r *preparedRows) Close() error {
	statement := r.statement
	if statement == nil {
		return nil
	}
	r.statement = nil
	if err := r.sqliteRows.Close(); err != nil {
		return errors.Join(err, statement.Close())
	}
	return r.connection.keep(r.query, statement)
}
