package clients

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/golden"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// startCloud starts a whole local cloud for the test, with the image and the flavor of the recording, and Burano on it. BURANO_SLOT, a
// digit, keeps the clouds of several checkouts apart.
func startCloud(t *testing.T) *server {
	t.Helper()
	slot := os.Getenv("BURANO_SLOT")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	settings := localcloud.Config{StateDir: filepath.Join(t.TempDir(), "cloud"), Listen: listener.Addr().String(),
		ExternalCIDR: netip.MustParsePrefix("10.86.7" + slot + ".0/24"), Prefix: "blr" + slot + "-"}
	require.NoError(t, localcloud.Reclaim(t.Context(), settings.Prefix))
	t.Cleanup(func() { require.NoError(t, localcloud.Down(context.Background(), settings.StateDir)) })
	running, err := localcloud.New(t.Context(), settings)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- running.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		running.Close()
	})
	s := &server{t: t, home: t.TempDir(), keystone: "http://" + settings.Listen}

	admin := s.cloudAs("admin")
	public, disk := images.ImageVisibilityPublic, 1
	content, err := localcloudtest.TinyServer(t.Context())
	require.NoError(t, err)
	image, err := images.Create(t.Context(), admin.glance, images.CreateOpts{Name: "tiny", DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public}).Extract()
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), admin.glance, image.ID, bytes.NewReader(content)).ExtractErr())
	_, err = flavors.Create(t.Context(), admin.nova, flavors.CreateOpts{Name: "m1.tiny", RAM: 512, VCPUs: 1, Disk: &disk}).Extract()
	require.NoError(t, err)
	s.build()
	return s
}

// cloudUser is somebody who asks the local cloud itself.
type cloudUser struct{ nova, neutron, heat, glance *gophercloud.ServiceClient }

// cloudAs signs a user in, whose password and project have its name.
func (s *server) cloudAs(user string) cloudUser {
	s.t.Helper()
	provider, err := openstack.AuthenticatedClient(s.t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: user, Password: user, TenantName: user, DomainName: "Default"})
	require.NoError(s.t, err)
	open := func(service func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
		client, err := service(provider, gophercloud.EndpointOpts{Region: keystone.Region})
		require.NoError(s.t, err)
		return client
	}
	return cloudUser{open(openstack.NewComputeV2), open(openstack.NewNetworkV2), open(openstack.NewOrchestrationV1), open(openstack.NewImageV2)}
}

// holds lists what the user's project has in the cloud, by kind.
func (u cloudUser) holds(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	pages, err := servers.List(u.nova, nil).AllPages(t.Context())
	require.NoError(t, err)
	allServers, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	for _, one := range allServers {
		found["servers"] = append(found["servers"], one.Name)
	}
	pages, err = stacks.List(u.heat, nil).AllPages(t.Context())
	require.NoError(t, err)
	allStacks, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	for _, one := range allStacks {
		found["stacks"] = append(found["stacks"], one.Name)
	}
	pages, err = networks.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allNetworks, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	for _, one := range allNetworks {
		found["networks"] = append(found["networks"], one.Name)
	}
	pages, err = routers.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allRouters, err := routers.ExtractRouters(pages)
	require.NoError(t, err)
	for _, one := range allRouters {
		found["routers"] = append(found["routers"], one.Name)
	}
	pages, err = ports.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allPorts, err := ports.ExtractPorts(pages)
	require.NoError(t, err)
	for _, one := range allPorts {
		found["ports"] = append(found["ports"], one.DeviceOwner+" "+one.Name)
	}
	pages, err = floatingips.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allFloating, err := floatingips.ExtractFloatingIPs(pages)
	require.NoError(t, err)
	for _, one := range allFloating {
		found["floating IPs"] = append(found["floating IPs"], one.FloatingIP)
	}
	pages, err = groups.List(u.neutron, groups.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	allGroups, err := groups.ExtractGroups(pages)
	require.NoError(t, err)
	for _, one := range allGroups {
		found["security groups"] = append(found["security groups"], one.Name)
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

// TestTheProgramMakesServersAsRecorded replays what was recorded of a server and of a Heat template, on the program itself and a whole
// local cloud, in which the server is looked at.
func TestTheProgramMakesServersAsRecorded(t *testing.T) {
	s := startCloud(t)
	s.serve(http.DefaultClient, "http")
	demo := s.cloudAs("demo")
	before := demo.holds(t)
	token, project := s.token("demo", "demo")
	seen := 0
	golden.ServersAnswerAsRecorded(t, &golden.Replay{URL: s.url, Keystone: s.keystone + "/identity/v3", Tokens: map[string]string{"{token:demo}": token},
		IDs: golden.IDs{golden.ProjectDemo: project}}, keystone.Region, func(d golden.Deployment) {
		seen++
		holds := demo.holds(t)
		application := d.Model["services"].([]any)[0].(map[string]any)
		instance, isServer := application["instance"].(map[string]any)
		if !isServer {
			require.Empty(t, holds["servers"])
			require.Len(t, holds["stacks"], 1)
			require.Regexp(t, `_`+d.Environment+`$`, holds["stacks"][0])
			return
		}
		require.Equal(t, []string{"burano-" + d.Environment}, holds["stacks"])
		require.Equal(t, []string{"goldenvm"}, holds["servers"])
		require.Equal(t, []string{instance["floatingIpAddress"].(string)}, holds["floating IPs"])
		server, err := servers.Get(t.Context(), demo.nova, instance["openstackId"].(string)).Extract()
		require.NoError(t, err)
		require.Equal(t, "ACTIVE", server.Status)
		addresses := server.Addresses["golden-vm-network"].([]any)
		for _, address := range instance["ipAddresses"].([]any) {
			require.True(t, slices.ContainsFunc(addresses, func(one any) bool { return one.(map[string]any)["addr"] == address }), "%v in %v", address, addresses)
		}
	})
	require.Equal(t, 2, seen)
	require.Equal(t, before, demo.holds(t), "nothing is left")
}
