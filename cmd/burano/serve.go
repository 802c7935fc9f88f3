package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

// gracePeriod is how long requests may take to end when the server is stopped.
const gracePeriod = 10 * time.Second

// coreLibrary is the package that has the classes of environments.
const coreLibrary = "io.murano"

// minLease is the shortest lease that a server keeps in everyday life.
const minLease = 3 * time.Second

// serveOptions are the settings of the server.
type serveOptions struct {
	listen   string
	state    string
	database string
	lease    time.Duration
	killAt   string
	networks string
	embedded []string

	serverPatience time.Duration
	sshPatience    time.Duration
	stepPatience   time.Duration
	drainPatience  time.Duration
}

func serveCommand(connection *connection) *cobra.Command {
	var options serveOptions
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: API and engine",
		Long: `Serve answers Murano's API v1 and runs deployments. It signs in to Keystone as Burano's own service user (clouds.yaml or OS_*
variables), which needs the roles admin and service: it validates tokens and is the trustee of users' trusts.

Everything it keeps lies below --state: the database burano.db (SQLite), and the file secret.key, under which secrets in the
database are sealed. One server uses a state folder at a time; a second one refuses to start. Deployments survive the server:
one that is stopped gives its deployments back, and the next start goes on with them, as it does after a crash.

With --database, which names a PostgreSQL database (postgres://user:password@host:5432/name), several servers share the work. Each
has a state folder of its own, with the same secret.key: copy the first server's. What a server was doing that is stopped, dies
or is cut off, another one goes on with: at once when it was stopped, else when it was silent for the time of --lease. The variable
BURANO_DATABASE says the same as --database, and is not seen in the list of processes.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return serve(command.Context(), connection, options, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
	command.Flags().StringVar(&options.listen, "listen", "127.0.0.1:8082", "address and port to answer at")
	command.Flags().StringVar(&options.state, "state", "/var/lib/burano", "folder for the database and the key of its secrets")
	command.Flags().StringVar(&options.database, "database", os.Getenv("BURANO_DATABASE"), "URL of a PostgreSQL database, for several servers (default the variable BURANO_DATABASE; without either, SQLite below --state)")
	command.Flags().DurationVar(&options.lease, "lease", engine.DefaultLease, "how long a server may be silent before another goes on with its deployments; the same on all servers, at least 3s")
	command.Flags().StringVar(&options.killAt, "kill-at-step", "", "for tests: kill this process when the step of this name begins (begin:NAME) or before its end is written (end:NAME)")
	_ = command.Flags().MarkHidden("kill-at-step")
	command.Flags().Lookup("database").DefValue = "" // help must not show a password
	command.Flags().StringVar(&options.networks, "networks", "10.20.0.0/16", "range from which environments get a /24 of their own; must not overlap 10.244.0.0/16 (pods) and 10.96.0.0/16 (Services)")
	command.Flags().StringSliceVar(&options.embedded, "embedded-packages", nil, "names of the packages that are offered of those that come with Burano, io.murano among them (default all)")
	command.Flags().DurationVar(&options.serverPatience, "server-patience", 15*time.Minute, "how long the servers of a change may take until all of them are ACTIVE")
	command.Flags().DurationVar(&options.sshPatience, "ssh-patience", 3*time.Minute, "how long a server that is ACTIVE may take until it answers on SSH")
	command.Flags().DurationVar(&options.stepPatience, "step-patience", nodes.DefaultStepPatience, "how long one step of a node may take; the longest is the start of an API server on a slow disk")
	command.Flags().DurationVar(&options.drainPatience, "drain-patience", nodes.DefaultDrainPatience, "how long the pods of a node that is removed may take to go, their grace periods and disruption budgets included")
	return command
}

func serve(ctx context.Context, connection *connection, options serveOptions, logger *slog.Logger) (err error) {
	networks, err := netip.ParsePrefix(options.networks)
	if err != nil {
		return fmt.Errorf("--networks: %w", err)
	}
	if options.lease < minLease {
		return fmt.Errorf("--lease %s: it must be at least %s, or every slow moment of the database would end deployments", options.lease, minLease)
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself, which is copied to the nodes: %w", err)
	}
	credentials, endpoint, _, err := connection.credentials()
	if err != nil {
		return err
	}
	cloud, err := openstack.NewService(ctx, credentials, endpoint)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(options.state, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	unlock, err := lockState(options.state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	sealer, err := secret.Open(filepath.Join(options.state, "secret.key"))
	if err != nil {
		return err
	}
	db, err := options.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close(db)) }()

	packages, err := openCatalog(ctx, db, options.embedded, cloud.ProjectID())
	if err != nil {
		return err
	}
	nativeConfig := native.Config{Binary: binary, Networks: networks, Logger: logger,
		ServerPatience: options.serverPatience, SSHPatience: options.sshPatience, StepPatience: options.stepPatience, DrainPatience: options.drainPatience}
	if err := checkNatives(ctx, nativeConfig); err != nil {
		return err
	}
	rows, err := store.New(ctx, db, time.Now)
	if err != nil {
		return err
	}
	if err := checkKey(ctx, rows, sealer); err != nil {
		return err
	}
	tasks, err := engine.New(ctx, engine.Config{
		Store:   rows,
		Sealer:  sealer,
		Cloud:   cloud,
		Source:  packages.Source,
		Natives: func(runtime *engine.Runtime) muranopl.Natives { return native.Methods(runtime, nativeConfig) },
		Logger:  logger,
		Lease:   options.lease,
		Sole:    options.database == "",
		AtStep:  options.atStep(),
	})
	if err != nil {
		return err
	}
	handler := api.New(api.Config{
		Orchestrator: orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: tasks, Logger: logger}),
		Catalog:      packages,
		Auth:         auth.Keystone(cloud, time.Now),
		Keystone:     credentials.IdentityEndpoint,
		Kubeconfig: func(ctx context.Context, environmentID, objectID string) ([]byte, error) {
			return native.Kubeconfig(ctx, tasks, environmentID, objectID, logger)
		},
		Logger: logger,
	})
	return run(ctx, options.listen, handler, tasks, logger)
}

// openCatalog opens the catalog with the packages that come with Burano, or with those of them that are named. They are shown as the
// service project's.
func openCatalog(ctx context.Context, db *gorm.DB, offered []string, serviceProject string) (*catalog.Service, error) {
	if len(offered) > 0 && !slices.Contains(offered, coreLibrary) {
		return nil, fmt.Errorf("--embedded-packages: %s must be among them, since every environment needs it", coreLibrary)
	}
	embedded, err := apps.Packages()
	if err != nil {
		return nil, fmt.Errorf("read the embedded packages: %w", err)
	}
	rows, err := catalogstore.New(ctx, db)
	if err != nil {
		return nil, err
	}
	return catalog.New(rows, embedded, catalog.OfferEmbedded(offered...), catalog.EmbeddedOwner(serviceProject))
}

// checkNatives compares the native methods that classes declare with those that have a body in Go, both ways.
func checkNatives(ctx context.Context, config native.Config) error {
	embedded, err := apps.Packages()
	if err != nil {
		return err
	}
	var list []muranopl.Package
	for _, one := range embedded {
		list = append(list, one)
	}
	return muranopl.CheckNatives(ctx, muranopl.NewClasses(catalog.Shelf(embedded)), list, native.Methods(nil, config))
}

// run serves until ctx ends, then lets requests and tasks come to their ends.
func run(ctx context.Context, listen string, handler http.Handler, tasks *engine.Engine, logger *slog.Logger) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w (--listen chooses another address)", listen, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return tasks.Run(ctx) })
	group.Go(func() error {
		logger.Info("Burano answers", "version", version.Version, "address", listener.Addr().String())
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), gracePeriod)
		defer cancel()
		return server.Shutdown(ending)
	})
	return group.Wait()
}
