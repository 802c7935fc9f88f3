package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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
	"github.com/burano/burano/orchestrator/namespaces"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
)

// Observed is a cluster as it was deployed last, that a rehearsal looks into.
type Observed struct {
	object *muranopl.Object
	Live   *nodes.Cluster // nil for one that was never up, and where why is set
	api    *rest.Config
	Client kubernetes.Interface
	Why    error // it cannot be looked into
	// volumes are the volumes of Cinder that claims need beside the present ones.
	volumes []openstack.VolumeDemand
	// named are the pods of the objects that the model has in Kubernetes, by namespace, kind and name.
	named map[string]podSpec
	// namespaces are those of pods whose changes are foreseen.
	namespaces map[string]bool
}

// Previews foresee the effects of a deployment within clusters.
type Previews struct {
	Runtime interface {
		Project(ctx context.Context) (*openstack.Project, error)
	}
	Objects task.Objects
	Reports task.Reports
	// connect connects to a cluster by its stored facts; nil for one that was never up.
	Connect func(ctx context.Context, cluster *muranopl.Object) (*nodes.Cluster, *known.Facts, error)
}

// previewStage is the part of a rehearsal that previews of clusters use.
type previewStage interface {
	Looks() bool
	Former() map[string]any
}

// All adds the changes within clusters, through one connection to each: the fate of the claims of pods, and, if a client looks, the changes of pods
// and Helm releases. Of a cluster that was never up only its model is known.
func (c Previews) All(ctx context.Context, interpreter *muranopl.Interpreter, stage previewStage, foreseen *preview.Foreseen) {
	c.refuseProblems(ctx, interpreter, foreseen)
	former, begins := removedPods(stage.Former(), c.Objects), map[*muranopl.Object]bool{}
	for _, cluster := range c.Objects.All(task.ClassCluster) {
		of := func(class string) []*muranopl.Object {
			return slices.DeleteFunc(c.Objects.All(class), func(object *muranopl.Object) bool { return object.Object("kubernetesCluster") != cluster })
		}
		pods, releases := of(task.ClassPod), []*muranopl.Object(nil)
		if stage.Looks() {
			releases = of(ClassHelmRelease)
		}
		cinder := slices.ContainsFunc(task.Desired(cluster).StorageClasses, func(class kube.StorageClass) bool {
			return class.Backend == kube.Cinder && (class.Type != "" || len(pods) > 0)
		})
		if len(pods)+len(releases)+len(former) == 0 && !cinder {
			continue
		}
		in := c.Observe(ctx, cluster)
		foreseen.Refused = append(foreseen.Refused, sameNames(pods)...)
		c.previewReleases(ctx, in, releases, foreseen)
		for _, pod := range pods {
			c.previewPod(ctx, interpreter, in, pod, stage.Looks(), foreseen)
		}
		if in.Client != nil {
			in.leftClaims(ctx, former, foreseen)
		}
		if in.Client != nil && stage.Looks() {
			in.leavingPods(ctx, former, c.Objects, foreseen)
		}
		if cinder {
			project, err := c.Runtime.Project(ctx)
			if err == nil {
				err = in.previewCinder(ctx, project, foreseen)
			}
			if err != nil {
				foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("whether Cinder has room for the claims of cluster %s is not known: %v", cluster.Text("name"), err))
			}
		}
		if in.Why != nil && len(pods) > 0 {
			foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("whether pods of cluster %s go on with their claims is not known: %v", cluster.Text("name"), in.Why))
		}
		if in.Live != nil {
			_ = in.Live.Close() // nothing was changed through it
		}
		begins[cluster] = in.Live == nil && in.Why == nil
	}
	c.foreseeDependencies(ctx, interpreter, begins, stage.Looks(), foreseen)
}

// refuseProblems adds why applications say that they cannot be deployed.
func (c Previews) refuseProblems(ctx context.Context, interpreter *muranopl.Interpreter, foreseen *preview.Foreseen) {
	for _, application := range c.Objects.All(task.ClassApplication) {
		found, err := problemsOf(ctx, interpreter, application) // the deployment reports an error
		for _, text := range found {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: application.ID(), Text: text})
		}
		if err != nil {
			foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("whether %s can be deployed as it is described is not known: %v", application, err))
		}
	}
}

