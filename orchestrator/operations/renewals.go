package operations

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
)

// asDeployed returns the body of an action on the cluster as it was last deployed, which sends no requests to the cloud.
func (c Operations) asDeployed(work func(ctx context.Context, call muranopl.Call, known *known.Facts) error) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		defer c.Close()
		known, err := c.Facts(ctx, call.Object)
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
func (c Operations) renewCertificates(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	return c.rejoin(ctx, call.Object, known)
}

// defragment is the action that gives the room back that is free in the files of etcd.
func (c Operations) defragment(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	c.UseFacts(call.Object, known)
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return live.Defragment(ctx)
}
