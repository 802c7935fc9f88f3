package heat_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/buildinfo"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackevents"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacktemplates"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/heat"
	"github.com/burano/burano/test/localcloud/heat/heattest"
	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/neutron/neutrontest"
)

type cloud struct {
	networks    *neutron.Service
	compute     *heattest.Compute
	config      heat.Config
	service     *heat.Service
	demo, other *gophercloud.ServiceClient
	before      []string
	prefix      string
}

func start(t *testing.T) *cloud {
	t.Helper()
	network := neutrontest.Config(t)
	c := &cloud{networks: neutrontest.Start(t, network), prefix: network.Prefix}
	c.compute = &heattest.Compute{Networks: c.networks}
	c.config = heat.Config{StateDir: t.TempDir(), Compute: c.compute, Network: c.networks}
	c.serve(t)
	c.before = neutrontest.Found(t, c.prefix)
	return c
}

// serve starts Heat, again after a restart.
func (c *cloud) serve(t *testing.T) {
	t.Helper()
	service, err := heat.New(c.config)
	require.NoError(t, err)
	require.NoError(t, service.Restore(t.Context()))
	t.Cleanup(service.Close)
	c.service = service
	url := neutrontest.Serve(t, http.StripPrefix("/orchestration/v1", service.Handler()))
	client := func(project string) *gophercloud.ServiceClient {
		return &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{TokenID: project}, Endpoint: url + "/orchestration/v1/" + project + "/", Type: "orchestration"}
	}
	c.demo, c.other = client("demo"), client("other")
}

func template(source string) *stacks.Template {
	t := &stacks.Template{}
	t.Bin = []byte(source)
	return t
}

func (c *cloud) create(t *testing.T, name, source string, parameters map[string]any) string {
	t.Helper()
	created, err := stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: name, TemplateOpts: template(source), Parameters: parameters}).Extract()
	require.NoError(t, err)
	require.Contains(t, created.Links[0].Href, "/orchestration/v1/demo/stacks/"+name+"/"+created.ID)
	return created.ID
}

