// Package routes holds the Go bodies of io.burano.Route: applications on servers that gateways publish.
package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// Clusters are the clusters of the model whose gateways publish routes.
type Clusters interface {
	Live(cluster *muranopl.Object) (*nodes.Cluster, error)
	Kubernetes(ctx context.Context, cluster *muranopl.Object) (*rest.Config, error)
	GatewayAddresses(cluster *muranopl.Object) []string
	// Remaining is the cluster of a destroyed object, and StillThere the cluster itself; nil if it is destroyed, too.
	Remaining(ctx context.Context, call muranopl.Call) (*muranopl.Object, error)
	StillThere(ctx context.Context, interpreter *muranopl.Interpreter, was *muranopl.Object) (*muranopl.Object, error)
}

// Regions are the regions of servers.
type Regions interface {
	Of(object *muranopl.Object) string
}

// Template is the template of the environment's own stack.
type Template interface {
	Amend(ctx context.Context, interpreter *muranopl.Interpreter, change func(resources map[string]any) (changed bool)) error
}

// vaultSecrets are the secrets of the environment.
type vaultSecrets interface {
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
}

// Routes is io.burano.Route. Gateways of their own get the route from Burano (ownRoute). In a cluster it is a Service without a selector, an
// EndpointSlice with the servers, and an Ingress if there is a host: the publisher serves them as it serves Services of pods.
type Routes struct {
	Runtime interface {
		Secret(ctx context.Context, name string) ([]byte, bool, error)
		SetSecret(ctx context.Context, name string, value []byte) error
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	}
	Objects  task.Objects
	Own      Template
	Regions  Regions
	Reports  task.Reports
	Clusters Clusters
}

const (
	// gatewayClass is the loadBalancerClass of Services for the gateways, and ingressClass that of Ingresses.
	gatewayClass = "burano.io/gateway"
	ingressClass = "burano"
	// conditionPublished is the condition of a Service of type LoadBalancer by which the publisher reports whether gateways serve it.
	conditionPublished = "burano.io/Published"
)

// publishLimit is how long gateways may take until they serve a change. They need a second; a publisher that takes over needs half a minute.
const publishLimit = 40 * time.Second

// refusalLimit is how long the publisher's refusal may last before it counts: it can refer to the former objects.
const refusalLimit = 4 * time.Second

func (r Routes) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"publisher": r.publisher, "backends": r.backends, "letIn": r.letIn, "publish": r.publish, "withdraw": r.withdraw}
}

// publisher returns the object whose gateways publish the route: a cluster, or gateways of their own.
func (r Routes) publisher(_ context.Context, call muranopl.Call) (any, error) {
	cluster, gateways := call.Object.Object("kubernetesCluster"), call.Object.Object("gateways")
	switch {
	case cluster != nil && gateways != nil:
		return nil, fault.New(fault.Invalid, "%s names both a kubernetesCluster and gateways: name the one whose gateways are to publish it", call.Object)
	case cluster != nil:
		return cluster, nil
	case gateways != nil:
		return gateways, nil
	}
	return nil, fault.New(fault.Invalid, "%s names no gateways: name a kubernetesCluster, or gateways of their own (%s)", call.Object, task.ClassGateways)
}

// backends returns the servers of the route's application, and the servers that the route names, each once.
func (r Routes) backends(_ context.Context, call muranopl.Call) (any, error) {
	var backends []any
	for _, server := range routeServers(call.Object) {
		if region := r.Regions.Of(server); region != "" {
			return nil, fault.New(fault.Invalid, "%s is in region %s: gateways publish servers of their own region only, which is the environment's", server, region)
		}
		if owner := server.Owner(); owner != nil && owner.Class().IsEmbedded(task.ClassNode) {
			return nil, fault.New(fault.Invalid, "%s is a node of a cluster, and %s publishes servers beside it: what runs on nodes is published by its pod", server, call.Object)
		}
		if !slices.Contains(backends, any(server)) {
			backends = append(backends, server)
		}
	}
	if len(backends) == 0 {
		return nil, fault.New(fault.Invalid, "%s has nothing to publish: name an application that has servers of its own, or servers", call.Object)
	}
	return backends, nil
}

// routeServers are the servers of a route's application, and the servers that the route names.
func routeServers(route *muranopl.Object) []*muranopl.Object {
	servers := route.Objects("servers")
	if application := route.Object("application"); application != nil {
		application.Walk(func(object *muranopl.Object) bool {
			if object.Class().IsEmbedded(task.ClassInstance) {
				servers = append(servers, object)
			}
			return true
		})
	}
	return servers
}

