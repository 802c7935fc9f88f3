package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAClaimIsMadeWithAVolumeThatIsThere(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	claim := Claim{Namespace: "shop", Name: "data", Class: "cinder", Volume: "restored-1", Handle: "id", Reclaim: corev1.PersistentVolumeReclaimDelete, Modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Mode: corev1.PersistentVolumeFilesystem, FileSystem: "ext4", Zone: "west", MountOptions: []string{"noatime"}}
	made, err := checkRestore(t.Context(), client, claim, "run")
	require.NoError(t, err)
	require.False(t, made)
	for range 2 { // also when its first answer was not heard
		require.NoError(t, makeClaim(t.Context(), client, claim, Cinder, 2, "run"))
	}
	made, err = checkRestore(t.Context(), client, claim, "run")
	require.NoError(t, err)
	require.True(t, made)
	volume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "restored-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "2Gi", volume.Spec.Capacity.Storage().String())
	volume.Status.Phase = corev1.VolumeBound
	_, err = client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	require.NoError(t, err)
	list, err := claimsOf(t.Context(), client, Cinder)
	require.NoError(t, err)
	require.Equal(t, []Claim{claim}, list)

	var exists *ClaimExists
	_, err = checkRestore(t.Context(), client, claim, "another run")
	require.ErrorAs(t, err, &exists)
	require.ErrorContains(t, err, "there is a claim shop/data, which is left as it is")
	require.ErrorAs(t, makeClaim(t.Context(), client, claim, Cinder, 2, "another run"), &exists)
	claim.Namespace = "nowhere"
	_, err = checkRestore(t.Context(), client, claim, "run")
	require.ErrorContains(t, err, "look for the namespace of claim nowhere/data")
}

func TestVolumesOfDeletedClaimsAreReleased(t *testing.T) {
	now := metav1.Now()
	claim := func(name string, deleted *metav1.Time) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), DeletionTimestamp: deleted, Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	}
	volume := func(name, claim string, policy corev1.PersistentVolumeReclaimPolicy, driver string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{UID: types.UID(claim)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}}}
	}
	remove, retain := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain
	client := fake.NewClientset(claim("bound", nil), claim("ends", &now), volume("bound", "bound", remove, Cinder.Driver()), volume("ends", "ends", remove, Cinder.Driver()),
		volume("gone", "gone", remove, Cinder.Driver()), volume("retained", "gone", retain, Cinder.Driver()), volume("local", "gone", remove, Local.Driver()), volume("awaited", "", remove, Cinder.Driver()))
	released, err := releasedOf(t.Context(), client, Cinder)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ends", "gone"}, released)
}
