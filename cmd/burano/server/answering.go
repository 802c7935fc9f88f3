package server

import (
	"context"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/signin/webhook"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/restores"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

// api is the API's handlers. Its streams end with stopping.
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
		Choices:      w.choices,

		Projects:         orchestrator.NewProjectRoles(w.rows, w.sealer, w.cloud, w.options.projectRoles, w.logger),
		MarkImage:        w.cloud.MarkImage,
		AllProjects:      w.cloud.AllProjects,
		Quotas:           []api.QuotaStore{w.rows.Quotas(), w.packageRows},
		Applied:          w.rows.Applied(),
		Checks:           []api.Check{w.databaseAnswers()},
		Audit:            w.account,
		AuditRows:        w.rows.Audit(),
		Address:          auth.AddressOf(w.proxies),
		Limits:           w.options.limits,
		Running:          w.running,
		Metrics:          w.metrics,
		MetricsElsewhere: w.options.metricsListen != "",
		Profiles:         w.options.profiles,
		Stopping:         stopping,
		Logger:           w.logger,
	}
	w.addClusters(&config)
	return config
}

// addClusters adds the answers to questions about clusters.
func (w *wiring) addClusters(config *api.Config) {
	config.UpgradePlan = func(clusterID, image string) engine.Question {
		return native.PlanUpgrade(w.natives, clusterID, image)
	}
	config.Leaving = native.Leaving(w.natives)
	config.Clusters = access.Clusters{Secrets: w.tasks, Config: w.natives.Reach, Meters: w.meters, ClusterIDs: w.clusterIDs}
	config.Snapshots = w.archive
	config.SnapshotLoss = restores.Loss
	config.Deleted = orchestrator.NewUndeletion(w.rows, func(ctx context.Context, environmentID string) error {
		return known.ForgetClusters(ctx, w.rows.Secrets(), w.tasks, environmentID)
	})
}

// person is the user of a cluster of a project with a token of Keystone.
func (w *wiring) person(ctx context.Context, projectID, token string) (webhook.Person, error) {
	caller, err := w.authenticator.Caller(ctx, token)
	if err == nil {
		var person access.Person
		if person, err = api.PersonOf(w.rules.Apply(caller), projectID); err == nil {
			return webhook.Person{User: person.User, UID: caller.UserID, Groups: person.Groups}, nil
		}
	}
	if fault.KindOf(err) == fault.Unauthorized {
		err = &webhook.Refused{Reason: err.Error()}
	}
	return webhook.Person{}, err
}
