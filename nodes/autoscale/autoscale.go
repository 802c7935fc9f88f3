// Package autoscale decides by the rules of Kubernetes' scheduler which groups of nodes grow for pods without room, and which of their nodes are not
// needed. It works on its input alone and changes nothing.
package autoscale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of nodes and pods; the foreign ones belong to Kubernetes' own autoscaler
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md).
const (
	// Unneeded is since when (RFC 3339) a node is not needed.
	Unneeded = "burano.io/unneeded-since"
	// Stays ("true") keeps a node.
	Stays = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// SafeToEvict ("false") keeps the node of a pod; "true" gives up a pod that no controller makes again.
	SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// Group is a number of nodes that are alike, and may become more or fewer.
type Group struct {
	Name                    string
	Minimum, Maximum, Count int
	// Nodes are the names of its nodes.
	Nodes []string
	// After is how long an unneeded node is kept.
	After time.Duration
	// Labels and Taints are the ones of its nodes, and Allocatable is the room for pods on a new one; nil where it is not known.
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable corev1.ResourceList
}

// State is a cluster at a moment, with the groups that may change. Of two groups that would do, the first one grows.
type State struct {
	Now    time.Time
	Groups []Group
	Nodes  []corev1.Node
	// Held are names of nodes that stay, because the data on their disks would be lost with them.
	Held    map[string]bool
	Pods    []corev1.Pod
	Budgets []policyv1.PodDisruptionBudget
}

// Change is the change of a group.
type Change struct {
	Group  string
	From   int
	Count  int      // nodes that it is to have
	Remove []string // names of nodes that go
	Reason string   // for people: a sentence without its full stop
}

// Helpless is a pod that may be on nodes of a group and finds no room, which no group can give.
type Helpless struct {
	Pod string // with its namespace
	Why string // the reason, of each group
}

// Decision is the result of Decide.
type Decision struct {
	// Changes are of groups that grow or, where none does, of groups that shrink.
	Changes  []Change
	Helpless []Helpless
	// Unneeded are the nodes of groups that are not needed, with since when.
	Unneeded map[string]time.Time
}

// NeedsRoom is true if a pod waits because the scheduler has found no node for it.
func NeedsRoom(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending || pod.Status.NominatedNodeName != "" || ofDaemonSet(pod) ||
		pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// Decide returns the changes of the groups.
func Decide(state State) Decision {
	s := newSimulation(state)
	decision := Decision{Unneeded: map[string]time.Time{}}
	decision.Changes, decision.Helpless = s.grow(state)
	if len(decision.Changes) == 0 {
		decision.Changes, decision.Unneeded = s.shrink(state)
	}
	return decision
}

// grow places the pods that wait on nodes that are there or could be.
func (s *simulation) grow(state State) (changes []Change, helpless []Helpless) {
	var waiting []*corev1.Pod
	for i := range state.Pods {
		if NeedsRoom(&state.Pods[i]) {
			waiting = append(waiting, &state.Pods[i])
		}
	}
	slices.SortStableFunc(waiting, func(a, b *corev1.Pod) int {
		x, y := s.requests(a), s.requests(b)
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(y[corev1.ResourceCPU], x[corev1.ResourceCPU]),
			cmp.Compare(y[corev1.ResourceMemory], x[corev1.ResourceMemory]), cmp.Compare(nameOf(a), nameOf(b)))
	})
	made, given := make([]int, len(state.Groups)), make([][]*corev1.Pod, len(state.Groups))
	for _, pod := range waiting {
		if s.place(pod) {
			continue // the scheduler is about to, or one of the new nodes has room for it
		}
		var why []string
		meant := false // for one of the groups
		for i, group := range state.Groups {
			fresh := s.template(state, group, made[i])
			said := unsuited(fresh, pod)
			meant = meant || said == ""
			switch {
			case said != "":
			case group.Allocatable == nil:
				said = "how large its nodes are is not known"
			default:
				said = s.refuses(fresh, pod)
			}
			if said == "" && group.Count+made[i] >= group.Maximum {
				said = fmt.Sprintf("it has its maximum of %d nodes", group.Maximum)
			}
			if said == "" {
				s.hosts = append(s.hosts, fresh)
				s.put(pod, fresh)
				made[i]++
				break
			}
			why = append(why, group.Name+": "+said)
		}
		if meant && len(why) == len(state.Groups) {
			helpless = append(helpless, Helpless{nameOf(pod), strings.Join(why, "; ")})
		}
	}
	for _, host := range s.hosts {
		if host.group == "" {
			continue
		}
		at := slices.IndexFunc(state.Groups, func(g Group) bool { return g.Name == host.group })
		given[at] = append(given[at], host.pods...)
	}
	for i, group := range state.Groups {
		if made[i] == 0 {
			continue
		}
		count := group.Count + made[i]
		changes = append(changes, Change{Group: group.Name, From: group.Count, Count: count,
			Reason: fmt.Sprintf("Group %s grows from %d to %d nodes, because %s: %s", group.Name, group.Count, count, findNoRoom(given[i]), unscheduled(given[i][0]))})
	}
	return changes, helpless
}

// shrink finds nodes whose pods have room on others, and among them the nodes that were unneeded for long enough.
func (s *simulation) shrink(state State) (changes []Change, unneeded map[string]time.Time) {
	unneeded = map[string]time.Time{}
	type candidate struct {
		*host
		group *Group
		since time.Time
	}
	var candidates []candidate
	spare := map[string]int{}
	for i := range state.Groups {
		group := &state.Groups[i]
		spare[group.Name] = group.Count - group.Minimum
		for _, host := range s.hosts {
			if slices.Contains(group.Nodes, host.node.Name) && host.node.Annotations[Stays] != "true" && !state.Held[host.node.Name] {
				since, _ := time.Parse(time.RFC3339, host.node.Annotations[Unneeded])
				if since.IsZero() || since.After(state.Now) { // the latter of a clock that was wrong
					since = state.Now
				}
				candidates = append(candidates, candidate{host, group, since})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(b.free[corev1.ResourceCPU], a.free[corev1.ResourceCPU]), cmp.Compare(b.node.Name, a.node.Name))
	})
	removed, pods := map[string][]string{}, map[string]int{}
	for _, one := range candidates {
		if spare[one.group.Name] <= 0 {
			continue
		}
		moved, ok := s.empty(one.host)
		if !ok {
			continue
		}
		spare[one.group.Name]--
		unneeded[one.node.Name] = one.since
		if state.Now.Sub(one.since) >= one.group.After {
			removed[one.group.Name] = append(removed[one.group.Name], one.node.Name)
			pods[one.group.Name] += moved
		}
	}
	for _, group := range state.Groups {
		names := removed[group.Name]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		reason := fmt.Sprintf("Group %s shrinks from %d to %d nodes, because %s not needed for %s: ", group.Name, group.Count, group.Count-len(names),
			plural(names, "was", "were"), group.After)
		if moved := pods[group.Name]; moved == 0 {
			reason += "no pods run there but those of every node"
		} else {
			reason += fmt.Sprintf("the pods there (%d) have room on other nodes", moved)
		}
		changes = append(changes, Change{Group: group.Name, From: group.Count, Count: group.Count - len(names), Remove: names, Reason: reason})
	}
	return changes, unneeded
}

// empty moves the pods of a node to others, and returns how many there were; it changes nothing where that is not possible.
func (s *simulation) empty(from *host) (moved int, ok bool) {
	var movable []*corev1.Pod
	for _, pod := range from.pods {
		if !staysOn(pod) && pod.DeletionTimestamp == nil {
			movable = append(movable, pod)
		}
	}
	if !s.release(movable) {
		return 0, false
	}
	at := slices.Index(s.hosts, from)
	s.hosts = slices.Delete(s.hosts, at, at+1)
	for _, pod := range movable {
		from.remove(pod, s.requests(pod))
	}
	for i, pod := range movable {
		if s.place(pod) {
			continue
		}
		for _, undone := range movable[:i] {
			s.at[undone].remove(undone, s.requests(undone))
		}
		s.hosts = slices.Insert(s.hosts, at, from)
		for _, pod := range movable {
			s.put(pod, from)
		}
		s.retain(movable)
		return 0, false
	}
	return len(movable), true
}

// staysOn is true if a pod goes with its node: pods of DaemonSets and of the kubelet's own files.
func staysOn(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || ofDaemonSet(pod)
}

func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// bound is true if a pod must not be moved.
func bound(pod *corev1.Pod) bool {
	switch safe := pod.Annotations[SafeToEvict]; {
	case safe == "false":
		return true
	case metav1.GetControllerOf(pod) == nil && safe != "true": // no controller would make it again
		return true
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// findNoRoom names the first pods.
func findNoRoom(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, nameOf(pod))
	}
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more pods find no room", strings.Join(names[:most], ", "), more)
	}
	if len(names) == 1 {
		return "pod " + names[0] + " finds no room"
	}
	return "pods " + strings.Join(names, ", ") + " find no room"
}

// unscheduled is the scheduler's message about a pod.
func unscheduled(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return strings.TrimSuffix(condition.Message, ".")
		}
	}
	return ""
}

// plural is "a was", or "a, b were".
func plural(names []string, one, several string) string {
	if len(names) == 1 {
		return names[0] + " " + one
	}
	return strings.Join(names, ", ") + " " + several
}
