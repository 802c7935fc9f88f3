package workloads

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
)

// Labels by which the objects of a pod and of its applications are found again.
const (
	LabelPod       = kube.LabelObject      // id of the KubernetesPod object
	labelContainer = "burano.io/container" // name of the container
	labelWithPod   = "burano.io/with-pod"  // on a claim that goes with its pod
)

const (
	// annotationInternalPorts names the ports of a Service that gateways do not publish.
	annotationInternalPorts = "burano.io/internal-ports"
	// annotationDigest identifies the contents of a Job, which are immutable in Kubernetes.
	annotationDigest = "burano.io/digest"
)

// container is the container that an application wants to run, as com.mirantis.docker.DockerContainer describes it.
type container struct {
	application string // id of the object
	name        string
	image       string
	commands    []string
	env         map[string]string
	ports       []port
	volumes     map[string]volume // by mount path
	privileged  bool
	options     containerOptions
	secretName  string // of the Secret that holds options.secrets
	sidecar     bool   // it is a sidecar: it begins before the container, and ends after it
	dependsOn   []*muranopl.Object
}

// port is a port of a container.
type port struct {
	number    int32  // inside the container
	published int32  // of the Service, and so of the gateways
	protocol  string // TCP or UDP
	scope     string // public, cloud, internal or host
}

// openedPorts are the ports of a container as Kubernetes has them: each once, though it may be published as several.
func openedPorts(ports []port) (opened []corev1.ContainerPort) {
	for _, port := range ports {
		one := corev1.ContainerPort{ContainerPort: port.number, Protocol: corev1.Protocol(port.protocol)}
		if port.scope == "host" {
			one.HostPort = port.published
		}
		i := slices.IndexFunc(opened, func(former corev1.ContainerPort) bool {
			return former.ContainerPort == one.ContainerPort && former.Protocol == one.Protocol
		})
		if i < 0 {
			opened = append(opened, one)
		} else if opened[i].HostPort == 0 {
			opened[i] = one
		}
	}
	return opened
}

// isPublic is true if gateways publish the port.
func (p port) isPublic() bool { return p.scope == "public" || p.scope == "cloud" }

// volume is a folder of the node, one that lives as long as the pod, or one of the cluster's storage.
type volume struct {
	hostPath string // "" for the others
	options  volumeOptions
}

// podSpec is the parsed KubernetesPod object.
type podSpec struct {
	id   string
	name string
	// namespace of all its objects; "" for known.Namespace (inNamespace)
	namespace string
	labels    map[string]string
	replicas  int32
	options   podOptions
	abrupt    bool   // its pods do not linger, since those that run do not
	hasty     bool   // its pods count at once, since its present workload has them so
	values    string // annotationValues; "" for none
	soft      bool   // its containers are without their hardening, since those that run are
	// adopted are the names of claims that are there, by the names that new ones would have.
	adopted map[string]string
	// sizes are the sizes that present claims keep.
	sizes map[string]resource.Quantity
}

// inNamespace is the namespace of the pod's objects.
func (p podSpec) inNamespace() string { return cmp.Or(p.namespace, known.Namespace) }

const (
	// lingerSeconds is how long pods go on serving once they are told to end. Gateways hear of their end within milliseconds, kube-proxy within a second
	// or two, and until then both still send new connections.
	lingerSeconds = 3
	// graceSeconds is Kubernetes' own limit for the end of a pod.
	graceSeconds = 30
)

// invalidName matches the characters that a name in Kubernetes cannot contain.
var invalidName = regexp.MustCompile(`[^a-z0-9-]+`)

// kubeName makes a name for Kubernetes (a label of RFC 1123, at most 63 characters) from a person's text.
func kubeName(text string) string {
	name := invalidName.ReplaceAllString(strings.ToLower(text), "-")
	if len(name) > 63 {
		name = name[:63]
	}
	return strings.Trim(name, "-")
}

