package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/burano/burano/catalog/muranopl"
)

// containerOptions are what a container may say beyond what Murano's could. Without any of them a pod is what it was before there were any.
type containerOptions struct {
	entryPoint                   []string
	secrets                      map[string]string // environment variables that stand in a Secret
	liveness, readiness, startup *corev1.Probe
	resources                    corev1.ResourceRequirements
	before                       []container // run to their end, one after another, before the pod's containers start
}

// volumeOptions are what a volume may say beyond its path.
type volumeOptions struct {
	size  *resource.Quantity // what a temporary folder may hold at most, and what a persistent volume holds
	claim *claim             // nil for a volume that is not persistent
}

// claim is a persistent volume of the cluster's storage.
type claim struct {
	name  string // "" for one that goes by container and path
	class string // of a StorageClass; "" for the cluster's default
	keep  bool   // when the pod leaves the model
}

// podOptions are what a pod may say beyond what Murano's could.
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
}

// workloadKind is what keeps the pods of a KubernetesPod.
type workloadKind string

const (
	kindDeployment  workloadKind = "deployment"
	kindStatefulSet workloadKind = "statefulSet"
	kindJob         workloadKind = "job"
	kindCronJob     workloadKind = "cronJob"
)

// ends tells whether the pods are to end by themselves.
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

// containerOptions reads what a container says beyond what Murano's could.
func (v values) containerOptions(application *muranopl.Object, env map[string]string) (o containerOptions, err error) {
	o.entryPoint, o.secrets = v.texts("entryPoint"), v.pairs("secretEnv")
	for name := range o.secrets {
		if _, both := env[name]; both {
			return o, fmt.Errorf("the variable %s stands in env and in secretEnv: leave it in one of them", name)
		}
	}
	err = errors.Join(v.kubernetes("livenessProbe", &o.liveness), v.kubernetes("readinessProbe", &o.readiness), v.kubernetes("startupProbe", &o.startup),
		v.kubernetes("resources", &o.resources))
	if err != nil {
		return o, err
	}
	before, _ := v("initContainers").([]any)
	for _, described := range before {
		one, err := containerOf(application, described)
		if err != nil {
			return o, fmt.Errorf("initContainers: %w", err)
		}
		if len(one.ports) > 0 || len(one.volumes) > 0 || len(one.options.before) > 0 {
			return o, fmt.Errorf("initContainers: %s has ports, volumes or init containers of its own: it listens for nobody, and mounts what its container mounts", one.name)
		}
		o.before = append(o.before, one)
	}
	return o, nil
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
		persistent = object.Class().Is(classPersistentVolume)
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
	}
	return one, nil
}

// podOptionsOf reads what a pod says beyond what Murano's could.
func podOptionsOf(pod *muranopl.Object) (o podOptions, err error) {
	read, _ := valuesOf(pod)
	o = podOptions{kind: workloadKind(read.text("workload")), annotations: read.pairs("annotations"), serviceAccount: read.text("serviceAccount"),
		nodeSelector: read.pairs("nodeSelector"), schedule: read.text("schedule"), timeZone: read.text("timeZone"), retries: defaultRetries}
	if o.kind == "" {
		o.kind = kindDeployment
	}
	err = errors.Join(read.kubernetes("affinity", &o.affinity), read.kubernetes("tolerations", &o.tolerations))
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

// digest tells options apart that a host would follow differently.
func (o containerOptions) digest() string {
	var before []string
	for _, one := range o.before {
		before = append(before, one.digest())
	}
	return digestOf(o.entryPoint, o.secrets, o.liveness, o.readiness, o.startup, o.resources, before)
}

func (o volumeOptions) digest() string {
	if o.claim == nil {
		return digestOf(o.size)
	}
	return digestOf(o.size, o.claim.name, o.claim.class)
}

// digestOf writes values that JSON knows in one text; maps are written in the order of their keys.
func digestOf(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		return err.Error() // what Kubernetes' own kinds do not have
	}
	return string(text)
}
