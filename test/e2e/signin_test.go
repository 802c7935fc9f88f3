package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"
)

// readersRead has a user with the role reader, and one with the role member, use a kubeconfig without a certificate, and the reader one with a
// certificate.
func readersRead(t *testing.T, l *lab, c *cluster) {
	reader := l.reader(t)
	folder := t.TempDir()
	kubectl := func(config string, environment []string, args ...string) (string, error) {
		command := exec.Command(l.kubectl(), append([]string{"--kubeconfig", config}, args...)...)
		command.Env = append(os.Environ(), environment...)
		command.Env = append(command.Env, "PATH="+filepath.Dir(l.program("burano"))+":"+os.Getenv("PATH"), "HOME="+folder)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	write := func(environment []string, name string, args ...string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		l.run(t, environment, "burano", append([]string{"cluster", "kubeconfig", "demo", "--output", path}, args...)...)
		return path
	}
	reads := func(config string, environment []string) {
		t.Helper()
		output, err := kubectl(config, environment, "get", "pods", "-A")
		require.NoError(t, err, output)
		require.Contains(t, output, "coredns")
		output, err = kubectl(config, environment, "get", "nodes")
		require.NoError(t, err, output)
		for _, args := range [][]string{{"create", "configmap", "theirs"}, {"get", "secrets"}, {"delete", "node", "murano-kube-2"}} {
			output, err = kubectl(config, environment, args...)
			require.Error(t, err, args)
			require.Contains(t, strings.ToLower(output), "forbidden", args)
		}
	}

	signs := write(reader, "reader.kubeconfig", "--sign-in", "keystone", "--namespace", "kube-system")
	text, err := os.ReadFile(signs)
	require.NoError(t, err)
	require.NotContains(t, string(text), "client-key-data")
	reads(signs, reader)
	output, err := kubectl(signs, reader, "get", "pods")
	require.NoError(t, err, output)
	require.Contains(t, output, "coredns", "it begins in the namespace that was named")
	reads(write(reader, "certificate.kubeconfig"), nil)
	refused, err := l.try(reader, "burano", "cluster", "kubeconfig", "demo", "--group", "burano:admins")
	require.Error(t, err)
	require.Contains(t, refused, "get_kubeconfig")

	member := l.as("burano-demo")
	writes := write(member, "member.kubeconfig", "--sign-in", "keystone")
	output, err = kubectl(writes, member, "create", "configmap", "ours")
	require.NoError(t, err, output)
	output, err = kubectl(writes, member, "auth", "whoami", "-o", "json")
	require.NoError(t, err, output)
	var who struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(output), &who))
	require.Equal(t, "keystone:demo@Default", who.Status.UserInfo.Username)
	require.Subset(t, who.Status.UserInfo.Groups, []string{"burano:admins", "keystone:role:member"})
	output, err = kubectl(write(member, "editor.kubeconfig", "--group", "burano:editors", "--lifetime", "1h"), nil, "delete", "configmap", "ours")
	require.NoError(t, err, output)
	output, err = kubectl(filepath.Join(folder, "editor.kubeconfig"), nil, "get", "clusterroles")
	require.Error(t, err)
	require.Contains(t, output, "Forbidden")
	output, err = kubectl(signs, []string{"OS_CLOUD=", "OS_CLIENT_CONFIG_FILE=", "BURANO_URL="}, "get", "pods")
	require.NoError(t, err, "the kubeconfig names the cloud that it was made with: %s", output)
}

// reader makes a user of the project demo with the role reader, until the test ends.
func (l *lab) reader(t *testing.T) (environment []string) {
	t.Helper()
	keystone := l.user(t, "burano-admin").keystone(t)
	ctx := t.Context()
	pages, err := projects.List(keystone, projects.ListOpts{Name: "demo"}).AllPages(ctx)
	require.NoError(t, err)
	found, err := projects.ExtractProjects(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	pages, err = roles.List(keystone, roles.ListOpts{Name: "reader"}).AllPages(ctx)
	require.NoError(t, err)
	known, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	var role string
	if len(known) > 0 {
		role = known[0].ID
	} else {
		made, err := roles.Create(ctx, keystone, roles.CreateOpts{Name: "reader"}).Extract()
		require.NoError(t, err)
		role = made.ID
	}
	user, err := users.Create(ctx, keystone, users.CreateOpts{Name: "onlooker", Password: "onlooker", DomainID: "default"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, users.Delete(context.Background(), keystone, user.ID).ExtractErr()) })
	require.NoError(t, roles.Assign(ctx, keystone, role, roles.AssignOpts{UserID: user.ID, ProjectID: found[0].ID}).ExtractErr())
	text, err := os.ReadFile(filepath.Join(l.cloud, "clouds.yaml"))
	require.NoError(t, err)
	_, entry, _ := strings.Cut(string(text), "  burano-demo:\n")
	entry, _, _ = strings.Cut(entry, "  burano-other:")
	entry = strings.NewReplacer("username: demo", "username: onlooker", "password: demo", "password: onlooker").Replace(entry)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	require.NoError(t, os.WriteFile(file, []byte("clouds:\n  onlooker:\n"+entry), 0o600))
	return []string{"OS_CLIENT_CONFIG_FILE=" + file, "OS_CLOUD=onlooker", "BURANO_URL=" + l.url}
}
