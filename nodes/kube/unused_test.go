package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestClaimsThatNothingMountsAreUnused(t *testing.T) {
	claim := func(name string, day int, labels map[string]string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels, CreationTimestamp: metav1.NewTime(time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC))}}
	}
	mounting := func(name string) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}}
	}
	meta := metav1.ObjectMeta{Name: "web", Namespace: "default"}
	ours := map[string]string{LabelObject: "p1"}
	none := int32(0)
	client := fake.NewClientset(claim("late", 2, ours), claim("early", 1, ours), claim("theirs", 1, nil), claim("deployed", 1, ours), claim("run", 1, ours), claim("scheduled", 1, ours), claim("data-web-3", 1, ours),
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &none, Template: corev1.PodTemplateSpec{Spec: mounting("deployed")}}},
		&corev1.Pod{ObjectMeta: meta, Spec: mounting("run")},
		&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: mounting("scheduled")}}}}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}})
	unused, err := unusedClaims(t.Context(), client)
	require.NoError(t, err)
	var names []string
	for _, one := range unused {
		names = append(names, one.Name)
	}
	require.Equal(t, []string{"early", "late"}, names)
}
