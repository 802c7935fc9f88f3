// Package server is the server: its settings, the resources that it opens, the wiring of its parts, and its start and end.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/doctor"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/upkeep"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/dashboard"
)

// Command runs the server. examine looks at its surroundings, as burano doctor does.
func Command(examine func(context.Context, *Options) []doctor.Line) *cobra.Command {
	options := &Options{}
	flags := options.Flags()
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: API, web dashboard and engine",
		Long: `Serve answers Murano's API v1 and Burano's own API, serves the web dashboard at /dashboard/, and runs deployments. It signs in to
Keystone as Burano's own service user (clouds.yaml or OS_* variables), which needs a password and the roles admin and service: it
validates tokens and is the trustee of users' trusts.

All of its data are below --state: the database burano.db (SQLite), and the file secret.key, under which secrets in the
database are sealed. One server uses a state folder at a time; a second one refuses to start. Deployments survive the server: the next
start resumes them, after a stop as after a crash. It also empties the folder temporary-files there.

With --database, which names a PostgreSQL database (postgres://user:password@host:5432/name), several servers share the work. Each
has a state folder of its own with the same secret.key: copy the first server's. When a server is stopped, another one takes its work
over at once. When it dies or is disconnected, another one does so once the lease has run out (--lease).

Each setting may also come from the environment (BURANO_DATABASE for --database, which hides a password from the list of processes), or
from the YAML file of --config (database: ...). A flag wins over the environment, and the environment over the file.
--print-config shows all settings and their sources.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			settings, err := options.Resolve(flags)
			if err != nil {
				return err
			}
			if options.print {
				_, err := fmt.Fprint(command.OutOrStdout(), settings.print())
				return err
			}
			logger := options.logger(os.Stderr)
			for _, place := range settings.Former() {
				logger.Warn("this setting has no effect any more: remove it, because the next release refuses it", "place", place)
			}
			return Run(command.Context(), options, examine, logger)
		},
	}
	command.Flags().SortFlags = false
	command.Flags().AddFlagSet(flags)
	return command
}

// errStarting is why a server is not ready that has not signed in to Keystone yet. Why that takes so long is in its log.
var errStarting = errors.New("the server starts and waits for Keystone")

// checkerIdle is how long a process that checks snapshots waits for the next one. It takes some 160 MiB.
const checkerIdle = 10 * time.Second

// Run runs the server until ctx ends.
func Run(ctx context.Context, options *Options, examine func(context.Context, *Options) []doctor.Line, logger *slog.Logger) (err error) {
	block := process.Ballast(process.MostBallast)
	defer runtime.KeepAlive(block)
	var budgets budgets
	budgets.requests, budgets.machines = process.BudgetsOfMemory(process.LimitMemory(process.UsableMemory(os.DirFS("/")), len(block)), len(block))
	started := false
	defer func() {
		if err != nil && !started && ctx.Err() != nil {
			logger.Info("the server was told to stop while it started", "cut off", err)
			err = nil
		}
	}()
	given, err := options.read(logger)
	if err != nil {
		return err
	}
	held, err := openState(ctx, given)
	defer func() { err = errors.Join(err, held.close()) }()
	if err != nil {
		return err
	}
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	listeners, err := held.listen(stop)
	if err != nil {
		return err
	}
	return listeners.serve(ctx, func(work context.Context) error {
		wired, err := connect(work, held, budgets)
		if err != nil {
			return err
		}
		defer wired.meters.Close()
		started = true
		config := wired.api(stopping)
		config.Examine = func(ctx context.Context) []doctor.Line { return examine(ctx, options) }
		listeners.begin(dashboard.Beside(api.New(config)))
		return wired.work(ctx, work)
	})
}

// budgets of memory for the bodies of requests, and for the answers of clusters' machines.
type budgets struct{ requests, machines *memory.Budget }

// work runs tasks, keepers and clean-ups until ctx ends. Tasks are given back as soon as the server is told to stop, also while it still takes requests.
func (w *wiring) work(told, ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(told, stop)()
	always := func(run func(context.Context)) {
		group.Go(func() error { run(ctx); return nil })
	}
	group.Go(func() error { return w.tasks.Run(working) })
	if w.options.keeperInterval > 0 {
		group.Go(func() error { return w.keeper().Run(working) })
	}
	group.Go(func() error { return w.keystone.watch(ctx, w.cloud.Answers) })
	group.Go(func() error { return watchVersion(ctx, w.db, versionEvery, w.logger) })
	always(func(ctx context.Context) { keepSuspects(ctx, w.running, w.rows, w.logger) })
	always(w.restores.RunDrills)
	always(func(ctx context.Context) {
		orchestrator.Tidy(ctx, w.rows, w.options.keep, w.archive.DeleteSnapshot, w.logger)
	})
	always(func(ctx context.Context) {
		if err := w.rows.Share(ctx, w.tasks.Wake); err != nil {
			w.logger.Warn("changes by other servers are seen a second later, because they cannot be listened to", "error", err)
		}
	})
	return group.Wait()
}

// clusterIDs are the ids of the clusters of an environment that were ever up.
func (w *wiring) clusterIDs(ctx context.Context, environmentID string) ([]string, error) {
	return known.ClusterIDs(ctx, w.rows.Secrets(), environmentID)
}

// keeper looks after deployed environments.
func (w *wiring) keeper() *keeper.Keeper {
	every := w.options.keeperInterval
	duties := upkeep.Duties(upkeep.Config{Reach: w.natives.Reach, Secrets: w.tasks, Schedules: w.rows.Hibernations(), Meters: w.meters, Interval: every, Hour: w.options.tests.anHour(), Person: w.person, FirstExpiry: measureCertificates(w.metrics)})
	return keeper.New(keeper.Config{Store: w.rows, Duties: duties,
		Clusters: w.clusterIDs,
		Waits:    w.tasks.HasSuspect, Running: w.running, Memory: w.budgets.machines,
		Project: w.tasks.StandingProject, Wake: w.tasks.Wake, Logger: w.logger, Metrics: w.metrics, Lease: w.options.Lease, Repairs: w.options.keeperRepairs,
		Hibernations: w.options.keeperHibernations,
		RepairAfter:  every / 2, Sole: w.options.sole()})
}

// keystoneV3 is the address of Keystone's API v3, which an endpoint need not name.
func keystoneV3(endpoint string) string {
	endpoint = strings.TrimSuffix(endpoint, "/")
	if strings.HasSuffix(endpoint, "/v3") {
		return endpoint
	}
	return endpoint + "/v3"
}