// Observe connects to a cluster.
func (c Previews) Observe(ctx context.Context, cluster *muranopl.Object) *Observed {
	in := &Observed{object: cluster}
	in.Live, _, in.Why = c.Connect(ctx, cluster)
	if in.Live != nil && in.Why == nil {
		in.api, in.Why = in.Live.Kubernetes(ctx)
	}
	if in.api != nil && in.Why == nil {
		in.Client, in.Why = kubernetes.NewForConfig(in.api)
	}
	return in
}

// previewPod adds the effects of a deployment on a pod.
func (c Previews) previewPod(ctx context.Context, interpreter *muranopl.Interpreter, in *Observed, pod *muranopl.Object, looks bool, foreseen *preview.Foreseen) {
	refuse := func(err error) {
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: pod.ID(), Text: err.Error()})
	}
	spec, err := PodSpecOf(pod)
	if err != nil {
		refuse(err)
		return
	}
	all, err := (&Hosting{Objects: c.Objects, Reports: c.Reports}).all(ctx, interpreter, pod)
	if err != nil {
		return // an application that cannot be described before its deployment
	}
	containers := containersIn(all)
	level, err := namespaces.LevelOf(spec.inNamespace(), (&Hosting{Objects: c.Objects, Reports: c.Reports}).describedIn(ctx, interpreter, pod))
	if err != nil {
		refuse(err)
		return
	}
	clash := clashing(spec, containers)
	if in.Live == nil && in.Why == nil {
		if clash != nil {
			refuse(clash)
		}
		if err := spec.checkClaims(containers, classesOf(in.object)); err != nil {
			refuse(err)
		}
		if err := in.checkNames(spec, containers); err != nil {
			refuse(err)
		}
		in.needVolumes(spec, containers, workloads{})
		return
	}
	if in.Client == nil || in.Why != nil {
		return
	}
	former, err := spec.FormerID(ctx, in.Client, c.Objects.Has)
	if fault.KindOf(err) == fault.Conflict {
		refuse(err)
		return
	}
	if err != nil {
		in.Why = err
		return
	}
	present := spec
	present.id = cmp.Or(former, spec.id)
	there, err := present.workloads(ctx, in.Client)
	if err != nil {
		in.Why = err
		return
	}
	if clash != nil && !clash.runs(there.pods) {
		refuse(clash)
	}
	if err := checkPlace(ctx, in.Client, spec, there); err != nil {
		refuse(err)
		return
	}
	if err := in.foreseeNamespace(ctx, spec, containers, level, looks, foreseen); err != nil {
		in.Why = err
		return
	}
	use := spec.claimUse(containers, there)
	use.foresee(spec, foreseen)
	spec.adopted = use.adopted
	if err := in.checkNames(spec, containers); err != nil {
		refuse(err)
		return
	}
	if len(containers) == 0 { // its workloads go, and its claims stay
		if looks {
			foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(spec, there, nil)...)
		}
		return
	}
	storage, err := spec.checkStorage(ctx, in.Client, containers, there, classesOf(in.object))
	foreseen.Notes = append(foreseen.Notes, storage.stay...)
	if err != nil {
		refuse(err)
		return
	}
	in.needVolumes(spec, containers, there)
	if looks {
		spec.sizes = storage.sizes
		if err := in.foreseeWorkloads(ctx, spec, containers, there, foreseen); err != nil {
			foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("what changes in Kubernetes for pod %s is not known: %v", spec.name, err))
		}
	}
}

