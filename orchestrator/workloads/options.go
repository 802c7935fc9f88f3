package workloads

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

// containerOptions are a container's options beyond Murano's. Without any of them a pod is the same as before there were any.
type containerOptions struct {
	entryPoint                   []string
	secrets                      map[string]string // environment variables in a Secret
	liveness, readiness, startup *corev1.Probe
	resources                    corev1.ResourceRequirements
	valueFrom                    map[string]corev1.EnvVarSource // environment variables from objects of the cluster
	security                     *corev1.SecurityContext
	lifecycle                    *corev1.Lifecycle
	hardening                    *corev1.SecurityContext // of pods that are made, or change anyway
	files                        []containerFile         // by path
	bootstraps                   map[phase]*bootstrap
	before                       []container // run to their end, one after another, before the pod's containers start; sidecars go on
}

// volumeOptions are a volume's options beyond its path.
type volumeOptions struct {
	size   *resource.Quantity          // the limit of a temporary folder, and the size of a persistent volume
	claim  *claim                      // nil for a volume that is not persistent
	shared string                      // the name by which containers share a temporary folder; "" for none
	sees   corev1.MountPropagationMode // of mounts below a folder of the node; "" for none
}

// claim is a persistent volume of the cluster's storage.
type claim struct {
	name  string // "" for one that goes by container and path
	class string // of a StorageClass; "" for the cluster's default
	keep  bool   // when the pod leaves the model
	many  bool   // pods of all nodes use it at the same time
}

// podOptions are a pod's options beyond Murano's.
type podOptions struct {
	kind           workloadKind
	annotations    map[string]string
	serviceAccount string
	nodeSelector   map[string]string
	affinity       *corev1.Affinity
	tolerations    []corev1.Toleration
	schedule       string // of a cron job
	timeZone       string
	retries        int32 // of a job
	deadline       int64 // of a job, in seconds; 0 for none
	strategy       appsv1.DeploymentStrategy
	security       *corev1.PodSecurityContext
	spread         []corev1.TopologySpreadConstraint
	grace          *int64 // seconds; nil for Kubernetes' own
	minReady       *int32 // seconds; nil for none that the model has
	hostNetwork    bool
	hostPID        bool
	level          podsecurity.Level // of Pod Security, for the namespace; "" for the strictest that its pods keep
}

// workloadKind is the kind of workload that makes the pods of a KubernetesPod.
type workloadKind string

const (
	kindDeployment  workloadKind = "deployment"
	kindStatefulSet workloadKind = "statefulSet"
	kindDaemonSet   workloadKind = "daemonSet"
	kindJob         workloadKind = "job"
	kindCronJob     workloadKind = "cronJob"
)

// ends is true if the pods are to end by themselves.
func (k workloadKind) ends() bool { return k == kindJob || k == kindCronJob }

// defaultRetries is how often a job's pods are tried again.
const defaultRetries = 2

// kubernetes reads a property that is written as Kubernetes itself writes it. One that is null leaves into as it is.
func (v values) kubernetes(property string, into any) error {
	value := v(property)
	if value == nil {
		return nil
	}
	content, err := json.Marshal(value)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("%s is not what Kubernetes takes there: %w", property, err)
	}
	return nil
}

func (v values) texts(property string) []string {
	var texts []string
	list, _ := v(property).([]any)
	for _, one := range list {
		texts = append(texts, fmt.Sprint(one))
	}
	return texts
}

// pairs reads a map of texts; nil when there are none.
func (v values) pairs(property string) map[string]string {
	given, _ := v(property).(map[string]any)
	if len(given) == 0 {
		return nil
	}
	pairs := map[string]string{}
	for name, value := range given {
		pairs[name] = fmt.Sprint(value)
	}
	return pairs
}

