package workloads

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/task/tasktest"
)

// containerIn reads a container as getContainer writes one.
func containerIn(t *testing.T, text string) (container, error) {
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	value, _ = numbers(value).(map[string]any)
	return containerOf(tasktest.Load(t, map[string]any{"?": map[string]any{"id": "a", "type": "com.mirantis.docker.DockerVolume"}}), value)
}

// numbers has numbers be what MuranoPL has for them.
func numbers(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return value
}

func TestAPodThatSaysNothingNewHasNoOptions(t *testing.T) {
	spec, err := PodSpecOf(tasktest.Pod(t, nil))
	require.NoError(t, err)
	require.Equal(t, podOptions{kind: kindDeployment, retries: defaultRetries}, spec.options)
}

func TestThePropertiesOfAPodAreRead(t *testing.T) {
	spec, err := PodSpecOf(tasktest.Pod(t, map[string]any{
		"workload": "cronJob", "schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "retries": 0, "deadline": 60,
		"annotations": map[string]any{"a": "b"}, "serviceAccount": "web", "nodeSelector": map[string]any{"disk": "fast"},
		"affinity":        map[string]any{"nodeAffinity": map[string]any{}},
		"tolerations":     []any{map[string]any{"key": "batch", "operator": "Exists", "tolerationSeconds": 30}},
		"securityContext": map[string]any{"runAsUser": 1000, "fsGroup": 2000}, "terminationGracePeriod": 0,
		"topologySpread": []any{map[string]any{"topologyKey": "kubernetes.io/hostname"}}}))
	require.NoError(t, err)
	seconds := int64(30)
	require.Equal(t, podOptions{kind: kindCronJob, schedule: "0 3 * * *", timeZone: "Europe/Berlin", retries: 0, deadline: 60,
		annotations: map[string]string{"a": "b"}, serviceAccount: "web", nodeSelector: map[string]string{"disk": "fast"},
		affinity:    &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		tolerations: []corev1.Toleration{{Key: "batch", Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}},
		security:    &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))}, grace: new(int64(0)),
		spread: []corev1.TopologySpreadConstraint{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelPod: spec.id}}}}}, spec.options)

	for want, properties := range map[string]map[string]any{
		"a cronJob needs its schedule":                               {"workload": "cronJob"},
		"schedule and timeZone are for the workload cronJob":         {"schedule": "0 3 * * *"},
		"retries and deadline are for the workloads job and cronJob": {"retries": 3},
		"affinity is not what Kubernetes takes there":                {"affinity": map[string]any{"nodes": 1}},
		"tolerations is not what Kubernetes takes there":             {"tolerations": map[string]any{"key": "a"}},
		"securityContext is not what Kubernetes takes there":         {"securityContext": map[string]any{"privileged": true}},
		"topologySpread is not what Kubernetes takes there":          {"topologySpread": map[string]any{"topologyKey": "zone"}},
		"a constraint needs its topologyKey":                         {"topologySpread": []any{map[string]any{"maxSkew": 1}}},
		"are for the workload deployment, and this is a statefulSet": {"workload": "statefulSet", "updateStrategy": "recreate"},
		"recreate ends all pods before it makes others":              {"updateStrategy": "recreate", "maxSurge": "1"},
		"are both 0, so that no pod could ever be replaced":          {"maxSurge": "0", "maxUnavailable": "0%"},
	} {
		_, err := PodSpecOf(tasktest.Pod(t, properties))
		require.ErrorContains(t, err, want)
	}
}

func TestADeploymentReplacesPodsAsThePodSays(t *testing.T) {
	one, zero := intstr.FromInt32(1), intstr.FromString("0%")
	plain := []container{{name: "web", image: "i"}}
	for _, c := range []struct {
		says map[string]any
		want appsv1.DeploymentStrategy
	}{
		{nil, appsv1.DeploymentStrategy{}},
		{map[string]any{"updateStrategy": "recreate"}, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}},
		{map[string]any{"updateStrategy": "rollingUpdate"}, appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}},
		{map[string]any{"maxSurge": "1", "maxUnavailable": "0%"}, appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &zero}}},
	} {
		spec, err := PodSpecOf(tasktest.Pod(t, c.says))
		require.NoError(t, err)
		require.Equal(t, c.want, spec.keeper(metav1.ObjectMeta{}, spec.template(plain), plain)[0].(*appsv1.Deployment).Spec.Strategy)
	}
	with, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	spec, err := PodSpecOf(tasktest.Pod(t, map[string]any{"updateStrategy": "rollingUpdate"}))
	require.NoError(t, err)
	_, err = spec.checkStorage(t.Context(), fake.NewClientset(), []container{with}, workloads{}, nil)
	require.ErrorContains(t, err, "pod web has persistent volumes and the updateStrategy rollingUpdate")
}

// reported keeps what is reported, each line after its level.
type reported struct{ lines []string }

func (r *reported) Report(_ context.Context, _ *muranopl.Object, level engine.Level, text, _ string) error {
	r.lines = append(r.lines, string(level)+": "+text)
	return nil
}

