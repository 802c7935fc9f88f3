// Package store keeps environments and everything that belongs to them (sessions, tasks, reports, steps, attributes, sealed
// secrets) in the database. Rows that change together change in one transaction, here and nowhere else.
package store

import (
	"context"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Errors that callers translate for users. Each method lists the ones it returns.
var (
	ErrNotFound  = errors.New("no such row")
	ErrDuplicate = errors.New("there is such a row already")
	ErrBusy      = errors.New("the environment is deploying or deleting")
	ErrFenced    = errors.New("another worker goes on with the task")
	ErrEnded     = errors.New("the task has ended")
	ErrNoFailure = errors.New("the task is not its environment's last one, or has not failed")
	ErrStale     = errors.New("the session is older than the environment, or not open")
)

// Store is safe for concurrent use. Its rows are read and written by a type for each subject.
type Store struct{ *handle }

// handle is the database as all subjects use it: its transactions, clock and seal, and the caches.
type handle struct {
	db         *gorm.DB
	now        func() time.Time
	sealer     Sealer
	quotas     quota.Table
	undelete   time.Duration // how long deleted environments stay
	watchers   watchers
	shared     chan string // ids of tasks that this process has changed, for others; they may be lost
	ledger     *database.Ledger
	remembered remembered
	models     *models
	logs       LogLimits
	gathered   together
}

// ledger is the table in which transactions enter themselves.
const ledger = "commits"

// Option is an option of New.
type Option func(*Store)

// Sealed makes the columns that can hold users' secrets unreadable without the sealer's key.
func Sealed(sealer Sealer) Option { return func(s *Store) { s.sealer = sealer } }

// Schema is the tables of this store.
func Schema() database.Schema {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return database.Schema{Owner: "orchestrator", Files: files, Scratch: []string{ledger}}
}

// New migrates the tables. now is the clock of the rows' times; nil is time.Now.
func New(ctx context.Context, db *gorm.DB, now func() time.Time, options ...Option) (*Store, error) {
	if err := Schema().Migrate(ctx, db); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	s := &Store{&handle{db: db, models: newModels(), logs: DefaultLogLimits, shared: make(chan string, maxShared), now: now, quotas: quotas(), ledger: database.NewLedger(ledger)}}
	if err := s.ledger.Sweep(db.WithContext(ctx)); err != nil {
		return nil, fmt.Errorf("sweep the ledger of transactions: %w", err)
	}
	for _, option := range options {
		option(s)
	}
	if s.remembered.listings != nil {
		if err := s.watch(db); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// NewID returns an id as Murano's rows and objects have them: 32 hexadecimal digits.
func NewID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// clock returns the row time of now.
func (s *handle) clock() Time { return Time(s.now().UTC().UnixMicro()) }

// databaseClock returns the time by which leases end. SQLite has one process, whose clock that is.
func (s *handle) databaseClock(tx *gorm.DB) (Time, error) {
	if tx.Name() != database.Postgres {
		return s.clock(), nil
	}
	var now Time
	err := tx.Raw("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint").Scan(&now).Error
	return now, err
}

// forUpdate is the lock of a row that is about to be changed: not so strong that it stops others from adding rows that refer to it
// (https://www.postgresql.org/docs/15/explicit-locking.html).
const forUpdate = "NO KEY UPDATE"

// locked makes the query lock the rows it reads until the transaction ends, where rows can be locked (PostgreSQL); SQLite has one
// writer. An environment's row is locked before the rows of its sessions.
func locked(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.Locking{Strength: forUpdate}) }

// transaction runs do, which must use tx only, because SQLite has one connection that writes, and must bear to be run again.
func (s *handle) transaction(ctx context.Context, what string, do func(tx *gorm.DB) error) error {
	err := s.remembering(ctx, func(ctx context.Context) error {
		return database.Transaction(s.rows(ctx), s.ledger, do)
	})
	return wrap(err, what)
}

// Proof returns the one value by which servers find out whether they seal under the same key; it is the given one when there was
// none.
func (s Keys) Proof(ctx context.Context, sealed string) (string, error) {
	type keyProof struct {
		ID     int
		Sealed string
	}
	row := keyProof{ID: 1, Sealed: sealed}
	err := s.transaction(ctx, "compare keys", func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
		return tx.Where("id = 1").Take(&row).Error
	})
	return row.Sealed, err
}

// readOne reads the row of a query; ErrNotFound where there is none.
func readOne[row any](query *gorm.DB, what string) (found row, err error) {
	err = query.Take(&found).Error
	return found, wrap(err, what)
}

// readAll reads the rows of a query.
func readAll[row any](query *gorm.DB, what string) (found []row, err error) {
	err = query.Find(&found).Error
	return found, wrap(err, what)
}

// matching narrows a query by the values of columns; "" matches all.
func matching(query *gorm.DB, values map[string]string) *gorm.DB {
	for column, value := range values {
		if value != "" {
			query = query.Where(column+" = ?", value)
		}
	}
	return query
}

// affected is the error of a statement that writes; ErrNotFound where it has changed no row.
func affected(written *gorm.DB) error {
	if written.Error == nil && written.RowsAffected == 0 {
		return ErrNotFound
	}
	return written.Error
}

// wrap adds the failed operation and maps driver errors to the errors of this package.
func wrap(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case fault.KindOf(err) != 0:
		return err // it is complete
	case database.IsNotFound(err):
		err = ErrNotFound
	case database.IsDuplicate(err):
		err = ErrDuplicate
	}
	return fmt.Errorf("%s: %w", what, err)
}
