package workloads

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/storage"
)

// annotationVolume is the identity of a claim within its pod: "NAME" of a volume that containers share by its name, "CONTAINER:PATH" of another. A claim
// belongs to this and to the id of the KubernetesPod, and not to a name: Kubernetes renames no claim.
const annotationVolume = "burano.io/volume"

// volumeKey is the annotationVolume of a container's volume.
func volumeKey(one container, path string) string {
	if name := one.volumes[path].options.claim.name; name != "" {
		return name
	}
	return one.name + ":" + path
}

// claimUse is how a change uses the claims of a pod.
type claimUse struct {
	adopted map[string]string // names of claims, by the names that new claims would have; only those that differ
	unused  []corev1.PersistentVolumeClaim
	empty   []string // keys of volumes that begin empty
}

// useClaims decides which present claims a pod's volumes have from now on. wanted are the claims of the containers, present those that carry the pod's id,
// mounted the names of those that its workload mounts now. A claim is found by its volume, then by its name, then by the end of its name, which the pod's
// name begins, then by a path that one volume and one claim alone have; and at last a single volume that is left gets a single mounted claim that is left, if both
// are of one container. A new claim whose name another volume's claim has gets another name.
func useClaims(wanted []*corev1.PersistentVolumeClaim, present []corev1.PersistentVolumeClaim, mounted map[string]bool) claimUse {
	use := claimUse{adopted: map[string]string{}}
	left := slices.Clone(wanted)
	free := slices.DeleteFunc(slices.Clone(present), func(claim corev1.PersistentVolumeClaim) bool { return claim.DeletionTimestamp != nil })
	match := func(same func(wanted *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool) {
		left = slices.DeleteFunc(left, func(one *corev1.PersistentVolumeClaim) bool {
			found := slices.IndexFunc(free, func(claim corev1.PersistentVolumeClaim) bool { return same(one, claim) })
			if found < 0 {
				return false
			}
			if name := free[found].Name; name != one.Name {
				use.adopted[one.Name] = name
			}
			free = slices.Delete(free, found, found+1)
			return true
		})
	}
	sameVolume := func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		return claim.Annotations[annotationVolume] == one.Annotations[annotationVolume]
	}
	match(func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		return mounted[claim.Name] && sameVolume(one, claim)
	})
	match(sameVolume)
	// A claim that was mounted at another path keeps the name of its first one.
	match(func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		return claim.Name == one.Name
	})
	// Claims of former versions have no annotation.
	match(func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		return claim.Annotations[annotationVolume] == "" && mounted[claim.Name] && strings.HasSuffix(claim.Name, "-"+kubeName(one.Annotations[annotationVolume]))
	})
	samePath := func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		_, path, ofPath := strings.Cut(one.Annotations[annotationVolume], ":")
		_, former, _ := strings.Cut(claim.Annotations[annotationVolume], ":")
		return ofPath && mounted[claim.Name] && (former == path || former == "" && strings.HasSuffix(claim.Name, "-"+kubeName(path)))
	}
	candidates, volumes := slices.Clone(free), slices.Clone(left)
	match(func(one *corev1.PersistentVolumeClaim, claim corev1.PersistentVolumeClaim) bool {
		if !samePath(one, claim) {
			return false
		}
		claims := slices.DeleteFunc(slices.Clone(candidates), func(other corev1.PersistentVolumeClaim) bool { return !samePath(one, other) })
		others := slices.DeleteFunc(slices.Clone(volumes), func(other *corev1.PersistentVolumeClaim) bool { return !samePath(other, claim) })
		return len(claims) == 1 && len(others) == 1
	})
	free = slices.DeleteFunc(free, func(claim corev1.PersistentVolumeClaim) bool { return !mounted[claim.Name] })
	if len(left) == 1 && len(free) == 1 && ofOneContainer(left[0], free[0]) {
		match(func(*corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaim) bool { return true })
	}
	use.unused = free
	taken := map[string]bool{}
	for _, claim := range present {
		taken[claim.Name] = true
	}
	for _, one := range left {
		use.empty = append(use.empty, one.Annotations[annotationVolume])
		if taken[one.Name] { // by a claim of another volume
			use.adopted[one.Name] = freeName(one.Name, taken)
			taken[use.adopted[one.Name]] = true
		}
	}
	return use
}

