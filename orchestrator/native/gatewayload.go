package native

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/task"
)

// A cluster with a minimum of gateways has as many of them as its connections need: the keeper's duty finds that they should be more or fewer, and starts
// the action here, which decides by its own findings.

const (
	propertyFewest       = "gatewayMinimum"        // of a cluster; null: the number of gateways is decided elsewhere
	propertySessions     = "gatewaySessions"       // connections at once that a gateway is to have, on average
	propertyGatewayAfter = "gatewayScaleDownAfter" // seconds
	// attributeGateways is how many gateways a cluster with a minimum of them had when it was deployed last.
	attributeGateways = "gateways"
)

// followsConnections gives a loaded cluster the number of gateways of its last deployment: the model's number is as old as the model.
func (c nodeScaling) followsConnections(ctx context.Context, cluster *muranopl.Object) error {
	limits := task.Desired(cluster).GatewayLimits
	if limits == nil {
		return nil
	}
	count := cluster.Int(gateways.count)
	kept, found, err := c.clusters.runtime.Attribute(ctx, cluster, attributeGateways)
	if err != nil {
		return err
	}
	if found && kept != nil {
		if err := known.Convert(kept, &count); err != nil {
			return fmt.Errorf("read how many gateways cluster %s has: %w", cluster.Text("name"), err)
		}
	}
	return cluster.Set(gateways.count, int64(limits.Between(count)))
}

// keepGateways keeps how many gateways there are once they are there.
func (c nodeScaling) keepGateways(ctx context.Context, cluster *muranopl.Object) error {
	kept, found, err := c.clusters.runtime.Attribute(ctx, cluster, attributeGateways)
	if err != nil {
		return err
	}
	if wanted := task.Desired(cluster); wanted.GatewayLimits != nil {
		return c.clusters.runtime.SetAttribute(ctx, cluster, attributeGateways, int64(wanted.Gateways.Count))
	}
	if found && kept != nil {
		return c.clusters.runtime.SetAttribute(ctx, cluster, attributeGateways, nil)
	}
	return nil
}

// comesAndGoes is true if a gateway is beyond the minimum of a cluster whose gateways follow their connections: the last ones go first.
func comesAndGoes(cluster, gateway *muranopl.Object) bool {
	limits := task.Desired(cluster).GatewayLimits
	return limits != nil && slices.Index(cluster.Objects(gateways.list), gateway) >= limits.Minimum
}

// scaleGatewaysByLoad is the action that gives a cluster as many gateways as its connections need.
func (c nodeScaling) scaleGatewaysByLoad(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	limits := task.Desired(call.Object).GatewayLimits
	if limits == nil {
		return nil, fault.New(fault.Invalid, "cluster %s has no minimum of gateways: give it one with scale", call.Object.Text("name"))
	}
	keep := known.Vault{Runtime: c.clusters.runtime, Cluster: call.Object.ID()}
	record, err := scaling.LoadGatewayRecord(ctx, keep.Load)
	if err != nil {
		return nil, err
	}
	if record.Task != c.clusters.runtime.TaskID() {
		if err := c.decideGateways(ctx, call, *limits, &record); err != nil {
			return nil, err
		}
		text, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		if err := keep.Store(ctx, scaling.GatewayRecordName, text); err != nil {
			return nil, err
		}
	}
	l := nodeList{gateways, call.Object}
	if record.Count == l.size() {
		c.reports.Inform(ctx, call.Object, "The cluster needs neither more gateways nor fewer")
		return nil, nil
	}
	c.reports.Inform(ctx, call.Object, "%s", record.Last.Text)
	return nil, c.resize(ctx, call, resizing{l, l.all(), record.Count})
}

// decideGateways reads the gateways' counts and decides on their number.
func (c nodeScaling) decideGateways(ctx context.Context, call muranopl.Call, limits desired.GatewayLimits, record *scaling.GatewayRecord) error {
	known, err := scalingStateOf(c.clusters).forScaling(ctx, call.Object)
	if err != nil {
		return err
	}
	live, err := clusterConnectionsOf(c.clusters).connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return c.clusters.runtime.Step(ctx, call.Object, "decide on the number of gateways", func(ctx context.Context) error {
		now, wanted, reason := scaling.Sizes(limits, scaling.CountGateways(ctx, live, known.Nodes))
		record.Task, record.Count = c.clusters.runtime.TaskID(), wanted
		if wanted != now {
			record.Last = &scaling.Decision{At: time.Now().UTC(), From: now, To: wanted, Text: reason, Task: record.Task}
		}
		return nil
	})
}