func TestADeploymentTellsHowACronJobRanLast(t *testing.T) {
	spec := podSpec{id: "p", name: "tick", options: podOptions{kind: kindCronJob, schedule: "* * * * *"}}
	run := func(name string, minute int, conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: known.Namespace, Labels: map[string]string{LabelPod: "p"},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 26, 3, minute, 0, 0, time.UTC))}, Status: batchv1.JobStatus{Conditions: conditions}}
	}
	well := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	badly := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "Job has reached the specified backoff limit"}
	pulls := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tick-2-x", Namespace: known.Namespace, Labels: map[string]string{LabelPod: "p", batchv1.JobNameLabel: "tick-2"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "work", Image: "registry.local/none:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}}}}
	for want, there := range map[string][]runtime.Object{
		"info: The cron job tick runs at * * * * *; it has not run yet":                                                           nil,
		"info: The cron job tick ran last at 2026-11-26T03:02:00Z, and succeeded":                                                 {run("tick-1", 1, badly), run("tick-2", 2, well)},
		"warning: The cron job tick ran last at 2026-11-26T03:02:00Z, and failed: Job has reached the specified backoff limit":    {run("tick-2", 2, badly), run("tick-1", 1, well)},
		"info: The cron job tick runs since 2026-11-26T03:02:00Z":                                                                 {run("tick-2", 2)},
		"warning: The cron job tick runs since 2026-11-26T03:02:00Z, and something keeps it from its end: container work of tick": {run("tick-2", 2), pulls},
	} {
		told := &reported{}
		pods := Pods{Reports: task.Reports{Runtime: told, Logger: slog.New(slog.DiscardHandler)}}
		require.NoError(t, pods.reportRuns(t.Context(), tasktest.Pod(t, nil), rolloutOf(nil, fake.NewClientset(there...), spec)))
		require.Len(t, told.lines, 1)
		require.Contains(t, told.lines[0], want)
	}
}

func TestAJobIsNotScaled(t *testing.T) {
	require.NoError(t, refuseScaling(tasktest.Pod(t, nil)))
	err := refuseScaling(tasktest.Pod(t, map[string]any{"workload": "daemonSet"}))
	require.ErrorContains(t, err, "is a daemonSet, which has a pod on each node that its nodeSelector names: give nodes the labels, or take them away")
	err = refuseScaling(tasktest.Pod(t, map[string]any{"workload": "job"}))
	require.ErrorContains(t, err, "is a job, whose pods end by themselves: there is nothing to be scaled")
	require.Equal(t, fault.Invalid, fault.KindOf(err))
}

const wholeContainer = `{
	"name": "Web", "image": "registry.local/web:1", "entryPoint": ["/bin/web"], "commands": ["--port", "8080"],
	"env": {"MODE": "fast"}, "secretEnv": {"PASSWORD": "pencil-and-paper", "API_TOKEN": "t0ken-of-web"},
	"envValueFrom": {"WORD": {"secretKeyRef": {"name": "words", "key": "first"}}, "LEVEL": {"configMapKeyRef": {"name": "levels", "key": "web", "optional": true}}},
	"securityContext": {"readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
	"ports": [{"port": 8080, "publishedPort": 80}],
	"livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5},
	"readinessProbe": {"exec": {"command": ["/bin/web", "ready"]}},
	"startupProbe": {"tcpSocket": {"port": "http"}, "failureThreshold": 30},
	"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
	"volumes": {"/cache": {"size": "500Mi"}, "/data": {"persistent": true, "size": "10Gi", "storageClass": "fast", "name": "data"}, "/scratch": {}},
	"initContainers": [{"name": "migrate", "image": "registry.local/web:1", "commands": ["migrate"], "secretEnv": {"PASSWORD": "pencil-and-paper"}}]}`

func wholePod() podSpec {
	return podSpec{id: "p0d", name: "Web", labels: map[string]string{"tier": "front"}, replicas: 1, options: podOptions{
		kind: kindDeployment, annotations: map[string]string{"example.org/team": "blue"}, serviceAccount: "web", nodeSelector: map[string]string{"disk": "fast"},
		affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"id": "web"}}}}}},
		tolerations: []corev1.Toleration{{Key: "batch", Operator: corev1.TolerationOpExists}}, retries: defaultRetries,
		security: &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))}, grace: new(int64(5)),
		spread: []corev1.TopologySpreadConstraint{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}}}
}

func TestAPodMaySayAllThatKubernetesKnows(t *testing.T) {
	one, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	one.application, one.secretName, one.options.before[0].secretName = "a", "web-web-abcde", "web-migrate-fghij"
	for name, change := range map[string]func(*podSpec){
		"options.json":     func(*podSpec) {},
		"statefulset.json": func(p *podSpec) { p.options.kind, p.replicas = kindStatefulSet, 3 },
		"daemonset.json": func(p *podSpec) {
			p.options.kind, p.options.hostNetwork, p.options.hostPID, p.options.minReady, p.replicas = kindDaemonSet, true, true, new(int32(5)), 3
		},
		"job.json": func(p *podSpec) { p.options.kind, p.options.deadline = kindJob, 600 },
		"cronjob.json": func(p *podSpec) {
			p.options.kind, p.options.schedule, p.options.timeZone = kindCronJob, "0 3 * * *", "Europe/Berlin"
		},
	} {
		spec := wholePod()
		change(&spec)
		objects := spec.objects([]container{one})
		golden(t, name, objects)
		text, err := json.Marshal(objects)
		require.NoError(t, err)
		require.NotContains(t, string(text), "pencil-and-paper")
		require.NotContains(t, string(text), "t0ken-of-web")
	}
}