// freeName is a name that is not taken, made of another one.
func freeName(name string, taken map[string]bool) string {
	for n := 2; ; n++ {
		if next := fmt.Sprintf("%s-%d", name, n); !taken[next] {
			return next
		}
	}
}

// ofOneContainer reports whether a wanted and a present claim are both volumes by path of one container.
func ofOneContainer(wanted *corev1.PersistentVolumeClaim, present corev1.PersistentVolumeClaim) bool {
	container, _, byPath := strings.Cut(wanted.Annotations[annotationVolume], ":")
	former, _, known := strings.Cut(present.Annotations[annotationVolume], ":")
	if !known {
		return byPath && strings.Contains(present.Name, "-"+kubeName(container)+"-")
	}
	return byPath && former == container
}

// stateful is useClaims for a stateful set, whose claims Kubernetes names TEMPLATE-SET-ORDINAL, and whose templates nobody can change.
func (p podSpec) stateful(wanted []*corev1.PersistentVolumeClaim, present []corev1.PersistentVolumeClaim, mounted map[string]bool) claimUse {
	var use claimUse
	there := map[string]bool{}
	for _, claim := range present {
		i := slices.IndexFunc(wanted, func(one *corev1.PersistentVolumeClaim) bool { return ofSet(one.Name, kubeName(p.name), claim.Name) })
		if i >= 0 {
			there[wanted[i].Name] = true
		} else if mounted[claim.Name] && claim.DeletionTimestamp == nil {
			use.unused = append(use.unused, claim)
		}
	}
	for _, one := range wanted {
		if !there[one.Name] {
			use.empty = append(use.empty, one.Annotations[annotationVolume])
		}
	}
	return use
}

var ordinal = regexp.MustCompile(`^-[0-9]+$`)

// ofSet reports whether a claim is one of a stateful set by a template.
func ofSet(template, set, claim string) bool {
	rest, is := strings.CutPrefix(claim, template+"-"+set)
	return is && ordinal.MatchString(rest)
}

// workloads are the objects in a cluster that carry a pod's id.
type workloads struct {
	deployments []appsv1.Deployment
	sets        []appsv1.StatefulSet
	daemons     []appsv1.DaemonSet
	jobs        []batchv1.Job
	crons       []batchv1.CronJob
	pods        []corev1.Pod
	budgets     []policyv1.PodDisruptionBudget
	services    []corev1.Service
	claims      []corev1.PersistentVolumeClaim
}

// workloads lists the objects with the pod's id. The first list that fails ends it: each of the others would wait as long for an API that does not answer.
func (p podSpec) workloads(ctx context.Context, client kubernetes.Interface) (found workloads, err error) {
	return workloadsIn(ctx, client, p, p.inNamespace())
}