// objects returns the objects that run a pod with these containers: its claims, its controller, a disruption budget for two or more replicas, and a
// Service for each application with ports.
func (p podSpec) objects(containers []container) []runtime.Object {
	containers = slices.Clone(containers) // the caller knows which application each is of by its place
	slices.SortFunc(containers, func(a, b container) int { return strings.Compare(a.application, b.application) })
	template := p.template(containers)
	meta := metav1.ObjectMeta{Name: kubeName(p.name), Namespace: p.inNamespace(), Labels: template.Labels}
	var objects []runtime.Object
	if p.options.kind != kindStatefulSet {
		for _, claim := range p.claims(containers) {
			objects = append(objects, claim)
		}
	}
	for _, file := range p.fileMaps(containers) {
		objects = append(objects, file)
	}
	for _, job := range p.bootstrapJobs(containers, beforeRoll) {
		objects = append(objects, job)
	}
	marked := meta
	marked.Annotations = dependsOn(containers)
	objects = append(objects, p.keeper(marked, template, containers)...)
	if p.replicas > 1 && !p.options.kind.ends() && p.options.kind != kindDaemonSet {
		one := intstr.FromInt32(1)
		objects = append(objects, &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: meta,
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: p.selector()},
		})
	}
	for _, one := range containers {
		if service := p.service(one); service != nil {
			objects = append(objects, service)
		}
	}
	for _, job := range p.bootstrapJobs(containers, afterRoll) {
		objects = append(objects, job)
	}
	return objects
}

func (p podSpec) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{LabelPod: p.id}}
}

// keeper returns the controller of the pods: a Deployment (a plain Pod when replicas is 0, as Murano had it), a StatefulSet with the Service that its
// pods get their names by, a DaemonSet, a Job or a CronJob.
func (p podSpec) keeper(meta metav1.ObjectMeta, template corev1.PodTemplateSpec, containers []container) []runtime.Object {
	switch p.options.kind {
	case kindStatefulSet:
		pods := &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Name: serviceName(p.name, "pods"), Namespace: p.inNamespace(), Labels: map[string]string{LabelPod: p.id},
				Annotations: map[string]string{kube.AnnotationPublish: "false"}},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{LabelPod: p.id}},
		}
		set := &appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{MinReadySeconds: minReady(p, template), Replicas: &p.replicas, Selector: p.selector(), Template: template, ServiceName: pods.Name},
		}
		for _, claim := range p.claims(containers) {
			claim.Namespace = ""
			claim.Annotations = nil // Kubernetes lets nobody change the templates of a set that is there
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *claim)
		}
		return []runtime.Object{pods, set}
	case kindDaemonSet:
		return []runtime.Object{&appsv1.DaemonSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{MinReadySeconds: minReady(p, template), Selector: p.selector(), Template: template},
		}}
	case kindJob:
		job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta, Spec: p.job(template)}
		job.Annotations = map[string]string{annotationDigest: digestOfJob(job.Spec)}
		return []runtime.Object{job}
	case kindCronJob:
		cron := &batchv1.CronJob{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}, ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{Schedule: p.options.schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
				JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: p.job(template)}},
		}
		if p.options.timeZone != "" {
			cron.Spec.TimeZone = &p.options.timeZone
		}
		return []runtime.Object{cron}
	}
	if p.replicas == 0 {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: template.Spec}
		pod.Annotations = template.Annotations
		return []runtime.Object{pod}
	}
	deployment := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{MinReadySeconds: minReady(p, template), Replicas: &p.replicas, Selector: p.selector(), Template: template},
	}
	deployment.Spec.Strategy = p.options.strategy
	if p.exclusive(containers) {
		deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	return []runtime.Object{deployment}
}

// livesSeconds is how long containers without a probe must live before their pod counts: one that ends right after its start never counts.
const livesSeconds = 5

// minReady is how long a new pod must be ready before it counts, in seconds.
func minReady(p podSpec, template corev1.PodTemplateSpec) int32 {
	unprobed := func(one corev1.Container) bool { return one.ReadinessProbe == nil }
	switch {
	case p.options.minReady != nil:
		return *p.options.minReady
	case !p.hasty && slices.ContainsFunc(template.Spec.Containers, unprobed):
		return livesSeconds
	}
	return 0
}

