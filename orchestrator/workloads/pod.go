// Package workloads holds the Go bodies of the classes that run containers: pods, rollouts, Helm releases, standalone hosts.
package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

// Pods is com.mirantis.docker.kubernetes.KubernetesPod.
type Pods struct {
	Runtime interface {
		TaskID() string
		Deploys() bool
		Allowed(name string) bool
		Secret(ctx context.Context, name string) ([]byte, bool, error)
		SetSecret(ctx context.Context, name string, value []byte) error
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
		Planned(object *muranopl.Object, steps map[string][]string)
	}
	Reports  task.Reports
	Once     *task.Once
	Hosting  *Hosting
	Clusters Clusters
	Images   Images
}

func (p Pods) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		task.MethodDeploy: p.deploy, task.MethodDestroy: p.destroy, task.MethodHostContainer: p.hostContainer, task.MethodDropContainer: p.dropContainer,
		"getServiceName": serviceNameOf(p.Clusters), "scalePodUp": p.scale(1), "scalePodDown": p.scale(-1), "recreatePod": p.recreate, "restartContainers": p.restartContainers,
		"rollout": p.rollout, "rollback": p.rollback, "listRevisions": p.listRevisions, "pauseRollout": p.pause(true), "resumeRollout": p.pause(false), "getLogs": p.logs,
	}
}

// deploy makes sure that the pod's cluster is up and that the containers of all applications on it run.
func (p Pods) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, p.bringUp(ctx, call.Interpreter, call.Object, 0)
}

// hostContainer runs an application's container in the pod, together with those of the other applications on it.
func (p Pods) hostContainer(ctx context.Context, call muranopl.Call) (any, error) {
	described, _ := call.Args["container"].(*muranopl.Object)
	return nil, p.include(ctx, call.Interpreter, call.Object, described.Text("name"))
}

// serviceNameOf returns the host name of the Service of the pod's container with the name in the arguments.
func serviceNameOf(clusters Clusters) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		name, _ := call.Args["container"].(string)
		network, err := clusters.PodNetwork(ctx, call.Object.Object("kubernetesCluster"))
		if err != nil {
			return nil, err
		}
		return serviceAddress(placeOf(call.Object), network.Domain, name), nil
	}
}

// include has the pod run with a container of that name.
func (p Pods) include(ctx context.Context, interpreter *muranopl.Interpreter, pod *muranopl.Object, name string) error {
	return p.Hosting.include(pod, name, func(before int) error { return p.bringUp(ctx, interpreter, pod, before) })
}

// dropContainer takes away the Service of a container; the container itself leaves the pod when the pod is brought up next.
func (p Pods) dropContainer(ctx context.Context, call muranopl.Call) (any, error) {
	name, _ := call.Args[task.ArgumentContainer].(string)
	api, err := p.Kubernetes(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	return nil, p.Runtime.Step(ctx, call.Object, "remove the container's Service", func(ctx context.Context) error {
		return deleteServices(ctx, api, placeOf(call.Object).inNamespace(), labels.Set{LabelPod: call.Object.ID(), labelContainer: kubeName(name)})
	})
}

// destroy takes the pod out of its cluster, unless the cluster goes as well.
func (p Pods) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	object, err := p.Clusters.Remaining(ctx, call)
	if object == nil {
		return nil, err
	}
	api, err := p.Clusters.Kubernetes(ctx, object)
	if err != nil {
		return nil, err
	}
	if err := endDependents(ctx, p, api, call.Object); err != nil {
		return nil, err
	}
	err = p.Runtime.Step(ctx, call.Object, "remove the pod", func(ctx context.Context) error {
		mine, in := labels.Set{LabelPod: call.Object.ID()}, placeOf(call.Object).inNamespace()
		err := errors.Join(deleteServices(ctx, api, in, mine), deleteWorkloads(ctx, api, in, mine))
		kept, err2 := deleteClaims(ctx, api, in, mine)
		if len(kept) > 0 {
			p.Reports.Warn(ctx, call.Object, fmt.Sprintf("The persistent volumes of pod %s stay in the cluster, with their data: %s", call.Object.Text("name"), strings.Join(kept, ", ")),
				"A pod of the same name gets them again; kubectl delete pvc deletes them.")
		}
		return errors.Join(err, err2, leaveNamespace(ctx, p, api, call.Object))
	})
	if err != nil {
		return nil, err
	}
	live, err := p.Clusters.Live(object)
	if err != nil {
		return nil, err
	}
	return nil, live.HaveImages(ctx, call.Object.ID(), nil)
}

