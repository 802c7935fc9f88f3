package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/audit"
)

// held are the resources that a server opens before it connects to the cloud: the state folder, the database, and the logs.
type held struct {
	*given
	budget   *scratch.Budget
	checker  *snapshot.Checker
	sealer   *secret.Sealer
	db       *gorm.DB
	rows     *store.Store
	running  *blackbox.Box
	account  *audit.Log
	keystone *keystone

	ends []func() error // close the resources at the end, in reverse order
}

func (h *held) close() error {
	var failures []error
	for _, end := range slices.Backward(h.ends) {
		failures = append(failures, end())
	}
	return errors.Join(failures...)
}

// openState opens the state folder, then the database. The caller closes the result also after an error.
func openState(ctx context.Context, given *given) (*held, error) {
	h := &held{given: given}
	for _, open := range []func(context.Context) error{h.openFolder, h.openRows, h.openLogs} {
		if err := open(ctx); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *held) openFolder(context.Context) error {
	if err := os.MkdirAll(h.options.State, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	unlock, err := LockState(h.options.State)
	if err != nil {
		return err
	}
	h.ends = append(h.ends, unlock)
	temporary, err := h.options.emptyScratch()
	if err != nil {
		return err
	}
	h.budget = scratch.New(temporary, h.options.scratchSpace)
	h.checker = snapshot.NewChecker(h.binary, h.budget, checkerIdle)
	h.ends = append(h.ends, func() error { h.checker.Close(); return nil }) // requests that wait for a check have ended by then
	h.sealer, err = secret.Open(h.options.KeyFile())
	return err
}

func (h *held) openRows(ctx context.Context) (err error) {
	if h.db, err = h.options.OpenDatabase(ctx); err != nil {
		return err
	}
	h.ends = append(h.ends, func() error { return database.Close(h.db) })
	storing := []store.Option{store.Sealed(h.sealer), store.Quotas(h.options.quotaLimits()), store.LimitLogs(store.DefaultLogLimits), store.Undelete(h.options.undelete)}
	if h.options.sole() {
		storing = append(storing, store.Alone())
	}
	if h.rows, err = store.New(ctx, h.db, time.Now, storing...); err != nil {
		return err
	}
	return CheckKey(ctx, h.rows, h.sealer)
}

// openLogs opens the metrics, the list of running work and the audit log.
func (h *held) openLogs(ctx context.Context) (err error) {
	if err := measure(h.metrics, h.db); err != nil {
		return err
	}
	h.metrics.MustRegister(newLoad(h.rows, h.logger))
	h.keystone = watchedKeystone(h.metrics, h.logger)
	if h.running, err = openBlackBox(ctx, filepath.Join(h.options.State, "running"), h.rows, h.logger); err != nil {
		return err
	}
	h.ends = append(h.ends, h.running.Close)
	account, end, err := h.options.openAudit(h.rows, h.logger)
	if err != nil {
		return err
	}
	h.account, h.ends = account, append(h.ends, end)
	return nil
}

// databaseAnswers is a check of /readyz.
func (h *held) databaseAnswers() api.Check {
	return api.Check{Name: "database", Check: func(ctx context.Context) error { return database.Answers(ctx, h.db) }}
}

// listen answers that the server starts. stop ends the streams.
func (h *held) listen(stop func()) (*listeners, error) {
	starting := api.Starting(api.Config{
		Checks:  []api.Check{h.databaseAnswers(), {Name: "keystone", Check: func(context.Context) error { return errStarting }}},
		Metrics: h.metrics, MetricsElsewhere: h.options.metricsListen != "", Logger: h.logger,
	})
	return h.options.open(starting, h.metrics, stop, h.logger)
}
