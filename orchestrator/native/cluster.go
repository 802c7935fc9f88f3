package native

import (
	"context"
	"maps"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/claims"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// clusterClass is com.mirantis.docker.kubernetes.KubernetesCluster.
type clusterClass struct{ *clusters.Clusters }

func (c clusterClass) methods() map[string]muranopl.NativeMethod {
	methods := claims.New(c.Clusters).Actions()
	maps.Copy(methods, map[string]muranopl.NativeMethod{
		task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy,
		"scaleNodesUp": nodeScalingOf(c).scaleUp(ofCluster(clusters.Minions)), "scaleNodesDown": nodeScalingOf(c).scaleDown(ofCluster(clusters.Minions)),
		"scaleGatewaysUp": nodeScalingOf(c).scaleUp(ofCluster(clusters.Gateways)), "scaleGatewaysDown": nodeScalingOf(c).scaleDown(ofCluster(clusters.Gateways)),
		"addExternalNode": machineActionsOf(c).addExternalNode, "removeExternalNode": machineActionsOf(c).removeExternalNode,
		".init": c.init, "scale": nodeScalingOf(c).scale,
		"addGroup": nodeScalingOf(c).addGroup, "removeGroup": nodeScalingOf(c).removeGroup,
		"scaleGroupUp": nodeScalingOf(c).scaleUp(ofGroup), "scaleGroupDown": nodeScalingOf(c).scaleDown(ofGroup),
		known.ScaleByLoad: nodeScalingOf(c).scaleByLoad, known.ScaleGatewaysByLoad: nodeScalingOf(c).scaleGatewaysByLoad,
		known.RepairNode:        nodeRepairsOf(c).repairNode,
		"replaceNode":           c.replaceNode,
		methodUpgrade:           nodeUpgradesOf(c).upgrade,
		methodBack:              nodeUpgradesOf(c).upgradeBack,
		"snapshot":              clusterRestoresOf(c).snapshot,
		known.RenewCertificates: c.asDeployed(c.renewCertificates), known.DefragmentEtcd: c.asDeployed(c.defragment),
		"rotate": c.asDeployed(c.rotate), "setNode": c.asDeployed(nodeOperationsOf(c).setNode), "rebootNode": c.asDeployed(nodeOperationsOf(c).rebootNode),
		methodRestore: clusterRestoresOf(c).restore, "recoverQuorum": clusterRestoresOf(c).recoverQuorum,
		known.BackUp: environmentBackupsOf(c).backUp, known.EndBackup: func(ctx context.Context, call muranopl.Call) (any, error) { return endBackup(ctx, c, call) },
	})
	return methods
}

// gatewayMethods are the methods of io.burano.Gateways, which are a cluster of gateways only.
func (c clusterClass) gatewayMethods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy,
		"scaleGatewaysUp": nodeScalingOf(c).scaleUp(ofCluster(clusters.Gateways)), "scaleGatewaysDown": nodeScalingOf(c).scaleDown(ofCluster(clusters.Gateways)),
		known.RepairNode: nodeRepairsOf(c).repairNode, "replaceNode": c.replaceNode,
		known.RenewCertificates: c.asDeployed(c.renewCertificates), known.DefragmentEtcd: c.asDeployed(c.defragment),
	}
}

// init gives the cluster the nodes that follow from its former ones.
func (c clusterClass) init(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, clusters.DeploymentsOf(c.Clusters).Init(ctx, call)
}

// deploy applies the model to the cluster's servers and then to the cluster itself, once per task.
func (c clusterClass) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, c.Once.Do("cluster "+call.Object.ID(), func() error { return c.ensure(ctx, call.Interpreter, call.Object) })
}

func (c clusterClass) ensure(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	if err := clusters.DeploymentsOf(c.Clusters).Ensure(ctx, interpreter, object); err != nil {
		return err
	}
	if err := backupAccessOf(c.Clusters).fillClaims(ctx, object); err != nil {
		return err
	}
	clusters.DeploymentsOf(c.Clusters).ReportUp(ctx, object)
	c.reportOptions(ctx, object)
	return nil
}

// reportOptions reports the replacements of options that Kubernetes has no part for any more.
func (c clusterClass) reportOptions(ctx context.Context, object *muranopl.Object) {
	wanted := task.Desired(object)
	if wanted.Dashboard {
		c.Reports.Inform(ctx, object, "What runs in cluster %s, with events and logs, is at /dashboard/environments/%s/clusters/%s of Burano", wanted.Name, c.Runtime.EnvironmentID(), object.ID())
	}
	if wanted.CAdvisor {
		c.Reports.Inform(ctx, object, "exposeCAdvisor opens no port: the cAdvisor of today is a part of the kubelet. What containers use is told by kubectl top (enableMetrics) "+
			"and, for Prometheus, by the API server at /api/v1/nodes/NODE/proxy/metrics/cadvisor")
	}
}

// destroy takes the cluster's security groups out of the stack; its servers go with their own objects, and machines outside the cloud stay. Its
// volumes in Cinder are kept or deleted when its servers are gone.
func (c clusterClass) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	if err := clusters.MachinesOf(c.Clusters).LeaveMachines(ctx, call.Object); err != nil {
		return nil, err
	}
	if err := claims.New(c.Clusters).Leave(ctx, call.Object); err != nil {
		return nil, err
	}
	return nil, clusters.DeploymentsOf(c.Clusters).Remove(ctx, call.Object)
}