// wait waits for the end of the present operation.
func (c *cloud) wait(t *testing.T, name, id string) *stacks.RetrievedStack {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		stack, err := stacks.Get(t.Context(), c.demo, name, id).Extract()
		require.NoError(t, err)
		if !strings.HasSuffix(stack.Status, "_IN_PROGRESS") {
			return stack
		}
		require.True(t, time.Now().Before(deadline), "%s: %s", stack.Status, stack.StatusReason)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

func (c *cloud) deleteStack(t *testing.T, name, id string) {
	t.Helper()
	require.NoError(t, stacks.Delete(t.Context(), c.demo, name, id).ExtractErr())
	stack := c.wait(t, name, id)
	require.Equal(t, "DELETE_COMPLETE", stack.Status, stack.StatusReason)
	c.requireNothing(t)
}

func (c *cloud) requireNothing(t *testing.T) {
	t.Helper()
	require.Empty(t, c.compute.Servers())
	require.Zero(t, c.compute.KeyPairs())
	require.Len(t, c.networks.Networks("demo"), 1)
	require.Len(t, c.networks.Subnets("demo"), 1)
	require.Empty(t, c.networks.Ports(""))
	require.Empty(t, c.networks.Routers("demo"))
	require.Empty(t, c.networks.FloatingIPs("demo"))
	require.Equal(t, c.before, neutrontest.Found(t, c.prefix))
}

func (c *cloud) update(t *testing.T, name, id, source string, parameters map[string]any) *stacks.RetrievedStack {
	t.Helper()
	require.NoError(t, stacks.Update(t.Context(), c.demo, name, id, stacks.UpdateOpts{TemplateOpts: template(source), Parameters: parameters}).ExtractErr())
	return c.wait(t, name, id)
}

func (c *cloud) resources(t *testing.T, name, id string) map[string]stackresources.Resource {
	t.Helper()
	pages, err := stackresources.List(c.demo, name, id, nil).AllPages(t.Context())
	require.NoError(t, err)
	list, err := stackresources.ExtractResources(pages)
	require.NoError(t, err)
	found := map[string]stackresources.Resource{}
	for _, resource := range list {
		found[resource.Name] = resource
	}
	return found
}

func requireProblem(t *testing.T, err error, status int, kind, text string) {
	t.Helper()
	var unexpected gophercloud.ErrUnexpectedResponseCode
	require.ErrorAs(t, err, &unexpected)
	require.Equal(t, status, unexpected.Actual, string(unexpected.Body))
	var body struct {
		Explanation, Title string
		Code               int
		Error              struct{ Type, Message string }
	}
	require.NoError(t, json.Unmarshal(unexpected.Body, &body), string(unexpected.Body))
	require.Equal(t, status, body.Code)
	require.NotEmpty(t, body.Explanation)
	require.Equal(t, kind, body.Error.Type, body.Error.Message)
	require.Contains(t, body.Error.Message, text)
}

// site is a network behind a router, and the prerequisites of servers.
const site = `
heat_template_version: 2016-10-14
description: A site
parameters:
  public: {type: string, default: public}
  key: {type: string, default: ssh-ed25519 AAAA}
  doors: {type: comma_delimited_list, default: "22,80"}
resources:
  net: {type: OS::Neutron::Net, properties: {name: inner}}
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, cidr: 10.20.0.0/24, dns_nameservers: [192.0.2.53]}
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: {get_param: public}}}}
  door: {type: OS::Neutron::RouterInterface, properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}}
  group:
    type: OS::Neutron::SecurityGroup
    properties:
      rules:
        - {protocol: tcp, port_range_min: {get_param: [doors, 0]}, port_range_max: {get_param: [doors, 1]}}
        - {remote_mode: remote_group_id}
        - {protocol: icmp}
  key: {type: OS::Nova::KeyPair, properties: {name: key, public_key: {get_param: key}}}
  secret: {type: OS::Heat::RandomString, properties: {length: 12}}
`

func node(name, flavor string) string {
	return fmt.Sprintf(`
  %[1]s-port:
    type: OS::Neutron::Port
    properties:
      network: {get_resource: net}
      security_groups: [{get_resource: group}]
      allowed_address_pairs: [{ip_address: 10.244.0.0/16}]
  %[1]s-ip:
    type: OS::Neutron::FloatingIP
    properties: {floating_network: public, port_id: {get_resource: %[1]s-port}}
  %[1]s:
    type: OS::Nova::Server
    metadata: {role: node}
    properties:
      name: %[1]s
      image: nodes
      flavor: %[2]s
      key_name: {get_resource: key}
      networks: [{port: {get_resource: %[1]s-port}}]
      metadata: {number: 1}
      user_data_format: RAW
      user_data:
        str_replace:
          template: "#!/bin/sh\n# $name $name2 of stack $stack: $secret\n"
          params: {$name: %[1]s, $name2: other, $stack: {get_param: "OS::stack_name"}, $secret: {get_resource: secret}}
`, name, flavor)
}

const outputs = `
outputs:
  address: {description: where, value: {get_attr: [a, first_address]}}
  floating: {value: {get_attr: [a-ip, floating_ip_address]}}
  nested: {value: {get_attr: [a, addresses, inner, 0, addr]}}
  joined: {value: {list_join: [",", {get_attr: [a, networks, inner]}, [x, 1]]}}
  missing: {value: {get_attr: [a, networks, nowhere]}}
  wrong: {value: {get_attr: [a, colour]}}
`

func TestAStackGrowsByTwoServersAtOnceShrinksAndLeavesNothing(t *testing.T) {
	c := start(t)
	id := c.create(t, "env", site+node("a", "m1.small")+outputs, nil)
	stack := c.wait(t, "env", id)
	require.Equal(t, "CREATE_COMPLETE", stack.Status, stack.StatusReason)
	require.Equal(t, "Stack CREATE completed successfully", stack.StatusReason)
	require.Equal(t, "A site", stack.Description)
	require.Equal(t, "env", stack.Parameters["OS::stack_name"])
	require.Equal(t, "22,80", stack.Parameters["doors"])

	values := map[string]any{}
	for _, output := range stack.Outputs {
		values[output["output_key"].(string)] = output["output_value"]
		if output["output_key"] == "wrong" {
			require.Contains(t, output["output_error"], "colour")
		}
	}
	floating := c.networks.FloatingIPs("demo")
	require.Len(t, floating, 1)
	require.Equal(t, map[string]any{
		"address": "10.20.0.2", "floating": floating[0].FloatingIPAddress, "nested": "10.20.0.2", "joined": "10.20.0.2," + floating[0].FloatingIPAddress + ",x,1", "missing": nil, "wrong": nil,
	}, values)
	first := c.resources(t, "env", id)
	request := c.compute.Servers()[first["a"].PhysicalID]
	require.Equal(t, "key", request.KeyName)
	require.Equal(t, map[string]string{"number": "1"}, request.Metadata)
	require.Regexp(t, `^#!/bin/sh\n# a other of stack env: [a-zA-Z0-9]{12}\n$`, string(request.UserData))
	require.Equal(t, []any{"a", "a-ip"}, first["a-port"].RequiredBy)
	group := c.networks.SecurityGroups("demo")
	at := slices.IndexFunc(group, func(g neutron.SecurityGroup) bool { return g.ID == first["group"].PhysicalID })
	require.Len(t, group[at].Rules, 5)

	c.compute.Hold()
	bigger := stacks.UpdateOpts{TemplateOpts: template(site + node("a", "m1.small") + node("b", "m1.small") + node("c", "m1.small"))}
	require.NoError(t, stacks.Update(t.Context(), c.demo, "env", id, bigger).ExtractErr())
	require.Eventually(t, func() bool { return c.compute.Building() == 2 }, 10*time.Second, 5*time.Millisecond, "both are made at once")
	c.compute.Release()
	stack = c.wait(t, "env", id)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	second := c.resources(t, "env", id)
	require.Len(t, c.compute.Servers(), 3)
	require.Equal(t, first["a"].PhysicalID, second["a"].PhysicalID, "what did not change is not touched")
	require.Equal(t, first["a-port"].UpdatedTime, second["a-port"].UpdatedTime)

	stack = c.update(t, "env", id, site+node("a", "m1.small")+node("c", "m1.small"), nil)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	third := c.resources(t, "env", id)
	require.NotContains(t, third, "b")
	require.Equal(t, second["c"].PhysicalID, third["c"].PhysicalID)
	require.Len(t, c.compute.Servers(), 2)
	require.Len(t, c.networks.FloatingIPs("demo"), 2)

	c.deleteStack(t, "env", id)
	requireProblem(t, stacks.Find(t.Context(), c.demo, "env").Err, 404, "EntityNotFound", "The Stack (env) could not be found.")
	c.deleteStack(t, "env", c.create(t, "env", site, nil))
}

func TestAChangeIsMadeInPlaceWhereThatCanBeAndElseByReplacement(t *testing.T) {
	c := start(t)
	id := c.create(t, "env", site+node("a", "m1.small"), nil)
	require.Equal(t, "CREATE_COMPLETE", c.wait(t, "env", id).Status)
	first := c.resources(t, "env", id)

	changed := strings.Replace(site+node("a", "m1.large"), "name: inner", "name: outer", 1)
	stack := c.update(t, "env", id, strings.Replace(changed, `"22,80"`, `"22,443"`, 1), nil)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	second := c.resources(t, "env", id)
	require.Equal(t, first["net"].PhysicalID, second["net"].PhysicalID)
	require.Equal(t, "UPDATE_COMPLETE", second["net"].Status)
	network, err := c.networks.GetNetwork(t.Context(), "demo", first["net"].PhysicalID)
	require.NoError(t, err)
	require.Equal(t, "outer", network.Name)
	require.Equal(t, first["group"].PhysicalID, second["group"].PhysicalID)
	group, err := c.networks.GetSecurityGroup(t.Context(), "demo", first["group"].PhysicalID)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(group.Rules, func(r neutron.SecurityGroupRule) bool { return r.PortRangeMax != nil && *r.PortRangeMax == 443 }))
	require.Len(t, group.Rules, 5)
	require.Equal(t, first["a"].PhysicalID, second["a"].PhysicalID, "another flavor resizes the server")
	require.Equal(t, first["a-port"].PhysicalID, second["a-port"].PhysicalID, "with the same port")
	require.Len(t, c.compute.Servers(), 1)

	fixed := strings.Replace(changed, "network: {get_resource: net}\n      security", "network: {get_resource: net}\n      mac_address: \"fa:16:3e:00:00:01\"\n      security", 1)
	stack = c.update(t, "env", id, fixed, nil)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	third := c.resources(t, "env", id)
	require.NotEqual(t, second["a-port"].PhysicalID, third["a-port"].PhysicalID)
	require.Equal(t, second["a"].PhysicalID, third["a"].PhysicalID, "its interfaces are attached and detached")
	require.Equal(t, second["a-ip"].PhysicalID, third["a-ip"].PhysicalID, "the floating address moved to the new port")
	require.Len(t, c.networks.Ports("demo"), 2, "the server's and the router's")
	c.deleteStack(t, "env", id)
}

