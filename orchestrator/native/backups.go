package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// Actions make backups of claims, also scheduled ones: a duty finds that they are due, and starts the action.

const (
	dutyBackups    = "backups"
	argumentClaims = "claims"
	argumentBackup = "backup"
	argumentClaim  = "claim"
	// The properties of a cluster.
	// backupPause is how often it is looked whether backups are due.
	backupPause = 10 * time.Minute
)

// claimOf is a claim as backups keep it.
func claimOf(one kube.Claim) volumes.Claim {
	claim := volumes.Claim{Namespace: one.Namespace, Name: one.Name, Class: one.Class, Reclaim: string(one.Reclaim), Mode: string(one.Mode), FileSystem: one.FileSystem, Zone: one.Zone, MountOptions: one.MountOptions, Volume: one.Handle}
	for _, mode := range one.Modes {
		claim.Modes = append(claim.Modes, string(mode))
	}
	return claim
}

// kubeClaim is a claim of a backup as Kubernetes is to have it.
func kubeClaim(one volumes.Claim) kube.Claim {
	claim := kube.Claim{Namespace: one.Namespace, Name: one.Name, Class: one.Class, Reclaim: corev1.PersistentVolumeReclaimPolicy(one.Reclaim), Mode: corev1.PersistentVolumeMode(one.Mode), FileSystem: one.FileSystem,
		Zone: one.Zone, MountOptions: one.MountOptions}
	for _, mode := range one.Modes {
		claim.Modes = append(claim.Modes, corev1.PersistentVolumeAccessMode(mode))
	}
	return claim
}

func claimsOf(ctx context.Context, api *rest.Config) (claims []volumes.Claim, err error) {
	list, err := kube.Claims(ctx, api, kube.Cinder)
	for _, one := range list {
		claims = append(claims, claimOf(one))
	}
	return claims, err
}

// withClaims gives work the project's volumes, and the API server of a cluster that has, or may have, claims with such.
func (c *clusters) withClaims(ctx context.Context, object *muranopl.Object, work func(storage *openstack.BlockStorage, api *rest.Config) error) error {
	has, err := nodes.HasStorage(ctx, known.Vault{Runtime: c.runtime, Cluster: object.ID()}, kube.Cinder)
	if err != nil {
		return err
	}
	if !has {
		return fault.New(fault.Invalid, "Cluster %s has no volumes in Cinder, of which backups are made: none of its storageClasses has the back-end cinder", object.Text("name"))
	}
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	storage, err := project.BlockStorage()
	if err != nil {
		return err
	}
	live, _, err := c.former(ctx, object)
	if err != nil {
		return err
	}
	if live == nil {
		return fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", object.Text("name"))
	}
	defer live.Close()
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return err
	}
	return work(storage, api)
}