// letIn opens the servers' ports to gateways by rules in the security groups of the gateways, and removes rules that no route of the model needs.
// Neutron takes no rule twice: routes with the same needs share a rule, named after the first of these routes.
func (r Routes) letIn(ctx context.Context, call muranopl.Call) (any, error) {
	manager, _ := call.Args["manager"].(*muranopl.Object)
	type need struct {
		group, gateways string
		port            int
	}
	needs := map[need]string{} // the name of a rule for it
	for _, route := range append(r.Objects.All(task.ClassRoute), call.Object) {
		publisher := cmp.Or(route.Object("kubernetesCluster"), route.Object("gateways"))
		if publisher == nil || route == call.Object && r.Objects.Find(route.ID()) == nil {
			continue
		}
		for _, server := range routeServers(route) {
			called, _ := server.Get("securityGroupName") // null for the group of all servers
			group, err := call.Interpreter.Invoke(ctx, manager, "resource", map[string]any{"groupName": called})
			if err != nil {
				return nil, err
			}
			one := need{fmt.Sprint(group), publisher.ID() + "-gateway", route.Int("port")}
			if route == call.Object {
				needs[one] = route.ID() + "-" + one.group
			} else if _, there := needs[one]; !there {
				needs[one] = "" // it makes one itself
			}
		}
	}
	return nil, r.Own.Amend(ctx, call.Interpreter, func(resources map[string]any) (changed bool) {
		for name, resource := range resources {
			described, _ := resource.(map[string]any)
			properties, _ := described["properties"].(map[string]any)
			to, _ := properties["security_group"].(map[string]any)
			from, _ := properties["remote_group"].(map[string]any)
			if described["type"] != typeRule || to == nil || from == nil {
				continue
			}
			var port int
			_ = known.Convert(properties["port_range_min"], &port)
			one := need{fmt.Sprint(to["get_resource"]), fmt.Sprint(from["get_resource"]), port}
			if _, needed := needs[one]; needed {
				needs[one] = ""
			} else if strings.HasSuffix(one.gateways, "-gateway") && strings.HasSuffix(name, "-"+one.group) {
				delete(resources, name)
				changed = true
			}
		}
		for one, name := range needs {
			if name == "" {
				continue
			}
			changed = true
			resources[name] = map[string]any{"type": typeRule, "properties": map[string]any{"security_group": map[string]any{"get_resource": one.group}, "direction": "ingress", "ethertype": "IPv4",
				"protocol": "tcp", "port_range_min": int64(one.port), "port_range_max": int64(one.port), "remote_group": map[string]any{"get_resource": one.gateways}}}
		}
		return changed
	})
}

const typeRule = "OS::Neutron::SecurityGroupRule"

