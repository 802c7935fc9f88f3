package workloads

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/task/tasktest"
)

var ofContainers = netip.MustParsePrefix("172.31.0.0/16")

func TestAContainerOfAStandaloneHostIsAPodOfItsOwn(t *testing.T) {
	one, err := containerIn(t, `{"name": "Ledger", "image": "glance.local/ledger:1", "env": {"A": "1"}, "secretEnv": {"PASSWORD": "not for all"},
		"ports": [{"port": 5432, "publishedPort": 6000, "scope": "public"}, {"port": 9000, "scope": "internal"}, {"port": 53, "scope": "cloud", "protocol": "UDP"}],
		"volumes": {"/data": {"persistent": true, "size": "10Gi"}, "/cache": {"persistent": true, "size": "1Gi", "name": "Shared", "keep": false}, "/host": {"path": "/srv"}, "/tmp": {"size": "5Mi"}},
		"initContainers": [{"name": "migrate", "image": "i", "secretEnv": {"TOKEN": "of before"}}]}`)
	require.NoError(t, err)
	before := one.digest()
	pod, volumes, files, err := one.alone("host", ofContainers)
	require.NoError(t, err)
	golden(t, "standalone.json", pod)
	require.Equal(t, []string{"/var/lib/burano/volumes/with/ledger/shared", "/var/lib/burano/volumes/kept/ledger/data"}, []string{volumes[0].Path(), volumes[1].Path()})
	require.Equal(t, before, one.digest(), "the container is left as it was")

	require.Empty(t, files)

	again, _, _, err := one.alone("host", ofContainers)
	require.NoError(t, err)
	require.Equal(t, pod, again)
	one.env["A"] = "2"
	other, _, _, err := one.alone("host", ofContainers)
	require.NoError(t, err)
	require.NotEqual(t, pod.Annotations, other.Annotations)

	classed, err := containerIn(t, `{"name": "a", "image": "i", "volumes": {"/data": {"persistent": true, "size": "1Gi", "storageClass": "fast"}}}`)
	require.NoError(t, err)
	_, _, _, err = classed.alone("host", ofContainers)
	require.ErrorContains(t, err, "the volume at /data names the storage class fast")
	referring, err := containerIn(t, `{"name": "a", "image": "i", "envValueFrom": {"A": {"secretKeyRef": {"name": "s", "key": "k"}}}}`)
	require.NoError(t, err)
	_, _, _, err = referring.alone("host", ofContainers)
	require.ErrorContains(t, err, "the variable A of container a comes from a Secret")
}

func TestFilesOfAStandaloneHostAreMountedFromItsServer(t *testing.T) {
	whole := `{"name": "Web", "image": "i", "files": {"/etc/web.conf": "TEXT", "/etc/key": {"text": "not for all", "secret": true, "mode": "0440"}},
		"initContainers": [{"name": "first", "image": "i", "files": {"/etc/first": "TEXT"}}]}`
	mounts := func(text string) (paths map[string]string, pod *corev1.Pod) {
		one, err := containerIn(t, strings.ReplaceAll(whole, "TEXT", text))
		require.NoError(t, err)
		pod, volumes, files, err := one.alone("host", ofContainers)
		require.NoError(t, err)
		require.Empty(t, volumes)
		known, folders := map[string]string{}, map[string]string{}
		for _, file := range files {
			require.Equal(t, "web", file.Pod)
			known[file.Path()] = fmt.Sprintf("%s %o", file.Content, file.Mode)
		}
		for _, volume := range pod.Spec.Volumes {
			require.Equal(t, corev1.HostPathFile, *volume.HostPath.Type)
			folders[volume.Name] = volume.HostPath.Path
		}
		paths = map[string]string{}
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			for _, mount := range container.VolumeMounts {
				require.True(t, mount.ReadOnly)
				require.Empty(t, mount.SubPath)
				paths[container.Name+" "+mount.MountPath] = known[folders[mount.Name]]
			}
		}
		require.NotContains(t, hiddenIn([]hosted{{container: one}}).Hide("it is not for all"), "not for all")
		return paths, pod
	}
	paths, pod := mounts("text")
	require.Equal(t, map[string]string{"web /etc/web.conf": "text 444", "web /etc/key": "not for all 440", "first /etc/first": "text 444"}, paths)
	_, same := mounts("text")
	require.Equal(t, pod, same)
	_, other := mounts("another")
	require.NotEqual(t, pod.Annotations, other.Annotations, "another text is another pod")
	booting, err := containerIn(t, `{"name": "a", "image": "i", "bootstrap": {"commands": ["migrate"]}}`)
	require.NoError(t, err)
	_, _, _, err = booting.alone("host", ofContainers)
	require.ErrorContains(t, err, "container a has bootstraps")
}

