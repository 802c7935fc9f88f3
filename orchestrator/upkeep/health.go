package upkeep

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

// health is the duty that looks at the nodes of clusters and at the members of their etcd, over SSH and by Kubernetes. It needs no cloud.
type health struct {
	Config
	status func(ctx context.Context, config Config, environment *keeper.Environment, objectID string, spare func(node string) bool) (known.Facts, nodes.Status, error)

	mutex sync.Mutex
	turns map[string]turn // by environment
}

// turn counts the looks at an environment, to choose the nodes that are asked over SSH.
type turn struct {
	number int
	looked time.Time
}

func newHealth(config Config) *health {
	return &health{Config: config, status: clusterStatus, turns: map[string]turn{}}
}

func (h *health) Name() string { return dutyHealth }

func (h *health) Every() time.Duration { return h.Interval }

func (h *health) Look(ctx context.Context, environment *keeper.Environment) (keeper.Result, error) {
	var result keeper.Result
	spare := h.spare(environment)
	for _, cluster := range environment.Clusters {
		known, status, err := h.status(ctx, h.Config, environment, cluster.ID, spare)
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

// ailments are the problems of a cluster.
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
			if !node.RunsPods() {
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
