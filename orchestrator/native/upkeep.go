package native

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

const (
	dutyCertificates = "certificates"
	// certificatesPause is how often certificates are looked at; urgent is when one ends so soon that something must be wrong with its renewal;
	// authorityWarning is how long before its end an authority is spoken of.
	certificatesPause = 6 * time.Hour
	urgent            = 14 * 24 * time.Hour
	authorityWarning  = 365 * 24 * time.Hour
	// rotationPatience is how long a rotation may take before it is spoken of.
	rotationPatience = 2 * time.Hour
)

// certificates is the duty that has certificates renewed before they end. It needs no cloud, and asks no node.
type certificates struct {
	KeptConfig
	now  func() time.Time
	look func(ctx context.Context, environmentID, objectID string) ([]nodes.Certificate, *pki.Rotation, error)
}

func newCertificates(config KeptConfig) certificates {
	return certificates{config, time.Now, func(ctx context.Context, environmentID, objectID string) ([]nodes.Certificate, *pki.Rotation, error) {
		_, cluster, err := known.Open(ctx, config.Secrets, environmentID, objectID, nodes.Config{Logger: config.Logger})
		if err != nil {
			return nil, nil, err
		}
		defer cluster.Close()
		list, err := cluster.Certificates(ctx)
		if err != nil {
			return nil, nil, err
		}
		rotation, err := cluster.Rotation(ctx)
		return list, rotation, err
	}}
}

func (c certificates) Name() string { return dutyCertificates }

func (c certificates) Every() time.Duration { return certificatesPause }

func (c certificates) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	now := c.now()
	for _, cluster := range environment.Clusters {
		list, rotation, err := c.look(ctx, environment.ID, cluster.ID)
		if err != nil {
			return result, err
		}
		if len(list) > 0 && c.FirstExpiry != nil {
			c.FirstExpiry(environment.ID, cluster.ID, list[0].Expires)
		}
		due := 0
		var first nodes.Certificate
		for _, one := range list {
			switch {
			case one.Node != "" && one.Due(now):
				if due++; due == 1 {
					first = one
				}
			case one.Node == "" && one.Expires.Sub(now) < authorityWarning:
				result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "authority-ends", Subject: one.Name, Severity: keeper.Warning,
					Text:  fmt.Sprintf("The %s of cluster %s ends on %s, and no certificate of it is good for longer", one.Name, cluster.Name, one.Expires.Format(time.DateOnly)),
					Mends: "Rotate it: burano cluster rotate certificates"})
			}
		}
		if rotation != nil && now.Sub(rotation.Began) > rotationPatience {
			result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "rotation-unfinished", Severity: keeper.Warning,
				Text: fmt.Sprintf("A rotation in cluster %s began on %s and has not ended (%s): what it replaces may still be accepted", cluster.Name,
					rotation.Began.UTC().Format(time.DateTime), rotation.Stage),
				Mends: "Run burano cluster rotate again: it goes on where it was"})
		}
		if due == 0 {
			continue
		}
		finding := keeper.Finding{ObjectID: cluster.ID, Kind: "certificates-end", Severity: keeper.Warning, Mends: "Burano renews them by itself",
			Text: fmt.Sprintf("%d certificates of cluster %s end soon, the first one (%s of %s) on %s", due, cluster.Name, first.Name, first.Node, first.Expires.Format(time.DateOnly))}
		if first.Expires.Sub(now) < urgent {
			finding.Severity = keeper.Critical
		}
		if environment.Failed {
			finding.Mends = environment.DeployAgain("renews them", "Burano does not renew them by itself, because its newest deployment failed")
		} else {
			finding.Repair = &keeper.Repair{ObjectID: cluster.ID, Method: known.RenewCertificates, Text: "Renewal of certificates: " + finding.Text}
			result.Next = c.Interval / hurry // a repair is begun, and seen to have helped, at later looks
		}
		result.Findings = append(result.Findings, finding)
	}
	return result, nil
}

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
			if node.Role == nodes.Minion {
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

// asItStands gives the cluster as it was last deployed to work, which asks nothing of the cloud.
func (c clusterClass) asItStands(work func(ctx context.Context, call muranopl.Call, known *known.Facts) error) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		defer c.clusters.close()
		known, err := c.clusters.facts(ctx, call.Object)
		if err != nil {
			return nil, err
		}
		if known == nil || !known.Network.IsValid() { // of a former version
			return nil, fault.New(fault.Invalid, "Cluster %s was not up yet, or was deployed by a former version: deploy the environment", call.Object.Text("name"))
		}
		return nil, work(ctx, call, known)
	}
}

// renewCertificates is the action that gives nodes new certificates in place of the ones that end soon.
func (c clusterClass) renewCertificates(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	return c.rejoin(ctx, call.Object, known)
}

// defragment is the action that gives the room back that is free in the files of etcd.
func (c clusterClass) defragment(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	c.clusters.recall(call.Object, known)
	live, err := c.clusters.bring(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return live.Defragment(ctx)
}