func TestAServerOfAnUnknownFlavorIsRefusedAtOnce(t *testing.T) {
	c := start(t)
	_, err := stacks.Create(t.Context(), c.demo, stacks.CreateOpts{
		Name: "env", TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: []byte(site + node("a", "m1.unknown"))}},
	}).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusBadRequest), err)
	require.ErrorContains(t, err, "resources.a.properties.flavor: : Error validating value 'm1.unknown'")
}

func TestAFailureSaysWhyAndTheNextUpdateMendsIt(t *testing.T) {
	c := start(t)
	c.compute.Broken = map[string]string{"m1.broken": "No valid host was found. It has no memory left."}
	id := c.create(t, "env", site+node("a", "m1.small")+node("b", "m1.broken"), nil)
	stack := c.wait(t, "env", id)
	require.Equal(t, "CREATE_FAILED", stack.Status)
	require.Equal(t, `Resource CREATE failed: ResourceInError: resources.b: Went to status ERROR due to "Message: No valid host was found. It has no memory left., Code: 500"`, stack.StatusReason)
	resources := c.resources(t, "env", id)
	require.Equal(t, "CREATE_FAILED", resources["b"].Status)
	require.Contains(t, resources["b"].StatusReason, "ResourceInError: resources.b: Went to status ERROR")
	require.Equal(t, "CREATE_COMPLETE", resources["a"].Status, "what was begun is finished")

	stack = c.update(t, "env", id, site+node("a", "m1.small")+node("b", "m1.none"), nil)
	require.Equal(t, "UPDATE_FAILED", stack.Status)
	require.Equal(t, "Resource CREATE failed: BadRequest: resources.b: Flavor m1.none could not be found.", stack.StatusReason)
	stack = c.update(t, "env", id, site+node("a", "m1.small")+node("b", "m1.small"), nil)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	require.Len(t, c.compute.Servers(), 2)

	pages, err := stackevents.List(c.demo, "env", id, nil).AllPages(t.Context())
	require.NoError(t, err)
	events, err := stackevents.ExtractEvents(pages)
	require.NoError(t, err)
	require.Equal(t, "CREATE_IN_PROGRESS", events[0].ResourceStatus)
	require.Equal(t, "env", events[0].ResourceName)
	at := slices.IndexFunc(events, func(e stackevents.Event) bool { return e.ResourceName == "b" && e.ResourceStatus == "CREATE_FAILED" })
	require.Positive(t, at)
	event, err := stackevents.Get(t.Context(), c.demo, "env", id, "b", events[at].ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "m1.broken", event.ResourceProperties["flavor"])
	c.deleteStack(t, "env", id)
}

