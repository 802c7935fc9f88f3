package workloads

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/orchestrator/known"
)

func TestContainersThatEndAgainAndAgainAreFoundOnceForAllReplicas(t *testing.T) {
	pod := func(name string, restarts int32, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: known.Namespace, Labels: map[string]string{LabelPod: "p0d", "id": "web"}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", RestartCount: restarts, State: state,
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}}}
	}
	waits, runs := inState("CrashLoopBackOff", ""), corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	job := pod("job-1", 9, waits)
	job.Labels, job.Spec.RestartPolicy = map[string]string{LabelPod: "job"}, corev1.RestartPolicyNever
	leaving := pod("leaving", 9, waits)
	leaving.Labels, leaving.DeletionTimestamp, leaving.Finalizers = map[string]string{LabelPod: "leaving"}, new(metav1.Now()), []string{"test"}
	client := fake.NewClientset(pod("web-1", 7, waits), pod("web-2", 9, waits), job, leaving)
	last := func(_ context.Context, pod podSpec, one obstacle) (string, error) {
		return pod.id + " " + one.pod + " wrote this", nil
	}
	found, err := crashesIn(t.Context(), client, last)
	require.NoError(t, err)
	require.Equal(t, []Crash{{ObjectID: "p0d", Subject: "container web of pod web", Why: "container web of web-1: it ended with exit code 3 (Error), and was started again 7 times",
		LastLines: "p0d web-1 wrote this"}}, found)

	client = fake.NewClientset(pod("web-1", 1, waits), pod("web-2", 9, runs))
	found, err = crashesIn(t.Context(), client, last)
	require.NoError(t, err)
	require.Empty(t, found, "one has ended once, the other has come up again")
}
