// Package database opens the one database handle that all stores share, brings each store's tables up to date, and tells
// what a driver's error means.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Postgres is what gorm.DB.Name answers over PostgreSQL.
const Postgres = "postgres"

const (
	// maxConnections is how many connections one server holds to PostgreSQL.
	maxConnections = 10
	// connectionsOfOthers are those that requests which only read leave to everything else.
	connectionsOfOthers = 2
	// maxIdle is how long one that is not used is kept.
	maxIdle = 5 * time.Minute
	// connectTimeout is how long one attempt to connect may take when the address does not say.
	connectTimeout = 10 * time.Second
	// lockPatience is how long a writer waits for the one lock of an SQLite file. SQLite asks for it ten times a second and gives it to whoever
	// asks first, so that beside a process that writes without pause another one, as burano db reseal, may wait for many seconds.
	lockPatience = time.Minute
	// migrationPatience is how long a migration waits for a lock, and how long one of a server that was stopped holds its own.
	migrationPatience = time.Minute
)

// Open opens the SQLite file at path, and makes it when it is not there. The file has one writer at a time; a busy writer is
// waited for up to a minute. Reading gives its readers.
func Open(path string) (*gorm.DB, error) {
	// _txlock=immediate takes the write lock at BEGIN, so that a transaction
	// never has to upgrade a read lock (https://www.sqlite.org/lang_transaction.html). In WAL mode only synchronous=FULL makes a
	// commit survive a loss of power (https://www.sqlite.org/pragma.html#pragma_synchronous).
	file := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", path, lockPatience.Milliseconds())
	dsn := file + "&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	handle, err := openSQLite(dsn, 1)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	db, err := gorm.Open(sqlite.Dialector{Conn: handle}, &gorm.Config{
		Logger:         logger.Discard, // errors are returned; slow queries are not this package's business
		TranslateError: false,          // gorm's translation does not know the pure-Go driver
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, handle.Close()))
	}
	if err := withReaders(db, handle, file+"&_pragma=query_only(1)"); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, handle.Close()))
	}
	return db, nil
}

// OpenPostgres opens the PostgreSQL database that a URL or a list of keywords names. A statement that takes longer than patience,
// and a transaction that is idle for so long, are ended by the database: so a server that was stopped in the middle of one does
// not hold its locks against the others for longer. A database that is away, as in a restart or a fail-over, is waited for twice as long
// with each statement that reads and each transaction.
func OpenPostgres(ctx context.Context, dsn string, patience time.Duration) (*gorm.DB, error) {
	return OpenSchema(ctx, dsn, patience, "")
}

// Application is what connections call themselves, where the address does not say.
const Application = "burano"

// OpenSchema is OpenPostgres for tables in a schema other than the user's own.
func OpenSchema(ctx context.Context, dsn string, patience time.Duration, schema string) (*gorm.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err) // pgx masks a password in it
	}
	// https://www.postgresql.org/docs/15/runtime-config-client.html; in milliseconds.
	limit := strconv.FormatInt(patience.Milliseconds(), 10)
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[name] = limit
	}
	if _, given := config.RuntimeParams["application_name"]; !given {
		config.RuntimeParams["application_name"] = Application
	}
	if schema != "" {
		config.RuntimeParams["search_path"] = schema
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	handle := sql.OpenDB(patientConnector{stdlib.GetConnector(*config), 2 * patience})
	handle.SetMaxOpenConns(maxConnections)
	handle.SetMaxIdleConns(maxConnections)
	handle.SetConnMaxIdleTime(maxIdle)
	fail := func(err error) (*gorm.DB, error) {
		return nil, errors.Join(fmt.Errorf("open the database %s at %s: %w", config.Database, config.Host, err), handle.Close())
	}
	if err := handle.PingContext(ctx); err != nil {
		return fail(err)
	}
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: patientPool{handle, 2 * patience}}), &gorm.Config{Logger: logger.Discard, TranslateError: false})
	if err == nil {
		err = takeTurns(db, maxConnections-connectionsOfOthers)
	}
	if err != nil {
		return fail(err)
	}
	return db, nil
}

// Schema is the tables of one owner, as numbered SQL files in goose's format. Each owner keeps its own account of those that were
// applied in the table "<owner>_migrations".
type Schema struct {
	Owner string
	Files fs.FS
	// Scratch names the tables whose rows mean nothing outside of their database; backups leave them out.
	Scratch []string
}

// generation is how many numbers files have of one generation: those from 1 to 999 are the first, those from 1000 to 1999 the second. Within a
// generation files only add to what is there, so that an older Burano works with a database that a newer one of its generation has brought
// up to date, and the servers of a database can be upgraded one after the other. What an older one cannot work with begins a
// generation.
const generation = 1000

