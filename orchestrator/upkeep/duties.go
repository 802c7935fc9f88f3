// Package upkeep has the keeper's duties for clusters and servers, each in a file named after it.
package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/signin/webhook"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
)

// Names of duties, as rows and metrics have them.
const (
	dutyHealth  = "health"
	dutyServers = "servers"
)

// kindLocked is the kind of the finding that a node is locked.
const kindLocked = "node-locked"

// hurry is when something is looked at again that is not as it should be, as a part of the interval.
const hurry = 4

// Config are the server's settings for the duties.
type Config struct {
	known.Reach
	Secrets known.Secrets
	// Schedules are the rows about when environments sleep by themselves.
	Schedules Schedules
	// Meters sample the gateways of clusters, for all who want to know: each gateway is asked once.
	Meters *scaling.Meters
	// Interval is how often an environment is looked at.
	Interval time.Duration
	// Hour is how long an hour of a schedule of environments' backups is, and the age at which claims may be unused; an hour when 0.
	Hour time.Duration
	// Person is the user of a cluster of a project with a token of Keystone (webhook.Answer). Nil where none signs in so.
	Person func(ctx context.Context, projectID, token string) (webhook.Person, error)
	// FirstExpiry is told when the first certificate of a cluster ends. May be nil.
	FirstExpiry func(environmentID, clusterID string, end time.Time)
}

// hours are hours as Hour has them.
func (c Config) hours(n int64) time.Duration { return time.Duration(n) * cmp.Or(c.Hour, time.Hour) }

// opened is a cluster that the duties of one check use together, with its connections.
type opened struct {
	facts known.Facts
	live  *nodes.Cluster
	api   func() (*rest.Config, error)
}

// Close ends its connections.
func (o *opened) Close() error { return o.live.Close() }

// open is a cluster of an environment as it was deployed last, which fails soon where no node answers. It is closed with the check.
func (c Config) open(ctx context.Context, environment *keeper.Environment, clusterID string) (*opened, error) {
	one, err := environment.Share(clusterID, func() (io.Closer, error) {
		facts, live, err := c.openApart(context.WithoutCancel(ctx), environment, clusterID)
		if err != nil {
			return nil, err
		}
		return &opened{facts, live, sync.OnceValues(func() (*rest.Config, error) {
			api, err := live.Kubernetes(context.WithoutCancel(ctx))
			if err != nil {
				return nil, err
			}
			if api, err = kube.Shared(api); err != nil {
				return nil, err
			}
			return kube.Protobuf(api), nil
		})}, nil
	})
	if err != nil {
		return nil, err
	}
	return one.(*opened), nil
}

// openApart is open for what outlives the check. The caller closes it.
func (c Config) openApart(ctx context.Context, environment *keeper.Environment, clusterID string) (known.Facts, *nodes.Cluster, error) {
	return known.Open(ctx, c.Secrets, environment.ID, clusterID, nodes.Config{Logger: c.Logger, Connected: c.Connected, Patience: known.ReachPatience,
		Fence: environment.Fence, Alive: environment.Alive})
}

// ask calls do with the API server of such a cluster.
func (c Config) ask(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, do func(api *rest.Config) error) error {
	one, err := c.open(ctx, environment, cluster.ID)
	if err != nil {
		return err
	}
	api, err := one.api()
	if err != nil {
		return err
	}
	return do(api)
}

// Duties are the duties for clusters and servers.
func Duties(config Config) []keeper.Duty {
	duties := []keeper.Duty{newHealth(config), newKept(config), newCertificates(config), newLoads(config), newGatewayLoads(config), newStorageDuty(config), newSignInDuty(config), newAttachmentsDuty(config), newClaimsDuty(config), newBackupsDuty(config), newPodsDuty(config), newHibernationDuty(config)}
	if config.Snapshots != nil {
		duties = append(duties, newScheduled(config))
	}
	if config.Backups != nil {
		duties = append(duties, environmentBackupsDuty{config, time.Now})
	}
	return duties
}

// Looked are the duties that a deployment does itself, with how long after it they are due: it has seen each node, member and kubelet.
func Looked(interval time.Duration) map[string]time.Duration {
	return map[string]time.Duration{dutyHealth: interval}
}

// clusterStatus asks a cluster how it is, minions that spare names by their kubelets alone.
func clusterStatus(ctx context.Context, config Config, environment *keeper.Environment, objectID string, spare func(node string) bool) (known.Facts, nodes.Status, error) {
	one, err := config.open(ctx, environment, objectID)
	if err != nil {
		return known.Facts{}, nodes.Status{}, err
	}
	asked, cancel := context.WithTimeout(ctx, known.AnswerPatience)
	defer cancel()
	return one.facts, one.live.Status(asked, spare), nil
}

const (
	// minionTurns is the number of looks in which each minion is asked once over SSH although its kubelet reports each time that it is well.
	minionTurns = 5
	// turnsKept is how long it is remembered whose turn it was, in intervals: the environment is gone, or another server looks at it.
	turnsKept = 10
)

// spare returns the minions that this look need not ask over SSH: all but the minions whose turn it is, if there is no open finding.
func (h *health) spare(environment *keeper.Environment) func(node string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	now := h.turns[environment.ID]
	h.turns[environment.ID] = turn{now.number + 1, time.Now()}
	for id, one := range h.turns {
		if time.Since(one.looked) > turnsKept*h.Interval {
			delete(h.turns, id)
		}
	}
	if slices.Contains(environment.Found, dutyHealth) {
		return nil
	}
	return func(node string) bool {
		of := fnv.New32a()
		_, _ = of.Write([]byte(node)) // never fails
		return (int(of.Sum32()%minionTurns)+now.number)%minionTurns != 0
	}
}

// locked is true if a node is locked.
func locked(list []nodes.NodeStatus, name string) bool {
	return slices.ContainsFunc(list, func(node nodes.NodeStatus) bool { return node.Name == name && node.Settings.Locked })
}

// repairOf is the repair of the node of a finding, and its description; nil if no repair is allowed, or if so many nodes are bad that the fault may
// be elsewhere. Gateways alone are few, and independent of each other: one of them may always be bad.
func repairOf(environment *keeper.Environment, cluster *desired.Cluster, all, bad int, alone bool, finding keeper.Finding) (*keeper.Repair, string) {
	switch {
	case !cluster.AutoRepair:
		return nil, finding.Mends + ", or set the cluster's autoRepair to have Burano do so"
	case environment.Failed:
		return nil, finding.Mends + ". Burano does nothing by itself, because the environment's newest deployment failed"
	case bad*3 > all && !(alone && bad == 1):
		return nil, fmt.Sprintf("%s. Burano does nothing by itself, because more than a third of the nodes are bad (%d of %d), so that the fault may be elsewhere", finding.Mends, bad, all)
	}
	return &keeper.Repair{ObjectID: cluster.ID, Method: known.RepairNode, Args: map[string]any{known.ArgumentNode: finding.Subject}, Cloud: true,
		Text: "Repair of node " + finding.Subject + ": " + finding.Text}, "Burano repairs it by itself (autoRepair), with the environment's standing delegation"
}
