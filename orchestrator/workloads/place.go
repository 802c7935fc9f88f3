package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/namespaces"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

// describedIn are the pods of the model in the pod's cluster and namespace, as far as their applications can be described.
func (h *Hosting) describedIn(ctx context.Context, interpreter *muranopl.Interpreter, pod *muranopl.Object) (found []namespaces.Pod) {
	for _, other := range h.Objects.All(task.ClassPod) {
		if other.Object("kubernetesCluster") != pod.Object("kubernetesCluster") || placeOf(other).inNamespace() != placeOf(pod).inNamespace() {
			continue
		}
		spec, err := PodSpecOf(other)
		if err != nil {
			continue // its own deployment reports it
		}
		if all, err := h.all(ctx, interpreter, other); err == nil {
			found = append(found, securedPod(spec, containersIn(all)))
		}
	}
	return found
}

// securedPod is a pod as Pod Security looks at it.
func securedPod(p podSpec, containers []container) namespaces.Pod {
	template := p.template(containers)
	one := namespaces.Pod{Name: p.name, Level: p.options.level, Meta: template.ObjectMeta, Specs: []corev1.PodSpec{template.Spec}}
	for _, when := range []phase{beforeRoll, afterRoll} {
		for _, job := range p.bootstrapJobs(containers, when) {
			one.Specs = append(one.Specs, job.Spec.Template.Spec)
		}
	}
	return one
}

// haveNamespace makes the pod's namespace with its level. An application that cannot be described before its deployment counts when its own pod begins.
func haveNamespace(ctx context.Context, p Pods, interpreter *muranopl.Interpreter, pod *muranopl.Object, api *rest.Config, spec podSpec) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	there, err := spec.workloads(ctx, client)
	if err != nil {
		return err
	}
	if err := checkPlace(ctx, client, spec, there); err != nil || spec.inNamespace() == known.Namespace {
		return err
	}
	level, err := namespaces.LevelOf(spec.inNamespace(), p.Hosting.describedIn(ctx, interpreter, pod))
	if err != nil {
		return err
	}
	cluster := pod.Object("kubernetesCluster").ID()
	if spec.options.level == "" {
		level = p.Hosting.levels.Weaken(cluster+"/"+spec.inNamespace(), level)
	}
	return p.Runtime.Step(ctx, pod, "make the namespace", func(ctx context.Context) error {
		made, err := namespaces.Make(ctx, api, client, namespaces.Object(spec.inNamespace(), cluster, level))
		if made {
			p.Reports.Inform(ctx, pod, "Namespace %s has the level %s of Pod Security", spec.inNamespace(), level)
		}
		return err
	})
}

// checkPlace refuses another namespace for a pod that runs, or that has claims.
func checkPlace(ctx context.Context, client kubernetes.Interface, p podSpec, there workloads) error {
	if len(there.all()) > 0 {
		return nil
	}
	there, err := workloadsIn(ctx, client, p, metav1.NamespaceAll)
	if err != nil {
		return err
	}
	if all := there.all(); len(all) > 0 {
		return fault.New(fault.Conflict, "pod %s is in namespace %s and cannot move to %s, since its claims stay where they are: put the former namespace back, or make another pod there and move its data", p.name,
			all[0].GetNamespace(), p.inNamespace())
	}
	return nil
}

// gonePods are the pods that have left the model.
type gonePods struct{ objects task.Objects }

func (g gonePods) Pod(id string) bool { return !g.objects.Has(id) }

func (gonePods) Marks() (ids []string, withPod string) {
	return []string{LabelPod, labelBootstrapOf}, labelWithPod
}

// leaving is the namespace that goes with a pod; nil where another pod of the model has it. left names an object for which it stays.
func leaving(ctx context.Context, api *rest.Config, client kubernetes.Interface, p podSpec, present task.Objects) (now *corev1.Namespace, left string, err error) {
	in := p.inNamespace()
	if in == known.Namespace || slices.ContainsFunc(present.All(task.ClassPod), func(other *muranopl.Object) bool { return placeOf(other).inNamespace() == in }) {
		return nil, "", nil
	}
	return namespaces.Leaving(ctx, api, client, in, gonePods{present})
}

// leaveNamespace deletes the namespace of a pod that has left, if Burano has made it and nothing is left in it.
func leaveNamespace(ctx context.Context, p Pods, api *rest.Config, pod *muranopl.Object) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	now, left, err := leaving(ctx, api, client, placeOf(pod), p.Hosting.Objects)
	if err != nil || now == nil {
		return err
	}
	if left != "" {
		p.Reports.Inform(ctx, pod, "Namespace %s stays, since it has %s", now.Name, left)
		return nil
	}
	return namespaces.Delete(ctx, client, now)
}

// checkNamespace refuses names that cannot be the namespace of an application.
func checkNamespace(name string, o podOptions) error {
	switch {
	case name == "" || name == known.Namespace:
		if o.level != "" {
			return errors.New("podSecurity is for a namespace of its own: give the pod a namespace")
		}
	case name != kubeName(name):
		return fmt.Errorf("namespace is %q: write small letters, digits and hyphens, 63 at most", name)
	case strings.HasPrefix(name, "kube-"):
		return fmt.Errorf("namespace is %s, and namespaces that begin with kube- are those of Kubernetes itself", name)
	}
	return nil
}

// leavingNamespaces adds the namespaces that go with the last of their pods.
func (in *Observed) leavingNamespaces(ctx context.Context, gone map[string]podSpec, present task.Objects, foreseen *preview.Foreseen) error {
	looked := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		p := gone[id]
		if looked[p.inNamespace()] {
			continue
		}
		looked[p.inNamespace()] = true
		now, left, err := leaving(ctx, in.api, in.Client, p, present)
		if err != nil {
			return err
		}
		if now != nil && left == "" {
			foreseen.Kubernetes = append(foreseen.Kubernetes, removals(p, []kube.Ref{{Kind: "Namespace", Name: now.Name}})...)
		}
	}
	return nil
}

// foreseeNamespace adds the change of a pod's namespace, once for all its pods, and a note where a namespace of others does not admit the pod.
func (in *Observed) foreseeNamespace(ctx context.Context, p podSpec, containers []container, level podsecurity.Level, looks bool, foreseen *preview.Foreseen) error {
	name := p.inNamespace()
	if name == known.Namespace {
		return nil
	}
	now, err := in.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	if err == nil && !namespaces.Ours(now) {
		enforced := namespaces.Enforced(now)
		if p.options.level != "" && p.options.level != enforced {
			foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("namespace %s was not made by Burano, and keeps its level of Pod Security: podSecurity of pod %s has no effect", name, p.name))
		}
		if enforced == "" {
			return nil
		}
		broken, err := securedPod(p, containers).Breaks(enforced)
		if err == nil && len(broken) > 0 {
			foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("Kubernetes refuses new pods of pod %s, which breaks the level %s of namespace %s: %s", p.name, enforced, name, strings.Join(broken, ", ")))
		}
		return err
	}
	if !looks || in.namespaces[name] {
		return nil
	}
	if in.namespaces == nil {
		in.namespaces = map[string]bool{}
	}
	in.namespaces[name] = true
	change, err := in.foreseeObject(ctx, p, namespaces.Object(name, in.object.ID(), level))
	if change != nil {
		foreseen.Kubernetes = append(foreseen.Kubernetes, *change)
	}
	return err
}
