package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// restoredBy is the annotation of a claim that Burano has made of a backup: which run of the action did.
	restoredBy = "burano.io/restored-by"
	// provisionedBy is Kubernetes' own annotation of volumes that a driver is to delete.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Claim is a claim with its volume.
type Claim struct {
	Namespace, Name string
	Class           string // its storage class; "" for none
	Volume          string // its PersistentVolume
	Handle          string // the back-end's name of the volume
	Reclaim         corev1.PersistentVolumeReclaimPolicy
	Modes           []corev1.PersistentVolumeAccessMode
	Mode            corev1.PersistentVolumeMode
	FileSystem      string
	Zone            string // of the nodes that can use it; "" for all
	MountOptions    []string
}

// String is the claim with its namespace.
func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// Claims are the claims that have volumes of a back-end.
func Claims(ctx context.Context, config *rest.Config, of Storage) ([]Claim, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return claimsOf(ctx, client, of)
}

func claimsOf(ctx context.Context, client kubernetes.Interface, of Storage) (list []Claim, err error) {
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at volumes: %w", err)
	}
	for _, one := range all.Items {
		from, by := one.Spec.CSI, one.Spec.ClaimRef
		if from == nil || from.Driver != of.Driver() || by == nil || one.Status.Phase != corev1.VolumeBound {
			continue
		}
		claim := Claim{Namespace: by.Namespace, Name: by.Name, Class: one.Spec.StorageClassName, Volume: one.Name, Handle: from.VolumeHandle, Reclaim: one.Spec.PersistentVolumeReclaimPolicy,
			Modes: one.Spec.AccessModes, Mode: corev1.PersistentVolumeFilesystem, FileSystem: from.FSType, Zone: zoneOf(one.Spec.NodeAffinity), MountOptions: one.Spec.MountOptions}
		if one.Spec.VolumeMode != nil {
			claim.Mode = *one.Spec.VolumeMode
		}
		list = append(list, claim)
	}
	return list, nil
}

// Released are the back-end's names of the volumes whose claims were deleted, and which their driver is to delete.
func Released(ctx context.Context, config *rest.Config, of Storage) (handles []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return releasedOf(ctx, client, of)
}

func releasedOf(ctx context.Context, client kubernetes.Interface, of Storage) (handles []string, err error) {
	// The volumes come first: a claim that is made meanwhile has none among them.
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at volumes: %w", err)
	}
	claims, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at claims: %w", err)
	}
	held := map[types.UID]bool{}
	for _, claim := range claims.Items {
		held[claim.UID] = claim.DeletionTimestamp == nil
	}
	for _, one := range all.Items {
		from, by := one.Spec.CSI, one.Spec.ClaimRef
		// A volume whose claim has no id yet waits for it.
		if from == nil || from.Driver != of.Driver() || by == nil || by.UID == "" || held[by.UID] || one.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		handles = append(handles, from.VolumeHandle)
	}
	return handles, nil
}

// zoneOf is the zone whose nodes alone can use a volume.
func zoneOf(affinity *corev1.VolumeNodeAffinity) string {
	if affinity == nil || affinity.Required == nil {
		return ""
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		for _, one := range term.MatchExpressions {
			if one.Key == CinderZone && len(one.Values) == 1 {
				return one.Values[0]
			}
		}
	}
	return ""
}

// ClaimExists is the error of a claim that is not made, because there is one of its name.
type ClaimExists struct{ Claim string }

func (c *ClaimExists) Error() string {
	return fmt.Sprintf("there is a claim %s, which is left as it is: delete it first, or restore into another name", c.Claim)
}

// CheckRestore finds out whether a run can make a claim: ClaimExists is the error when the name is taken by a claim of another maker. made is true when
// this run has made it.
func CheckRestore(ctx context.Context, config *rest.Config, claim Claim, run string) (made bool, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("make a client of the API server: %w", err)
	}
	return checkRestore(ctx, client, claim, run)
}

func checkRestore(ctx context.Context, client kubernetes.Interface, claim Claim, run string) (made bool, err error) {
	if _, err := client.CoreV1().Namespaces().Get(ctx, claim.Namespace, metav1.GetOptions{}); err != nil {
		return false, fmt.Errorf("look for the namespace of claim %s: %w", claim, err)
	}
	there, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for claim %s: %w", claim, err)
	case there.Annotations[restoredBy] != run:
		return false, &ClaimExists{claim.String()}
	}
	return true, nil
}

// MakeClaim makes a claim, of a run, with a volume of so many GiB that its back-end has already. It accepts the claim of an earlier call.
func MakeClaim(ctx context.Context, config *rest.Config, claim Claim, of Storage, gib int, run string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return makeClaim(ctx, client, claim, of, gib, run)
}

func makeClaim(ctx context.Context, client kubernetes.Interface, claim Claim, of Storage, gib int, run string) error {
	size := corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(gib)<<30, resource.BinarySI)}
	nodes := []corev1.NodeSelectorRequirement{{Key: CinderNode, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}}
	if claim.Zone != "" {
		nodes = append(nodes, corev1.NodeSelectorRequirement{Key: CinderZone, Operator: corev1.NodeSelectorOpIn, Values: []string{claim.Zone}})
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Volume, Annotations: map[string]string{provisionedBy: of.Driver()}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: claim.Modes, VolumeMode: &claim.Mode, PersistentVolumeReclaimPolicy: claim.Reclaim, StorageClassName: claim.Class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: of.Driver(), VolumeHandle: claim.Handle, FSType: claim.FileSystem}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name},
			MountOptions:           claim.MountOptions,
			NodeAffinity:           &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: nodes}}}},
		},
	}
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{FieldManager: Manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make volume %s: %w", claim.Volume, err)
	}
	object := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: claim.Namespace, Annotations: map[string]string{restoredBy: run}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: claim.Modes, VolumeMode: &claim.Mode, StorageClassName: &claim.Class, VolumeName: claim.Volume,
			Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}
	_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsAlreadyExists(err) {
		_, err = checkRestore(ctx, client, claim, run)
	}
	if err != nil {
		return fmt.Errorf("make claim %s: %w", claim, err)
	}
	return nil
}