// bringUp applies the model to the pod once per task, and again for applications that could describe their container only after their own deploy had
// begun. before is the number of former runs.
func (p Pods) bringUp(ctx context.Context, interpreter *muranopl.Interpreter, pod *muranopl.Object, before int) error {
	return p.Once.Do(fmt.Sprintf("pod %s %d", pod.ID(), before), func() error {
		api, err := p.Kubernetes(ctx, interpreter, pod)
		if err != nil {
			return err
		}
		all, err := p.Hosting.ready(ctx, interpreter, pod)
		if err != nil {
			return err
		}
		containers := containersIn(all)
		if err := p.haveImages(ctx, pod, imagesOf(containers)); err != nil {
			return err
		}
		if len(containers) == 0 {
			p.Hosting.ran(pod, nil)
			return p.Runtime.Step(ctx, pod, "remove the empty pod", func(ctx context.Context) error {
				return deleteWorkloads(ctx, api, placeOf(pod).inNamespace(), labels.Set{LabelPod: pod.ID()})
			})
		}
		spec, err := PodSpecOf(pod)
		if err != nil {
			return err
		}
		if err := p.checkClash(ctx, pod, api, spec, containers); err != nil {
			return err
		}
		if err := p.adoptFormer(ctx, pod, api, spec); err != nil {
			return err
		}
		if err := haveNamespace(ctx, p, interpreter, pod, api, spec); err != nil {
			return err
		}
		err = p.Hosting.awaitDependencies(ctx, p.Runtime, pod, all, []string{stepApplyPod, stepWaitPod}, func(ctx context.Context, application *muranopl.Object) error {
			return p.bringUpApplication(ctx, interpreter, application)
		})
		if err != nil {
			return err
		}
		if spec.options.kind == kindDaemonSet {
			p.Reports.Inform(ctx, pod, "Starting pod %s on each node that it is for", spec.name)
		} else {
			p.Reports.Inform(ctx, pod, "Starting pod %s with %d replicas", spec.name, spec.replicas)
		}
		paused := false
		err = p.Runtime.Step(ctx, pod, stepApplyPod, func(ctx context.Context) (err error) {
			paused, err = spec.apply(ctx, api, containers, p.Runtime.Allowed, func(spec podSpec) error {
				return p.runBootstraps(ctx, pod, api, spec, containers, beforeRoll)
			})
			return err
		})
		if err != nil {
			return err
		}
		if paused {
			p.Reports.Warn(ctx, pod, fmt.Sprintf("The rollout of pod %s is paused: pods keep their former form until resumeRollout", spec.name), "")
		} else {
			err = p.Runtime.Step(ctx, pod, stepWaitPod, func(ctx context.Context) error { return p.waitPod(ctx, pod, api, spec) })
			if err != nil {
				return err
			}
			if err := p.runBootstraps(ctx, pod, api, spec, containers, afterRoll); err != nil {
				return err
			}
			// Only now: the former objects serve until the desired objects run.
			if err := spec.clear(ctx, api, containers); err != nil {
				return err
			}
		}
		p.Hosting.ran(pod, all)
		return p.noteEndpoints(ctx, pod, api, spec, all, !paused && !spec.options.kind.ends() && (spec.replicas > 0 || spec.options.kind == kindDaemonSet))
	})
}

// Kubernetes returns a client for the API of the pod's cluster. A deployment deploys that cluster first. An action takes the cluster in its present
// state: an action on a pod does not wait for other nodes.
func (p Pods) Kubernetes(ctx context.Context, interpreter *muranopl.Interpreter, pod *muranopl.Object) (*rest.Config, error) {
	object := pod.Object("kubernetesCluster")
	if !p.Runtime.Deploys() {
		if err := p.Clusters.EnsureOpen(ctx, object); err != nil {
			return nil, err
		}
		if api, err := p.Clusters.Kubernetes(ctx, object); err == nil {
			return api, nil
		}
	}
	if _, err := interpreter.Invoke(ctx, object, task.MethodDeploy, nil); err != nil {
		return nil, err
	}
	return p.Clusters.Kubernetes(ctx, object)
}

// placeOf is the part of a pod's spec that identifies its objects.
func placeOf(pod *muranopl.Object) podSpec {
	return podSpec{id: pod.ID(), name: pod.Text("name"), namespace: pod.Text("namespace")}
}

func PodSpecOf(pod *muranopl.Object) (podSpec, error) {
	options, err := podOptionsOf(pod)
	if err != nil {
		return podSpec{}, err
	}
	spec := placeOf(pod)
	spec.labels, spec.replicas, spec.options = map[string]string{}, int32(pod.Int("replicas")), options
	for part := range strings.SplitSeq(pod.Text("labels"), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return spec, fmt.Errorf("labels of %s: %q is no label: write key=value", pod, part)
		}
		spec.labels[key] = value
	}
	return spec, nil
}

