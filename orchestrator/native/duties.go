package native

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

// Names of duties: they stand in rows and metrics.
const (
	dutyHealth  = "health"
	dutyServers = "servers"
)

// kindLocked is the kind of the finding that a node is locked.
const kindLocked = "node-locked"

// hurry is when something is looked at again that is not as it should be, as a part of the interval.
const hurry = 4

// KeptConfig is what the duties need to know of the server.
type KeptConfig struct {
	known.Reach
	Secrets known.Secrets
	// Meters sample the gateways of clusters, for all who want to know: each gateway is asked once.
	Meters *Meters
	// Interval is how often an environment is looked at.
	Interval time.Duration
	// FirstExpiry is told when the first certificate of a cluster ends. May be nil.
	FirstExpiry func(environmentID, clusterID string, end time.Time)
}

// open is a cluster of an environment as it was deployed last, which fails soon where no node answers. The caller closes it.
func (c KeptConfig) open(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (*nodes.Cluster, error) {
	_, live, err := known.Open(ctx, c.Secrets, environment.ID, cluster.ID, nodes.Config{Logger: c.Logger, Connected: c.Connected, Patience: known.ReachPatience})
	return live, err
}

// ask calls do with the API server of such a cluster.
func (c KeptConfig) ask(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, do func(api *rest.Config) error) error {
	live, err := c.open(ctx, environment, cluster)
	if err != nil {
		return err
	}
	defer live.Close()
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return err
	}
	return do(api)
}

