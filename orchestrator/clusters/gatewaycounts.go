package clusters

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// attributeGateways is how many gateways a cluster with a minimum of them had when it was deployed last.
const attributeGateways = "gateways"

// gatewayCounts are the numbers of gateways that follow their connections.
type gatewayCounts struct{ *Clusters }

// init gives a loaded cluster the number of gateways of its last deployment: the model's number is as old as the model.
func (c gatewayCounts) init(ctx context.Context, cluster *muranopl.Object) error {
	limits := task.Desired(cluster).GatewayLimits
	if limits == nil {
		return nil
	}
	count := cluster.Int(Gateways.CountProperty)
	kept, found, err := c.Runtime.Attribute(ctx, cluster, attributeGateways)
	if err != nil {
		return err
	}
	if found && kept != nil {
		if err := known.Convert(kept, &count); err != nil {
			return fmt.Errorf("read how many gateways cluster %s has: %w", cluster.Text("name"), err)
		}
	}
	return cluster.Set(Gateways.CountProperty, int64(limits.Between(count)))
}

// keep keeps how many gateways there are once they are there.
func (c gatewayCounts) keep(ctx context.Context, cluster *muranopl.Object) error {
	kept, found, err := c.Runtime.Attribute(ctx, cluster, attributeGateways)
	if err != nil {
		return err
	}
	if wanted := task.Desired(cluster); wanted.GatewayLimits != nil {
		return c.Runtime.SetAttribute(ctx, cluster, attributeGateways, int64(wanted.Gateways.Count))
	}
	if found && kept != nil {
		return c.Runtime.SetAttribute(ctx, cluster, attributeGateways, nil)
	}
	return nil
}

// elastic reports whether a node comes and goes with the load of its cluster: one of a group with limits, or a gateway beyond the minimum.
func elastic(cluster *muranopl.Object, one Member) bool {
	if group := one.Instance().FindEmbedded(task.ClassMinionGroup); group != nil {
		return desired.ReadGroup(group).Elastic()
	}
	return one.Role == nodes.Gateway && comesAndGoes(cluster, one.object)
}

// comesAndGoes is true if a gateway is beyond the minimum of a cluster whose gateways follow their connections: the last ones go first.
func comesAndGoes(cluster, gateway *muranopl.Object) bool {
	limits := task.Desired(cluster).GatewayLimits
	return limits != nil && slices.Index(cluster.Objects(Gateways.Property), gateway) >= limits.Minimum
}
