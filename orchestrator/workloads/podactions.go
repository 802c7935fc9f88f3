package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// pauseManager owns whether a rollout is paused, so that another apply of the Deployment, which does not set it, leaves it.
	pauseManager = "burano-pause"
	// mostLogBytes bounds the result of getLogs, and mostLogPods the number of pods in it.
	mostLogBytes  = 128 << 10
	mostLogPods   = 20
	PropertyImage = "image"
)

// choose returns the application whose container has this name; "" means the only one.
func choose(pod *muranopl.Object, all []hosted, name string) (hosted, error) {
	var names []string
	for _, one := range all {
		if kubeName(one.container.name) == kubeName(name) || name == "" && len(all) == 1 {
			return one, nil
		}
		names = append(names, kubeName(one.container.name))
	}
	slices.Sort(names)
	if name == "" {
		return hosted{}, fault.New(fault.Invalid, "%s has the containers %s: say which one is meant", pod, strings.Join(names, ", "))
	}
	return hosted{}, fault.New(fault.Invalid, "%s has no container %s; it has %s", pod, name, strings.Join(names, ", "))
}

// rollout is the action that gives an application another image, which the model keeps.
func (p Pods) rollout(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	image, _ := call.Args["image"].(string)
	name, _ := call.Args["container"].(string)
	all, err := p.Hosting.all(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	one, err := choose(call.Object, all, name)
	if err != nil {
		return nil, err
	}
	undo, err := p.setImage(ctx, call.Interpreter, one, image)
	if err != nil {
		return nil, err
	}
	if _, err := call.Interpreter.Invoke(ctx, call.Object, task.MethodDeploy, nil); err != nil {
		p.putBack(ctx, undo)
		return nil, err
	}
	return nil, nil
}

// setImage sets another image of an application in the model. undo sets the former one.
func (p Pods) setImage(ctx context.Context, interpreter *muranopl.Interpreter, one hosted, image string) (undo func() error, err error) {
	undo = func() error { return one.application.Initialise(PropertyImage, one.container.image) }
	if strings.TrimSpace(image) == "" || strings.ContainsAny(image, " \t\n") {
		return undo, fault.New(fault.Invalid, "image is %q, which is no image: write registry.example.org/web:2", image)
	}
	fixed := fault.New(fault.Invalid, "the package of %s says itself which image its container has: deploy another version of the package", one.application)
	if now, _ := one.application.Get(PropertyImage); now != one.container.image {
		return undo, fixed
	}
	// A user who may call the action may change the property in a draft as well, with any usage.
	if err := one.application.Initialise(PropertyImage, image); err != nil {
		return undo, err
	}
	_, now, err := describe(ctx, interpreter, one.application)
	if err == nil && now.image != image {
		err = fixed
	}
	if err != nil {
		p.putBack(ctx, undo)
	}
	return undo, err
}

// putBack restores the former model.
func (p Pods) putBack(ctx context.Context, undo func() error) {
	if err := undo(); err != nil {
		p.Reports.Logger.WarnContext(ctx, "the model keeps an image that does not run", "error", err)
	}
}

// deployed returns the access to the pod's cluster and its Deployment, for actions that others kinds of workloads do not have.
func (p Pods) deployed(ctx context.Context, call muranopl.Call, action string) (*rest.Config, *rollout, *appsv1.Deployment, error) {
	spec, err := PodSpecOf(call.Object)
	if err != nil {
		return nil, nil, nil, err
	}
	if spec.options.kind != kindDeployment || spec.replicas == 0 {
		return nil, nil, nil, fault.New(fault.Invalid, "%s is for pods of the workload deployment with replicas; %s is none", action, call.Object)
	}
	api, err := p.Kubernetes(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, nil, nil, err
	}
	waiting, err := newRollout(api, spec)
	if err != nil {
		return nil, nil, nil, err
	}
	deployment, err := waiting.client.AppsV1().Deployments(waiting.spec.inNamespace()).Get(ctx, kubeName(spec.name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil, fault.New(fault.Conflict, "pod %s does not run: deploy the environment", spec.name)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read Deployment %s: %w", spec.name, err)
	}
	return api, waiting, deployment, nil
}

// rollback is the action that returns a pod to its former form, or to the stored one of a revision. The model gets the former images; for other differences the model counts, and there is a
// warning.
func (p Pods) rollback(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	api, waiting, deployment, err := p.deployed(ctx, call, "rollback")
	if err != nil {
		return nil, err
	}
	if deployment.Spec.Paused {
		return nil, fault.New(fault.Conflict, "the rollout of pod %s is paused: call resumeRollout first", waiting.spec.name)
	}
	sets, err := waiting.revisions(ctx)
	if err != nil {
		return nil, err
	}
	revision, _ := call.Args["revision"].(int64)
	last, err := keptForm(sets, revision)
	if err != nil {
		return nil, fault.New(fault.Conflict, "pod %s %w", waiting.spec.name, err)
	}
	former := formIn(last)
	all, err := p.Hosting.all(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	if err := p.haveImages(ctx, call.Object, imagesIn(former.Spec)); err != nil {
		return nil, err
	}
	var undo []func() error
	var others []string // differences that the next deployment restores
	for _, one := range all {
		i := slices.IndexFunc(former.Spec.Containers, func(built corev1.Container) bool { return built.Name == kubeName(one.container.name) })
		if i < 0 {
			others = append(others, "container "+kubeName(one.container.name)+", which was not there")
			continue
		}
		if image := former.Spec.Containers[i].Image; image != one.container.image {
			restore, err := p.setImage(ctx, call.Interpreter, one, image)
			if err == nil {
				undo = append(undo, restore)
			} else {
				others = append(others, "the image of container "+kubeName(one.container.name))
			}
		}
	}
	wanted := waiting.spec.template(containersOf(all))
	others = append(others, differences(wanted.Spec.Containers, former.Spec.Containers)...)
	if !slices.Equal(fileNames(wanted.Spec), fileNames(former.Spec)) {
		others = append(others, "the files")
	}
	p.Reports.Inform(ctx, call.Object, "Pod %s goes back to its form of revision %d", waiting.spec.name, revisionOf(*last))
	err = p.Runtime.Step(ctx, call.Object, "roll the pod back", func(ctx context.Context) error {
		if err := kube.Apply(ctx, api, kube.Manager, withForm(deployment, former, waiting.spec.options.strategy)); err != nil {
			return err
		}
		return p.waitPod(ctx, call.Object, api, waiting.spec)
	})
	if err != nil {
		for _, one := range undo {
			p.putBack(ctx, one)
		}
		return nil, err
	}
	if len(others) > 0 {
		p.Reports.Warn(ctx, call.Object, fmt.Sprintf("The model of pod %s says otherwise: %s. The next deployment brings that back, unless the model is changed", waiting.spec.name, strings.Join(others, "; ")), "")
	}
	return nil, nil
}

// listRevisions is the action that returns the stored forms of a pod, the newest first, with their differences from the present one.
func (p Pods) listRevisions(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	_, waiting, _, err := p.deployed(ctx, call, "listRevisions")
	if err != nil {
		return nil, err
	}
	sets, err := waiting.revisions(ctx)
	if err != nil {
		return nil, err
	}
	result := []any{}
	for i, set := range sets {
		images, differs := map[string]any{}, []any{}
		for _, one := range set.Spec.Template.Spec.Containers {
			images[one.Name] = one.Image
		}
		for _, text := range formDifferences(sets[0].Spec.Template.Spec, set.Spec.Template.Spec) {
			differs = append(differs, text)
		}
		result = append(result, map[string]any{"revision": revisionOf(set), "present": i == 0, "cameUp": set.Labels[labelRan] != "", "created": set.CreationTimestamp.UTC().Format(time.RFC3339),
			"images": images, "differs": differs})
	}
	return result, nil
}

// formDifferences names the differences of a stored form from the present one. It has no values of variables, which may be secret.
func formDifferences(now, then corev1.PodSpec) (found []string) {
	for _, one := range then.Containers {
		i := slices.IndexFunc(now.Containers, func(other corev1.Container) bool { return other.Name == one.Name })
		switch {
		case i < 0:
			found = append(found, "container "+one.Name+", which is not there now")
		case now.Containers[i].Image != one.Image:
			found = append(found, fmt.Sprintf("the image of container %s: %s", one.Name, one.Image))
		}
	}
	for _, one := range now.Containers {
		if !slices.ContainsFunc(then.Containers, func(other corev1.Container) bool { return other.Name == one.Name }) {
			found = append(found, "container "+one.Name+", which was not there")
		}
	}
	found = append(found, differences(now.Containers, then.Containers)...)
	if !slices.Equal(fileNames(now), fileNames(then)) {
		found = append(found, "the files")
	}
	return found
}

// keptForm is the stored form of a revision; of 0 it is the former one.
func keptForm(sets []appsv1.ReplicaSet, revision int64) (*appsv1.ReplicaSet, error) {
	if revision == 0 {
		if last := formerOf(sets); last != nil {
			return last, nil
		}
		return nil, errors.New("has had one form only: there is nothing to go back to")
	}
	var kept []string
	for i := range sets {
		switch number := revisionOf(sets[i]); {
		case number == revision && i == 0:
			return nil, fmt.Errorf("has the form of revision %d already", revision)
		case number == revision:
			return &sets[i], nil
		default:
			kept = append(kept, strconv.FormatInt(number, 10))
		}
	}
	return nil, fmt.Errorf("has no form of revision %d any more; it has %s (listRevisions shows them)", revision, strings.Join(kept, ", "))
}

// formerOf is the last form before the newest that came up; where of none it is known, the one before. nil when there is none.
func formerOf(sets []appsv1.ReplicaSet) *appsv1.ReplicaSet {
	if len(sets) < 2 {
		return nil
	}
	for i := range sets[1:] {
		if sets[1+i].Labels[labelRan] != "" {
			return &sets[1+i]
		}
	}
	return &sets[1]
}

// formIn is the form of pods that a ReplicaSet keeps, as it was applied.
func formIn(set *appsv1.ReplicaSet) corev1.PodTemplateSpec {
	form := set.Spec.Template.DeepCopy()
	delete(form.Labels, labelReplicaSet)
	delete(form.Annotations, annotationRecreated) // is another manager's
	return *form
}

// withForm is a Deployment as it is applied, with another form of its pods. An apply removes fields that it leaves out, so the result has all former ones.
func withForm(now *appsv1.Deployment, form corev1.PodTemplateSpec, strategy appsv1.DeploymentStrategy) *appsv1.Deployment {
	wanted := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: now.Name, Namespace: now.Namespace, Labels: form.Labels},
		Spec:       appsv1.DeploymentSpec{MinReadySeconds: now.Spec.MinReadySeconds, Replicas: now.Spec.Replicas, Selector: now.Spec.Selector, Template: form, Strategy: strategy},
	}
	if needs, is := now.Annotations[annotationDependsOn]; is {
		wanted.Annotations = map[string]string{annotationDependsOn: needs}
	}
	if now.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		wanted.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	return wanted
}

func containersOf(all []hosted) []container {
	var containers []container
	for _, one := range all {
		containers = append(containers, one.container)
	}
	slices.SortFunc(containers, func(a, b container) int { return strings.Compare(a.application, b.application) })
	return containers
}

// differences names the differences between the model's containers and a former form, images aside.
func differences(wanted, former []corev1.Container) (found []string) {
	for _, one := range wanted {
		i := slices.IndexFunc(former, func(other corev1.Container) bool { return other.Name == one.Name })
		if i < 0 {
			continue
		}
		other := former[i]
		for what, differ := range map[string]bool{
			"the environment": !slices.Equal(variables(one), variables(other)),
			"the command":     !slices.Equal(one.Command, other.Command) || !slices.Equal(one.Args, other.Args),
		} {
			if differ {
				found = append(found, what+" of container "+one.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// fileNames are the names of the ConfigMaps of a pod's files.
func fileNames(spec corev1.PodSpec) (names []string) {
	for _, one := range spec.Volumes {
		if one.ConfigMap != nil {
			names = append(names, one.ConfigMap.Name)
		}
	}
	slices.Sort(names)
	return names
}

// variables are a container's variables with their values, except values from Secrets.
func variables(one corev1.Container) []string {
	var all []string
	for _, variable := range one.Env {
		if variable.ValueFrom == nil {
			all = append(all, variable.Name+"="+variable.Value)
		} else {
			all = append(all, variable.Name)
		}
	}
	slices.Sort(all)
	return all
}

// pause is the action that has pods keep their former form (true), or change to the newest again (false).
func (p Pods) pause(paused bool) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		defer p.Clusters.Close()
		action := map[bool]string{true: "pauseRollout", false: "resumeRollout"}[paused]
		api, waiting, deployment, err := p.deployed(ctx, call, action)
		if err != nil {
			return nil, err
		}
		if deployment.Spec.Paused == paused {
			p.Reports.Inform(ctx, call.Object, "The rollout of pod %s is so already", waiting.spec.name)
			return nil, nil
		}
		return nil, p.Runtime.Step(ctx, call.Object, action, func(ctx context.Context) error {
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"paused": paused}})
			if err != nil {
				return err
			}
			_, err = waiting.client.AppsV1().Deployments(waiting.spec.inNamespace()).Patch(ctx, deployment.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: pauseManager})
			if err != nil {
				return fmt.Errorf("%s of pod %s: %w", action, waiting.spec.name, err)
			}
			if paused {
				return nil
			}
			return p.waitPod(ctx, call.Object, api, waiting.spec)
		})
	}
}

