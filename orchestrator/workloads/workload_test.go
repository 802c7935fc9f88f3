package workloads

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"pgregory.net/rapid"

	"github.com/burano/burano/orchestrator/known"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestAPodBecomesADeploymentAndServices(t *testing.T) {
	spec := podSpec{id: "p0d", name: "Web", labels: map[string]string{"tier": "front"}, replicas: 2, options: podOptions{kind: kindDeployment}}
	containers := []container{
		{application: "b", name: "Hello World", image: "registry.local/demo:1", env: map[string]string{"B": "2", "A": "1"},
			ports:   []port{{number: 8080, published: 80, protocol: "TCP", scope: "public"}, {number: 9090, published: 9090, protocol: "TCP", scope: "internal"}},
			volumes: map[string]volume{"/data": {}, "/host": {hostPath: "/srv"}}},
		{application: "a", name: "worker", image: "registry.local/worker:1", commands: []string{"--verbose"}, privileged: true,
			ports: []port{{number: 4194, published: 4194, protocol: "TCP", scope: "host"}}},
	}
	golden(t, "deployment.json", spec.objects(containers))
	require.Equal(t, "b", containers[0].application, "endpoints are noted by the order of the applications")
	spec.replicas = 0
	golden(t, "pod.json", spec.objects(containers))
}

// TestPodsThatOthersReachLinger has pods go on for a moment at their end where another one serves meanwhile.
func TestPodsThatOthersReachLinger(t *testing.T) {
	reached := container{name: "web", image: "i", ports: []port{{number: 80, published: 80, protocol: "TCP", scope: "internal"}}}
	beside := container{name: "side", image: "i"}
	kept := container{name: "web", image: "i", ports: reached.ports, volumes: map[string]volume{"/data": {options: volumeOptions{size: new(resource.MustParse("1Gi")), claim: &claim{}}}}}
	onNode := container{name: "agent", image: "i", ports: []port{{number: 80, published: 80, protocol: "TCP", scope: "host"}}}
	for name, one := range map[string]struct {
		containers []container
		change     func(*podSpec)
		grace      *int64 // of a pod that lingers
	}{
		"a Deployment":                        {[]container{reached, beside}, nil, new(int64(33))},
		"what programs may take stays":        {[]container{reached}, func(p *podSpec) { p.options.grace = new(int64(5)) }, new(int64(8))},
		"a stateful set":                      {[]container{kept}, func(p *podSpec) { p.options.kind = kindStatefulSet }, new(int64(33))},
		"nobody is to wait for their end":     {[]container{reached}, func(p *podSpec) { p.options.grace = new(int64(0)) }, nil},
		"nobody reaches it":                   {[]container{beside, onNode}, nil, nil},
		"a volume that one pod at a time has": {[]container{kept}, nil, nil},
		"all end before others begin":         {[]container{reached}, func(p *podSpec) { p.options.strategy.Type = appsv1.RecreateDeploymentStrategyType }, nil},
		"a pod that nothing keeps":            {[]container{reached}, func(p *podSpec) { p.replicas = 0 }, nil},
		"a job":                               {[]container{reached}, func(p *podSpec) { p.options.kind = kindJob }, nil},
		"those that run do not":               {[]container{reached}, func(p *podSpec) { p.abrupt = true }, nil},
	} {
		spec := podSpec{id: "p0d", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}
		if one.change != nil {
			one.change(&spec)
		}
		template := spec.template(one.containers)
		for _, built := range template.Spec.Containers {
			require.Equal(t, one.grace != nil, built.Lifecycle != nil, name)
			if one.grace != nil {
				require.EqualValues(t, 3, built.Lifecycle.PreStop.Sleep.Seconds, name)
			}
		}
		if one.grace != nil {
			require.Equal(t, one.grace, template.Spec.TerminationGracePeriodSeconds, name)
		} else {
			require.Equal(t, spec.options.grace, template.Spec.TerminationGracePeriodSeconds, name)
		}
	}
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

func TestNamesOfServicesAreWhatKubernetesTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := serviceName(rapid.String().Draw(t, "pod"), rapid.String().Draw(t, "application"))
		require.Empty(t, validation.IsDNS1035Label(name), name)
		require.LessOrEqual(t, len(name), 63)
	})
	require.Equal(t, "web-hello-world", serviceName("Web", "Hello World"))
	require.Len(t, serviceName(strings.Repeat("a", 80), "b"), 63)
}

