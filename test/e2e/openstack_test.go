package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
)

// `make test-openstack-cluster` sets a clouds.yaml, and the image for servers of that cloud.
const (
	cloudsVariable = "BURANO_TEST_CLOUDS"
	serverVariable = "BURANO_SERVER_IMAGE"
)

// TestAClusterLivesOnARealOpenStack follows README's "Use it on a real OpenStack": the service user's server is in the service catalog, a user
// deploys a cluster with an application, changes it, loses a server, and deletes all of it.
func TestAClusterLivesOnARealOpenStack(t *testing.T) {
	l := startOnOpenStack(t, "burano-node")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.user(t, "burano-admin").register(t, l.url)
	burano := func(t *testing.T, args ...string) string {
		t.Helper()
		began := time.Now()
		// The command finds the server in the catalog.
		output := l.run(t, append(l.as("burano-demo"), "BURANO_URL="), "burano", args...)
		t.Logf("%6.1f s: burano %s", time.Since(began).Seconds(), strings.Join(args, " "))
		return output
	}
	l.deleteIfFailed(t, "scaling")

	burano(t, "package", "import", "test/packages/io.burano.demo.Hello")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	model := strings.Replace(string(text), "name: scaling-cluster\n", "name: scaling-cluster\n    autoRepair: true\n", 1)
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))

	var s *scaling
	var where string
	whole := t // resources that steps share end with it
	deploy := func(t *testing.T) {
		burano(t, "deploy", file, "--dry-run")
		began := time.Now()
		burano(t, "deploy", file, "--follow")
		environment := environmentNamed(t, demo, "scaling")
		where = endpointOf(t, environment)
		bothReplicasAnswer(t, l, where)
		l.printTimeline(t, demo, environment["id"].(string), began, time.Now())
		s = &scaling{lab: l, user: demo, cluster: l.clusterOf(whole, demo, environment), environment: environment["id"].(string)}
		s.stands(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	}
	remove := func(t *testing.T) {
		require.Contains(t, burano(t, "environment", "delete", "--yes", "scaling"), "is deleted")
		asBefore(t, demo, found)
	}
	step := func(name string, try func(*testing.T)) {
		if !t.Failed() {
			t.Run(name, try)
		}
	}

	step("an application answers through the gateway of a new cluster", deploy)
	step("a deleted environment leaves nothing", remove)
	step("it is deployed once more", deploy)
	step("the same again changes nothing", func(t *testing.T) {
		before := s.servers(t)
		burano(t, "deploy", file, "--follow")
		require.Equal(t, before, s.servers(t))
	})
	step("a Service made with kubectl alone is reachable through the gateway", func(t *testing.T) { serviceByKubectl(t, l, s.cluster, where) })
	step("it grows and shrinks", func(t *testing.T) {
		s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
		s.stands(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
		s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{})
		s.stands(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	})
	step("something is kept in it", func(t *testing.T) {
		s.cluster.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")
	})
	step("a node gets another flavor", func(t *testing.T) {
		larger := strings.Replace(model, "name: murano-kube-2, flavor: m1.medium", "name: murano-kube-2, flavor: m1.large", 1)
		require.NoError(t, os.WriteFile(file, []byte(larger), 0o600))
		require.Contains(t, burano(t, "deploy", file, "--dry-run"), "murano-kube-2")
		burano(t, "deploy", file, "--follow")
		s.stands(t, []string{"murano-kube-2-r2"}, []string{"murano-gateway-1"})
	})
	step("a gateway is replaced by an action and keeps its address", func(t *testing.T) {
		s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-gateway-1"})
		s.stands(t, []string{"murano-kube-2-r2"}, []string{"murano-gateway-1-r2"})
		bothReplicasAnswer(t, l, where)
	})
	step("a server that is deleted behind Burano's back comes back", func(t *testing.T) {
		burano(t, "environment", "delegation", "set", "scaling")
		began := time.Now()
		require.NoError(t, servers.Delete(t.Context(), demo.nova(t), s.servers(t)["murano-kube-2-r2"]).ExtractErr())
		s.finds(t, "server-gone")
		t.Logf("%6.1f s until it was found", time.Since(began).Seconds())
		s.finds(t)
		t.Logf("%6.1f s until all was well again", time.Since(began).Seconds())
		require.Len(t, s.servers(t), 3)
		bothReplicasAnswer(t, l, where)
	})
	step("what was in it is there", func(t *testing.T) {
		require.Equal(t, "swordfish", s.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"))
	})
	step("all of it is deleted", remove)
}

// TestUsersOfARealOpenStackAreDeletedInTheMiddleOfDeployments is TestAUserIsDeletedInTheMiddleOfADeployment with real Keystone, Heat and Nova.
func TestUsersOfARealOpenStackAreDeletedInTheMiddleOfDeployments(t *testing.T) {
	l := startOnOpenStack(t, "burano-node", nextImage)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.usersLeave(t)
}

// startOnOpenStack starts a server beside the real OpenStack, with images of these names and with flavors for its servers.
func startOnOpenStack(t *testing.T, images ...string) *lab {
	t.Helper()
	path, image := os.Getenv(cloudsVariable), os.Getenv(serverVariable)
	if path == "" || image == "" {
		t.Skipf("%s or %s is not set: `make test-openstack-cluster` sets them", cloudsVariable, serverVariable)
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	l := &lab{root: root, cloud: filepath.Dir(path), patience: 8}
	l.serves = l.program("burano")
	admin := l.user(t, "burano-admin")
	for _, name := range images {
		admin.serverImage(t, name, image)
	}
	admin.flavor(t, "m1.medium", 2048)
	admin.flavor(t, "m1.large", 4096)
	l.startServer(t)
	return l
}

// servers are the project's in Nova, by name.
func (s *scaling) servers(t *testing.T) map[string]string {
	t.Helper()
	pages, err := servers.List(s.user.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	found := map[string]string{}
	for _, server := range all {
		require.Equal(t, "ACTIVE", server.Status, server.Name)
		found[server.Name] = server.ID
	}
	return found
}

// Like holds, stands demands that exactly these nodes are there, but with only the checks that a user can make from outside
// of the servers.
func (s *scaling) stands(t *testing.T, minions, gateways []string) {
	t.Helper()
	names := append(append([]string{s.masterName()}, minions...), gateways...)
	require.ElementsMatch(t, names, mapKeys(s.servers(t)), "servers in Nova")
	listed := strings.Fields(s.cluster.kubectl(t, "", "get", "nodes", "-o", "name"))
	for i := range listed {
		listed[i] = strings.TrimPrefix(listed[i], "node/")
	}
	require.ElementsMatch(t, minions, listed, "nodes in Kubernetes")
	s.cluster.kubectl(t, "", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=300s")
	var status struct {
		Healthy bool
		Nodes   []struct {
			Name      string
			Reachable bool
		}
		Members []struct {
			Name             string
			Healthy, Learner bool
		}
		Problems []string
	}
	cluster := ""
	for _, one := range s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any) {
		if service := one.(map[string]any); service["name"] == "scaling-cluster" {
			cluster = service["?"].(map[string]any)["id"].(string)
		}
	}
	s.lab.eventually(t, time.Minute, "the cluster is well", func() error {
		answer := s.user.call(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/clusters/"+cluster, nil)
		if err := json.Unmarshal(answer.Body, &status); err != nil || !status.Healthy {
			return fmt.Errorf("it says %s", answer.Body)
		}
		return nil
	})
	require.Len(t, status.Nodes, len(names))
	voters := min(len(names), 5)
	require.Len(t, status.Members, voters-1+voters%2)
	for _, member := range status.Members {
		require.Contains(t, names, member.Name)
		require.False(t, member.Learner, member.Name)
	}
}

// serverImage uploads the disk of servers, until the test ends, and returns its id. Its mark names the Kubernetes of the node image that it was made from.
func (u *user) serverImage(t *testing.T, name, path string) string {
	text, err := os.ReadFile(strings.TrimSuffix(u.lab.image(), ".tar") + ".json")
	require.NoError(t, err)
	var manifest struct{ Modules map[string]string }
	require.NoError(t, json.Unmarshal(text, &manifest))
	client := u.service(t, openstack.NewImageV2)
	public := images.ImageVisibilityPublic
	made, err := images.Create(t.Context(), client, images.CreateOpts{Name: name, DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public,
		Properties: map[string]string{"burano_kubernetes": manifest.Modules["kubernetes"]}}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Delete(context.Background(), client, made.ID).ExtractErr()) })
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, imagedata.Upload(t.Context(), client, made.ID, file).ExtractErr())
	return made.ID
}

// flavor makes a flavor that is deleted with the test.
func (u *user) flavor(t *testing.T, name string, memory int) {
	client, disk := u.nova(t), 10
	made, err := flavors.Create(t.Context(), client, flavors.CreateOpts{Name: name, RAM: memory, VCPUs: 2, Disk: &disk}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, flavors.Delete(context.Background(), client, made.ID).ExtractErr()) })
}

// register adds the server to the service catalog, as `openstack service create` and `openstack endpoint create` do, until the test ends.
func (u *user) register(t *testing.T, url string) {
	client := u.keystone(t)
	service, err := services.Create(t.Context(), client, services.CreateOpts{Type: "application-catalog", Extra: map[string]any{"name": "burano"}}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, services.Delete(context.Background(), client, service.ID).ExtractErr()) })
	_, err = endpoints.Create(t.Context(), client, endpoints.CreateOpts{
		Name: "burano", ServiceID: service.ID, URL: url, Availability: gophercloud.AvailabilityPublic, Region: "RegionOne"}).Extract()
	require.NoError(t, err)
}
