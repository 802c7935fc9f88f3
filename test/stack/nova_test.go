package stack

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// computing loads a Nova with its conductor and a host, and all that it needs. Properties of the host's pod, and of Nova, replace those here.
func (w *world) computing(t *testing.T, ofPod, ofNova map[string]any) func(object, method string, arguments map[string]any) any {
	t.Helper()
	return w.servicesAnd(t, nil, nil, func(pod func(string) map[string]any) []any {
		object := func(class, id string, properties map[string]any) map[string]any {
			made := map[string]any{"?": map[string]any{"type": "io.burano." + class, "id": id}, "name": id}
			maps.Copy(made, properties)
			return made
		}
		service := func(class, id, host string, properties map[string]any) map[string]any {
			made := object(class, id, map[string]any{"host": host, "database": "store", "queue": "rabbitmq", "identity": "keystone",
				"globals": map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": id + "-globals"}}})
			maps.Copy(made, properties)
			return made
		}
		hosts := pod("hosts")
		hosts["updateStrategy"] = "recreate"
		maps.Copy(hosts, ofPod)
		needs := map[string]any{"placement": "placement", "network": "neutron", "images": "glance"}
		maps.Copy(needs, ofNova)
		return []any{pod("networks"), pod("servers"), pod("workers"), hosts, service("Neutron", "neutron", "networks", nil), service("Nova", "nova", "servers", needs),
			object("NovaConductor", "conductor", map[string]any{"host": "workers", "nova": "nova"}), object("NovaScheduler", "scheduler", map[string]any{"host": "workers", "nova": "nova"}),
			object("NovaCompute", "compute", map[string]any{"host": "hosts", "nova": "nova"})}
	})
}

func TestPartsOfNovaHaveItsFilesAndHostsNoDatabase(t *testing.T) {
	call := newWorld(t).computing(t, nil, nil)
	api := call("nova", "getContainer", nil).(map[string]any)
	secrets := api["secretEnv"].(map[string]any)
	require.Equal(t, []string{"OS_API_DATABASE__CONNECTION", "OS_DATABASE__CONNECTION", "OS_DEFAULT__TRANSPORT_URL", "OS_KEYSTONE_AUTHTOKEN__PASSWORD", "OS_NEUTRON__PASSWORD", "OS_PLACEMENT__PASSWORD"},
		slices.Sorted(maps.Keys(secrets)))
	require.Regexp(t, `/nova_api\?charset=utf8$`, secrets["OS_API_DATABASE__CONNECTION"])
	for part, program := range map[string]string{"conductor": "nova-conductor", "scheduler": "nova-scheduler", "compute": "nova-compute"} {
		made := call(part, "getContainer", nil).(map[string]any)
		require.Equal(t, []any{"/usr/local/bin/" + program}, made["entryPoint"])
		require.Equal(t, api["files"], made["files"], part)
		require.Equal(t, part, made["env"].(map[string]any)["OS_DEFAULT__HOST"], "its row stays the same when its pod does not")
		require.Equal(t, []any{"/usr/local/bin/queue-connected", "5672"}, made["readinessProbe"].(map[string]any)["exec"].(map[string]any)["command"])
		require.NotContains(t, made, "livenessProbe", part)
		if part == "compute" {
			maps.DeleteFunc(secrets, func(name string, _ any) bool {
				return name == "OS_DATABASE__CONNECTION" || name == "OS_API_DATABASE__CONNECTION"
			})
			require.Equal(t, secrets, made["secretEnv"])
		}
		require.Empty(t, call(part, "getProblems", nil), part)
	}
	for _, service := range []string{"neutron", "nova"} {
		require.Empty(t, call(service, "getProblems", nil), "its own settings are right")
	}
	require.Len(t, call("nova", "getParts", nil), 3)
}

func TestHostsOfNovaDifferByTheirNames(t *testing.T) {
	call := newWorld(t).computing(t, map[string]any{"workload": "statefulSet", "replicas": int64(3)}, nil)
	require.Empty(t, call("compute", "getProblems", nil))
	made := call("compute", "getContainer", nil).(map[string]any)
	require.NotContains(t, made["env"], "OS_DEFAULT__HOST")
	require.Equal(t, map[string]any{"OS_DEFAULT__HOST": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}, made["envValueFrom"])

	const want = "two pods would be the same host for Nova, so its pod hosts needs workload statefulSet or daemonSet, or one replica and updateStrategy recreate"
	for _, pod := range []map[string]any{{"replicas": int64(2)}, {"updateStrategy": "rollingUpdate"}} {
		require.Equal(t, []any{want}, newWorld(t).computing(t, pod, nil)("compute", "getProblems", nil))
	}
}

func TestNovaNeedsAPodOfItsOwn(t *testing.T) {
	require.Equal(t, []any{"its parts would look for mariadb in their own pods, so it needs another pod than mariadb has"},
		newWorld(t).computing(t, nil, map[string]any{"host": "data"})("nova", "getProblems", nil))
}
