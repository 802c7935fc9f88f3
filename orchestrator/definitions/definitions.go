// Package definitions has the methods of a cluster that packages call with objects of Kubernetes of their own, such as pods and replication controllers.
package definitions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

const (
	// LabelOwner is the id of the object of the model that an object of Kubernetes belongs to.
	LabelOwner = "burano.io/owner"
	// attributeOwned lists the objects that a cluster's packages have made.
	attributeOwned = "definitions"
	// mostOwned bounds that list.
	mostOwned = 2000
	// argumentDefinition is the object as Kubernetes writes it.
	argumentDefinition = "definition"
)

// Kinds that packages define.
const (
	kindPod        = "Pod"
	kindController = "ReplicationController"
	kindService    = "Service"
)

// Definitions are the objects that packages define in a task's clusters.
type Definitions struct {
	*clusters.Clusters
	mutex *sync.Mutex // of the lists
}

// New returns the definitions of a task's clusters.
func New(c *clusters.Clusters) Definitions { return Definitions{c, &sync.Mutex{}} }

// Methods are the methods of a cluster.
func (d Definitions) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		"createPod": d.create(kindPod), "createReplicationController": d.create(kindController), "deleteReplicationController": d.deleteController, "deletePods": d.deletePods,
		"createService": d.createService, "deleteServices": d.deleteServices, "scaleRc": d.scale, "restartContainers": d.restart,
	}
}

// MinionMethods are the methods of a minion.
func (d Definitions) MinionMethods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"restartContainers": d.restartOnNode}
}

// entry is an object that belongs to an object of the model.
type entry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner"`
}

func (e entry) ref() kube.Ref {
	return kube.Ref{APIVersion: "v1", Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

func (e entry) same(other entry) bool {
	return e.Kind == other.Kind && e.Namespace == other.Namespace && e.Name == other.Name
}

// open connects to the API of a cluster that is there.
func (d Definitions) open(ctx context.Context, cluster *muranopl.Object, method string) (*rest.Config, error) {
	if err := d.EnsureOpen(ctx, cluster); err != nil {
		return nil, err
	}
	if _, err := d.Live(cluster); err != nil {
		return nil, fault.New(fault.Conflict, "%s: cluster %s is not there yet: call its deploy before", method, cluster.Text("name"))
	}
	return d.Kubernetes(ctx, cluster)
}

// ownerOf is the object of the model that the objects of a call belong to: the caller, the owner of a caller that is not in the model, or else the cluster.
func (d Definitions) ownerOf(ctx context.Context, cluster *muranopl.Object) *muranopl.Object {
	for caller := muranopl.CallerObject(ctx); caller != nil; caller = caller.Owner() {
		if d.Objects.Find(caller.ID()) == caller && caller.Owner() != nil {
			return caller
		}
	}
	return cluster
}

// create is the method that applies a definition of a kind.
func (d Definitions) create(kind string) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		defined, _ := call.Args[argumentDefinition].(map[string]any)
		object, err := read(kind, defined)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s of %s: %w", call.Method.Name, call.Object, err)
		}
		isNew, _ := call.Args["isNew"].(bool)
		api, err := d.open(ctx, call.Object, call.Method.Name)
		if err != nil {
			return nil, err
		}
		return nil, d.apply(ctx, api, call.Object, object, isNew)
	}
}

// apply applies an object that belongs to the caller. The list has it before: so it goes with its owner, also when this task dies.
func (d Definitions) apply(ctx context.Context, api *rest.Config, cluster *muranopl.Object, object *unstructured.Unstructured, isNew bool) error {
	owner := d.ownerOf(ctx, cluster)
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelOwner] = owner.ID()
	object.SetLabels(labels)
	one := entry{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Owner: owner.ID()}
	return d.Runtime.Step(ctx, owner, "apply "+one.ref().String(), func(ctx context.Context) error {
		if err := d.admit(ctx, api, cluster, one, isNew); err != nil {
			return err
		}
		err := d.change(ctx, cluster, func(list []entry) []entry { return append(without(list, one), one) })
		if err != nil {
			return err
		}
		err = kube.Apply(ctx, api, kube.Manager, object)
		if one.Kind == kindPod && apierrors.IsInvalid(err) {
			return replacePod(ctx, api, object, err)
		}
		return err
	})
}

// admit refuses an object whose name another one has.
func (d Definitions) admit(ctx context.Context, api *rest.Config, cluster *muranopl.Object, one entry, isNew bool) error {
	labels, found, err := kube.Labels(ctx, api, one.ref())
	if err != nil || !found || labels[LabelOwner] == one.Owner {
		return err
	}
	for _, id := range []string{labels[LabelOwner], labels[kube.LabelObject]} {
		if id == "" {
			continue
		}
		if other := d.Objects.Find(id); other != nil {
			return fault.New(fault.Conflict, "%s is in cluster %s already and belongs to %s: choose another name", one.ref(), cluster.Text("name"), other)
		}
	}
	if isNew && labels[LabelOwner] == "" {
		return fault.New(fault.Conflict, "%s is in cluster %s already, and nothing of the environment has made it: choose another name, or take it over with isNew: false", one.ref(), cluster.Text("name"))
	}
	return nil
}

// replacePod makes a pod anew, because most of a pod is immutable in Kubernetes. refused is the answer to its change. The pod that runs is kept until Kubernetes
// has accepted the new one.
func replacePod(ctx context.Context, api *rest.Config, object *unstructured.Unstructured, refused error) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	var trial corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &trial); err != nil {
		return fmt.Errorf("read the definition of Pod %s: %w", object.GetName(), err)
	}
	trial.Name, trial.GenerateName = "", object.GetName()+"-"
	if _, err := client.CoreV1().Pods(object.GetNamespace()).Create(ctx, &trial, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("%w; as a new pod: %w", refused, err)
	}
	ref := kube.Ref{APIVersion: "v1", Kind: kindPod, Namespace: object.GetNamespace(), Name: object.GetName()}
	if err := workloads.DeleteAndWait(ctx, api, ref); err != nil {
		return err
	}
	return kube.Apply(ctx, api, kube.Manager, object)
}

