package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
)

// A restored cluster has objects that carry the ids of the environment that its snapshot is of. Where that environment is gone, its file gives other ids to
// the same pods. So a pod adopts objects with its name and an id that no object of the model has.

// FormerID returns the id that a workload of the pod's name carries instead of the pod's; "" where none does. known reports whether an object of the model has an id:
// the workload of such a pod is not taken over, and its name is a fault (Conflict).
func (p podSpec) FormerID(ctx context.Context, client kubernetes.Interface, facts func(id string) bool) (string, error) {
	name, options := kubeName(p.name), metav1.GetOptions{}
	for kind, get := range map[string]func() (metav1.Object, error){
		"Deployment": func() (metav1.Object, error) {
			return client.AppsV1().Deployments(p.inNamespace()).Get(ctx, name, options)
		},
		"StatefulSet": func() (metav1.Object, error) {
			return client.AppsV1().StatefulSets(p.inNamespace()).Get(ctx, name, options)
		},
		"CronJob": func() (metav1.Object, error) {
			return client.BatchV1().CronJobs(p.inNamespace()).Get(ctx, name, options)
		},
		"Job": func() (metav1.Object, error) { return client.BatchV1().Jobs(p.inNamespace()).Get(ctx, name, options) },
		"Pod": func() (metav1.Object, error) { return client.CoreV1().Pods(p.inNamespace()).Get(ctx, name, options) },
	} {
		object, err := get()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for a %s %s of a former environment: %w", kind, name, err)
		}
		id := object.GetLabels()[LabelPod]
		if id == "" || id == p.id || !kube.MadeByBurano(object) {
			continue
		}
		if facts(id) {
			return "", fault.New(fault.Conflict, "pod %s cannot be called %s yet: in the cluster this is the name of another pod (id %s). Give that pod another name and deploy it first", p.name, name, id)
		}
		return id, nil
	}
	return "", nil
}

