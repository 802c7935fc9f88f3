package native

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// clusterClass is com.mirantis.docker.kubernetes.KubernetesCluster.
type clusterClass struct {
	runtime  interface{ EnvironmentID() string }
	objects  task.Objects
	reports  task.Reports
	once     *task.Once
	own      *stacks.OwnStack
	clusters *clusters
}

func (c clusterClass) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy,
		"scaleNodesUp": nodeScalingOf(c).scaleUp(ofCluster(minions)), "scaleNodesDown": nodeScalingOf(c).scaleDown(ofCluster(minions)),
		"scaleGatewaysUp": nodeScalingOf(c).scaleUp(ofCluster(gateways)), "scaleGatewaysDown": nodeScalingOf(c).scaleDown(ofCluster(gateways)),
		"addExternalNode": machineActionsOf(c).addExternalNode, "removeExternalNode": machineActionsOf(c).removeExternalNode,
		".init": c.init, "scale": nodeScalingOf(c).scale,
		"addGroup": nodeScalingOf(c).addGroup, "removeGroup": nodeScalingOf(c).removeGroup,
		"scaleGroupUp": nodeScalingOf(c).scaleUp(ofGroup), "scaleGroupDown": nodeScalingOf(c).scaleDown(ofGroup),
		known.ScaleByLoad: nodeScalingOf(c).scaleByLoad, known.ScaleGatewaysByLoad: nodeScalingOf(c).scaleGatewaysByLoad,
		known.RepairNode:   nodeRepairsOf(c).repairNode,
		"replaceNode":      nodeReplacementsOf(c).replaceNode,
		methodUpgrade:      nodeUpgradesOf(c).upgrade,
		methodBack:         nodeUpgradesOf(c).upgradeBack,
		"snapshot":         clusterRestoresOf(c).snapshot,
		known.BackUpClaims: claimBackupsOf(c).backUpClaims, "listClaimBackups": claimBackupsOf(c).listClaimBackups, "restoreClaim": claimBackupsOf(c).restoreClaim, "listUnusedVolumes": unusedVolumesOf(c).listUnusedVolumes, "deleteUnusedVolumes": unusedVolumesOf(c).deleteUnusedVolumes, "deleteClaimBackup": claimBackupsOf(c).deleteClaimBackup,
		known.RenewCertificates: c.asDeployed(c.renewCertificates), known.DefragmentEtcd: c.asDeployed(c.defragment),
		"rotate": c.asDeployed(c.rotate), "setNode": c.asDeployed(nodeOperationsOf(c).setNode), "rebootNode": c.asDeployed(nodeOperationsOf(c).rebootNode),
		methodRestore: clusterRestoresOf(c).restore, "recoverQuorum": clusterRestoresOf(c).recoverQuorum,
		known.BackUp: environmentBackupsOf(c).backUp, known.EndBackup: func(ctx context.Context, call muranopl.Call) (any, error) { return endBackup(ctx, c, call) },
	}
}

// gatewayMethods are the methods of io.burano.Gateways, which are a cluster of gateways only.
func (c clusterClass) gatewayMethods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy,
		"scaleGatewaysUp": nodeScalingOf(c).scaleUp(ofCluster(gateways)), "scaleGatewaysDown": nodeScalingOf(c).scaleDown(ofCluster(gateways)),
		known.RepairNode: nodeRepairsOf(c).repairNode, "replaceNode": nodeReplacementsOf(c).replaceNode,
		known.RenewCertificates: c.asDeployed(c.renewCertificates), known.DefragmentEtcd: c.asDeployed(c.defragment),
	}
}

// init gives the cluster the nodes that follow from its former ones.
func (c clusterClass) init(ctx context.Context, call muranopl.Call) (any, error) {
	if err := c.clusters.masters.init(ctx, call); err != nil {
		return nil, err
	}
	return nil, nodeScalingOf(c).followsConnections(ctx, call.Object)
}

