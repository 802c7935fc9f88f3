package kube

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestStorageClassesAreChecked(t *testing.T) {
	good := StorageClass{Name: "burano-local", Backend: Local, Default: true, Reclaim: "Delete"}
	require.Empty(t, CheckStorageClasses([]StorageClass{good, {Name: "kept.local", Backend: Local, Reclaim: "Retain"}}))
	for want, change := range map[string]func(*StorageClass){
		`storage class "A b": a name has small letters`:                      func(c *StorageClass) { c.Name = "A b" },
		`there is no back-end "tape": there are [cinder local manila]`:       func(c *StorageClass) { c.Backend = "tape" },
		`reclaimPolicy is "Recycle": say Delete or Retain`:                   func(c *StorageClass) { c.Reclaim = "Recycle" },
		`type is "ssd", and a local volume is a directory`:                   func(c *StorageClass) { c.Type = "ssd" },
		`zones are one, two, and a local volume is on the node of its first`: func(c *StorageClass) { c.Zones = []string{"one", "two"} },
	} {
		class := good
		change(&class)
		require.ErrorContains(t, errors.Join(CheckStorageClasses([]StorageClass{class})...), want)
	}
	require.ErrorContains(t, errors.Join(CheckStorageClasses([]StorageClass{good, good})...), "there are two of that name\nstorage classes burano-local, burano-local are all the default: one can be")
}

func TestAClassIsReplacedForWhatKubernetesDoesNotChange(t *testing.T) {
	class := StorageClass{Name: "burano-local", Backend: Local, Reclaim: "Delete"}
	require.Equal(t, map[string]any{"name": "burano-local", "labels": map[string]any{LabelStorage: "local"}}, class.Object().Object["metadata"], "no class is the default that does not say so")
	other := class
	other.Default = true
	require.Equal(t, map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}, other.Object().GetAnnotations())
	require.False(t, replaced(class.Object(), other.Object()))
	other.Reclaim = "Retain"
	require.True(t, replaced(class.Object(), other.Object()))
}

func TestAClassOfCinderSaysWhatItsVolumesAre(t *testing.T) {
	class := StorageClass{Name: "fast", Backend: Cinder, Reclaim: "Delete"}
	require.Empty(t, CheckStorageClasses([]StorageClass{class, {Name: "b", Backend: Local, Reclaim: "Delete"}}))
	object := class.Object().Object
	require.Equal(t, "cinder.burano.io", object["provisioner"])
	require.Equal(t, true, object["allowVolumeExpansion"])
	require.NotContains(t, object, "parameters")
	require.Equal(t, []any{map[string]any{"matchLabelExpressions": []any{map[string]any{"key": CinderNode, "values": []any{"true"}}}}}, object["allowedTopologies"])
	class.Type, class.Zones, class.Reclaim = "ssd", []string{"az1"}, "Retain"
	require.Equal(t, map[string]any{"type": "ssd", "zone": "az1", "keep": "true"}, class.Object().Object["parameters"])
	require.Equal(t, object["allowedTopologies"], class.Object().Object["allowedTopologies"], "pods of all nodes use volumes of one zone")
	require.False(t, replaced(StorageClass{Name: "fast", Backend: Cinder, Reclaim: "Delete"}.Object(), StorageClass{Name: "fast", Backend: Cinder, Reclaim: "Delete", FileSystem: "ext4"}.Object()))
	class.Zones, class.FileSystem, class.MountOptions = []string{"az1", "az2"}, "xfs", []string{"noatime", "nodiratime"}
	require.Empty(t, CheckStorageClasses([]StorageClass{class}))
	object = class.Object().Object
	require.Equal(t, map[string]any{"type": "ssd", "zones": "az1,az2", "keep": "true", "csi.storage.k8s.io/fstype": "xfs"}, object["parameters"])
	require.Equal(t, []any{"noatime", "nodiratime"}, object["mountOptions"])
	require.Equal(t, []any{map[string]any{"matchLabelExpressions": []any{map[string]any{"key": CinderNode, "values": []any{"true"}},
		map[string]any{"key": CinderZone, "values": []any{"az1", "az2"}}}}}, object["allowedTopologies"])
	for want, change := range map[string]func(*StorageClass){
		`fsType is "btrfs": say ext4 or xfs`:                func(c *StorageClass) { c.FileSystem = "btrfs" },
		`mountOptions have "noatime,ro": say one option in`: func(c *StorageClass) { c.MountOptions = []string{"noatime,ro"} },
		`zones have "a b", which cannot be the label`:       func(c *StorageClass) { c.Zones = []string{"a b", "c"} },
		`zones have az1 twice`:                              func(c *StorageClass) { c.Zones = []string{"az1", "az1"} },
		`leave fsType and mountOptions out`: func(c *StorageClass) {
			*c = StorageClass{Name: "l", Backend: Local, Reclaim: "Delete", FileSystem: "xfs"}
		},
	} {
		wrong := class
		change(&wrong)
		require.ErrorContains(t, errors.Join(CheckStorageClasses([]StorageClass{wrong})...), want)
	}
	class.Zones = []string{"a b"}
	require.Empty(t, CheckStorageClasses([]StorageClass{class}), "one zone may be called anything")
}

