package upkeep

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/attachments"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
)

const (
	dutyAttachments = "attachments"
)

// attachmentsDuty is the duty that reconciles volumes attached to nodes in the cloud with Kubernetes' records of them. It needs a delegation.
type attachmentsDuty struct {
	Config
	mutex     sync.Mutex
	last      map[string][]attachments.Difference // by environment and cluster: the findings when it was last reached
	reconcile func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, project *openstack.Project) ([]attachments.Difference, error)
}

func newAttachmentsDuty(config Config) *attachmentsDuty {
	return &attachmentsDuty{Config: config, last: map[string][]attachments.Difference{}, reconcile: func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, project *openstack.Project) ([]attachments.Difference, error) {
		one, err := config.open(ctx, environment, cluster.ID)
		if err != nil {
			return nil, err
		}
		of, err := storage.AttachmentsOf(ctx, environment.ID, cluster.ID, cluster.Name, one.facts.Nodes, one.live, project)
		if err != nil {
			return nil, err
		}
		return of.Reconcile(ctx)
	}}
}

func (a *attachmentsDuty) Name() string { return dutyAttachments }

func (a *attachmentsDuty) Every() time.Duration { return a.Interval }

// Look repeats its last findings for a cluster that is not reached. Other duties report that.
func (a *attachmentsDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		has, err := nodes.HasStorage(ctx, known.EnvironmentVault{Secrets: a.Secrets, Environment: environment.ID, Cluster: cluster.ID}, kube.Cinder)
		if err != nil {
			return result, err
		}
		if !has {
			continue
		}
		project, err := environment.Project(ctx, "")
		if errors.Is(err, keeper.ErrNoDelegation) {
			return result, nil // the duty of storage says so
		}
		if err != nil {
			return result, err
		}
		found, err := a.reconcile(ctx, environment, cluster, project)
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		key := environment.ID + "/" + cluster.ID
		a.mutex.Lock()
		if err != nil {
			a.Logger.DebugContext(ctx, "attachments of volumes could not be compared", "environment", environment.ID, "cluster", cluster.Name, "error", err)
			found = a.last[key]
		} else if len(found) > 0 {
			a.last[key] = found
		} else {
			delete(a.last, key)
		}
		a.mutex.Unlock()
		for _, one := range found {
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "volume-attachment-differs", Subject: one.Volume, Severity: keeper.Warning, Text: one.Text, Mends: one.Mends})
		}
		if len(found) > 0 {
			result.Next = a.Interval / hurry
		}
	}
	return result, nil
}