// foresee adds which claims a pod would use no more, and which volumes would begin empty beside them.
func (use claimUse) foresee(p podSpec, foreseen *preview.Foreseen) {
	if len(use.unused) == 0 {
		return
	}
	text := fmt.Sprintf("pod %s uses no more, and leaves in the cluster with its data: %s", p.name, storage.DescribeClaims(use.unused))
	if len(use.empty) > 0 {
		text += fmt.Sprintf("; %s begins empty", strings.Join(use.empty, ", "))
	}
	foreseen.Effects = append(foreseen.Effects, text)
	foreseen.Consents = append(foreseen.Consents, preview.Consent{ObjectID: p.id, Text: text, Claims: storage.NamesOf(use.unused)})
}

// leftClaims adds the claims that stay in the cluster, with their data, when pods leave the model. gone are the pods by id.
func (in *Observed) leftClaims(ctx context.Context, gone map[string]podSpec, foreseen *preview.Foreseen) {
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		found, err := in.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: id}.String() + ",!" + labelWithPod})
		if err != nil {
			in.Why = err
			return
		}
		if len(found.Items) == 0 {
			continue
		}
		text := fmt.Sprintf("pod %s is removed, and leaves in the cluster with its data: %s", gone[id].name, storage.DescribeClaims(found.Items))
		foreseen.Effects = append(foreseen.Effects, text)
		foreseen.Consents = append(foreseen.Consents, preview.Consent{ObjectID: id, Text: text, Claims: storage.NamesOf(found.Items)})
	}
}

// removedPods are the pods, by their ids, that a former model in the classes' form has and the present one has not.
func removedPods(former any, present task.Objects) map[string]podSpec {
	removed := map[string]podSpec{}
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			header, _ := value["?"].(map[string]any)
			full, _ := header["type"].(string)
			class, _, _ := strings.Cut(full, "/")
			if id, _ := header["id"].(string); class == task.ClassPod && present.Find(id) == nil {
				name, _ := value["name"].(string)
				namespace, _ := value["namespace"].(string)
				removed[id] = podSpec{id: id, name: name, namespace: namespace}
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

// leavingPods adds the objects in Kubernetes that go when pods leave the model. gone are the pods by id.
func (in *Observed) leavingPods(ctx context.Context, gone map[string]podSpec, present task.Objects, foreseen *preview.Foreseen) {
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		p := gone[id]
		there, err := p.workloads(ctx, in.Client)
		if err != nil {
			in.Why = err
			return
		}
		foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(p, there, nil)...)
		for _, claim := range there.claims {
			if claim.Labels[labelWithPod] != "" {
				foreseen.Kubernetes = append(foreseen.Kubernetes, removals(p, []kube.Ref{{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name}})...)
			}
		}
	}
	if err := in.leavingNamespaces(ctx, gone, present, foreseen); err != nil {
		in.Why = err
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
		key := placeOf(pod).inNamespace() + "/" + name
		if other := first[key]; other != nil {
			refused = append(refused, preview.Note{ObjectID: pod.ID(), Text: fmt.Sprintf("pods %s and %s would both be called %s in Kubernetes: give each a name of its own", other.Text("name"), pod.Text("name"), name)})
			continue
		}
		first[key] = pod
	}
	return refused
}

// checkNames refuses an object of a pod, such as a claim or a Service, whose name another pod's object of the kind has. The names begin with the pods' own, so
// that web-cache of pod shop and cache of pod shop-web are one.
func (in *Observed) checkNames(p podSpec, containers []container) error {
	if in.named == nil {
		in.named = map[string]podSpec{}
	}
	var problems []error
	check := func(kind, name string) {
		key := kind + " " + name
		other, taken := in.named[p.inNamespace()+"/"+key]
		if !taken {
			in.named[p.inNamespace()+"/"+key] = p
		} else if kubeName(other.name) != kubeName(p.name) { // sameNames refuses these
			problems = append(problems, fault.New(fault.Invalid, "pods %s and %s would both have the %s in Kubernetes: give one of the two pods, or of their applications or volumes, another name", other.name, p.name, key))
		}
	}
	for _, object := range p.objects(containers) {
		meta, err := apimeta.Accessor(object)
		if err == nil {
			check(object.GetObjectKind().GroupVersionKind().Kind, meta.GetName())
		}
	}
	if p.options.kind == kindStatefulSet {
		for _, claim := range p.claims(containers) {
			check("PersistentVolumeClaim", claim.Name+"-"+kubeName(p.name)+"-0")
		}
	}
	return errors.Join(problems...)
}

