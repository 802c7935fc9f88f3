package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// A Gateway with labels or annotations for its infrastructure has a Service, which carries them, has a port for each of its listeners, and in its status
// the addresses of the Gateway: controllers that read Services, such as DNS controllers, find it. Nothing listens for the Service itself.

const (
	// conditionInfrastructure is the condition of a Gateway with labels or annotations for its infrastructure: whether its Service is as it should be.
	conditionInfrastructure = "burano.io/Infrastructure"
	reasonNotPossible       = "NotPossible"
	reasonPending           = "Pending"
	reasonPropagated        = "Propagated"
	reasonOfGateway         = "OfGateway"
	// writtenKeys names, in the annotations of the Service, the labels and annotations that the Gateway gave it.
	writtenKeys = "burano.io/of-infrastructure"
	managedBy   = "app.kubernetes.io/managed-by"
	classLabel  = "gateway.networking.k8s.io/gateway-class-name"
)

// infrastructure takes in the Service of a Gateway.
func (b *gatewayBuilder) infrastructure(g *gatewayState) {
	wanted := g.Spec.Infrastructure
	if wanted == nil || len(wanted.Labels)+len(wanted.Annotations) == 0 || g.problem.reason != "" {
		return
	}
	g.propagates = true
	refuse := func(format string, arguments ...any) {
		g.impossible = verdict{reasonNotPossible, "infrastructure: " + fmt.Sprintf(format, arguments...)}
	}
	name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name + "-" + string(g.Spec.GatewayClassName)}
	if problems := validation.IsDNS1035Label(name.Name); len(problems) > 0 {
		refuse("the Service with its labels and annotations would be called %s: %s. Give the Gateway another name.", name.Name, strings.Join(problems, "; "))
		return
	}
	has, there := b.services[name]
	if there && !ofGateway(has, g.UID) {
		refuse("there is a Service %s already that is not the Gateway's. Delete it, or give the Gateway another name.", name)
		return
	}
	ports := g.ports()
	if len(ports) == 0 {
		refuse("a Service needs a port, and no listener can be served.")
		return
	}
	yes, no, class := true, false, Class
	service := &core.Service{
		ObjectMeta: meta.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: make(map[string]string), Annotations: make(map[string]string), OwnerReferences: []meta.OwnerReference{
			{APIVersion: api.GroupVersion.String(), Kind: route.KindGateway, Name: g.Name, UID: g.UID, Controller: &yes},
		}},
		Spec: core.ServiceSpec{Type: core.ServiceTypeLoadBalancer, LoadBalancerClass: &class, AllocateLoadBalancerNodePorts: &no, Ports: ports},
	}
	var written keys
	for key, value := range wanted.Labels {
		service.Labels[string(key)] = string(value)
		written.Labels = append(written.Labels, string(key))
	}
	for key, value := range wanted.Annotations {
		service.Annotations[string(key)] = string(value)
		written.Annotations = append(written.Annotations, string(key))
	}
	slices.Sort(written.Labels)
	slices.Sort(written.Annotations)
	maps.Copy(service.Labels, map[string]string{api.GatewayNameLabelKey: g.Name, classLabel: string(g.Spec.GatewayClassName), managedBy: component})
	text, _ := json.Marshal(written)
	maps.Copy(service.Annotations, map[string]string{AnnotationPublish: "false", writtenKeys: string(text)})
	g.service = service
	if !there {
		g.impossible = verdict{reasonPending, fmt.Sprintf("infrastructure: the Service %s is not there yet.", name)}
	}
}

