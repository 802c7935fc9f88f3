package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// A cluster may have minions on machines that are no servers of the cloud: com.mirantis.docker.kubernetes.KubernetesExternalNode. Nova and Heat do not
// know them. All else is as with other minions, and users' settings of one are stored with its object.

const (
	classExternalNode = "com.mirantis.docker.kubernetes.KubernetesExternalNode"
	propertyExternal  = "externalNodes" // of a cluster
)

// machines are nodes that are no servers of the cloud.
type machines struct{ *clusters }

func machinesOf(c *clusters) machines { return machines{c} }

// externalNodes are a cluster's external nodes in the model.
func (c machines) externalNodes(ctx context.Context, cluster *muranopl.Object) (list []nodes.Node, err error) {
	machines, err := task.Desired(cluster).MachineNodes()
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	for _, machine := range machines {
		node := machine.Node
		if node.Settings, err = c.settings.whole(ctx, machine.Object); err != nil {
			return nil, err
		}
		list = append(list, node)
	}
	return list, nil
}

// sameMachine is true if a node is the model's external node of that name.
func sameMachine(wanted []nodes.Node, node nodes.Node) bool {
	return slices.ContainsFunc(wanted, func(one nodes.Node) bool {
		return one.Name == node.Name && node.Machine != nil && one.Endpoint() == node.Endpoint()
	})
}

// byHand refuses operations that only servers of the cloud support.
func byHand(name string) error {
	return fault.New(fault.Invalid, "%s is a machine of its own and no server of the cloud: Burano can neither replace it nor give it another image. "+
		"Remove it from the cluster (removeExternalNode), set the machine or another one up, and add it again", name)
}

// externalVersions are the external nodes of a cluster with the Kubernetes that they have and keep, and a sentence about that; "" where there are none.
func externalVersions(known *known.Facts, has map[string]string) (list []nodeVersion, said string) {
	var names []string
	for _, node := range known.Nodes {
		if node.Machine == nil {
			continue
		}
		list = append(list, nodeVersion{name: node.Name, role: node.Role, now: parseKubernetes(has[node.Name])})
		names = append(names, fmt.Sprintf("%s (%s)", node.Name, cmp.Or(has[node.Name], "not known")))
	}
	if len(names) > 0 {
		said = "; these machines keep their Kubernetes, until somebody removes them, gives them the newer content and adds them again: " + strings.Join(names, ", ")
	}
	return list, said
}

// machineActions add and remove machines that are nodes of a cluster and no servers of the cloud.
type machineActions struct{ clusterClass }

func machineActionsOf(c clusterClass) machineActions { return machineActions{c} }

// addExternalNode is the action that takes a machine into the cluster.
func (c machineActions) addExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	text := func(name string) string {
		value, _ := call.Args[name].(string)
		return strings.TrimSpace(value)
	}
	name := text("name")
	there := call.Object.Objects(propertyExternal)
	if known, is := task.Desired(call.Object).MachineCalled(name); is && known.Text == text("address") { // called again after a failure
		return nil, nodeScalingOf(c.clusterClass).redeploy(ctx, call, false)
	}
	port, _ := call.Args["port"].(int64)
	made, err := call.Interpreter.New(ctx, classExternalNode, call.Object, map[string]any{"?": map[string]any{"type": classExternalNode}, "name": name, "address": text("address"),
		"port": port, "user": text("user"), "hostKey": call.Args["hostKey"]})
	if err != nil {
		return nil, err
	}
	return nil, c.withNodes(ctx, call, append(slices.Clone(there), made))
}

// removeExternalNode is the action that takes a machine out of the cluster. The machine stays.
func (c machineActions) removeExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	volumeLossesOf(c.clusters).allowLoss(call)
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
func (c machineActions) withNodes(ctx context.Context, call muranopl.Call, list []*muranopl.Object) error {
	former := call.Object.Objects(propertyExternal)
	if err := call.Object.SetObjects(propertyExternal, list); err != nil {
		return err
	}
	if err := nodeScalingOf(c.clusterClass).redeploy(ctx, call, false); err != nil {
		return errors.Join(err, call.Object.SetObjects(propertyExternal, former))
	}
	return nil
}

// leaveMachines takes a cluster that is destroyed from the machines of its external nodes.
func (c machines) leaveMachines(ctx context.Context, object *muranopl.Object) error {
	known, err := c.clusters.facts(ctx, object)
	if err != nil || known == nil || !slices.ContainsFunc(known.Nodes, func(node nodes.Node) bool { return node.Machine != nil }) {
		return err
	}
	config, err := clusterConnectionsOf(c.clusters).config(ctx, object, known.Nodes)
	if err != nil {
		return err
	}
	live, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	defer live.Close()
	live.LeaveMachines(ctx)
	known.Nodes = slices.DeleteFunc(known.Nodes, func(node nodes.Node) bool { return node.Machine != nil })
	return c.clusters.storeFacts(ctx, object, *known)
}
