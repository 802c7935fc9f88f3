package native

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/known"
)

const (
	methodRotateCertificates = "rotateCertificates"
	methodRotateKeys         = "rotateKeys"
	argumentAuthorities      = "authorities"
	argumentKeys             = "keys"
	argumentRestartPods      = "restartPods"
)

// rotate is the action that exchanges authorities or keys of the cluster: the ones that the argument names, or all of them.
func (c clusterClass) rotate(all []pki.Part, argument string) func(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	return func(ctx context.Context, call muranopl.Call, known *known.Facts) error {
		order := nodes.Rotation{Run: c.clusters.runtime.TaskID(), Parts: all}
		if named, _ := call.Args[argument].([]any); len(named) > 0 {
			order.Parts = nil
			for _, part := range all {
				for _, name := range named {
					if name == string(part) {
						order.Parts = append(order.Parts, part)
						break
					}
				}
			}
		}
		restart, given := call.Args[argumentRestartPods].(bool)
		order.KeepPods = given && !restart
		c.clusters.recall(call.Object, known)
		live, err := clusterConnectionsOf(c.clusters).connect(ctx, call.Object, known.Nodes)
		if err != nil {
			return err
		}
		defer clusterStatesOf(c.clusters).saveBefore(ctx, call.Object, live, "a rotation")()
		if err := live.Rotate(ctx, order); err != nil {
			return err
		}
		c.reports.Inform(ctx, call.Object, "Rotated in cluster %s: nothing accepts the former ones any more", call.Object.Text("name"))
		return nil
	}
}
