package autoscale_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/autoscale"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110")}
}

// node is one of two processors that takes pods.
func node(name string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{Allocatable: resources("2", "4Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for _, one := range change {
		one(&n)
	}
	return n
}

// idleFor has a node be without need for so long.
func idleFor(d time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[autoscale.Unneeded] = now.Add(-d).Format(time.RFC3339) }
}

// pod wants some of a processor; on "" it waits for a node.
func pod(name, on, cpu string, change ...func(*corev1.Pod)) corev1.Pod {
	yes := true
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: &yes, UID: "set"}}},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if on == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient cpu."}}}
	}
	for _, one := range change {
		one(&p)
	}
	return p
}

func group(name string, minimum, maximum int, nodes ...string) autoscale.Group {
	return autoscale.Group{Name: name, Minimum: minimum, Maximum: maximum, Count: len(nodes), Nodes: nodes, After: 10 * time.Minute,
		Labels: map[string]string{"burano.io/group": name}, Allocatable: resources("2", "4Gi")}
}

// counts are the changes of groups, with the nodes that go.
func counts(d autoscale.Decision) (all []string) {
	for _, one := range d.Changes {
		all = append(all, fmt.Sprint(one.Group, " ", one.From, "→", one.Count, " ", one.Remove))
	}
	return all
}

