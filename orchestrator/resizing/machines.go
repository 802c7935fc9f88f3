package resizing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// A cluster may have minions on machines that are no servers of the cloud: com.mirantis.docker.kubernetes.KubernetesExternalNode. Nova and Heat do not
// know them. All else is as with other minions, and users' settings of one are stored with its object.

const (
	propertyExternal = "externalNodes" // of a cluster
)

// addExternalNode is the action that takes a machine into the cluster.
func (c Scaling) addExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	text := func(name string) string {
		value, _ := call.Args[name].(string)
		return strings.TrimSpace(value)
	}
	name := text("name")
	there := call.Object.Objects(propertyExternal)
	if known, is := task.Desired(call.Object).MachineCalled(name); is && known.Text == text("address") { // called again after a failure
		return nil, c.Redeploy(ctx, call, false)
	}
	port, _ := call.Args["port"].(int64)
	made, err := call.Interpreter.New(ctx, clusters.ClassExternalNode, call.Object, map[string]any{"?": map[string]any{"type": clusters.ClassExternalNode}, "name": name, "address": text("address"),
		"port": port, "user": text("user"), "hostKey": call.Args["hostKey"]})
	if err != nil {
		return nil, err
	}
	return nil, c.withNodes(ctx, call, append(slices.Clone(there), made))
}

// removeExternalNode is the action that takes a machine out of the cluster. The machine stays.
func (c Scaling) removeExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	name, _ := call.Args[known.ArgumentNode].(string)
	wanted := task.Desired(call.Object)
	var names []string
	var left []*muranopl.Object
	for _, machine := range wanted.Machines {
		names = append(names, machine.Name)
		if machine.Name != name {
			left = append(left, machine.Object)
		}
	}
	if len(left) == len(names) {
		return nil, fault.New(fault.Invalid, "%s is no external node of cluster %s: there are %s", name, wanted.Name, listOrNone(names))
	}
	return nil, c.withNodes(ctx, call, left)
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// withNodes deploys the cluster with other external nodes. When that fails the model is left as it was.
func (c Scaling) withNodes(ctx context.Context, call muranopl.Call, list []*muranopl.Object) error {
	former := call.Object.Objects(propertyExternal)
	if err := call.Object.SetObjects(propertyExternal, list); err != nil {
		return err
	}
	if err := c.Redeploy(ctx, call, false); err != nil {
		return errors.Join(err, call.Object.SetObjects(propertyExternal, former))
	}
	return nil
}