// deploy applies the model to the cluster's servers and then to the cluster itself, once per task.
func (c clusterClass) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, c.once.Do("cluster "+call.Object.ID(), func() error { return c.ensure(ctx, call.Interpreter, call.Object) })
}

func (c clusterClass) ensure(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	if err := c.check(ctx, object); err != nil {
		return err
	}
	if err := nodeReplacementsOf(c).makeRoom(ctx, interpreter, object); err != nil {
		return err
	}
	if err := c.ensureNodes(ctx, interpreter, object); err != nil {
		return err
	}
	if err := nodeReplacementsOf(c).replaceNodes(ctx, interpreter, object); err != nil {
		return err
	}
	for _, group := range object.Objects(propertyGroups) {
		if err := c.clusters.groups.keepCount(ctx, group); err != nil {
			return err
		}
	}
	if err := c.clusters.masters.keep(ctx, object, true); err != nil {
		return err
	}
	if err := nodeScalingOf(c).keepGateways(ctx, object); err != nil {
		return err
	}
	if err := backupAccessOf(c.clusters).fillClaims(ctx, object); err != nil {
		return err
	}
	c.reportUp(ctx, object)
	c.reportOptions(ctx, object)
	return nil
}

func (c clusterClass) reportUp(ctx context.Context, object *muranopl.Object) {
	what := "Kubernetes cluster %s is up and running"
	if task.OnlyGateways(object) {
		what = "The gateways %s are up and running"
	}
	c.reports.Inform(ctx, object, what, object.Text("name"))
}

// reportOptions reports the replacements of options that Kubernetes has no part for any more.
func (c clusterClass) reportOptions(ctx context.Context, object *muranopl.Object) {
	wanted := task.Desired(object)
	if wanted.Dashboard {
		c.reports.Inform(ctx, object, "What runs in cluster %s, with events and logs, is at /dashboard/environments/%s/clusters/%s of Burano", wanted.Name, c.runtime.EnvironmentID(), object.ID())
	}
	if wanted.CAdvisor {
		c.reports.Inform(ctx, object, "exposeCAdvisor opens no port: the cAdvisor of today is a part of the kubelet. What containers use is told by kubectl top (enableMetrics) "+
			"and, for Prometheus, by the API server at /api/v1/nodes/NODE/proxy/metrics/cadvisor")
	}
}

// ensureNodes makes the servers of the cluster's nodes, and deploys the cluster on them.
func (c clusterClass) ensureNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	return c.deployNodes(ctx, interpreter, object, true, func(ctx context.Context, live *nodes.Cluster) error { return live.Deploy(ctx) })
}

// deployNodes is ensureNodes with another way to deploy the cluster on its nodes. With save it saves the state of etcd before the nodes change.
func (c clusterClass) deployNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, save bool, deploy func(ctx context.Context, live *nodes.Cluster) error) error {
	joining, err := versionSkewOf(c.clusters).newcomers(ctx, object)
	if err != nil {
		return err
	}
	if err := versionSkewOf(c.clusters).admit(ctx, object, joining); err != nil {
		return err
	}
	if err := c.own.Push(ctx, interpreter); err != nil { // shrinks the cluster first
		return err
	}
	list, err := c.servers(ctx, interpreter, object)
	if err != nil {
		return err
	}
	live, err := clusterConnectionsOf(c.clusters).connect(ctx, object, list)
	if err != nil {
		return err
	}
	if err := podNetworksOf(c.clusters).keepPodNetwork(ctx, object); err != nil {
		return err
	}
	former, err := c.clusters.facts(ctx, object)
	if err != nil {
		return err
	}
	if former != nil {
		if err := c.reach(ctx, interpreter, object, live, former, list); err != nil {
			return err
		}
		if save && changed(former.Nodes, list) {
			defer clusterStatesOf(c.clusters).saveBefore(ctx, object, live, "its nodes changed")()
		}
		// A node that was only begun with must be removed like any other.
		if err := c.clusters.keepFacts(ctx, object, list); err != nil {
			return err
		}
	}
	if err := deploy(ctx, live); err != nil {
		return err
	}
	if !task.OnlyGateways(object) {
		c.clusters.Await(object)
	}
	return c.clusters.keepFacts(ctx, object, list)
}