func TestAGroupGrowsByWhatItsPodsNeed(t *testing.T) {
	onlyOn := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"burano.io/group": name} }
	}
	apart := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}
	port := func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = "DaemonSet", "daemons" }
	tainted := func(g autoscale.Group) autoscale.Group {
		g.Taints = []corev1.Taint{{Key: "batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		return g
	}
	for name, c := range map[string]struct {
		groups   []autoscale.Group
		nodes    []corev1.Node
		pods     []corev1.Pod
		want     []string
		helpless []string
	}{
		"nothing waits": {[]autoscale.Group{group("w", 0, 3)}, []corev1.Node{node("a")}, []corev1.Pod{pod("x", "a", "1")}, nil, nil},
		"as many nodes as pods need": {[]autoscale.Group{group("w", 1, 5, "w-1")}, []corev1.Node{node("w-1")},
			[]corev1.Pod{pod("x", "w-1", "1500m"), pod("y", "", "1500m"), pod("z", "", "1500m")}, []string{"w 1→3 []"}, nil},
		"small pods share a node": {[]autoscale.Group{group("w", 1, 5, "w-1")}, []corev1.Node{node("w-1")},
			[]corev1.Pod{pod("x", "w-1", "2"), pod("a", "", "500m"), pod("b", "", "500m"), pod("c", "", "1")}, []string{"w 1→2 []"}, nil},
		"from no node at all": {[]autoscale.Group{group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "1")}, []string{"w 0→1 []"}, nil},
		"no further than the maximum": {[]autoscale.Group{group("w", 0, 1)}, nil, []corev1.Pod{pod("x", "", "2"), pod("y", "", "2")}, []string{"w 0→1 []"},
			[]string{"default/y: w: it has its maximum of 1 nodes"}},
		"a pod that is too large": {[]autoscale.Group{group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "3")}, nil, []string{"default/x: w: it has not enough cpu"}},
		"what runs on every node takes its part": {[]autoscale.Group{group("w", 0, 5)}, []corev1.Node{node("a")}, []corev1.Pod{pod("d", "a", "100m", daemon), pod("x", "", "2")}, nil,
			[]string{"default/x: w: it has not enough cpu"}},
		"the group that the pod names":       {[]autoscale.Group{group("v", 0, 5), group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "1", onlyOn("w"))}, []string{"w 0→1 []"}, nil},
		"the group whose taint it tolerates": {[]autoscale.Group{tainted(group("v", 0, 5)), group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "1")}, []string{"w 0→1 []"}, nil},
		"a taint":                            {[]autoscale.Group{tainted(group("w", 0, 5))}, nil, []corev1.Pod{pod("x", "", "1")}, nil, nil},
		"a taint of one of two": {[]autoscale.Group{tainted(group("v", 0, 5)), group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "3")}, nil,
			[]string{"default/x: v: the pod does not tolerate the taint batch=yes:NoSchedule; w: it has not enough cpu"}},
		"the first of two that would do": {[]autoscale.Group{group("v", 0, 1), group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "2"), pod("y", "", "2")}, []string{"v 0→1 []", "w 0→1 []"}, nil},
		"one node each":                  {[]autoscale.Group{group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "100m", apart), pod("y", "", "100m", apart)}, []string{"w 0→2 []"}, nil},
		"one port each":                  {[]autoscale.Group{group("w", 0, 5)}, nil, []corev1.Pod{pod("x", "", "100m", port), pod("y", "", "100m", port)}, []string{"w 0→2 []"}, nil},
		"spread": {[]autoscale.Group{group("w", 0, 5, "w-1")}, []corev1.Node{node("w-1"), node("w-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
			[]corev1.Pod{pod("x", "w-1", "100m", spread), pod("y", "", "100m", spread), pod("z", "", "100m", spread)}, nil, nil},
		"a node that is not ready has no room": {[]autoscale.Group{group("w", 1, 5, "w-1")}, []corev1.Node{node("w-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })},
			[]corev1.Pod{pod("x", "", "1")}, []string{"w 1→2 []"}, nil},
		"room that is there is taken first": {[]autoscale.Group{group("w", 0, 5)}, []corev1.Node{node("a")}, []corev1.Pod{pod("x", "", "1")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := autoscale.Decide(autoscale.State{Now: now, Groups: c.groups, Nodes: c.nodes, Pods: c.pods})
			require.Equal(t, c.want, counts(d))
			var helpless []string
			for _, one := range d.Helpless {
				helpless = append(helpless, one.Pod+": "+one.Why)
			}
			require.Equal(t, c.helpless, helpless)
		})
	}
	d := autoscale.Decide(autoscale.State{Now: now, Groups: []autoscale.Group{group("w", 0, 5)}, Pods: []corev1.Pod{pod("x", "", "1"), pod("y", "", "1")}})
	require.Equal(t, "Group w grows from 0 to 1 nodes, because pods default/x, default/y find no room: 0/2 nodes are available: 2 Insufficient cpu", d.Changes[0].Reason)
}

func TestANodeGoesWhenNobodyHasNeededItForLongEnough(t *testing.T) {
	long := 20 * time.Minute
	bare := func(p *corev1.Pod) { p.OwnerReferences = nil }
	note := func(key, value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Annotations[key] = value } }
	volume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	}
	budget := func(left int32) []policyv1.PodDisruptionBudget {
		return []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: left}}}
	}
	two := []corev1.Node{node("w-1", idleFor(long)), node("w-2", idleFor(long))}
	for name, c := range map[string]struct {
		group    autoscale.Group
		nodes    []corev1.Node
		pods     []corev1.Pod
		budgets  []policyv1.PodDisruptionBudget
		want     []string
		unneeded int
	}{
		"empty for long":                {group("w", 0, 5, "w-1"), two[:1], nil, nil, []string{"w 1→0 [w-1]"}, 1},
		"not for long enough":           {group("w", 0, 5, "w-1"), []corev1.Node{node("w-1", idleFor(time.Minute))}, nil, nil, nil, 1},
		"since now":                     {group("w", 0, 5, "w-1"), []corev1.Node{node("w-1")}, nil, nil, nil, 1},
		"the minimum stays":             {group("w", 1, 5, "w-1", "w-2"), two, nil, nil, []string{"w 2→1 [w-2]"}, 1},
		"its pods fit elsewhere":        {group("w", 1, 5, "w-1", "w-2"), two, []corev1.Pod{pod("x", "w-1", "1"), pod("y", "w-2", "1")}, nil, []string{"w 2→1 [w-2]"}, 1},
		"they do not":                   {group("w", 1, 5, "w-1", "w-2"), two, []corev1.Pod{pod("x", "w-1", "1500m"), pod("y", "w-2", "1500m")}, nil, nil, 0},
		"two that fit on a third":       {group("w", 0, 5, "w-1", "w-2"), append(two[:2:2], node("a")), []corev1.Pod{pod("x", "w-1", "1"), pod("y", "w-2", "1")}, nil, []string{"w 2→0 [w-1 w-2]"}, 2},
		"only one of two fits":          {group("w", 0, 5, "w-1", "w-2"), append(two[:2:2], node("a")), []corev1.Pod{pod("x", "w-1", "1500m"), pod("y", "w-2", "1500m")}, nil, []string{"w 2→1 [w-2]"}, 1},
		"not safe to evict":             {group("w", 0, 5, "w-1"), append(two[:1:1], node("a")), []corev1.Pod{pod("x", "w-1", "1", note(autoscale.SafeToEvict, "false"))}, nil, nil, 0},
		"nobody makes it anew":          {group("w", 0, 5, "w-1"), append(two[:1:1], node("a")), []corev1.Pod{pod("x", "w-1", "1", bare)}, nil, nil, 0},
		"which does not matter":         {group("w", 0, 5, "w-1"), append(two[:1:1], node("a")), []corev1.Pod{pod("x", "w-1", "1", bare, note(autoscale.SafeToEvict, "true"))}, nil, []string{"w 1→0 [w-1]"}, 1},
		"it has a volume":               {group("w", 0, 5, "w-1"), append(two[:1:1], node("a")), []corev1.Pod{pod("x", "w-1", "1", volume)}, nil, nil, 0},
		"the budget is used up":         {group("w", 0, 5, "w-1"), append(two[:1:1], node("a")), []corev1.Pod{pod("x", "w-1", "1")}, budget(0), nil, 0},
		"the budget lets one go":        {group("w", 0, 5, "w-1", "w-2"), append(two[:2:2], node("a")), []corev1.Pod{pod("x", "w-1", "1"), pod("y", "w-2", "1")}, budget(1), []string{"w 2→1 [w-2]"}, 1},
		"somebody keeps the node":       {group("w", 0, 5, "w-1"), []corev1.Node{node("w-1", idleFor(long), func(n *corev1.Node) { n.Annotations[autoscale.Stays] = "true" })}, nil, nil, nil, 0},
		"a cordoned one is left":        {group("w", 0, 5, "w-1"), []corev1.Node{node("w-1", idleFor(long), func(n *corev1.Node) { n.Spec.Unschedulable = true })}, nil, nil, nil, 0},
		"none goes while one is wanted": {group("w", 0, 5, "w-1"), two[:1], []corev1.Pod{pod("x", "", "2"), pod("y", "", "2")}, nil, []string{"w 1→2 []"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := autoscale.Decide(autoscale.State{Now: now, Groups: []autoscale.Group{c.group}, Nodes: c.nodes, Pods: c.pods, Budgets: c.budgets})
			require.Equal(t, c.want, counts(d))
			require.Len(t, d.Unneeded, c.unneeded)
		})
	}
	held := autoscale.Decide(autoscale.State{Now: now, Groups: []autoscale.Group{group("w", 0, 5, "w-1", "w-2")}, Nodes: two, Held: map[string]bool{"w-2": true}})
	require.Equal(t, []string{"w 2→1 [w-1]"}, counts(held), "what is on the disk of the other one would be lost")
	d := autoscale.Decide(autoscale.State{Now: now, Groups: []autoscale.Group{group("w", 0, 5, "w-1", "w-2")}, Nodes: two})
	require.Equal(t, "Group w shrinks from 2 to 0 nodes, because w-1, w-2 were not needed for 10m0s: no pods run there but those of every node", d.Changes[0].Reason)
}

