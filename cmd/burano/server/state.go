package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gorm.io/gorm"

	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/audit"
)

// LockState makes this process the only server that uses the state folder until release is called or the process is gone.
func LockState(folder string) (release func() error, err error) {
	path := filepath.Join(folder, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	// The lock belongs to the open file: the kernel takes it away with the process, however that ends.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the state folder %s: %w", folder, err)
		}
		holder, _ := os.ReadFile(path)
		return nil, fmt.Errorf("the state folder %s is used by another Burano server (process %s), and it serves one at a time: stop that one, or give this one a folder of its own by --state (several servers share the work over PostgreSQL: --database)",
			folder, strings.TrimSpace(string(holder)))
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close, nil
}

// emptyScratch makes the folder for temporary files, such as snapshots that are checked. It removes the files that a killed server left there, which may
// be secrets of clusters. Only the server that has locked the state folder may call it.
func (o *Options) emptyScratch() (folder string, err error) {
	folder = filepath.Join(o.State, "temporary-files")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder for temporary files: %w", err)
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("empty the folder for temporary files: %w", err)
	}
	for _, one := range left {
		if err := os.RemoveAll(filepath.Join(folder, one.Name())); err != nil {
			return "", fmt.Errorf("empty the folder for temporary files: %w", err)
		}
	}
	return folder, nil
}

// OpenDatabase opens the database that the options name: PostgreSQL, or SQLite in the state folder.
func (o *Options) OpenDatabase(ctx context.Context) (*gorm.DB, error) {
	if o.Database == "" {
		return database.Open(o.SQLite())
	}
	// A server that was stopped in the middle of a transaction must have lost it before another one takes its tasks over.
	return database.OpenPostgres(ctx, o.Database, o.Lease/3)
}

// KeyFile is where the server keeps the keys of its secrets.
func (o *Options) KeyFile() string { return filepath.Join(o.State, "secret.key") }

// SQLite is where the server keeps its database when no other is named.
func (o *Options) SQLite() string { return filepath.Join(o.State, "burano.db") }

// CheckKey refuses a key under which the database's secrets are not sealed: of a second server that made a key of its own, or of a
// first one that lost it.
func CheckKey(ctx context.Context, rows *store.Store, sealer *secret.Sealer) error {
	sealed, err := rows.Keys().Proof(ctx, sealer.Seal(store.ProofOwner, []byte(store.ProofOwner)))
	if err != nil {
		return err
	}
	if _, err := sealer.Open(store.ProofOwner, sealed); err != nil {
		return fmt.Errorf("the secrets in the database are sealed under another key: put the secret.key of the server that made the database into the folder of --state (%w)", err)
	}
	return nil
}

// openAudit begins the audit log that the options ask for. end writes the entries that still wait.
func (o *Options) openAudit(rows *store.Store, logger *slog.Logger) (account *audit.Log, end func() error, err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("find the name of this server for the audit log: %w", err)
	}
	config := audit.Config{Rows: rows.Audit(), Keep: o.auditKeep, Most: auditRows, Observer: host, Now: time.Now, Logger: logger}
	closeLines := func() error { return nil }
	switch o.auditLog {
	case "":
	case "-":
		config.Lines = os.Stderr
	default:
		file, err := os.OpenFile(o.auditLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the audit log: %w", err)
		}
		config.Lines, closeLines = file, file.Close
	}
	account = audit.New(config)
	stop := account.Start()
	return account, func() error {
		stop()
		return closeLines()
	}, nil
}

// openBlackBox opens the list of running work in the state folder. It keeps the work that ran when the former process died.
func openBlackBox(ctx context.Context, path string, rows *store.Store, logger *slog.Logger) (*blackbox.Box, error) {
	box, ran, more, err := blackbox.Open(path)
	if err != nil {
		return nil, err
	}
	for _, work := range ran {
		logger.Warn("the former process died while this ran", "kind", work.Kind, "project", work.Project, "what", work.What, "beside", len(ran)-1, "more", more)
	}
	if err := rows.Deaths().Note(ctx, ran, more, builtAs()); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	suspects, err := rows.Deaths().Suspects(ctx, builtAs())
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	box.Suspect(suspects)
	return box, nil
}

// builtAs is the version of Burano, as deaths are counted by it.
func builtAs() string { return version.Version + " " + version.Commit() }

// suspectsEvery is how often a server reads which work killed other servers, and which work is admitted again.
const suspectsEvery = 15 * time.Second

// keepSuspects keeps the list of refused work up to date, until ctx ends.
func keepSuspects(ctx context.Context, box *blackbox.Box, rows *store.Store, logger *slog.Logger) {
	ticker := time.NewTicker(suspectsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-box.Survived():
			if err := rows.Deaths().Survived(ctx, key); err != nil && ctx.Err() == nil {
				logger.Warn("it could not be written that a work ended no server this time", "error", err)
			}
			continue
		case <-ticker.C:
		}
		suspects, err := rows.Deaths().Suspects(ctx, builtAs())
		if err != nil {
			if ctx.Err() == nil {
				logger.Warn("what servers died over cannot be looked up", "error", err)
			}
			continue
		}
		box.Suspect(suspects)
	}
}

// versionEvery is how often a server looks whether the database has become one that it cannot work with.
const versionEvery = 30 * time.Second

// watchVersion ends the server, with an error, once a newer one has begun a later generation of the database.
func watchVersion(ctx context.Context, db *gorm.DB, every time.Duration, logger *slog.Logger) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, schema := range Schemas() {
			have, want, err := schema.Version(ctx, db)
			if err != nil {
				if ctx.Err() == nil {
					logger.Warn("the version of the database cannot be looked up", "error", err)
				}
				continue
			}
			if err := database.Compatible(have, want); err != nil {
				return err
			}
		}
	}
}

// Schemas are all tables of the server's database.
func Schemas() []database.Schema {
	return []database.Schema{catalogstore.Schema(), store.Schema()}
}