func TestTheDigestOfAContainerWithoutOptionsIsWhatItWas(t *testing.T) {
	one := container{application: "b", name: "Hello World", image: "registry.local/demo:1", env: map[string]string{"B": "2", "A": "1"},
		commands: []string{"--verbose"}, privileged: true,
		ports:   []port{{number: 8080, published: 80, protocol: "TCP", scope: "public"}},
		volumes: map[string]volume{"/data": {}, "/host": {hostPath: "/srv"}}}
	require.Equal(t, "01b051c0d6c18c0daddf31fc4109fe661f5c20adcaf32739b03971879415a955", one.digest())
	plain := container{application: "a", name: "n", image: "i", env: map[string]string{}, volumes: map[string]volume{}}
	require.Equal(t, "22109f88ecf4d514784a778478f5dec99535fdc0588997ec1a5968efe6c065f2", plain.digest())
}

func TestEachOptionOfAContainerChangesItsDigest(t *testing.T) {
	digests := map[string]string{}
	for name, text := range map[string]string{
		"none":      `{"name": "n", "image": "i"}`,
		"entry":     `{"name": "n", "image": "i", "entryPoint": ["/x"]}`,
		"secret":    `{"name": "n", "image": "i", "secretEnv": {"A": "b"}}`,
		"another":   `{"name": "n", "image": "i", "secretEnv": {"A": "c"}}`,
		"liveness":  `{"name": "n", "image": "i", "livenessProbe": {"tcpSocket": {"port": 1}}}`,
		"readiness": `{"name": "n", "image": "i", "readinessProbe": {"tcpSocket": {"port": 1}}}`,
		"startup":   `{"name": "n", "image": "i", "startupProbe": {"tcpSocket": {"port": 1}}}`,
		"resources": `{"name": "n", "image": "i", "resources": {"limits": {"cpu": 1}}}`,
		"foreign":   `{"name": "n", "image": "i", "envValueFrom": {"A": {"secretKeyRef": {"name": "s", "key": "a"}}}}`,
		"another's": `{"name": "n", "image": "i", "envValueFrom": {"A": {"configMapKeyRef": {"name": "s", "key": "a"}}}}`,
		"security":  `{"name": "n", "image": "i", "securityContext": {"runAsUser": 1}}`,
		"file":      `{"name": "n", "image": "i", "files": {"/a": "b"}}`,
		"other":     `{"name": "n", "image": "i", "files": {"/a": "c"}}`,
		"private":   `{"name": "n", "image": "i", "files": {"/a": {"text": "b", "secret": true}}}`,
		"closed":    `{"name": "n", "image": "i", "files": {"/a": {"text": "b", "mode": "0400"}}}`,
		"bootstrap": `{"name": "n", "image": "i", "bootstrap": {"commands": ["a"]}}`,
		"after":     `{"name": "n", "image": "i", "bootstrapAfter": {"commands": ["a"]}}`,
		"lifecycle": `{"name": "n", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}`,
		"named":     `{"name": "n", "image": "i", "volumes": {"/d": {"name": "a"}}}`,
		"host":      `{"name": "n", "image": "i", "volumes": {"/d": {"path": "/a"}}}`,
		"seen":      `{"name": "n", "image": "i", "volumes": {"/d": {"path": "/a", "propagation": "Bidirectional"}}}`,
		"sidecar":   `{"name": "n", "image": "i", "sidecars": [{"name": "m", "image": "i"}]}`,
		"init":      `{"name": "n", "image": "i", "initContainers": [{"name": "m", "image": "i"}]}`,
		"temporary": `{"name": "n", "image": "i", "volumes": {"/d": {}}}`,
		"bounded":   `{"name": "n", "image": "i", "volumes": {"/d": {"size": "1Gi"}}}`,
		"claimed":   `{"name": "n", "image": "i", "volumes": {"/d": {"size": "1Gi", "persistent": true}}}`,
	} {
		one, err := containerIn(t, text)
		require.NoError(t, err, name)
		require.Equal(t, one.digest(), one.digest())
		require.NotContains(t, digests, one.digest(), "%s is as %s", name, digests[one.digest()])
		digests[one.digest()] = name
	}
}

func TestWhatAContainerCannotBeIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "n", "image": "i", "livenessProbe": {"http": {}}}`:                                                                     "livenessProbe is not what Kubernetes takes there: json: unknown field \"http\"",
		`{"name": "n", "image": "i", "resources": {"limits": {"cpu": "much"}}}`:                                                          "resources is not what Kubernetes takes there",
		`{"name": "n", "image": "i", "env": {"A": "1"}, "secretEnv": {"A": "2"}}`:                                                        "the variable A stands in env and in secretEnv",
		`{"name": "n", "image": "i", "volumes": {"/d": {"persistent": true}}}`:                                                           "the volume at /d: a persistent volume needs its size",
		`{"name": "n", "image": "i", "volumes": {"/d": {"size": "big"}}}`:                                                                "size is \"big\", which is no amount",
		`{"name": "n", "image": "i", "volumes": {"/d": {"size": "1Gi", "path": "/srv"}}}`:                                                "a folder of a node has no size",
		`{"name": "n", "image": "i", "initContainers": [{"name": "m", "image": "i", "ports": [{"port": 1}]}]}`:                           "m has ports, bootstraps, sidecars, init containers or dependsOn of its own",
		`{"name": "n", "image": "i", "env": {"A": "1"}, "envValueFrom": {"A": {"fieldRef": {"fieldPath": "metadata.name"}}}}`:            "the variable A stands in env and in envValueFrom",
		`{"name": "n", "image": "i", "envValueFrom": {"A": {}}}`:                                                                         "the variable A in envValueFrom: write one of secretKeyRef",
		`{"name": "n", "image": "i", "envValueFrom": {"A": {"secretKeyRef": {"name": "s"}}}}`:                                            "secretKeyRef needs the name of a Secret of the namespace default, and a key of it",
		`{"name": "n", "image": "i", "envValueFrom": {"A": {"configMapKeyRef": {"key": "s"}}}}`:                                          "configMapKeyRef needs the name of a ConfigMap",
		`{"name": "n", "image": "i", "securityContext": {"fsGroup": 1}}`:                                                                 "securityContext is not what Kubernetes takes there: json: unknown field \"fsGroup\"",
		`{"name": "n", "image": "i", "files": {"etc/a": "b"}}`:                                                                           "the file etc/a: its key is not the whole path of a file, such as /etc/app/app.conf",
		`{"name": "n", "image": "i", "files": {"/etc/../a": "b"}}`:                                                                       "its key is not the whole path of a file",
		`{"name": "n", "image": "i", "files": {"/a": 7}}`:                                                                                "the file /a: it is int64",
		`{"name": "n", "image": "i", "files": {"/a": {"secret": true}}}`:                                                                 "it needs its text",
		`{"name": "n", "image": "i", "files": {"/a": {"text": "b", "mode": "0999"}}}`:                                                    "mode is 0999: write permissions as an octal text",
		`{"name": "n", "image": "i", "files": {"/a": {"text": "b", "owner": "root"}}}`:                                                   "there is no owner: a file has text, secret and mode",
		`{"name": "n", "image": "i", "files": {"/d": "b"}, "volumes": {"/d": {}}}`:                                                       "a volume and a file at /d",
		`{"name": "n", "image": "i", "bootstrap": {"command": ["a"]}}`:                                                                   "bootstrap: write {entryPoint: [...], commands: [...], env: {...}, deadline: SECONDS}",
		`{"name": "n", "image": "i", "bootstrapAfter": {"env": {"A": "b"}}}`:                                                             "bootstrapAfter needs an entryPoint or commands",
		`{"name": "n", "image": "i", "bootstrap": {"commands": ["a"], "deadline": -1}}`:                                                  "a deadline above 0",
		`{"name": "n", "image": "i", "volumes": {"/d": {"propagation": "Bidirectional"}}}`:                                               "propagation is for folders of a node",
		`{"name": "n", "image": "i", "lifecycle": {"preStart": {}}}`:                                                                     "lifecycle is not what Kubernetes takes there",
		`{"name": "n", "image": "i", "sidecars": [{"name": "m", "image": "i", "volumes": {"/d": {"persistent": true, "size": "1Gi"}}}]}`: "sidecars: the volume at /d of m is persistent: give it to the container",
		`{"name": "n", "image": "i", "sidecars": [{"name": "m", "image": "i", "sidecars": [{"name": "o", "image": "i"}]}]}`:              "m has ports, bootstraps, sidecars, init containers or dependsOn of its own",
		`{"name": "n", "image": "i", "initContainers": [{"name": "m"}]}`:                                                                 "a container without a name or an image",
		`{"name": "n", "image": "i", "volumes": {"/d": {"persistent": true, "size": "1Gi", "path": "/srv"}}}`:                            "a persistent volume is no folder of a node",
	} {
		_, err := containerIn(t, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestVariablesOfAnyImageComeFromTheCluster(t *testing.T) {
	read := func(written string) (map[string]any, error) {
		return sourcesOf(tasktest.Load(t, map[string]any{"?": map[string]any{"id": "a", "type": task.ClassAnyImage}, "name": "a", "image": "i", "envValueFrom": written,
			"host": map[string]any{"?": map[string]any{"id": "h", "type": task.ClassContainerHost}, "name": "h"}}))
	}
	got, err := read("PASSWORD=secret/db/password, MODE=configMap/settings/mode")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"PASSWORD": map[string]any{"secretKeyRef": map[string]any{"name": "db", "key": "password"}},
		"MODE": map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "mode"}}}, got)
	got, err = read("")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestSecretsOfOthersAreNotToldByLogs(t *testing.T) {
	word := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "words", Namespace: known.Namespace}, Data: map[string][]byte{"first": []byte("pencil-and-paper")}}
	from := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: strings.ToUpper(name), ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: known.Namespace, Labels: map[string]string{LabelPod: "p"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", Value: "b"}, from("gone"), from("words")}}}}}
	known, err := knownOf(t.Context(), fake.NewClientset(word, pod), podSpec{id: "p"})
	require.NoError(t, err)
	require.NotContains(t, known.Hide("it is pencil-and-paper"), "pencil")
}

func TestTheValuesOfOthersHaveDigests(t *testing.T) {
	one, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	words := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "words", Namespace: known.Namespace, UID: "w"}, Data: map[string][]byte{"first": []byte("pencil")}}
	levels := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "levels", Namespace: known.Namespace, UID: "l"}, Data: map[string]string{"web": "deep", "other": "1"}}
	read := func(words *corev1.Secret, levels *corev1.ConfigMap) string {
		values, err := foreignValues(t.Context(), fake.NewClientset(words, levels), known.Namespace, []container{one})
		require.NoError(t, err)
		require.Regexp(t, `^configMap/levels=[0-9a-f]{8}, secret/words=[0-9a-f]{8}$`, values)
		return values
	}
	now := read(words, levels)
	unread, deeper, other := levels.DeepCopy(), levels.DeepCopy(), words.DeepCopy()
	unread.Data["other"], deeper.Data["web"], other.Data["first"] = "2", "deeper", []byte("paper")
	require.Equal(t, now, read(words, unread), "a key that nobody reads")
	require.NotEqual(t, now, read(words, deeper))
	require.NotEqual(t, now, read(other, levels))
	delete(deeper.Data, "web")
	require.NotEqual(t, now, read(words, deeper))
	none, err := foreignValues(t.Context(), fake.NewClientset(), known.Namespace, []container{{}})
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestPersistentVolumesOfAPodWithOneNameAreOne(t *testing.T) {
	size := resource.MustParse("1Gi")
	shared := volume{options: volumeOptions{size: &size, claim: &claim{name: "data"}}}
	own := volume{options: volumeOptions{size: &size, claim: &claim{}}}
	spec := podSpec{id: "p", name: "web", replicas: 1}
	containers := []container{{application: "a", name: "one", volumes: map[string]volume{"/x": shared, "/own": own}}, {application: "b", name: "two", volumes: map[string]volume{"/y": shared}}}
	template := spec.template(containers)
	require.Len(t, template.Spec.Volumes, 2)
	require.Len(t, spec.claims(containers), 2)
	require.Equal(t, template.Spec.Containers[0].VolumeMounts[1].Name, template.Spec.Containers[1].VolumeMounts[0].Name)
}

func TestContainersShareTemporaryVolumesByTheirNames(t *testing.T) {
	one, err := containerIn(t, `{"name": "one", "image": "i", "volumes": {"/own": {}, "/x": {"name": "run"}}}`)
	require.NoError(t, err)
	two, err := containerIn(t, `{"name": "two", "image": "i", "volumes": {"/own": {}, "/y": {"name": "run"}, "/n": {"path": "/mnt", "propagation": "HostToContainer"}}}`)
	require.NoError(t, err)
	one.application, two.application = "a", "b"
	template := podSpec{id: "p", name: "web", replicas: 1}.template([]container{one, two})
	require.Len(t, template.Spec.Volumes, 4, "run, the node's folder, and one for each of /own")
	first, second := template.Spec.Containers[0].VolumeMounts, template.Spec.Containers[1].VolumeMounts
	require.Equal(t, first[1].Name, second[2].Name)
	require.NotEqual(t, first[0].Name, second[1].Name)
	require.Equal(t, corev1.MountPropagationHostToContainer, *second[0].MountPropagation)
}

func TestSidecarsRunBesideWithTheirOwnMounts(t *testing.T) {
	one, err := containerIn(t, `{"name": "web", "image": "glance.local/i:1", "volumes": {"/data": {"persistent": true, "size": "1Gi"}, "/log": {"name": "log"}},
		"initContainers": [{"name": "first", "image": "i"}],
		"sidecars": [{"name": "shipper", "image": "glance.local/s:1", "volumes": {"/in": {"name": "log"}}, "files": {"/etc/shipper": "all"}, "secretEnv": {"KEY": "pencil"}}]}`)
	require.NoError(t, err)
	spec := podSpec{id: "p", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}
	require.Equal(t, []string{"glance.local/i:1", "glance.local/s:1"}, imagesOf([]container{one}))
	require.Len(t, secretParts([]container{one}), 1)
	require.Len(t, spec.fileMaps([]container{one}), 1)
	pod := spec.template([]container{one}).Spec
	first, shipper := pod.InitContainers[0], pod.InitContainers[1]
	require.Nil(t, first.RestartPolicy)
	require.Equal(t, pod.Containers[0].VolumeMounts, first.VolumeMounts)
	require.Equal(t, corev1.ContainerRestartPolicyAlways, *shipper.RestartPolicy)
	require.Equal(t, []string{"/in", "/etc/shipper"}, []string{shipper.VolumeMounts[0].MountPath, shipper.VolumeMounts[1].MountPath})
	require.Equal(t, pod.Containers[0].VolumeMounts[1].Name, shipper.VolumeMounts[0].Name, "they share the folder")
}

func TestAnOwnPreStopIsKept(t *testing.T) {
	one, err := containerIn(t, `{"name": "one", "image": "i", "ports": [{"port": 80}], "lifecycle": {"preStop": {"exec": {"command": ["drain"]}}}}`)
	require.NoError(t, err)
	two, err := containerIn(t, `{"name": "two", "image": "i", "lifecycle": {"postStart": {"exec": {"command": ["begin"]}}}}`)
	require.NoError(t, err)
	one.application, two.application = "a", "b"
	containers := podSpec{id: "p", name: "web", replicas: 1, options: podOptions{kind: kindDeployment}}.template([]container{one, two}).Spec.Containers
	require.Equal(t, []string{"drain"}, containers[0].Lifecycle.PreStop.Exec.Command)
	require.Equal(t, []string{"begin"}, containers[1].Lifecycle.PostStart.Exec.Command)
	require.Equal(t, int64(lingerSeconds), containers[1].Lifecycle.PreStop.Sleep.Seconds)
}

func TestClaimsAreNotMovedByOtherVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := resource.MustParse("1Gi")
		paths := rapid.SliceOfNDistinct(rapid.StringMatching(`/[a-z]{1,8}`), 1, 5, rapid.ID).Draw(t, "paths")
		persistent := volume{options: volumeOptions{size: &size, claim: &claim{}}}
		one := container{name: "c", volumes: map[string]volume{paths[0]: persistent}}
		spec := podSpec{name: "p"}
		alone := spec.claimName(one, paths[0])
		for _, path := range paths[1:] {
			one.volumes[path] = volume{}
		}
		require.Equal(t, alone, spec.claimName(one, paths[0]), "another volume must not take the data from this one")
	})
}

func TestPersistentVolumesNeedStorage(t *testing.T) {
	one, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	spec := wholePod()
	check := func(client *fake.Clientset) error {
		_, err := spec.checkStorage(t.Context(), client, []container{one}, workloads{}, nil)
		return err
	}
	err = check(fake.NewClientset())
	require.ErrorContains(t, err, "pod Web wants the persistent volume web-data, and the cluster has no storage class fast, nor any other: give it storage (its property storageClasses), or use a DockerHostVolume or a DockerTempVolume")
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	slow := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	require.ErrorContains(t, check(fake.NewClientset(slow)), "no storage class fast: name one of slow in storageClass")
	fast := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	require.NoError(t, check(fake.NewClientset(slow, fast)))
	spec.replicas = 2
	require.ErrorContains(t, check(fake.NewClientset(fast)), "workload to statefulSet")
	spec.options.kind = kindDaemonSet
	require.ErrorContains(t, check(fake.NewClientset(fast)), "is a daemonSet with persistent volumes")
	spec.options.kind = kindStatefulSet
	require.NoError(t, check(fake.NewClientset(fast)))

	one.volumes["/data"].options.claim.class = ""
	require.ErrorContains(t, check(fake.NewClientset(fast)), "no default storage class: name one of fast")
	fast.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	require.NoError(t, check(fake.NewClientset(fast)))
}

func TestAnotherValueIsAnotherSecret(t *testing.T) {
	client := fake.NewClientset()
	made := 0 // the false API server makes no names
	client.PrependReactor("create", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		made++
		secret := action.(k8stesting.CreateAction).GetObject().(*corev1.Secret)
		secret.Name = secret.GenerateName + strings.Repeat("x", made)
		return false, nil, nil
	})
	spec := wholePod()
	keep := func(value string) container {
		containers := []container{{name: "Web", options: containerOptions{secrets: map[string]string{"PASSWORD": value}}}}
		require.NoError(t, podSecrets{spec, client}.ensure(t.Context(), containers))
		return containers[0]
	}
	names := func() []string {
		list, err := client.CoreV1().Secrets(known.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		found := map[string]bool{}
		for _, secret := range list.Items {
			require.True(t, *secret.Immutable)
			found[secret.Name] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	first := keep("pencil")
	require.Equal(t, first.secretName, keep("pencil").secretName, "the same is found again")
	announced := []container{{name: "Web", options: containerOptions{secrets: map[string]string{"PASSWORD": "paper"}}}}
	changes, err := podSecrets{spec, client}.foresee(t.Context(), announced)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Equal(t, announced[0].secretName, changes[0].Name)
	require.Regexp(t, "^[a-z0-9-]+-web-x{5}$", changes[0].Name, "Kubernetes takes this name, and users read it")
	second := keep("paper")
	require.NotEqual(t, first.secretName, second.secretName)

	// A form that the pod can go back to keeps its Secret.
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: known.Namespace, Labels: map[string]string{LabelPod: spec.id}},
		Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{first.build()}}}}}
	_, err = client.AppsV1().ReplicaSets(known.Namespace).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, podSecrets{spec, client}.clear(t.Context(), []container{second}))
	require.Equal(t, []string{first.secretName, second.secretName}, names())
	require.NoError(t, client.AppsV1().ReplicaSets(known.Namespace).Delete(context.Background(), "web-1", metav1.DeleteOptions{}))
	require.NoError(t, podSecrets{spec, client}.clear(t.Context(), []container{second}))
	require.Equal(t, []string{second.secretName}, names())
}

// notReady is a pod whose container is in this state.
func notReady(state corev1.ContainerStatus) *corev1.Pod {
	state.Name, state.Image = "web", "registry.local/web:2"
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "u"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{state}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}}, {Name: "side", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}}}}}
}

func inState(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func TestWhatKeepsAPodFromRunningIsSaid(t *testing.T) {
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}
	event := func(reason, message string) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{UID: types.UID("u")}}
	}
	unscheduled := func(message string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}}}
	}
	for name, one := range map[string]struct {
		pod      *corev1.Pod
		events   []corev1.Event
		want     string
		patience time.Duration
		previous bool
	}{
		"an image that is not there": {notReady(corev1.ContainerStatus{State: inState("ImagePullBackOff", "not found")}), nil,
			"container web of web-1: its image registry.local/web:2 cannot be pulled: not found", imagePatience, false},
		"an image that is none": {notReady(corev1.ContainerStatus{State: inState("InvalidImageName", "no")}), nil,
			"container web of web-1: its image registry.local/web:2 cannot be had: no", 0, false},
		"a crash may be one": {notReady(corev1.ContainerStatus{State: inState("CrashLoopBackOff", "back-off"), LastTerminationState: crashed, RestartCount: 1}), nil,
			"container web of web-1: it ended with exit code 3 (Error), and was started again 1 times; container side of the same pod names port 80/TCP as well, and only one can listen on it", endless, true},
		"a crash loop": {notReady(corev1.ContainerStatus{State: inState("CrashLoopBackOff", "back-off"), LastTerminationState: crashed, RestartCount: 3}),
			[]corev1.Event{event("Unhealthy", "Liveness probe failed: 500")},
			"container web of web-1: it ended with exit code 3 (Error), and was started again 3 times; Liveness probe failed: 500; container side of the same pod names port 80/TCP as well, and only one can listen on it", othersPatience, true},
		"one that runs again after a crash": {notReady(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: crashed, RestartCount: 5}), nil,
			"container web of web-1: it ended with exit code 3 (Error), and was started again 5 times; container side of the same pod names port 80/TCP as well, and only one can listen on it", endless, true},
		"a container of a job": {notReady(corev1.ContainerStatus{State: crashed}), nil,
			"container web of web-1: it ended with exit code 3 (Error); container side of the same pod names port 80/TCP as well, and only one can listen on it", endless, false},
		"a probe": {notReady(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
			[]corev1.Event{event("Unhealthy", "Readiness probe failed: refused")},
			"container web of web-1: it runs, but is not ready: Readiness probe failed: refused", endless, false},
		"a key that a Secret has not": {notReady(corev1.ContainerStatus{State: inState("CreateContainerConfigError", "couldn't find key A")}), nil,
			"container web of web-1: it cannot be started: CreateContainerConfigError couldn't find key A", othersPatience, false},
		"a volume that is not attached": {notReady(corev1.ContainerStatus{State: inState("ContainerCreating", "")}), []corev1.Event{event("FailedMount", "no such disk")},
			"container web of web-1: it waits: ContainerCreating: no such disk", endless, false},
		"no room": {unscheduled("0/1 nodes are available: 1 Insufficient memory."), nil,
			"web-1: no node can take it: 0/1 nodes are available: 1 Insufficient memory.", endless, false},
		"a port of the node": {unscheduled("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."), nil,
			"web-1: a port that it wants of its node is another's on every node: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", endless, false},
		"a full disk": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: ephemeral-storage."}}, nil,
			"web-1: it was ended: Evicted The node was low on resource: ephemeral-storage.", endless, false},
		"a full volume": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: `Usage of EmptyDir volume "web-0" exceeds the limit "10Mi". `}}, nil,
			`web-1: it was ended: Evicted Usage of EmptyDir volume "web-0" exceeds the limit "10Mi". `, othersPatience, false},
	} {
		found := obstaclesOf(one.pod, one.events)
		require.Len(t, found, 1, name)
		require.Equal(t, one.want, found[0].String(), name)
		require.Equal(t, one.patience, found[0].patience, name)
		require.Equal(t, one.previous, found[0].previous, name)
	}
	require.Empty(t, obstaclesOf(notReady(corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: crashed, RestartCount: 7}), nil),
		"what has come up again is no obstacle")
	quota := obstaclesOfDeployment(&appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "web" is forbidden: exceeded quota: small`}}}})
	require.Equal(t, `: the quota of the namespace has no room for a pod: pods "web" is forbidden: exceeded quota: small`, quota[0].String())
}

