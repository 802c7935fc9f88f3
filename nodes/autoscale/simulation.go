package autoscale

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// amounts are of resources: thousandths of processors, and units of all others.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	all := amounts{}
	for name, quantity := range list {
		all[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			all[name] = quantity.MilliValue()
		}
	}
	return all
}

// host is a node that takes pods, or one that a group could have.
type host struct {
	node  *corev1.Node
	group string // whose it would be, "" for a node that is there
	free  amounts
	pods  []*corev1.Pod
}

func (h *host) remove(pod *corev1.Pod, requests amounts) {
	h.pods = slices.DeleteFunc(h.pods, func(other *corev1.Pod) bool { return other == pod })
	for name, amount := range requests {
		h.free[name] += amount
	}
}

// simulation is the scheduler's view of a cluster, in which pods can be placed.
type simulation struct {
	hosts   []*host
	at      map[*corev1.Pod]*host
	budgets []budget
	asked   map[*corev1.Pod]amounts
}

// budget is how many more of the pods that it selects may be evicted now.
type budget struct {
	namespace string
	selector  labels.Selector
	left      int32
}

func newSimulation(state State) *simulation {
	s := &simulation{at: map[*corev1.Pod]*host{}, asked: map[*corev1.Pod]amounts{}}
	by := map[string]*host{}
	for i := range state.Nodes {
		node := &state.Nodes[i]
		if takesPods(node) {
			by[node.Name] = &host{node: node, free: amountsOf(node.Status.Allocatable)}
			s.hosts = append(s.hosts, by[node.Name])
		}
	}
	for i := range state.Pods {
		pod := &state.Pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		on := pod.Spec.NodeName
		if on == "" {
			on = pod.Status.NominatedNodeName
		}
		if found := by[on]; found != nil {
			s.put(pod, found)
		}
	}
	for _, one := range state.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(one.Spec.Selector)
		if err != nil { // Kubernetes lets nothing go by it
			selector, one = labels.Everything(), policyv1.PodDisruptionBudget{ObjectMeta: one.ObjectMeta}
		}
		s.budgets = append(s.budgets, budget{one.Namespace, selector, one.Status.DisruptionsAllowed})
	}
	return s
}

// takesPods is true if the scheduler places pods on a node.
func takesPods(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// requests are the resources that a pod takes of its node, including its place among the pods.
func (s *simulation) requests(pod *corev1.Pod) amounts {
	known, there := s.asked[pod]
	if !there {
		known = amountsOf(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
		known[corev1.ResourcePods] = 1
		s.asked[pod] = known
	}
	return known
}

func (s *simulation) put(pod *corev1.Pod, on *host) {
	for name, amount := range s.requests(pod) {
		on.free[name] -= amount
	}
	on.pods = append(on.pods, pod)
	s.at[pod] = on
}

// place puts a pod on the first node that takes it.
func (s *simulation) place(pod *corev1.Pod) bool {
	for _, host := range s.hosts {
		if s.refuses(host, pod) == "" {
			s.put(pod, host)
			return true
		}
	}
	return false
}

// template is the next node that a group would get, with the pods that run on every node.
func (s *simulation) template(state State, group Group, made int) *host {
	name := fmt.Sprintf("%s-new-%d", group.Name, made+1)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: corev1.NodeSpec{Taints: group.Taints}}
	for i := range state.Nodes { // the image is the same
		for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
			if value, there := state.Nodes[i].Labels[key]; there {
				node.Labels[key] = value
			}
		}
	}
	maps.Copy(node.Labels, group.Labels)
	node.Labels[corev1.LabelHostname] = name
	fresh := &host{node: node, group: group.Name, free: amountsOf(group.Allocatable)}
	known := map[types.UID]bool{}
	for i := range state.Pods {
		pod := &state.Pods[i]
		if !ofDaemonSet(pod) || known[metav1.GetControllerOf(pod).UID] || !tolerates(pod, node) || !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
			continue
		}
		known[metav1.GetControllerOf(pod).UID] = true
		for name, amount := range s.requests(pod) {
			fresh.free[name] -= amount
		}
	}
	return fresh
}

func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, untolerated := untoleratedTaint(pod, node)
	return !untolerated
}

func untoleratedTaint(pod *corev1.Pod, node *corev1.Node) (corev1.Taint, bool) {
	return scheduling.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, false)
}

