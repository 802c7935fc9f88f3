package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"
)

// TestAUserIsDeletedInTheMiddleOfADeployment has the user go who has begun the deployment of a cluster: another member of the project goes on with it.
func TestAUserIsDeletedInTheMiddleOfADeployment(t *testing.T) {
	l := start(t)
	l.run(t, l.as("burano-admin"), "burano", "image", "upload", "--name", nextImage, "--public", l.image())
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.usersLeave(t)
}

// nextImage is the image to which clusters are upgraded. It has the same Kubernetes.
const nextImage = "burano-next"

// usersLeave deletes users in the middle of deployments, for each kind of delegation to Burano.
func (l *lab) usersLeave(t *testing.T) {
	t.Run("by trust, while nodes are set up", func(t *testing.T) {
		v := l.leaving(t, "murano-kube-2: container runtime")
		healed(t, v.end(t, v.task))
		v.goesOn(t)
	})
	t.Run("by trust, while servers are made", func(t *testing.T) {
		v := l.leaving(t, "servers")
		require.Contains(t, failed(t, v.end(t, v.task)), "Another member of the project can start it again")
		l.run(t, l.as("burano-demo"), "burano", "deploy", v.file, "--follow")
		v.isUp(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
		v.delete(t)
	})
	t.Run("by the project's role, while servers are made", func(t *testing.T) {
		project := l.user(t, "burano-demo").project(t)
		l.run(t, l.as("burano-admin"), "burano", "project", "enable", "--project", project)
		defer l.run(t, l.as("burano-admin"), "burano", "project", "disable", "--project", project)
		v := l.leaving(t, "servers")
		healed(t, v.end(t, v.task))
		if soaking() {
			v.goesOn(t)
			return
		}
		v.isUp(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
		v.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
		v.stands(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
		v.delete(t)
	})
}

// left is a cluster whose user was deleted.
type left struct {
	*scaling
	task, file string
	found      map[string][]string
}

// leaving begins the deployment of a cluster as a new user, and deletes that user when a step begins.
func (l *lab) leaving(t *testing.T, step string) *left {
	t.Helper()
	demo := l.user(t, "burano-demo")
	as, leave := l.member(t, "burano-test-leaver")
	v := &left{file: "test/e2e/testdata/scaling.yaml", found: inventory(t, demo), scaling: &scaling{lab: l, user: demo}}
	l.deleteIfFailed(t, "scaling")
	l.run(t, as, "burano", "deploy", v.file)
	v.environment = environmentNamed(t, demo, "scaling")["id"].(string)
	v.task = lastDeployment(t, demo, "scaling")
	v.begun(t, v.task, step)
	leave()
	return v
}

// goesOn has another member of the project continue the work of the environment's user.
func (v *left) goesOn(t *testing.T) {
	t.Helper()
	v.isUp(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	v.cluster.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")
	v.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	v.stands(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})

	text, err := os.ReadFile(filepath.Join(v.lab.root, v.file))
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), "gatewayCount: 1", "gatewayCount: 2", 1)), 0o600))
	v.lab.run(t, v.lab.as("burano-demo"), "burano", "deploy", changed, "--follow")
	v.stands(t, []string{"murano-kube-2"}, []string{"murano-gateway-1", "murano-gateway-2"})

	v.lab.run(t, v.lab.as("burano-demo"), "burano", "cluster", "upgrade", "scaling", "--image", nextImage, "--follow")
	v.master = "murano-kube-1-r2"
	v.isUp(t, []string{"murano-kube-2-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	require.Equal(t, "swordfish", v.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"))
	v.delete(t)
}

// isUp demands that the cluster and its application work.
func (v *left) isUp(t *testing.T, minions, gateways []string) {
	t.Helper()
	environment := environmentNamed(t, v.user, "scaling")
	v.cluster = v.lab.clusterOf(t, v.user, environment)
	v.stands(t, minions, gateways)
	bothReplicasAnswer(t, v.lab, endpointOf(t, environment))
}

func (v *left) delete(t *testing.T) {
	t.Helper()
	require.Contains(t, v.lab.run(t, v.lab.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling"), "is deleted")
	asBefore(t, v.user, v.found)
}

// member makes a user who is a member of demo's project, until leave is called or the test ends. as is the environment with
// which commands run as this user.
func (l *lab) member(t *testing.T, name string) (as []string, leave func()) {
	t.Helper()
	admin, project := l.user(t, "burano-admin").keystone(t), l.user(t, "burano-demo").project(t)
	made, err := users.Create(t.Context(), admin, users.CreateOpts{Name: name, Password: "secret", DomainID: "default"}).Extract()
	require.NoError(t, err)
	gone := false
	leave = func() {
		if !gone {
			require.NoError(t, users.Delete(context.Background(), admin, made.ID).ExtractErr())
			gone = true
		}
	}
	t.Cleanup(leave)
	pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, roles.Assign(t.Context(), admin, found[0].ID, roles.AssignOpts{UserID: made.ID, ProjectID: project}).ExtractErr())

	options, _, _, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(filepath.Join(l.cloud, "clouds.yaml")))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "clouds: {leaver: {auth: {auth_url: %q, username: %q, password: secret, user_domain_id: default, project_id: %q}}}\n",
		options.IdentityEndpoint, name, project), 0o600))
	return []string{"OS_CLIENT_CONFIG_FILE=" + file, "OS_CLOUD=leaver", "BURANO_URL=" + l.url}, leave
}

// project is the id of the user's project.
func (u *user) project(t *testing.T) string {
	t.Helper()
	found, err := u.provider.GetAuthResult().(tokens.CreateResult).ExtractProject()
	require.NoError(t, err)
	return found.ID
}