// TestOnlyTheNewestPodsCount has a rollout look at a Deployment whose former form cannot run, while the newest one comes up.
func TestOnlyTheNewestPodsCount(t *testing.T) {
	spec := wholePod()
	mine := func(hash string) map[string]string {
		return map[string]string{LabelPod: spec.id, labelReplicaSet: hash}
	}
	set := func(hash, revision string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Namespace: known.Namespace, Labels: mine(hash), Annotations: map[string]string{annotationRevision: revision}}}
	}
	failing := notReady(corev1.ContainerStatus{State: inState("InvalidImageName", "")})
	failing.Namespace, failing.Labels = known.Namespace, mine("former")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: known.Namespace, Generation: 2}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}
	client := fake.NewClientset(set("former", "9"), set("newest", "10"), failing, deployment)
	r := rolloutOf(nil, client, spec)
	_, facts, err := r.newest(t.Context())
	require.NoError(t, err)
	require.False(t, facts, "the controller has not seen it")
	deployment.Status.ObservedGeneration = 2
	_, err = client.AppsV1().Deployments(known.Namespace).Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	for range 3 {
		require.False(t, r.hopeless(t.Context()))
	}
	failing.Labels = mine("newest")
	_, err = client.CoreV1().Pods(known.Namespace).Update(t.Context(), failing, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, r.hopeless(t.Context()))
}