// backUpClaims is the action that makes backups of claims, all or the named ones, and returns their ids. Scheduled ones it only begins, of claims that are
// due, and it deletes old ones over the limit.
func (c clusterClass) backUpClaims(ctx context.Context, call muranopl.Call) (any, error) {
	var ids []any
	err := c.clusters.withClaims(ctx, call.Object, func(storage *openstack.BlockStorage, api *rest.Config) error {
		claims, err := claimsOf(ctx, api)
		if err != nil {
			return err
		}
		order := volumes.Order{Cluster: volumes.ClusterID(c.clusters.runtime.EnvironmentID(), call.Object.ID()), ClusterName: call.Object.Text("name"), Why: volumes.Requested, Run: c.clusters.runtime.TaskID()}
		order.Reason, _ = call.Args[known.ArgumentReason].(string)
		list, err := volumes.Backups(ctx, storage, order.Cluster)
		if err != nil {
			return err
		}
		if scheduled, _ := call.Args[known.ArgumentScheduled].(bool); scheduled {
			order.Why = volumes.Scheduled
			claims = volumes.Due(claims, list, desiredOf(call.Object).ClaimBackups.Every, time.Now())
		}
		if named, _ := call.Args[argumentClaims].([]any); len(named) > 0 {
			if claims, err = chosen(claims, named); err != nil {
				return err
			}
		}
		var failures []error
		var begun []volumes.Backup
		for _, claim := range claims {
			one, err := volumes.BackUp(ctx, storage, order, claim, list)
			if err != nil {
				failures = append(failures, fmt.Errorf("claim %s: %w", claim, err))
				continue
			}
			begun, ids = append(begun, one), append(ids, one.ID)
			c.reports.inform(ctx, call.Object, "Claim %s: %s %s is being made", claim, one.Kind, one.ID)
		}
		if order.Why == volumes.Scheduled {
			return errors.Join(append(failures, c.deleteSurplus(ctx, call.Object, storage, list))...)
		}
		for _, one := range begun {
			if err := volumes.Complete(ctx, storage, one); err != nil {
				failures = append(failures, err)
				continue
			}
			c.reports.inform(ctx, call.Object, "Claim %s: %s %s is complete", one.Claim, one.Kind, one.ID)
		}
		if len(claims) == 0 {
			c.reports.inform(ctx, call.Object, "Cluster %s has no claims with volumes in Cinder", call.Object.Text("name"))
		}
		return errors.Join(failures...)
	})
	return ids, err
}

// deleteSurplus deletes the scheduled backups over the limit.
func (c clusterClass) deleteSurplus(ctx context.Context, object *muranopl.Object, storage *openstack.BlockStorage, list []volumes.Backup) error {
	var failures []error
	for _, one := range volumes.Surplus(list, desiredOf(object).ClaimBackups.Kept) {
		if err := volumes.DeleteBackup(ctx, storage, one); err != nil {
			failures = append(failures, err)
			continue
		}
		c.reports.inform(ctx, object, "Claim %s: %s %s of %s is deleted", one.Claim, one.Kind, one.ID, one.Made.Format(time.RFC1123))
	}
	return errors.Join(failures...)
}

// chosen are the claims that are named, as NAMESPACE/NAME or, in the namespace default, NAME.
func chosen(claims []volumes.Claim, named []any) (list []volumes.Claim, err error) {
	for _, one := range named {
		name, _ := one.(string)
		wanted, err := claimNamed(name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(claims, func(claim volumes.Claim) bool { return claim.String() == wanted.String() })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "There is no claim %s with a volume in Cinder", wanted)
		}
		list = append(list, claims[i])
	}
	return list, nil
}

func claimNamed(name string) (volumes.Claim, error) {
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		namespace, rest = "default", name
	}
	if namespace == "" || rest == "" || strings.Contains(rest, "/") {
		return volumes.Claim{}, fault.New(fault.Invalid, "%q names no claim: say NAMESPACE/NAME, or NAME in the namespace default", name)
	}
	return volumes.Claim{Namespace: namespace, Name: rest}, nil
}

// listClaimBackups is the action that returns the project's backups of claims, the newest first: the ones of this cluster, or all.
func (c clusterClass) listClaimBackups(ctx context.Context, call muranopl.Call) (any, error) {
	storage, err := c.storage(ctx)
	if err != nil {
		return nil, err
	}
	cluster := volumes.ClusterID(c.clusters.runtime.EnvironmentID(), call.Object.ID())
	if all, _ := call.Args["all"].(bool); all {
		cluster = ""
	}
	list, err := volumes.Backups(ctx, storage, cluster)
	shown := []any{}
	for _, one := range list {
		shown = append(shown, map[string]any{"id": one.ID, "kind": one.Kind, "claim": one.Claim.String(), "status": one.Status, "gib": int64(one.GiB), "made": one.Made.UTC().Format(time.RFC3339), "why": one.Why,
			"cluster": one.ClusterName, "volume": one.Claim.Volume, "failure": one.Failure})
	}
	return shown, err
}