// foreseeWorkloads adds the changes that a deployment would make to the objects of a pod in Kubernetes. It sees changes that others have made, with
// kubectl for example. Unused Secrets go some time later, and are left out.
func (in *Observed) foreseeWorkloads(ctx context.Context, p podSpec, containers []container, there workloads, foreseen *preview.Foreseen) error {
	made, err := podSecrets{p, in.Client}.foresee(ctx, containers)
	if err != nil {
		return err
	}
	foreseen.Kubernetes = append(foreseen.Kubernetes, made...)
	if p, err = asItRuns(ctx, p, in.api, in.Client, there, containers); err != nil {
		return err
	}
	var problems []error
	for _, object := range p.objects(containers) {
		change, err := in.foreseeObject(ctx, p, object)
		if err != nil {
			problems = append(problems, err)
		}
		if change != nil {
			foreseen.Kubernetes = append(foreseen.Kubernetes, *change)
		}
		if set, is := object.(*appsv1.StatefulSet); is {
			foreseen.Kubernetes = append(foreseen.Kubernetes, newClaims(p, set, there)...)
		}
	}
	foreseen.Kubernetes = append(foreseen.Kubernetes, removalsOf(p, there, p.objects(containers))...)
	return errors.Join(problems...)
}

// newClaims are the claims that Kubernetes will make for the replicas of a stateful set.
func newClaims(p podSpec, set *appsv1.StatefulSet, there workloads) (changes []preview.KubernetesChange) {
	present := map[string]bool{}
	for _, claim := range there.claims {
		present[claim.Name] = true
	}
	for _, template := range set.Spec.VolumeClaimTemplates {
		for ordinal := range p.replicas {
			if name := fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal); !present[name] {
				changes = append(changes, preview.KubernetesChange{ObjectID: p.id, Object: "pod " + p.name, What: "added", Kind: "PersistentVolumeClaim", Namespace: p.inNamespace(), Name: name})
			}
		}
	}
	return changes
}

// mostFields is how many fields of an object a preview names.
const mostFields = 20

