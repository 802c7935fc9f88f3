package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
)

// clusterSight is a cluster as it was deployed last, that a rehearsal looks into.
type clusterSight struct {
	object *muranopl.Object
	live   *nodes.Cluster // nil for one that was never up, and where why is set
	api    *rest.Config
	client kubernetes.Interface
	why    error // it cannot be looked into
	// volumes are the volumes of Cinder that claims need beside the present ones.
	volumes []openstack.VolumeDemand
}

// previewClusters adds what is foreseen within clusters, through one connection to each: what becomes of the claims of pods, and where someone looks, what
// the workloads of pods and Helm releases change. Of a cluster that was never up only its model is known.
func (c *clusters) previewClusters(ctx context.Context, interpreter *muranopl.Interpreter, stage Stage, foreseen *preview.Foreseen) {
	former := removedPods(stage.Former(), c.objects)
	for _, cluster := range c.objects.All(task.ClassCluster) {
		of := func(class string) []*muranopl.Object {
			return slices.DeleteFunc(c.objects.All(class), func(object *muranopl.Object) bool { return object.Object("kubernetesCluster") != cluster })
		}
		pods, releases := of(task.ClassPod), []*muranopl.Object(nil)
		if stage.Looks() {
			releases = of(classHelmRelease)
		}
		cinder := slices.ContainsFunc(task.Desired(cluster).StorageClasses, func(class kube.StorageClass) bool {
			return class.Backend == kube.Cinder && (class.Type != "" || len(pods) > 0)
		})
		if len(pods)+len(releases)+len(former) == 0 && !cinder {
			continue
		}
		in := c.sight(ctx, cluster)
		foreseen.Refused = append(foreseen.Refused, sameNames(pods)...)
		c.previewReleases(ctx, in, releases, foreseen)
		for _, pod := range pods {
			c.previewPod(ctx, interpreter, in, pod, stage.Looks(), foreseen)
		}
		if in.client != nil {
			in.leftClaims(ctx, former, foreseen)
		}
		if in.client != nil && stage.Looks() {
			in.leavingPods(ctx, former, foreseen)
		}
		if cinder {
			project, err := c.runtime.Project(ctx)
			if err == nil {
				err = in.previewCinder(ctx, project, foreseen)
			}
			if err != nil {
				foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("whether Cinder has room for the claims of cluster %s is not known: %v", cluster.Text("name"), err))
			}
		}
		if in.why != nil && len(pods) > 0 {
			foreseen.Means = append(foreseen.Means, fmt.Sprintf("whether pods of cluster %s go on with their claims is not known: %v", cluster.Text("name"), in.why))
		}
		if in.live != nil {
			_ = in.live.Close() // nothing was changed through it
		}
	}
}

// sight connects to a cluster.
func (c *clusters) sight(ctx context.Context, cluster *muranopl.Object) *clusterSight {
	in := &clusterSight{object: cluster}
	in.live, _, in.why = c.former(ctx, cluster)
	if in.live != nil && in.why == nil {
		in.api, in.why = in.live.Kubernetes(ctx)
	}
	if in.api != nil && in.why == nil {
		in.client, in.why = kubernetes.NewForConfig(in.api)
	}
	return in
}