// workloadsIn is workloads for a namespace, or for all.
func workloadsIn(ctx context.Context, client kubernetes.Interface, p podSpec, namespace string) (found workloads, err error) {
	mine := metav1.ListOptions{LabelSelector: labels.Set{LabelPod: p.id}.String()}
	failed := func(err error) (workloads, error) {
		return workloads{}, fmt.Errorf("list the objects of pod %s: %w", p.name, err)
	}
	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	sets, err := client.AppsV1().StatefulSets(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	daemons, err := client.AppsV1().DaemonSets(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	crons, err := client.BatchV1().CronJobs(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	budgets, err := client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	services, err := client.CoreV1().Services(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	claims, err := client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, mine)
	if err != nil {
		return failed(err)
	}
	return workloads{deployments: deployments.Items, sets: sets.Items, daemons: daemons.Items, jobs: jobs.Items, crons: crons.Items, pods: pods.Items,
		budgets: budgets.Items, services: services.Items, claims: claims.Items}, nil
}

// all lists the objects.
func (w workloads) all() (objects []metav1.Object) {
	objects = append(objects, listed(w.deployments)...)
	objects = append(objects, listed(w.sets)...)
	objects = append(objects, listed(w.daemons)...)
	objects = append(objects, listed(w.jobs)...)
	objects = append(objects, listed(w.crons)...)
	objects = append(objects, listed(w.pods)...)
	objects = append(objects, listed(w.budgets)...)
	objects = append(objects, listed(w.services)...)
	return append(objects, listed(w.claims)...)
}

func listed[T any, P interface {
	*T
	metav1.Object
}](items []T) (objects []metav1.Object) {
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}

// mounted are the names of the claims that the workloads mount. Workloads that are being deleted, and the pods that end with them, mount none: the consent to
// their end was given.
func (w workloads) mounted() map[string]bool {
	names := map[string]bool{}
	w = w.staying()
	mounts := func(spec corev1.PodSpec) {
		for _, one := range spec.Volumes {
			if one.PersistentVolumeClaim != nil {
				names[one.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	for _, one := range w.deployments {
		mounts(one.Spec.Template.Spec)
	}
	for _, one := range w.jobs {
		mounts(one.Spec.Template.Spec)
	}
	for _, one := range w.crons {
		mounts(one.Spec.JobTemplate.Spec.Template.Spec)
	}
	for _, one := range w.pods {
		mounts(one.Spec)
	}
	for _, set := range w.sets {
		for _, template := range set.Spec.VolumeClaimTemplates {
			for _, claim := range w.claims {
				if ofSet(template.Name, set.Name, claim.Name) {
					names[claim.Name] = true
				}
			}
		}
	}
	return names
}

// staying are the workloads that are not being deleted. A pod of its own that is being deleted, as by a drain, is made again and stays.
func (w workloads) staying() workloads {
	w.deployments = slices.DeleteFunc(slices.Clone(w.deployments), func(one appsv1.Deployment) bool { return one.DeletionTimestamp != nil })
	w.sets = slices.DeleteFunc(slices.Clone(w.sets), func(one appsv1.StatefulSet) bool { return one.DeletionTimestamp != nil })
	w.jobs = slices.DeleteFunc(slices.Clone(w.jobs), func(one batchv1.Job) bool { return one.DeletionTimestamp != nil })
	w.crons = slices.DeleteFunc(slices.Clone(w.crons), func(one batchv1.CronJob) bool { return one.DeletionTimestamp != nil })
	w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(one corev1.Pod) bool { return one.DeletionTimestamp != nil && metav1.GetControllerOf(&one) != nil })
	return w
}

// claimUse decides how the containers use the pod's claims.
func (p podSpec) claimUse(containers []container, there workloads) claimUse {
	wanted := p.claims(containers)
	if p.options.kind == kindStatefulSet {
		return p.stateful(wanted, there.claims, there.mounted())
	}
	return useClaims(wanted, there.claims, there.mounted())
}

// lost is the fault that data would lose its application; nil when there is consent to each claim that is used no more.
func (use claimUse) lost(p podSpec, allowed func(name string) bool) error {
	unused := slices.DeleteFunc(slices.Clone(use.unused), func(claim corev1.PersistentVolumeClaim) bool {
		return allowed(claim.Name) || allowed(p.name) || allowed(p.id)
	})
	if len(unused) == 0 {
		return nil
	}
	text := fmt.Sprintf("pod %s would not use any more: %s", p.name, storage.DescribeClaims(unused))
	if len(use.empty) > 0 {
		text += fmt.Sprintf("; %s would begin empty", strings.Join(use.empty, ", "))
	}
	return fault.New(fault.Invalid, "%s. Undo this part of the change, or allow it with --allow-destroy %s: the claims stay in the cluster, with their data", text, p.name)
}

// superseded names the objects that Burano made for the pod and that it no longer wants, for example after a change of the pod's name, its replicas
// or its kind of workload. It leaves out claims, objects with an owner, and objects that others made with the same labels, as kubectl expose does.
func (w workloads) superseded(wanted []runtime.Object) (workloads, services []kube.Ref) {
	is := map[kube.Ref]bool{}
	for _, object := range wanted {
		gvk := object.GetObjectKind().GroupVersionKind()
		meta, ok := object.(metav1.Object)
		if ok {
			is[kube.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: meta.GetNamespace(), Name: meta.GetName()}] = true
		}
	}
	add := func(list *[]kube.Ref, version, kind string, object metav1.Object) {
		ref := kube.Ref{APIVersion: version, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
		if kube.MadeByBurano(object) && !is[ref] && len(object.GetOwnerReferences()) == 0 {
			*list = append(*list, ref)
		}
	}
	for i := range w.deployments {
		add(&workloads, "apps/v1", "Deployment", &w.deployments[i])
	}
	for i := range w.sets {
		add(&workloads, "apps/v1", "StatefulSet", &w.sets[i])
	}
	for i := range w.daemons {
		add(&workloads, "apps/v1", "DaemonSet", &w.daemons[i])
	}
	for i := range w.crons {
		add(&workloads, "batch/v1", "CronJob", &w.crons[i])
	}
	for i := range w.jobs {
		add(&workloads, "batch/v1", "Job", &w.jobs[i])
	}
	for i := range w.pods {
		add(&workloads, "v1", "Pod", &w.pods[i])
	}
	for i := range w.budgets {
		add(&workloads, "policy/v1", "PodDisruptionBudget", &w.budgets[i])
	}
	for i := range w.services {
		add(&services, "v1", "Service", &w.services[i])
	}
	return workloads, services
}

// removeFormer deletes workloads, and waits until their pods have ended: two of them would write to one claim.
func removeFormer(ctx context.Context, api *rest.Config, client kubernetes.Interface, former []kube.Ref) error {
	if err := deleteFormer(ctx, client, former, metav1.DeletePropagationForeground); err != nil {
		return err
	}
	for _, ref := range former {
		if err := DeleteAndWait(ctx, api, ref); err != nil {
			return err
		}
	}
	return nil
}

// deleteFormer deletes unused objects of a pod, with the objects that they own. Kubernetes would leave the pods of a Job.
func deleteFormer(ctx context.Context, client kubernetes.Interface, former []kube.Ref, propagation metav1.DeletionPropagation) error {
	remove := metav1.DeleteOptions{PropagationPolicy: &propagation}
	by := func(namespace string) map[string]func(context.Context, string, metav1.DeleteOptions) error {
		return map[string]func(context.Context, string, metav1.DeleteOptions) error{
			"Deployment": client.AppsV1().Deployments(namespace).Delete, "StatefulSet": client.AppsV1().StatefulSets(namespace).Delete,
			"DaemonSet": client.AppsV1().DaemonSets(namespace).Delete,
			"Job":       client.BatchV1().Jobs(namespace).Delete, "CronJob": client.BatchV1().CronJobs(namespace).Delete,
			"Pod": client.CoreV1().Pods(namespace).Delete, "PodDisruptionBudget": client.PolicyV1().PodDisruptionBudgets(namespace).Delete,
			"Service": client.CoreV1().Services(namespace).Delete,
		}
	}
	for _, ref := range former {
		if err := by(ref.Namespace)[ref.Kind](ctx, ref.Name, remove); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the former %s %s: %w", ref.Kind, ref.Name, err)
		}
	}
	return nil
}