// quantity reads an amount such as 500Mi; nil when there is none.
func (v values) quantity(property string) (*resource.Quantity, error) {
	text := v.text(property)
	if text == "" {
		return nil, nil
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil || amount.Sign() <= 0 {
		return nil, fmt.Errorf("%s is %q, which is no amount: write 500Mi or 10Gi", property, text)
	}
	return &amount, nil
}

// containerOptions reads a container's options beyond Murano's.
func (v values) containerOptions(application *muranopl.Object, env map[string]string) (o containerOptions, err error) {
	o.entryPoint, o.secrets = v.texts("entryPoint"), v.pairs("secretEnv")
	for name := range o.secrets {
		if _, both := env[name]; both {
			return o, fmt.Errorf("the variable %s stands in env and in secretEnv: leave it in one of them", name)
		}
	}
	err = errors.Join(v.kubernetes("livenessProbe", &o.liveness), v.kubernetes("readinessProbe", &o.readiness), v.kubernetes("startupProbe", &o.startup),
		v.kubernetes("resources", &o.resources), v.kubernetes("envValueFrom", &o.valueFrom), v.kubernetes("securityContext", &o.security), v.kubernetes("lifecycle", &o.lifecycle), v.kubernetes("hardening", &o.hardening))
	if err != nil {
		return o, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.valueFrom)) {
		if err := checkSource(o.valueFrom[name]); err != nil {
			return o, fmt.Errorf("the variable %s in envValueFrom: %w", name, err)
		}
		for _, other := range []struct {
			property string
			has      map[string]string
		}{{"env", env}, {"secretEnv", o.secrets}} {
			if _, both := other.has[name]; both {
				return o, fmt.Errorf("the variable %s stands in %s and in envValueFrom: leave it in one of them", name, other.property)
			}
		}
	}
	if o.files, err = v.files(); err != nil {
		return o, err
	}
	if o.bootstraps, err = v.bootstraps(); err != nil {
		return o, err
	}
	for _, property := range []string{"initContainers", "sidecars"} {
		described, _ := v(property).([]any)
		for _, value := range described {
			one, err := containerOf(application, value)
			if err != nil {
				return o, fmt.Errorf("%s: %w", property, err)
			}
			if len(one.ports) > 0 || len(one.options.before)+len(one.options.bootstraps)+len(one.dependsOn) > 0 {
				return o, fmt.Errorf("%s: %s has ports, bootstraps, sidecars, init containers or dependsOn of its own, and can have none: its container has them", property, one.name)
			}
			for path, mounted := range one.volumes {
				if mounted.options.claim != nil {
					return o, fmt.Errorf("%s: the volume at %s of %s is persistent: give it to the container, whose volumes it mounts if it has none of its own", property, path, one.name)
				}
			}
			one.sidecar = property == "sidecars"
			o.before = append(o.before, one)
		}
	}
	return o, nil
}

// checkSource makes sure that a variable comes from exactly one named place.
func checkSource(source corev1.EnvVarSource) error {
	places := 0
	for _, given := range []bool{source.SecretKeyRef != nil, source.ConfigMapKeyRef != nil, source.FieldRef != nil, source.ResourceFieldRef != nil} {
		if given {
			places++
		}
	}
	if places != 1 {
		return errors.New("write one of secretKeyRef: {name, key}, configMapKeyRef: {name, key}, fieldRef: {fieldPath} and resourceFieldRef: {resource}")
	}
	if ref := source.SecretKeyRef; ref != nil && (ref.Name == "" || ref.Key == "") {
		return errors.New("secretKeyRef needs the name of a Secret of the namespace default, and a key of it")
	}
	if ref := source.ConfigMapKeyRef; ref != nil && (ref.Name == "" || ref.Key == "") {
		return errors.New("configMapKeyRef needs the name of a ConfigMap of the namespace default, and a key of it")
	}
	return nil
}

