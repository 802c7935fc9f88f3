package stack

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// keystone loads a Keystone with its database, and with properties.
func (w *world) keystone(t *testing.T, properties map[string]any) func(method string, arguments map[string]any) any {
	t.Helper()
	call := w.services(t, properties, nil)
	return func(method string, arguments map[string]any) any {
		t.Helper()
		return call("keystone", method, arguments)
	}
}

// services loads a Keystone, a Glance and a Placement with their database, and the first two with properties. It returns a function that calls a method of an object.
func (w *world) services(t *testing.T, ofKeystone, ofGlance map[string]any) func(object, method string, arguments map[string]any) any {
	t.Helper()
	return w.servicesAnd(t, ofKeystone, ofGlance, func(func(name string) map[string]any) []any { return nil })
}

// servicesAnd is services with more objects, which more makes. It gets a function that makes a pod of the cluster.
func (w *world) servicesAnd(t *testing.T, ofKeystone, ofGlance map[string]any, more func(pod func(name string) map[string]any) []any) func(object, method string, arguments map[string]any) any {
	t.Helper()
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
	keystone := map[string]any{"?": map[string]any{"type": "io.burano.Keystone", "id": "keystone"}, "name": "keystone", "host": "identity", "database": "store",
		"globals": map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": "globals"}}}
	maps.Copy(keystone, ofKeystone)
	glance := map[string]any{"?": map[string]any{"type": "io.burano.Glance", "id": "glance"}, "name": "glance", "host": "images", "database": "store", "identity": "keystone",
		"globals": map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": "other-globals"}}}
	maps.Copy(glance, ofGlance)
	placement := map[string]any{"?": map[string]any{"type": "io.burano.Placement", "id": "placement"}, "name": "placement", "host": "resources", "database": "store", "identity": "keystone",
		"globals": map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": "placements-globals"}}}
	queue := pod("queue")
	queue["securityContext"] = map[string]any{"fsGroup": int64(64000)}
	model["applications"] = append(model["applications"].([]any), pod("data"), pod("identity"), pod("images"), pod("resources"), pod("memory"), queue,
		map[string]any{"?": map[string]any{"type": "io.burano.MariaDB", "id": "store"}, "name": "mariadb", "host": "data"},
		map[string]any{"?": map[string]any{"type": "io.burano.Memcached", "id": "memcached"}, "name": "memcached", "host": "memory"},
		map[string]any{"?": map[string]any{"type": "io.burano.RabbitMQ", "id": "rabbitmq"}, "name": "rabbitmq", "host": "queue"}, keystone, glance, placement)
	model["applications"] = append(model["applications"].([]any), more(pod)...)
	interpreter, _ := w.load(t, model)
	return func(object, method string, arguments map[string]any) any {
		t.Helper()
		result, err := interpreter.Invoke(t.Context(), interpreter.Object(object), method, arguments)
		require.NoError(t, err, "%s of %s", method, object)
		return result
	}
}

func TestKeystonesPasswordsStandInNoFile(t *testing.T) {
	call := newWorld(t).keystone(t, map[string]any{"options": map[string]any{"token": map[string]any{"expiration": int64(7200)},
		"ldap": map[string]any{"password": "of the directory", "use_tls": true}, "auth": map[string]any{"methods": []any{"password", "token"}}}})
	made := call("getContainer", nil).(map[string]any)
	require.Equal(t, made, call("getContainer", nil), "another one would have the pods made anew with each deployment")
	require.Equal(t, `[DEFAULT]
debug = false
use_stderr = true
[auth]
methods = password,token
[credential]
key_repository = /etc/keystone/credential-keys
[database]
connection_recycle_time = 280
max_retries = -1
[fernet_receipts]
key_repository = /etc/keystone/fernet-keys
[fernet_tokens]
key_repository = /etc/keystone/fernet-keys
[ldap]
use_tls = true
[oslo_middleware]
enable_proxy_headers_parsing = true
[token]
expiration = 7200
provider = fernet
`, made["files"].(map[string]any)["/etc/keystone/keystone.conf"])
	secrets := made["secretEnv"].(map[string]any)
	require.Equal(t, "of the directory", secrets["OS_LDAP__PASSWORD"])
	require.Equal(t, call("showPassword", nil), secrets["OS_BOOTSTRAP_PASSWORD"])
	require.Regexp(t, `^mysql\+pymysql://keystone_1:[a-z2-7]{42}@data-mariadb.default.svc.cluster.local:3306/keystone\?charset=utf8$`, secrets["OS_DATABASE__CONNECTION"])
	require.Equal(t, []string{"OS_BOOTSTRAP_PASSWORD", "OS_DATABASE__CONNECTION", "OS_LDAP__PASSWORD"}, slices.Sorted(maps.Keys(secrets)), "the root of the database is none of its")
	for _, path := range []string{"/etc/keystone/fernet-keys/0", "/etc/keystone/fernet-keys/1", "/etc/keystone/credential-keys/0", "/etc/keystone/credential-keys/1"} {
		key := made["files"].(map[string]any)[path].(map[string]any)
		require.Equal(t, true, key["secret"], path)
		require.Regexp(t, `^[a-z2-7]{42}A=$`, key["text"], path)
	}
	require.Len(t, made["files"], 5)
	require.Empty(t, call("getProblems", nil), "its own settings are right")
	require.Equal(t, `clouds:
  keystone:
    auth:
      auth_url: http://identity-keystone:5000/v3
      username: admin
      password: '`+call("showPassword", nil).(string)+`'
      project_name: admin
      user_domain_id: default
      project_domain_id: default
    region_name: RegionOne
    identity_api_version: 3
`, call("showClouds", nil))
}

func TestKeystoneUsesTheCacheAndTheQueueThatItIsGiven(t *testing.T) {
	call := newWorld(t).keystone(t, map[string]any{"cache": "memcached", "queue": "rabbitmq"})
	require.Empty(t, call("getProblems", nil))
	made := call("getContainer", nil).(map[string]any)
	require.Contains(t, made["files"].(map[string]any)["/etc/keystone/keystone.conf"], `[cache]
backend = oslo_cache.memcache_pool
enabled = true
memcache_dead_retry = 5
memcache_servers = memory-memcached.default.svc.cluster.local:11211
memcache_socket_timeout = 1
`)
	require.Regexp(t, `^rabbit://keystone_1:[a-z2-7]{42}@queue-rabbitmq.default.svc.cluster.local:5672/keystone$`, made["secretEnv"].(map[string]any)["OS_DEFAULT__TRANSPORT_URL"])
	require.NotContains(t, newWorld(t).keystone(t, nil)("getContainer", nil).(map[string]any)["files"].(map[string]any)["/etc/keystone/keystone.conf"], "[cache]")
}

func TestWholeFilesAndGlobalsOverrideKeystonesOptions(t *testing.T) {
	globals := map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": "globals"}, "debug": true, "overrides": map[string]any{"keystone": map[string]any{
		"/etc/keystone/keystone.conf": map[string]any{"token": map[string]any{"expiration": int64(60), "cache_on_issue": false}}}}}
	call := newWorld(t).keystone(t, map[string]any{"globals": globals, "options": map[string]any{"token": map[string]any{"expiration": int64(90)}}})
	text := call("getFiles", nil).(map[string]any)["/etc/keystone/keystone.conf"]
	require.Contains(t, text, "debug = true\n")
	require.Contains(t, text, "[token]\ncache_on_issue = false\nexpiration = 90\nprovider = fernet\n")

	globals["files"] = map[string]any{"keystone": map[string]any{"/etc/keystone/keystone.conf": "theirs", "/etc/keystone/policy.yaml": "{}"}}
	call = newWorld(t).keystone(t, map[string]any{"globals": globals, "files": map[string]any{"/etc/keystone/keystone.conf": "mine"}})
	require.Equal(t, map[string]any{"/etc/keystone/keystone.conf": "mine", "/etc/keystone/policy.yaml": "{}"}, call("getFiles", nil))
}

