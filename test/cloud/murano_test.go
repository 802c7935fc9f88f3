package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/murano/muranotest"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// muranosStackIsTakenOver: the stack of a real Murano, from muranotest, is updated in place, and its servers stay.
func muranosStackIsTakenOver(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	outside, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	network := demo.client(t, openstack.NewNetworkV2)
	router, err := routers.Create(t.Context(), network, routers.CreateOpts{Name: "murano-default-router", GatewayInfo: &routers.GatewayInfo{NetworkID: outside.ID}}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, routers.Delete(context.Background(), network, router.ID).ExtractErr()) })

	text := []byte(muranotest.Stack)
	text = regexp.MustCompile(`("router_id": )"[^"]*"`).ReplaceAll(text, []byte(`${1}"`+router.ID+`"`))
	text = regexp.MustCompile(`("floating_network": )"[^"]*"`).ReplaceAll(text, []byte(`${1}"`+outside.ID+`"`))
	var left struct {
		Name     string
		Template json.RawMessage
	}
	require.NoError(t, json.Unmarshal(text, &left))
	heat, keep := demo.heat(t), true
	made, err := stacks.Create(t.Context(), heat, stacks.CreateOpts{Name: left.Name, TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: left.Template}}, DisableRollback: &keep}).Extract()
	require.NoError(t, err)
	ids := func() map[string]string {
		pages, err := stackresources.List(heat, left.Name, made.ID, nil).AllPages(t.Context())
		require.NoError(t, err)
		list, err := stackresources.ExtractResources(pages)
		require.NoError(t, err)
		found := map[string]string{}
		for _, one := range list {
			found[one.Name] = one.PhysicalID
		}
		return found
	}
	part := func(pattern string) string { return string(regexp.MustCompile(pattern).FindSubmatch(text)[1]) }
	const name = "burano-taken-over"
	project = project.Adopting(map[string]driver.Adoption{name: {Stack: left.Name, Network: part(`"network-([0-9a-f]{32})"`),
		Region: part(`"([0-9a-f]{32})": \{`), Servers: map[string]string{"one": "web1", "two": "web2"}}})
	t.Cleanup(func() { require.NoError(t, project.DeleteStack(context.Background(), name)) })

	found, content, err := project.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, made.ID, found.ID, "and not a second one")
	before := ids()
	require.Len(t, before, 9)
	resources := content.Template["resources"].(map[string]any)
	for _, ours := range []string{"one-server", "one-port", "one-floating", "two-server", "two-port", "network", "subnet", "uplink", "servers"} {
		require.Contains(t, resources, ours)
	}

	// As Burano's classes write it.
	properties := func(of string) map[string]any { return resources[of].(map[string]any)["properties"].(map[string]any) }
	for _, id := range []string{"one", "two"} {
		server, port := properties(id+"-server"), properties(id+"-port")
		server["user_data"], server["user_data_format"], server["config_drive"] = "#cloud-config\n", "RAW", true
		delete(server, "key_name")
		delete(server, "metadata")
		port["name"] = server["name"]
	}
	properties("subnet")["name"] = "deployed-network-subnet"
	delete(properties("subnet"), "dns_nameservers")
	content.Template["outputs"].(map[string]any)["one-server"] = map[string]any{"value": map[string]any{"get_resource": "one-server"}}
	require.NoError(t, project.CheckStack(t.Context(), name, content))
	updated, err := project.ApplyStack(t.Context(), name, content)
	require.NoError(t, err)
	require.Equal(t, before, ids(), "everything is what it was, under its name")
	require.Equal(t, before["web1"], updated.Outputs["one-server"])

	again, err := project.ApplyStack(t.Context(), name, content)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)

	properties("one-server")["flavor"] = "m1.tiny"
	_, err = project.ApplyStack(t.Context(), name, content)
	changes := driver.ServerChanges(err)
	require.Len(t, changes, 1, "%v", err)
	require.Equal(t, []string{"flavor", before["web1"]}, []string{changes[0].Property, changes[0].ServerID})
	require.Equal(t, before, ids())
	require.False(t, bytes.Contains([]byte(err.Error()), []byte("web2")))
}

// stacksOfMuranosTemplatesAreTakenOver: the stack that Murano has made of a package in HOT lacks Burano's tag. A project that adopts it updates
// it in place, and no other one does. Then it is Burano's.
func stacksOfMuranosTemplatesAreTakenOver(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	plain := demo.project(t, c.service(t))
	const name = "ejktsmwsm7g464_environment"
	template := func(group string) map[string]any {
		return map[string]any{"heat_template_version": "2016-10-14",
			"resources": map[string]any{
				"net":   map[string]any{"type": "OS::Neutron::Net", "properties": map[string]any{"name": "taken-over"}},
				"group": map[string]any{"type": "OS::Neutron::SecurityGroup", "properties": map[string]any{"name": group}},
			},
			"outputs": map[string]any{"net": map[string]any{"value": map[string]any{"get_resource": "net"}}}}
	}
	text, err := json.Marshal(template("before"))
	require.NoError(t, err)
	heat, keep := demo.heat(t), true
	made, err := stacks.Create(t.Context(), heat, stacks.CreateOpts{Name: name, TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: text}}, DisableRollback: &keep,
		Tags: []string{"murano"}}).Extract()
	require.NoError(t, err)
	adopting := plain.Adopting(map[string]driver.Adoption{name: {Stack: name}})
	t.Cleanup(func() { require.NoError(t, adopting.DeleteStack(context.Background(), name)) })

	found, content, err := adopting.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, made.ID, found.ID)
	require.Contains(t, content.Template["resources"], "net")
	foreign, _, err := plain.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Nil(t, foreign)
	_, err = plain.ApplyStack(t.Context(), name, driver.Content{Template: template("after")})
	require.ErrorContains(t, err, "so Burano has not made it")

	maker, err := adopting.StackMaker(t.Context(), name, "")
	require.NoError(t, err)
	require.Equal(t, driver.Heat, maker)
	updated, err := adopting.ApplyStack(t.Context(), name, driver.Content{Template: template("after")})
	require.NoError(t, err)
	require.Equal(t, made.ID, updated.ID)
	require.Equal(t, found.Outputs["net"], updated.Outputs["net"], "the network stays")
	found, _, err = plain.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, made.ID, found.ID, "now it has the tag")
	again, err := adopting.ApplyStack(t.Context(), name, driver.Content{Template: template("after")})
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
}