func TestARollbackOfACreationLeavesNothingAndOneOfAnUpdateWhatWas(t *testing.T) {
	c := start(t)
	c.compute.Broken = map[string]string{"m1.broken": "no"}
	no := false
	created, err := stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: "env", TemplateOpts: template(site + node("b", "m1.broken")), DisableRollback: &no}).Extract()
	require.NoError(t, err)
	require.Equal(t, "ROLLBACK_COMPLETE", c.wait(t, "env", created.ID).Status)
	c.requireNothing(t)
	require.NoError(t, stacks.Delete(t.Context(), c.demo, "env", created.ID).ExtractErr())
	c.wait(t, "env", created.ID)

	created, err = stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: "env", TemplateOpts: template(site + node("a", "m1.small")), DisableRollback: &no}).Extract()
	require.NoError(t, err)
	require.Equal(t, "CREATE_COMPLETE", c.wait(t, "env", created.ID).Status)
	stack := c.update(t, "env", created.ID, site+node("a", "m1.small")+node("b", "m1.broken"), nil)
	require.Equal(t, "ROLLBACK_COMPLETE", stack.Status, stack.StatusReason)
	require.Len(t, c.compute.Servers(), 1)
	c.deleteStack(t, "env", created.ID)
}

func TestOneOperationAtATimeButADeletionEndsWhatIsInProgress(t *testing.T) {
	c := start(t)
	c.compute.Hold()
	id := c.create(t, "env", site+node("a", "m1.small"), nil)
	_, err := stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: "env", TemplateOpts: template(site)}).Extract()
	requireProblem(t, err, 409, "StackExists", "The Stack (env) already exists.")
	err = stacks.Update(t.Context(), c.demo, "env", id, stacks.UpdateOpts{TemplateOpts: template(site)}).ExtractErr()
	requireProblem(t, err, 409, "ActionInProgress", "Stack env already has an action (CREATE) in progress.")
	require.Eventually(t, func() bool { return len(c.compute.Servers()) == 1 }, 10*time.Second, 5*time.Millisecond)
	c.deleteStack(t, "env", id)
}

// slowly makes trusts once both who ask for one have asked.
type slowly struct{ both *sync.WaitGroup }

func (s slowly) Delegate(string) (string, bool) {
	s.both.Done()
	s.both.Wait()
	return "trust", true
}

func (s slowly) Delegates(string) bool { return true }

func (s slowly) EndDelegation(string) error { return nil }

// Heat has no rule in its database that a name is unique: both are looked at before either is stored.
func TestTwoWhoCreateAStackOfOneNameAtTheSameMomentBothSucceed(t *testing.T) {
	c := start(t)
	c.service.Close()
	var both sync.WaitGroup
	both.Add(2)
	c.config.Delegations = slowly{&both}
	c.serve(t)
	const source = "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::None}}\n"
	opts := stacks.CreateOpts{Name: "env", TemplateOpts: template(source)}
	other := make(chan error, 1)
	go func() { other <- stacks.Create(t.Context(), c.demo, opts).Err }()
	require.NoError(t, stacks.Create(t.Context(), c.demo, opts).Err)
	require.NoError(t, <-other)
	pages, err := stacks.List(c.demo, stacks.ListOpts{Name: "env"}).AllPages(t.Context())
	require.NoError(t, err)
	twins, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	require.Len(t, twins, 2)
	requireProblem(t, stacks.Create(t.Context(), c.demo, opts).Err, 409, "StackExists", "The Stack (env) already exists.")
	for _, twin := range slices.Backward(twins) { // they are listed newest first
		found, err := stacks.Find(t.Context(), c.demo, "env").Extract()
		require.NoError(t, err)
		require.Equal(t, twin.ID, found.ID, "a name stands for the oldest")
		c.deleteStack(t, "env", twin.ID)
	}
}

func TestAStackThatIsBeingDeletedIsNotUpdated(t *testing.T) {
	c := start(t)
	c.compute.Hold()
	id := c.create(t, "env", site+node("a", "m1.small"), nil)
	require.Eventually(t, func() bool { return c.compute.Building() == 1 }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, stacks.Delete(t.Context(), c.demo, "env", id).ExtractErr())
	err := stacks.Update(t.Context(), c.demo, "env", id, stacks.UpdateOpts{TemplateOpts: template(site)}).ExtractErr()
	c.compute.Release()
	requireProblem(t, err, 400, "NotSupported", "Updating a stack when it is deleting is not supported.")
	c.deleteStack(t, "env", id)
}