// TestWhatIsDecidedHolds: groups stay between their limits, pods whose nodes go have room, and a second look after a growth finds
// nothing more to do.
func TestWhatIsDecidedHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := autoscale.State{Now: now}
		var names []string
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			name := fmt.Sprintf("w-%d", i)
			names = append(names, name)
			state.Nodes = append(state.Nodes, node(name, idleFor(time.Duration(rapid.IntRange(0, 20).Draw(t, "idle"))*time.Minute)))
		}
		minimum := rapid.IntRange(0, len(names)).Draw(t, "minimum")
		own := group("w", minimum, len(names)+rapid.IntRange(0, 3).Draw(t, "more"), names...)
		state.Groups = []autoscale.Group{own}
		free := map[string]int{}
		for _, name := range names {
			free[name] = 2000
		}
		for i := range rapid.IntRange(0, 15).Draw(t, "pods") {
			cpu, on := rapid.IntRange(1, 20).Draw(t, "cpu")*100, ""
			if len(names) > 0 {
				on = rapid.SampledFrom(append(names, "")).Draw(t, "on")
			}
			if free[on] < cpu {
				on = ""
			}
			free[on] -= cpu
			state.Pods = append(state.Pods, pod(fmt.Sprintf("p-%d", i), on, fmt.Sprintf("%dm", cpu)))
		}
		d := autoscale.Decide(state)
		require.LessOrEqual(t, len(d.Changes), 1)
		for _, one := range d.Changes {
			require.GreaterOrEqual(t, one.Count, min(own.Minimum, own.Count))
			require.LessOrEqual(t, one.Count, own.Maximum)
			require.NotEqual(t, one.From, one.Count)
			after := autoscale.State{Now: now, Groups: []autoscale.Group{own}, Pods: state.Pods}
			after.Groups[0].Count, after.Groups[0].Nodes = one.Count, nil
			gone := map[string]bool{}
			for _, name := range one.Remove {
				gone[name] = true
			}
			for _, n := range state.Nodes {
				if !gone[n.Name] {
					after.Nodes = append(after.Nodes, n)
				}
			}
			for i := one.From; i < one.Count; i++ {
				after.Nodes = append(after.Nodes, node(fmt.Sprintf("new-%d", i)))
			}
			if len(gone) > 0 { // pods that waited before wait on
				after.Pods = nil
				for _, p := range state.Pods {
					switch on := p.Spec.NodeName; {
					case gone[on]:
						after.Pods = append(after.Pods, pod(p.Name, "", p.Spec.Containers[0].Resources.Requests.Cpu().String()))
					case on != "":
						after.Pods = append(after.Pods, p)
					}
				}
			}
			after.Groups[0].Minimum = one.Count // none goes
			again := autoscale.Decide(after)
			require.Empty(t, again.Changes)
			if len(gone) > 0 {
				require.Empty(t, again.Helpless)
			}
		}
	})
}
