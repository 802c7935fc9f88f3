package claimdata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/internal/wait"
)

const (
	// manager owns the fields that are set here.
	manager = "burano"
	// labelHolder is the label of pods that only have a volume mounted; its value is the run that made them.
	labelHolder = "burano.io/holds-for"
	// pauseImage is on every node: kubelets use it for the container that holds a pod's network.
	pauseImage = "registry.local/pause:1"
	// mounting is how long a volume may take to be mounted.
	mounting = 5 * time.Minute
)

// Claim is a claim whose volume can be read or filled.
type Claim struct {
	Namespace, Name string
	Volume          string // its PersistentVolume
	Class, Size     string
	Node            string // the node of the pods that use it; of an unused claim, the only node that can, or ""
	Pods            []Pod  // running pods that use it
	Mounted         string // uid of one of the pods
	// Object is the claim to create at a restore, as JSON.
	Object json.RawMessage
}

// String is the claim with its namespace.
func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// volume is the claim's volume, mounted for a pod.
func (c Claim) volume(pod string) Volume {
	return Volume{ID: c.Volume, Node: c.Node, Path: "/var/lib/kubelet/pods/" + pod + "/volumes/kubernetes.io~csi/" + c.Volume + "/mount"}
}

// Claims are the claims of a cluster that have volumes, without a pod's own, which go with the pod. unable are the claims that cannot be read, each with the reason.
func Claims(ctx context.Context, client kubernetes.Interface) (claims []Claim, unable map[string]string, err error) {
	list, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the claims: %w", err)
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the volumes: %w", err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods: %w", err)
	}
	backing := map[string]*corev1.PersistentVolume{}
	for i := range volumes.Items {
		backing[volumes.Items[i].Name] = &volumes.Items[i]
	}
	users := map[string][]*corev1.Pod{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				name := pod.Namespace + "/" + volume.PersistentVolumeClaim.ClaimName
				users[name] = append(users[name], pod)
			}
		}
	}
	unable = map[string]string{}
	for i := range list.Items {
		one := &list.Items[i]
		name := one.Namespace + "/" + one.Name
		ofPod := slices.ContainsFunc(one.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Pod" })
		if ofPod || one.DeletionTimestamp != nil || one.Status.Phase == corev1.ClaimPending {
			continue
		}
		volume := backing[one.Spec.VolumeName]
		switch {
		case volume == nil:
			unable[name] = "its volume " + one.Spec.VolumeName + " is not there"
		case volume.Spec.CSI == nil:
			unable[name] = "its volume is none of a storage class with a driver (CSI)"
		case one.Spec.VolumeMode != nil && *one.Spec.VolumeMode == corev1.PersistentVolumeBlock:
			unable[name] = "it is a block device, in which only its pods know what is what"
		default:
			claim, err := claimOf(one, volume, users[name])
			if err != nil {
				return nil, nil, err
			}
			claims = append(claims, claim)
		}
	}
	return claims, unable, nil
}

func claimOf(one *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, users []*corev1.Pod) (Claim, error) {
	size := one.Spec.Resources.Requests[corev1.ResourceStorage]
	claim := Claim{Namespace: one.Namespace, Name: one.Name, Volume: volume.Name, Class: volume.Spec.StorageClassName, Size: size.String(), Node: onlyNode(volume.Spec.NodeAffinity)}
	for _, pod := range users {
		claim.Pods = append(claim.Pods, Pod{UID: string(pod.UID), Node: pod.Spec.NodeName})
		claim.Node, claim.Mounted = pod.Spec.NodeName, string(pod.UID)
	}
	annotations := maps.Clone(one.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain == "pv.kubernetes.io" || domain == "volume.kubernetes.io" || domain == "volume.beta.kubernetes.io" || domain == "kubectl.kubernetes.io" || key == annotationFilled
	})
	anew := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name, Labels: one.Labels, Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: one.Spec.AccessModes, Resources: one.Spec.Resources, StorageClassName: &claim.Class, VolumeMode: one.Spec.VolumeMode}}
	var err error
	claim.Object, err = json.Marshal(anew)
	return claim, err
}

