package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/volumes"
)

// Actions make backups of claims, also scheduled ones: a duty finds that they are due, and starts the action.

const (
	argumentClaims = "claims"
	argumentBackup = "backup"
	argumentClaim  = "claim"
)

// backUpClaims is the action that makes backups of claims, all or the named ones, and returns their ids. Scheduled ones it only begins, of claims that are
// due, and it deletes old ones over the limit.
func (c Claims) backUpClaims(ctx context.Context, call muranopl.Call) (any, error) {
	var ids []any
	err := c.withCinder(ctx, call.Object, func(cinder *openstack.BlockStorage, api *rest.Config) error {
		claims, err := storage.ClaimsOf(ctx, api)
		if err != nil {
			return err
		}
		order := volumes.Order{Cluster: c.clusterID(call.Object), ClusterName: call.Object.Text("name"), Why: volumes.Requested, Run: c.of.Runtime.TaskID()}
		order.Reason, _ = call.Args[known.ArgumentReason].(string)
		list, err := volumes.Backups(ctx, cinder, order.Cluster)
		if err != nil {
			return err
		}
		if scheduled, _ := call.Args[known.ArgumentScheduled].(bool); scheduled {
			order.Why = volumes.Scheduled
			claims = volumes.Due(claims, list, task.Desired(call.Object).ClaimBackups.Every, time.Now())
		}
		if named, _ := call.Args[argumentClaims].([]any); len(named) > 0 {
			if claims, err = chosen(claims, named); err != nil {
				return err
			}
		}
		var failures []error
		var begun []volumes.Backup
		for _, claim := range claims {
			one, err := volumes.BackUp(ctx, cinder, order, claim, list)
			if err != nil {
				failures = append(failures, fmt.Errorf("claim %s: %w", claim, err))
				continue
			}
			begun, ids = append(begun, one), append(ids, one.ID)
			c.of.Reports.Inform(ctx, call.Object, "Claim %s: %s %s is being made", claim, one.Kind, one.ID)
		}
		if order.Why == volumes.Scheduled {
			return errors.Join(append(failures, c.deleteSurplus(ctx, call.Object, cinder, list))...)
		}
		for _, one := range begun {
			if err := volumes.Complete(ctx, cinder, one); err != nil {
				failures = append(failures, err)
				continue
			}
			c.of.Reports.Inform(ctx, call.Object, "Claim %s: %s %s is complete", one.Claim, one.Kind, one.ID)
		}
		if len(claims) == 0 {
			c.of.Reports.Inform(ctx, call.Object, "Cluster %s has no claims with volumes in Cinder", call.Object.Text("name"))
		}
		return errors.Join(failures...)
	})
	return ids, err
}

// deleteSurplus deletes the scheduled backups over the limit.
func (c Claims) deleteSurplus(ctx context.Context, object *muranopl.Object, storage *openstack.BlockStorage, list []volumes.Backup) error {
	var failures []error
	for _, one := range volumes.Surplus(list, task.Desired(object).ClaimBackups.Kept) {
		if err := volumes.DeleteBackup(ctx, storage, one); err != nil {
			failures = append(failures, err)
			continue
		}
		c.of.Reports.Inform(ctx, object, "Claim %s: %s %s of %s is deleted", one.Claim, one.Kind, one.ID, one.Made.Format(time.RFC1123))
	}
	return errors.Join(failures...)
}

// chosen are the claims that are named, as NAMESPACE/NAME or, in the namespace default, NAME.
func chosen(claims []volumes.Claim, named []any) (list []volumes.Claim, err error) {
	for _, one := range named {
		name, _ := one.(string)
		wanted, err := storage.ClaimNamed(name)
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

// listClaimBackups is the action that returns the project's backups of claims, the newest first: the ones of this cluster, or all.
func (c Claims) listClaimBackups(ctx context.Context, call muranopl.Call) (any, error) {
	cinder, err := c.cinder(ctx)
	if err != nil {
		return nil, err
	}
	cluster := c.clusterID(call.Object)
	if all, _ := call.Args["all"].(bool); all {
		cluster = ""
	}
	list, err := volumes.Backups(ctx, cinder, cluster)
	shown := []any{}
	for _, one := range list {
		shown = append(shown, map[string]any{"id": one.ID, "kind": one.Kind, "claim": one.Claim.String(), "status": one.Status, "gib": int64(one.GiB), "made": one.Made.UTC().Format(time.RFC3339), "why": one.Why,
			"cluster": one.ClusterName, "volume": one.Claim.Volume, "failure": one.Failure})
	}
	return shown, err
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
func (c Claims) restoreClaim(ctx context.Context, call muranopl.Call) (any, error) {
	var made string
	err := c.withCinder(ctx, call.Object, func(cinder *openstack.BlockStorage, api *rest.Config) error {
		from, err := backupOf(ctx, cinder, call)
		if err != nil {
			return err
		}
		claim := storage.KubeClaim(from.Claim)
		if name, _ := call.Args[argumentClaim].(string); name != "" {
			to, err := storage.ClaimNamed(name)
			if err != nil {
				return err
			}
			claim.Namespace, claim.Name = to.Namespace, to.Name
		}
		run := c.of.Runtime.TaskID()
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
		if err := volumes.Complete(ctx, cinder, from); err != nil {
			return err
		}
		claim.Volume = "restored-" + run
		volume, err := volumes.Restore(ctx, cinder, from, c.clusterID(call.Object), claim.Volume, storage.ClaimOf(claim))
		if err != nil {
			return err
		}
		claim.Handle = volume.ID
		if err := kube.MakeClaim(ctx, api, claim, kube.Cinder, volume.GiB, run); err != nil {
			return err
		}
		c.of.Reports.Inform(ctx, call.Object, "Claim %s has what claim %s of cluster %s had on %s (%s %s)", claim, from.Claim, from.ClusterName, from.Made.Format(time.RFC1123), from.Kind, from.ID)
		return nil
	})
	return made, err
}

// deleteClaimBackup is the action that deletes a backup of a claim.
func (c Claims) deleteClaimBackup(ctx context.Context, call muranopl.Call) (any, error) {
	cinder, err := c.cinder(ctx)
	if err != nil {
		return nil, err
	}
	one, err := backupOf(ctx, cinder, call)
	if err != nil {
		return nil, err
	}
	if err := volumes.DeleteBackup(ctx, cinder, one); err != nil {
		return nil, err
	}
	return nil, volumes.BackupGone(ctx, cinder, one)
}