func TestWhatIsInProgressGoesOnAfterARestartAndNothingIsMadeTwice(t *testing.T) {
	c := start(t)
	c.compute.Hold()
	id := c.create(t, "env", site+node("a", "m1.small"), nil)
	require.Eventually(t, func() bool { return len(c.compute.Servers()) == 1 }, 10*time.Second, 5*time.Millisecond)
	c.service.Close()
	c.serve(t)
	stack, err := stacks.Get(t.Context(), c.demo, "env", id).Extract()
	require.NoError(t, err)
	require.Equal(t, "CREATE_IN_PROGRESS", stack.Status)
	c.compute.Release()
	stack = c.wait(t, "env", id)
	require.Equal(t, "CREATE_COMPLETE", stack.Status, stack.StatusReason)
	require.Len(t, c.compute.Servers(), 1)
	require.Len(t, c.networks.Ports("demo"), 2)
	require.Len(t, c.networks.FloatingIPs("demo"), 1)

	c.service.Close()
	c.serve(t)
	c.deleteStack(t, "env", id)
}

func TestAPatchKeepsTemplateAndParameters(t *testing.T) {
	c := start(t)
	source := `
heat_template_version: rocky
parameters:
  one: {type: string}
  two: {type: number, default: 2, constraints: [{range: {min: 1, max: 5}}]}
  three: {type: json, default: {a: [1, 2]}}
  four: {type: boolean, default: "on", hidden: true}
resources:
  value: {type: OS::Heat::Value, properties: {value: {str_replace: {template: "1=2=3", params: {"1": {get_param: one}, "2": {get_param: two}, "3": {get_param: [three, a, 1]}}}}}}
  none: {type: OS::Heat::None, properties: {whatever: [1]}, depends_on: value}
outputs:
  text: {value: {get_attr: [value, value]}}
`
	id := c.create(t, "env", source, map[string]any{"one": "x"})
	stack := c.wait(t, "env", id)
	require.Equal(t, "CREATE_COMPLETE", stack.Status, stack.StatusReason)
	require.Equal(t, "x=2=2", stack.Outputs[0]["output_value"])
	require.Equal(t, "******", stack.Parameters["four"])
	require.Equal(t, `{"a":[1,2]}`, stack.Parameters["three"])
	require.NoError(t, stacks.UpdatePatch(t.Context(), c.demo, "env", id, stacks.UpdateOpts{Parameters: map[string]any{"two": 5}}).ExtractErr())
	stack = c.wait(t, "env", id)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	require.Equal(t, "x=5=2", stack.Outputs[0]["output_value"])
	require.NoError(t, stacks.Delete(t.Context(), c.demo, "env", id).ExtractErr())
	c.wait(t, "env", id)
}

func TestConditionsDecideWhatIsThere(t *testing.T) {
	c := start(t)
	source := `
heat_template_version: 2018-08-31
parameters:
  size: {type: string, default: small}
  extra: {type: boolean, default: false}
conditions:
  large: {equals: [{get_param: size}, large]}
  plain: {and: [{not: large}, {not: {get_param: extra}}]}
resources:
  always: {type: OS::Heat::Value, properties: {value: {if: [large, {get_attr: [big, value]}, little]}}, depends_on: more}
  big: {type: OS::Heat::Value, condition: large, properties: {value: much}}
  more: {type: OS::Heat::None, condition: {or: [large, {get_param: extra}]}, properties: {x: {repeat: {for_each: {$a: [1, 2]}, template: $a}}}}
outputs:
  value: {value: {get_attr: [always, value]}}
  big: {condition: large, value: {get_attr: [big, value]}}
  plain: {value: {if: [plain, "yes", "no"]}}
`
	id := c.create(t, "env", source, nil)
	look := func() (names []string, outputs map[string]any) {
		stack := c.wait(t, "env", id)
		require.Contains(t, stack.Status, "_COMPLETE", stack.StatusReason)
		outputs = map[string]any{}
		for _, output := range stack.Outputs {
			outputs[output["output_key"].(string)] = output["output_value"]
		}
		return slices.Sorted(maps.Keys(c.resources(t, "env", id))), outputs
	}
	names, outputs := look()
	require.Equal(t, []string{"always"}, names)
	require.Equal(t, map[string]any{"value": "little", "big": nil, "plain": "yes"}, outputs)
	c.update(t, "env", id, source, map[string]any{"size": "large"})
	names, outputs = look()
	require.Equal(t, []string{"always", "big", "more"}, names)
	require.Equal(t, map[string]any{"value": "much", "big": "much", "plain": "no"}, outputs)
	c.update(t, "env", id, source, map[string]any{"extra": true})
	names, outputs = look()
	require.Equal(t, []string{"always", "more"}, names)
	require.Equal(t, map[string]any{"value": "little", "big": nil, "plain": "no"}, outputs)
	c.deleteStack(t, "env", id)
}

