package claimdata

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/burano/burano/nodes/claimdata/claimdatatest"
)

var (
	volumes = []Volume{{ID: "pv-1", Node: "n1", Path: "/a"}, {ID: "pv-2", Node: "n2", Path: "/b"}}
	pods    = []Pod{{UID: "u1", Node: "n1"}, {UID: "u3", Node: "n3"}}
)

func TestNothingIsCopiedBeforeAllPodsStandStillAndNoneGoesOnBeforeAllIsCopied(t *testing.T) {
	nodes := &claimdatatest.Nodes{Files: map[string]string{"/a": "one", "/b": "two"}}
	copies, err := Copy(t.Context(), nodes, "run", volumes, pods, claimdatatest.Step)
	require.NoError(t, err)
	last := func(word string) (found int) {
		for i, said := range nodes.Said {
			if strings.HasSuffix(said, word) {
				found = i
			}
		}
		return found
	}
	first := func(word string) int {
		return slices.IndexFunc(nodes.Said, func(said string) bool { return strings.HasSuffix(said, word) })
	}
	require.Less(t, last("held"), first("< copy"), nodes.Said)
	require.Less(t, last("complete"), first("< release"), nodes.Said)
	require.Len(t, nodes.Said, 3*4+2, "each of three nodes said and heard it all: %v", nodes.Said)
	require.Equal(t, map[string]int64{"pv-1": 3, "pv-2": 3}, copies.Bytes)

	nodes.Files["/a"] = "later"
	var read strings.Builder
	require.NoError(t, copies.Read(t.Context(), "pv-1", &read))
	require.Equal(t, "one", read.String())
	require.NoError(t, copies.Drop(t.Context()))
	require.Empty(t, nodes.Left())
}

func TestAllPodsGoOnWhereOneNodeFails(t *testing.T) {
	for _, word := range []string{"held", "complete", "copied pv-1 3"} {
		nodes := &claimdatatest.Nodes{Files: map[string]string{"/a": "one", "/b": "two"}}
		nodes.Fails = func(node, said string) error {
			if node == "n1" && said == word {
				return errors.New("its disk is full")
			}
			return nil
		}
		_, err := Copy(t.Context(), nodes, "run", volumes, pods, claimdatatest.Step)
		require.ErrorContains(t, err, "copy the volumes on n1: its disk is full", word)
		require.NotContains(t, strings.Join(nodes.Said, ","), "release", word)
		require.Empty(t, nodes.Left(), word)
		require.Empty(t, nodes.Frozen(), word)
	}
}

// cluster has a claim that a pod uses, one that none uses, and some that cannot be backed up or need not be.
func cluster() *fake.Clientset {
	block := corev1.PersistentVolumeBlock
	claim := func(name, volume string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"burano.io/pod": "p"},
			Annotations: map[string]string{"burano.io/volume": "db:/data", "pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		if change != nil {
			change(made)
		}
		return made
	}
	volume := func(name, node string) *corev1.PersistentVolume {
		made := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "fast",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "local.burano.io", VolumeHandle: name}}}}
		if node != "" {
			made.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		}
		return made
	}
	path := volume("pv-path", "")
	path.Spec.CSI, path.Spec.HostPath = nil, &corev1.HostPathVolumeSource{Path: "/tmp"}
	user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "u1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"}}}}}}
	client := fake.NewClientset(claim("used", "pv-used", nil), claim("idle", "pv-idle", nil), claim("path", "pv-path", nil), claim("gone", "pv-gone", nil),
		claim("block", "pv-block", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }),
		claim("waits", "", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }),
		claim("scratch", "pv-scratch", func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "db"}}
		}),
		volume("pv-used", ""), volume("pv-idle", "n2"), volume("pv-block", ""), volume("pv-scratch", ""), path, user)
	// Pods that are made run at once, and claims get volumes.
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.UID, pod.Status.Phase, pod.Spec.NodeName = types.UID("u-"+pod.Name), corev1.PodRunning, "n2"
		return false, nil, nil
	})
	client.PrependReactor("create", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.CreateAction).GetObject().(*corev1.PersistentVolumeClaim)
		claim.Spec.VolumeName = "pv-new"
		return false, nil, nil
	})
	return client
}

func TestClaimsThatCannotBeReadAreNamedWithTheReason(t *testing.T) {
	claims, unable, err := Claims(t.Context(), cluster())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"default/path": "its volume is none of a storage class with a driver (CSI)", "default/gone": "its volume pv-gone is not there",
		"default/block": "it is a block device, in which only its pods know what is what"}, unable)
	require.Len(t, claims, 2, "those that wait have nothing, and those of a pod go with it")
	require.Equal(t, "default/idle", claims[0].String())
	require.Equal(t, "n2", claims[0].Node, "its volume can be nowhere else")
	require.Equal(t, []Pod{{UID: "u1", Node: "n1"}}, claims[1].Pods)
	require.NotContains(t, string(claims[1].Object), "bind-completed")
	require.NotContains(t, string(claims[1].Object), "pv-used")
	require.Contains(t, string(claims[1].Object), "burano.io/volume")
}

func TestVolumesThatNoPodUsesAreMountedForTheirBackup(t *testing.T) {
	client := cluster()
	claims, _, err := Claims(t.Context(), client)
	require.NoError(t, err)
	mounted, stopped, err := Mounted(t.Context(), client, claims, "run")
	require.NoError(t, err)
	idle := "/var/lib/kubelet/pods/u-" + holderName("idle") + "/volumes/kubernetes.io~csi/pv-idle/mount"
	require.Equal(t, []Volume{{ID: "pv-idle", Node: "n2", Path: idle}, {ID: "pv-used", Node: "n1", Path: "/var/lib/kubelet/pods/u1/volumes/kubernetes.io~csi/pv-used/mount"}}, mounted)
	require.Equal(t, []Pod{{UID: "u1", Node: "n1"}}, stopped)
	require.NoError(t, RemoveHolders(t.Context(), client))
	list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
}

func TestAClaimIsMadeOfABackupOnceAndOnlyWhereThereIsNone(t *testing.T) {
	from, _, err := Claims(t.Context(), cluster())
	require.NoError(t, err)
	claim := from[1]
	client, nodes := cluster(), &claimdatatest.Nodes{Files: map[string]string{}}
	open := func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("what it had")), nil
	}
	err = Restore(t.Context(), client, nodes, claim, "backup", open, claimdatatest.Step)
	require.ErrorAs(t, err, new(*ForeignClaim))
	require.Empty(t, nodes.Files)

	require.NoError(t, client.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), "used", metav1.DeleteOptions{}))
	broken := func(context.Context) (io.ReadCloser, error) { return nil, errors.New("the object store is away") }
	require.ErrorContains(t, Restore(t.Context(), client, nodes, claim, "backup", broken, claimdatatest.Step), "the object store is away")
	state, err := Look(t.Context(), client, claim, "backup")
	require.NoError(t, err)
	require.Equal(t, Begun, state)

	require.NoError(t, Restore(t.Context(), client, nodes, claim, "backup", open, claimdatatest.Step))
	path := "/var/lib/kubelet/pods/u-" + holderName("used") + "/volumes/kubernetes.io~csi/pv-new/mount"
	require.Equal(t, map[string]string{path: "what it had"}, nodes.Files)
	made, err := client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "used", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"burano.io/pod": "p"}, made.Labels)

	nodes.Files[path] = "what came later"
	require.NoError(t, Restore(t.Context(), client, nodes, claim, "backup", open, claimdatatest.Step))
	require.Equal(t, "what came later", nodes.Files[path], "a claim that has its files keeps what it has got since")
}
