package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// deployments deploy clusters.
type deployments struct{ *Clusters }

// DeploymentsOf returns the deployments of a task's clusters.
func DeploymentsOf(c *Clusters) deployments { return deployments{c} }

// Init gives a loaded cluster the masters and gateways of its last deployment.
func (c deployments) Init(ctx context.Context, call muranopl.Call) error {
	if err := c.Masters.init(ctx, call); err != nil {
		return err
	}
	return gatewayCounts(c).init(ctx, call.Object)
}

// Ensure deploys a cluster as the model describes it, and replaces the nodes whose servers differ from it.
func (c deployments) Ensure(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	if err := ModelChecksOf(c.Clusters).Check(ctx, object); err != nil {
		return err
	}
	if err := ReplacementsOf(c.Clusters).makeRoom(ctx, interpreter, object); err != nil {
		return err
	}
	if err := c.ensureNodes(ctx, interpreter, object); err != nil {
		return err
	}
	if err := ReplacementsOf(c.Clusters).replaceNodes(ctx, interpreter, object); err != nil {
		return err
	}
	return c.keepCounts(ctx, object)
}

// keepCounts stores the numbers of nodes that a deployed cluster has.
func (c deployments) keepCounts(ctx context.Context, object *muranopl.Object) error {
	for _, group := range object.Objects(PropertyGroups) {
		if err := c.Groups.keepCount(ctx, group); err != nil {
			return err
		}
	}
	if err := c.Clusters.Masters.keep(ctx, object, true); err != nil {
		return err
	}
	return gatewayCounts(c).keep(ctx, object)
}

// Remove takes the security groups of a destroyed cluster out of the stack, and deletes its secrets.
func (c deployments) Remove(ctx context.Context, object *muranopl.Object) error {
	if err := nodePreparationOf(c.Clusters).release(ctx, object); err != nil || c.Objects.Model() == nil {
		return err
	}
	return nodes.Forget(ctx, known.Vault{Runtime: c.Runtime, Cluster: object.ID()})
}

// ReportUp reports that a cluster is up.
func (c deployments) ReportUp(ctx context.Context, object *muranopl.Object) {
	what := "Kubernetes cluster %s is up and running"
	if task.OnlyGateways(object) {
		what = "The gateways %s are up and running"
	}
	c.Reports.Inform(ctx, object, what, object.Text("name"))
}

// ensureNodes makes the servers of the cluster's nodes, and deploys the cluster on them.
func (c deployments) ensureNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	return c.DeployNodes(ctx, interpreter, object, true, func(ctx context.Context, live *nodes.Cluster) error {
		if err := live.Deploy(ctx); err != nil {
			return err
		}
		c.AwaitCluster(object)
		return nil
	})
}

// DeployNodes is ensureNodes with another way to deploy the cluster on its nodes. With save it saves the state of etcd before the nodes change.
func (c deployments) DeployNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, save bool, deploy func(ctx context.Context, live *nodes.Cluster) error) error {
	if err := c.pushServers(ctx, interpreter, object); err != nil {
		return err
	}
	list, err := c.servers(ctx, interpreter, object)
	if err != nil {
		return err
	}
	live, err := ConnectionsOf(c.Clusters).Connect(ctx, object, list)
	if err != nil {
		return err
	}
	if err := podNetworksOf(c.Clusters).keepPodNetwork(ctx, object); err != nil {
		return err
	}
	former, err := c.Clusters.Facts(ctx, object)
	if err != nil {
		return err
	}
	if former != nil {
		if err := c.reach(ctx, interpreter, object, live, former, list); err != nil {
			return err
		}
		if save && changed(former.Nodes, list) {
			defer StatesOf(c.Clusters).SaveBefore(ctx, object, live, "its nodes changed")()
		}
		// A node that was only begun with must be removed like any other.
		if err := c.Clusters.keepFacts(ctx, object, list); err != nil {
			return err
		}
	}
	if err := deploy(ctx, live); err != nil {
		return err
	}
	return c.Clusters.keepFacts(ctx, object, list)
}

// pushServers makes the servers of a cluster's nodes. Nodes that are not in the model any more leave first.
func (c deployments) pushServers(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	joining, err := VersionSkewOf(c.Clusters).newcomers(ctx, object)
	if err != nil {
		return err
	}
	if err := VersionSkewOf(c.Clusters).Admit(ctx, object, joining); err != nil {
		return err
	}
	return c.own.Push(ctx, interpreter)
}

// MakeServers makes the servers of a cluster's nodes, and lets nodes leave that are not in the model any more. It makes no cluster of them.
func (c deployments) MakeServers(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	if err := ModelChecksOf(c.Clusters).Check(ctx, object); err != nil {
		return err
	}
	if err := c.pushServers(ctx, interpreter, object); err != nil {
		return err
	}
	return c.keepCounts(ctx, object)
}

