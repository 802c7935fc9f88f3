package native

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/burano/burano/nodes/kube"
)

// Labels by which the objects of a pod and of its applications are found again.
const (
	labelPod       = kube.LabelObject      // id of the KubernetesPod object
	labelContainer = "burano.io/container" // name of the container
)

// annotationInternalPorts names the ports of a Service that gateways do not publish.
const annotationInternalPorts = "burano.io/internal-ports"

// namespace is where applications run.
const namespace = "default"

// container is what an application wants to run, as com.mirantis.docker.DockerContainer describes it.
type container struct {
	application string // id of the object
	name        string
	image       string
	commands    []string
	env         map[string]string
	ports       []port
	volumes     map[string]volume // by mount path
	privileged  bool
}

// port is a port of a container.
type port struct {
	number    int32  // inside the container
	published int32  // of the Service, and so of the gateways
	protocol  string // TCP or UDP
	scope     string // public, cloud, internal or host
}

// isPublic tells whether gateways publish the port.
func (p port) isPublic() bool { return p.scope == "public" || p.scope == "cloud" }

// volume is a folder of the node, or one that lives as long as the pod.
type volume struct {
	hostPath string // "" for a temporary folder
}

// podSpec is what a KubernetesPod object says of itself.
type podSpec struct {
	id       string
	name     string
	labels   map[string]string
	replicas int32
}

// invalidName matches what may not stand in a name of Kubernetes.
var invalidName = regexp.MustCompile(`[^a-z0-9-]+`)

// kubeName makes a name that Kubernetes takes (a label of RFC 1123, at most 63 characters) out of what a person wrote.
func kubeName(text string) string {
	name := invalidName.ReplaceAllString(strings.ToLower(text), "-")
	if len(name) > 63 {
		name = name[:63]
	}
	return strings.Trim(name, "-")
}

// objects returns what runs a pod with these containers: a Deployment (a plain Pod when replicas is 0, as Murano had it), with two or
// more replicas a disruption budget, and for each application with ports a Service.
func (p podSpec) objects(containers []container) []runtime.Object {
	slices.SortFunc(containers, func(a, b container) int { return strings.Compare(a.application, b.application) })
	template := p.template(containers)
	meta := metav1.ObjectMeta{Name: kubeName(p.name), Namespace: namespace, Labels: template.Labels}
	var objects []runtime.Object
	if p.replicas > 0 {
		objects = append(objects, &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: &p.replicas,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPod: p.id}},
				Template: template,
			},
		})
		if p.replicas > 1 {
			one := intstr.FromInt32(1)
			objects = append(objects, &policyv1.PodDisruptionBudget{
				TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
				ObjectMeta: meta,
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelPod: p.id}}},
			})
		}
	} else {
		objects = append(objects, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: template.Spec})
	}
	for _, one := range containers {
		if service := p.service(one); service != nil {
			objects = append(objects, service)
		}
	}
	return objects
}

// obsolete names what an earlier number of replicas may have left.
func (p podSpec) obsolete() []kube.Ref {
	name := kubeName(p.name)
	pod := kube.Ref{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
	deployment := kube.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	budget := kube.Ref{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
	switch {
	case p.replicas == 0:
		return []kube.Ref{budget, deployment}
	case p.replicas == 1:
		return []kube.Ref{budget, pod}
	}
	return []kube.Ref{pod}
}

func (p podSpec) template(containers []container) corev1.PodTemplateSpec {
	labels := maps.Clone(p.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["id"] = kubeName(p.name) // the label that Murano's own pods had
	labels[labelPod] = p.id
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	for _, one := range containers {
		built := corev1.Container{Name: kubeName(one.name), Image: one.image, Args: one.commands, ImagePullPolicy: corev1.PullIfNotPresent}
		for _, name := range slices.Sorted(maps.Keys(one.env)) {
			built.Env = append(built.Env, corev1.EnvVar{Name: name, Value: one.env[name]})
		}
		for _, port := range one.ports {
			opened := corev1.ContainerPort{ContainerPort: port.number, Protocol: corev1.Protocol(port.protocol)}
			if port.scope == "host" {
				opened.HostPort = port.published
			}
			built.Ports = append(built.Ports, opened)
		}
		built.ReadinessProbe = readiness(one.ports)
		for i, path := range slices.Sorted(maps.Keys(one.volumes)) {
			name := fmt.Sprintf("%.50s-%d", built.Name, i)
			source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
			if host := one.volumes[path].hostPath; host != "" {
				source = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}
			}
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
			built.VolumeMounts = append(built.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		}
		if one.privileged {
			built.SecurityContext = &corev1.SecurityContext{Privileged: &one.privileged}
		}
		template.Spec.Containers = append(template.Spec.Containers, built)
	}
	return template
}

// readiness makes a container count as ready once the first of its published TCP ports takes connections: no gateway sends anybody to
// one that has only been started, and no drain takes a replica away for the sake of such a one. nil for a container without such a port.
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
		name := fmt.Sprintf("%s-%d", strings.ToLower(port.protocol), port.published)
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
			Name: serviceName(p.name, one.name), Namespace: namespace,
			Labels: map[string]string{labelPod: p.id, labelContainer: kubeName(one.name)},
		},
		Spec: corev1.ServiceSpec{Selector: map[string]string{labelPod: p.id}, Ports: ports},
	}
	if len(internal) > 0 {
		service.Annotations = map[string]string{annotationInternalPorts: strings.Join(internal, ",")}
	}
	return service
}

// serviceAddress is the name by which pods of the cluster reach an application of a pod.
func serviceAddress(pod, application string) string {
	return serviceName(pod, application) + "." + namespace + ".svc.cluster.local"
}

// serviceName names the Service of an application in a pod: a label of RFC 1035, which begins with a letter.
func serviceName(pod, application string) string {
	name := kubeName(pod + "-" + application)
	if name == "" || name[0] < 'a' {
		name = kubeName("app-" + name)
	}
	return name
}