// publish applies the route's objects and waits until the gateways serve it.
func (r Routes) publish(ctx context.Context, call muranopl.Call) (any, error) {
	if err := r.withdrawElsewhere(ctx, call); err != nil {
		return nil, err
	}
	if own := call.Object.Object("gateways"); own != nil {
		return nil, r.publishOwn(ctx, call, own)
	}
	route, err := routeOf(call)
	if err != nil {
		return nil, err
	}
	cluster := call.Object.Object("kubernetesCluster")
	gateways := r.Clusters.GatewayAddresses(cluster)
	if len(gateways) == 0 {
		return nil, fault.New(fault.Invalid, "%s has no gateways to publish %s: set gatewayCount to 1 at least", cluster, call.Object)
	}
	api, err := r.Clusters.Kubernetes(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if err := r.Runtime.Step(ctx, call.Object, "publish the servers", func(ctx context.Context) error { return route.apply(ctx, api, r.Objects.Has) }); err != nil {
		return nil, err
	}
	if err := r.Runtime.Step(ctx, call.Object, "wait for the gateways", func(ctx context.Context) error { return route.wait(ctx, api) }); err != nil {
		return nil, err
	}
	var endpoints []any
	for _, endpoint := range route.endpoints(gateways) {
		endpoints = append(endpoints, endpoint)
		r.Reports.Inform(ctx, call.Object, "%s is available at %s", route.name, endpoint)
	}
	return nil, call.Object.Set("endpoints", endpoints)
}

// withdraw takes the route's objects out of its cluster, or it out of its gateways, unless that goes as well.
func (r Routes) withdraw(ctx context.Context, call muranopl.Call) (any, error) {
	if own := call.Object.Object("gateways"); own != nil {
		return nil, r.withdrawFrom(ctx, call, own)
	}
	cluster, err := r.Clusters.Remaining(ctx, call)
	if cluster == nil {
		return nil, err
	}
	api, err := r.Clusters.Kubernetes(ctx, cluster)
	if err != nil {
		return nil, err
	}
	gone := serverRoute{id: call.Object.ID(), name: call.Object.Text("name")}
	return nil, r.Runtime.Step(ctx, call.Object, "take the servers from the gateways", func(ctx context.Context) error { return gone.clear(ctx, api, "") })
}

// serverRoute is the model of the class in a cluster.
type serverRoute struct {
	id, name    string
	port, outer int32 // of the servers, and of the gateways where there is no host
	host, path  string
	secret      string // with the certificate of the host
	addresses   []string
}

func routeOf(call muranopl.Call) (serverRoute, error) {
	object := call.Object
	route := serverRoute{id: object.ID(), name: object.Text("name"), port: int32(object.Int("port")), host: object.Text("host"), path: object.Text("path"), secret: object.Text("certificate")}
	route.outer = cmp.Or(int32(object.Int("gatewayPort")), route.port)
	switch {
	case route.host != "" && object.Int("gatewayPort") != 0:
		return route, fault.New(fault.Invalid, "%s has a host and a gatewayPort: hosts are published at port 80, and at 443 with a certificate. Leave gatewayPort out", object)
	case route.host == "" && (route.secret != "" || route.path != "/"):
		return route, fault.New(fault.Invalid, "%s has a path or a certificate, which are for hosts: name a host, or leave them out", object)
	case object.Text("tls")+object.Text("certificateChain")+object.Text("certificateKey") != "":
		return route, fault.New(fault.Invalid, "%s has tls, a certificateChain or a certificateKey, which are for gateways of their own (%s): in a cluster name the Secret with the certificate (certificate)",
			object, task.ClassGateways)
	}
	var err error
	route.addresses, err = serverAddresses(call, object.Object("kubernetesCluster"))
	return route, err
}

// serverAddresses are the addresses of the servers that a call refers to, in order.
func serverAddresses(call muranopl.Call, of *muranopl.Object) (addresses []string, err error) {
	servers, _ := call.Args["servers"].([]any)
	for _, one := range servers {
		server, _ := one.(map[string]any)
		text, _ := server["address"].(string)
		address, err := netip.ParseAddr(text)
		if err != nil || !address.Is4() {
			return nil, fault.New(fault.Invalid, "server %v has no IPv4 address that the gateways of %s could reach, but %q", server["name"], of, text)
		}
		addresses = append(addresses, address.String())
	}
	slices.Sort(addresses)
	return addresses, nil
}

// labels are the labels of the route's objects.
func (s serverRoute) labels() map[string]string { return map[string]string{kube.LabelObject: s.id} }

func (s serverRoute) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: s.name, Namespace: known.Namespace, Labels: s.labels()}
}

// objects are the route's objects in the cluster. The publisher writes the reason of a refusal into the status of a Service of type LoadBalancer.
func (s serverRoute) objects() []runtime.Object {
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: s.meta()}
	service.Annotations = map[string]string{kube.AnnotationPublish: strconv.FormatBool(s.host == "")}
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: s.port, TargetPort: intstr.FromInt32(s.port)}}
	if s.host == "" {
		class, nodePorts := gatewayClass, false
		service.Spec.Type, service.Spec.LoadBalancerClass, service.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, &class, &nodePorts
		service.Spec.Ports[0].Port = s.outer
	}
	slice := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: s.meta(), AddressType: discoveryv1.AddressTypeIPv4}
	slice.Labels[discoveryv1.LabelServiceName], slice.Labels[discoveryv1.LabelManagedBy] = s.name, kube.Manager
	ready, unnamed, protocol := true, "", corev1.ProtocolTCP
	slice.Ports = []discoveryv1.EndpointPort{{Name: &unnamed, Port: &s.port, Protocol: &protocol}}
	for _, address := range s.addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	objects := []runtime.Object{service, slice}
	if s.host == "" {
		return objects
	}
	class, prefix := ingressClass, networkingv1.PathTypePrefix
	ingress := &networkingv1.Ingress{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}, ObjectMeta: s.meta()}
	ingress.Spec.IngressClassName = &class
	ingress.Spec.Rules = []networkingv1.IngressRule{{Host: s.host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: s.path, PathType: &prefix, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: s.name, Port: networkingv1.ServiceBackendPort{Number: s.port}}}}}}}}}
	if s.secret != "" {
		ingress.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{s.host}, SecretName: s.secret}}
	}
	return append(objects, ingress)
}