// Leave lets a running node leave its cluster and deletes its server; the model has to be without it already. A node that is not in the cluster only loses
// its server.
func (c deployments) Leave(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, name string) error {
	facts, err := c.Clusters.Facts(ctx, object)
	if err != nil {
		return err
	}
	if facts != nil {
		if _, there := facts.Node(name); there {
			c.UseFacts(object, facts)
			if err := shrinkingOf(c.Clusters).remove(ctx, object, facts.Nodes, name); err != nil {
				return err
			}
		}
	}
	if err := c.own.Push(ctx, interpreter); err != nil {
		return err
	}
	return c.keepCounts(ctx, object)
}

// SetUp makes the servers of a cluster's nodes, and takes one of the nodes so far.
func (c deployments) SetUp(ctx context.Context, interpreter *muranopl.Interpreter, object, node *muranopl.Object, extent nodes.Extent) error {
	if err := ModelChecksOf(c.Clusters).Check(ctx, object); err != nil {
		return err
	}
	err := c.DeployNodes(ctx, interpreter, object, true, func(ctx context.Context, live *nodes.Cluster) error {
		name, err := NodeNamesOf(c.Clusters).NameOf(ctx, node)
		if err != nil {
			return err
		}
		return live.SetUp(ctx, name, extent)
	})
	if err != nil {
		return err
	}
	if extent == nodes.ToNode {
		c.AwaitCluster(object)
	}
	return c.keepCounts(ctx, object)
}

// AwaitCluster has the environment's deployment end only when a cluster answers.
func (c deployments) AwaitCluster(object *muranopl.Object) {
	if !task.OnlyGateways(object) {
		c.Clusters.Await(object)
	}
}

// reach refuses nodes that are to join from a network of their own without a route to the others. Nodes whose former servers are there are given up.
func (c deployments) reach(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, live *nodes.Cluster, former *known.Facts, list []nodes.Node) error {
	var joining []string
	for _, node := range list {
		if known, there := former.Node(node.Name); !node.Leaving && (!there || known.Server != node.Server || node.Machine != nil && node.Endpoint() != known.Endpoint()) {
			joining = append(joining, node.Name)
		}
	}
	err := live.Reach(ctx, joining...)
	cutOff := nodes.CutOffs(err)
	if len(cutOff) == 0 {
		return err
	}
	members, failed := c.Clusters.Members(ctx, object)
	if failed != nil {
		return errors.Join(err, failed)
	}
	given, failed := nodePlacesOf(c.Clusters).giveUp(ctx, members, cutOff)
	if failed == nil && len(given) > 0 {
		c.Reports.Inform(ctx, object, "%s: given up, the former server stays as it is", strings.Join(given, ", "))
		failed = c.own.Push(ctx, interpreter)
	}
	return errors.Join(err, failed)
}

// servers are the cluster's nodes with the servers that were pushed last.
func (c deployments) servers(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) ([]nodes.Node, error) {
	members, err := c.Clusters.Members(ctx, object)
	if err != nil {
		return nil, err
	}
	known, err := c.Clusters.Facts(ctx, object)
	if err != nil {
		return nil, err
	}
	pods, err := c.Clusters.PodNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	var list []nodes.Node
	for _, one := range members {
		if !one.Leaving && !one.waits {
			if _, err := interpreter.Invoke(ctx, one.Instance(), task.MethodEndDeploy, nil); err != nil {
				return nil, err
			}
		}
		if one.absent {
			if former, there := known.Node(one.Server.Name()); there {
				former.Leaving, former.Access = true, netip.Addr{}
				list = append(list, former)
			}
			continue
		}
		addresses, found, err := c.own.Addresses(one.Server)
		if err != nil && !one.Leaving {
			return nil, err
		}
		node := nodes.Node{Name: one.Server.Name(), Role: one.Role, Address: addresses.Fixed, Server: addresses.ServerID, Launched: found.Launched, Zone: found.Zone, Leaving: one.Leaving}
		if node.Pods = one.Role == nodes.Master && task.Desired(object).PodsOnMasters; one.Leaving {
			former, _ := known.Node(node.Name)
			node.Pods = former.Pods
		}
		if pods.Six() {
			if node.Six = addresses.Six; !node.Six.IsValid() && !one.Leaving {
				return nil, fmt.Errorf("the stack does not say which address of IPv6 %s has", node.Name)
			}
		}
		node.Elastic = elastic(object, one)
		if !one.Leaving {
			if node.Settings, err = c.Clusters.NodeSettings.whole(ctx, one.Instance()); err != nil {
				return nil, err
			}
		}
		if one.holds {
			node.Access = addresses.Floating
		} else if !one.Leaving {
			node.Inherits = addresses.Floating
		}
		list = append(list, node)
	}
	if err := virtualAddressesOf(c.Clusters).readVirtual(ctx, interpreter, object); err != nil {
		return nil, err
	}
	external, err := MachinesOf(c.Clusters).externalNodes(ctx, object)
	return append(list, external...), err
}