// read checks a definition of a kind, and returns it as Kubernetes takes it.
func read(kind string, defined map[string]any) (*unstructured.Unstructured, error) {
	example := fmt.Sprintf("a %s as Kubernetes writes it, such as {metadata: {name: web}, spec: {…}}", kind)
	if len(defined) == 0 {
		return nil, fmt.Errorf("definition is empty: give %s", example)
	}
	content, err := plain("definition", defined)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content.(map[string]any)}
	for _, expected := range [][2]string{{"apiVersion", "v1"}, {"kind", kind}} {
		field, wanted := expected[0], expected[1]
		now, has := object.Object[field]
		if has && now != wanted {
			return nil, fmt.Errorf("%s of the definition is %v: this method takes %s of apiVersion v1", field, now, kind)
		}
		object.Object[field] = wanted
	}
	for _, field := range []string{"metadata", "spec"} {
		if inner, is := object.Object[field].(map[string]any); !is || len(inner) == 0 {
			return nil, fmt.Errorf("the definition has no %s: give %s", field, example)
		}
	}
	if name, is, _ := unstructured.NestedString(object.Object, "metadata", "name"); !is || name == "" {
		return nil, fmt.Errorf("metadata.name of the definition is missing: give %s", example)
	}
	if _, _, err := unstructured.NestedStringMap(object.Object, "metadata", "labels"); err != nil {
		return nil, fmt.Errorf("metadata.labels of the definition: labels are texts, so write numbers and booleans in quotes: %w", err)
	}
	delete(object.Object, "status")
	if object.GetNamespace() == "" {
		object.SetNamespace(known.Namespace)
	}
	return object, nil
}

// plain copies a value of MuranoPL that Kubernetes can take. It leaves out keys without a value.
func plain(where string, value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for key, inner := range value {
			if inner == nil {
				continue
			}
			copied, err := plain(where+"."+key, inner)
			if err != nil {
				return nil, err
			}
			made[key] = copied
		}
		return made, nil
	case []any:
		made := make([]any, len(value))
		for i, inner := range value {
			copied, err := plain(fmt.Sprintf("%s[%d]", where, i), inner)
			if err != nil {
				return nil, err
			}
			made[i] = copied
		}
		return made, nil
	case nil, bool, int64, float64, string:
		return value, nil
	}
	return nil, fmt.Errorf("%s is %v (%T), which is no value of Kubernetes: use maps, lists, texts, numbers and booleans", where, value, value)
}

// record is the list of a cluster's objects as it is stored.
type record struct {
	Objects []entry `json:"objects"`
}

// owned is the list of a cluster's objects.
func (d Definitions) owned(ctx context.Context, cluster *muranopl.Object) ([]entry, error) {
	var stored record
	err := d.NodeSettings.Read(ctx, cluster, attributeOwned, &stored)
	return stored.Objects, err
}

// change changes the list of a cluster's objects.
func (d Definitions) change(ctx context.Context, cluster *muranopl.Object, change func([]entry) []entry) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	former, err := d.owned(ctx, cluster)
	if err != nil {
		return err
	}
	list := change(slices.Clone(former))
	if slices.Equal(list, former) {
		return nil
	}
	if len(list) > mostOwned && len(list) > len(former) {
		return fault.New(fault.TooMany, "packages have made %d objects in cluster %s, and there may be %d: delete some", len(former), cluster.Text("name"), mostOwned)
	}
	return d.NodeSettings.Write(ctx, cluster, attributeOwned, record{list})
}

func without(list []entry, one entry) []entry {
	return slices.DeleteFunc(list, func(other entry) bool { return other.same(one) })
}

// delete deletes an object with everything that it controls, waits until it is gone, and takes it from the list.
func (d Definitions) delete(ctx context.Context, api *rest.Config, cluster *muranopl.Object, one entry) error {
	if err := workloads.DeleteAndWait(ctx, api, one.ref()); err != nil {
		return err
	}
	return d.change(ctx, cluster, func(list []entry) []entry { return without(list, one) })
}

// Collect deletes the objects whose owners are not in the model any more. The next deployment tries again where that fails.
func (d Definitions) Collect(ctx context.Context) error {
	return task.Each(d.Objects.All(task.ClassCluster), func(cluster *muranopl.Object) error {
		list, err := d.owned(ctx, cluster)
		if err != nil {
			return err
		}
		var left []string
		for _, one := range list {
			if d.Objects.Has(one.Owner) {
				continue
			}
			err := d.Runtime.Step(ctx, cluster, "remove "+one.ref().String(), func(ctx context.Context) error {
				api, err := d.open(ctx, cluster, "remove "+one.ref().String())
				if err != nil {
					return err
				}
				labels, found, err := kube.Labels(ctx, api, one.ref())
				if err != nil {
					return err
				}
				if found && labels[LabelOwner] != one.Owner { // which nothing of this list has made
					return d.change(ctx, cluster, func(list []entry) []entry { return without(list, one) })
				}
				return d.delete(ctx, api, cluster, one)
			})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				left = append(left, err.Error())
			}
		}
		if len(left) > 0 {
			d.Reports.Warn(ctx, cluster, fmt.Sprintf("Of objects that are not in the model any more, %d stay in cluster %s", len(left), cluster.Text("name")),
				"The next deployment tries again. "+strings.Join(left[:min(len(left), 5)], "; "))
		}
		return nil
	})
}
