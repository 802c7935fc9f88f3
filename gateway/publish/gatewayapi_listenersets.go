package publish

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// listenerGroup is the listeners of a Gateway, or of a ListenerSet, which adds some to a Gateway.
type listenerGroup struct {
	kind      string
	object    meta.Object
	gateway   *gatewayState
	listeners []*listenerState
	refused   verdict // why a ListenerSet has no part in its Gateway
}

// parentKey identifies a parent of routes.
type parentKey struct {
	kind string
	name types.NamespacedName
}

func (g *listenerGroup) key() parentKey {
	return parentKey{g.kind, types.NamespacedName{Namespace: g.object.GetNamespace(), Name: g.object.GetName()}}
}

// listenerSet takes in the listeners that a ListenerSet adds to a Gateway of the class. The Gateway says from which namespaces it takes some; by default
// from none.
func (b *gatewayBuilder) listenerSet(set *api.ListenerSet) {
	ref := set.Spec.ParentRef
	if deref(ref.Group) != "" && *ref.Group != api.GroupName || ref.Kind != nil && *ref.Kind != route.KindGateway {
		return
	}
	parent := b.parents[parentKey{route.KindGateway, referred(set.Namespace, ref.Namespace, ref.Name)}]
	if parent == nil {
		return
	}
	g := parent.gateway
	group := &listenerGroup{kind: route.KindListenerSet, object: set, gateway: g}
	b.sets = append(b.sets, group)
	b.parents[group.key()] = group
	from, selector := api.NamespacesFromNone, (*meta.LabelSelector)(nil)
	if allowed := g.Spec.AllowedListeners; allowed != nil && allowed.Namespaces != nil {
		from, selector = cmp.Or(deref(allowed.Namespaces.From), from), allowed.Namespaces.Selector
	}
	switch {
	case !b.from(from, selector, g.Namespace, set.Namespace):
		group.refused = verdict{string(api.ListenerSetReasonNotAllowed), "allowedListeners of the Gateway admits no ListenerSet of this namespace."}
		return
	case g.problem.reason != "":
		group.refused = verdict{string(api.ListenerSetReasonParentNotAccepted), g.problem.message}
		return
	}
	g.sets = append(g.sets, group)
	var list []api.Listener
	for _, one := range set.Spec.Listeners {
		list = append(list, api.Listener(one))
	}
	b.listeners(group, list)
}

// contest gives a listener of a ListenerSet a problem where its Gateway, or an older ListenerSet, has one for the same requests, or for another protocol on
// its port.
func (g *gatewayState) contest(l *listenerState) {
	refuse := func(reason api.ListenerConditionReason, format string) {
		for _, condition := range []api.ListenerConditionType{api.ListenerConditionConflicted, api.ListenerConditionAccepted} {
			l.problem(condition, reason, format, l.Port)
		}
	}
	for _, group := range slices.Concat([]*listenerGroup{g.listenerGroup}, g.sets) {
		for _, has := range group.listeners {
			switch {
			case has.Port != l.Port || has.udp() != l.udp() || has.conflicts():
			case has.Protocol == l.Protocol && has.host() == l.host():
				refuse(api.ListenerReasonHostnameConflict, "the Gateway, or an older ListenerSet, has a listener on port %d for the same hostname.")
				return
			case has.Protocol != l.Protocol && !(has.tls() && l.tls()):
				refuse(api.ListenerReasonProtocolConflict, "the Gateway, or an older ListenerSet, has a listener on port %d for another protocol.")
				return
			}
		}
	}
}

func (l *listenerState) conflicts() bool {
	return l.problems[string(api.ListenerConditionConflicted)].reason != ""
}

// servable counts the listeners of a group that gateways can serve.
func (s *Sites) servable(group *listenerGroup) (count int) {
	for _, l := range group.listeners {
		if l.serves() && s.acceptance(l).reason == "" {
			count++
		}
	}
	return count
}

// listenerSetStatus is the desired status of a ListenerSet.
func (s *Sites) listenerSetStatus(group *listenerGroup, addresses []string, now time.Time) api.ListenerSetStatus {
	set := group.object.(*api.ListenerSet)
	status := *set.Status.DeepCopy()
	var former []api.ListenerStatus
	for _, one := range status.Listeners {
		former = append(former, api.ListenerStatus(one))
	}
	status.Listeners = nil
	entries, _, programmed := s.listenerStatuses(group, former, now)
	valid := s.servable(group)
	for _, one := range entries {
		status.Listeners = append(status.Listeners, api.ListenerEntryStatus(one))
	}
	c := conditions{list: status.Conditions, generation: set.Generation, now: now}
	accepted := group.refused
	if accepted.reason == "" && valid == 0 {
		accepted = verdict{string(api.ListenerSetReasonListenersNotValid), "No listener can be served; their conditions say why."}
	}
	not := accepted
	switch {
	case not.reason != "":
	case len(addresses) == 0:
		not = verdict{"ParentNotProgrammed", "The cluster has no gateway that serves."}
	case programmed == 0:
		not = verdict{string(api.ListenerSetReasonListenersNotValid), "No listener can be served; their conditions say why."}
	}
	if accepted.reason == "" && valid < len(entries) {
		c.set(string(api.ListenerSetConditionAccepted), true, string(api.ListenerSetReasonListenersNotValid), fmt.Sprintf("%d of %d listeners cannot be served; their conditions say why.", len(entries)-valid, len(entries)))
	} else {
		c.verdict(string(api.ListenerSetConditionAccepted), accepted)
	}
	c.verdict(string(api.ListenerSetConditionProgrammed), not)
	status.Conditions = c.list
	return status
}