func TestContainersOfAStandaloneHostHaveNamesAndPortsOfTheirOwn(t *testing.T) {
	host := tasktest.Load(t, map[string]any{"?": map[string]any{"id": "host", "type": task.ClassContainerHost}, "name": "docker"})
	application := tasktest.Load(t, map[string]any{"?": map[string]any{"id": "a", "type": "com.mirantis.docker.DockerVolume"}})
	check := func(texts ...string) error {
		var all []hosted
		for _, text := range texts {
			one, err := containerIn(t, text)
			require.NoError(t, err)
			all = append(all, hosted{application, one})
		}
		return checkPorts(host, all)
	}
	const web = `{"name": "web", "image": "i", "ports": [{"port": 80}]}`
	require.NoError(t, check(web, `{"name": "dns", "image": "i", "ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "publishedPort": 81}]}`))
	err := check(web, `{"name": "other", "image": "i", "ports": [{"port": 8080, "publishedPort": 80}]}`)
	require.EqualError(t, err, "Port 80 is already used on the Docker host docker")
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.Equal(t, []string{"com.mirantis.docker.PortConflictException"}, muranopl.AsException(err).Names)
	require.EqualError(t, check(`{"name": "shell", "image": "i", "ports": [{"port": 22}]}`), "Port 22 is already used on the Docker host docker")
	require.ErrorContains(t, check(web, `{"name": "WEB", "image": "i"}`), "that no other container")
	require.ErrorContains(t, check(`{"name": "--", "image": "i"}`), "with letters or digits")
}

func TestAStandaloneHostIsUpOnceWhatIsWantedRunsAndNothingElse(t *testing.T) {
	pod := func(digest string, ready corev1.ConditionStatus, waiting string) corev1.Pod {
		made := corev1.Pod{}
		made.Name, made.Annotations = "web-docker-1", map[string]string{annotationDigest: digest}
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		if waiting != "" {
			made.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
		}
		return made
	}
	wanted := pod("new", "", "")
	current, former := pod("new", corev1.ConditionTrue, ""), corev1.Pod{}
	current.UID, former.UID = "2", "1"
	for name, c := range map[string]struct {
		found, running     []corev1.Pod
		missing, obstacles int
		putOff             bool
	}{
		"nothing is there":             {nil, nil, 1, 0, false},
		"it runs":                      {[]corev1.Pod{current}, []corev1.Pod{current}, 0, 0, false},
		"the former one has not ended": {[]corev1.Pod{current}, []corev1.Pod{current, former}, 1, 0, false},
		"another description is found": {[]corev1.Pod{pod("old", corev1.ConditionTrue, "")}, nil, 1, 0, false},
		"its image cannot be had":      {[]corev1.Pod{pod("new", corev1.ConditionFalse, "ImagePullBackOff")}, nil, 1, 1, true},
	} {
		obstacles, missing := lacking([]*corev1.Pod{&wanted}, c.found, c.running)
		require.Equal(t, c.missing, missing, name)
		require.Len(t, obstacles, c.obstacles, name)
		require.Equal(t, c.putOff, putOff(c.found), name)
	}
}

func TestTheNetworkOfContainersIsARange(t *testing.T) {
	host := func(network any) *muranopl.Object {
		return tasktest.Load(t, map[string]any{"?": map[string]any{"id": "host", "type": task.ClassStandaloneHost}, "name": "docker", "containerNetwork": network,
			"instance": map[string]any{"?": map[string]any{"id": "i", "type": "io.murano.resources.LinuxMuranoInstance"}, "name": "docker-1", "flavor": "f", "image": "i"}})
	}
	for text, wanted := range map[string]string{"": "172.31.0.0/16", "10.9.8.7/24": "10.9.8.0/24"} {
		network, err := containerNetwork(host(text))
		require.NoError(t, err)
		require.Equal(t, wanted, network.String())
	}
	for _, text := range []string{"10.0.0.0/29", "2001:db8::/64", "here"} {
		_, err := containerNetwork(host(text))
		require.ErrorContains(t, err, "give a range of IPv4", text)
	}
	require.Equal(t, "10.9.8.1", gatewayOf(netip.MustParsePrefix("10.9.8.0/24")).String())
}