// Migrate applies the files that the database has not seen yet. A database of a newer Burano of the same generation stays as it is; one of
// a later generation is refused.
func (s Schema) Migrate(ctx context.Context, db *gorm.DB) error {
	return s.migrate(ctx, db, func(ctx context.Context, provider *goose.Provider) error {
		_, err := provider.Up(ctx)
		return err
	})
}

// MigrateTo applies the files up to a version only, as a Burano of that time did.
func (s Schema) MigrateTo(ctx context.Context, db *gorm.DB, version int64) error {
	return s.migrate(ctx, db, func(ctx context.Context, provider *goose.Provider) error {
		if _, want, err := s.versions(ctx, provider); err != nil || version > want {
			return errors.Join(err, fmt.Errorf("it needs version %d, and this Burano knows %d: use a newer one", version, want))
		}
		_, err := provider.UpTo(ctx, version)
		return err
	})
}

func (s Schema) migrate(ctx context.Context, db *gorm.DB, up func(context.Context, *goose.Provider) error) error {
	handle, release, err := patient(ctx, db)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", s.Owner, err)
	}
	defer release()
	provider, err := s.provider(db, handle)
	if err != nil {
		return err
	}
	have, want, err := s.versions(ctx, provider)
	if err == nil {
		err = Compatible(have, want)
	}
	if err == nil && have <= want {
		err = up(ctx, provider)
	}
	if err != nil {
		return fmt.Errorf("migrate %s: %w", s.Owner, err)
	}
	return nil
}

// Compatible tells whether a Burano that knows version want can work with a database that has version have (Version): not with one of a
// later generation.
func Compatible(have, want int64) error {
	if have/generation > want/generation {
		return fmt.Errorf("the database has version %d, and this Burano knows %d: it was used by a newer one; start that, or restore a backup", have, want)
	}
	return nil
}

// Version tells the number of the last file that the database has seen, 0 when none, and of the last one that there is.
func (s Schema) Version(ctx context.Context, db *gorm.DB) (have, want int64, err error) {
	handle, err := db.DB()
	if err != nil {
		return 0, 0, fmt.Errorf("look up the version of %s: %w", s.Owner, err)
	}
	provider, err := s.provider(db, handle)
	if err != nil {
		return 0, 0, err
	}
	if have, want, err = s.versions(ctx, provider); err != nil {
		return 0, 0, fmt.Errorf("look up the version of %s: %w", s.Owner, err)
	}
	return have, want, nil
}

// patient returns a handle for migrations. Over PostgreSQL it is one of its own, because a change of a large table may take longer than
// any other statement may.
func patient(ctx context.Context, db *gorm.DB) (handle *sql.DB, release func(), err error) {
	handle, err = db.DB()
	if err != nil || db.Name() != Postgres {
		return handle, func() {}, err
	}
	config, err := postgresConfig(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	limit := strconv.FormatInt(migrationPatience.Milliseconds(), 10)
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["lock_timeout"], config.RuntimeParams["idle_in_transaction_session_timeout"] = limit, limit
	own := stdlib.OpenDB(*config)
	return own, func() { _ = own.Close() }, nil
}

// Table is where it is kept what was applied.
func (s Schema) Table() string { return s.Owner + "_migrations" }

func (s Schema) provider(db *gorm.DB, handle *sql.DB) (*goose.Provider, error) {
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption{goose.WithTableName(s.Table())}
	if db.Name() == Postgres {
		// Several servers may start at the same time.
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, fmt.Errorf("migrate %s: %w", s.Owner, err)
		}
		dialect, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, handle, s.Files, options...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations of %s: %w", s.Owner, err)
	}
	return provider, nil
}

func (s Schema) versions(ctx context.Context, provider *goose.Provider) (have, want int64, err error) {
	for _, source := range provider.ListSources() {
		want = max(want, source.Version)
	}
	have, err = provider.GetDBVersion(ctx)
	return have, want, err
}

// IsDuplicate tells whether err says that a unique key is taken.
func IsDuplicate(err error) bool {
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlitelib.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	var pg *pgconn.PgError
	// 23505 is unique_violation (PostgreSQL, appendix A).
	return errors.As(err, &pg) && pg.Code == "23505"
}

// IsNotFound tells whether err says that no row matched.
func IsNotFound(err error) bool { return errors.Is(err, gorm.ErrRecordNotFound) }

// Like returns a LIKE pattern (with '\' as its escape character) for values that contain text.
func Like(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