func TestPodsThatCouldNotBeMadeAreTriedAtOnce(t *testing.T) {
	spec := wholePod()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: known.Namespace, ResourceVersion: "7", Labels: map[string]string{LabelPod: spec.id}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: known.Namespace}}
	client := fake.NewClientset(set, deployment)
	r := rolloutOf(nil, client, spec)
	tried := func() string {
		r.nudge(t.Context())
		now, err := client.AppsV1().ReplicaSets(known.Namespace).Get(t.Context(), "web-1", metav1.GetOptions{})
		require.NoError(t, err)
		return now.Annotations[annotationTried]
	}
	require.Empty(t, tried(), "nothing has kept them from being made")
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	_, err := client.AppsV1().Deployments(known.Namespace).UpdateStatus(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "7", tried())
}

func TestLogsAreOfPodsThatThereAre(t *testing.T) {
	at := func(name string, hour int) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)}}
	}
	pods := []corev1.Pod{at("web-1", 1), at("web-2", 2)}
	chosen, err := choosePods(pods, "")
	require.NoError(t, err)
	require.Equal(t, "web-2", chosen[0].Name)
	chosen, err = choosePods(pods, "web-1")
	require.NoError(t, err)
	require.Len(t, chosen, 1)
	_, err = choosePods(pods, "web-3")
	require.ErrorContains(t, err, "it has no pod web-3; it has web-1, web-2")
	_, err = choosePods(nil, "")
	require.ErrorContains(t, err, "deploy the environment")
}

