package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/images"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/direct"
	"github.com/burano/burano/orchestrator/doctor"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/client"
	"github.com/burano/burano/web/dashboard"
	"github.com/burano/burano/web/policy"
)

func serveCommand(connection *connection) *cobra.Command {
	options := &serveOptions{}
	flags := options.flags()
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
			settings, err := options.resolve(flags)
			if err != nil {
				return err
			}
			if options.print {
				_, err := fmt.Fprint(command.OutOrStdout(), settings.print())
				return err
			}
			connection.cloud = options.cloud
			return serve(command.Context(), connection, options, options.logger(os.Stderr))
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

func serve(ctx context.Context, connection *connection, options *serveOptions, logger *slog.Logger) (err error) {
	block := ballast(mostBallast)
	defer runtime.KeepAlive(block)
	requestMemory, machineMemory := budgetsOfMemory(limitMemory(usableMemory(os.DirFS("/")), len(block)), len(block))
	started := false
	defer func() {
		if err != nil && !started && ctx.Err() != nil {
			logger.Info("the server was told to stop while it started", "cut off", err)
			err = nil
		}
	}()
	if err := options.tests.profile(); err != nil {
		return err
	}
	networks, err := netip.ParsePrefix(options.networks)
	if err != nil {
		return fmt.Errorf("--networks: %w", err)
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself, which is copied to the nodes: %w", err)
	}
	rules := policy.New()
	if options.policy != "" {
		var unknown []string
		if rules, unknown, err = policy.Load(options.policy); err != nil {
			return err
		}
		for _, name := range unknown {
			logger.Warn("the policy file has a rule that nothing asks for", "rule", name, "file", options.policy)
		}
	}
	own, err := client.OwnCredentials(connection.cloud)
	if err != nil {
		return err
	}
	credentials, endpoint, trusted := own.Auth, own.Endpoint, own.TLS
	registry := options.registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	if err := os.MkdirAll(options.state, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	unlock, err := lockState(options.state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	temporary, err := options.emptyScratch()
	if err != nil {
		return err
	}
	budget := scratch.New(temporary, options.scratchSpace)
	checker := snapshot.NewChecker(binary, budget, checkerIdle)
	defer checker.Close() // requests that wait for a check have ended by then
	sealer, err := secret.Open(options.keyFile())
	if err != nil {
		return err
	}
	db, err := options.openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close(db)) }()

	storing := []store.Option{store.Sealed(sealer), store.Quotas(options.quotaLimits()), store.LimitLogs(options.logs), store.Undelete(options.undelete)}
	if options.sole() {
		storing = append(storing, store.Alone())
	}
	rows, err := store.New(ctx, db, time.Now, storing...)
	if err != nil {
		return err
	}
	if err := checkKey(ctx, rows, sealer); err != nil {
		return err
	}
	if err := measure(registry, db); err != nil {
		return err
	}
	running, err := openBlackBox(ctx, filepath.Join(options.state, "running"), rows, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	proxies, err := auth.ParseProxies(options.proxies)
	if err != nil {
		return fmt.Errorf("--trusted-proxies: %w", err)
	}
	providers, err := auth.ParseProviders(options.websso)
	if err != nil {
		return fmt.Errorf("--websso: %w", err)
	}
	account, closeAccount, err := options.openAudit(rows, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAccount()) }()
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	databaseAnswers := api.Check{Name: "database", Check: func(ctx context.Context) error { return database.Answers(ctx, db) }}
	registry.MustRegister(newLoad(rows, logger))
	keystone := watchedKeystone(registry, logger)
	listeners, err := options.open(api.Starting(api.Config{
		Checks:  []api.Check{databaseAnswers, {Name: "keystone", Check: func(context.Context) error { return errStarting }}},
		Metrics: registry, MetricsElsewhere: options.metricsListen != "", Logger: logger,
	}), registry, stop, logger)
	if err != nil {
		return err
	}
	told := ctx
	return listeners.serve(told, func(ctx context.Context) error {
		calls := countCalls(registry)
		cloud, err := keystone.await(ctx, func(ctx context.Context) (*openstack.Service, error) {
			return openstack.NewService(ctx, credentials, endpoint, trusted, calls)
		})
		if err != nil {
			return err
		}
		cloud.Orchestrate(openstack.Orchestration(options.stacks), direct.New(rows).In)
		if options.sole() {
			if err := rows.ReleaseStacks(ctx); err != nil {
				return err
			}
		}
		packages, packageRows, err := openCatalog(ctx, db, options, cloud.ProjectID())
		if err != nil {
			return err
		}
		machines, err := ranges(options.machineNetworks)
		if err != nil {
			return err
		}
		archive := snapshot.New(rows, cloud, sealer, checker.Check, budget)
		backups := backup.Backups{Rows: store.NewBackups(rows), Archive: archive}
		containerImages, err := native.NewImageFolder(filepath.Join(options.state, "container-images"), budget, images.NameOf)
		if err != nil {
			return err
		}
		nativeConfig := native.Config{Binary: binary, Images: containerImages, Applications: images.Applications(), Snapshots: archive, Backups: &backups, SnapshotContainer: options.snapshotContainer, ShareContainer: cloud.ShareContainer, Issued: options.tests.issued(), TokenGrace: options.tests.tokenGrace(), Connected: countConnections(registry), Networks: networks, Region: cloud.Region(), Logger: logger,
			ExternalNetwork: options.external, DNSServers: options.dns, SSHFrom: options.sshFrom, MachineNetworks: machines,
			ServerPatience: options.serverPatience, SSHPatience: options.sshPatience, StepPatience: options.stepPatience, DrainPatience: options.drainPatience}
		if err := checkNatives(ctx, nativeConfig); err != nil {
			return err
		}
		var classConfigs fs.FS
		if options.configs != "" {
			if _, err := os.ReadDir(options.configs); err != nil {
				return fmt.Errorf("--class-configs: %w", err)
			}
			classConfigs = os.DirFS(options.configs)
		}
		tasks, err := engine.New(ctx, engine.Config{
			Store:  rows,
			Sealer: sealer,
			Cloud:  cloud,
			Source: packages.Source,
			Natives: func(runtime *engine.Runtime) muranopl.Natives {
				config := nativeConfig
				config.Logger = runtime.Logger()
				return native.Methods(runtime, config)
			},
			Rehearsal: func(stage *engine.Stage) (muranopl.Natives, engine.Rehearsed) {
				return native.Rehearsal(stage, nativeConfig)
			},
			ClassConfigs: classConfigs,

			Logger:  logger,
			Metrics: registry,
			Workers: options.workers, TaskTime: options.taskTime, Code: muranopl.Limits{Steps: options.steps, Memory: options.memory}, Lease: options.lease, MaxDeaths: options.maxDeaths, OutagePatience: options.outagePatience,
			Running: running, Memory: machineMemory,
			Sole: options.sole(), Looked: native.Looked(options.keeperInterval),
			AtStep: options.tests.atStep(),
		})
		if err != nil {
			return err
		}
		authenticator := auth.NewAuthenticator(auth.Config{Cloud: cloud, Rows: rows, Sealer: sealer, Now: time.Now, Idle: options.signInIdle, Life: options.signInTime,
			Proxies: proxies, Providers: providers, Keystone: cmp.Or(options.keystone, keystoneV3(credentials.IdentityEndpoint)), Logger: logger})
		meters := native.NewMeters(tasks, nativeConfig)
		defer meters.Close()
		service := orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, ProjectOf: cloud.ProjectOf, TrustRoles: options.roles, Engine: tasks, Logger: logger,
			Values: options.limits.Values})
		kept := orchestrator.NewBackups(service, backups, native.AttributeFilledFrom)
		handler := api.New(api.Config{
			Orchestrator: service,
			Backups:      kept,
			Catalog:      packages,
			Auth:         authenticator.Enter,
			Known:        authenticator.Known,
			Memory:       requestMemory,
			SignIn:       authenticator,
			Policy:       rules,
			Keystone:     credentials.IdentityEndpoint,
			Choices:      cloud.Choices,

			Projects:    orchestrator.NewProjectRoles(rows, sealer, cloud, options.projectRoles, logger),
			MarkImage:   cloud.MarkImage,
			AllProjects: cloud.AllProjects,
			Examine: func(ctx context.Context) []doctor.Line {
				return examine(ctx, options, "", doctor.Boot{})
			},
			Access: &api.Access{
				Kubeconfig: func(ctx context.Context, environmentID, objectID string, person native.Person) ([]byte, error) {
					return native.Kubeconfig(ctx, tasks, environmentID, objectID, nativeConfig, person)
				},
				Credential: func(ctx context.Context, environmentID, objectID string, person native.Person) (native.Credential, error) {
					return native.IssueCredential(ctx, tasks, environmentID, objectID, nativeConfig, person)
				},
				SSHKey: func(ctx context.Context, environmentID, objectID string) (string, error) {
					return native.SSHKey(ctx, tasks, environmentID, objectID)
				},
				GiveSSHKey: func(ctx context.Context, environmentID, objectID, node, private string) (string, error) {
					return native.GiveSSHKey(ctx, tasks, environmentID, objectID, node, private)
				},
				TakesMachines: func(ctx context.Context, environmentID, objectID string) error {
					return native.TakesMachines(ctx, tasks, environmentID, objectID, nativeConfig)
				},
				Join: func(ctx context.Context, environmentID, objectID string, machine store.Machine) (native.Joining, error) {
					return native.Join(ctx, tasks, environmentID, objectID, nativeConfig, machine)
				},
			},
			Cluster: func(ctx context.Context, environmentID, objectID string) (any, error) {
				return native.Status(ctx, tasks, environmentID, objectID, nativeConfig)
			},
			UpgradePlan: func(clusterID, image string) engine.Question {
				return native.PlanUpgrade(nativeConfig, clusterID, image)
			},
			PauseUpgrade: func(ctx context.Context, environmentID, objectID string) error {
				return native.PauseUpgrade(ctx, tasks, environmentID, objectID)
			},
			Leaving: native.Leaving(nativeConfig),
			Traffic: func(ctx context.Context, environmentID, objectID string) (any, error) {
				return meters.Traffic(ctx, environmentID, objectID)
			},
			Clusters:  native.Clusters{Secrets: tasks, Config: nativeConfig},
			Snapshots: archive,
			TakeSnapshot: func(ctx context.Context, environmentID, objectID, reason string) (store.Snapshot, error) {
				of := snapshot.Subject{EnvironmentID: environmentID, ClusterID: objectID, Kind: store.Requested, Reason: reason}
				return native.TakeSnapshot(ctx, tasks, of, nativeConfig)
			},
			SnapshotLoss: native.Loss,
			Deleted: orchestrator.NewUndeletion(rows, func(ctx context.Context, environmentID string) error {
				return native.ForgetClusters(ctx, rows, tasks, environmentID)
			}),
			Quotas:           []api.QuotaStore{rows, packageRows},
			Applied:          rows,
			Checks:           []api.Check{databaseAnswers},
			Audit:            account,
			AuditRows:        rows,
			Address:          auth.AddressOf(proxies),
			Limits:           options.limits,
			Running:          running,
			Metrics:          registry,
			MetricsElsewhere: options.metricsListen != "",
			Stopping:         stopping,
			Logger:           logger,
		})
		started = true
		listeners.begin(dashboard.Beside(handler))
		group, ctx := errgroup.WithContext(ctx)
		// Tasks are given back as soon as the server is to stop, also while it still takes requests.
		working, stopWorking := context.WithCancel(ctx)
		defer stopWorking()
		defer context.AfterFunc(told, stopWorking)()
		group.Go(func() error { return tasks.Run(working) })
		if options.keeperInterval > 0 {
			keeping := keeper.New(keeper.Config{Store: rows, Duties: native.Duties(native.KeptConfig{Config: nativeConfig, Secrets: tasks, Meters: meters, Interval: options.keeperInterval, FirstExpiry: measureCertificates(registry)}),
				Clusters: func(ctx context.Context, environmentID string) ([]string, error) {
					return native.ClusterIDs(ctx, rows, environmentID)
				},
				Waits: tasks.HasSuspect, Running: running, Memory: machineMemory,
				Project: tasks.StandingProject, Wake: tasks.Wake, Logger: logger, Metrics: registry, Lease: options.lease, Repairs: options.keeperRepairs,
				RepairAfter: options.keeperInterval / 2, Sole: options.sole()})
			group.Go(func() error { return keeping.Run(working) })
		}
		group.Go(func() error { return keystone.watch(ctx, cloud.Answers) })
		group.Go(func() error {
			keepSuspects(ctx, running, rows, logger)
			return nil
		})
		group.Go(func() error { return watchVersion(ctx, db, versionEvery, logger) })
		group.Go(func() error {
			kept.RunDrills(ctx)
			return nil
		})
		group.Go(func() error {
			orchestrator.Tidy(ctx, rows, options.keep, archive.DeleteSnapshot, logger)
			return nil
		})
		group.Go(func() error {
			if err := rows.Share(ctx, tasks.Wake); err != nil {
				logger.Warn("what other servers change is seen a second later, because they cannot be listened to", "error", err)
			}
			return nil
		})
		return group.Wait()
	})
}

