package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/gateway/route"
)

// Published is the condition of a Service of type LoadBalancer: whether the gateways serve all of its ports, with the reason if not.
const Published = "burano.io/Published"

// Reasons of the condition; others are the reasons of complaints.
const (
	reasonPublished  = "Published"
	reasonNoGateways = "NoGateways"
)

// Status is the desired status of a Service of type LoadBalancer. The zero value is for a Service that is not for the gateways.
type Status struct {
	Addresses []string // of the gateways, when these serve any of its ports
	Published meta.ConditionStatus
	Reason    string
	Message   string
}

// maxMessage is how long the message of a condition may be.
const maxMessage = 32768

// StatusOf returns the desired status of a Service from the routes and the complaints of [Routes].
func StatusOf(service *core.Service, routes []route.Route, complaints []Complaint, gateways []route.Gateway) Status {
	var served bool
	for _, r := range routes {
		served = served || r.Namespace == service.Namespace && r.Service == service.Name
	}
	var reason string
	var messages, unheeded []string
	for _, c := range complaints {
		if c.UID == service.UID && c.Namespace == service.Namespace && c.Kind == "" && c.Name == service.Name {
			if c.Reason == ReasonUnheeded {
				unheeded = append(unheeded, c.Message)
				continue
			}
			messages = append(messages, c.Message)
			reason = cmp.Or(reason, c.Reason)
		}
	}
	var status Status
	switch {
	case service.Spec.Type != core.ServiceTypeLoadBalancer || othersClass(service) || !served && len(messages) == 0:
		return Status{}
	case len(gateways) == 0:
		return Status{Published: meta.ConditionFalse, Reason: reasonNoGateways, Message: "The cluster has no gateway that serves."}
	case len(messages) == 0:
		text := strings.Join(append([]string{"The gateways serve all of its ports."}, unheeded...), "\n")
		status = Status{Published: meta.ConditionTrue, Reason: cmp.Or(reasonOf(unheeded), reasonPublished), Message: cut(text)}
	default:
		status = Status{Published: meta.ConditionFalse, Reason: reason, Message: cut(strings.Join(append(messages, unheeded...), "\n"))}
	}
	if served {
		status.Addresses = addressesOf(gateways)
	}
	return status
}

// reasonOf is the reason of the condition of a served Service with ignored fields.
func reasonOf(unheeded []string) string {
	if len(unheeded) == 0 {
		return ""
	}
	return ReasonUnheeded
}

// cut is a text as long as the message of a condition may be.
func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "") }

