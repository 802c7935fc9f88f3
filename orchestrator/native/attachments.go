package native

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/attachments"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

const (
	dutyAttachments = "attachments"
	// settlePatience is how long a restore waits for the attachments of volumes to be as Kubernetes records them. What is left then is the keeper's.
	settlePatience = 2 * time.Minute
)

// cinderRecords are those of a cluster about volumes of Cinder.
type cinderRecords struct{ api *rest.Config }

func (r cinderRecords) Records(ctx context.Context) (kube.Attachments, error) {
	return kube.AttachmentsOf(ctx, r.api, kube.Cinder)
}

func (r cinderRecords) Again(ctx context.Context, record kube.Attachment) error {
	return kube.AttachAgain(ctx, r.api, record)
}

func (r cinderRecords) Forget(ctx context.Context, record kube.Attachment) error {
	return kube.ForgetAttachment(ctx, r.api, record)
}

func (r cinderRecords) End(ctx context.Context, volume kube.Volume, node string) error {
	return kube.EndAttachment(ctx, r.api, kube.Cinder, volume, node)
}

// attachmentsOf are those of a cluster that is reached, whose nodes are these.
func attachmentsOf(ctx context.Context, environment, id, name string, list []nodes.Node, live *nodes.Cluster, project *openstack.Project) (attachments.Cluster, error) {
	storage, err := project.BlockStorage()
	if err != nil {
		return attachments.Cluster{}, err
	}
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return attachments.Cluster{}, err
	}
	servers := map[string]string{}
	for _, node := range list {
		servers[node.Name] = node.Server
	}
	return attachments.Cluster{ID: volumes.ClusterID(environment, id), Name: name, Servers: servers, Cloud: storage, Kubernetes: cinderRecords{api}, Server: project.Server,
		Mounts: func(ctx context.Context, node, volume string) (bool, error) {
			return nodes.MountsVolume(ctx, live, node, volume)
		}}, nil
}

// attachmentsDuty is the duty that brings together what the cloud has attached to nodes, and what Kubernetes records of it. It needs a delegation.
type attachmentsDuty struct {
	KeptConfig
	mutex     sync.Mutex
	last      map[string][]attachments.Difference // by environment and cluster: what was found when it was reached last
	reconcile func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, project *openstack.Project) ([]attachments.Difference, error)
}

func newAttachmentsDuty(config KeptConfig) *attachmentsDuty {
	return &attachmentsDuty{KeptConfig: config, last: map[string][]attachments.Difference{}, reconcile: func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, project *openstack.Project) ([]attachments.Difference, error) {
		known, live, err := known.Open(ctx, config.Secrets, environment.ID, cluster.ID, nodes.Config{Logger: config.Logger, Connected: config.Connected, Patience: known.ReachPatience,
			Fence: environment.Fence, Alive: environment.Alive})
		if err != nil {
			return nil, err
		}
		defer live.Close()
		of, err := attachmentsOf(ctx, environment.ID, cluster.ID, cluster.Name, known.Nodes, live, project)
		if err != nil {
			return nil, err
		}
		return of.Reconcile(ctx)
	}}
}

func (a *attachmentsDuty) Name() string { return dutyAttachments }

func (a *attachmentsDuty) Every() time.Duration { return a.Interval }

// Look repeats what it found last of a cluster that is not reached, which other duties tell.
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

// settleAttachments is the part of a restore that has volumes be attached as Kubernetes records it since.
func (c clusterClass) settleAttachments(ctx context.Context, object *muranopl.Object) error {
	has, err := nodes.HasStorage(ctx, known.Vault{Runtime: c.clusters.runtime, Cluster: object.ID()}, kube.Cinder)
	if err != nil || !has {
		return err
	}
	return c.clusters.runtime.Step(ctx, object, "compare the attachments of volumes", func(ctx context.Context) error {
		project, err := c.clusters.runtime.Project(ctx)
		if err != nil {
			return err
		}
		live, err := c.clusters.live(object)
		if err != nil {
			return err
		}
		known, err := c.clusters.facts(ctx, object)
		if err != nil {
			return err
		}
		of, err := attachmentsOf(ctx, c.runtime.EnvironmentID(), object.ID(), object.Text("name"), known.Nodes, live, project)
		if err != nil {
			return err
		}
		left, err := of.Settle(ctx, settlePatience, func(one attachments.Difference) { c.reports.inform(ctx, object, "%s. %s", one.Text, one.Mends) })
		var expired *wait.Expired
		if err != nil && (!errors.As(err, &expired) || ctx.Err() != nil) {
			return err
		}
		for _, one := range left {
			c.reports.warn(ctx, object, one.Text, fmt.Sprintf("%s. The finding volume-attachment-differs goes when it is done.", one.Mends))
		}
		return nil
	})
}
