package database

import (
	"database/sql"
	"errors"
	"runtime"

	"gorm.io/gorm"
)

// minReaders is how many connections to SQLite may read at the same time, at least; more where there are more processors.
const minReaders = 4

// writer is the one connection that writes to SQLite, with the reading ones beside it. In WAL mode neither waits for the other
// (https://www.sqlite.org/wal.html#concurrency).
type writer struct {
	*sql.DB
	readers *sql.DB
}

// GetDBConn returns the handle below to gorm.
func (w writer) GetDBConn() (*sql.DB, error) { return w.DB, nil }

// withReaders gives the handle, which has the one connection to the file of dsn, connections beside it that read.
func withReaders(db *gorm.DB, handle *sql.DB, dsn string) error {
	readers, err := openSQLite(dsn, max(minReaders, runtime.GOMAXPROCS(0)))
	if err != nil {
		return err
	}
	db.Statement.ConnPool = writer{handle, readers}
	db.ConnPool = db.Statement.ConnPool
	return nil
}

// Reading returns the handle for statements that only read, outside of a transaction: they see committed data and wait for no writer.
func Reading(db *gorm.DB) *gorm.DB {
	pool, ok := db.Statement.ConnPool.(writer)
	if !ok {
		return db
	}
	reading := db.WithContext(db.Statement.Context) // a statement of its own
	reading.Statement.ConnPool = pool.readers
	return reading
}

// Close closes the handle.
func Close(db *gorm.DB) error {
	handle, err := db.DB()
	if err != nil {
		return err
	}
	if pool, ok := db.ConnPool.(writer); ok {
		err = pool.readers.Close()
	}
	return errors.Join(err, handle.Close())
}
