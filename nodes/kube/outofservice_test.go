package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

var offSince = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)

// withVolumes are the nodes a and b, and more objects; a has a volume.
func withVolumes(more ...runtime.Object) *fake.Clientset {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	objects := []runtime.Object{&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "a"}}}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: ready},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: offSince.Add(-time.Minute)}}})
	}
	return fake.NewClientset(append(objects, more...)...)
}

func taintsOf(t *testing.T, client *fake.Clientset, node string) []string {
	t.Helper()
	found, err := client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)
	list := []string{}
	for _, one := range found.Spec.Taints {
		list = append(list, one.ToString())
	}
	return list
}

const mark = "node.kubernetes.io/out-of-service=burano:NoExecute"

func TestANodeThatIsOffIsOutOfServiceUntilItsKubeletShowsItself(t *testing.T) {
	ctx, client := t.Context(), withVolumes(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "locked"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	marks := func(off, want []string) {
		t.Helper()
		got, err := outOfService(ctx, client, off, offSince)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	marks(nil, nil)
	marks([]string{"a", "gateway", "locked"}, []string{"a"})
	require.Equal(t, []string{mark}, taintsOf(t, client, "a"))
	require.Empty(t, taintsOf(t, client, "b"))
	require.Empty(t, taintsOf(t, client, "locked"), "it has nothing, and gets nothing")
	require.NoError(t, client.StorageV1().VolumeAttachments().Delete(ctx, "v", metav1.DeleteOptions{}))
	marks([]string{"a"}, []string{"a"})
	marks(nil, []string{"a"}) // it is on, and still counts as ready, as before it went off
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: offSince.Add(time.Minute)}
	_, err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx, lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	node, err := client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	require.NoError(t, err)
	marks(nil, []string{"a"}) // it is on, and not ready yet
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	require.NoError(t, err)
	marks(nil, nil)
	require.Empty(t, taintsOf(t, client, "a"))
}

func TestANodeWithoutVolumesThatIsOffLosesItsPodsAtOnce(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: "b"}}
	client := withVolumes(pod)
	marked, err := outOfService(t.Context(), client, []string{"b"}, offSince)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, marked)
	require.Equal(t, []string{mark}, taintsOf(t, client, "b"))
	_, err = client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}

func TestAMarkThatSomebodyElseHasSetIsTheirs(t *testing.T) {
	theirs := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	client := withVolumes(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{theirs}}})
	for _, off := range [][]string{nil, {"c"}} {
		got, err := outOfService(t.Context(), client, off, offSince)
		require.NoError(t, err)
		require.Empty(t, got)
		require.Equal(t, []string{theirs.ToString()}, taintsOf(t, client, "c"))
	}
}

func TestPodsOfANodeThatIsOffAreDeletedUnlessTheyTolerateIt(t *testing.T) {
	pod := func(name, node string, tolerations ...corev1.Toleration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node, Tolerations: tolerations}}
	}
	client := withVolumes(pod("data", "a", corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists}),
		pod("agent", "a", corev1.Toleration{Operator: corev1.TolerationOpExists}))
	_, err := outOfService(t.Context(), client, []string{"a"}, offSince)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("default").Get(t.Context(), "data", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	_, err = client.CoreV1().Pods("default").Get(t.Context(), "agent", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestANodeThatADeploymentHasBroughtBackIsInService(t *testing.T) {
	for name, taints := range map[string][]any{
		"Burano's mark goes, and others stay": {map[string]any{"key": "disk", "value": "slow", "effect": "NoSchedule"},
			map[string]any{"key": corev1.TaintNodeOutOfService, "value": "burano", "effect": "NoExecute"}},
		"somebody's mark stays": {map[string]any{"key": corev1.TaintNodeOutOfService, "value": "nodeshutdown", "effect": "NoExecute"}},
		"there is none":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			node := map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "resourceVersion": "7"}, "spec": map[string]any{"taints": taints}}
			config, now, changes := oneNode(t, node)
			require.NoError(t, InService(t.Context(), config, &unstructured.Unstructured{Object: node}))
			if len(taints) == 2 {
				require.Equal(t, []corev1.Taint{{Key: "disk", Value: "slow", Effect: corev1.TaintEffectNoSchedule}}, now().Spec.Taints)
				require.Equal(t, 1, *changes)
				return
			}
			require.Len(t, now().Spec.Taints, len(taints))
			require.Zero(t, *changes)
		})
	}
}
