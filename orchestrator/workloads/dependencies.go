package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

// dependency is another application whose readiness the pods of an application wait for (DockerContainer.dependsOn).
type dependency struct{ application, needs *muranopl.Object }

// hostOf is the object that an application is ready with: its host, or itself.
func hostOf(application *muranopl.Object) *muranopl.Object {
	if application.Class().IsEmbedded(task.ClassApplication) {
		if host := application.Object("host"); host != nil {
			return host
		}
	}
	return application
}

// placed names an application with its host.
func placed(application *muranopl.Object) string {
	name := func(object *muranopl.Object) string {
		if text := object.Text("name"); text != "" {
			return text
		}
		return object.String()
	}
	if host := hostOf(application); host != application {
		return fmt.Sprintf("%s on %s", name(application), name(host))
	}
	return name(application)
}

func (d dependency) String() string { return placed(d.application) + " depends on " + placed(d.needs) }

// dependenciesOf are the dependencies of a host's applications, each application that is needed once.
func dependenciesOf(all []hosted) (found []dependency) {
	for _, one := range all {
		for _, needs := range one.container.dependsOn {
			if !slices.ContainsFunc(found, func(other dependency) bool { return other.needs == needs }) {
				found = append(found, dependency{one.application, needs})
			}
		}
	}
	return found
}

// dependencyGraph has the dependencies of hosts, by their ids.
type dependencyGraph map[string][]dependency

// circle is a way from a host back to itself; nil for none.
func (g dependencyGraph) circle(host string) []dependency {
	seen := map[string]bool{}
	var from func(id string) []dependency
	from = func(id string) []dependency {
		for _, one := range g[id] {
			next := hostOf(one.needs).ID()
			if next == host {
				return []dependency{one}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if rest := from(next); rest != nil {
				return append([]dependency{one}, rest...)
			}
		}
		return nil
	}
	return from(host)
}

// checkCircle is a fault that names all applications of a circle.
func (g dependencyGraph) checkCircle(host string) error {
	found := g.circle(host)
	switch len(found) {
	case 0:
		return nil
	case 1:
		return fault.New(fault.Invalid, "%s, which has the same host: containers of a host start together. Give one of them a host of its own, or take it out of dependsOn", found[0])
	}
	texts := make([]string, len(found))
	for i, one := range found {
		texts[i] = one.String()
	}
	return fault.New(fault.Invalid, "these applications wait for each other: %s. Take one of these out of dependsOn", strings.Join(texts, ", "))
}

// dependents are the dependencies of the hosts that a task brings up, as far as they are known. A host that would wait for itself, through others, is
// refused: it would wait for ever.
type dependents struct {
	mutex sync.Mutex
	graph dependencyGraph
}

func (d *dependents) note(host string, needed []dependency) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.graph == nil {
		d.graph = dependencyGraph{}
	}
	d.graph[host] = needed
	return d.graph.checkCircle(host)
}

// Steps of hosts that begin after the applications that they depend on.
const (
	stepApplyPod       = "apply the pod"
	stepWaitPod        = "wait for the pod"
	stepRunContainers  = "run containers"
	stepWaitContainers = "wait for containers"
)

// steps are the steps of a task.
type steps interface {
	Deploys() bool
	Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	Planned(object *muranopl.Object, steps map[string][]string)
}

// awaitDependencies brings up the applications that those of a host depend on, and waits until they are ready. An action takes them as they are. The host's own
// steps, which are in their order, come after that.
func (h *Hosting) awaitDependencies(ctx context.Context, runtime steps, host *muranopl.Object, all []hosted, own []string, bringUp func(ctx context.Context, application *muranopl.Object) error) error {
	needed := dependenciesOf(all)
	if len(needed) == 0 || !runtime.Deploys() {
		return nil
	}
	if err := h.dependents.note(host.ID(), needed); err != nil {
		return err
	}
	planned, first := map[string][]string{}, []string{}
	step := func(one dependency) string { return "wait for " + placed(one.needs) }
	objects, by := []*muranopl.Object{}, map[*muranopl.Object]dependency{}
	for _, one := range needed {
		planned[step(one)] = []string{}
		first, objects = append(first, step(one)), append(objects, one.needs)
		by[one.needs] = one
	}
	for _, name := range own {
		planned[name], first = first, []string{name}
	}
	runtime.Planned(host, planned)
	return task.Each(objects, func(needs *muranopl.Object) error {
		one := by[needs]
		err := runtime.Step(ctx, host, step(one), func(ctx context.Context) error { return bringUp(ctx, needs) })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s did not begin: %s, which did not become ready: %w", host.Text("name"), one, err)
		}
		return err
	})
}

// bringUpApplication returns when an application is ready. Its container is all that counts, where it runs in a pod: what its class does after that is not
// waited for.
func (p Pods) bringUpApplication(ctx context.Context, interpreter *muranopl.Interpreter, application *muranopl.Object) error {
	host := hostOf(application)
	if host == application || !host.Class().IsEmbedded(task.ClassPod) {
		_, err := interpreter.Invoke(ctx, application, task.MethodDeploy, nil)
		return err
	}
	_, one, err := describe(ctx, interpreter, application)
	if err != nil {
		return err
	}
	return p.include(ctx, interpreter, host, one.name)
}