// waitPod waits until every replica runs. After rolloutLimit the error has the reasons, and the log has the last lines of the containers.
func (p Pods) waitPod(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec) error {
	waiting, err := newRollout(api, spec)
	if err != nil {
		return err
	}
	err = waiting.wait(ctx)
	var failed *failedRollout
	switch {
	case err == nil && spec.options.kind == kindCronJob:
		return p.reportRuns(ctx, pod, waiting)
	case errors.Is(err, errJobRuns):
		p.Reports.Inform(ctx, pod, "The job %s still runs after %s; the deployment does not wait for its end", spec.name, rolloutLimit)
		return nil
	case errors.As(err, &failed):
		reportLastLines(ctx, p.Reports, pod, failed.obstacles, waiting.lastOf)
	}
	return err
}

// reportRuns reports the last run of a cron job and its result.
func (p Pods) reportRuns(ctx context.Context, pod *muranopl.Object, waiting *rollout) error {
	spec := waiting.spec
	jobs, err := waiting.client.BatchV1().Jobs(spec.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: spec.id}.String()})
	if err != nil {
		return fmt.Errorf("list the runs of cron job %s: %w", spec.name, err)
	}
	if len(jobs.Items) == 0 {
		p.Reports.Inform(ctx, pod, "The cron job %s runs at %s; it has not run yet", spec.name, spec.options.schedule)
		return nil
	}
	last := slices.MaxFunc(jobs.Items, func(a, b batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	began := last.CreationTimestamp.UTC().Format(time.RFC3339)
	found, err := waiting.obstaclesOfJob(ctx, last.Name)
	if err != nil {
		return err
	}
	switch end, message := endOf(&last); {
	case end == batchv1.JobComplete:
		p.Reports.Inform(ctx, pod, "The cron job %s ran last at %s, and succeeded", spec.name, began)
		return nil
	case end == batchv1.JobFailed:
		if len(found) > 0 {
			message += " (" + inOneLine(found) + ")"
		}
		p.Reports.Warn(ctx, pod, fmt.Sprintf("The cron job %s ran last at %s, and failed: %s", spec.name, began, message), "")
	case len(found) > 0:
		p.Reports.Warn(ctx, pod, fmt.Sprintf("The cron job %s runs since %s, and something keeps it from its end: %s", spec.name, began, inOneLine(found)), "")
	default:
		p.Reports.Inform(ctx, pod, "The cron job %s runs since %s", spec.name, began)
	}
	reportLastLines(ctx, p.Reports, pod, found, waiting.lastOf)
	return nil
}

// noteEndpoints writes to each application its addresses, and reports the public ones. answers is true if an endpoint must accept connections when
// the task ends.
func (p Pods) noteEndpoints(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec, all []hosted, answers bool) error {
	cluster := pod.Object("kubernetesCluster")
	pods, err := p.Clusters.PodNetwork(ctx, cluster)
	if err != nil {
		return err
	}
	gateways := p.Clusters.GatewayAddresses(cluster)
	closed := p.closedPorts(ctx, pod, api, spec, all)
	for _, one := range all {
		endpoints := []any{}
		for _, port := range one.container.ports {
			endpoint := func(address, scope string) {
				endpoints = append(endpoints, map[string]any{
					"address": address, "port": int64(port.published), "containerPort": int64(port.number), "protocol": port.protocol,
					"scope": scope, "portScope": port.scope, "applicationName": one.container.name, "podId": pod.ID(),
				})
			}
			if port.scope != "host" {
				endpoint(serviceAddress(spec, pods.Domain, one.container.name), "internal")
			}
			if !port.isPublic() {
				continue
			}
			if why, ok := closed[portKey{serviceName(spec.name, one.container.name), port.published}]; ok {
				p.Reports.Warn(ctx, one.application, fmt.Sprintf("%s is not published at port %d: %s", one.container.name, port.published, why),
					"Give one of the two another port, and deploy again.")
				continue
			}
			if answers && port.protocol == string(corev1.ProtocolTCP) && len(gateways) > 0 {
				p.Clusters.Await(cluster, uint16(port.published))
			}
			for _, address := range gateways {
				endpoint(address, port.scope)
				p.Reports.Inform(ctx, one.application, "%s is available at %s:%d", one.container.name, address, port.published)
			}
		}
		if err := one.application.Set(propertyEndpoints, endpoints); err != nil {
			return err
		}
	}
	return nil
}
