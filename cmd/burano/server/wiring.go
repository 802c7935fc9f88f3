package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/images"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/direct"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/upkeep"
	"github.com/burano/burano/orchestrator/workloads"
	"github.com/burano/burano/web/auth"
)

// wiring is a server that has met the cloud.
type wiring struct {
	*held
	budgets budgets

	cloud         *openstack.Service
	packages      *catalog.Service
	packageRows   *catalogstore.Store
	archive       *snapshot.Archive
	backups       backup.Backups
	natives       native.Config
	tasks         *engine.Engine
	meters        *scaling.Meters
	authenticator *auth.Authenticator
	service       *orchestrator.Service
	restores      *orchestrator.Backups
}

// connect waits for Keystone, and then makes everything that needs the cloud. The caller closes the meters.
func connect(ctx context.Context, held *held, budgets budgets) (*wiring, error) {
	w := &wiring{held: held, budgets: budgets}
	for _, make := range []func(context.Context) error{w.makeCloud, w.makeCatalog, w.makeNatives, w.makeEngine} {
		if err := make(ctx); err != nil {
			return nil, err
		}
	}
	w.authenticator = auth.NewAuthenticator(auth.Config{Cloud: w.cloud, Rows: w.rows.SignIns(), Sealer: w.sealer, Now: time.Now, Idle: w.options.signInIdle, Life: w.options.signInTime,
		Proxies: w.proxies, Providers: w.providers, Keystone: cmp.Or(w.options.keystone, keystoneV3(w.own.Auth.IdentityEndpoint)), Logger: w.logger})
	w.meters = scaling.NewMeters(w.tasks, w.natives.Reach)
	w.service = orchestrator.New(orchestrator.Config{Store: w.rows, Sealer: w.sealer, Trusts: w.cloud, ProjectOf: w.cloud.ProjectOf, TrustRoles: w.options.Roles, Engine: w.tasks, Logger: w.logger,
		Values: w.options.limits.Values})
	w.restores = orchestrator.NewBackups(w.service, orchestrator.BackupsConfig{Keep: w.backups, Claims: access.Clusters{Secrets: w.tasks, Config: w.natives.Reach}.BackupClaims, Share: w.share,
		Hour: w.options.tests.anHour()})
	return w, nil
}

// choices are a caller's choices in the cloud. Where servers belong to the service user, no key pair of the caller's can be chosen.
func (w *wiring) choices(ctx context.Context, caller identity.Caller, kind, region string) (any, error) {
	if kind == "keypairs" {
		role, err := w.rows.ProjectRoles().Get(ctx, caller.ProjectID)
		if err == nil && role.Disabled == nil {
			return []openstack.KeypairChoice{}, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return w.cloud.Choices(ctx, caller, kind, region)
}

// share makes the container for snapshots in a project, where the server's settings name one.
func (w *wiring) share(ctx context.Context, project *openstack.Project) (address string, err error) {
	if w.options.snapshotContainer == "" {
		return "", nil
	}
	return w.cloud.ShareContainer(ctx, project, w.options.snapshotContainer)
}

func (w *wiring) makeCloud(ctx context.Context) (err error) {
	calls := countCalls(w.metrics)
	w.cloud, err = w.keystone.await(ctx, func(ctx context.Context) (*openstack.Service, error) {
		return openstack.NewService(ctx, w.own.Auth, w.own.Endpoint, w.own.TLS, calls)
	})
	if err != nil {
		return err
	}
	w.cloud.Orchestrate(openstack.Orchestration(w.options.Stacks), direct.New(w.rows.Stacks()).In)
	if w.options.sole() {
		return w.rows.Stacks().ReleaseStacks(ctx)
	}
	return nil
}

func (w *wiring) makeCatalog(ctx context.Context) (err error) {
	w.packages, w.packageRows, err = openCatalog(ctx, w.db, w.options, w.cloud.ProjectID())
	return err
}

// makeNatives gives the classes with bodies in Go their dependencies.
func (w *wiring) makeNatives(ctx context.Context) error {
	w.archive = snapshot.New(w.rows.Snapshots(), w.cloud, w.sealer, w.checker.Check, w.budget)
	w.backups = backup.Backups{Rows: w.rows.Backups(), Archive: w.archive}
	containerImages, err := workloads.NewImageFolder(filepath.Join(w.options.State, "container-images"), w.budget, images.NameOf)
	if err != nil {
		return err
	}
	o := w.options
	reach := known.Reach{Connected: countConnections(w.metrics), MachineNetworks: w.machines, Snapshots: w.archive, SnapshotContainer: o.snapshotContainer, Backups: &w.backups, Logger: w.logger}
	w.natives = native.Config{Settings: clusters.Settings{Reach: reach, Binary: w.binary, ShareContainer: w.cloud.ShareContainer, Issued: o.tests.issued(), TokenGrace: o.tests.tokenGrace(),
		SSHFrom: o.sshFrom, ServerPatience: o.serverPatience, SSHPatience: o.sshPatience, StepPatience: o.stepPatience, DrainPatience: o.drainPatience},
		Images: containerImages, Applications: images.Applications(), Networks: w.networks, Region: w.cloud.Region(), ExternalNetwork: o.External, DNSServers: o.dns}
	return checkNatives(ctx, w.natives)
}

func (w *wiring) makeEngine(ctx context.Context) (err error) {
	o := w.options
	w.tasks, err = engine.New(ctx, engine.Config{
		Store:  w.rows,
		Sealer: w.sealer,
		Cloud:  w.cloud,
		Source: w.packages.Source,
		Natives: func(runtime *engine.Runtime) muranopl.Natives {
			config := w.natives
			config.Logger = runtime.Logger()
			return native.Methods(runtime, config)
		},
		Rehearsal: func(stage *engine.Stage) (muranopl.Natives, engine.Rehearsed) {
			return native.Rehearsal(stage, w.natives)
		},
		ClassConfigs: w.classConfigs,

		Logger:  w.logger,
		Metrics: w.metrics,
		Workers: o.workers, TaskTime: o.taskTime, Code: muranopl.Limits{Steps: o.steps, Memory: o.memory}, Lease: o.Lease, MaxDeaths: o.maxDeaths, OutagePatience: o.outagePatience,
		Running: w.running, Memory: w.budgets.machines,
		Sole: o.sole(), Looked: upkeep.Looked(o.keeperInterval),
		AtStep: o.tests.atStep(),
	})
	return err
}

// openCatalog opens the catalog with the packages that come with Burano, or with those of them that are named. They are shown as the
// service project's.
func openCatalog(ctx context.Context, db *gorm.DB, options *Options, serviceProject string) (*catalog.Service, *catalogstore.Store, error) {
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
	children := process.NewChildren()
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