// addressesOf gives the gateways' addresses in order, each once.
func addressesOf(gateways []route.Gateway) []string {
	var addresses []string
	for _, g := range gateways {
		addresses = append(addresses, g.Address.String())
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// statuses writes the gateways' part of Services' statuses. It does not change addresses of other controllers.
type statuses struct {
	client kubernetes.Interface
	now    func() time.Time
}

// write updates the statuses of the Services. It returns an error when some could not be written.
func (s *statuses) write(ctx context.Context, services []*core.Service, routes []route.Route, complaints []Complaint, gateways []route.Gateway) error {
	ofService := make(map[types.NamespacedName][]route.Route)
	for _, r := range routes {
		key := types.NamespacedName{Namespace: r.Namespace, Name: r.Service}
		ofService[key] = append(ofService[key], r)
	}
	about := make(map[types.UID][]Complaint)
	for _, c := range complaints {
		about[c.UID] = append(about[c.UID], c)
	}
	var failed []error
	for _, service := range services {
		key := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
		if ofGateway(service, "") {
			continue // see writeInfrastructure
		}
		if err := s.one(ctx, service, StatusOf(service, ofService[key], about[service.UID], gateways)); err != nil {
			failed = append(failed, fmt.Errorf("write the status of the Service %s: %w", key, err))
		}
	}
	return errors.Join(failed...)
}

func (s *statuses) one(ctx context.Context, service *core.Service, wanted Status) error {
	has := apimeta.FindStatusCondition(service.Status.Conditions, Published)
	present := service.Status.LoadBalancer.Ingress
	if len(present) > 0 && !ours(service) || has == nil && wanted.Published == "" {
		return nil
	}
	addresses := make([]string, len(present))
	for i, one := range present {
		addresses[i] = one.IP
	}
	if has != nil && has.Status == wanted.Published && has.Reason == wanted.Reason && has.Message == wanted.Message && slices.Equal(addresses, wanted.Addresses) {
		return nil
	}
	changed := meta.NewTime(s.now())
	if has != nil && has.Status == wanted.Published {
		changed = has.LastTransitionTime
	}
	status := applycore.ServiceStatus()
	if wanted.Published != "" {
		status.WithConditions(applymeta.Condition().WithType(Published).WithStatus(wanted.Published).WithReason(wanted.Reason).
			WithMessage(wanted.Message).WithLastTransitionTime(changed))
	}
	if len(wanted.Addresses) > 0 {
		balancer := applycore.LoadBalancerStatus()
		for _, address := range wanted.Addresses {
			// Pods that call the address go through the gateway: its port may be another one than the Service's, and another Service's.
			balancer.WithIngress(applycore.LoadBalancerIngress().WithIP(address).WithIPMode(core.LoadBalancerIPModeProxy))
		}
		status.WithLoadBalancer(balancer)
	}
	_, err := s.client.CoreV1().Services(service.Namespace).ApplyStatus(ctx, applycore.Service(service.Name, service.Namespace).WithUID(service.UID).WithStatus(status),
		meta.ApplyOptions{FieldManager: component, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted, and perhaps another one created, which the informer reports
	}
	return err
}

// writeIngresses updates the statuses of Ingresses: the gateways' Ingresses have the addresses of the gateways, and the ports that do not serve them.
func (s *statuses) writeIngresses(ctx context.Context, ingresses []*networking.Ingress, sites *Sites, gateways []route.Gateway) error {
	var failed []error
	for _, ingress := range ingresses {
		present := ingress.Status.LoadBalancer.Ingress
		wanted := sites.statusOf(ingress, gateways)
		if len(present) > 0 && !ours(ingress) || equality.Semantic.DeepEqual(present, wanted) {
			continue
		}
		balancer := apply.IngressLoadBalancerStatus()
		for _, one := range wanted {
			entry := apply.IngressLoadBalancerIngress().WithIP(one.IP)
			for _, port := range one.Ports {
				said := apply.IngressPortStatus().WithPort(port.Port).WithProtocol(port.Protocol)
				if port.Error != nil {
					said.WithError(*port.Error)
				}
				entry.WithPorts(said)
			}
			balancer.WithIngress(entry)
		}
		_, err := s.client.NetworkingV1().Ingresses(ingress.Namespace).ApplyStatus(ctx,
			apply.Ingress(ingress.Name, ingress.Namespace).WithUID(ingress.UID).WithStatus(apply.IngressStatus().WithLoadBalancer(balancer)),
			meta.ApplyOptions{FieldManager: component, Force: true})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, fmt.Errorf("write the status of the Ingress %s/%s: %w", ingress.Namespace, ingress.Name, err))
		}
	}
	return errors.Join(failed...)
}

// statusOf is the desired status of an Ingress.
func (s *Sites) statusOf(ingress *networking.Ingress, gateways []route.Gateway) (wanted []networking.IngressLoadBalancerIngress) {
	if !slices.ContainsFunc(s.HTTP.Sites, func(site route.Site) bool {
		return site.Namespace == ingress.Namespace && site.Ingress == ingress.Name && len(site.Paths) > 0
	}) {
		return nil
	}
	var ports []networking.IngressPortStatus
	served := false
	for _, l := range s.wanted {
		if !uses(ingress, l) {
			continue
		}
		port := networking.IngressPortStatus{Port: int32(l.Port), Protocol: core.ProtocolTCP}
		if _, taken := s.conflicts[l.Port]; taken {
			why := portTaken
			port.Error = &why
		} else {
			served = true
		}
		ports = append(ports, port)
	}
	if !served {
		return nil
	}
	for _, address := range addressesOf(gateways) {
		wanted = append(wanted, networking.IngressLoadBalancerIngress{IP: address, Ports: ports})
	}
	return wanted
}

// portTaken is the error of a port of the gateways that a Service has.
const portTaken = "burano.io/" + ReasonConflict

// ours reports whether the publisher wrote the addresses in a status.
func ours(object meta.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry meta.ManagedFieldsEntry) bool {
		return entry.Manager == component && entry.Subresource == "status" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:loadBalancer"`)
	})
}
