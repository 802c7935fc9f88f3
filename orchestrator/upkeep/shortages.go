package upkeep

import (
	"fmt"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

// space are findings about the room that etcd has.
func space(cluster *desired.Cluster, status nodes.Status) []keeper.Finding {
	for _, member := range status.Members {
		short, waste := member.Space.Short(), member.Space.Wasted()
		if !short && !waste {
			continue
		}
		finding := keeper.Finding{ObjectID: cluster.ID, Kind: "etcd-space", Severity: keeper.Info, Mends: "Burano defragments the members, one after another",
			Text: fmt.Sprintf("The store of etcd of cluster %s takes %d MiB of %d MiB, and %d MiB of that are in use", cluster.Name,
				member.Space.Size>>20, member.Space.Quota>>20, member.Space.InUse>>20)}
		switch {
		case member.Space.Full:
			finding.Severity = keeper.Critical
			finding.Text += ": it is full, and nothing can be written"
		case short:
			finding.Severity = keeper.Warning
		}
		if short && !waste {
			finding.Mends = "Delete objects of the cluster that nobody needs, such as old Jobs, ReplicaSets and Events; Burano gives the room back then"
		} else {
			finding.Repair = &keeper.Repair{ObjectID: cluster.ID, Method: known.DefragmentEtcd, Text: "Defragmentation of etcd: " + finding.Text}
		}
		return []keeper.Finding{finding} // members hold the same
	}
	return nil
}

// nearly is the percentage of a disk, beside the part that must be free, below which free room is reported.
const nearly = 5

// shortages are findings about nodes that run out of a resource, so that pods are ended without a request.
func shortages(cluster *desired.Cluster, status nodes.Status) (findings []keeper.Finding) {
	add := func(kind, subject string, severity keeper.Severity, text string) {
		findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: kind, Subject: subject, Severity: severity, Text: text,
			Mends: "Make room on it: remove pods, images, logs or files that nobody needs, or give the nodes a larger flavor. The disk of a node that is a container, as in the " +
				"local cloud, is that of the machine on which it runs"})
	}
	for _, node := range status.Nodes {
		for _, one := range node.Pressure {
			add("node-pressure", node.Name, keeper.Critical, fmt.Sprintf("Node %s of cluster %s is short: %s", node.Name, cluster.Name, one))
		}
		if disk := node.Disk; disk != nil && disk.Size > 0 && disk.Percent() < float64(disk.Least+nearly) {
			text := fmt.Sprintf("The disk of node %s of cluster %s is nearly full: %.1f of %.1f GiB are free (%.0f %%)", node.Name, cluster.Name, float64(disk.Free)/(1<<30),
				float64(disk.Size)/(1<<30), disk.Percent())
			if node.RunsPods() {
				text += fmt.Sprintf("; with less than %d %% it takes no pods, and ends some", disk.Least)
			}
			severity := keeper.Warning
			if disk.Percent() < float64(disk.Least) {
				severity = keeper.Critical
			}
			add("disk-nearly-full", node.Name, severity, text)
		}
	}
	return findings
}
