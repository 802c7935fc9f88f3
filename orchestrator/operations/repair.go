package operations

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/resizing"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// repairNode is the action that repairs a node: its server is started if it is off, or replaced if it is gone. Then its units are started, and it joins.
// Other nodes do not change.
func (c Operations) repairNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	name, _ := call.Args[known.ArgumentNode].(string)
	known, err := c.Facts(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	if known == nil {
		return nil, fault.New(fault.Invalid, "cluster %s was never up: deploy the environment", call.Object.Text("name"))
	}
	at := slices.IndexFunc(known.Nodes, func(node nodes.Node) bool { return node.Name == name })
	if at < 0 {
		return nil, fault.New(fault.Invalid, "%s is no node of cluster %s", name, call.Object.Text("name"))
	}
	node := known.Nodes[at]
	if node.Settings.Locked {
		return nil, fault.New(fault.Conflict, "%s is locked, and left alone until it is unlocked", name)
	}
	return nil, c.recoverNode(ctx, call, known, node)
}

// recoverNode has a node do its work again: its server is started if it is off, or gets another one in its place if it is gone.
func (c Operations) recoverNode(ctx context.Context, call muranopl.Call, known *known.Facts, node nodes.Node) error {
	if node.Machine != nil {
		return c.rejoin(ctx, call.Object, known)
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	var state openstack.ServerState
	err = c.Runtime.Step(ctx, call.Object, node.Name+": server", func(ctx context.Context) error {
		limited, cancel := stacks.Limit(ctx, c.Settings.ServerPatience)
		defer cancel()
		if state, err = project.Server(limited, node.Server); err != nil {
			return err
		}
		switch {
		case state.Status == openstack.Gone:
			return nil
		case state.Status == "ERROR":
			return fmt.Errorf("server %s is %s: mend it, or delete it in Nova for a new one in its place", node.Name, state)
		case state.Down():
			return stacks.StartServer(limited, c.Reports, project, call.Object, node.Name, node.Server)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if state.Status == openstack.Gone || !known.Network.IsValid() {
		_, err := call.Interpreter.Invoke(ctx, call.Object, task.MethodDeploy, nil)
		return err
	}
	return c.rejoin(ctx, call.Object, known)
}

// rejoin deploys a cluster as it is, without a check of its servers.
func (c Operations) rejoin(ctx context.Context, object *muranopl.Object, known *known.Facts) error {
	c.UseFacts(object, known)
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, object, known.Nodes)
	if err != nil {
		return err
	}
	if err := live.Deploy(ctx); err != nil {
		return err
	}
	clusters.DeploymentsOf(c.Clusters).ReportUp(ctx, object)
	return nil
}

// replaceNode is the action that gives a node another server.
func (c Operations) replaceNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	named, _ := call.Args[known.ArgumentNode].(string)
	if _, is := task.Desired(call.Object).MachineCalled(named); is {
		return nil, byHand(named)
	}
	var all []*muranopl.Object
	for _, node := range clusters.ActiveNodes(call.Object) {
		all = append(all, node.Object)
	}
	at, err := clusters.NodeNamesOf(c.Clusters).Named(ctx, all, named)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s is no node of cluster %s: %s", named, call.Object.Text("name"), err)
	}
	node := clusters.ActiveNodes(call.Object)[at]
	if err := clusters.VersionSkewOf(c.Clusters).Admit(ctx, call.Object, []clusters.ActiveNode{node}); err != nil {
		return nil, err
	}
	if err := clusters.ReplacementsOf(c.Clusters).Order(ctx, call.Object, node, false); err != nil {
		return nil, err
	}
	return nil, resizing.New(c.Clusters).Redeploy(ctx, call, node.Role == nodes.Gateway)
}

// byHand refuses operations that only servers of the cloud support.
func byHand(name string) error {
	return fault.New(fault.Invalid, "%s is a machine of its own and no server of the cloud: Burano can neither replace it nor give it another image. "+
		"Remove it from the cluster (removeExternalNode), set the machine or another one up, and add it again", name)
}