// reach refuses nodes that are to join from a network of their own without a route to the others. Nodes whose former servers are there are given up.
func (c clusterClass) reach(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, live *nodes.Cluster, former *known.Facts, list []nodes.Node) error {
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
	members, failed := c.clusters.members(ctx, object)
	if failed != nil {
		return errors.Join(err, failed)
	}
	given, failed := nodePlacesOf(c.clusters).giveUp(ctx, members, cutOff)
	if failed == nil && len(given) > 0 {
		c.reports.Inform(ctx, object, "%s: given up, the former server stays as it is", strings.Join(given, ", "))
		failed = c.own.Push(ctx, interpreter)
	}
	return errors.Join(err, failed)
}

// servers are the cluster's nodes with the servers that were pushed last.
func (c clusterClass) servers(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) ([]nodes.Node, error) {
	members, err := c.clusters.members(ctx, object)
	if err != nil {
		return nil, err
	}
	known, err := c.clusters.facts(ctx, object)
	if err != nil {
		return nil, err
	}
	pods, err := c.clusters.PodNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	var list []nodes.Node
	for _, one := range members {
		if !one.leaving && !one.waits {
			if _, err := interpreter.Invoke(ctx, one.instance(), task.MethodEndDeploy, nil); err != nil {
				return nil, err
			}
		}
		if one.absent {
			if former, there := known.Node(one.server.Name()); there {
				former.Leaving, former.Access = true, netip.Addr{}
				list = append(list, former)
			}
			continue
		}
		addresses, found, err := c.own.Addresses(one.server)
		if err != nil && !one.leaving {
			return nil, err
		}
		node := nodes.Node{Name: one.server.Name(), Role: one.role, Address: addresses.Fixed, Server: addresses.ServerID, Launched: found.Launched, Zone: found.Zone, Leaving: one.leaving}
		if pods.Six() {
			if node.Six = addresses.Six; !node.Six.IsValid() && !one.leaving {
				return nil, fmt.Errorf("the stack does not say which address of IPv6 %s has", node.Name)
			}
		}
		if group := one.instance().FindEmbedded(task.ClassMinionGroup); group != nil {
			node.Elastic = desired.ReadGroup(group).Elastic()
		}
		if one.role == nodes.Gateway {
			node.Elastic = comesAndGoes(object, one.object)
		}
		if one.role == nodes.Minion && !one.leaving {
			if node.Settings, err = c.clusters.settings.whole(ctx, one.instance()); err != nil {
				return nil, err
			}
		}
		if one.holds {
			node.Access = addresses.Floating
		} else if !one.leaving {
			node.Inherits = addresses.Floating
		}
		list = append(list, node)
	}
	if shared := object.Object(propertyVirtual); shared != nil {
		if _, err := interpreter.Invoke(ctx, shared, task.MethodEndDeploy, nil); err != nil {
			return nil, err
		}
		if !task.Desired(object).Virtual.Address.IsValid() {
			return nil, fmt.Errorf("the stack does not say which address the gateways of cluster %s share", object.Text("name"))
		}
	}
	external, err := machinesOf(c.clusters).externalNodes(ctx, object)
	return append(list, external...), err
}

// check finds later failures before anything is made.
func (c clusterClass) check(ctx context.Context, object *muranopl.Object) error {
	var problems []error
	for _, find := range slices.Concat(modelChecksOf(c.clusters).modelChecks(), modelChecksOf(c.clusters).worldChecks()) {
		found, err := find(ctx, object)
		problems = append(problems, found...)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
	}
	return errors.Join(problems...)
}

