package clusters

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// machines are nodes that are no servers of the cloud.
type machines struct{ *Clusters }

// MachinesOf returns the external nodes of a task's clusters.
func MachinesOf(c *Clusters) machines { return machines{c} }

// externalNodes are a cluster's external nodes in the model.
func (c machines) externalNodes(ctx context.Context, cluster *muranopl.Object) (list []nodes.Node, err error) {
	machines, err := task.Desired(cluster).MachineNodes()
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	for _, machine := range machines {
		node := machine.Node
		if node.Settings, err = c.NodeSettings.whole(ctx, machine.Object); err != nil {
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

// LeaveMachines takes a cluster that is destroyed from the machines of its external nodes.
func (c machines) LeaveMachines(ctx context.Context, object *muranopl.Object) error {
	known, err := c.Clusters.Facts(ctx, object)
	if err != nil || known == nil || !slices.ContainsFunc(known.Nodes, func(node nodes.Node) bool { return node.Machine != nil }) {
		return err
	}
	config, err := ConnectionsOf(c.Clusters).config(ctx, object, known.Nodes)
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
	return c.Clusters.StoreFacts(ctx, object, *known)
}

// ExternalVersions are the external nodes of a cluster with the Kubernetes that they have and keep, and a sentence about that; "" where there are none.
func ExternalVersions(known *known.Facts, has map[string]string) (list []NodeVersion, said string) {
	var names []string
	for _, node := range known.Nodes {
		if node.Machine == nil {
			continue
		}
		list = append(list, NodeVersion{Name: node.Name, Role: node.Role, Now: ParseKubernetes(has[node.Name])})
		names = append(names, fmt.Sprintf("%s (%s)", node.Name, cmp.Or(has[node.Name], "not known")))
	}
	if len(names) > 0 {
		said = "; these machines keep their Kubernetes, until somebody removes them, gives them the newer content and adds them again: " + strings.Join(names, ", ")
	}
	return list, said
}

// ClassExternalNode is the class of nodes on machines outside the cloud.
const ClassExternalNode = "com.mirantis.docker.kubernetes.KubernetesExternalNode"
