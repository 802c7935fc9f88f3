package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
)

// strategyManager owns the change of a Deployment's strategy, which server-side apply cannot make by itself: fields of the former strategy, which
// have no owner, would stay and be refused.
const strategyManager = "burano-strategy"

// apply makes the pod's objects match the model. A change that Kubernetes refuses is refused before any running object is touched. paused is true if
// the pods keep their former form until their rollout is resumed. bootstrap runs the bootstraps before the pods roll.
func (p podSpec) apply(ctx context.Context, api *rest.Config, containers []container, allowed func(name string) bool, bootstrap func(spec podSpec) error) (paused bool, err error) {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return false, err
	}
	there, err := p.workloads(ctx, client)
	if err != nil {
		return false, err
	}
	use := p.claimUse(containers, there)
	if err := use.lost(p, allowed); err != nil {
		return false, err
	}
	p.adopted = use.adopted
	storage, err := p.checkStorage(ctx, client, containers, there, nil)
	if err != nil {
		return false, err
	}
	p.sizes = storage.sizes
	if err := (podSecrets{p, client}).ensure(ctx, containers); err != nil {
		return false, err
	}
	if p, err = asItRuns(ctx, p, api, client, there, containers); err != nil {
		return false, err
	}
	objects := p.objects(containers)
	for _, object := range objects {
		if file, is := object.(*corev1.ConfigMap); is {
			if err := kube.Apply(ctx, api, kube.Manager, file); err != nil {
				return false, err
			}
		}
	}
	if err := bootstrap(p); err != nil {
		return false, err
	}
	remove := there.unchangeable(objects)
	if former, _ := there.superseded(objects); there.mount(p.claims(containers)) {
		remove = append(remove, former...)
	}
	if err := removeFormer(ctx, api, client, remove); err != nil {
		return false, err
	}
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *appsv1.Deployment:
			if paused, err = prepareStrategy(ctx, client, object); err == nil {
				err = kube.Apply(ctx, api, kube.Manager, object)
			}
		case *corev1.Pod:
			err = applyPod(ctx, api, client, object)
		case *corev1.ConfigMap:
		case *batchv1.Job:
			if object.Labels[labelBootstrap] != "" {
				continue
			}
			err = p.applyJob(ctx, api, client, object)
		case *appsv1.StatefulSet:
			if err = kube.Apply(ctx, api, kube.Manager, object); apierrors.IsInvalid(err) {
				err = fmt.Errorf("%w (the volumes of a stateful set cannot change once it is there)", err)
			}
		default:
			err = kube.Apply(ctx, api, kube.Manager, object)
		}
		if err != nil {
			return false, err
		}
	}
	return paused, nil
}

// asItRuns is the pod without what former versions of Burano did not give it, where its pods run without and nothing else would change: its next change adds that.
func asItRuns(ctx context.Context, p podSpec, api *rest.Config, client kubernetes.Interface, there workloads, containers []container) (podSpec, error) {
	kept := p.options.kind == kindDaemonSet || p.options.kind == kindStatefulSet || p.options.kind == kindDeployment && p.replicas > 0
	p.soft = hardens(containers)
	var err error
	if p.abrupt, err = staysAbrupt(ctx, p, api, containers); err != nil {
		return p, err
	}
	if p.values, err = p.valuesToNote(ctx, api, client, containers); err != nil {
		return p, err
	}
	if p.soft && kept { // pods that nothing replaces one after another stay as they are
		if p.soft, err = leavesTemplate(ctx, api, p.objects(containers)); err != nil {
			return p, err
		}
	}
	p.hasty, err = staysHasty(ctx, p, api, there, containers)
	return p, err
}

// staysAbrupt is true if pods without a preStop delay run and nothing else would change. The missing delay alone does not replace them: their next
// change adds it.
func staysAbrupt(ctx context.Context, p podSpec, api *rest.Config, containers []container) (bool, error) {
	if !p.lingers(containers) {
		return false, nil
	}
	p.abrupt = true
	return leavesTemplate(ctx, api, p.objects(containers))
}

// staysHasty is true if the present workload counts pods at once and its pods would stay. Their next change has them counted later, when they have lived for a
// while (livesSeconds).
func staysHasty(ctx context.Context, p podSpec, api *rest.Config, there workloads, containers []container) (bool, error) {
	if minReady(p, p.template(containers)) == 0 || p.options.minReady != nil || !there.hasty(kubeName(p.name)) {
		return false, nil
	}
	return leavesTemplate(ctx, api, p.objects(containers))
}