// Duties are what is looked after in clusters and servers.
func Duties(config KeptConfig) []keeper.Duty {
	duties := []keeper.Duty{newHealth(config), newKept(config), newCertificates(config), newLoads(config), newGatewayLoads(config), newStorageDuty(config), newAttachmentsDuty(config), newClaimsDuty(config), newBackupsDuty(config)}
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
func clusterStatus(ctx context.Context, config KeptConfig, environment *keeper.Environment, objectID string, spare func(node string) bool) (known.Facts, nodes.Status, error) {
	facts, cluster, err := known.Open(ctx, config.Secrets, environment.ID, objectID, nodes.Config{Logger: config.Logger, Connected: config.Connected,
		Patience: known.ReachPatience, Fence: environment.Fence, Alive: environment.Alive})
	if err != nil {
		return facts, nodes.Status{}, err
	}
	defer cluster.Close()
	asked, cancel := context.WithTimeout(ctx, known.AnswerPatience)
	defer cancel()
	return facts, cluster.Status(asked, spare), nil
}

// health is the duty that looks at the nodes of clusters and at the members of their etcd, over SSH and by Kubernetes. It needs no cloud.
type health struct {
	KeptConfig
	status func(ctx context.Context, config KeptConfig, environment *keeper.Environment, objectID string, spare func(node string) bool) (known.Facts, nodes.Status, error)

	mutex sync.Mutex
	turns map[string]turn // by environment
}

// turn says whose turn it is in an environment to be asked over SSH.
type turn struct {
	number int
	looked time.Time
}

const (
	// minionTurns is in how many looks each minion is asked over SSH, where its kubelet says each time that it is well.
	minionTurns = 5
	// turnsKept is how long it is remembered whose turn it was, in intervals: the environment is gone, or another server looks at it.
	turnsKept = 10
)

func newHealth(config KeptConfig) *health {
	return &health{KeptConfig: config, status: clusterStatus, turns: map[string]turn{}}
}

func (h *health) Name() string { return dutyHealth }

func (h *health) Every() time.Duration { return h.Interval }

// spare tells which minions need not be asked over SSH by this look: all but those whose turn it is, unless something stands that was found.
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

func (h *health) Look(ctx context.Context, environment *keeper.Environment) (keeper.Result, error) {
	var result keeper.Result
	spare := h.spare(environment)
	for _, cluster := range environment.Clusters {
		known, status, err := h.status(ctx, h.KeptConfig, environment, cluster.ID, spare)
		if err != nil {
			return result, err
		}
		result.Findings = append(result.Findings, ailments(environment, cluster, known, status)...)
		result.Findings = append(result.Findings, space(cluster, status)...)
		result.Findings = append(result.Findings, shortages(cluster, status)...)
	}
	if slices.ContainsFunc(result.Findings, func(finding keeper.Finding) bool { return finding.Kind != kindLocked }) {
		result.Next = h.Interval / hurry
	}
	return result, ctx.Err()
}

// ailments are what is wrong with a cluster.
func ailments(environment *keeper.Environment, cluster *desired.Cluster, known known.Facts, status nodes.Status) []keeper.Finding {
	var findings []keeper.Finding
	add := func(kind, subject string, severity keeper.Severity, mends, text string, args ...any) {
		findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: kind, Subject: subject, Severity: severity, Text: fmt.Sprintf(text, args...), Mends: mends})
	}
	bad, masters := map[string]bool{}, 0
	for _, node := range status.Nodes {
		if node.Role == nodes.Master && !node.Leaving {
			masters++
		}
	}
	for _, node := range status.Nodes {
		switch {
		case node.Leaving: // whether it is well is of no interest any more
		case node.Settings.Locked:
			add(kindLocked, node.Name, keeper.Info, "burano node unlock takes it into service again", "Node %s of cluster %s is locked: nothing runs on it, and Burano leaves it alone",
				node.Name, cluster.Name)
		case !node.Reached:
			bad[node.Name] = true
			severity := keeper.Warning
			if node.Role == nodes.Master && masters == 1 {
				severity = keeper.Critical
			}
			mends := "A node that starts again comes back by itself. Look at its server in Nova; burano cluster show tells more"
			if node.Machine != nil {
				mends = "A node that starts again comes back by itself. It is a machine of its own: look at it, and at the way to " + node.Endpoint() + ". Where it is lost, " +
					"remove it from the cluster (removeExternalNode)"
			}
			add("node-unreachable", node.Name, severity, mends,
				"Node %s (%s) of cluster %s is not reached over SSH: %v", node.Name, node.Role, cluster.Name, node.Problem)
		case node.Ready != nil && !*node.Ready:
			bad[node.Name] = true
			lacks := "takes no pods"
			if node.Role != nodes.Minion {
				lacks = "is none that Kubernetes knows to be well"
			}
			mends := environment.DeployAgain("starts what does not run on the node, and registers it", "Burano restarts the node by burano node reboot, and puts another in its place by burano node replace")
			if node.Machine != nil {
				mends = environment.DeployAgain("starts what does not run on the node, and registers it", "the other nodes go on")
			}
			add("node-not-ready", node.Name, keeper.Warning, mends,
				"Node %s of cluster %s %s: %v", node.Name, cluster.Name, lacks, node.Problem)
		}
	}
	voters, answering := 0, 0
	for _, member := range status.Members {
		if !member.Learner {
			voters++
			if member.Answers {
				answering++
			}
		}
	}
	for _, member := range status.Members {
		if !member.Answers && member.Name != "" {
			severity := keeper.Warning
			if answering*2 <= voters+1 { // one more, and there is no majority
				severity = keeper.Critical
			}
			if !locked(status.Nodes, member.Name) {
				bad[member.Name] = true
			}
			add("member-silent", member.Name, severity, "A member whose node starts again comes back by itself. "+
				environment.DeployAgain("starts it or puts a new one in its place", "burano node reboot starts its node again"),
				"The etcd member on node %s of cluster %s does not answer; %d of %d do", member.Name, cluster.Name, answering, voters)
		}
	}
	if status.Etcd != nil {
		add("etcd-unanswered", "", keeper.Critical, "Bring back its nodes: a majority of etcd's members must run", "etcd of cluster %s does not answer: %v", cluster.Name, status.Etcd)
	}
	if status.Kubernetes != nil {
		add("api-unanswered", "", keeper.Critical, "Bring back a master: its API server must run and reach etcd", "The Kubernetes API of cluster %s does not answer: %v",
			cluster.Name, status.Kubernetes)
	}
	for i, finding := range findings {
		// A node that is not reached is for the look at its server to judge.
		reached := slices.ContainsFunc(status.Nodes, func(node nodes.NodeStatus) bool { return node.Name == finding.Subject && node.Reached })
		if reached && finding.Kind != kindLocked && !locked(status.Nodes, finding.Subject) {
			findings[i].Repair, findings[i].Mends = repairOf(environment, cluster, len(known.Nodes), len(bad), nodes.Alone(known.Nodes), finding)
		}
	}
	return findings
}

// locked tells whether a node is locked.
func locked(list []nodes.NodeStatus, name string) bool {
	return slices.ContainsFunc(list, func(node nodes.NodeStatus) bool { return node.Name == name && node.Settings.Locked })
}

// repairOf is what mends the node that a finding is about, and what is said of it; nil where it is not allowed, or where so many nodes are bad that the fault may be
// elsewhere. Gateways alone are few, and independent of each other: of them one may always be bad.
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
