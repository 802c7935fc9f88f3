package definitions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// labelServiceOf identifies the application and the pod of a Service that createService has made.
	labelServiceOf = "burano.io/service-of"
	// labelPodID is the label by which createService finds pods, as in Murano.
	labelPodID = "id"
	// firstFreePort is where the search for a port begins that is not taken.
	firstFreePort = 1025
	// PropertyEndpoints is the property of clusters with the endpoints of all Services.
	PropertyEndpoints = "serviceEndpoints"
)

// port is a port of an application.
type port struct {
	number, wanted int64 // of the container, and of the Service if it is free
	protocol       string
	scope          string
	given          int64 // of the Service
}

func (p port) published() bool { return p.scope == "public" || p.scope == "cloud" }

func (p port) key() string { return fmt.Sprint(p.number, p.protocol) }

// service names the Services of an application of a pod.
type service struct{ application, pod string }

func (s service) label() string {
	digest := sha256.Sum256([]byte(s.application + "\x00" + s.pod))
	return hex.EncodeToString(digest[:8])
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// name is that of the Service of a port.
func (s service) name(one port) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s.application), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = "app-" + name
	}
	name = strings.TrimRight(name[:min(len(name), 40)], "-")
	return fmt.Sprintf("%s-%d%s-%s", name, one.number, strings.TrimPrefix(strings.ToLower("-"+one.protocol), "-tcp"), s.label()[:6])
}

// createService makes a Service for each port of an application, and removes the Services of its former ports.
func (d Definitions) createService(ctx context.Context, call muranopl.Call) (any, error) {
	wanted, ports, err := serviceIn(call)
	if err != nil {
		return nil, err
	}
	api, client, err := d.client(ctx, call.Object, call.Method.Name)
	if err != nil {
		return nil, err
	}
	there, err := client.CoreV1().Services(known.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	if err := give(ports, wanted, there.Items); err != nil {
		return nil, fault.New(fault.Conflict, "createService of %s: %w", wanted.application, err)
	}
	selector := map[string]any{labelPodID: wanted.pod}
	if pod := d.Objects.Find(wanted.pod); pod != nil && pod.Class().IsEmbedded(task.ClassPod) {
		selector = map[string]any{kube.LabelObject: wanted.pod}
	}
	names := map[string]bool{}
	for _, one := range ports {
		names[wanted.name(one)] = true
		if err := d.apply(ctx, api, call.Object, wanted.object(one, selector), false); err != nil {
			return nil, err
		}
	}
	if err := d.dropServices(ctx, call, wanted, names); err != nil {
		return nil, err
	}
	endpoints, err := d.endpointsOf(ctx, call.Object, wanted, ports)
	if err != nil {
		return nil, err
	}
	return endpoints, d.noteEndpoints(call.Object, wanted, endpoints)
}

// serviceIn reads the arguments of createService.
func serviceIn(call muranopl.Call) (wanted service, ports []port, err error) {
	wanted.application, _ = call.Args["applicationName"].(string)
	wanted.pod, _ = call.Args["podId"].(string)
	if wanted.application == "" || wanted.pod == "" {
		return wanted, nil, fault.New(fault.Invalid, "createService: applicationName is %q and podId is %q: both are needed", wanted.application, wanted.pod)
	}
	if _, err := labels.ValidatedSelectorFromSet(labels.Set{labelPodID: wanted.pod}); err != nil {
		return wanted, nil, fault.New(fault.Invalid, "createService: podId is %q, which cannot be the value of a label: %w", wanted.pod, err)
	}
	list, _ := call.Args["applicationPorts"].([]any)
	seen := map[string]bool{}
	for _, one := range list {
		object, is := one.(*muranopl.Object)
		if !is {
			return wanted, nil, fault.New(fault.Invalid, "createService: a port is no com.mirantis.docker.ApplicationPort but %T", one)
		}
		number := int64(object.Int("port"))
		made := port{number: number, wanted: number, protocol: object.Text("protocol"), scope: object.Text("scope")}
		if published := object.Int("publishedPort"); published > 0 {
			made.wanted = int64(published)
		}
		if !seen[made.key()] {
			seen[made.key()] = true
			ports = append(ports, made)
		}
	}
	return wanted, ports, nil
}

// give gives each port the port of its Service: its former one, its own, or, for one that gateways publish and that is taken, a free one.
func give(ports []port, of service, there []corev1.Service) error {
	former, taken := map[string]int64{}, map[int64]string{}
	for _, one := range there {
		for _, opened := range one.Spec.Ports {
			if one.Labels[labelServiceOf] == of.label() {
				former[port{number: int64(opened.TargetPort.IntVal), protocol: string(opened.Protocol)}.key()] = int64(opened.Port)
			} else if opened.Protocol == corev1.ProtocolTCP {
				taken[int64(opened.Port)] = one.Name
			}
		}
	}
	free := func(number int64) bool {
		_, reserved := route.Reserved(uint16(number))
		return !reserved && taken[number] == ""
	}
	for i, one := range ports {
		given := one.wanted
		if before, had := former[one.key()]; had && (given == one.number || before == given) {
			given = before
		}
		if one.published() && one.protocol == string(corev1.ProtocolTCP) {
			if !free(given) {
				given = firstFreePort
				for given < 1<<16 && !free(given) {
					given++
				}
			}
			if given == 1<<16 {
				return fmt.Errorf("no port from %d on is free for port %d", firstFreePort, one.number)
			}
			taken[given] = of.application
		}
		ports[i].given = given
	}
	return nil
}

// object is the Service of a port.
func (s service) object(one port, selector map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": s.name(one), "namespace": known.Namespace, "labels": map[string]any{labelServiceOf: s.label()}}
	if !one.published() {
		metadata["annotations"] = map[string]any{kube.AnnotationPublish: "false"}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kindService, "metadata": metadata, "spec": map[string]any{"selector": selector,
		"ports": []any{map[string]any{"name": fmt.Sprintf("port-%d", one.given), "port": one.given, "targetPort": one.number, "protocol": one.protocol}}}}}
}

