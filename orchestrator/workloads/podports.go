package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
)

const (
	// publishPatience is how long the publisher may take until a port of a new Service is published: milliseconds without an obstacle.
	publishPatience = 5 * time.Second
	publishLook     = 500 * time.Millisecond
)

// settled is how long a container has run when it is not about to end for a port that another one has.
const settled = time.Minute

// checkClash refuses containers that want the same port of their pod, on which only one of them can listen. If such pods run all the same, one of them
// does not listen, and there is only a report.
func (p Pods) checkClash(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec, containers []container) error {
	clash := clashing(spec, containers)
	if clash == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	there, err := listPods(ctx, client, spec, labels.Set{LabelPod: spec.id})
	if err != nil {
		return err
	}
	if !clash.runs(there) {
		return clash
	}
	p.Reports.Warn(ctx, pod, clash.Error(), "The pod runs all the same. Take the port from the container that does not listen on it.")
	return nil
}

// clashing finds the first port that two containers want; nil for none.
func clashing(spec podSpec, containers []container) *portConflict {
	taken := map[string]string{} // the holders of ports and protocols
	for _, one := range containers {
		for _, port := range one.ports {
			key := fmt.Sprint(port.number, port.protocol)
			if other, ok := taken[key]; ok && other != one.name {
				return &portConflict{port.number, fmt.Sprintf("in the Pod %s: by container %s, so that %s needs another one", spec.name, other, one.name)}
			}
			taken[key] = one.name
		}
	}
	return nil
}

// runs is true if such pods run all the same.
func (c *portConflict) runs(there []corev1.Pod) bool {
	return slices.ContainsFunc(there, func(one corev1.Pod) bool { return runsWith(one, c.port, time.Now()) })
}

// runsWith is true if a pod of which several containers name a port has run for a while.
func runsWith(pod corev1.Pod, port int32, now time.Time) bool {
	named := 0
	for _, one := range pod.Spec.Containers {
		if slices.ContainsFunc(one.Ports, func(opened corev1.ContainerPort) bool { return opened.ContainerPort == port }) {
			named++
		}
	}
	return named > 1 && len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers) &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			return status.State.Running == nil || now.Sub(status.State.Running.StartedAt.Time) < settled
		})
}

// portKey is a port of a Service that gateways are to publish.
type portKey struct {
	service string
	port    int32
}

// closedPorts lists the ports of a pod's Services that the gateways do not publish, with the reason: another Service has the port, or it is reserved.
func (p Pods) closedPorts(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec, all []hosted) map[portKey]string {
	closed := publicPorts(spec, all)
	if len(closed) == 0 {
		return nil
	}
	err := wait.Every(publishLook).For(publishPatience).Until(ctx, func(ctx context.Context) error {
		live, err := p.Clusters.Live(pod.Object("kubernetesCluster"))
		if err != nil {
			return err
		}
		routes, err := live.Routes(ctx)
		if err != nil {
			return err
		}
		for _, one := range routes {
			if key := (portKey{one.Service, int32(one.GatewayPort)}); one.Namespace == spec.inNamespace() {
				delete(closed, key)
			}
		}
		for key := range closed {
			closed[key] = holderIn(routes, key.port)
		}
		if len(closed) > 0 {
			return wait.Again(errors.New("not all ports are published"))
		}
		return nil
	})
	var expired *wait.Expired
	if err != nil && !errors.As(err, &expired) {
		p.Reports.Logger.WarnContext(ctx, "it is not known which ports the gateways publish", "pod", pod.ID(), "error", err)
		return nil
	}
	for key, why := range closed {
		if why == "" {
			why = complaintOf(ctx, api, spec.inNamespace(), key)
		}
		if closed[key] = why; why == "" { // no reason is known: it may only be late
			delete(closed, key)
		}
	}
	return closed
}

// publicPorts are the ports that the gateways are to publish for a pod.
func publicPorts(spec podSpec, all []hosted) map[portKey]string {
	ports := map[portKey]string{}
	for _, one := range all {
		for _, port := range one.container.ports {
			if port.isPublic() && port.protocol == string(corev1.ProtocolTCP) {
				ports[portKey{serviceName(spec.name, one.container.name), port.published}] = ""
			}
		}
	}
	return ports
}

// holderIn is the holder of a gateways' port; "" for none, and for Ingresses and Gateways.
func holderIn(routes []route.Route, port int32) string {
	if purpose, reserved := route.Reserved(uint16(port)); reserved {
		return fmt.Sprintf("gateways need it for %s", purpose)
	}
	i := slices.IndexFunc(routes, func(one route.Route) bool { return int32(one.GatewayPort) == port })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("there the gateways publish %s, which is older", routes[i])
}

// complaintOf is the publisher's last message about a port that it does not publish; "" for none.
func complaintOf(ctx context.Context, api *rest.Config, namespace string, key portKey) string {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return ""
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Service,type=Warning,involvedObject.name=" + key.service})
	if err != nil {
		return ""
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return kube.EventTime(b).Compare(kube.EventTime(a)) })
	for _, event := range events.Items {
		if strings.Contains(event.Message, portName(corev1.ProtocolTCP, key.port)) {
			return event.Message
		}
	}
	return ""
}
