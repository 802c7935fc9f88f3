package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
)

// applied is the metadata of an object that Burano has made for a pod under an id.
func applied(name, id string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: known.Namespace, Labels: map[string]string{LabelPod: id},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: kube.Manager, Operation: metav1.ManagedFieldsOperationApply}}}
}

func TestAPodTakesOverWhatAFormerEnvironmentHasLeft(t *testing.T) {
	select1 := &metav1.LabelSelector{MatchLabels: map[string]string{LabelPod: "former"}}
	others := &appsv1.Deployment{ObjectMeta: applied("other", "another"), Spec: appsv1.DeploymentSpec{Selector: select1}}
	client := fake.NewClientset(&appsv1.Deployment{ObjectMeta: applied("web", "former"), Spec: appsv1.DeploymentSpec{Selector: select1}}, others,
		&corev1.PersistentVolumeClaim{ObjectMeta: applied("web-db--data", "former")}, &corev1.Secret{ObjectMeta: applied("web-db-1", "former")}, &corev1.Service{ObjectMeta: applied("web-db", "former")},
		&corev1.PersistentVolumeClaim{ObjectMeta: applied("other-db--data", "another")})
	pod := podSpec{id: "p1", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}
	nobody := func(string) bool { return false }

	_, err := pod.FormerID(t.Context(), client, func(id string) bool { return id == "former" })
	require.Equal(t, fault.Conflict, fault.KindOf(err), "an object of the model has that id: %v", err)
	former, err := podSpec{id: "p2", name: "queue"}.FormerID(t.Context(), client, nobody)
	require.NoError(t, err)
	require.Empty(t, former, "there is no workload of that name")
	former, err = pod.FormerID(t.Context(), client, nobody)
	require.NoError(t, err)
	require.Equal(t, "former", former)

	adopted, err := pod.adopt(t.Context(), client, former)
	require.NoError(t, err)
	require.Equal(t, []string{"PersistentVolumeClaim web-db--data", "Secret web-db-1", "Service web-db", "Deployment web"}, adopted)
	there, err := pod.workloads(t.Context(), client)
	require.NoError(t, err)
	require.Len(t, there.claims, 1)
	require.Len(t, there.services, 1)
	require.Equal(t, []kube.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: known.Namespace, Name: "web"}}, there.unchangeable(pod.objects([]container{{application: "a", name: "db", image: "db:1"}})))
	there, err = podSpec{id: "another", name: "other"}.workloads(t.Context(), client)
	require.NoError(t, err)
	require.Len(t, there.claims, 1, "what another pod has stays with it")
	former, err = pod.FormerID(t.Context(), client, nobody)
	require.NoError(t, err)
	require.Empty(t, former, "it is done once")

	// What somebody else has made under the pod's name is left alone.
	meta := applied("web", "former")
	meta.ManagedFields[0].Manager = "kubectl"
	former, err = pod.FormerID(t.Context(), fake.NewClientset(&appsv1.Deployment{ObjectMeta: meta}), nobody)
	require.NoError(t, err)
	require.Empty(t, former)
}

func TestAJobThatHasRunDoesNotRunAgainUnderAnotherID(t *testing.T) {
	jobOf := func(pod podSpec, image string) *batchv1.Job {
		objects := pod.objects([]container{{application: "a", name: "migrate", image: image}})
		for _, object := range objects {
			if job, is := object.(*batchv1.Job); is {
				return job
			}
		}
		return nil
	}
	former := podSpec{id: "former", name: "migrate", options: podOptions{kind: kindJob}}
	now := podSpec{id: "p1", name: "migrate", options: podOptions{kind: kindJob}}
	for image, same := range map[string]bool{"db:1": true, "db:2": false} {
		is, err := now.sameJob(jobOf(former, "db:1"), jobOf(now, image))
		require.NoError(t, err)
		require.Equal(t, same, is, image)
	}
}
