package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/kube"
)

// withClaims is a container with persistent volumes, by path or, where a path has a name behind a =, by that name.
func withClaims(name string, paths ...string) container {
	size := resource.MustParse("1Gi")
	one := container{name: name, volumes: map[string]volume{}}
	for _, path := range paths {
		path, shared, _ := strings.Cut(path, "=")
		one.volumes[path] = volume{options: volumeOptions{size: &size, claim: &claim{name: shared}}}
	}
	return one
}

// claimsIn are the claims that a pod's containers would get in an empty cluster; former ones have no annotation, as in former versions.
func claimsIn(pod podSpec, former bool, containers ...container) (list []corev1.PersistentVolumeClaim, mounted map[string]bool) {
	mounted = map[string]bool{}
	for _, one := range pod.claims(containers) {
		if former {
			one.Annotations = nil
		}
		list, mounted[one.Name] = append(list, *one), true
	}
	return list, mounted
}

func TestTheMarkOfAClaimThatFormerVersionsDidNotWriteIsNoChange(t *testing.T) {
	path := "metadata.annotations[" + annotationVolume + "]"
	require.True(t, isMark(kube.Field{Path: path, After: "web:/data"}))
	require.False(t, isMark(kube.Field{Path: path, Before: "web:/data", After: "web:/other"}), "the claim goes to another volume")
	require.False(t, isMark(kube.Field{Path: "metadata.annotations[other]", After: "web:/data"}))
}

func TestAClaimStaysWithItsPodAndVolume(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []container
		renamed       string
		adopted       map[string]string
		unused, empty []string
	}{
		"nothing changes": {before: []container{withClaims("db", "/data")}, after: []container{withClaims("db", "/data")}},
		"the pod has another name": {before: []container{withClaims("db", "/data", "/log")}, after: []container{withClaims("db", "/data", "/log")}, renamed: "shop",
			adopted: map[string]string{"shop-db--data": "web-db--data", "shop-db--log": "web-db--log"}},
		"a pod with a volume that has a name": {before: []container{withClaims("db", "/data=data")}, after: []container{withClaims("db", "/data=data")}, renamed: "shop",
			adopted: map[string]string{"shop-data": "web-data"}},
		"the application has another name": {before: []container{withClaims("db", "/data")}, after: []container{withClaims("postgres", "/data")},
			adopted: map[string]string{"web-postgres--data": "web-db--data"}},
		"the only volume is mounted elsewhere": {before: []container{withClaims("db", "/data")}, after: []container{withClaims("db", "/var/lib")},
			adopted: map[string]string{"web-db--var-lib": "web-db--data"}},
		"a volume that has a name is mounted elsewhere": {before: []container{withClaims("db", "/data=data")}, after: []container{withClaims("db", "/var/lib=data")}},
		"there is no volume any more":                   {before: []container{withClaims("db", "/data")}, after: []container{withClaims("db")}, unused: []string{"web-db--data"}},
		"two volumes are mounted elsewhere": {before: []container{withClaims("db", "/a", "/b")}, after: []container{withClaims("db", "/c", "/d")},
			unused: []string{"web-db--a", "web-db--b"}, empty: []string{"db:/c", "db:/d"}},
		"another application takes its place": {before: []container{withClaims("db", "/data")}, after: []container{withClaims("queue", "/var")},
			unused: []string{"web-db--data"}, empty: []string{"queue:/var"}},
		"two applications have other names, and one path": {before: []container{withClaims("a", "/data"), withClaims("b", "/data")}, after: []container{withClaims("c", "/data"), withClaims("d", "/data")},
			unused: []string{"web-a--data", "web-b--data"}, empty: []string{"c:/data", "d:/data"}},
		"a volume more": {before: []container{withClaims("db", "/data")}, after: []container{withClaims("db", "/data", "/log")}, empty: []string{"db:/log"}},
	} {
		for _, former := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				before := podSpec{id: "p1", name: "web"}
				present, mounted := claimsIn(before, former, test.before...)
				after := before
				if test.renamed != "" {
					after.name = test.renamed
				}
				use := useClaims(after.claims(test.after), present, mounted)
				var unused []string
				for _, one := range use.unused {
					unused = append(unused, one.Name)
				}
				require.ElementsMatch(t, test.unused, unused)
				require.ElementsMatch(t, test.empty, use.empty)
				if test.adopted == nil {
					test.adopted = map[string]string{}
				}
				require.Equal(t, test.adopted, use.adopted)
				after.adopted = use.adopted
				for _, one := range after.claims(test.after) {
					require.Truef(t, mounted[one.Name] || len(test.empty) > 0, "%s is one that is there", one.Name)
				}
				require.NoError(t, use.lost(after, func(name string) bool { return name == after.name }))
				if len(unused) > 0 {
					require.ErrorContains(t, use.lost(after, func(string) bool { return false }), unused[0])
				}
			})
		}
	}
}