// As Heat of Zed does it: the last members go when the number falls, unless a policy names others, whose names come never again.
func TestAGroupHasAsManyMembersAsItCounts(t *testing.T) {
	c := start(t)
	source := `
heat_template_version: 2018-08-31
parameters:
  count: {type: number}
  word: {type: string, default: x}
  gone: {type: json, default: []}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.20.0.0/24}}
  group:
    type: OS::Heat::ResourceGroup
    depends_on: subnet # a port takes an address of it, which Heat does not see in another stack
    properties:
      count: {get_param: count}
      removal_policies: [{resource_list: {get_param: gone}}]
      resource_def:
        type: OS::Neutron::Port
        properties: {name: "port-%index%", network: {get_resource: net}}
  words:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      index_var: $i
      resource_def: {type: OS::Heat::Value, properties: {value: {list_join: ["-", [$i, {get_param: word}]]}}}
outputs:
  names: {value: {get_attr: [group, name]}}
  refs: {value: {get_attr: [group, refs]}}
  map: {value: {get_attr: [group, refs_map]}}
  words: {value: {get_attr: [words, value]}}
  first: {value: {get_attr: [words, resource.1.value]}}
  each: {value: {get_attr: [words, attributes, value]}}
`
	id := c.create(t, "env", source, map[string]any{"count": 2})
	look := func() map[string]any {
		stack := c.wait(t, "env", id)
		require.Contains(t, stack.Status, "_COMPLETE", stack.StatusReason)
		outputs := map[string]any{}
		for _, output := range stack.Outputs {
			outputs[output["output_key"].(string)] = output["output_value"]
		}
		return outputs
	}
	update := func(parameters map[string]any) map[string]any {
		c.update(t, "env", id, source, parameters)
		return look()
	}
	made := look()
	require.Equal(t, []any{"port-0", "port-1"}, made["names"])
	require.Equal(t, []any{"0-x", "1-x"}, made["words"])
	require.Equal(t, "1-x", made["first"])
	require.Equal(t, map[string]any{"0": "0-x", "1": "1-x"}, made["each"])
	ports := made["map"].(map[string]any)
	pages, err := stacks.List(c.demo, nil).AllPages(t.Context())
	require.NoError(t, err)
	listed, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	require.Len(t, listed, 1, "a group's stack is in no list")
	require.Len(t, c.resources(t, "env", id), 4)

	more := update(map[string]any{"count": 3, "word": "y"})
	require.Equal(t, []any{"port-0", "port-1", "port-2"}, more["names"])
	require.Equal(t, []any{"0-y", "1-y", "2-y"}, more["words"])
	require.Equal(t, ports["0"], more["map"].(map[string]any)["0"])

	chosen := update(map[string]any{"count": 2, "gone": []any{"0"}})
	require.Equal(t, []any{"port-1", "port-2"}, chosen["names"])
	again := update(map[string]any{"count": 3, "gone": []any{ports["1"]}})
	require.Equal(t, []any{"port-2", "port-3", "port-4"}, again["names"], "names come never again")

	c.service.Close()
	c.serve(t)
	none := update(map[string]any{"count": 0})
	require.Empty(t, none["names"])
	require.Empty(t, none["refs"])
	require.Equal(t, []any{"port-2"}, update(map[string]any{"count": 1})["names"])

	err = stacks.Update(t.Context(), c.demo, "env", id, stacks.UpdateOpts{TemplateOpts: template("heat_template_version: 2018-08-31\nresources: {group: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: OS::No::Thing}}}}\n")}).ExtractErr()
	require.NoError(t, err)
	stack := c.wait(t, "env", id)
	require.Equal(t, "UPDATE_FAILED", stack.Status)
	require.Contains(t, stack.StatusReason, "OS::No::Thing")
	c.deleteStack(t, "env", id) // the ports are as they were, and go before their subnet
	pages, err = stackevents.List(c.demo, "env", id, nil).AllPages(t.Context())
	require.NoError(t, err)
	events, err := stackevents.ExtractEvents(pages)
	require.NoError(t, err)
	at := func(name, status string) int {
		return slices.IndexFunc(events, func(e stackevents.Event) bool { return e.ResourceName == name && e.ResourceStatus == status })
	}
	require.Greater(t, at("group", "DELETE_COMPLETE"), 0)
	require.Less(t, at("group", "DELETE_COMPLETE"), at("subnet", "DELETE_IN_PROGRESS"))
}

