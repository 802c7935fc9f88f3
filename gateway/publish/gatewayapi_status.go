package publish

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// conditions updates conditions; unchanged ones keep the time of their change.
type conditions struct {
	list       []meta.Condition
	generation int64
	now        time.Time
}

func (c *conditions) set(kind string, good bool, reason, message string) {
	status := meta.ConditionFalse
	if good {
		status = meta.ConditionTrue
	}
	apimeta.SetStatusCondition(&c.list, meta.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: c.generation, LastTransitionTime: meta.NewTime(c.now.Truncate(time.Second)),
	})
}

// verdict sets a condition that is good without a problem, and has its own name as the reason then.
func (c *conditions) verdict(kind string, v verdict) {
	c.set(kind, v.reason == "", cmp.Or(v.reason, kind), v.message)
}

// ClassStatus is the desired status of a class, if it belongs to the gateways.
func ClassStatus(class *api.GatewayClass, now time.Time) (status api.GatewayClassStatus, ours bool) {
	status = *class.Status.DeepCopy()
	if class.Spec.ControllerName != Controller {
		return status, false
	}
	c := conditions{list: status.Conditions, generation: class.Generation, now: now}
	var problem verdict
	if class.Spec.ParametersRef != nil {
		problem = verdict{string(api.GatewayClassReasonInvalidParameters), "parametersRef: the class has no parameters."}
	}
	c.verdict(string(api.GatewayClassConditionStatusAccepted), problem)
	status.Conditions, status.SupportedFeatures = c.list, nil
	for _, name := range features {
		status.SupportedFeatures = append(status.SupportedFeatures, api.SupportedFeature{Name: name})
	}
	return status, true
}

