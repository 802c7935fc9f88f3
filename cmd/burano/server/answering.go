package server

import (
	"context"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

// api is what the API answers with. Its streams end with stopping.
func (w *wiring) api(stopping context.Context) api.Config {
	config := api.Config{
		Orchestrator: w.service,
		Backups:      w.restores,
		Catalog:      w.packages,
		Auth:         w.authenticator.Enter,
		Known:        w.authenticator.Known,
		Memory:       w.budgets.requests,
		SignIn:       w.authenticator,
		Policy:       w.rules,
		Keystone:     w.own.Auth.IdentityEndpoint,
		Choices:      w.cloud.Choices,

		Projects:         orchestrator.NewProjectRoles(w.rows, w.sealer, w.cloud, w.options.projectRoles, w.logger),
		MarkImage:        w.cloud.MarkImage,
		AllProjects:      w.cloud.AllProjects,
		Quotas:           []api.QuotaStore{w.rows, w.packageRows},
		Applied:          w.rows,
		Checks:           []api.Check{w.databaseAnswers()},
		Audit:            w.account,
		AuditRows:        w.rows,
		Address:          auth.AddressOf(w.proxies),
		Limits:           w.options.limits,
		Running:          w.running,
		Metrics:          w.metrics,
		MetricsElsewhere: w.options.metricsListen != "",
		Stopping:         stopping,
		Logger:           w.logger,
	}
	w.addClusters(&config)
	return config
}

// addClusters adds the answers to questions about clusters.
func (w *wiring) addClusters(config *api.Config) {
	config.Access = w.access()
	config.Cluster = func(ctx context.Context, environmentID, objectID string) (any, error) {
		return access.Status(ctx, w.tasks, environmentID, objectID, w.natives.Reach)
	}
	config.UpgradePlan = func(clusterID, image string) engine.Question {
		return native.PlanUpgrade(w.natives, clusterID, image)
	}
	config.PauseUpgrade = func(ctx context.Context, environmentID, objectID string) error {
		return access.PauseUpgrade(ctx, w.tasks, environmentID, objectID)
	}
	config.Leaving = native.Leaving(w.natives)
	config.Traffic = func(ctx context.Context, environmentID, objectID string) (any, error) {
		return w.meters.Traffic(ctx, environmentID, objectID)
	}
	config.Clusters = access.Clusters{Secrets: w.tasks, Config: w.natives.Reach}
	config.Snapshots = w.archive
	config.TakeSnapshot = func(ctx context.Context, environmentID, objectID, reason string) (store.Snapshot, error) {
		of := snapshot.Subject{EnvironmentID: environmentID, ClusterID: objectID, Kind: store.Requested, Reason: reason}
		return known.TakeSnapshot(ctx, w.tasks, of, w.natives.Reach)
	}
	config.SnapshotLoss = native.Loss
	config.Deleted = orchestrator.NewUndeletion(w.rows, func(ctx context.Context, environmentID string) error {
		return known.ForgetClusters(ctx, w.rows, w.tasks, environmentID)
	})
}

// access lets users into clusters.
func (w *wiring) access() *api.Access {
	return &api.Access{
		Kubeconfig: func(ctx context.Context, environmentID, objectID string, person access.Person) ([]byte, error) {
			return access.Kubeconfig(ctx, w.tasks, environmentID, objectID, w.natives.Reach, person)
		},
		Credential: func(ctx context.Context, environmentID, objectID string, person access.Person) (access.Credential, error) {
			return access.IssueCredential(ctx, w.tasks, environmentID, objectID, w.natives.Reach, person)
		},
		SSHKey: func(ctx context.Context, environmentID, objectID string) (string, error) {
			return access.SSHKey(ctx, w.tasks, environmentID, objectID)
		},
		GiveSSHKey: func(ctx context.Context, environmentID, objectID, node, private string) (string, error) {
			return access.GiveSSHKey(ctx, w.tasks, environmentID, objectID, node, private)
		},
		TakesMachines: func(ctx context.Context, environmentID, objectID string) error {
			return access.TakesMachines(ctx, w.tasks, environmentID, objectID, w.natives.Reach)
		},
		Join: func(ctx context.Context, environmentID, objectID string, machine store.Machine) (access.Joining, error) {
			return access.Join(ctx, w.tasks, environmentID, objectID, w.natives.Reach, machine)
		},
	}
}
