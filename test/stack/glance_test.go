package stack

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGlancesPasswordsStandInNoFile(t *testing.T) {
	call := newWorld(t).services(t, nil, map[string]any{"cache": "memcached", "options": map[string]any{"DEFAULT": map[string]any{"image_tag_quota": int64(7)}}})
	made := call("glance", "getContainer", nil).(map[string]any)
	require.Equal(t, made, call("glance", "getContainer", nil), "another one would have the pods made anew with each deployment")
	require.Equal(t, map[string]any{"/etc/glance/glance-api.conf": `[DEFAULT]
debug = false
enabled_import_methods = [glance-direct]
image_tag_quota = 7
node_staging_uri = file:///var/lib/glance/staging
use_stderr = true
[database]
connection_recycle_time = 280
max_retries = -1
[glance_store]
default_store = file
filesystem_store_datadir = /var/lib/glance/images
stores = file
[keystone_authtoken]
auth_type = password
auth_url = http://identity-keystone.default.svc.cluster.local:5000/v3
memcached_servers = memory-memcached.default.svc.cluster.local:11211
project_domain_id = default
project_name = service
region_name = RegionOne
service_token_roles = service
service_token_roles_required = true
user_domain_id = default
username = glance_1
www_authenticate_uri = http://identity-keystone.default.svc.cluster.local:5000/v3
[oslo_concurrency]
lock_path = /tmp
[oslo_middleware]
enable_proxy_headers_parsing = true
[paste_deploy]
config_file = /etc/glance/glance-api-paste.ini
flavor = keystone
[task]
work_dir = /var/lib/glance/tasks
`}, made["files"])
	secrets := made["secretEnv"].(map[string]any)
	require.Equal(t, []string{"OS_DATABASE__CONNECTION", "OS_KEYSTONE_AUTHTOKEN__PASSWORD"}, slices.Sorted(maps.Keys(secrets)), "the administrator's password is none of its")
	require.Regexp(t, `^[a-z2-7]{42}$`, secrets["OS_KEYSTONE_AUTHTOKEN__PASSWORD"])
	require.Equal(t, map[string]any{"IDENTITY_URL": "http://identity-keystone.default.svc.cluster.local:5000/v3", "SERVICE_USER": "glance_1",
		"SERVICE_URL": "http://images-glance:9292/v2/images?limit=1"}, made["bootstrapAfter"].(map[string]any)["env"])
	require.Equal(t, map[string]any{"internal": "http://images-glance:9292", "public": nil}, call("glance", "getEndpoints", nil))
}

func TestGlanceHasAVolumeThatItsUserMayWrite(t *testing.T) {
	const want = "glance is not root, so its pod images needs a group for the files of volumes in securityContext.fsGroup, such as 64000"
	call := newWorld(t).services(t, nil, map[string]any{"size": "5Gi", "storageClass": "", "accessMode": "readWriteMany"})
	require.Equal(t, []any{want}, call("glance", "getProblems", nil), "and its own settings are right")
	require.Equal(t, map[string]any{"/tmp": map[string]any{}, "/var/lib/glance": map[string]any{"persistent": true, "size": "5Gi", "storageClass": nil, "accessMode": "readWriteMany"}},
		call("glance", "getContainer", nil).(map[string]any)["volumes"])

	call = newWorld(t).services(t, nil, map[string]any{"host": "queue", "options": map[string]any{"glance_store": map[string]any{"stores": []any{"file"}, "store": "x"}}})
	found := call("glance", "getProblems", nil).([]any)
	require.Len(t, found, 1)
	require.Contains(t, found[0], "/etc/glance/glance-api.conf, section [glance_store], option store: there is no such option in this section, there are ")

	call = newWorld(t).services(t, nil, map[string]any{"volume": map[string]any{"?": map[string]any{"type": "com.mirantis.docker.DockerHostVolume", "id": "shared"}, "path": "/srv/images"}})
	require.Empty(t, call("glance", "getProblems", nil), "its owner decides about this volume")
}