// listenerStatuses are the desired statuses of listeners, how many can be served, and how many are.
func (s *Sites) listenerStatuses(group *listenerGroup, former []api.ListenerStatus, now time.Time) (list []api.ListenerStatus, valid, programmed int) {
	for _, l := range group.listeners {
		entry := api.ListenerStatus{Name: l.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
		if i := slices.IndexFunc(former, func(f api.ListenerStatus) bool { return f.Name == l.Name }); i >= 0 {
			entry.Conditions = former[i].Conditions
		}
		accepted, resolved, conflict := s.acceptance(l), l.problems[string(api.ListenerConditionResolvedRefs)], l.problems[string(api.ListenerConditionConflicted)]
		c := conditions{list: entry.Conditions, generation: group.object.GetGeneration(), now: now}
		if accepted.reason == "" && l.TLS != nil && len(l.TLS.Options) > 0 {
			c.set(string(api.ListenerConditionAccepted), true, string(api.ListenerReasonAccepted), "tls.options: gateways of Burano have none, and ignore these.")
		} else {
			c.verdict(string(api.ListenerConditionAccepted), accepted)
		}
		c.verdict(string(api.ListenerConditionResolvedRefs), resolved)
		c.set(string(api.ListenerConditionConflicted), conflict.reason != "", cmp.Or(conflict.reason, string(api.ListenerReasonNoConflicts)), conflict.message)
		var not verdict
		if accepted.reason != "" || group.gateway.problem.reason != "" || resolved.reason != "" {
			not = verdict{cmp.Or(conflict.reason, string(api.ListenerReasonInvalid)), cmp.Or(accepted.message, group.gateway.problem.message, resolved.message)}
		} else {
			programmed++
		}
		if accepted.reason == "" {
			valid++
		}
		c.verdict(string(api.ListenerConditionProgrammed), not)
		entry.Conditions = c.list
		list = append(list, entry)
	}
	return list, valid, programmed
}

// acceptance is why a listener is not accepted.
func (s *Sites) acceptance(l *listenerState) verdict {
	accepted := l.problems[string(api.ListenerConditionAccepted)]
	conflicts := s.conflicts
	if l.udp() {
		conflicts = s.udpConflicts
	}
	if holder, taken := conflicts[l.port()]; taken && accepted.reason == "" {
		accepted = verdict{string(api.ListenerReasonPortUnavailable), fmt.Sprintf("port %d of the gateways belongs to the Service %s, which is older. Move it with the Service's annotation %s, or do not publish it (%s: \"false\").",
			l.Port, holder, AnnotationPort, AnnotationPublish)}
	}
	return accepted
}

// gatewayStatus is the desired status of a Gateway, with the addresses of the gateways and the owners of contested ports.
func (s *Sites) gatewayStatus(g *gatewayState, addresses []string, now time.Time) api.GatewayStatus {
	status := *g.Status.DeepCopy()
	var valid, programmed int
	status.Listeners, valid, programmed = s.listenerStatuses(g.listenerGroup, status.Listeners, now)
	invalid := len(g.listeners) - valid
	status.AttachedListenerSets = nil
	var attached int32
	for _, set := range g.sets {
		if s.servable(set) > 0 {
			attached++
		}
	}
	if attached > 0 {
		status.AttachedListenerSets = &attached
	}
	c := conditions{list: status.Conditions, generation: g.Generation, now: now}
	switch {
	case g.problem.reason != "":
		c.verdict(string(api.GatewayConditionAccepted), g.problem)
	case invalid > 0:
		c.set(string(api.GatewayConditionAccepted), invalid < len(g.listeners), string(api.GatewayReasonListenersNotValid), fmt.Sprintf("%d of %d listeners cannot be served; their conditions say why.", invalid, len(g.listeners)))
	default:
		c.verdict(string(api.GatewayConditionAccepted), verdict{})
	}
	var not verdict
	wanted := slices.Clone(addresses)
	if g.bound {
		wanted = nil
	}
	for _, address := range g.Spec.Addresses {
		if address.Value == "" || g.problem.reason != "" {
			continue
		}
		ip, err := netip.ParseAddr(address.Value)
		switch {
		case err != nil || !slices.Contains(addresses, ip.String()):
			not = verdict{string(api.GatewayReasonAddressNotUsable), fmt.Sprintf("addresses: %s is no address of the gateways; they have %s.", address.Value, strings.Join(addresses, ", "))}
		case !slices.Contains(wanted, ip.String()):
			wanted = append(wanted, ip.String())
		}
	}
	switch {
	case g.problem.reason != "":
		not = verdict{string(api.GatewayReasonInvalid), g.problem.message}
	case not.reason != "":
	case len(addresses) == 0:
		not = verdict{string(api.GatewayReasonNoResources), "The cluster has no gateway that serves."}
	case programmed == 0:
		not = verdict{string(api.GatewayReasonInvalid), "No listener can be served; their conditions say why."}
	}
	c.verdict(string(api.GatewayConditionProgrammed), not)
	if g.refers {
		c.verdict(string(api.GatewayConditionResolvedRefs), g.unresolved)
	} else {
		apimeta.RemoveStatusCondition(&c.list, string(api.GatewayConditionResolvedRefs))
	}
	if mode := string(api.GatewayConditionInsecureFrontendValidationMode); insecure(g.Gateway) {
		c.set(mode, true, string(api.GatewayReasonConfigurationChanged), "tls.frontend: clients without a valid certificate are served, too.")
	} else {
		apimeta.RemoveStatusCondition(&c.list, mode)
	}
	if g.propagates {
		c.set(conditionInfrastructure, g.impossible.reason == "", cmp.Or(g.impossible.reason, reasonPropagated), cmp.Or(g.impossible.message, "A Service has the labels and annotations."))
	} else {
		apimeta.RemoveStatusCondition(&c.list, conditionInfrastructure)
	}
	status.Conditions, status.Addresses = c.list, nil
	kind := api.IPAddressType
	for _, address := range wanted {
		if not.reason == "" {
			status.Addresses = append(status.Addresses, api.GatewayStatusAddress{Type: &kind, Value: address})
		}
	}
	return status
}

// routeStatus is the desired status of a route: other controllers' entries stay.
func (r *routeState) routeStatus(now time.Time) api.RouteStatus {
	status := api.RouteStatus{Parents: []api.RouteParentStatus{}}
	former := make(map[string][]meta.Condition)
	key := func(p api.ParentReference) string {
		return strings.Join([]string{string(cmp.Or(deref(p.Kind), route.KindGateway)), string(deref(p.Namespace)), string(p.Name), string(deref(p.SectionName)), strconv.Itoa(int(deref(p.Port)))}, "/")
	}
	for _, parent := range r.status.Parents {
		if parent.ControllerName == Controller {
			former[key(parent.ParentRef)] = parent.DeepCopy().Conditions
		} else {
			status.Parents = append(status.Parents, parent)
		}
	}
	for _, v := range r.verdicts {
		c := conditions{list: former[key(v.parent)], generation: r.generation, now: now}
		c.verdict(string(api.RouteConditionAccepted), v.accepted)
		c.verdict(string(api.RouteConditionResolvedRefs), v.resolved)
		status.Parents = append(status.Parents, api.RouteParentStatus{ParentRef: v.parent, ControllerName: Controller, Conditions: c.list})
	}
	return status
}
