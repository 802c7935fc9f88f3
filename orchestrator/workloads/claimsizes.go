package workloads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/task"
)

// claimStorage has the sizes that present claims keep, whatever the model has: none of them shrinks.
type claimStorage struct {
	sizes map[string]resource.Quantity // by the names of claims, or of a stateful set's templates
	stay  []string                     // says so, for people
}

// offer is how the volumes of a storage class can be used.
type offer int

const (
	noClass    offer = iota
	ofOneNode        // by the pods of one node at a time
	ofAllNodes       // by pods of all nodes at the same time (ReadWriteMany); Kubernetes decides it for classes of others
)

// offerOf is the offer of a class with Burano's back-end; "" is a class of others.
func offerOf(backend kube.Storage) offer {
	if backend == kube.Manila || backend == "" {
		return ofAllNodes
	}
	return ofOneNode
}

// classesOf are the storage classes of a cluster's model, by name; "" for a default.
func classesOf(cluster *muranopl.Object) map[string]offer {
	has := map[string]offer{}
	for _, class := range task.Desired(cluster).StorageClasses {
		has[class.Name] = offerOf(class.Backend)
		if class.Default {
			has[""] = has[class.Name]
		}
	}
	return has
}

// checkClaims makes sure that a cluster with these storage classes has the storage that the containers want.
func (p podSpec) checkClaims(containers []container, has map[string]offer) error {
	claims := p.claims(containers)
	if len(claims) == 0 {
		return nil
	}
	if p.options.kind == kindDaemonSet && slices.ContainsFunc(claims, ofOnePod) {
		return fault.New(fault.Invalid, "pod %s is a daemonSet with persistent volumes: a pod of each node would need the same volume. Use a DockerHostVolume, the workload statefulSet, or accessMode readWriteMany with a class that has it", p.name)
	}
	if p.replicas > 1 && p.exclusive(containers) {
		return fault.New(fault.Invalid, "pod %s has persistent volumes and %d replicas: one pod at a time can have such a volume. Set replicas to 1, workload to statefulSet, which gives each replica volumes of its own, or accessMode of the volumes to readWriteMany, with a class that has it", p.name, p.replicas)
	}
	if p.options.strategy.Type == appsv1.RollingUpdateDeploymentStrategyType && p.exclusive(containers) {
		return fault.New(fault.Invalid, "pod %s has persistent volumes and the updateStrategy rollingUpdate: a new pod gets such a volume once the former one has ended. Leave updateStrategy, maxSurge and maxUnavailable out, or say recreate", p.name)
	}
	for _, claim := range claims {
		wanted := className(claim)
		if has[wanted] == ofAllNodes || has[wanted] == ofOneNode && ofOnePod(claim) {
			continue
		}
		if has[wanted] == ofOneNode {
			return fault.New(fault.Invalid, "pod %s wants the persistent volume %s with accessMode readWriteMany, and %s", p.name, claim.Name, oneNodeOnly(wanted, has))
		}
		what := "the cluster has no default storage class"
		if wanted != "" {
			what = fmt.Sprintf("the cluster has no storage class %s", wanted)
		}
		there := slices.Sorted(maps.Keys(has))
		if there = slices.DeleteFunc(there, func(name string) bool { return name == "" }); len(there) > 0 {
			what += ": name one of " + strings.Join(there, ", ") + " in storageClass"
		} else {
			what += ", nor any other: give it storage (its property storageClasses), or use a DockerHostVolume or a DockerTempVolume"
		}
		return fault.New(fault.Invalid, "pod %s wants the persistent volume %s, and %s", p.name, claim.Name, what)
	}
	return nil
}

// ofOnePod reports whether one pod at a time has a claim.
func ofOnePod(claim *corev1.PersistentVolumeClaim) bool {
	return !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany)
}

