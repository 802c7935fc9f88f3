package workloads

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/nodes/kube"
)

func TestClaimsKeepWhatKubernetesDoesNotChange(t *testing.T) {
	grows, yes := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows", Annotations: map[string]string{annotationDefaultClass: "true"}}}, true
	grows.AllowVolumeExpansion = &yes
	client := fake.NewClientset(grows, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}})
	claimOf := func(class, size string) corev1.PersistentVolumeClaim {
		made := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "p-db--data"}}
		made.Spec.StorageClassName = &class
		made.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return made
	}
	cases := map[string]struct {
		class, size string // wanted
		had         corev1.PersistentVolumeClaim
		gets, stays string
		refused     string
	}{
		"the same":                        {"", "10Gi", claimOf("grows", "10Gi"), "10Gi", "", ""},
		"a larger one":                    {"", "20Gi", claimOf("grows", "10Gi"), "20Gi", "", ""},
		"a smaller one":                   {"", "10Gi", claimOf("grows", "20Gi"), "20Gi", "claim p-db--data stays 20Gi; a claim does not shrink", ""},
		"a larger one that cannot grow":   {"", "20Gi", claimOf("fixed", "10Gi"), "", "", "pod p: claim p-db--data has 10Gi and cannot get 20Gi, because volumes of storage class fixed do not grow: put 10Gi back"},
		"another class":                   {"grows", "10Gi", claimOf("fixed", "10Gi"), "", "", "pod p: claim p-db--data is of storage class fixed and cannot get grows: put fixed back, or give the volume another name and copy the data"},
		"a class that is gone, as it was": {"former", "10Gi", claimOf("former", "10Gi"), "10Gi", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			size := resource.MustParse(c.size)
			one := container{name: "db", volumes: map[string]volume{"/data": {options: volumeOptions{size: &size, claim: &claim{class: c.class, keep: true}}}}}
			spec := podSpec{id: "i", name: "p", replicas: 1}
			kept, err := spec.checkStorage(t.Context(), client, []container{one}, workloads{claims: []corev1.PersistentVolumeClaim{c.had}}, nil)
			if c.refused != "" {
				require.EqualError(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			spec.sizes = kept.sizes
			gets := spec.claims([]container{one})[0].Spec.Resources.Requests[corev1.ResourceStorage]
			require.Equal(t, c.gets, gets.String())
			if c.stays == "" {
				require.Empty(t, kept.stay)
			} else {
				require.Equal(t, []string{c.stays}, kept.stay)
			}
		})
	}
	t.Run("of a stateful set", func(t *testing.T) {
		set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimOf("grows", "10Gi")}
		size := resource.MustParse("20Gi")
		one := container{name: "db", volumes: map[string]volume{"/data": {options: volumeOptions{size: &size, claim: &claim{keep: true}}}}}
		spec := podSpec{id: "i", name: "p", replicas: 2, options: podOptions{kind: kindStatefulSet}}
		_, err := spec.checkStorage(t.Context(), client, []container{one}, workloads{sets: []appsv1.StatefulSet{set}}, nil)
		require.ErrorContains(t, err, "of its stateful set has 10Gi and cannot get 20Gi: put 10Gi back")
	})
}

func TestVolumesOfAllNodesNeedAClassThatHasThem(t *testing.T) {
	labels := func(backend string) map[string]string { return map[string]string{kube.LabelStorage: backend} }
	local := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local", Labels: labels("local"), Annotations: map[string]string{annotationDefaultClass: "true"}}}
	shares := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shares", Labels: labels("manila")}}
	others := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "others"}}
	client := fake.NewClientset(local, shares, others)
	present := func(mode corev1.PersistentVolumeAccessMode, class string) workloads {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "p-db--data"}}
		claim.Spec.StorageClassName, claim.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{mode}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		return workloads{claims: []corev1.PersistentVolumeClaim{claim}}
	}
	for name, c := range map[string]struct {
		kind     workloadKind
		class    string
		many     bool
		replicas int32
		there    workloads
		refused  string
	}{
		"a share":                  {kindDeployment, "shares", true, 2, workloads{}, ""},
		"of each node":             {kindDaemonSet, "shares", true, 1, workloads{}, ""},
		"a class of others":        {kindDeployment, "others", true, 2, workloads{}, ""},
		"of the default":           {kindDeployment, "", true, 1, workloads{}, "pod p wants the persistent volume p-db--data with accessMode readWriteMany, and volumes of the cluster's default storage class are used by one node at a time: name one of others, shares in storageClass, or leave accessMode out"},
		"of a class of nodes":      {kindDeployment, "local", true, 2, workloads{}, "volumes of storage class local are used by one node at a time"},
		"two replicas of one node": {kindDeployment, "shares", false, 2, workloads{}, "or accessMode of the volumes to readWriteMany, with a class that has it"},
		"as it was":                {kindDeployment, "shares", true, 2, present(corev1.ReadWriteMany, "shares"), ""},
		"another mode":             {kindDeployment, "shares", true, 1, present(corev1.ReadWriteOnce, "shares"), "pod p: claim p-db--data has the accessMode readWriteOnce and cannot get readWriteMany: put readWriteOnce back, or give the volume another name and copy the data"},
	} {
		size := resource.MustParse("1Gi")
		one := container{name: "db", image: "i", volumes: map[string]volume{"/data": {options: volumeOptions{size: &size, claim: &claim{class: c.class, keep: true, many: c.many}}}}}
		spec := podSpec{id: "i", name: "p", replicas: c.replicas, options: podOptions{kind: c.kind}}
		_, err := spec.checkStorage(t.Context(), client, []container{one}, c.there, nil)
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, spec.claims([]container{one})[0].Spec.AccessModes, name)
		require.False(t, spec.exclusive([]container{one}), "%s: replicas roll one after another", name)
	}
	_, err := volumeOf(map[string]any{"persistent": true, "size": "1Gi", "accessMode": "many"})
	require.ErrorContains(t, err, "write readWriteOnce or readWriteMany")
}