// exclusive is true if only one of the pods can have their volumes: a new one then begins after the former has ended.
func (p podSpec) exclusive(containers []container) bool {
	return p.options.kind == kindDeployment && slices.ContainsFunc(p.claims(containers), ofOnePod)
}

// job is the spec of a Job: it runs as many pods as there are replicas, at least one, all at once.
func (p podSpec) job(template corev1.PodTemplateSpec) batchv1.JobSpec {
	pods := max(1, p.replicas)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever // a pod that failed stays, with its log
	spec := batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: &p.options.retries, Template: template}
	if p.options.deadline > 0 {
		spec.ActiveDeadlineSeconds = &p.options.deadline
	}
	return spec
}

// digestOfJob differs for different Jobs: a Job is immutable in Kubernetes.
func digestOfJob(spec batchv1.JobSpec) string {
	sum := sha256.Sum256([]byte(digestOf(spec)))
	return hex.EncodeToString(sum[:16])
}

// claims are the persistent volumes of the containers, each once, by their names.
func (p podSpec) claims(containers []container) []*corev1.PersistentVolumeClaim {
	found := map[string]*corev1.PersistentVolumeClaim{}
	for _, one := range containers {
		for path, mounted := range one.volumes {
			wanted := mounted.options.claim
			if wanted == nil {
				continue
			}
			name := p.claimName(one, path)
			size, kept := p.sizes[name]
			if !kept {
				size = *mounted.options.size
			}
			labels := map[string]string{LabelPod: p.id}
			if !wanted.keep {
				labels[labelWithPod] = "true"
			}
			claim := &corev1.PersistentVolumeClaim{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.inNamespace(), Labels: labels, Annotations: map[string]string{annotationVolume: volumeKey(one, path)}},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
				},
			}
			if wanted.class != "" {
				claim.Spec.StorageClassName = &wanted.class
			}
			if wanted.many {
				claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			}
			found[name] = claim
		}
	}
	var claims []*corev1.PersistentVolumeClaim
	for _, name := range slices.Sorted(maps.Keys(found)) {
		claims = append(claims, found[name])
	}
	return claims
}

// claimName names the claim of a volume: the one that it has had since it was made, or a new one by the names of today. Containers of a pod whose persistent
// volumes have the same name share a claim.
func (p podSpec) claimName(one container, path string) string {
	name := kubeName(p.name + "-" + one.name + "-" + path)
	if shared := one.volumes[path].options.claim.name; shared != "" {
		name = kubeName(p.name + "-" + shared)
	}
	return cmp.Or(p.adopted[name], name)
}

func (p podSpec) template(containers []container) corev1.PodTemplateSpec {
	labels := maps.Clone(p.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["id"] = kubeName(p.name) // the label that Murano's own pods had
	labels[LabelPod] = p.id
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: p.options.annotations},
		Spec: corev1.PodSpec{HostNetwork: p.options.hostNetwork, HostPID: p.options.hostPID, ServiceAccountName: p.options.serviceAccount, NodeSelector: p.options.nodeSelector, Affinity: p.options.affinity,
			Tolerations: p.options.tolerations, SecurityContext: p.options.security, TopologySpreadConstraints: p.options.spread,
			TerminationGracePeriodSeconds: p.options.grace},
	}
	shared := map[string]string{} // claim, or name of a temporary volume → volume
	for _, one := range containers {
		built := one.build()
		harden(p, one, &built)
		built.Ports = openedPorts(one.ports)
		if built.ReadinessProbe == nil && !p.options.kind.ends() {
			built.ReadinessProbe = readiness(one.ports)
		}
		p.mountVolumes(one, &built, &template.Spec, shared)
		p.mountFiles(one, &built, &template.Spec)
		for _, first := range one.options.before {
			before := first.build()
			harden(p, first, &before)
			before.VolumeMounts = built.VolumeMounts
			if len(first.volumes)+len(first.options.files) > 0 {
				before.VolumeMounts = nil
				p.mountVolumes(first, &before, &template.Spec, shared)
				p.mountFiles(first, &before, &template.Spec)
			}
			if first.sidecar {
				always := corev1.ContainerRestartPolicyAlways
				before.RestartPolicy = &always
			}
			template.Spec.InitContainers = append(template.Spec.InitContainers, before)
		}
		template.Spec.Containers = append(template.Spec.Containers, built)
	}
	if p.values != "" {
		template.Annotations = map[string]string{annotationValues: p.values}
		maps.Copy(template.Annotations, p.options.annotations)
	}
	if p.options.hostNetwork {
		template.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if p.lingers(containers) && !p.abrupt {
		linger(&template.Spec)
	}
	return template
}

