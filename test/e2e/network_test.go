package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"
)

// TestNodesMoveToAnotherNetwork has a user name another network for all nodes in the file of a deployed cluster. They are replaced one
// after another, the master last, while the cluster is in both networks. Requests come through both gateways meanwhile, and fail only
// at the gateway that is being replaced.
func TestNodesMoveToAnotherNetwork(t *testing.T) {
	soakOnly(t, "`make soak` runs this: beside two other clusters on two processors a request may wait too long for what a gateway's routes follow")
	l := start(t)
	demo := l.user(t, "burano-demo")
	router := demo.router(t)
	further := netip.MustParsePrefix("10.77.0.0/24")
	demo.network(t, router, "further", further)
	demo.network(t, "", "apart", netip.MustParsePrefix("10.78.0.0/24"))
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	own := strings.NewReplacer("nodeCount: 1", "nodeCount: 2", "gatewayCount: 1", "gatewayCount: 2",
		"applications:\n", "defaultNetworks:\n  flat: null\n  environment: {\"?\": {type: io.murano.resources.NeutronNetwork}, name: own, externalRouterId: "+router+"}\n\napplications:\n").Replace(string(text))
	in := func(network string) string {
		return strings.ReplaceAll(own, "assignFloatingIp: true}", "assignFloatingIp: true, networks: {useEnvironmentNetwork: false, useFlatNetwork: false, primaryNetwork: null, "+
			"customNetworks: [{\"?\": {type: io.murano.resources.ExistingNeutronNetwork}, internalNetworkName: "+network+"}]}}")
	}
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	require.NoError(t, os.WriteFile(file, []byte(own), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})
	s.cluster.kubectl(t, "", "create", "configmap", "precious", "--from-literal=word=swordfish")

	require.NoError(t, os.WriteFile(file, []byte(in("apart")), 0o600))
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err)
	require.Contains(t, output, "no router stands in both")
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1", "murano-gateway-2"})

	gateways := s.floating(t, "murano-gateway-1", "murano-gateway-2")
	_, port, err := net.SplitHostPort(endpointOf(t, environment))
	require.NoError(t, err)
	loads := startLoads(t, gateways, port, heavyRate)
	api := watchAPI(t, "https://"+net.JoinHostPort(s.floating(t, "murano-kube-1")["murano-kube-1"], "6443")+"/version")
	require.NoError(t, os.WriteFile(file, []byte(in("further")), 0o600))
	preview := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Contains(t, preview, "5 nodes are replaced one after another")
	require.Contains(t, preview, "murano-kube-2, then in further")
	began := time.Now()
	output = l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	t.Logf("%.1f s:\n%s", time.Since(began).Seconds(), output)
	api.end()
	done := steps(t, demo, lastDeployment(t, demo, "scaling"))
	for name, load := range loads {
		load.end()
		t.Logf("%s: %s", name, load)
		for _, one := range load.failedOutside(replacementOf(t, done, name)) {
			require.Fail(t, "a request failed", "through %s: %s", name, one)
		}
	}
	t.Logf("the API was away for %s at most, until %s", api.longest, api.until.Format(time.TimeOnly))
	require.Less(t, api.longest, 10*time.Second)

	s.master = "murano-kube-1-r2"
	s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})
	for name, address := range s.fixed(t) {
		require.Truef(t, further.Contains(address), "%s has the address %s", name, address)
	}
	require.Equal(t, "swordfish", s.cluster.kubectl(t, "", "get", "configmap", "precious", "-o", "jsonpath={.data.word}"), "by the kubeconfig that was there before")
	require.Equal(t, gateways, map[string]string{
		"murano-gateway-1": s.floating(t, "murano-gateway-1-r2")["murano-gateway-1-r2"], "murano-gateway-2": s.floating(t, "murano-gateway-2-r2")["murano-gateway-2-r2"]})
	bothReplicasAnswer(t, l, endpointOf(t, environmentNamed(t, demo, "scaling")))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3-r2"}, []string{"murano-gateway-1-r2", "murano-gateway-2-r2"})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// router makes a router to the external network.
func (u *user) router(t *testing.T) string {
	t.Helper()
	return u.routerWith(t, &routers.GatewayInfo{})
}

// routerWith is router with this gateway, whose network it fills in.
func (u *user) routerWith(t *testing.T, gateway *routers.GatewayInfo) string {
	t.Helper()
	isExternal := true
	pages, err := networks.List(u.neutron(t), external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &isExternal}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	gateway.NetworkID = found[0].ID
	made, err := routers.Create(t.Context(), u.neutron(t), routers.CreateOpts{Name: "shared", GatewayInfo: gateway}).Extract()
	require.NoError(t, err)
	client := u.neutron(t)
	t.Cleanup(func() { require.NoError(t, routers.Delete(context.Background(), client, made.ID).ExtractErr()) })
	return made.ID
}

// network makes a network with a subnet, with an interface of the router unless that is "".
func (u *user) network(t *testing.T, router, name string, addresses netip.Prefix) {
	t.Helper()
	made, err := networks.Create(t.Context(), u.neutron(t), networks.CreateOpts{Name: name}).Extract()
	require.NoError(t, err)
	client := u.neutron(t)
	t.Cleanup(func() { require.NoError(t, networks.Delete(context.Background(), client, made.ID).ExtractErr()) })
	subnet, err := subnets.Create(t.Context(), u.neutron(t), subnets.CreateOpts{NetworkID: made.ID, CIDR: addresses.String(), IPVersion: 4}).Extract()
	require.NoError(t, err)
	if router == "" {
		return
	}
	_, err = routers.AddInterface(t.Context(), u.neutron(t), router, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := routers.RemoveInterface(context.Background(), client, router, routers.RemoveInterfaceOpts{SubnetID: subnet.ID}).Extract()
		require.NoError(t, err)
	})
}

// fixed returns the addresses of all servers in their networks.
func (s *scaling) fixed(t *testing.T) map[string]netip.Addr {
	t.Helper()
	pages, err := servers.List(s.user.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	found := map[string]netip.Addr{}
	for _, server := range all {
		for _, list := range server.Addresses {
			for _, one := range list.([]any) {
				if address := one.(map[string]any); address["OS-EXT-IPS:type"] == "fixed" {
					found[server.Name] = netip.MustParseAddr(fmt.Sprint(address["addr"]))
				}
			}
		}
	}
	require.Len(t, found, len(all))
	return found
}