// clusterCheck finds mistakes in a cluster. Its error is that of a check that could not be made.
type clusterCheck func(context.Context, *muranopl.Object) ([]error, error)

// modelChecks check clusters before anything is changed.
type modelChecks struct{ *clusters }

func modelChecksOf(c *clusters) modelChecks { return modelChecks{c} }

// modelChecks need the model, and the notes from when the cluster was made.
func (c modelChecks) modelChecks() []clusterCheck { return []clusterCheck{c.unfit} }

// worldChecks ask the cloud, and some the nodes that are there.
func (c modelChecks) worldChecks() []clusterCheck {
	return []clusterCheck{imageChecksOf(c.clusters).checkImages, podNetworksOf(c.clusters).checkConnecting, virtualAddressesOf(c.clusters).checkVirtual, c.checkStorage, imageChecksOf(c.clusters).checkRegistry, imageChecksOf(c.clusters).checkRuntime}
}

// lookPatience is how long a rehearsal waits for the cloud and the nodes of one cluster to answer its checks.
const lookPatience = 15 * time.Second

// refused returns the faults of the clusters of the model. The deployment reports a cloud or a node that does not answer now.
func (c *clusters) refused(ctx context.Context) (refused []preview.Note, err error) {
	for _, object := range c.objects.Clusters() {
		var problems []error
		for _, find := range modelChecksOf(c).modelChecks() {
			found, err := find(ctx, object)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
		limited, cancel := context.WithTimeout(ctx, lookPatience)
		for _, find := range modelChecksOf(c).worldChecks() {
			found, _ := find(limited, object)
			problems = append(problems, found...)
		}
		cancel()
		for _, problem := range problems {
			refused = append(refused, preview.Note{ObjectID: object.ID(), Text: problem.Error()})
		}
	}
	return refused, nil
}

// unfit finds the mistakes of a cluster's model, also against the notes from when it was made.
func (c modelChecks) unfit(ctx context.Context, object *muranopl.Object) (problems []error, err error) {
	seen := map[string]bool{}
	for _, other := range c.objects.Clusters() {
		members, err := c.clusters.members(ctx, other)
		if err != nil {
			return nil, err
		}
		for _, member := range members {
			if member.leaving {
				continue
			}
			name := member.instance().Text("name")
			if other == object {
				if made := member.server.ModelName(); !desired.HostName.MatchString(made) {
					problems = append(problems, fmt.Errorf("%s is no name for a server of a cluster: use lower-case letters, digits and dashes, at most 63", made))
				}
				if seen[name] {
					problems = append(problems, fmt.Errorf("two servers are called %s: give each a name of its own", name))
				}
			}
			seen[name] = true
		}
	}
	wanted := task.Desired(object)
	problems = append(problems, wanted.Mistakes...)
	unconnected, err := podNetworksOf(c.clusters).checkPodNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	problems = append(problems, unconnected...)
	if pods, err := c.clusters.PodNetwork(ctx, object); err == nil {
		_, wrong := wanted.Routers(pods)
		problems = append(problems, wrong...)
		problems = append(problems, wanted.CheckMachines(seen, c.clusters.server.MachineNetworks, pods.Addressing)...)
	}
	return problems, nil
}

// destroy takes the cluster's security groups out of the stack; its servers go with their own objects, and machines outside the cloud stay. Its
// volumes in Cinder are kept or deleted when its servers are gone.
func (c clusterClass) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	if err := machinesOf(c.clusters).leaveMachines(ctx, call.Object); err != nil {
		return nil, err
	}
	if err := leftVolumesOf(c.clusters).leaveVolumes(ctx, call.Object); err != nil {
		return nil, err
	}
	if err := nodePreparationOf(c.clusters).release(ctx, call.Object); err != nil || c.objects.Model() == nil {
		return nil, err
	}
	return nil, nodes.Forget(ctx, known.Vault{Runtime: c.clusters.runtime, Cluster: call.Object.ID()})
}