// previewPod adds the effects of a deployment on a pod.
func (c *clusters) previewPod(ctx context.Context, interpreter *muranopl.Interpreter, in *clusterSight, pod *muranopl.Object, looks bool, foreseen *preview.Foreseen) {
	refuse := func(err error) {
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: pod.ID(), Text: err.Error()})
	}
	spec, err := podSpecOf(pod)
	if err != nil {
		refuse(err)
		return
	}
	all, err := (&hosting{objects: c.objects, reports: c.reports}).all(ctx, interpreter, pod)
	if err != nil {
		return // an application that cannot be described before its deployment
	}
	containers := containersIn(all)
	clash := clashing(spec, containers)
	if in.live == nil && in.why == nil {
		if clash != nil {
			refuse(clash)
		}
		if err := spec.checkClaims(containers, classesOf(in.object)); err != nil {
			refuse(err)
		}
		in.needVolumes(spec, containers, workloads{})
		return
	}
	if in.client == nil || in.why != nil {
		return
	}
	former, err := spec.formerID(ctx, in.client, c.objects.Has)
	if fault.KindOf(err) == fault.Conflict {
		refuse(err)
		return
	}
	if err != nil {
		in.why = err
		return
	}
	present := spec
	present.id = cmp.Or(former, spec.id)
	there, err := present.workloads(ctx, in.client)
	if err != nil {
		in.why = err
		return
	}
	if clash != nil && !clash.runs(there.pods) {
		refuse(clash)
	}
	use := spec.claimUse(containers, there)
	spec.foreseeClaims(use, foreseen)
	spec.adopted = use.adopted
	if len(containers) == 0 { // its workloads go, and its claims stay
		if looks {
			foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(spec, there, nil)...)
		}
		return
	}
	storage, err := spec.checkStorage(ctx, in.client, containers, there, classesOf(in.object))
	foreseen.Notes = append(foreseen.Notes, storage.stay...)
	if err != nil {
		refuse(err)
		return
	}
	in.needVolumes(spec, containers, there)
	if looks {
		spec.sizes = storage.sizes
		if err := spec.foreseeWorkloads(ctx, in, containers, there, foreseen); err != nil {
			foreseen.Means = append(foreseen.Means, fmt.Sprintf("what changes in Kubernetes for pod %s is not known: %v", spec.name, err))
		}
	}
}

// foreseeClaims adds which claims a pod would use no more, and which volumes would begin empty beside them.
func (p podSpec) foreseeClaims(use claimUse, foreseen *preview.Foreseen) {
	if len(use.unused) == 0 {
		return
	}
	text := fmt.Sprintf("pod %s uses no more, and leaves in the cluster with its data: %s", p.name, storage.DescribeClaims(use.unused))
	if len(use.empty) > 0 {
		text += fmt.Sprintf("; %s begins empty", strings.Join(use.empty, ", "))
	}
	foreseen.Means = append(foreseen.Means, text)
	foreseen.Consents = append(foreseen.Consents, preview.Consent{ObjectID: p.id, Text: text, Claims: storage.NamesOf(use.unused)})
}

// leftClaims adds the claims that stay in the cluster, with their data, when pods leave the model. names are those of the pods by their ids.
func (in *clusterSight) leftClaims(ctx context.Context, names map[string]string, foreseen *preview.Foreseen) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		found, err := in.client.CoreV1().PersistentVolumeClaims(known.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelPod: id}.String() + ",!" + labelWithPod})
		if err != nil {
			in.why = err
			return
		}
		if len(found.Items) == 0 {
			continue
		}
		text := fmt.Sprintf("pod %s is removed, and leaves in the cluster with its data: %s", names[id], storage.DescribeClaims(found.Items))
		foreseen.Means = append(foreseen.Means, text)
		foreseen.Consents = append(foreseen.Consents, preview.Consent{ObjectID: id, Text: text, Claims: storage.NamesOf(found.Items)})
	}
}

// removedPods are the names of pods, by their ids, that a former model in the classes' form has and the present one has not.
func removedPods(former any, present task.Objects) map[string]string {
	removed := map[string]string{}
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			header, _ := value["?"].(map[string]any)
			full, _ := header["type"].(string)
			class, _, _ := strings.Cut(full, "/")
			if id, _ := header["id"].(string); class == task.ClassPod && present.Find(id) == nil {
				removed[id], _ = value["name"].(string)
			}
			for key, inner := range value {
				if key != "?" {
					look(inner)
				}
			}
		case []any:
			for _, inner := range value {
				look(inner)
			}
		}
	}
	look(former)
	return removed
}

// leavingPods adds the objects in Kubernetes that go when pods leave the model. names are those of the pods by their ids.
func (in *clusterSight) leavingPods(ctx context.Context, names map[string]string, foreseen *preview.Foreseen) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		p := podSpec{id: id, name: names[id]}
		there, err := p.workloads(ctx, in.client)
		if err != nil {
			in.why = err
			return
		}
		foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(p, there, nil)...)
		for _, claim := range there.claims {
			if claim.Labels[labelWithPod] != "" {
				foreseen.Kubernetes = append(foreseen.Kubernetes, removals(p, []kube.Ref{{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name}})...)
			}
		}
	}
}