// apply applies the objects of the route. An object of its name that others made is left alone and reported; one of a former environment, with the id
// of an unknown object, is taken over.
func (s serverRoute) apply(ctx context.Context, api *rest.Config, facts func(id string) bool) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	service, err := client.CoreV1().Services(known.Namespace).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Service %s: %w", s.name, err)
	}
	if id := service.Labels[kube.LabelObject]; err == nil && id != s.id && (id == "" || !kube.MadeByBurano(service) || facts(id)) {
		return fault.New(fault.Conflict, "the cluster has a Service %s in the namespace %s that is not of this route: give the route another name", s.name, known.Namespace)
	}
	if err := s.checkSecret(ctx, client); err != nil {
		return err
	}
	if err := kube.Apply(ctx, api, kube.Manager, s.objects()...); err != nil {
		return err
	}
	if ports := service.Spec.Ports; len(ports) > 0 && ports[0].Port != s.outer {
		// Its status refers to the former port.
		_, err := client.CoreV1().Services(known.Namespace).Patch(ctx, s.name, types.MergePatchType, []byte(`{"status":{"conditions":null,"loadBalancer":null}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("forget the status of Service %s: %w", s.name, err)
		}
	}
	return s.clear(ctx, api, s.name)
}

// checkSecret makes sure that the certificate is there: with none, gateways show one that they signed themselves.
func (s serverRoute) checkSecret(ctx context.Context, client kubernetes.Interface) error {
	if s.secret == "" {
		return nil
	}
	secret, err := client.CoreV1().Secrets(known.Namespace).Get(ctx, s.secret, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Secret %s: %w", s.secret, err)
	}
	if err != nil || secret.Type != corev1.SecretTypeTLS {
		return fault.New(fault.Invalid, "the cluster has no Secret %s of type %s in the namespace %s with the certificate of %s: make it (kubectl create secret tls %s --cert FILE --key FILE), or leave certificate out",
			s.secret, corev1.SecretTypeTLS, known.Namespace, s.host, s.secret)
	}
	return nil
}

// clear deletes the objects that a change of name or host has left: all but the objects of this name.
func (s serverRoute) clear(ctx context.Context, api *rest.Config, but string) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	mine := metav1.ListOptions{LabelSelector: kube.LabelObject + "=" + s.id}
	var remove []kube.Ref
	ingresses, err := client.NetworkingV1().Ingresses(known.Namespace).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list Ingresses: %w", err)
	}
	for _, one := range ingresses.Items {
		if one.Name != but || s.host == "" {
			remove = append(remove, kube.Ref{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespace: known.Namespace, Name: one.Name})
		}
	}
	services, err := client.CoreV1().Services(known.Namespace).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	for _, one := range services.Items { // their EndpointSlices go with them
		if one.Name != but {
			remove = append(remove, kube.Ref{APIVersion: "v1", Kind: "Service", Namespace: known.Namespace, Name: one.Name},
				kube.Ref{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: known.Namespace, Name: one.Name})
		}
	}
	for _, ref := range remove {
		if err := kube.Delete(ctx, api, ref); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until the gateways serve the route. The error has the reason why they do not.
func (s serverRoute) wait(ctx context.Context, api *rest.Config) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	silent := wait.Again(errors.New("the publisher on the masters has not answered"))
	var heard time.Time
	refused := func(why string) error {
		if heard.IsZero() {
			heard = time.Now()
		}
		if time.Since(heard) > refusalLimit {
			return fault.New(fault.Conflict, "the gateways do not serve %s: %s", s.name, why)
		}
		return wait.Again(errors.New(why))
	}
	return wait.Every(200*time.Millisecond).For(publishLimit).Until(ctx, func(ctx context.Context) error {
		if s.host == "" {
			service, err := client.CoreV1().Services(known.Namespace).Get(ctx, s.name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("read Service %s: %w", s.name, err)
			}
			switch condition := apimeta.FindStatusCondition(service.Status.Conditions, conditionPublished); {
			case condition == nil:
				return silent
			case condition.Status != metav1.ConditionTrue:
				return refused(condition.Message)
			}
			return nil
		}
		ingress, err := client.NetworkingV1().Ingresses(known.Namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read Ingress %s: %w", s.name, err)
		}
		if len(ingress.Status.LoadBalancer.Ingress) > 0 {
			return nil
		}
		noted, err := client.CoreV1().Events(known.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.uid=" + string(ingress.UID)})
		if err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		if len(noted.Items) == 0 {
			return silent
		}
		newest := slices.MaxFunc(noted.Items, func(a, b corev1.Event) int { return kube.EventTime(a).Compare(kube.EventTime(b)) })
		return refused(newest.Message)
	})
}

// endpoints are where the gateways serve it.
func (s serverRoute) endpoints(gateways []string) []string {
	if s.host == "" {
		endpoints := make([]string, len(gateways))
		for i, address := range gateways {
			endpoints[i] = net.JoinHostPort(address, strconv.Itoa(int(s.outer)))
		}
		return endpoints
	}
	scheme := "http"
	if s.secret != "" {
		scheme = "https"
	}
	return []string{scheme + "://" + s.host + "/" + strings.TrimPrefix(s.path, "/")}
}