func TestWhatCannotBeMadeIsRefusedBeforeAnythingIsMade(t *testing.T) {
	c := start(t)
	const head = "heat_template_version: 2018-08-31\n"
	for _, wrong := range []struct{ title, source, kind, text string }{
		{"no version", "resources: {}", "InvalidTemplateVersion", "Template format version not found"},
		{"an unknown version", "heat_template_version: 1999-01-01", "InvalidTemplateVersion", "should be one of"},
		{"an unknown section", head + "colours: {}", "InvalidTemplateSection", "colours"},
		{"an unknown type", head + "resources: {a: {type: OS::Nova::Spaceship}}", "StackValidationFailed", "The Resource Type (OS::Nova::Spaceship) could not be found."},
		{"an unknown function", head + "resources: {a: {type: OS::Heat::None, properties: {x: {resource_facade: metadata}}}}", "InvalidTemplate", `the function "resource_facade" is not supported`},
		{"a missing parameter", head + "parameters: {p: {type: string}}", "UserParameterMissing", "The Parameter (p) was not provided."},
		{"an undeclared parameter", head + "resources: {a: {type: OS::Heat::None, properties: {x: {get_param: p}}}}", "InvalidTemplateParameter", "(p)"},
		{"a reference to nothing", head + "resources: {a: {type: OS::Heat::None, properties: {x: {get_resource: b}}}}", "InvalidTemplateReference", `"b" (in a.Properties)`},
		{"a circle", head + "resources: {a: {type: OS::Heat::None, depends_on: b}, b: {type: OS::Heat::None, depends_on: [a]}}", "CircularDependencyException", "a, b"},
		{"an unknown condition", head + "resources: {a: {type: OS::Heat::None, condition: sunny}}", "StackValidationFailed", "there is no condition sunny"},
		{"conditions in a circle", head + "conditions: {a: {not: b}, b: {not: a}}", "StackValidationFailed", "depends on itself"},
		{"a condition that asks for a resource", head + "conditions: {a: {equals: [{get_resource: a}, x]}}", "StackValidationFailed", "parameters only"},
		{"what a condition rules out", head + "conditions: {no: {equals: [a, b]}}\nresources: {a: {type: OS::Heat::None, condition: no}, b: {type: OS::Heat::None, properties: {x: {get_resource: a}}}}", "InvalidTemplateReference", `"a" (in b.Properties)`},
		{"conditions of a former version", "heat_template_version: 2016-04-08\nconditions: {}", "InvalidTemplateSection", "conditions"},
		{"an if of a former version", "heat_template_version: 2016-04-08\nresources: {a: {type: OS::Heat::None, properties: {x: {if: [true, a, b]}}}}", "InvalidTemplate", "2016-10-14"},
		{"a missing property", head + "resources: {a: {type: OS::Nova::Server, properties: {image: x}}}", "StackValidationFailed", "Property flavor not assigned"},
		{"an unknown property", head + "resources: {a: {type: OS::Neutron::Net, properties: {colour: red}}}", "StackValidationFailed", "Unknown Property colour"},
		{"a missing file", head + "resources: {a: {type: OS::Heat::None, properties: {x: {get_file: nowhere.txt}}}}", "StackValidationFailed", "nowhere.txt"},
		{"a violated constraint", head + "parameters: {p: {type: number, default: 9, constraints: [{range: {max: 5}}]}}", "InvalidSchemaError", "out of range"},
	} {
		t.Run(wrong.title, func(t *testing.T) {
			_, err := c.demo.Post(t.Context(), c.demo.Endpoint+"stacks", map[string]any{"stack_name": "env", "template": wrong.source}, nil, nil)
			requireProblem(t, err, 400, wrong.kind, wrong.text)
		})
	}
	_, err := stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: "env", TemplateOpts: template(head), Parameters: map[string]any{"q": 1}}).Extract()
	requireProblem(t, err, 400, "UnknownUserParameter", "The Parameter (q) was not defined in template.")
	_, err = stacks.Create(t.Context(), c.demo, stacks.CreateOpts{Name: "9env", TemplateOpts: template(head)}).Extract()
	requireProblem(t, err, 400, "StackValidationFailed", "9env")
	_, err = c.demo.Post(t.Context(), c.demo.Endpoint+"stacks", map[string]any{"stack_name": "env", "template": "a: [b"}, nil, nil)
	requireProblem(t, err, 400, "TemplateFormatError", "line 1")
	c.requireNothing(t)
}