// onlyNode is the name of the only node that can use a volume, by its node affinity; "" where there are several, or no affinity.
func onlyNode(affinity *corev1.VolumeNodeAffinity) string {
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, one := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if one.Operator == corev1.NodeSelectorOpIn && len(one.Values) == 1 && one.Key == corev1.LabelHostname {
			return one.Values[0]
		}
	}
	return ""
}

// holderName is the name of the pod that mounts a claim.
func holderName(claim string) string {
	sum := sha256.Sum256([]byte(claim))
	return "burano-backup-" + hex.EncodeToString(sum[:6])
}

// holder is a pod that mounts a claim and does nothing, on the claim's former node, or else where its volume can be.
func holder(claim Claim, run string) *corev1.Pod {
	no, yes, user, grace := false, true, int64(65534), int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: holderName(claim.Name), Labels: map[string]string{labelHolder: run}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "holder", Image: pauseImage, ImagePullPolicy: corev1.PullIfNotPresent,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}},
		},
	}
	if claim.Node != "" { // node names follow from the model, so a restored cluster has the same ones
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{claim.Node}}}}}}}}
	}
	return pod
}

// mount has a pod mount an unused volume, and returns the mounted volume. RemoveHolders removes the pod.
func mount(ctx context.Context, client kubernetes.Interface, claim Claim, run string) (Volume, error) {
	wanted := holder(claim, run)
	pods := client.CoreV1().Pods(claim.Namespace)
	if _, err := pods.Create(ctx, wanted, metav1.CreateOptions{FieldManager: manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return Volume{}, fmt.Errorf("have the volume of claim %s mounted: %w", claim, err)
	}
	var mounted Volume
	err := wait.Policy{First: 100 * time.Millisecond, Most: time.Second, Growth: 1.5}.For(mounting).Until(ctx, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return wait.Again(fmt.Errorf("its pod %s is %s %s", pod.Name, pod.Status.Phase, stuck(pod)))
		}
		now, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		claim.Node, claim.Volume = pod.Spec.NodeName, now.Spec.VolumeName
		mounted = claim.volume(string(pod.UID))
		return nil
	})
	if err != nil {
		return Volume{}, fmt.Errorf("have the volume of claim %s mounted: %w", claim, err)
	}
	return mounted, nil
}

// stuck is Kubernetes' reason why a pod does not start.
func stuck(pod *corev1.Pod) string {
	for _, one := range pod.Status.Conditions {
		if one.Status == corev1.ConditionFalse && one.Message != "" {
			return "(" + one.Message + ")"
		}
	}
	return ""
}

// RemoveHolders removes the pods that mount volumes for backups, of all runs, and waits until they are gone.
func RemoveHolders(ctx context.Context, client kubernetes.Interface) error {
	return wait.Policy{First: 10 * time.Millisecond, Most: 300 * time.Millisecond, Growth: 2}.For(time.Minute).Until(ctx, func(ctx context.Context) error {
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: labelHolder})
		if err != nil {
			return fmt.Errorf("list the pods that have volumes mounted: %w", err)
		}
		for _, one := range list.Items {
			if one.DeletionTimestamp != nil {
				continue
			}
			if err := client.CoreV1().Pods(one.Namespace).Delete(ctx, one.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("remove pod %s/%s: %w", one.Namespace, one.Name, err)
			}
		}
		if len(list.Items) > 0 {
			return wait.Again(fmt.Errorf("pod %s/%s is not gone", list.Items[0].Namespace, list.Items[0].Name))
		}
		return nil
	})
}