func TestAContainerWithoutAProbeMustLiveBeforeItsPodCounts(t *testing.T) {
	probed := container{name: "web", image: "i", ports: []port{{number: 80, published: 80, protocol: "TCP", scope: "public"}}}
	for name, one := range map[string]struct {
		containers []container
		change     func(*podSpec)
		want       int32
	}{
		"a probe":                    {[]container{probed}, func(*podSpec) {}, 0},
		"no probe":                   {[]container{probed, {name: "side", image: "i"}}, func(*podSpec) {}, livesSeconds},
		"a stateful set":             {[]container{{name: "side", image: "i"}}, func(p *podSpec) { p.options.kind = kindStatefulSet }, livesSeconds},
		"seconds of its own":         {[]container{probed}, func(p *podSpec) { p.options.minReady = new(int32(9)) }, 9},
		"not at all":                 {[]container{{name: "side", image: "i"}}, func(p *podSpec) { p.options.minReady = new(int32(0)) }, 0},
		"pods of before, which stay": {[]container{{name: "side", image: "i"}}, func(p *podSpec) { p.hasty = true }, 0},
	} {
		spec := podSpec{id: "p0d", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}
		one.change(&spec)
		switch keeper := spec.keeper(metav1.ObjectMeta{}, spec.template(one.containers), one.containers); set := keeper[len(keeper)-1].(type) {
		case *appsv1.Deployment:
			require.Equal(t, one.want, set.Spec.MinReadySeconds, name)
		case *appsv1.StatefulSet:
			require.Equal(t, one.want, set.Spec.MinReadySeconds, name)
		}
	}
	there := workloads{deployments: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}}
	require.True(t, there.hasty("web"))
	require.False(t, there.hasty("other"))
	there.deployments[0].Spec.MinReadySeconds = livesSeconds
	require.False(t, there.hasty("web"))
}

func TestAPodWithoutAControllerIsUpWhenItsContainersHaveLived(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: known.Namespace, Labels: map[string]string{LabelPod: "p0d"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", ContainerID: "1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}}}
	client := fake.NewClientset(pod)
	began := time.Now()
	require.NoError(t, waitLives(t.Context(), client, known.Namespace, labels.Set{LabelPod: "p0d"}, time.Second))
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	_, err := client.CoreV1().Pods(known.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	limited, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorContains(t, waitLives(limited, client, known.Namespace, labels.Set{LabelPod: "p0d"}, time.Second), "container web of web does not run")
}

func TestAPodGoesBackToAKeptForm(t *testing.T) {
	form := func(revision, image string, ran bool) appsv1.ReplicaSet {
		set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "r" + revision, Annotations: map[string]string{annotationRevision: revision}, Labels: map[string]string{}}}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
		if ran {
			set.Labels[labelRan] = "true"
		}
		return set
	}
	sets := []appsv1.ReplicaSet{form("7", "web:3", true), form("6", "web:broken", false), form("4", "web:2", true), form("1", "web:1", true)}
	for revision, name := range map[int64]string{0: "r4", 6: "r6", 4: "r4", 1: "r1"} {
		found, err := keptForm(sets, revision)
		require.NoError(t, err)
		require.Equal(t, name, found.Name)
	}
	for revision, refusal := range map[int64]string{7: "has the form of revision 7 already", 5: "no form of revision 5 any more; it has 7, 6, 4, 1"} {
		_, err := keptForm(sets, revision)
		require.ErrorContains(t, err, refusal)
	}
	_, err := keptForm(sets[:1], 0)
	require.ErrorContains(t, err, "one form only")
	now, then := sets[0].Spec.Template.Spec, *sets[3].Spec.Template.Spec.DeepCopy()
	require.Empty(t, formDifferences(now, now))
	then.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
	then.Containers = append(then.Containers, corev1.Container{Name: "old"})
	require.Equal(t, []string{"the image of container web: web:1", "container old, which is not there now", "the environment of container web"}, formDifferences(now, then))
}