// oneNodeOnly says that volumes of a class are used by one node at a time, and which classes are not so.
func oneNodeOnly(class string, has map[string]offer) string {
	text := "volumes of storage class " + class + " are used by one node at a time"
	if class == "" {
		text = "volumes of the cluster's default storage class are used by one node at a time"
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if name != "" && has[name] == ofAllNodes {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return text + ": give the cluster a class with the backend manila, or leave accessMode out"
	}
	return text + ": name one of " + strings.Join(others, ", ") + " in storageClass, or leave accessMode out"
}

// className is the storage class that a claim names; "" for none.
func className(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// checkStorage is checkClaims in a cluster that is up, and compares the claims with the present claims. coming are the storage classes that a
// deployment gives the cluster before its pods, by name; nil if it has them.
func (p podSpec) checkStorage(ctx context.Context, client kubernetes.Interface, containers []container, there workloads, coming map[string]offer) (claimStorage, error) {
	kept := claimStorage{sizes: map[string]resource.Quantity{}}
	claims := p.claims(containers)
	if len(claims) == 0 {
		return kept, nil
	}
	found, err := client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return kept, fmt.Errorf("list the cluster's storage classes: %w", err)
	}
	has, grows := map[string]offer{}, map[string]bool{}
	maps.Copy(has, coming)
	for _, class := range found.Items {
		grows[class.Name] = class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion
		if coming == nil || class.Labels[kube.LabelStorage] == "" { // a deployment keeps classes of others
			has[class.Name] = offerOf(kube.Storage(class.Labels[kube.LabelStorage]))
			if class.Annotations[annotationDefaultClass] == "true" {
				has[""] = has[class.Name]
			}
		}
	}
	present := presentClaims(p, there)
	for _, claim := range claims {
		if now, is := present[claim.Name]; is {
			if has[className(claim)] == noClass && className(claim) == now.class || now.many {
				has[className(claim)] = ofAllNodes // of a class that is gone, it stays; a claim keeps its access mode
			}
			if err := p.keep(&kept, claim, now, grows[now.class]); err != nil {
				return kept, err
			}
		}
	}
	return kept, p.checkClaims(containers, has)
}

// annotationDefaultClass is Kubernetes' own mark of the class for claims that name none.
const annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"

// presentClaim is a claim, or a template of a stateful set, that is there.
type presentClaim struct {
	class string
	size  resource.Quantity
	set   bool // of a stateful set, whose templates nobody can change
	many  bool // pods of all nodes use it
}

// presentClaims are the claims in the cluster with which the pod's claims are compared, by name.
func presentClaims(p podSpec, there workloads) map[string]presentClaim {
	found := map[string]presentClaim{}
	if p.options.kind == kindStatefulSet {
		for _, set := range there.sets {
			if set.Name != kubeName(p.name) {
				continue
			}
			for _, template := range set.Spec.VolumeClaimTemplates {
				found[template.Name] = presentClaim{className(&template), template.Spec.Resources.Requests[corev1.ResourceStorage], true, !ofOnePod(&template)}
			}
		}
		return found
	}
	for _, claim := range there.claims {
		found[claim.Name] = presentClaim{className(&claim), claim.Spec.Resources.Requests[corev1.ResourceStorage], false, !ofOnePod(&claim)}
	}
	return found
}

// keep has a claim keep the size that it has where that is larger, and is a fault where Kubernetes would refuse the change.
func (p podSpec) keep(kept *claimStorage, wanted *corev1.PersistentVolumeClaim, now presentClaim, grows bool) error {
	refused := func(format string, args ...any) error {
		return fault.New(fault.Conflict, "pod %s: claim %s %s", p.name, wanted.Name, fmt.Sprintf(format, args...))
	}
	if class := className(wanted); class != "" && now.class != "" && class != now.class {
		return refused("is of storage class %s and cannot get %s: put %s back, or give the volume another name and copy the data", now.class, class, now.class)
	}
	if many := !ofOnePod(wanted); many != now.many {
		mode := map[bool]string{false: "readWriteOnce", true: "readWriteMany"}
		return refused("has the accessMode %s and cannot get %s: put %s back, or give the volume another name and copy the data", mode[now.many], mode[many], mode[now.many])
	}
	size := wanted.Spec.Resources.Requests[corev1.ResourceStorage]
	switch order := size.Cmp(now.size); {
	case order < 0:
		kept.sizes[wanted.Name] = now.size
		kept.stay = append(kept.stay, fmt.Sprintf("claim %s stays %s; a claim does not shrink", wanted.Name, now.size.String()))
	case order > 0 && now.set:
		return refused("of its stateful set has %s and cannot get %s: put %s back. The claims that are there can be enlarged one by one (kubectl edit pvc)", now.size.String(), size.String(), now.size.String())
	case order > 0 && now.class != "" && !grows:
		return refused("has %s and cannot get %s, because volumes of storage class %s do not grow: put %s back", now.size.String(), size.String(), now.class, now.size.String())
	}
	return nil
}