// mountVolumes mounts the volumes of a container. shared are the names of volumes that containers share.
func (p podSpec) mountVolumes(one container, built *corev1.Container, spec *corev1.PodSpec, shared map[string]string) {
	for i, path := range slices.Sorted(maps.Keys(one.volumes)) {
		name := fmt.Sprintf("%.50s-%d", built.Name, i)
		source, claim := p.source(one, path)
		key := claim
		if temporary := one.volumes[path].options.shared; temporary != "" {
			key = "temporary " + temporary
		}
		switch {
		case claim != "" && p.options.kind == kindStatefulSet:
			name = claim // each pod has its own, by the set's template of this name
		case key != "" && shared[key] != "":
			name = shared[key]
		default:
			shared[key] = name
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
		mount := corev1.VolumeMount{Name: name, MountPath: path}
		if sees := one.volumes[path].options.sees; sees != "" {
			mount.MountPropagation = &sees
		}
		built.VolumeMounts = append(built.VolumeMounts, mount)
	}
}

// lingers is true if pods go on for a moment while others replace them. Pods need this if others reach them, but not if each ends before the next
// begins, and not if nothing waits for their end.
func (p podSpec) lingers(containers []container) bool {
	replaced := p.options.kind == kindStatefulSet || p.options.kind == kindDaemonSet ||
		p.options.kind == kindDeployment && p.replicas > 0 && p.options.strategy.Type != appsv1.RecreateDeploymentStrategyType && !p.exclusive(containers)
	if !replaced || p.options.grace != nil && *p.options.grace == 0 {
		return false
	}
	return slices.ContainsFunc(containers, func(one container) bool { return p.service(one) != nil })
}

// linger adds a preStop delay to all containers of a pod without a preStop of their own, also to containers that only others of the pod reach. Their own time for the end stays.
func linger(spec *corev1.PodSpec) {
	for i := range spec.Containers {
		lifecycle := corev1.Lifecycle{}
		if own := spec.Containers[i].Lifecycle; own != nil {
			lifecycle = *own
		}
		if lifecycle.PreStop == nil {
			lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: lingerSeconds}}
		}
		spec.Containers[i].Lifecycle = &lifecycle
	}
	grace := int64(graceSeconds)
	if spec.TerminationGracePeriodSeconds != nil {
		grace = *spec.TerminationGracePeriodSeconds
	}
	grace += lingerSeconds
	spec.TerminationGracePeriodSeconds = &grace
}

// source is where a volume's content lies, and the name of its claim, "" for one that is not persistent.
func (p podSpec) source(one container, path string) (source corev1.VolumeSource, claim string) {
	mounted := one.volumes[path]
	switch {
	case mounted.hostPath != "":
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: mounted.hostPath}}, ""
	case mounted.options.claim != nil:
		claim = p.claimName(one, path)
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}, claim
	}
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: mounted.options.size}}, ""
}

