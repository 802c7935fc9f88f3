package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlacementOfTheCatalogCountsResources deploys OpenStack's service of resources beside Keystone, uses it as its clients do, and changes it while it is used.
func TestPlacementOfTheCatalogCountsResources(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages of OpenStack")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.pushApplications(t, "mariadb", "keystone", "placement")

	without, deploy := l.besideKeystone(t, "placement")
	began := time.Now()
	log := deploy(without + resources)
	l.deleteIfFailed(t, "placement")
	s, a, k := l.openStack(t, demo, "placement")
	token, _, err := k.token()
	require.NoError(t, err)
	address := "http://" + s.published(t, a, "placement")
	asked := func(t *testing.T, method, path, token string, body any) (string, error) {
		t.Helper()
		written, err := json.Marshal(body)
		require.NoError(t, err)
		text, err := askedService(t.Context(), method, address+path, token, strings.NewReader(string(written)))
		return string(text), err
	}
	listed := func() error {
		_, err := askedService(t.Context(), http.MethodGet, address+"/resource_providers", token, nil)
		return err
	}
	require.NoError(t, listed())
	t.Logf("the first answer after %.1f s", time.Since(began).Seconds())

	t.Run("passwords stand in no description, and nothing is root", func(t *testing.T) {
		s.conceals(t, log, k.password, "mysql+pymysql", s.inPod(t, "resources", "echo $OS_KEYSTONE_AUTHTOKEN__PASSWORD"))
		s.isConfined(t, "resources", "/etc/placement/x")
	})

	t.Run("its package has the options of its image", func(t *testing.T) {
		s.hasOptions(t, "Placement", "resources")
	})

	const provider = "5a1f0d5e-0f0f-4a6e-9a51-6c9a3f6d7c01"
	inventory := func(t *testing.T) string {
		t.Helper()
		text, err := asked(t, http.MethodGet, "/resource_providers/"+provider+"/inventories/VCPU", token, nil)
		require.NoError(t, err)
		return text
	}
	t.Run("an administrator gives it a host's processors, and others are refused", func(t *testing.T) {
		require.Contains(t, k.services(t, token), `"`+address+`"`)
		_, err := asked(t, http.MethodPost, "/resource_providers", token, map[string]any{"name": "host", "uuid": provider})
		require.NoError(t, err)
		_, err = asked(t, http.MethodPost, "/resource_providers/"+provider+"/inventories", token, map[string]any{"resource_class": "VCPU", "total": 8})
		require.NoError(t, err)
		require.Contains(t, inventory(t), `"total": 8`)

		_, err = asked(t, http.MethodGet, "/resource_providers", "none", nil)
		require.ErrorContains(t, err, "401")
		theirs, _, err := k.tokenOf("member", k.member(t, token))
		require.NoError(t, err)
		_, err = asked(t, http.MethodGet, "/resource_providers", theirs, nil)
		require.ErrorContains(t, err, "403")
	})

	t.Run("another option and other passwords are rolling updates, without a failed request", func(t *testing.T) {
		underRequests(t, "allocation_conflict_retry_count", func() {
			task, log := s.changed(t, a, "placement", func(placement map[string]any) {
				placement["options"] = map[string]any{"placement": map[string]any{"allocation_conflict_retry_count": 12}}
			})
			require.Equal(t, "success", task["state"], log)
		}, listed)
		require.Contains(t, s.inPod(t, "resources", "cat /etc/placement/placement.conf"), "allocation_conflict_retry_count = 12\n")
		underRequests(t, "the password of Placement's user", func() { s.act(t, "placement", "rotateServicePassword", map[string]any{}) }, listed)
		require.NotContains(t, k.get(t, token, "/users"), `"placement_1"`)
		require.Contains(t, k.get(t, token, "/users"), `"placement_2"`)
		underRequests(t, "the password of Placement's database", func() { s.act(t, "placement", "rotateDatabasePassword", map[string]any{}) }, listed)
		require.Contains(t, s.inPod(t, "resources", "echo $OS_PLACEMENT_DATABASE__CONNECTION"), "://placement_2:")
		require.Contains(t, inventory(t), `"total": 8`)
	})

	t.Run("it is back with its resources when its pods were killed", func(t *testing.T) {
		s.killed(t, "resources")
		l.eventually(t, time.Minute, "it answers", listed)
		require.Contains(t, inventory(t), `"total": 8`)
	})

	t.Run("its removal takes its endpoints and its user along", func(t *testing.T) {
		deploy(without)
		require.NotContains(t, k.services(t, token), `"placement"`)
		require.NotContains(t, k.get(t, token, "/users"), `"placement_`)
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "placement")
}

const resources = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: resources}
    name: resources
    kubernetesCluster: cluster
    replicas: 2
    maxUnavailable: "0"

  - "?": {type: io.burano.Placement, id: placement}
    name: placement
    host: resources
    database: database
    identity: keystone
    globals: {"?": {type: io.burano.openstack.Globals}}
    publish: true
`

// member makes a user "member" with this role in the project admin, and returns the password.
func (k identity) member(t *testing.T, token string) (password string) {
	t.Helper()
	var made struct{ User struct{ ID string } }
	text, err := askedService(t.Context(), http.MethodPost, k.address+"/v3/users", token,
		strings.NewReader(`{"user": {"name": "member", "domain_id": "default", "password": "of a member"}}`))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &made))
	var roles struct{ Roles []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(k.get(t, token, "/roles?name=member")), &roles))
	require.Len(t, roles.Roles, 1)
	var projects struct{ Projects []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(k.get(t, token, "/projects?name=admin")), &projects))
	require.Len(t, projects.Projects, 1)
	_, err = askedService(t.Context(), http.MethodPut, k.address+"/v3/projects/"+projects.Projects[0].ID+"/users/"+made.User.ID+"/roles/"+roles.Roles[0].ID, token, nil)
	require.NoError(t, err)
	return "of a member"
}