// unsuited is the reason why a pod can never be on a node, however much room there is; "" where it can.
func unsuited(on *host, pod *corev1.Pod) string {
	if taint, untolerated := untoleratedTaint(pod, on.node); untolerated {
		return fmt.Sprintf("the pod does not tolerate the taint %s", taint.ToString())
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(on.node); err != nil || !matches {
		return "it does not match what the pod demands of its node"
	}
	return ""
}

// refuses is the reason why a pod cannot be on a node; "" where it can.
func (s *simulation) refuses(on *host, pod *corev1.Pod) string {
	if why := unsuited(on, pod); why != "" {
		return why
	}
	for _, name := range slices.Sorted(maps.Keys(s.requests(pod))) {
		if wanted := s.requests(pod)[name]; wanted > 0 && wanted > on.free[name] {
			return fmt.Sprintf("it has not enough %s", name)
		}
	}
	if clash := portTaken(on, pod); clash != 0 {
		return fmt.Sprintf("its port %d is taken", clash)
	}
	if !s.among(on, pod) {
		return "it stands where the pod is not to be, seen from other pods"
	}
	if !s.spread(on, pod) {
		return "pods would be spread unevenly"
	}
	return ""
}

// portTaken is a port of the node that a pod wants and another one has; 0 for none.
func portTaken(on *host, pod *corev1.Pod) int32 {
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	wanted := func(pod *corev1.Pod) map[port]bool {
		ports := map[port]bool{}
		for _, container := range pod.Spec.Containers {
			for _, one := range container.Ports {
				if one.HostPort != 0 {
					ports[port{one.HostPort, one.Protocol}] = true
				}
			}
		}
		return ports
	}
	ports := wanted(pod)
	if len(ports) == 0 {
		return 0
	}
	for _, other := range on.pods {
		for one := range wanted(other) {
			if ports[one] {
				return one.number
			}
		}
	}
	return 0
}

// among is true if a node fits a pod's affinity to other pods, and their affinity to it.
func (s *simulation) among(on *host, pod *corev1.Pod) bool {
	var near, away []corev1.PodAffinityTerm
	if affinity := pod.Spec.Affinity; affinity != nil {
		if affinity.PodAffinity != nil {
			near = affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		if affinity.PodAntiAffinity != nil {
			away = affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
	}
	for _, term := range near {
		found, anywhere := false, false
		for _, other := range s.hosts {
			if slices.ContainsFunc(other.pods, func(there *corev1.Pod) bool { return there != pod && selects(term, pod, there) }) {
				anywhere = true
				found = found || sameDomain(on, other, term.TopologyKey)
			}
		}
		if !found && (anywhere || !selects(term, pod, pod)) { // the first of its kind has no pod to be near to
			return false
		}
	}
	for _, other := range s.with(on) {
		for _, there := range other.pods {
			if there == pod {
				continue
			}
			if slices.ContainsFunc(away, func(term corev1.PodAffinityTerm) bool {
				return sameDomain(on, other, term.TopologyKey) && selects(term, pod, there)
			}) {
				return false
			}
			if against := there.Spec.Affinity; against != nil && against.PodAntiAffinity != nil {
				if slices.ContainsFunc(against.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(term corev1.PodAffinityTerm) bool {
					return sameDomain(on, other, term.TopologyKey) && selects(term, there, pod)
				}) {
					return false
				}
			}
		}
	}
	return true
}

// with are all nodes and this one, which may be one of them.
func (s *simulation) with(on *host) []*host {
	if slices.Contains(s.hosts, on) {
		return s.hosts
	}
	return append(slices.Clone(s.hosts), on)
}

// sameDomain is true if two nodes have the same value of a key, such as a zone.
func sameDomain(a, b *host, key string) bool {
	value, there := a.node.Labels[key]
	return there && b.node.Labels[key] == value
}

// selects is true if a term of a pod is about another pod.
func selects(term corev1.PodAffinityTerm, of, other *corev1.Pod) bool {
	inNamespace := slices.Contains(term.Namespaces, other.Namespace) || term.NamespaceSelector != nil ||
		len(term.Namespaces) == 0 && of.Namespace == other.Namespace
	return inNamespace && selected(term.LabelSelector, term.MatchLabelKeys, of, other)
}

func selected(wanted *metav1.LabelSelector, keys []string, of, other *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil || !selector.Matches(labels.Set(other.Labels)) {
		return false
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		value, there := of.Labels[key]
		return there && other.Labels[key] != value
	})
}

// spread is true if a node may have a pod by the pod's rules of spreading.
func (s *simulation) spread(on *host, pod *corev1.Pod) bool {
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		here, there := on.node.Labels[constraint.TopologyKey]
		if !there {
			return false
		}
		count := map[string]int{here: 0}
		for _, other := range s.with(on) {
			domain, there := other.node.Labels[constraint.TopologyKey]
			if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(other.node); err != nil || !there || !matches {
				continue
			}
			if _, known := count[domain]; !known {
				count[domain] = 0
			}
			for _, running := range other.pods {
				if running != pod && running.DeletionTimestamp == nil && running.Namespace == pod.Namespace && selected(constraint.LabelSelector, constraint.MatchLabelKeys, pod, running) {
					count[domain]++
				}
			}
		}
		after := count[here]
		if selected(constraint.LabelSelector, constraint.MatchLabelKeys, pod, pod) {
			after++
		}
		if after-slices.Min(slices.Collect(maps.Values(count))) > int(constraint.MaxSkew) {
			return false
		}
	}
	return true
}

// release takes pods from the present budgets. It is false if a budget does not allow all of them, or if one must not go at all.
func (s *simulation) release(pods []*corev1.Pod) bool {
	for i, pod := range pods {
		ok := !bound(pod)
		for at := range s.budgets {
			if one := &s.budgets[at]; one.covers(pod) {
				one.left--
				ok = ok && one.left >= 0
			}
		}
		if !ok {
			s.retain(pods[:i+1])
			return false
		}
	}
	return true
}

// retain undoes release.
func (s *simulation) retain(pods []*corev1.Pod) {
	for _, pod := range pods {
		for at := range s.budgets {
			if s.budgets[at].covers(pod) {
				s.budgets[at].left++
			}
		}
	}
}

func (b budget) covers(pod *corev1.Pod) bool {
	return b.namespace == pod.Namespace && b.selector.Matches(labels.Set(pod.Labels))
}