// volumeOf reads a DockerVolume: an object of one of its classes, or a map with the properties of one.
func volumeOf(value any) (one volume, err error) {
	read, ok := valuesOf(value)
	if !ok {
		return one, fmt.Errorf("it is no com.mirantis.docker.DockerVolume but %T", value)
	}
	one.hostPath = read.text("path")
	if one.options.size, err = read.quantity("size"); err != nil {
		return one, err
	}
	persistent, _ := read("persistent").(bool)
	if object, ok := value.(*muranopl.Object); ok {
		persistent = object.Class().IsEmbedded(task.ClassPersistentVolume)
	}
	switch {
	case persistent && one.options.size == nil:
		return one, errors.New("a persistent volume needs its size, such as 10Gi")
	case persistent && one.hostPath != "":
		return one, errors.New("a persistent volume is no folder of a node: leave path out")
	case one.hostPath != "" && one.options.size != nil:
		return one, errors.New("a folder of a node has no size: leave it out")
	case persistent:
		keep, given := read("keep").(bool)
		one.options.claim = &claim{name: read.text("name"), class: read.text("storageClass"), keep: keep || !given}
		switch mode := read.text("accessMode"); mode {
		case "", "readWriteOnce":
		case "readWriteMany":
			one.options.claim.many = true
		default:
			return one, fmt.Errorf("accessMode is %q: write readWriteOnce or readWriteMany", mode)
		}
	case one.hostPath == "":
		one.options.shared = read.text("name")
	}
	one.options.sees = corev1.MountPropagationMode(read.text("propagation"))
	if one.options.sees != "" && one.hostPath == "" {
		return one, errors.New("propagation is for folders of a node")
	}
	return one, nil
}

// podOptionsOf reads a pod's options beyond Murano's.
func podOptionsOf(pod *muranopl.Object) (o podOptions, err error) {
	read, _ := valuesOf(pod)
	o = podOptions{kind: workloadKind(read.text("workload")), annotations: read.pairs("annotations"), serviceAccount: read.text("serviceAccount"),
		nodeSelector: read.pairs("nodeSelector"), schedule: read.text("schedule"), timeZone: read.text("timeZone"), retries: defaultRetries}
	if o.kind == "" {
		o.kind = kindDeployment
	}
	err = errors.Join(read.kubernetes("affinity", &o.affinity), read.kubernetes("tolerations", &o.tolerations),
		read.kubernetes("securityContext", &o.security), read.kubernetes("topologySpread", &o.spread))
	if err == nil {
		o.strategy, err = read.strategy(o.kind)
	}
	if seconds, ok := read("terminationGracePeriod").(int64); ok {
		o.grace = &seconds
	}
	minReady, hasMinReady := read("minReadySeconds").(int64)
	if seconds := int32(minReady); hasMinReady {
		o.minReady = &seconds
	}
	o.hostNetwork, _ = read("hostNetwork").(bool)
	o.hostPID, _ = read("hostPid").(bool)
	o.level = podsecurity.Level(read.text("podSecurity"))
	err = errors.Join(err, checkNamespace(read.text("namespace"), o))
	if hasMinReady && o.kind.ends() {
		err = errors.Join(err, errors.New("minReadySeconds is for workloads that do not end"))
	}
	for i := range o.spread {
		err = errors.Join(err, completeSpread(&o.spread[i], pod.ID()))
	}
	retries, hasRetries := read("retries").(int64)
	deadline, hasDeadline := read("deadline").(int64)
	if hasRetries {
		o.retries = int32(retries)
	}
	o.deadline = deadline
	if (hasRetries || hasDeadline) && !o.kind.ends() {
		err = errors.Join(err, errors.New("retries and deadline are for the workloads job and cronJob"))
	}
	if (o.schedule != "" || o.timeZone != "") && o.kind != kindCronJob {
		err = errors.Join(err, errors.New("schedule and timeZone are for the workload cronJob"))
	}
	if o.schedule == "" && o.kind == kindCronJob {
		err = errors.Join(err, errors.New("a cronJob needs its schedule, such as \"0 3 * * *\" for three o'clock each night"))
	}
	if err != nil {
		return o, fmt.Errorf("%s: %w", pod, err)
	}
	return o, nil
}