func TestAClaimThatNothingMountsIsNoLoss(t *testing.T) {
	pod := podSpec{id: "p1", name: "web"}
	present, _ := claimsIn(pod, false, withClaims("db", "/old"))
	use := useClaims(pod.claims([]container{withClaims("db", "/data")}), present, map[string]bool{})
	require.Empty(t, use.unused, "it was given up by a former change")
	require.Equal(t, []string{"db:/data"}, use.empty)
}

func TestClaimsOfAStatefulSetAreFoundByItsTemplates(t *testing.T) {
	set := podSpec{id: "p1", name: "db", options: podOptions{kind: kindStatefulSet}}
	containers := []container{withClaims("db", "/data=data")}
	present := []corev1.PersistentVolumeClaim{
		{ObjectMeta: metav1.ObjectMeta{Name: "db-data-db-0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db-data-db-12"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db-log-db-0"}}}
	mounted := map[string]bool{"db-data-db-0": true, "db-data-db-12": true, "db-log-db-0": true}
	use := set.stateful(set.claims(containers), present, mounted)
	require.Len(t, use.unused, 1)
	require.Equal(t, "db-log-db-0", use.unused[0].Name)
	require.Empty(t, use.empty)
	set.name = "postgres"
	require.Len(t, set.stateful(set.claims(containers), present, mounted).unused, 3)
}

func TestAPreviewListsTheClaimsOfNewReplicasOfAStatefulSet(t *testing.T) {
	pod := podSpec{id: "p1", name: "db", replicas: 2, options: podOptions{kind: kindStatefulSet}}
	var set *appsv1.StatefulSet
	for _, object := range pod.objects([]container{withClaims("db", "/data=data", "/log")}) {
		if one, is := object.(*appsv1.StatefulSet); is {
			set = one
		}
	}
	names := func(there workloads) (names []string) {
		for _, one := range newClaims(pod, set, there) {
			require.Equal(t, "added PersistentVolumeClaim of pod db", one.What+" "+one.Kind+" of "+one.Object)
			names = append(names, one.Name)
		}
		return names
	}
	require.ElementsMatch(t, []string{"db-data-db-0", "db-data-db-1", "db-db--log-db-0", "db-db--log-db-1"}, names(workloads{}))
	first := workloads{claims: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data-db-0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db-db--log-db-0"}}}}
	require.ElementsMatch(t, []string{"db-data-db-1", "db-db--log-db-1"}, names(first), "a second replica")
}

// pastOfAPod is a pod in a simulated cluster, with the states that it had.
type pastOfAPod struct {
	claims  []corev1.PersistentVolumeClaim
	mounted map[string]bool
	data    map[string]string // markers, by the names of claims
	written int               // how many markers were
	pod     podSpec
	volumes []container
}

// shown are the markers that the pod's containers see, by volume.
func (p *pastOfAPod) shown() map[string]string {
	found := map[string]string{}
	for _, one := range p.claims {
		if p.mounted[one.Name] {
			found[one.Annotations[annotationVolume]] = p.data[one.Name]
		}
	}
	return found
}

// deploy gives the pod another name and other containers, as apply does; with losses only if there is consent.
func (p *pastOfAPod) deploy(t *rapid.T, name string, volumes []container, consent bool) {
	next := podSpec{id: p.pod.id, name: name}
	use := useClaims(next.claims(volumes), p.claims, p.mounted)
	if use.lost(next, func(string) bool { return consent }) != nil {
		return // it is refused, and nothing changes
	}
	before, agreed := p.shown(), map[string]bool{}
	for _, one := range use.unused {
		agreed[p.data[one.Name]] = true
	}
	next.adopted = use.adopted
	wanted := next.claims(volumes)
	require.Len(t, wanted, len(podSpec{id: "p1", name: name}.claims(volumes)), "no two volumes get one claim")
	p.mounted = map[string]bool{}
	for _, one := range wanted {
		i := slices.IndexFunc(p.claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == one.Name })
		if i < 0 {
			require.Contains(t, use.empty, one.Annotations[annotationVolume], "a volume that begins empty is named")
			p.written++
			p.claims, p.data[one.Name] = append(p.claims, *one), fmt.Sprintf("marker %d", p.written)
		} else {
			p.claims[i].Annotations = one.Annotations
		}
		p.mounted[one.Name] = true
	}
	p.pod, p.volumes = next, volumes
	after := p.shown()
	markers := slices.Collect(maps.Values(after))
	for key, marker := range before {
		if now, same := after[key]; same {
			require.Equal(t, marker, now, "a volume that stays keeps its content: %s", key)
		} else if !agreed[marker] {
			require.Contains(t, markers, marker, "nobody agreed to lose the content of %s", key)
		}
	}
}

// Any history of edits, refusals, rollbacks and restores of snapshots leaves each volume its content. A restore brings back the objects of Kubernetes as they were,
// and the present file is deployed then.
func TestAnyHistoryOfAPodKeepsTheContentOfItsVolumes(t *testing.T) {
	type past struct {
		claims  []corev1.PersistentVolumeClaim
		mounted map[string]bool
		name    string
		volumes []container
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (string, []container, bool) {
			var list []container
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 1, 2, rapid.ID).Draw(t, label+" containers") {
				list = append(list, withClaims(name, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/x", "/y", "/z", "/v=two"}), 0, 3, rapid.ID).Draw(t, label+" volumes of "+name)...))
			}
			return rapid.SampledFrom([]string{"web", "shop"}).Draw(t, label+" name"), list, rapid.Bool().Draw(t, label+" consent")
		}
		p := &pastOfAPod{mounted: map[string]bool{}, data: map[string]string{}, pod: podSpec{id: "p1"}}
		var history []past
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			label := fmt.Sprint(i)
			kind := rapid.SampledFrom([]string{"edit", "rollback", "restore"}).Draw(t, label)
			name, volumes, consent := draw(label)
			if kind != "edit" && len(history) > 0 {
				former := history[rapid.IntRange(0, len(history)-1).Draw(t, label+" state")]
				if kind == "rollback" {
					name, volumes = former.name, former.volumes
				} else {
					p.claims, p.mounted = slices.Clone(former.claims), maps.Clone(former.mounted)
					name, volumes = p.pod.name, p.volumes
				}
			}
			p.deploy(t, name, volumes, consent)
			history = append(history, past{slices.Clone(p.claims), maps.Clone(p.mounted), p.pod.name, p.volumes})
		}
	})
}

// Whatever is renamed and remounted, a mounted claim is either used on or named as unused, and no two volumes get one claim.
func TestNoMountedClaimIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		containers := func(label string) []container {
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, label+" containers")
			var list []container
			for _, name := range names {
				paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/x", "/y", "/z=one", "/v=two"}), 0, 3, rapid.ID).Draw(t, label+" volumes of "+name)
				list = append(list, withClaims(name, paths...))
			}
			return list
		}
		names := rapid.SampledFrom([]string{"web", "shop"})
		before := podSpec{id: "p1", name: names.Draw(t, "name before")}
		present, mounted := claimsIn(before, rapid.Bool().Draw(t, "of a former version"), containers("before")...)
		after, wanted := podSpec{id: "p1", name: names.Draw(t, "name after")}, containers("after")
		use := useClaims(after.claims(wanted), present, mounted)
		after.adopted = use.adopted
		seen := map[string]int{}
		for _, one := range after.claims(wanted) {
			seen[one.Name]++
		}
		for _, one := range use.unused {
			seen[one.Name]++
		}
		for name := range mounted {
			require.Equalf(t, 1, seen[name], "claim %s", name)
		}
		require.Len(t, after.claims(wanted), len(podSpec{id: "p1", name: after.name}.claims(wanted)), "no two volumes get one claim")
	})
}