func TestWhatARollbackCannotTellTheModelIsNamed(t *testing.T) {
	wanted := []corev1.Container{{Name: "web", Args: []string{"--new"}, Env: []corev1.EnvVar{{Name: "A", Value: "2"}}}}
	former := []corev1.Container{{Name: "web", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}}
	require.Equal(t, []string{"the command of container web", "the environment of container web"}, differences(wanted, former))
	require.Empty(t, differences(wanted, wanted))
}

func TestARollbackLeavesOutWhatNeverCameUp(t *testing.T) {
	set := func(name, ran string) appsv1.ReplicaSet {
		return appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelRan: ran}}}
	}
	require.Nil(t, formerOf([]appsv1.ReplicaSet{set("now", "true")}))
	require.Equal(t, "ran", formerOf([]appsv1.ReplicaSet{set("now", ""), set("never", ""), set("ran", "true"), set("older", "true")}).Name)
	require.Equal(t, "unknown", formerOf([]appsv1.ReplicaSet{set("now", "true"), set("unknown", "")}).Name, "of a Burano that did not note it")
}

func TestARollbackKeepsHowADeploymentReplacesPods(t *testing.T) {
	one, err := containerIn(t, wholeContainer)
	require.NoError(t, err)
	for kind, containers := range map[appsv1.DeploymentStrategyType][]container{
		"":                                    {{name: "web", image: "registry.local/web:1"}},
		appsv1.RecreateDeploymentStrategyType: {one}, // whose volume one pod at a time can have
	} {
		spec := wholePod()
		objects := spec.keeper(metav1.ObjectMeta{Name: "web", Namespace: known.Namespace}, spec.template(containers), containers)
		now := objects[0].(*appsv1.Deployment)
		now.Annotations = map[string]string{annotationDependsOn: "pod-books", "of": "others"}
		set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: *now.Spec.Template.DeepCopy()}}
		set.Spec.Template.Labels[labelReplicaSet] = "abc"
		set.Spec.Template.Annotations[annotationRecreated] = "task"
		back := withForm(now, formIn(set), spec.options.strategy)
		require.Equal(t, kind, back.Spec.Strategy.Type)
		require.Equal(t, map[string]string{annotationDependsOn: "pod-books"}, back.Annotations, "it goes on to have its order")
		require.Equal(t, now.Spec, back.Spec, "the same form is the same Deployment")
	}
}
