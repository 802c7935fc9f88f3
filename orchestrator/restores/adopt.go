package restores

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// adoptPods lets the pods of a restored cluster take over the objects of their former environment there. A pod that cannot is reported, and the next
// deployment tries again. It names workloads that belong to no object of the model.
func (c Restores) adoptPods(ctx context.Context, call muranopl.Call) error {
	api, err := c.Kubernetes(ctx, call.Object)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	for _, pod := range c.Objects.All(task.ClassPod) {
		if pod.Object("kubernetesCluster") != call.Object {
			continue
		}
		spec, err := workloads.PodSpecOf(pod)
		former := ""
		if err == nil {
			former, err = spec.FormerID(ctx, client, c.Objects.Has)
		}
		if err == nil && former != "" {
			_, err = call.Interpreter.Invoke(ctx, pod, task.MethodDeploy, nil)
		}
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.Reports.Warn(ctx, pod, fmt.Sprintf("Pod %s does not run with the claims of the snapshot: %v", pod.Text("name"), err), "Deploy the environment: that tries again.")
		}
	}
	strangers, err := c.strangers(ctx, client)
	if err == nil && len(strangers) > 0 {
		c.Reports.Warn(ctx, call.Object, fmt.Sprintf("These workloads of the snapshot belong to no application of the environment, and run on: %s", storage.Some(strangers)),
			"Put an application with a pod of that name into the environment, which takes its workload over, or delete the workload with kubectl.")
	}
	return err
}

// strangers names the workloads that carry the id of no object of the model.
func (c Restores) strangers(ctx context.Context, client kubernetes.Interface) (names []string, err error) {
	marked := metav1.ListOptions{LabelSelector: workloads.LabelPod}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, marked)
	sets, err2 := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, marked)
	daemons, err4 := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, marked)
	crons, err3 := client.BatchV1().CronJobs(metav1.NamespaceAll).List(ctx, marked)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("list workloads: %w", err)
	}
	add := func(kind string, object metav1.Object) {
		if kube.MadeByBurano(object) && !c.Objects.Has(object.GetLabels()[workloads.LabelPod]) {
			names = append(names, kind+" "+object.GetName())
		}
	}
	for i := range deployments.Items {
		add("Deployment", &deployments.Items[i])
	}
	for i := range sets.Items {
		add("StatefulSet", &sets.Items[i])
	}
	for i := range daemons.Items {
		add("DaemonSet", &daemons.Items[i])
	}
	for i := range crons.Items {
		add("CronJob", &crons.Items[i])
	}
	return names, nil
}