// hasty reports whether a present workload of this name counts pods at once.
func (w workloads) hasty(name string) bool {
	return slices.ContainsFunc(w.deployments, func(one appsv1.Deployment) bool { return one.Name == name && one.Spec.MinReadySeconds == 0 }) ||
		slices.ContainsFunc(w.sets, func(one appsv1.StatefulSet) bool { return one.Name == name && one.Spec.MinReadySeconds == 0 }) ||
		slices.ContainsFunc(w.daemons, func(one appsv1.DaemonSet) bool { return one.Name == name && one.Spec.MinReadySeconds == 0 })
}

// leavesTemplate is true if the pods of the present workload among these objects would stay as they are.
func leavesTemplate(ctx context.Context, api *rest.Config, objects []runtime.Object) (bool, error) {
	for _, object := range objects {
		switch object.(type) {
		case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
			return kube.Leaves(ctx, api, kube.Manager, object, "spec", "template")
		}
	}
	return false, nil
}

// mount reports whether a present workload mounts one of these claims.
func (w workloads) mount(claims []*corev1.PersistentVolumeClaim) bool {
	mounted := w.mounted()
	return slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return mounted[claim.Name] })
}

// clear deletes objects that a change of name, replicas or kind of workload has left, and Secrets without a reference.
func (p podSpec) clear(ctx context.Context, api *rest.Config, containers []container) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	there, err := p.workloads(ctx, client)
	if err != nil {
		return err
	}
	p.adopted = p.claimUse(containers, there).adopted
	former, services := there.superseded(p.objects(containers))
	if err := deleteFormer(ctx, client, append(former, services...), metav1.DeletePropagationBackground); err != nil {
		return err
	}
	return podSecrets{p, client}.clear(ctx, containers)
}

// prepareStrategy changes the strategy of a present Deployment, which changes no pod. It returns whether the rollout is paused.
func prepareStrategy(ctx context.Context, client kubernetes.Interface, wanted *appsv1.Deployment) (paused bool, err error) {
	now, err := client.AppsV1().Deployments(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Deployment %s: %w", wanted.Name, err)
	}
	strategy := map[string]any{"type": appsv1.RecreateDeploymentStrategyType, "rollingUpdate": nil}
	recreates := now.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	switch wants := wanted.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType; {
	case wants == recreates:
		return now.Spec.Paused, nil
	case !wants:
		strategy = map[string]any{"type": appsv1.RollingUpdateDeploymentStrategyType}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"strategy": strategy}})
	if err != nil {
		return false, err
	}
	_, err = client.AppsV1().Deployments(wanted.Namespace).Patch(ctx, wanted.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: strategyManager})
	if err != nil {
		return false, fmt.Errorf("change the strategy of Deployment %s: %w", wanted.Name, err)
	}
	return now.Spec.Paused, nil
}

// applyPod applies a pod without a controller. The contents of a pod are immutable in Kubernetes, so a different pod replaces it, after a dry run of
// Kubernetes has accepted it.
func applyPod(ctx context.Context, api *rest.Config, client kubernetes.Interface, pod *corev1.Pod) error {
	err := kube.Apply(ctx, api, kube.Manager, pod)
	if !apierrors.IsInvalid(err) {
		return err
	}
	trial := pod.DeepCopy()
	trial.Name, trial.GenerateName = "", pod.Name+"-"
	if _, refused := client.CoreV1().Pods(pod.Namespace).Create(ctx, trial, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); refused != nil {
		return errors.Join(err, refused)
	}
	if err := DeleteAndWait(ctx, api, kube.Ref{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}); err != nil {
		return err
	}
	return kube.Apply(ctx, api, kube.Manager, pod)
}

// applyJob applies a Job, which runs once. A Job is immutable in Kubernetes: a different Job, or a failed one, is made anew. A Job that is done or
// still runs is left alone.
func (p podSpec) applyJob(ctx context.Context, api *rest.Config, client kubernetes.Interface, job *batchv1.Job) error {
	now, err := client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Job %s: %w", job.Name, err)
	}
	if err == nil {
		same, err := p.sameJob(now, job)
		if err != nil {
			return err
		}
		if ended, _ := endOf(now); same && ended != batchv1.JobFailed && now.DeletionTimestamp == nil {
			return nil
		}
		if err := removeJob(ctx, api, client, job.Namespace, job.Name); err != nil {
			return err
		}
	}
	return kube.Apply(ctx, api, kube.Manager, job)
}

// removeJob deletes a Job with its pods, and waits until it is gone.
func removeJob(ctx context.Context, api *rest.Config, client kubernetes.Interface, namespace, name string) error {
	foreground := metav1.DeletePropagationForeground
	err := client.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	return DeleteAndWait(ctx, api, kube.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: name})
}

// endOf is the end of a Job in Kubernetes' words; "" if it has not ended.
func endOf(job *batchv1.Job) (batchv1.JobConditionType, string) {
	for _, condition := range job.Status.Conditions {
		if (condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobComplete) && condition.Status == corev1.ConditionTrue {
			return condition.Type, condition.Message
		}
	}
	return "", ""
}