func TestStacksAreFoundListedAndKeptFromOthers(t *testing.T) {
	c := start(t)
	const source = "heat_template_version: 2018-08-31\ndescription: nothing\nresources: {a: {type: OS::Heat::None, metadata: {x: one}}}\n"
	opts := stacks.CreateOpts{Name: "env", TemplateOpts: template(source), Tags: []string{"burano", "test"}}
	created, err := stacks.Create(t.Context(), c.demo, opts).Extract()
	require.NoError(t, err)
	id := created.ID
	c.wait(t, "env", id)
	for _, identity := range []string{"env", id} {
		stack, err := stacks.Find(t.Context(), c.demo, identity).Extract()
		require.NoError(t, err)
		require.Equal(t, id, stack.ID)
		require.Equal(t, []string{"burano", "test"}, stack.Tags)
	}
	names := func(client *gophercloud.ServiceClient, opts stacks.ListOpts) (names []string) {
		pages, err := stacks.List(client, opts).AllPages(t.Context())
		require.NoError(t, err)
		found, err := stacks.ExtractStacks(pages)
		require.NoError(t, err)
		for _, stack := range found {
			names = append(names, stack.Name)
		}
		return names
	}
	require.Equal(t, []string{"env"}, names(c.demo, stacks.ListOpts{Name: "env", Status: "COMPLETE"}))
	require.Equal(t, []string{"env"}, names(c.demo, stacks.ListOpts{Tags: "burano,test"}))
	require.Empty(t, names(c.demo, stacks.ListOpts{Tags: "burano,other"}))
	requireProblem(t, stacks.List(c.demo, stacks.ListOpts{Name: "env", Tags: "burano"}).EachPage(t.Context(), nil), 500, "RemoteError", "")
	require.Empty(t, names(c.demo, stacks.ListOpts{Name: "other"}))
	require.Empty(t, names(c.other, stacks.ListOpts{}))
	requireProblem(t, stacks.Find(t.Context(), c.other, "env").Err, 404, "EntityNotFound", "env")
	requireProblem(t, stacks.Get(t.Context(), c.other, "env", id).Err, 404, "EntityNotFound", "env")
	requireProblem(t, stacks.Delete(t.Context(), c.other, "env", id).Err, 404, "EntityNotFound", "env")
	foreign := *c.other
	foreign.Endpoint = c.demo.Endpoint
	requireProblem(t, stacks.Get(t.Context(), &foreign, "env", id).Err, 403, "Forbidden", "project")

	text, err := stacktemplates.Get(t.Context(), c.demo, "env", id).Extract()
	require.NoError(t, err)
	require.JSONEq(t, `{"heat_template_version":"2018-08-31","description":"nothing","resources":{"a":{"type":"OS::Heat::None","metadata":{"x":"one"}}}}`, string(text))
	validated, err := stacktemplates.Validate(t.Context(), c.demo, stacktemplates.ValidateOpts{Template: site}).Extract()
	require.NoError(t, err)
	require.Equal(t, "A site", validated.Description)
	require.Contains(t, validated.Parameters, "doors")
	preview, err := stacks.Preview(t.Context(), c.demo, stacks.PreviewOpts{Name: "next", TemplateOpts: template(source), Timeout: 1}).Extract()
	require.NoError(t, err)
	require.Len(t, preview.Resources, 1)
	info, err := buildinfo.Get(t.Context(), c.demo).Extract()
	require.NoError(t, err)
	require.NotEmpty(t, info.API.Revision)
	resource, err := stackresources.Get(t.Context(), c.demo, "env", id, "a").Extract()
	require.NoError(t, err)
	require.Equal(t, "OS::Heat::None", resource.Type)
	metadata, err := stackresources.Metadata(t.Context(), c.demo, "env", id, "a").Extract()
	require.NoError(t, err)
	require.Equal(t, "one", metadata["x"])
	resources, err := stackresources.Find(t.Context(), c.demo, "env").Extract()
	require.NoError(t, err)
	require.Len(t, resources, 1)
	c.deleteStack(t, "env", id)
	require.Empty(t, names(c.demo, stacks.ListOpts{}))
	require.Equal(t, []string{"env"}, names(c.demo, stacks.ListOpts{ShowDeleted: true}))
}

func FuzzTemplatesAreReadOrRefused(f *testing.F) {
	f.Add(site + node("a", "m1.small") + outputs)
	f.Add("heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::None, properties: {x: {get_attr: [a, b]}}}}")
	f.Add("a: &a [*a]")
	f.Add("heat_template_version: 2013-05-23\nparameters: {p: {type: number, default: .nan}}\n1: 2\n")
	f.Fuzz(func(t *testing.T, source string) {
		read, err := heat.ParseTemplate(source)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		data, err := json.Marshal(read.Raw)
		require.NoError(t, err, "what was read can be stored")
		var raw map[string]any
		require.NoError(t, json.Unmarshal(data, &raw))
		_, err = heat.ParseTemplate(raw)
		require.NoError(t, err, "and read again")
	})
}

func TestAResourceThatIsMarkedUnhealthyIsReplacedByTheNextUpdate(t *testing.T) {
	c := start(t)
	id := c.create(t, "env", site+node("a", "m1.small")+node("b", "m1.small"), nil)
	require.Equal(t, "CREATE_COMPLETE", c.wait(t, "env", id).Status)
	before := c.resources(t, "env", id)
	mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: "it is gone"}
	require.NoError(t, stackresources.MarkUnhealthy(t.Context(), c.demo, "env", id, "a", mark).ExtractErr())
	marked := c.resources(t, "env", id)
	require.Equal(t, "CHECK_FAILED", marked["a"].Status)
	require.Equal(t, "it is gone", marked["a"].StatusReason)
	requireProblem(t, stackresources.MarkUnhealthy(t.Context(), c.demo, "env", id, "none", mark).ExtractErr(), 404, "EntityNotFound", "The Resource (none) could not be found in Stack env.")

	stack := c.update(t, "env", id, site+node("a", "m1.small")+node("b", "m1.small"), nil)
	require.Equal(t, "UPDATE_COMPLETE", stack.Status, stack.StatusReason)
	after := c.resources(t, "env", id)
	require.NotEqual(t, before["a"].PhysicalID, after["a"].PhysicalID, "the server is another one")
	require.Equal(t, before["a-port"].PhysicalID, after["a-port"].PhysicalID, "at the same port")
	require.Equal(t, before["b"].PhysicalID, after["b"].PhysicalID, "the others are left alone")
	require.Len(t, c.compute.Servers(), 2)
	c.deleteStack(t, "env", id)
}