func TestANodeWhoseServerIsInAnotherZoneSaysSo(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	client := fake.NewClientset(node("a", map[string]string{CinderZone: "az1", "theirs": "yes"}), node("b", map[string]string{CinderZone: "az2"}), node("c", map[string]string{CinderZone: "az1"}), node("old", nil))
	moved, err := moveZones(t.Context(), client, map[string]string{"a": "az2", "b": "az2", "c": "", "old": "az1"})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, moved)
	for name, labels := range map[string]map[string]string{"a": {CinderZone: "az2", "theirs": "yes"}, "b": {CinderZone: "az2"}, "c": {CinderZone: "az1"}, "old": nil} {
		now, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, labels, now.Labels, "the kubelet of a node gives it its first label")
	}
}

func TestAClassOfManilaSaysWhatItsSharesAre(t *testing.T) {
	class := StorageClass{Name: "shared", Backend: Manila, Reclaim: "Delete"}
	require.Empty(t, CheckStorageClasses([]StorageClass{class}))
	object := class.Object().Object
	require.Equal(t, "manila.burano.io", object["provisioner"])
	require.Equal(t, true, object["allowVolumeExpansion"])
	require.NotContains(t, object, "parameters")
	require.Equal(t, []any{map[string]any{"matchLabelExpressions": []any{map[string]any{"key": ManilaNode, "values": []any{"true"}}}}}, object["allowedTopologies"])
	class.Type, class.Zones, class.Reclaim, class.ShareNetwork, class.MountOptions = "fast", []string{"az1"}, "Retain", "storage", []string{"nconnect=4"}
	object = class.Object().Object
	require.Equal(t, map[string]any{"type": "fast", "zone": "az1", "keep": "true", "shareNetwork": "storage"}, object["parameters"])
	require.Equal(t, []any{"nconnect=4"}, object["mountOptions"])
	for want, change := range map[string]func(*StorageClass){
		"has the file system of its server: leave fsType out":       func(c *StorageClass) { c.FileSystem = "ext4" },
		"zones are az1, az2, and shares of a class are made in one": func(c *StorageClass) { c.Zones = []string{"az1", "az2"} },
		`mountOptions have "a,b": say one option in each entry`:     func(c *StorageClass) { c.MountOptions = []string{"a,b"} },
		`shareNetwork is "storage", which shares of Manila alone have: `: func(c *StorageClass) {
			*c = StorageClass{Name: "c", Backend: Cinder, Reclaim: "Delete", ShareNetwork: "storage"}
		},
	} {
		wrong := class
		change(&wrong)
		require.ErrorContains(t, errors.Join(CheckStorageClasses([]StorageClass{wrong})...), want)
	}
}

func TestVolumesAreNamedByTheirClaims(t *testing.T) {
	volume := func(name, driver, node, claim string) *corev1.PersistentVolume {
		one := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		one.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name, VolumeAttributes: map[string]string{"node": node}}
		if claim != "" {
			one.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
		}
		return one
	}
	folder := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	client := fake.NewClientset(folder, volume("pvc-1", LocalDriver, "n2", "a"), volume("pvc-2", LocalDriver, "n1", ""), volume("pvc-3", "other.example.org", "n1", "c"))
	list, err := volumesOf(t.Context(), client, Local)
	require.NoError(t, err)
	require.Equal(t, []Volume{{Name: "pvc-2", Handle: "handle-pvc-2", Node: "n1"}, {Name: "pvc-1", Handle: "handle-pvc-1", Claim: "default/a", Node: "n2"}}, list)
	require.Equal(t, "volume pvc-2", list[0].String())
	require.Equal(t, "default/a", list[1].String())
}
