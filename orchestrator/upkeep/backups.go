package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/volumes"
)

const (
	dutyBackups = "backups"
	// The properties of a cluster.
	// backupPause is how often it is looked whether backups are due.
	backupPause = 10 * time.Minute
)

// backupsDuty starts backups of claims as often as the properties of their clusters ask.
type backupsDuty struct {
	Config
	now  func() time.Time
	look func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]volumes.Claim, []volumes.Backup, error)
}

func newBackupsDuty(config Config) backupsDuty {
	b := backupsDuty{Config: config, now: time.Now}
	b.look = b.claims
	return b
}

func (b backupsDuty) Name() string { return dutyBackups }

func (b backupsDuty) Every() time.Duration { return backupPause }

func (b backupsDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		every := cluster.ClaimBackups.Every
		if every == 0 {
			continue
		}
		has, err := nodes.HasStorage(ctx, known.EnvironmentVault{Secrets: b.Secrets, Environment: environment.ID, Cluster: cluster.ID}, kube.Cinder)
		if err != nil {
			return result, err
		}
		if !has {
			continue
		}
		claims, list, err := b.look(ctx, environment, cluster)
		if errors.Is(err, keeper.ErrNoDelegation) { // another finding reports it
			continue
		}
		if err != nil {
			return result, err
		}
		if due := volumes.Due(claims, list, every, b.now()); len(due) > 0 {
			var names []string
			for _, one := range due {
				names = append(names, one.String())
			}
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "claim-backup-due", Severity: keeper.Info,
				Text:  fmt.Sprintf("Claims of cluster %s have no backup of the last %d hours: %s", cluster.Name, every/time.Hour, storage.Some(names)),
				Mends: "Burano makes one by itself, as claimBackupEvery of the cluster says",
				Repair: &keeper.Repair{ObjectID: cluster.ID, Method: known.BackUpClaims, Args: map[string]any{known.ArgumentScheduled: true}, Cloud: true, Routine: true, AfterFailure: true,
					Text: fmt.Sprintf("Claims of cluster %s are backed up, every %d hours", cluster.Name, every/time.Hour)}})
		}
		for _, one := range list {
			if one.Why == volumes.Scheduled && strings.HasPrefix(one.Status, openstack.VolumeError) {
				result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "claim-backup-failed", Subject: one.Claim.String(), Severity: keeper.Warning,
					Text:  fmt.Sprintf("Cinder could not make a backup of claim %s of cluster %s: it is in status %s %s", one.Claim, cluster.Name, one.Status, one.Failure),
					Mends: "Another one is made by itself, and this one is deleted then. Where it stays so, ask the cloud's operator"})
			}
		}
	}
	return result, nil
}

// claims asks a cluster for its claims, and the cloud for their backups.
func (b backupsDuty) claims(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]volumes.Claim, []volumes.Backup, error) {
	project, err := environment.Project(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	cinder, err := project.BlockStorage()
	if err != nil {
		return nil, nil, err
	}
	var claims []volumes.Claim
	err = b.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
		claims, err = storage.ClaimsOf(ctx, api)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	list, err := volumes.Backups(ctx, cinder, volumes.ClusterID(environment.ID, cluster.ID))
	return claims, list, err
}
