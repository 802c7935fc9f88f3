package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAttachmentsAreReadAndEnded(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: CinderDriver, VolumeHandle: "v"}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/cinder.burano.io^v"}}}
	name := "pvc-1"
	attached := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", ResourceVersion: "7"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: CinderDriver, NodeName: "a",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}
	other := attached.DeepCopy()
	other.Name, other.Spec.Attacher = "csi-2", "another"
	client := fake.NewClientset(volume, node, attached, other)
	found, err := attachmentsOf(t.Context(), client, Cinder)
	require.NoError(t, err)
	require.Equal(t, Attachments{List: []Attachment{{Name: "csi-1", Volume: "pvc-1", Handle: "v", Node: "a", Done: true, Version: "7"}},
		Volumes: map[string]Volume{"v": {Name: "pvc-1", Handle: "v", Claim: "default/data"}}, InUse: map[string]map[string]bool{"a": {"v": true}}}, found)

	require.NoError(t, attachAgain(t.Context(), client, found.List[0]))
	now, err := client.StorageV1().VolumeAttachments().Get(t.Context(), "csi-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.False(t, now.Status.Attached)

	require.NoError(t, endAttachment(t.Context(), client, Cinder, found.Volumes["v"], "b"))
	var made []string
	for _, action := range client.Actions() {
		if action.GetVerb() == "create" || action.GetVerb() == "delete" {
			made = append(made, action.GetVerb())
		}
	}
	require.Equal(t, []string{"create", "delete"}, made)
	require.Equal(t, "external-attacher/cinder-burano-io", attacherFinalizer(Cinder))
	// https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/volume/csi/csi_attacher.go: the SHA-256 sum of "vcinder.burano.iob".
	require.Equal(t, "csi-", attachmentName(Cinder, "v", "b")[:4])
	require.Len(t, attachmentName(Cinder, "v", "b"), 68)

	// Of one that Kubernetes has recorded in the meantime nothing is deleted.
	recorded := attached.DeepCopy()
	recorded.Name = attachmentName(Cinder, "v", "c")
	_, err = client.StorageV1().VolumeAttachments().Create(t.Context(), recorded, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, endAttachment(t.Context(), client, Cinder, found.Volumes["v"], "c"))
	_, err = client.StorageV1().VolumeAttachments().Get(t.Context(), recorded.Name, metav1.GetOptions{})
	require.NoError(t, err)
}