// logs is the action that returns the last lines of the pods' containers: a list of {pod, container, text}, the newest pods first.
func (p Pods) logs(ctx context.Context, call muranopl.Call) (any, error) {
	defer p.Clusters.Close()
	name, _ := call.Args["container"].(string)
	only, _ := call.Args["pod"].(string)
	lines, _ := call.Args["lines"].(int64)
	previous, _ := call.Args["previous"].(bool)
	api, client, found, err := p.running(ctx, call)
	if err != nil {
		return nil, err
	}
	pods, err := choosePods(found, only)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.Object, err)
	}
	facts, err := knownOf(ctx, client, placeOf(call.Object))
	if err != nil {
		return nil, err
	}
	result := []any{}
	for _, pod := range pods {
		log := kube.Log{Namespace: pod.Namespace, Pod: pod.Name, Tail: lines, Previous: previous}
		if name != "" {
			log.Container = kubeName(name)
		}
		text, err := readLast(ctx, api, log, mostLogBytes/len(pods))
		var none *kube.NoContainer
		switch {
		case errors.As(err, &none):
			return nil, fault.New(fault.Invalid, "pod %s: %w", pod.Name, err)
		case apierrors.IsNotFound(err) && only == "":
			continue // the pod has just gone
		case err != nil && apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
			text = err.Error() // such as that the container has not begun
		case err != nil:
			return nil, err
		}
		if log.Container == "" {
			log.Container = pod.Spec.Containers[0].Name
		}
		result = append(result, map[string]any{"pod": pod.Name, "container": log.Container, "text": facts.Hide(text)})
	}
	return result, nil
}

// choosePods returns the pods whose logs are wanted, newest first: the pod of this name, or all for "".
func choosePods(pods []corev1.Pod, name string) ([]corev1.Pod, error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Name] = true
		if pod.Name == name {
			return []corev1.Pod{pod}, nil
		}
	}
	switch {
	case len(pods) == 0:
		return nil, fault.New(fault.Conflict, "it has no pods: deploy the environment")
	case name != "":
		return nil, fault.New(fault.Invalid, "it has no pod %s; it has %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return pods[:min(len(pods), mostLogPods)], nil
}