func (c clusterClass) storage(ctx context.Context) (*openstack.BlockStorage, error) {
	project, err := c.clusters.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	return project.BlockStorage()
}

// backupOf finds the backup that a call names, of any cluster of the project.
func backupOf(ctx context.Context, storage *openstack.BlockStorage, call muranopl.Call) (volumes.Backup, error) {
	id, _ := call.Args[argumentBackup].(string)
	list, err := volumes.Backups(ctx, storage, "")
	if err != nil {
		return volumes.Backup{}, err
	}
	i := slices.IndexFunc(list, func(one volumes.Backup) bool { return one.ID == id })
	if i < 0 {
		return volumes.Backup{}, fault.New(fault.Invalid, "There is no backup %s of a claim in the project", id)
	}
	return list[i], nil
}

// restoreClaim is the action that makes a claim, with a new volume, of a backup.
func (c clusterClass) restoreClaim(ctx context.Context, call muranopl.Call) (any, error) {
	var made string
	err := c.clusters.withClaims(ctx, call.Object, func(storage *openstack.BlockStorage, api *rest.Config) error {
		from, err := backupOf(ctx, storage, call)
		if err != nil {
			return err
		}
		claim := kubeClaim(from.Claim)
		if name, _ := call.Args[argumentClaim].(string); name != "" {
			to, err := claimNamed(name)
			if err != nil {
				return err
			}
			claim.Namespace, claim.Name = to.Namespace, to.Name
		}
		run := c.clusters.runtime.TaskID()
		has, err := kube.CheckRestore(ctx, api, claim, run)
		var exists *kube.ClaimExists
		if errors.As(err, &exists) {
			return fault.New(fault.Conflict, "Nothing was done: %w", err)
		}
		if err != nil {
			return err
		}
		made = claim.String()
		if has {
			return nil
		}
		if err := volumes.Complete(ctx, storage, from); err != nil {
			return err
		}
		claim.Volume = "restored-" + run
		volume, err := volumes.Restore(ctx, storage, from, volumes.ClusterID(c.clusters.runtime.EnvironmentID(), call.Object.ID()), claim.Volume, claimOf(claim))
		if err != nil {
			return err
		}
		claim.Handle = volume.ID
		if err := kube.MakeClaim(ctx, api, claim, kube.Cinder, volume.GiB, run); err != nil {
			return err
		}
		c.reports.inform(ctx, call.Object, "Claim %s has what claim %s of cluster %s had on %s (%s %s)", claim, from.Claim, from.ClusterName, from.Made.Format(time.RFC1123), from.Kind, from.ID)
		return nil
	})
	return made, err
}

// deleteClaimBackup is the action that deletes a backup of a claim.
func (c clusterClass) deleteClaimBackup(ctx context.Context, call muranopl.Call) (any, error) {
	storage, err := c.storage(ctx)
	if err != nil {
		return nil, err
	}
	one, err := backupOf(ctx, storage, call)
	if err != nil {
		return nil, err
	}
	if err := volumes.DeleteBackup(ctx, storage, one); err != nil {
		return nil, err
	}
	return nil, volumes.BackupGone(ctx, storage, one)
}

// backupsDuty starts backups of claims as often as the properties of their clusters ask.
type backupsDuty struct {
	KeptConfig
	now  func() time.Time
	look func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]volumes.Claim, []volumes.Backup, error)
}

func newBackupsDuty(config KeptConfig) backupsDuty {
	b := backupsDuty{KeptConfig: config, now: time.Now}
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
				Text:  fmt.Sprintf("Claims of cluster %s have no backup of the last %d hours: %s", cluster.Name, every/time.Hour, some(names)),
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
	storage, err := project.BlockStorage()
	if err != nil {
		return nil, nil, err
	}
	var claims []volumes.Claim
	err = b.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
		claims, err = claimsOf(ctx, api)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	list, err := volumes.Backups(ctx, storage, volumes.ClusterID(environment.ID, cluster.ID))
	return claims, list, err
}