// strategy reads how a changed pod's replicas are replaced.
func (v values) strategy(kind workloadKind) (s appsv1.DeploymentStrategy, err error) {
	how, surge, unavailable := v.text("updateStrategy"), v.text("maxSurge"), v.text("maxUnavailable")
	if how == "" && surge == "" && unavailable == "" {
		return s, nil
	}
	if kind != kindDeployment {
		return s, fmt.Errorf("updateStrategy, maxSurge and maxUnavailable are for the workload deployment, and this is a %s: leave them out", kind)
	}
	if how == "recreate" {
		if surge != "" || unavailable != "" {
			return s, errors.New("maxSurge and maxUnavailable are for the updateStrategy rollingUpdate: recreate ends all pods before it makes others")
		}
		s.Type = appsv1.RecreateDeploymentStrategyType
		return s, nil
	}
	s.Type = appsv1.RollingUpdateDeploymentStrategyType
	if surge == "" && unavailable == "" {
		return s, nil
	}
	s.RollingUpdate = &appsv1.RollingUpdateDeployment{}
	s.RollingUpdate.MaxSurge, err = portion(surge, "maxSurge")
	var err2 error
	s.RollingUpdate.MaxUnavailable, err2 = portion(unavailable, "maxUnavailable")
	none := func(one *intstr.IntOrString) bool { return one != nil && (one.String() == "0" || one.String() == "0%") }
	if none(s.RollingUpdate.MaxSurge) && none(s.RollingUpdate.MaxUnavailable) {
		err = errors.Join(err, errors.New("maxSurge and maxUnavailable are both 0, so that no pod could ever be replaced: let one of them be 1"))
	}
	return s, errors.Join(err, err2)
}

// portion reads a number of pods, or a percentage of the replicas; nil for "".
func portion(text, property string) (*intstr.IntOrString, error) {
	if text == "" {
		return nil, nil
	}
	if !portionForm.MatchString(text) {
		return nil, fmt.Errorf("%s is %q: write a number of pods (1), or a share of the replicas (25%%)", property, text)
	}
	value := intstr.Parse(text)
	return &value, nil
}

var portionForm = regexp.MustCompile(`^([0-9]{1,5}|[0-9]{1,2}%|100%)$`)

// completeSpread fills in missing fields of a constraint: pods are spread evenly among the ones of the same KubernetesPod, where that is possible.
func completeSpread(constraint *corev1.TopologySpreadConstraint, pod string) error {
	if constraint.TopologyKey == "" {
		return errors.New("topologySpread: a constraint needs its topologyKey, a label of nodes: kubernetes.io/hostname, or topology.kubernetes.io/zone")
	}
	constraint.MaxSkew = cmp.Or(constraint.MaxSkew, 1)
	constraint.WhenUnsatisfiable = cmp.Or(constraint.WhenUnsatisfiable, corev1.ScheduleAnyway)
	if constraint.LabelSelector == nil {
		constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{LabelPod: pod}}
	}
	return nil
}

// digest distinguishes options that a host would apply differently.
func (o containerOptions) digest() string {
	var before []string
	for _, one := range o.before {
		if one.sidecar {
			before = append(before, "sidecar")
		}
		before = append(before, one.digest())
	}
	told := []any{o.entryPoint, o.secrets, o.liveness, o.readiness, o.startup, o.resources, before}
	if len(o.valueFrom) > 0 || o.security != nil { // digests from before these options existed stay the same
		told = append(told, o.valueFrom, o.security)
	}
	for _, file := range o.files {
		told = append(told, file.path, file.text, file.secret, file.mode)
	}
	if o.lifecycle != nil {
		told = append(told, o.lifecycle)
	}
	if len(o.bootstraps) > 0 {
		told = append(told, o.bootstraps)
	}
	return digestOf(told...)
}

func (o volumeOptions) digest() string {
	switch {
	case o.claim == nil && o.shared != "":
		return digestOf(o.size, o.shared)
	case o.claim == nil && o.sees != "":
		return digestOf(o.size, o.sees)
	case o.claim == nil:
		return digestOf(o.size)
	}
	if o.claim.many {
		return digestOf(o.size, o.claim.name, o.claim.class, "many")
	}
	return digestOf(o.size, o.claim.name, o.claim.class)
}

// digestOf writes values that JSON knows in one text; maps are written in the order of their keys.
func digestOf(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		return err.Error() // Kubernetes' own kinds do not have it
	}
	return string(text)
}