// keys are the keys of the labels and annotations that a Gateway gave its Service.
type keys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// ports are the ports of a Gateway's Service: one for each port of its listeners.
func (g *gatewayState) ports() (list []core.ServicePort) {
	for _, group := range slices.Concat([]*listenerGroup{g.listenerGroup}, g.sets) {
		for _, l := range group.listeners {
			protocol := core.ProtocolTCP
			if l.udp() {
				protocol = core.ProtocolUDP
			}
			if l.serves() && !slices.ContainsFunc(list, func(p core.ServicePort) bool { return p.Port == int32(l.Port) && p.Protocol == protocol }) {
				list = append(list, core.ServicePort{Name: strings.ToLower(string(protocol)) + "-" + strconv.Itoa(int(l.Port)), Protocol: protocol, Port: int32(l.Port)})
			}
		}
	}
	slices.SortFunc(list, func(a, b core.ServicePort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	return list
}

// ofGateway reports whether a Service was made for a Gateway; "" is any.
func ofGateway(service *core.Service, gateway types.UID) bool {
	owner := meta.GetControllerOf(service)
	return owner != nil && owner.Kind == route.KindGateway && service.Name == owner.Name+"-"+service.Labels[classLabel] && strings.HasPrefix(owner.APIVersion, api.GroupName+"/") && service.Annotations[writtenKeys] != "" &&
		service.Labels[managedBy] == component && (gateway == "" || owner.UID == gateway)
}

// asWanted is a Service with the labels, annotations and ports of the desired one; foreign labels and annotations stay.
func asWanted(has, wanted *core.Service) *core.Service {
	next := has.DeepCopy()
	var before keys
	if json.Unmarshal([]byte(has.Annotations[writtenKeys]), &before) == nil {
		for _, key := range before.Labels {
			delete(next.Labels, key)
		}
		for _, key := range before.Annotations {
			delete(next.Annotations, key)
		}
	}
	if next.Labels == nil {
		next.Labels = make(map[string]string)
	}
	maps.Copy(next.Labels, wanted.Labels)
	maps.Copy(next.Annotations, wanted.Annotations)
	same := func(a, b core.ServicePort) bool {
		return a.Name == b.Name && a.Port == b.Port && a.Protocol == b.Protocol
	}
	if !slices.EqualFunc(has.Spec.Ports, wanted.Spec.Ports, same) {
		next.Spec.Ports = wanted.Spec.Ports
	}
	return next
}

// writeInfrastructure makes the Services of Gateways as they should be, with the Gateways' addresses in their status, and deletes the
// others that were made for Gateways.
func (s *statuses) writeInfrastructure(ctx context.Context, sites *Sites, services []*core.Service, addresses []string, now time.Time) error {
	wanted := make(map[types.NamespacedName]*gatewayState)
	for _, g := range sites.gateways {
		if g.service != nil {
			wanted[types.NamespacedName{Namespace: g.service.Namespace, Name: g.service.Name}] = g
		}
	}
	var failed []error
	note := func(name types.NamespacedName, err error) {
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // a change wakes us
			failed = append(failed, fmt.Errorf("write the Service %s of a Gateway: %w", name, err))
		}
	}
	for _, has := range services {
		if !ofGateway(has, "") {
			continue
		}
		name := types.NamespacedName{Namespace: has.Namespace, Name: has.Name}
		g := wanted[name]
		delete(wanted, name)
		if g == nil || !ofGateway(has, g.UID) {
			note(name, s.client.CoreV1().Services(name.Namespace).Delete(ctx, name.Name, meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &has.UID}}))
			continue
		}
		if next := asWanted(has, g.service); !equality.Semantic.DeepEqual(has, next) {
			_, err := s.client.CoreV1().Services(name.Namespace).Update(ctx, next, meta.UpdateOptions{FieldManager: component})
			note(name, err)
			continue
		}
		status := Status{Published: meta.ConditionTrue, Reason: reasonOfGateway, Message: fmt.Sprintf("It has the addresses of the Gateway %s, which serves its ports.", g.Name)}
		for _, address := range sites.gatewayStatus(g, addresses, now).Addresses {
			status.Addresses = append(status.Addresses, address.Value)
		}
		if len(status.Addresses) == 0 {
			status.Published, status.Message = meta.ConditionFalse, fmt.Sprintf("The Gateway %s is not served; its conditions have the reason.", g.Name)
		}
		note(name, s.one(ctx, has, status))
	}
	for name, g := range wanted {
		_, err := s.client.CoreV1().Services(name.Namespace).Create(ctx, g.service, meta.CreateOptions{FieldManager: component})
		note(name, err)
	}
	return errors.Join(failed...)
}
