package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/native"
)

func TestAnApplicationIsToldWhenItsContainerIsInstalled(t *testing.T) {
	w := newWorld(t)
	interpreter, root := w.load(t, map[string]any{
		"?": map[string]any{"type": "io.murano.Environment", "id": "environment"}, "name": "containers",
		"applications": []any{
			map[string]any{"?": map[string]any{"type": "io.burano.test.ContainerHost", "id": "host"}, "name": "host"},
			map[string]any{"?": map[string]any{"type": "io.burano.test.Backend", "id": "backend"}, "host": "host", "image": "redis:1"},
		},
	})
	host, backend := root.Objects("applications")[0], root.Objects("applications")[1]
	call := func(method string, args map[string]any) {
		_, err := interpreter.Invoke(t.Context(), backend, method, args)
		require.NoError(t, err)
	}
	call("deploy", nil)
	call("deploy", nil)
	require.Equal(t, []string{"start", "finish 203.0.113.1"}, backend.Texts("log"))
	require.Equal(t, []string{"redis:1"}, host.Texts("hosted"), "nothing has changed")
	call("update", map[string]any{"image": "redis:2"})
	call("deploy", nil)
	require.Equal(t, []string{"redis:1", "redis:2"}, host.Texts("hosted"))
	require.Len(t, backend.Texts("log"), 4)
	call(".destroy", nil)
	require.Equal(t, []string{"redis:1", "redis:2", "no backend"}, host.Texts("hosted"))
}

func TestApplicationsReachEachOtherByTheShortestWay(t *testing.T) {
	w := newWorld(t)
	model := environment(t, demo)
	var pod, cluster map[string]any
	for _, one := range model["applications"].([]any) {
		switch one := one.(map[string]any); one["?"].(map[string]any)["type"] {
		case "com.mirantis.docker.kubernetes.KubernetesPod":
			pod = one
		case "com.mirantis.docker.kubernetes.KubernetesCluster":
			cluster = one
		}
	}
	host := func(id, site string) map[string]any {
		return map[string]any{"?": map[string]any{"type": "io.burano.test.ContainerHost", "id": id}, "name": id, "site": site}
	}
	application := func(id, class, host string, properties map[string]any) map[string]any {
		made := map[string]any{"?": map[string]any{"type": "io.burano.test." + class, "id": id}, "host": host}
		for name, value := range properties {
			made[name] = value
		}
		return made
	}
	alone := map[string]any{"?": map[string]any{"type": "com.mirantis.docker.DockerStandaloneHost", "id": "alone"}, "name": "alone", "instance": map[string]any{
		"?": map[string]any{"type": "io.murano.resources.LinuxMuranoInstance", "id": "server"}, "name": "server", "flavor": "m1.small", "image": "node"}}
	idOf := func(object map[string]any) string { return object["?"].(map[string]any)["id"].(string) }
	redis := map[string]any{"image": "redis"}
	inPods, onHosts := map[string]any{"backend": "inPod"}, map[string]any{"backend": "onHost"}
	model["applications"] = append(model["applications"].([]any),
		host("here", "a"), host("beside", "a"), host("elsewhere", "b"), alone,
		application("onServer", "Backend", "alone", redis), application("sameServer", "Frontend", "alone", map[string]any{"backend": "onServer"}),
		application("otherServer", "Frontend", "here", map[string]any{"backend": "onServer"}),
		map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesPod", "id": "otherPod"}, "name": "other", "replicas": 1, "kubernetesCluster": idOf(cluster)},
		application("inPod", "Backend", idOf(pod), redis), application("onHost", "Backend", "here", redis),
		application("samePod", "Frontend", idOf(pod), inPods), application("otherPodOfTheCluster", "Frontend", "otherPod", inPods),
		application("outside", "Frontend", "here", inPods),
		application("sameHost", "Frontend", "here", onHosts), application("sameSite", "Frontend", "beside", onHosts),
		application("otherSite", "Frontend", "elsewhere", onHosts))
	interpreter, _ := w.load(t, model)
	_, err := interpreter.Invoke(t.Context(), interpreter.Object("onHost"), "deploy", nil)
	require.NoError(t, err)
	for id, wanted := range map[string]string{
		"samePod":              "127.0.0.1:6379",
		"otherPodOfTheCluster": pod["name"].(string) + "-backend.default.svc.cluster.local:6379",
		"outside":              "none", // as long as it is not deployed
		"sameServer":           "172.31.0.1:6379",
		"otherServer":          "none",
		"sameHost":             "127.0.0.1:7379",
		"sameSite":             "10.0.0.1:7379",
		"otherSite":            "10.20.0.1:7379",
	} {
		described, err := interpreter.Invoke(t.Context(), interpreter.Object(id), "getContainer", nil)
		require.NoError(t, err, id)
		require.Equal(t, map[string]any{"BACKEND": wanted}, described.(map[string]any)["env"], id)
	}
}

func TestAGuestbookIsToldWhereItsDatabaseIs(t *testing.T) {
	w := newWorld(t)
	model := environment(t, demo)
	cluster := ""
	for _, one := range model["applications"].([]any) {
		if header := one.(map[string]any)["?"].(map[string]any); header["type"] == "com.mirantis.docker.kubernetes.KubernetesCluster" {
			cluster = header["id"].(string)
		}
	}
	pod := func(name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesPod", "id": name}, "name": name, "replicas": 1, "kubernetesCluster": cluster}
	}
	model["applications"] = append(model["applications"].([]any), pod("data"), pod("front"),
		map[string]any{"?": map[string]any{"type": "io.burano.PostgreSQL", "id": "store"}, "name": "Ledger", "host": "data", "database": "visits", "port": 6000},
		map[string]any{"?": map[string]any{"type": "io.burano.Guestbook", "id": "guestbook"}, "name": "Guestbook", "host": "front", "database": "store"})
	interpreter, _ := w.load(t, model)
	described, err := interpreter.Invoke(t.Context(), interpreter.Object("guestbook"), "getContainer", nil)
	require.NoError(t, err)
	guestbook := described.(map[string]any)
	require.Equal(t, map[string]any{"DATABASE_HOST": "data-ledger.default.svc.cluster.local", "DATABASE_PORT": "6000", "DATABASE_USER": "postgres", "DATABASE_NAME": "visits"}, guestbook["env"])
	password, err := interpreter.Invoke(t.Context(), interpreter.Object("store"), "showPassword", nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"DATABASE_PASSWORD": password}, guestbook["secretEnv"])
}

// load makes the objects of an environment, as a deployment does.
func (w *world) load(t *testing.T, environment map[string]any) (*muranopl.Interpreter, *muranopl.Object) {
	t.Helper()
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), native.Methods(w, w.config))
	root, start, problems := interpreter.Prepare(t.Context(), environment)
	require.Empty(t, problems)
	w.model = root
	require.NoError(t, start(t.Context()))
	return interpreter, root
}