// foreseeDependencies refuses applications that wait for each other, or for one of their own host, and adds the order of the hosts that would change.
// begins are the clusters that were never up.
func (c Previews) foreseeDependencies(ctx context.Context, interpreter *muranopl.Interpreter, begins map[*muranopl.Object]bool, looks bool, foreseen *preview.Foreseen) {
	graph, hosts := dependencyGraph{}, map[string]*muranopl.Object{}
	for _, host := range slices.Concat(c.Objects.All(task.ClassPod), c.Objects.All(task.ClassStandaloneHost)) {
		all, err := (&Hosting{Objects: c.Objects, Reports: c.Reports}).all(ctx, interpreter, host)
		if err != nil {
			continue // an application that cannot be described before its deployment, which then looks for circles
		}
		graph[host.ID()], hosts[host.ID()] = dependenciesOf(all), host
	}
	told := map[string]bool{} // hosts of circles
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		err := graph.checkCircle(id)
		if err == nil || told[id] {
			continue
		}
		for _, one := range graph.circle(id) {
			told[hostOf(one.needs).ID()] = true
		}
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: id, Text: err.Error()})
	}
	if !looks {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(graph)) {
		changes := slices.ContainsFunc(foreseen.Kubernetes, func(one preview.KubernetesChange) bool { return one.ObjectID == id })
		begins := begins[hosts[id].Object("kubernetesCluster")] || !hosts[id].Class().IsEmbedded(task.ClassPod) && hosts[id].Object("instance").Text("openstackId") == ""
		if len(graph[id]) == 0 || !changes && !begins {
			continue
		}
		var names []string
		for _, one := range graph[id] {
			names = append(names, placed(one.needs))
		}
		foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("%s begins when these are ready: %s", hosts[id].Text("name"), strings.Join(names, ", ")))
	}
}

// annotationDependsOn is on the workloads of pods whose applications depend on others: the ids of the pods of these, with commas. By it their removal has an order.
const annotationDependsOn = "burano.io/depends-on"

// dependsOn is the annotationDependsOn of a workload with these containers; nil for none.
func dependsOn(containers []container) map[string]string {
	var ids []string
	for _, one := range containers {
		for _, needs := range one.dependsOn {
			if id := hostOf(needs).ID(); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return map[string]string{annotationDependsOn: strings.Join(ids, ",")}
}

// dependent is a workload whose pods depend on another pod.
type dependent struct {
	id, name, namespace string
	grace               *int64 // of its pods, in seconds
}

// dependentsOf are the workloads that depend on a pod, but those that stay, and the pod's own if it depends on one that does not stay.
func dependentsOf(ctx context.Context, client kubernetes.Interface, pod string, stays func(id string) bool) (found []dependent, err error) {
	all := metav1.ListOptions{LabelSelector: LabelPod}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	sets, err := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	daemons, err := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list DaemonSets: %w", err)
	}
	add := func(meta metav1.ObjectMeta, template corev1.PodTemplateSpec) {
		id, needs := meta.Labels[LabelPod], strings.FieldsFunc(meta.Annotations[annotationDependsOn], func(r rune) bool { return r == ',' })
		leaves := func(id string) bool { return !stays(id) }
		if id == pod && slices.ContainsFunc(needs, leaves) || id != pod && slices.Contains(needs, pod) && leaves(id) {
			found = append(found, dependent{id, meta.Name, meta.Namespace, template.Spec.TerminationGracePeriodSeconds})
		}
	}
	for _, one := range deployments.Items {
		add(one.ObjectMeta, one.Spec.Template)
	}
	for _, one := range sets.Items {
		add(one.ObjectMeta, one.Spec.Template)
	}
	for _, one := range daemons.Items {
		add(one.ObjectMeta, one.Spec.Template)
	}
	return found, nil
}

// endDependents ends the pods that leave the model as well and whose applications depend on one of this pod, which serves until they have ended. A pod that depends on
// one that leaves ends here, too, so that the other one can wait for that.
func endDependents(ctx context.Context, p Pods, api *rest.Config, pod *muranopl.Object) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	ending, err := dependentsOf(ctx, client, pod.ID(), p.Hosting.Objects.Has)
	if err != nil || len(ending) == 0 {
		return err
	}
	for _, one := range ending {
		if one.id == pod.ID() {
			p.Reports.Inform(ctx, pod, "Pod %s ends before the pods that it depends on", one.name)
		} else {
			p.Reports.Inform(ctx, pod, "Pod %s depends on pod %s, and ends before it", one.name, pod.Text("name"))
		}
	}
	return p.Runtime.Step(ctx, pod, "end pods in their order", func(ctx context.Context) error {
		for _, one := range ending {
			if err := one.end(ctx, api, client); err != nil {
				return err
			}
		}
		return nil
	})
}

// endLook is how often pods that end are looked at, and endSpare the time that they have beside their own.
const (
	endLook  = 500 * time.Millisecond
	endSpare = time.Minute
	// mostGrace bounds the time of pods, which anybody may have set.
	mostGrace = 3600
)

// end deletes the workload and waits until its pods have ended.
func (d dependent) end(ctx context.Context, api *rest.Config, client kubernetes.Interface) error {
	mine := labels.Set{LabelPod: d.id}
	if err := deleteWorkloads(ctx, api, d.namespace, mine); err != nil {
		return err
	}
	limit := endSpare + graceSeconds*time.Second
	if d.grace != nil {
		limit = endSpare + time.Duration(min(max(*d.grace, 0), mostGrace))*time.Second
	}
	return wait.Every(endLook).For(limit).Until(ctx, func(ctx context.Context) error {
		there, err := client.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: mine.String()})
		if err == nil && len(there.Items) > 0 {
			err = errors.New("its replicas have not ended")
		}
		if err != nil {
			return wait.Again(fmt.Errorf("pod %s, which depends on another one that goes: %w", d.name, err))
		}
		return nil
	})
}
