package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/wait"
)

// pauses are the pauses between tries while PostgreSQL is unavailable, or other transactions conflict.
var pauses = wait.Policy{First: 20 * time.Millisecond, Most: time.Second, Jitter: 0.5}

// Ledger is a table in which each transaction over PostgreSQL enters itself, so that one whose commit got no answer is not done twice: the number that a
// database gives a transaction may be given again after a crash. The table has the columns id (a text, the primary key) and written (a time in seconds).
// It is safe for concurrent use.
type Ledger struct {
	table string

	mutex    sync.Mutex
	answered []string // whose entries are not needed any more
}

// NewLedger makes the ledger of a table.
func NewLedger(table string) *Ledger { return &Ledger{table: table} }

// sweptAtOnce is how many entries that are not needed any more a transaction removes.
const sweptAtOnce = 16

// Sweep removes entries of servers that ended in the middle of a transaction.
func (l *Ledger) Sweep(db *gorm.DB) error {
	if db.Name() != Postgres {
		return nil // nothing is entered
	}
	return db.Exec("DELETE FROM "+l.table+" WHERE written < ?", time.Now().Add(-24*time.Hour).Unix()).Error
}

// enter enters a transaction; done means that it is in the ledger already, and so was committed.
func (l *Ledger) enter(tx *gorm.DB, id string, old []string) (done bool, err error) {
	entered := tx.Exec("WITH answered AS (DELETE FROM "+l.table+" WHERE id IN ?) INSERT INTO "+l.table+" (id, written) VALUES (?, ?) ON CONFLICT DO NOTHING",
		append(old, ""), id, time.Now().Unix())
	return entered.RowsAffected == 0, entered.Error
}

func (l *Ledger) take() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count := min(len(l.answered), sweptAtOnce)
	old := slices.Clone(l.answered[:count])
	l.answered = l.answered[count:]
	return old
}

func (l *Ledger) put(ids ...string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.answered = append(l.answered, ids...)
}

var errDone = errors.New("an earlier try was committed")

// Transaction runs do in a transaction. Over PostgreSQL it runs it again when the database ended it because of a conflict or was unavailable, as in a
// restart or a fail-over: for the patience of OpenPostgres, or until the context of db ends. So do must use tx only and be repeatable. Without a ledger
// (nil) it is not run again after a commit whose answer was lost.
func Transaction(db *gorm.DB, ledger *Ledger, do func(tx *gorm.DB) error) error {
	pool, ok := db.Statement.ConnPool.(patientPool)
	if !ok {
		return db.Transaction(do)
	}
	ctx, id := db.Statement.Context, uuid.NewString()
	var old []string
	if ledger != nil {
		old = ledger.take()
	}
	err := pauses.For(pool.patience).Until(ctx, func(context.Context) error {
		committing := false
		err := db.Transaction(func(tx *gorm.DB) error {
			if ledger != nil {
				if done, err := ledger.enter(tx, id, old); done && err == nil {
					return errDone
				} else if err != nil {
					return err
				}
			}
			err := do(tx)
			committing = err == nil
			return err
		})
		if errors.Is(err, errDone) {
			return nil
		}
		if err == nil || ctx.Err() != nil || !IsTransient(err) || committing && ledger == nil {
			return err
		}
		return wait.Again(err)
	})
	if ledger != nil {
		if err == nil {
			ledger.put(id)
		} else {
			ledger.put(old...)
		}
	}
	return err
}

// IsTransient reports whether a statement or a transaction failed because of concurrent ones, or because PostgreSQL is unavailable: another try may
// succeed.
func IsTransient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// https://www.postgresql.org/docs/15/errcodes-appendix.html: connection exceptions; a serialization failure, a deadlock; shut
		// down by an administrator or a crash, or not ready; a standby that is not the primary yet; too many connections.
		return strings.HasPrefix(pg.Code, "08") || slices.Contains([]string{"40001", "40P01", "57P01", "57P02", "57P03", "25006", "53300"}, pg.Code)
	}
	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.As(err, &connecting) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// patientConnector waits for a PostgreSQL that is away.
type patientConnector struct {
	driver.Connector
	patience time.Duration
}

// Connect implements driver.Connector.
func (c patientConnector) Connect(ctx context.Context) (connection driver.Conn, err error) {
	err = pauses.For(c.patience).Until(ctx, func(patient context.Context) error {
		made, err := c.Connector.Connect(patient)
		if err != nil && patient.Err() == nil && IsTransient(err) {
			return wait.Again(err)
		}
		if err == nil {
			connection = wholeAnswers{made.(*stdlib.Conn)}
		}
		return err
	})
	return connection, err
}

// wholeAnswers is a connection that reads the answer to a query to its end before it returns any of it. So an interruption is an error of the query, which
// can be repeated, and not of the reader of its rows.
type wholeAnswers struct{ *stdlib.Conn }

// QueryContext implements driver.QueryerContext.
func (c wholeAnswers) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	found, err := c.Conn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	rows := &wholeAnswer{Rows: found.(*stdlib.Rows)}
	for {
		row := make([]driver.Value, len(found.Columns()))
		if err := found.Next(row); err == io.EOF {
			return rows, found.Close()
		} else if err != nil {
			return nil, errors.Join(err, found.Close())
		}
		rows.left = append(rows.left, row)
	}
}

// wholeAnswer is an answer that was read to its end.
type wholeAnswer struct {
	*stdlib.Rows // knows the columns
	left         [][]driver.Value
}

// Next implements driver.Rows.
func (r *wholeAnswer) Next(row []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(row, r.left[0])
	r.left = r.left[1:]
	return nil
}

// Close implements driver.Rows.
func (r *wholeAnswer) Close() error { return nil }

// patientPool repeats interrupted calls that change nothing outside of transactions: reading, and beginning a transaction.
type patientPool struct {
	*sql.DB
	patience time.Duration
}

// GetDBConn returns the handle below to gorm.
func (p patientPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// QueryContext implements gorm.ConnPool.
func (p patientPool) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	if !strings.HasPrefix(query, "SELECT") && !strings.HasPrefix(query, "WITH") {
		return p.DB.QueryContext(ctx, query, args...)
	}
	err = p.again(ctx, func() error {
		rows, err = p.DB.QueryContext(ctx, query, args...)
		return err
	})
	return rows, err
}

// BeginTx implements gorm.TxBeginner.
func (p patientPool) BeginTx(ctx context.Context, options *sql.TxOptions) (tx *sql.Tx, err error) {
	err = p.again(ctx, func() error {
		tx, err = p.DB.BeginTx(ctx, options)
		return err
	})
	return tx, err
}

func (p patientPool) again(ctx context.Context, try func() error) error {
	return pauses.For(p.patience).Until(ctx, func(context.Context) error {
		err := try()
		if err != nil && ctx.Err() == nil && IsTransient(err) {
			return wait.Again(err)
		}
		return err
	})
}