// removalsOf are the changes by which everything goes that Burano made for a pod, but the wanted objects.
func removalsOf(p podSpec, there workloads, wanted []runtime.Object) []preview.KubernetesChange {
	former, services := there.superseded(wanted)
	return removals(p, former, services)
}

// removals are the changes by which objects of a pod go.
func removals(p podSpec, lists ...[]kube.Ref) (changes []preview.KubernetesChange) {
	for _, ref := range slices.Concat(lists...) {
		changes = append(changes, preview.KubernetesChange{ObjectID: p.id, Object: "pod " + p.name, What: "removed", Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	}
	return changes
}

// sameNames refuses pods that would have one name in Kubernetes.
func sameNames(pods []*muranopl.Object) (refused []preview.Note) {
	first := map[string]*muranopl.Object{}
	for _, pod := range pods {
		name := kubeName(pod.Text("name"))
		if other := first[name]; other != nil {
			refused = append(refused, preview.Note{ObjectID: pod.ID(), Text: fmt.Sprintf("pods %s and %s would both be called %s in Kubernetes: give each a name of its own", other.Text("name"), pod.Text("name"), name)})
			continue
		}
		first[name] = pod
	}
	return refused
}

// foreseeWorkloads adds what a deployment would change of the objects of a pod in Kubernetes: also what others have changed of them, with kubectl for example. Secrets
// that nothing refers to any more go some time after it, and are left out.
func (p podSpec) foreseeWorkloads(ctx context.Context, in *clusterSight, containers []container, there workloads, foreseen *preview.Foreseen) error {
	made, err := p.foreseeSecrets(ctx, in.client, containers)
	if err != nil {
		return err
	}
	foreseen.Kubernetes = append(foreseen.Kubernetes, made...)
	if p.abrupt, err = p.staysAbrupt(ctx, in.api, containers); err != nil {
		return err
	}
	var problems []error
	for _, object := range p.objects(containers) {
		change, err := p.foreseeObject(ctx, in.api, object)
		if err != nil {
			problems = append(problems, err)
		}
		if change != nil {
			foreseen.Kubernetes = append(foreseen.Kubernetes, *change)
		}
	}
	foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(p, there, p.objects(containers))...)
	return errors.Join(problems...)
}

// mostFields is how many fields of an object a preview names.
const mostFields = 20

// foreseeObject is what a deployment would change of an object of the pod in Kubernetes; nil where nothing.
func (p podSpec) foreseeObject(ctx context.Context, api *rest.Config, object runtime.Object) (*preview.KubernetesChange, error) {
	meta, err := apimeta.Accessor(object)
	if err != nil {
		return nil, err
	}
	change := &preview.KubernetesChange{ObjectID: p.id, Object: "pod " + p.name, What: "changed", Kind: object.GetObjectKind().GroupVersionKind().Kind,
		Namespace: meta.GetNamespace(), Name: meta.GetName()}
	fields, there, err := kube.Differences(ctx, api, kube.Manager, object)
	_, job := object.(*batchv1.Job)
	switch {
	case apierrors.IsInvalid(err):
		return change, nil // it is made anew
	case err != nil:
		return nil, err
	case !there:
		change.What = "added"
		return change, nil
	case len(fields) == 0 || job && !slices.ContainsFunc(fields, func(one kube.Field) bool { return strings.HasSuffix(one.Path, "["+annotationDigest+"]") }):
		return nil, nil
	}
	change.More = max(0, len(fields)-mostFields)
	for _, one := range fields[:len(fields)-change.More] {
		known := &secret.Known{}
		change.Fields = append(change.Fields, preview.KubernetesField{Path: one.Path, Before: shown(known, one.Path, one.Before), After: shown(known, one.Path, one.After)})
	}
	return change, nil
}