// deleteServices deletes the Services that createService has made for an application of a pod.
func (d Definitions) deleteServices(ctx context.Context, call muranopl.Call) (any, error) {
	wanted, _, err := serviceIn(call)
	if err != nil {
		return nil, err
	}
	if err := d.dropServices(ctx, call, wanted, nil); err != nil {
		return nil, err
	}
	return nil, d.noteEndpoints(call.Object, wanted, nil)
}

// dropServices deletes the Services of an application of a pod, without some that stay.
func (d Definitions) dropServices(ctx context.Context, call muranopl.Call, wanted service, staying map[string]bool) error {
	api, client, err := d.client(ctx, call.Object, call.Method.Name)
	if err != nil {
		return err
	}
	there, err := client.CoreV1().Services(known.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelServiceOf: wanted.label()}.String()})
	if err != nil {
		return fmt.Errorf("list the Services of %s: %w", wanted.application, err)
	}
	for _, one := range there.Items {
		if staying[one.Name] {
			continue
		}
		gone := entry{Kind: kindService, Namespace: one.Namespace, Name: one.Name}
		err := d.Runtime.Step(ctx, call.Object, "remove "+gone.ref().String(), func(ctx context.Context) error { return d.delete(ctx, api, call.Object, gone) })
		if err != nil {
			return err
		}
	}
	return nil
}

// endpointsOf are the ways to the ports of an application.
func (d Definitions) endpointsOf(ctx context.Context, cluster *muranopl.Object, of service, ports []port) ([]any, error) {
	pods, err := d.PodNetwork(ctx, cluster)
	if err != nil {
		return nil, err
	}
	endpoints := []any{}
	for _, one := range ports {
		add := func(address, scope string) {
			endpoints = append(endpoints, map[string]any{"address": address, "port": one.given, "containerPort": one.number, "protocol": one.protocol, "scope": scope, "portScope": one.scope,
				"applicationName": of.application, "podId": of.pod, "serviceName": of.name(one)})
		}
		if one.scope == "host" {
			continue
		}
		add(of.name(one)+"."+known.Namespace+".svc."+pods.Domain, "internal")
		if one.published() && one.protocol == string(corev1.ProtocolTCP) {
			for _, address := range d.GatewayAddresses(cluster) {
				add(address, one.scope)
			}
		}
	}
	return endpoints, nil
}

// noteEndpoints sets the endpoints of an application in the cluster's property.
func (d Definitions) noteEndpoints(cluster *muranopl.Object, of service, endpoints []any) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now, _ := cluster.Get(PropertyEndpoints)
	list, _ := now.([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["applicationName"] == of.application && fields["podId"] == of.pod
	})
	return cluster.Set(PropertyEndpoints, append(list, endpoints...))
}