func TestOptionsThatKeystoneDoesNotHaveAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		section, option string
		value           any
		problem         string
	}{
		"an unknown section":    {"tokens", "expiration", int64(1), "section [tokens], option expiration: there is no such section, there are DEFAULT, "},
		"an unknown option":     {"token", "expire", int64(1), "section [token], option expire: there is no such option in this section, there are allow_expired_window, "},
		"a word for a number":   {"token", "expiration", "an hour", `its value an hour is not a whole number`},
		"a number that is less": {"token", "expiration", int64(-1), `its value -1 is not at least 0`},
		"no boolean":            {"token", "cache_on_issue", "maybe", `its value maybe is not true or false`},
		"a port":                {"eventlet_server", "public_port", int64(70000), ""},
		"a former name":         {"DATABASE", "sql_connection", "x", "it is the former name of database.connection, so write that"},
		"two lines":             {"token", "provider", "fernet\n[database]", "its value is no string in one line"},
		"a list for one":        {"token", "provider", []any{"fernet"}, "its value is no string in one line"},
		"a number in a text":    {"token", "expiration", "7200", ""},
		"several":               {"auth", "methods", []any{"password"}, ""},
	} {
		call := newWorld(t).keystone(t, map[string]any{"options": map[string]any{c.section: map[string]any{c.option: c.value}}})
		found := call("getProblems", nil).([]any)
		switch {
		case name == "a port":
			require.Len(t, found, 1, name)
		case c.problem == "":
			require.Empty(t, found, name)
		default:
			require.Len(t, found, 1, name)
			require.Contains(t, found[0], "/etc/keystone/keystone.conf, section ["+c.section+"], option "+c.option+": ", name)
			require.Contains(t, found[0], c.problem, name)
		}
	}
	call := newWorld(t).keystone(t, map[string]any{"globals": map[string]any{"?": map[string]any{"type": "io.burano.openstack.Globals", "id": "globals"}, "overrides": map[string]any{
		"keystone": map[string]any{"keystone.conf": map[string]any{"token": map[string]any{"expiration": int64(60)}}}}}})
	require.Equal(t, []any{"keystone.conf is no file of keystone, it has /etc/keystone/keystone.conf"}, call("getProblems", nil))
}