// foreseeObject is the change that a deployment would make to an object of the pod in Kubernetes; nil for none.
func (in *Observed) foreseeObject(ctx context.Context, p podSpec, object runtime.Object) (*preview.KubernetesChange, error) {
	meta, err := apimeta.Accessor(object)
	if err != nil {
		return nil, err
	}
	change := &preview.KubernetesChange{ObjectID: p.id, Object: "pod " + p.name, What: "changed", Kind: object.GetObjectKind().GroupVersionKind().Kind,
		Namespace: meta.GetNamespace(), Name: meta.GetName()}
	object, strategy, err := in.withoutStrategy(ctx, object)
	if err != nil {
		return nil, err
	}
	fields, there, err := kube.Differences(ctx, in.api, kube.Manager, object)
	fields = append(strategy, slices.DeleteFunc(fields, isMark)...)
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

// withoutStrategy is an object whose strategy does not differ from the present one, and the fields of the strategy that do. Server-side apply changes no strategy by
// itself (prepareStrategy).
func (in *Observed) withoutStrategy(ctx context.Context, object runtime.Object) (runtime.Object, []kube.Field, error) {
	wanted, is := object.(*appsv1.Deployment)
	if !is {
		return object, nil, nil
	}
	now, err := in.Client.AppsV1().Deployments(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return object, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read Deployment %s: %w", wanted.Name, err)
	}
	before, after := now.Spec.Strategy.Type, cmp.Or(wanted.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if before == after {
		return object, nil, nil
	}
	same := wanted.DeepCopy()
	same.Spec.Strategy = now.Spec.Strategy
	fields := []kube.Field{{Path: "spec.strategy.type", Before: string(before), After: string(after)}}
	if rolling := wanted.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxSurge != nil {
		fields = append(fields, kube.Field{Path: "spec.strategy.rollingUpdate.maxSurge", After: rolling.MaxSurge.String()})
	}
	if rolling := wanted.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		fields = append(fields, kube.Field{Path: "spec.strategy.rollingUpdate.maxUnavailable", After: rolling.MaxUnavailable.String()})
	}
	return same, fields, nil
}

// isMark reports whether a field is a mark by which Burano finds a claim again, or the order of pods, and that former versions did not write: it changes nothing
// for its users.
func isMark(field kube.Field) bool {
	return field.Before == nil && (field.Path == "metadata.annotations["+annotationVolume+"]" || field.Path == "metadata.annotations["+annotationDependsOn+"]")
}

// MissingTypes lists, by name, the storage classes whose type of volumes the project does not have.
func MissingTypes(ctx context.Context, project *openstack.Project, classes []kube.StorageClass) (missing map[string]error, err error) {
	missing = map[string]error{}
	for _, class := range classes {
		if class.Backend != kube.Cinder || class.Type == "" {
			continue
		}
		storage, err := project.BlockStorage()
		if err == nil {
			err = storage.CheckType(ctx, class.Type)
		}
		if fault.KindOf(err) == fault.Invalid {
			missing[class.Name] = fmt.Errorf("storage class %s: %w", class.Name, err)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// previewCinder adds the types and the room that the volumes of a cluster lack in Cinder. Classes that are in the cluster stay there when their type is gone.
func (in *Observed) previewCinder(ctx context.Context, project *openstack.Project, foreseen *preview.Foreseen) error {
	classes := task.Desired(in.object).StorageClasses
	if in.Client != nil && in.Why == nil {
		missing, err := MissingTypes(ctx, project, classes)
		if err != nil {
			return err
		}
		for name, problem := range missing {
			there, err := in.Client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
			switch {
			case err == nil && slices.ContainsFunc(classes, func(class kube.StorageClass) bool {
				return class.Name == name && there.Parameters["type"] == class.Type
			}):
				foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("cluster %s gets no new volumes of this class: %s", in.object.Text("name"), problem))
			case err == nil || apierrors.IsNotFound(err):
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: in.object.ID(), Text: problem.Error()})
			default:
				return err
			}
		}
	}
	err := openstack.CheckVolumes(ctx, project, in.volumes)
	if fault.KindOf(err) == fault.Invalid {
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: in.object.ID(), Text: fmt.Sprintf("claims of cluster %s: %s", in.object.Text("name"), err)})
		return nil
	}
	return err
}

// needVolumes notes the volumes of Cinder that the claims of a pod need beside the present ones.
func (in *Observed) needVolumes(p podSpec, containers []container, there workloads) {
	if p.replicas == 0 {
		return
	}
	present := presentClaims(p, there)
	for _, claim := range p.claims(containers) {
		classes := slices.DeleteFunc(slices.Clone(task.Desired(in.object).StorageClasses), func(class kube.StorageClass) bool {
			return class.Name != className(claim) && !(className(claim) == "" && class.Default)
		})
		if len(classes) == 0 || classes[0].Backend != kube.Cinder {
			continue
		}
		size, count := gibibytes(claim.Spec.Resources.Requests[corev1.ResourceStorage]), 1
		now, is := present[claim.Name]
		if p.options.kind == kindStatefulSet {
			count = int(p.replicas)
			for _, one := range there.claims {
				if ofSet(claim.Name, kubeName(p.name), one.Name) {
					count--
				}
			}
		}
		one := openstack.VolumeDemand{Name: "of claim " + claim.Name, Type: classes[0].Type, GiB: size, Count: count, More: size * count}
		if is && !now.set {
			one.Type, one.Count, one.More = "", 0, size-gibibytes(now.size)
		}
		if one.More > 0 {
			in.volumes = append(in.volumes, one)
		}
	}
}

// gibibytes are the GiB of a volume of Cinder for a claim: whole ones.
func gibibytes(size resource.Quantity) int { return int((size.Value() + 1<<30 - 1) >> 30) }