func TestWorkloadsThatAreBeingDeletedMountNothing(t *testing.T) {
	mount := func(claim string) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}}
	}
	ending := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}, OwnerReferences: owners}
	}
	isController := true
	there := workloads{
		deployments: []appsv1.Deployment{{ObjectMeta: ending(), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: mount("former")}}},
			{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: mount("present")}}}},
		pods: []corev1.Pod{{ObjectMeta: ending(metav1.OwnerReference{Kind: "StatefulSet", Name: "db", Controller: &isController}), Spec: mount("db-data-db-0")},
			{ObjectMeta: ending(), Spec: mount("alone")}, {Spec: mount("another")}},
		sets:   []appsv1.StatefulSet{{ObjectMeta: ending(), Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data"}}}}}},
		claims: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data-db-0"}}},
	}
	there.sets[0].Name = "db"
	require.Equal(t, map[string]bool{"present": true, "alone": true, "another": true}, there.mounted(), "a pod of its own is made again")
	require.Len(t, there.deployments, 2, "the list itself stays as it was")
}

func TestObjectsOfTwoPodsWithOneNameAreRefusedWithBothNames(t *testing.T) {
	kept := func(name, files string) []container {
		return []container{{name: name, image: "i", ports: []port{{number: 80, published: 80, protocol: "TCP", scope: "internal"}},
			volumes: map[string]volume{"/data": {options: volumeOptions{size: new(resource.MustParse("1Gi")), claim: &claim{name: files}}}}}}
	}
	in := &Observed{}
	require.NoError(t, in.checkNames(podSpec{id: "1", name: "shop", replicas: 1, options: podOptions{kind: kindDeployment}}, kept("web-cache", "web-files")))
	require.NoError(t, in.checkNames(podSpec{id: "2", name: "till", replicas: 1, options: podOptions{kind: kindDeployment}}, kept("web-cache", "web-files")))
	err := in.checkNames(podSpec{id: "3", name: "shop-web", replicas: 1, options: podOptions{kind: kindDeployment}}, kept("cache", "files"))
	require.ErrorContains(t, err, "pods shop and shop-web would both have the PersistentVolumeClaim shop-web-files in Kubernetes")
	require.ErrorContains(t, err, "pods shop and shop-web would both have the Service shop-web-cache in Kubernetes")
}
