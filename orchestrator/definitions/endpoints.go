package definitions

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/task"
)

// labelContainer is the label of Services with the name of the container that they lead to.
const labelContainer = "burano.io/container"

// NoteEndpoints sets the property serviceEndpoints of the clusters that the task has worked with. It has each published Service by the routes of the gateways, from
// which the status of the cluster is made, too. A cluster that does not answer keeps its endpoints.
func (d Definitions) NoteEndpoints(ctx context.Context) error {
	return task.Each(d.Objects.All(task.ClassCluster), func(cluster *muranopl.Object) error {
		live, err := d.Live(cluster)
		if err != nil {
			return nil // which the task did not need
		}
		now, _ := cluster.Get(PropertyEndpoints)
		former, _ := now.([]any)
		services := map[[2]string]corev1.Service{}
		routes, err := live.Routes(ctx)
		if err == nil && len(routes)+len(former) > 0 { // else there is nothing to name
			services, err = d.services(ctx, cluster)
		}
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			d.Reports.Logger.WarnContext(ctx, "the endpoints of a cluster stay as they were", "cluster", cluster.ID(), "error", err)
			return nil
		}
		return cluster.Set(PropertyEndpoints, published(former, routes, services, d.GatewayAddresses(cluster)))
	})
}

// services are the Services of a cluster by their namespaces and names.
func (d Definitions) services(ctx context.Context, cluster *muranopl.Object) (map[[2]string]corev1.Service, error) {
	api, err := d.Kubernetes(ctx, cluster)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[[2]string]corev1.Service{}
	for _, one := range list.Items {
		found[[2]string{one.Namespace, one.Name}] = one
	}
	return found, nil
}

// published are the endpoints of the routes on each gateway. Of the former endpoints, those within the cluster stay whose Services are there.
func published(former []any, routes []route.Route, services map[[2]string]corev1.Service, gateways []string) []any {
	endpoints := slices.DeleteFunc(slices.Clone(former), func(one any) bool {
		fields, _ := one.(map[string]any)
		name, _ := fields["serviceName"].(string)
		_, there := services[[2]string{metav1.NamespaceDefault, name}]
		return fields["scope"] != "internal" || !there
	})
	for _, one := range routes {
		service := services[[2]string{one.Namespace, one.Service}]
		application, pod := one.Service, service.Labels[kube.LabelObject]
		if container := service.Labels[labelContainer]; container != "" {
			application = container
		}
		scope := "public"
		for _, known := range former {
			if fields, _ := known.(map[string]any); fields["serviceName"] == one.Service && one.Namespace == metav1.NamespaceDefault {
				application, _ = fields["applicationName"].(string)
				pod, _ = fields["podId"].(string)
				scope, _ = fields["portScope"].(string)
			}
		}
		inner := int64(one.GatewayPort)
		if len(one.Backends) > 0 {
			inner = int64(one.Backends[0].Port)
		}
		for _, address := range gateways {
			endpoints = append(endpoints, map[string]any{"address": address, "port": int64(one.GatewayPort), "containerPort": inner, "protocol": one.Protocol, "scope": scope, "portScope": scope,
				"applicationName": application, "podId": pod, "serviceName": one.Service})
		}
	}
	return endpoints
}
