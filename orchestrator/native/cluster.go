package native

import (
	"context"
	"maps"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/claims"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/definitions"
	"github.com/burano/burano/orchestrator/operations"
	"github.com/burano/burano/orchestrator/resizing"
	"github.com/burano/burano/orchestrator/restores"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/upgrades"
)

// clusterClass is com.mirantis.docker.kubernetes.KubernetesCluster.
type clusterClass struct {
	*clusters.Clusters
	defined definitions.Definitions
}

func (c clusterClass) methods() map[string]muranopl.NativeMethod {
	methods := map[string]muranopl.NativeMethod{".init": c.init, task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy}
	for _, actions := range []map[string]muranopl.NativeMethod{resizing.New(c.Clusters).Actions(), operations.New(c.Clusters).Actions(), upgrades.New(c.Clusters).Actions(),
		restores.New(c.Clusters).Actions(), restores.BackupsOf(c.Clusters).Actions(), claims.New(c.Clusters).Actions(), c.defined.Methods()} {
		maps.Copy(methods, actions)
	}
	return methods
}

// gatewayMethods are the methods of io.burano.Gateways, which are a cluster of gateways only.
func (c clusterClass) gatewayMethods() map[string]muranopl.NativeMethod {
	methods := map[string]muranopl.NativeMethod{task.MethodDeploy: c.deploy, task.MethodDestroy: c.destroy}
	maps.Copy(methods, resizing.New(c.Clusters).GatewayActions())
	maps.Copy(methods, operations.New(c.Clusters).GatewayActions())
	return methods
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
	if err := restores.AccessOf(c.Clusters).FillClaims(ctx, object); err != nil {
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
