package localcloud_test

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"
)

// onePublicServer is a small form of Burano's requests: a server on a port of its own network, with a floating address.
const onePublicServer = `
heat_template_version: 2018-08-31
parameters:
  image: {type: string}
resources:
  net: {type: OS::Neutron::Net}
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, cidr: 10.3.0.0/24}
  router:
    type: OS::Neutron::Router
    properties: {external_gateway_info: {network: public}}
  leg:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}
  port:
    type: OS::Neutron::Port
    properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}}], security_groups: [{get_resource: door}]}
  door:
    type: OS::Neutron::SecurityGroup
    properties: {rules: [{protocol: tcp, port_range_min: 8080, port_range_max: 8080}]}
  server:
    type: OS::Nova::Server
    properties:
      name: tiny
      flavor: m1.small
      image: {get_param: image}
      networks: [{port: {get_resource: port}}]
      user_data_format: RAW
      user_data: from a stack
  address:
    type: OS::Neutron::FloatingIP
    depends_on: leg
    properties: {floating_network: public, port_id: {get_resource: port}}
outputs:
  address: {value: {get_attr: [address, floating_ip_address]}}
`

// greeting is a server's message to its clients.
func greeting(address string) string {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(address, "8080"), time.Second)
	if err != nil {
		return ""
	}
	defer connection.Close()
	text, _ := io.ReadAll(connection)
	return string(text)
}

func TestAStackMakesAServerThatAnswersAtItsFloatingAddress(t *testing.T) {
	c := start(t)
	image := c.upload()
	heat := c.client(openstack.NewOrchestrationV1)
	template := &stacks.Template{TE: stacks.TE{Bin: []byte(onePublicServer)}}
	made, err := stacks.Create(t.Context(), heat, stacks.CreateOpts{
		Name: "one", TemplateOpts: template, Parameters: map[string]any{"image": image},
	}).Extract()
	require.NoError(t, err)
	var stack *stacks.RetrievedStack
	require.Eventually(t, func() bool {
		stack, err = stacks.Get(t.Context(), heat, "one", made.ID).Extract()
		require.NoError(t, err)
		require.NotEqual(t, "CREATE_FAILED", stack.Status, stack.StatusReason)
		return stack.Status == "CREATE_COMPLETE"
	}, waitFor, tick)
	address, _ := stack.Outputs[0]["output_value"].(string)
	require.NotEmpty(t, address)
	require.Eventually(t, func() bool { return greeting(address) == "server tiny is up: from a stack\n" }, waitFor, tick)

	// The server asks the cloud who it is.
	namespaces, err := filepath.Glob("/run/netns/" + prefix + "srv-*")
	require.NoError(t, err)
	require.Len(t, namespaces, 1)
	told, err := exec.Command("ip", "netns", "exec", filepath.Base(namespaces[0]), "curl", "-fsS", "--max-time", "10",
		"http://169.254.169.254/openstack/latest/user_data", "http://169.254.169.254/latest/meta-data/public-ipv4").CombinedOutput()
	require.NoError(t, err, string(told))
	require.Equal(t, "from a stack"+address, string(told))

	require.NoError(t, stacks.Delete(t.Context(), heat, "one", made.ID).ExtractErr())
	require.Eventually(t, func() bool {
		stack, err := stacks.Get(t.Context(), heat, "one", made.ID).Extract()
		if err == nil {
			require.NotEqual(t, "DELETE_FAILED", stack.Status, stack.StatusReason)
		}
		return err != nil || stack.Status == "DELETE_COMPLETE"
	}, waitFor, tick)
	pages, err := servers.List(c.client(openstack.NewComputeV2), nil).AllPages(t.Context())
	require.NoError(t, err)
	empty, err := pages.IsEmpty()
	require.NoError(t, err)
	require.True(t, empty)
	listed, err := networks.List(c.client(openstack.NewNetworkV2), nil).AllPages(t.Context())
	require.NoError(t, err)
	left, err := networks.ExtractNetworks(listed)
	require.NoError(t, err)
	require.Len(t, left, 1, "the external network only")
}