// adopt gives the pod's id to the objects that carry a former id, and returns their names. Their selectors stay until the objects are applied.
func (p podSpec) adopt(ctx context.Context, client kubernetes.Interface, former string) (adopted []string, err error) {
	of := p
	of.id = former
	there, err := of.workloads(ctx, client)
	if err != nil {
		return nil, err
	}
	secrets, err := client.CoreV1().Secrets(p.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: former}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets of pod %s: %w", p.name, err)
	}
	patch, options := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, LabelPod, p.id), metav1.PatchOptions{FieldManager: kube.Manager}
	var failures []error
	note := func(kind string, object metav1.Object, change func(name string) error) {
		if len(object.GetOwnerReferences()) > 0 && kind != "PersistentVolumeClaim" {
			return // it goes with its owner
		}
		if err := change(object.GetName()); err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("take %s %s over for pod %s: %w", kind, object.GetName(), p.name, err))
			return
		}
		adopted = append(adopted, kind+" "+object.GetName())
	}
	// Workloads go last: by them an interrupted adoption is found again.
	for i := range there.claims {
		note("PersistentVolumeClaim", &there.claims[i], func(name string) error {
			_, err := client.CoreV1().PersistentVolumeClaims(p.inNamespace()).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range secrets.Items {
		note("Secret", &secrets.Items[i], func(name string) error {
			_, err := client.CoreV1().Secrets(p.inNamespace()).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.services {
		note("Service", &there.services[i], func(name string) error {
			_, err := client.CoreV1().Services(p.inNamespace()).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.budgets {
		note("PodDisruptionBudget", &there.budgets[i], func(name string) error {
			_, err := client.PolicyV1().PodDisruptionBudgets(p.inNamespace()).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	if len(failures) > 0 {
		return adopted, errors.Join(failures...)
	}
	adoptWorkloads(ctx, client, p.inNamespace(), there, patch, note)
	return adopted, errors.Join(failures...)
}

// adoptWorkloads is the part of adopt for workloads.
func adoptWorkloads(ctx context.Context, client kubernetes.Interface, namespace string, there workloads, patch []byte, note func(kind string, object metav1.Object, change func(name string) error)) {
	options := metav1.PatchOptions{FieldManager: kube.Manager}
	for i := range there.deployments {
		note("Deployment", &there.deployments[i], func(name string) error {
			_, err := client.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.sets {
		note("StatefulSet", &there.sets[i], func(name string) error {
			_, err := client.AppsV1().StatefulSets(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.daemons {
		note("DaemonSet", &there.daemons[i], func(name string) error {
			_, err := client.AppsV1().DaemonSets(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.crons {
		note("CronJob", &there.crons[i], func(name string) error {
			_, err := client.BatchV1().CronJobs(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.jobs {
		note("Job", &there.jobs[i], func(name string) error {
			_, err := client.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
	for i := range there.pods {
		note("Pod", &there.pods[i], func(name string) error {
			_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
			return err
		})
	}
}

// unchangeable names the workloads that select their pods by another id than the desired workloads: a selector in Kubernetes is immutable.
func (w workloads) unchangeable(wanted []runtime.Object) (refs []kube.Ref) {
	differ := func(a, b *metav1.LabelSelector) bool {
		return a != nil && b != nil && a.MatchLabels[LabelPod] != b.MatchLabels[LabelPod]
	}
	for _, object := range wanted {
		switch object := object.(type) {
		case *appsv1.Deployment:
			for _, one := range w.deployments {
				if one.Name == object.Name && differ(one.Spec.Selector, object.Spec.Selector) {
					refs = append(refs, kube.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: one.Namespace, Name: one.Name})
				}
			}
		case *appsv1.DaemonSet:
			for _, one := range w.daemons {
				if one.Name == object.Name && differ(one.Spec.Selector, object.Spec.Selector) {
					refs = append(refs, kube.Ref{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: one.Namespace, Name: one.Name})
				}
			}
		case *appsv1.StatefulSet:
			for _, one := range w.sets {
				if one.Name == object.Name && differ(one.Spec.Selector, object.Spec.Selector) {
					refs = append(refs, kube.Ref{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: one.Namespace, Name: one.Name})
				}
			}
		}
	}
	return refs
}

// sameJob reports whether a Job that is there is a wanted one, also where it was made for the pod under a former id: its template keeps that.
func (p podSpec) sameJob(there, wanted *batchv1.Job) (bool, error) {
	digest := there.Annotations[annotationDigest]
	former := there.Spec.Template.Labels[LabelPod]
	if former == "" || former == p.id || digest == wanted.Annotations[annotationDigest] {
		return digest == wanted.Annotations[annotationDigest], nil
	}
	spec, err := withLabel(wanted.Spec, p.id, former)
	return digest == digestOfJob(spec), err
}

// withLabel is a Job's spec with another id of the pod in its labels.
func withLabel(spec batchv1.JobSpec, now, other string) (changed batchv1.JobSpec, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return changed, err
	}
	label := func(id string) []byte { return fmt.Appendf(nil, "%q:%q", LabelPod, id) }
	return changed, json.Unmarshal(bytes.ReplaceAll(text, label(now), label(other)), &changed)
}

// adoptFormer lets the pod take over the objects of a workload that has its name and a former id.
func (p Pods) adoptFormer(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	former, err := spec.FormerID(ctx, client, p.Hosting.Objects.Has)
	if err != nil || former == "" {
		return err
	}
	return p.Runtime.Step(ctx, pod, "take over what has a former id", func(ctx context.Context) error {
		adopted, err := spec.adopt(ctx, client, former)
		if len(adopted) > 0 {
			p.Reports.Inform(ctx, pod, "Pod %s takes over what the cluster has of it from a former environment (id %s): %s. Workloads are made anew, and claims keep their data",
				spec.name, former, strings.Join(adopted, ", "))
		}
		return err
	})
}