// build makes the container of Kubernetes without its relations to others.
func (c container) build() corev1.Container {
	built := corev1.Container{Name: kubeName(c.name), Image: c.image, Command: c.options.entryPoint, Args: c.commands, Resources: c.options.resources,
		LivenessProbe: c.options.liveness, ReadinessProbe: c.options.readiness, StartupProbe: c.options.startup, Lifecycle: c.options.lifecycle, ImagePullPolicy: corev1.PullIfNotPresent}
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		built.Env = append(built.Env, corev1.EnvVar{Name: name, Value: c.env[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(c.options.secrets)) {
		built.Env = append(built.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: c.secretName}, Key: name}}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.options.valueFrom)) {
		source := c.options.valueFrom[name]
		built.Env = append(built.Env, corev1.EnvVar{Name: name, ValueFrom: &source})
	}
	built.SecurityContext = c.options.security.DeepCopy()
	if c.privileged {
		if built.SecurityContext == nil {
			built.SecurityContext = &corev1.SecurityContext{}
		}
		built.SecurityContext.Privileged = &c.privileged
	}
	return built
}

// hardens reports whether a container has a hardening.
func hardens(containers []container) bool {
	for one := range partsOf(containers) {
		if one.options.hardening != nil {
			return true
		}
	}
	return false
}

// harden gives a container its hardening. Fields that its own or the pod's security context has stay.
func harden(p podSpec, one container, built *corev1.Container) {
	if p.soft || one.options.hardening == nil || one.privileged {
		return
	}
	with := one.options.hardening.DeepCopy()
	if own := p.options.security; own != nil {
		if own.RunAsUser != nil {
			with.RunAsUser, with.RunAsNonRoot = nil, nil
		}
		if own.RunAsGroup != nil {
			with.RunAsGroup = nil
		}
		if own.RunAsNonRoot != nil {
			with.RunAsNonRoot = nil
		}
		if own.SeccompProfile != nil {
			with.SeccompProfile = nil
		}
	}
	if own, err := json.Marshal(built.SecurityContext); err == nil && built.SecurityContext != nil {
		_ = json.Unmarshal(own, with) // of the same type
	}
	built.SecurityContext = with
}

// readiness is a probe by which a container counts as ready once the first of its published TCP ports accepts connections. Gateways then send no
// request to a container that has only been started, and a drain removes no replica for such a container. nil for a container without such a port.
func readiness(ports []port) *corev1.Probe {
	for _, port := range ports {
		if port.isPublic() && port.protocol == string(corev1.ProtocolTCP) {
			return &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port.number)}},
				PeriodSeconds: 1, // also how late it may be noticed
			}
		}
	}
	return nil
}

// service returns the Service of a container's ports, or nil when it has none that others may reach.
func (p podSpec) service(one container) *corev1.Service {
	var ports []corev1.ServicePort
	var internal []string
	for _, port := range one.ports {
		if port.scope == "host" {
			continue
		}
		name := portName(corev1.Protocol(port.protocol), port.published)
		if !port.isPublic() {
			internal = append(internal, name)
		}
		ports = append(ports, corev1.ServicePort{Name: name, Port: port.published, TargetPort: intstr.FromInt32(port.number), Protocol: corev1.Protocol(port.protocol)})
	}
	if len(ports) == 0 {
		return nil
	}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: serviceName(p.name, one.name), Namespace: p.inNamespace(),
			Labels: map[string]string{LabelPod: p.id, labelContainer: kubeName(one.name)},
		},
		Spec: corev1.ServiceSpec{Selector: map[string]string{LabelPod: p.id}, Ports: ports},
	}
	service.Annotations = map[string]string{}
	if len(internal) > 0 {
		service.Annotations[annotationInternalPorts] = strings.Join(internal, ",")
	}
	if p.inNamespace() != known.Namespace && len(internal) < len(ports) {
		service.Annotations[kube.AnnotationPublish] = "true" // in the other namespaces gateways publish on request only
	}
	return service
}

// portName names a port of a Service.
func portName(protocol corev1.Protocol, published int32) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), published)
}

// serviceAddress is the name by which pods of the cluster of this domain reach an application of the pod.
func serviceAddress(p podSpec, domain, application string) string {
	return serviceName(p.name, application) + "." + p.inNamespace() + ".svc." + domain
}

// serviceName names the Service of an application in a pod: a label of RFC 1035, which begins with a letter.
func serviceName(pod, application string) string {
	name := kubeName(pod + "-" + application)
	if name == "" || name[0] < 'a' {
		name = kubeName("app-" + name)
	}
	return name
}
