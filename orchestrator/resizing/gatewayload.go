package resizing

import (
	"context"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
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
)

// scaleGatewaysByLoad is the action that gives a cluster as many gateways as its connections need.
func (c Scaling) scaleGatewaysByLoad(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	limits := task.Desired(call.Object).GatewayLimits
	if limits == nil {
		return nil, fault.New(fault.Invalid, "cluster %s has no minimum of gateways: give it one with scale", call.Object.Text("name"))
	}
	keep := known.Vault{Runtime: c.Runtime, Cluster: call.Object.ID()}
	record, err := scaling.LoadGatewayRecord(ctx, keep.Load)
	if err != nil {
		return nil, err
	}
	err = c.decideOnce(ctx, keep, scaling.GatewayRecordName, &record, record.Task, func() error { return c.decideGateways(ctx, call, *limits, &record) })
	if err != nil {
		return nil, err
	}
	l := clusters.Gateways.In(call.Object)
	if record.Count == l.Size() {
		c.Reports.Inform(ctx, call.Object, "The cluster needs neither more gateways nor fewer")
		return nil, nil
	}
	c.Reports.Inform(ctx, call.Object, "%s", record.Last.Text)
	return nil, c.resize(ctx, call, sizing{l, l.All(), record.Count})
}

// decideGateways reads the gateways' counts and decides on their number.
func (c Scaling) decideGateways(ctx context.Context, call muranopl.Call, limits desired.GatewayLimits, record *scaling.GatewayRecord) error {
	known, err := scalingStateOf(c.Clusters).forScaling(ctx, call.Object)
	if err != nil {
		return err
	}
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return c.Runtime.Step(ctx, call.Object, "decide on the number of gateways", func(ctx context.Context) error {
		now, wanted, reason := scaling.Sizes(limits, scaling.CountGateways(ctx, live, known.Nodes))
		record.Task, record.Count = c.Runtime.TaskID(), wanted
		if wanted != now {
			record.Last = &scaling.Decision{At: time.Now().UTC(), From: now, To: wanted, Text: reason, Task: record.Task}
		}
		return nil
	})
}