// keystoneV3 is the address of Keystone's API v3, which an endpoint need not name.
func keystoneV3(endpoint string) string {
	endpoint = strings.TrimSuffix(endpoint, "/")
	if strings.HasSuffix(endpoint, "/v3") {
		return endpoint
	}
	return endpoint + "/v3"
}

const (
	// ownProgram is the file of the running program (proc(5)), also when an upgrade has put another in its place.
	ownProgram = "/proc/self/exe"
	// childPlaces is how many child processes read what projects sent at a time. Each may take 512 MiB.
	childPlaces = 4
)

// newChildren returns children that are runs of this program.
func newChildren() *door.Children { return door.NewChildren(ownProgram, childPlaces, door.Limits{}) }

// packageReader reads packages of whomever as the server does.
func packageReader() catalog.Reader { return catalog.Reader{Children: newChildren()} }

// openCatalog opens the catalog with the packages that come with Burano, or with those of them that are named. They are shown as the
// service project's.
func openCatalog(ctx context.Context, db *gorm.DB, options *serveOptions, serviceProject string) (*catalog.Service, *catalogstore.Store, error) {
	embedded, err := apps.Packages()
	if err != nil {
		return nil, nil, fmt.Errorf("read the embedded packages: %w", err)
	}
	rows, err := catalogstore.New(ctx, db, catalogstore.Quotas(options.quotaLimits()))
	if err != nil {
		return nil, nil, err
	}
	var kept catalog.Store = rows
	if options.sole() {
		kept = catalog.Remember(rows)
	}
	logins, err := charts.NewLogins(options.logins)
	if err != nil {
		return nil, nil, fmt.Errorf("--chart-credentials: %w", err)
	}
	children := newChildren()
	sources, err := charts.NewSources(options.charts, logins, children)
	if err != nil {
		return nil, nil, fmt.Errorf("--chart-sources: %w", err)
	}
	service, err := catalog.New(kept, embedded, catalog.OfferEmbedded(options.embedded...), catalog.PageSize(options.page), catalog.EmbeddedOwner(serviceProject), catalog.ChartsFrom(sources),
		catalog.ReadIn(children))
	return service, rows, err
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
