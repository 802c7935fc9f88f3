package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/autoscale"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/scaling"
)

type closing func()

func (c closing) Close() error { c(); return nil }

// following is a cluster with a group between 1 and 3, whose load is that of a false Kubernetes.
func following(t *testing.T, minimum any) (*loads, *keeper.Environment, *fake.Clientset, *followed) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "workers-1", Labels: map[string]string{known.LabelGroup: "workers"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	client := fake.NewClientset(node)
	one := &followed{client: client, live: closing(func() {}), flavors: map[string]*openstack.FlavorChoice{}, record: scaling.GroupRecord{Groups: map[string]scaling.ScaledGroup{}}, known: known.Facts{
		Nodes: []nodes.Node{{Name: "workers-1", Role: nodes.Minion, Elastic: true, Settings: kube.Settings{Labels: map[string]string{known.LabelGroup: "workers"}}}}}}
	l := newLoads(Config{Interval: time.Minute})
	l.open = func(context.Context, string, *desired.Cluster, *followed) (*followed, error) { return one, nil }
	var properties map[string]any
	text, err := json.Marshal(map[string]any{"name": "kube", "minionNodes": []any{map[string]any{"instance": map[string]any{"flavor": "m1"}}},
		"minionGroups": []any{map[string]any{"name": "workers", "minimum": minimum, "maximum": 3, "count": 1, "scaleDownAfter": 3600}}})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &properties))
	environment := &keeper.Environment{ID: "e", Name: "demo", Clusters: []*desired.Cluster{stored(t, "c", properties)},
		Project: func(context.Context, string) (*openstack.Project, error) { return nil, nil }}
	return l, environment, client, one
}

// waits makes a pod that finds no room.
func waits(t *testing.T, client *fake.Clientset, name, processors string) {
	yes := true
	_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: &yes}}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(processors)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestAClusterWithoutGroupsThatFollowTheirLoadIsAskedNothing(t *testing.T) {
	l, environment, client, _ := following(t, nil)
	result, err := l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, keeper.Result{}, result)
	require.Empty(t, client.Actions())
}

func TestAGroupThatIsTooSmallIsFound(t *testing.T) {
	l, environment, client, one := following(t, 1)
	result, err := l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Empty(t, result.Findings)
	require.Equal(t, loadPause, result.Next)
	client.ClearActions()
	_, err = l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Len(t, client.Actions(), 1, "whether pods wait")

	waits(t, client, "a", "2")
	waits(t, client, "b", "2")
	result, err = l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"info group-too-small workers: 2"}, kinds(result.Findings), "one of the two has room on the node that is there")
	require.Equal(t, &keeper.Repair{ObjectID: "c", Method: known.ScaleByLoad, Cloud: true, Routine: true, Text: "Groups of cluster kube follow their load"}, result.Findings[0].Repair)

	look := func() keeper.Finding {
		t.Helper()
		result, err := l.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Nil(t, result.Findings[0].Repair)
		return result.Findings[0]
	}
	environment.Failed = true
	require.Contains(t, look().Mends, "its newest deployment failed")
	environment.Failed, one.upgrades = false, true
	require.Contains(t, look().Mends, "upgrade")
	one.upgrades = false
	environment.Project = func(context.Context, string) (*openstack.Project, error) { return nil, keeper.ErrNoDelegation }
	require.Contains(t, look().Mends, "burano environment delegation set demo")

	waits(t, client, "c", "8")
	result, err = l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"warning group-too-small workers: 2", "warning pods-without-room "}, kinds(result.Findings))
	require.Contains(t, result.Findings[1].Text, "default/c (workers: it has not enough cpu)")
}

func TestANodeThatNobodyNeedsIsNotedAndThenFound(t *testing.T) {
	l, environment, client, one := following(t, 0)
	since := func() string {
		node, err := client.CoreV1().Nodes().Get(t.Context(), "workers-1", metav1.GetOptions{})
		require.NoError(t, err)
		return node.Annotations[autoscale.Unneeded]
	}
	result, err := l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Empty(t, result.Findings)
	require.NotEmpty(t, since())

	environment.Clusters[0].Groups[0].After = 0
	one.whole = time.Time{}
	result, err = l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"info group-too-large workers: 0"}, kinds(result.Findings))

	least := 1
	environment.Clusters[0].Groups[0].Minimum = &least
	result, err = l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Empty(t, result.Findings)
	require.Empty(t, since(), "it is needed, because there must be one")
}

func TestALoadThatCannotBeFoundOutIsSaid(t *testing.T) {
	l, environment, _, _ := following(t, 1)
	l.open = func(context.Context, string, *desired.Cluster, *followed) (*followed, error) {
		return nil, errors.New("no master answers")
	}
	result, err := l.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"info load-unknown "}, kinds(result.Findings))
	require.Equal(t, loadPause, result.Next)
}
