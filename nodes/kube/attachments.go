package kube

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Attachment is a VolumeAttachment: Kubernetes' record that a volume is, or is to be, attached to a node.
type Attachment struct {
	Name    string
	Volume  string // its PersistentVolume
	Handle  string // what the back-end calls that; "" where there is no such PersistentVolume
	Node    string
	Done    bool // the controllers have attached it
	Ending  bool // it is being detached
	Version string
}

// Attachments are what a cluster records of attached volumes of a back-end.
type Attachments struct {
	List    []Attachment
	Volumes map[string]Volume          // all of the back-end, by what it calls them
	InUse   map[string]map[string]bool // by nodes: the volumes, as the back-end calls them, that their kubelets say are in use
}

// AttachmentsOf reads what a cluster records of attached volumes of a back-end.
func AttachmentsOf(ctx context.Context, config *rest.Config, of Storage) (Attachments, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Attachments{}, fmt.Errorf("make a client of the API server: %w", err)
	}
	return attachmentsOf(ctx, client, of)
}

func attachmentsOf(ctx context.Context, client kubernetes.Interface, of Storage) (found Attachments, err error) {
	volumes, err := volumesOf(ctx, client, of)
	if err != nil {
		return found, err
	}
	found.Volumes, found.InUse = map[string]Volume{}, map[string]map[string]bool{}
	handles := map[string]string{}
	for _, one := range volumes {
		found.Volumes[one.Handle], handles[one.Name] = one, one.Handle
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return found, fmt.Errorf("look at nodes: %w", err)
	}
	for _, node := range nodes.Items {
		found.InUse[node.Name] = map[string]bool{}
		for handle := range found.Volumes {
			for _, used := range node.Status.VolumesInUse {
				if used == corev1.UniqueVolumeName("kubernetes.io/csi/"+of.Driver()+"^"+handle) {
					found.InUse[node.Name][handle] = true
				}
			}
		}
	}
	all, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return found, fmt.Errorf("look at what is attached: %w", err)
	}
	for _, one := range all.Items {
		if one.Spec.Attacher != of.Driver() || one.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		volume := *one.Spec.Source.PersistentVolumeName
		found.List = append(found.List, Attachment{Name: one.Name, Volume: volume, Handle: handles[volume], Node: one.Spec.NodeName, Done: one.Status.Attached, Ending: one.DeletionTimestamp != nil,
			Version: one.ResourceVersion})
	}
	return found, nil
}

// AttachAgain has the controllers attach a volume that an Attachment says is attached already, unless that was changed since it was read.
func AttachAgain(ctx context.Context, config *rest.Config, attachment Attachment) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return attachAgain(ctx, client, attachment)
}

func attachAgain(ctx context.Context, client kubernetes.Interface, attachment Attachment) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"attached":false}}`, attachment.Version)
	_, err := client.StorageV1().VolumeAttachments().Patch(ctx, attachment.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("have volume %s attached to %s again: %w", attachment.Volume, attachment.Node, err)
	}
	return nil
}

// EndAttachment has the controllers detach a volume from a node, also where Kubernetes has no record that it is attached there: then it gets one first, under
// the name that Kubernetes itself gives it, so that both never work against each other.
func EndAttachment(ctx context.Context, config *rest.Config, of Storage, volume Volume, node string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return endAttachment(ctx, client, of, volume, node)
}

func endAttachment(ctx context.Context, client kubernetes.Interface, of Storage, volume Volume, node string) error {
	name := attachmentName(of, volume.Handle, node)
	attachment := &storagev1.VolumeAttachment{
		// The finalizer is that of the controllers, which take it away when the volume is detached: without it the object would be gone before they see it.
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{attacherFinalizer(of)}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: of.Driver(), NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name}},
	}
	made, err := client.StorageV1().VolumeAttachments().Create(ctx, attachment, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsAlreadyExists(err) {
		return nil // Kubernetes knows of it by now
	}
	if err != nil {
		return fmt.Errorf("record that volume %s is attached to %s: %w", volume.Name, node, err)
	}
	return deleteAttachment(ctx, client, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))})
}

// ForgetAttachment deletes the record of an attachment; the controllers detach the volume first where it is attached.
func ForgetAttachment(ctx context.Context, config *rest.Config, attachment Attachment) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return deleteAttachment(ctx, client, attachment.Name, metav1.DeleteOptions{})
}

func deleteAttachment(ctx context.Context, client kubernetes.Interface, name string, options metav1.DeleteOptions) error {
	if err := client.StorageV1().VolumeAttachments().Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete VolumeAttachment %s: %w", name, err)
	}
	return nil
}

// attachmentName is the name that Kubernetes gives a VolumeAttachment (pkg/volume/csi, getAttachmentName).
func attachmentName(of Storage, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+of.Driver()+node)))
}

// attacherFinalizer is that of external-attacher (pkg/controller, GetFinalizerName).
func attacherFinalizer(of Storage) string {
	return "external-attacher/" + strings.ReplaceAll(of.Driver(), ".", "-")
}
