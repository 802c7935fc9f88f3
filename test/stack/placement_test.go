package stack

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacementHasItsDatabaseInASectionOfItsOwn(t *testing.T) {
	call := newWorld(t).services(t, nil, nil)
	made := call("placement", "getContainer", nil).(map[string]any)
	require.Equal(t, made, call("placement", "getContainer", nil), "another one would have the pods made anew with each deployment")
	require.Equal(t, map[string]any{"/etc/placement/placement.conf": `[DEFAULT]
debug = false
use_stderr = true
[keystone_authtoken]
auth_type = password
auth_url = http://identity-keystone.default.svc.cluster.local:5000/v3
project_domain_id = default
project_name = service
region_name = RegionOne
service_token_roles = service
service_token_roles_required = true
user_domain_id = default
username = placement_1
www_authenticate_uri = http://identity-keystone.default.svc.cluster.local:5000/v3
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_policy]
policy_file = /etc/placement/policy.yaml
[placement_database]
connection_recycle_time = 280
max_retries = -1
`}, made["files"])
	secrets := made["secretEnv"].(map[string]any)
	require.Equal(t, []string{"OS_KEYSTONE_AUTHTOKEN__PASSWORD", "OS_PLACEMENT_DATABASE__CONNECTION"}, slices.Sorted(maps.Keys(secrets)))
	require.Regexp(t, `^mysql\+pymysql://placement_1:[a-z2-7]{42}@data-mariadb.default.svc.cluster.local:3306/placement\?charset=utf8$`, secrets["OS_PLACEMENT_DATABASE__CONNECTION"])
	require.Equal(t, "internal", made["ports"].([]any)[0].(map[string]any)["scope"])
	require.Empty(t, call("placement", "getProblems", nil), "its own settings are right")
}