// Mounted mounts the volumes of claims, also of unused ones, and returns them with the claims' pods.
func Mounted(ctx context.Context, client kubernetes.Interface, claims []Claim, run string) (volumes []Volume, pods []Pod, err error) {
	for _, claim := range claims {
		pods = append(pods, claim.Pods...)
		if claim.Mounted != "" {
			volumes = append(volumes, claim.volume(claim.Mounted))
			continue
		}
		one, err := mount(ctx, client, claim, run)
		if err != nil {
			return nil, nil, err
		}
		volumes = append(volumes, one)
	}
	slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Node+"/"+a.UID, b.Node+"/"+b.UID) })
	return volumes, slices.Compact(pods), nil
}

// annotationFilled is on claims that are made of a backup: its id, with a "+" behind it when all files are in the
// volume.
const annotationFilled = "burano.io/filled-from"

// Restored is the state of a claim that is made of a backup.
type Restored int

// The states of such a claim.
const (
	Absent  Restored = iota // no claim has its name
	Begun                   // it exists, and not all files are in its volume
	Filled                  // it exists, with all its files
	Foreign                 // a claim of its name exists that was not made of this backup
)

// Look finds out the state of a claim that is made of a backup.
func Look(ctx context.Context, client kubernetes.Interface, claim Claim, backup string) (Restored, error) {
	there, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Absent, nil
	case err != nil:
		return Absent, fmt.Errorf("look for claim %s: %w", claim, err)
	case there.Annotations[annotationFilled] == backup:
		return Begun, nil
	case there.Annotations[annotationFilled] == backup+"+":
		return Filled, nil
	}
	return Foreign, nil
}

// ForeignClaim is the error of a claim that cannot be made of a backup, because another one has its name.
type ForeignClaim struct{ Claim, Backup string }

func (f *ForeignClaim) Error() string {
	return fmt.Sprintf("there is a claim %s that was not made of backup %s, and is left as it is", f.Claim, f.Backup)
}

// Restore makes a claim of a backup, with its files, before any pod uses it. It goes on where an earlier call has ended early. open returns the archive of the files, as Copies.Read
// writes it.
func Restore(ctx context.Context, client kubernetes.Interface, nodes Nodes, claim Claim, backup string, open func(ctx context.Context) (io.ReadCloser, error), step Step) error {
	state, err := Look(ctx, client, claim, backup)
	if err != nil {
		return err
	}
	switch state {
	case Filled:
		return nil
	case Foreign:
		return &ForeignClaim{claim.String(), backup}
	case Absent:
		if err := step(ctx, "make claim "+claim.String(), func(ctx context.Context) error { return makeClaim(ctx, client, claim, backup) }); err != nil {
			return err
		}
	}
	return step(ctx, "fill claim "+claim.String(), func(ctx context.Context) error { return fillClaim(ctx, client, nodes, claim, backup, open) })
}

// fillClaim gives a claim its files, and notes that.
func fillClaim(ctx context.Context, client kubernetes.Interface, nodes Nodes, claim Claim, backup string, open func(ctx context.Context) (io.ReadCloser, error)) error {
	volume, err := mount(ctx, client, claim, backup)
	if err != nil {
		return err
	}
	content, err := open(ctx)
	if err != nil {
		return fmt.Errorf("read what was in claim %s: %w", claim, err)
	}
	err = Fill(ctx, nodes, volume, content)
	if err := errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("claim %s: %w", claim, err)
	}
	filled, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotationFilled: backup + "+"}}})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, filled, metav1.PatchOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("note that claim %s has its files: %w", claim, err)
	}
	return nil
}

// makeClaim makes a claim as it was, and its namespace if that is missing.
func makeClaim(ctx context.Context, client kubernetes.Interface, claim Claim, backup string) error {
	var object corev1.PersistentVolumeClaim
	if err := json.Unmarshal(claim.Object, &object); err != nil {
		return fmt.Errorf("read how claim %s was: %w", claim, err)
	}
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[annotationFilled] = backup
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace of claim %s: %w", claim, err)
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, &object, metav1.CreateOptions{FieldManager: manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make claim %s: %w", claim, err)
	}
	return nil
}
