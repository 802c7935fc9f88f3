package workloads

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
)

const withFiles = `{"name": "Web", "image": "registry.local/web:1", "env": {"MODE": "fast"}, "commands": ["serve"], "ports": [{"port": 80}],
	"readinessProbe": {"tcpSocket": {"port": 80}}, "volumes": {"/data": {"persistent": true, "size": "1Gi"}},
	"files": {"/etc/web/web.conf": "level = info", "/etc/web/users": {"text": "ann:pencil-and-paper", "secret": true, "mode": "0440"}},
	"bootstrap": {"commands": ["migrate"], "env": {"MODE": "slow"}, "deadline": 60}, "bootstrapAfter": {"entryPoint": ["/bin/check"]},
	"initContainers": [{"name": "first", "image": "i"}]}`

func TestAContainerHasItsFilesAndBootstraps(t *testing.T) {
	one, err := containerIn(t, withFiles)
	require.NoError(t, err)
	one.application, one.options.files[0].object = "a", "web-web-abcde"
	spec := wholePod()
	objects := spec.objects([]container{one})
	golden(t, "files.json", objects)
	text, err := json.Marshal(objects)
	require.NoError(t, err)
	require.NotContains(t, string(text), "pencil-and-paper")
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	require.Equal(t, []string{"PersistentVolumeClaim", "ConfigMap", "Job", "Deployment", "Service", "Job"}, kinds)
}

// jobsAndTemplate are the digests of the bootstraps, and the template of the pods in JSON.
func jobsAndTemplate(t *testing.T, text string) (digests []string, template string) {
	one, err := containerIn(t, text)
	require.NoError(t, err)
	spec := wholePod()
	require.NoError(t, podSecrets{spec, fake.NewClientset()}.ensure(t.Context(), []container{one}))
	for _, object := range spec.objects([]container{one}) {
		if job, is := object.(*batchv1.Job); is {
			digests = append(digests, job.Annotations[annotationDigest])
		}
	}
	written, err := json.Marshal(spec.template([]container{one}))
	require.NoError(t, err)
	return digests, string(written)
}

func TestAnotherFileIsAnotherObjectAndRunsTheBootstrapsAgain(t *testing.T) {
	jobs, template := jobsAndTemplate(t, withFiles)
	same, again := jobsAndTemplate(t, withFiles)
	require.Equal(t, jobs, same)
	require.Equal(t, template, again)
	others, changed := jobsAndTemplate(t, strings.Replace(withFiles, "level = info", "level = debug", 1))
	require.NotEqual(t, template, changed, "pods get it by a rolling update")
	require.NotEqual(t, jobs[0], others[0])
	require.NotEqual(t, jobs[1], others[1])
	commanded, kept := jobsAndTemplate(t, strings.Replace(withFiles, "migrate", "migrate-all", 1))
	require.Equal(t, template, kept, "another bootstrap rolls no pods")
	require.NotEqual(t, jobs[0], commanded[0])
	require.Equal(t, jobs[1], commanded[1])
}

func TestPodsOfABootstrapAreNoReplicas(t *testing.T) {
	one, err := containerIn(t, withFiles)
	require.NoError(t, err)
	spec := wholePod()
	job := spec.bootstrapJobs([]container{one}, beforeRoll)[0]
	selector, err := metav1.LabelSelectorAsSelector(spec.selector())
	require.NoError(t, err)
	require.True(t, selector.Matches(labels.Set(job.Labels)), "a pod's end finds the Job")
	require.False(t, selector.Matches(labels.Set(job.Spec.Template.Labels)))
	container := job.Spec.Template.Spec.Containers[0]
	require.Nil(t, container.ReadinessProbe)
	require.Equal(t, []corev1.EnvVar{{Name: "MODE", Value: "slow"}}, container.Env)
	for _, mount := range container.VolumeMounts {
		require.NotEqual(t, "/data", mount.MountPath, "the pods that serve have the volume")
	}
}

func TestFilesThatNothingRefersToGo(t *testing.T) {
	one, err := containerIn(t, withFiles)
	require.NoError(t, err)
	former, err := containerIn(t, strings.Replace(withFiles, "level = info", "level = debug", 1))
	require.NoError(t, err)
	oldest, err := containerIn(t, strings.Replace(withFiles, "level = info", "level = error", 1))
	require.NoError(t, err)
	spec := wholePod()
	client := fake.NewClientset()
	for _, with := range []container{one, former, oldest} {
		_, err := client.CoreV1().ConfigMaps(known.Namespace).Create(t.Context(), spec.fileMaps([]container{with})[0], metav1.CreateOptions{})
		require.NoError(t, err)
	}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: known.Namespace}}
	_, err = client.CoreV1().ConfigMaps(known.Namespace).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	// A rollback can need the former one.
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: known.Namespace, Labels: map[string]string{kube.LabelObject: spec.id}},
		Spec: spec.template([]container{former}).Spec}
	_, err = client.CoreV1().Pods(known.Namespace).Create(t.Context(), kept, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, podSecrets{spec, client}.clear(t.Context(), []container{one}))
	left, err := client.CoreV1().ConfigMaps(known.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, found := range left.Items {
		names = append(names, found.Name)
	}
	require.ElementsMatch(t, []string{"foreign", spec.fileMaps([]container{one})[0].Name, spec.fileMaps([]container{former})[0].Name}, names)
}
