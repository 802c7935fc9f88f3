package cloud

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackevents"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
)

var (
	network  = netip.MustParsePrefix("10.76.0.0/24")
	pods     = netip.MustParsePrefix("10.244.0.0/16")
	everyone = "0.0.0.0/0"
)

// plan is a template like an environment's: the network, a security group, and these servers. The first one has a floating
// IP.
func plan(t *testing.T, project *driver.Project, names ...string) stackTemplate {
	external, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	outside := external.ID
	template := emptyTemplate()
	resource := func(name string) map[string]any { return map[string]any{"get_resource": name} }
	template.Resources["network"] = stackResource{Type: "OS::Neutron::Net", Properties: map[string]any{"name": "burano-test"}}
	template.Resources["subnet"] = stackResource{Type: "OS::Neutron::Subnet", Properties: map[string]any{"name": "burano-test-subnet",
		"network": resource("network"), "cidr": network.String(), "ip_version": 4, "dns_nameservers": []string{"192.0.2.53"}}}
	template.Resources["router"] = stackResource{Type: "OS::Neutron::Router", Properties: map[string]any{"name": "burano-test-router",
		"external_gateway_info": map[string]any{"network": outside}}}
	template.Resources["uplink"] = stackResource{Type: "OS::Neutron::RouterInterface", Properties: map[string]any{
		"router": resource("router"), "subnet": resource("subnet")}}
	template.addSecurityGroup("group", "burano-test", []groupRule{
		{From: network.String()}, {From: pods.String()},
		{Protocol: "tcp", Ports: [2]int{22, 22}, From: everyone}, {Protocol: "tcp", Ports: [2]int{8080, 8080}, From: everyone},
	})
	for i, name := range names {
		template.addServer(serverPlan{
			ID: name, Name: "burano-test-" + name, Flavor: flavor, Image: image, UserData: "#!/bin/sh\n# data of " + name + "\n",
			SecurityGroup: "group", AlsoFrom: []netip.Prefix{pods}, FloatingIP: i == 0, External: outside,
		})
	}
	return template
}

// begin prepares a stack of this name for a test: whatever the test does, nothing of the stack stays.
func begin(t *testing.T, project *driver.Project, name string) string {
	name = "burano-test-" + name
	require.NoError(t, project.DeleteStack(t.Context(), name))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		require.NoError(t, project.DeleteStack(ctx, name))
	})
	return name
}

func (u user) resources(t *testing.T, stack driver.Stack, name string) map[string]stackresources.Resource {
	list, err := u.listed(t, stack, name)
	require.NoError(t, err)
	found := map[string]stackresources.Resource{}
	for _, resource := range list {
		found[resource.Name] = resource
	}
	return found
}

func (u user) listed(t *testing.T, stack driver.Stack, name string) ([]stackresources.Resource, error) {
	if u.rows != nil {
		return u.direct(t).Resources(t.Context(), name, stack.ID)
	}
	pages, err := stackresources.List(u.heat(t), name, stack.ID, nil).AllPages(t.Context())
	require.NoError(t, err)
	return stackresources.ExtractResources(pages)
}

// updates counts how often the stack was updated.
func (u user) updates(t *testing.T, stack driver.Stack, name string) (count int) {
	if u.rows != nil {
		return u.rows.updates(stack.ID)
	}
	pages, err := stackevents.List(u.heat(t), name, stack.ID, nil).AllPages(t.Context())
	require.NoError(t, err)
	events, err := stackevents.ExtractEvents(pages)
	require.NoError(t, err)
	for _, event := range events {
		if event.ResourceName == name && event.ResourceStatus == "UPDATE_IN_PROGRESS" {
			count++
		}
	}
	return count
}

// stacksNamed lists the stacks of this name; Heat may show deleted ones only on request.
func (u user) stacksNamed(t *testing.T, name string) []stacks.ListedStack {
	if u.rows != nil {
		list, err := u.direct(t).List(t.Context(), name)
		require.NoError(t, err)
		return list
	}
	pages, err := stacks.List(u.heat(t), stacks.ListOpts{Name: name}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	return list
}

func (u user) serversNamed(t *testing.T, name string) []servers.Server {
	pages, err := servers.List(u.nova(t), servers.ListOpts{Name: "^" + name + "$"}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	return list
}

// requireGone asks each service whether it still has the object of a stack's resource.
func (u user) requireGone(t *testing.T, resource stackresources.Resource) {
	t.Helper()
	neutron, id := u.neutron(t), resource.PhysicalID
	ask := map[string]func() error{
		"OS::Nova::Server":             func() error { return servers.Get(t.Context(), u.nova(t), id).Err },
		"OS::Neutron::Port":            func() error { return ports.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::FloatingIP":      func() error { return floatingips.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::Net":             func() error { return networks.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::Subnet":          func() error { return subnets.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::Router":          func() error { return routers.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::SecurityGroup":   func() error { return groups.Get(t.Context(), neutron, id).Err },
		"OS::Neutron::RouterInterface": nil, // goes with its router
	}
	get, known := ask[resource.Type]
	require.Truef(t, known, "%s is of a type that this test does not know: %s", resource.Name, resource.Type)
	if get == nil {
		return
	}
	err := get()
	require.Truef(t, gophercloud.ResponseCodeIs(err, http.StatusNotFound), "%s (%s %s) is still there: %v", resource.Name, resource.Type, id, err)
}

func aStackGrowsAndShrinks(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "life")

	first, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	one, ok := first.Addresses("one")
	require.True(t, ok)
	require.True(t, network.Contains(one.Fixed))
	require.True(t, one.Floating.IsValid())
	server, err := servers.Get(t.Context(), demo.nova(t), one.ServerID).Extract()
	require.NoError(t, err)
	require.Equal(t, "ACTIVE", server.Status)
	require.Equal(t, "burano-test-one", server.Name)
	require.Equal(t, demo.caller(t, c.service(t)).UserID, server.UserID, "it belongs to the trustor")
	requirePlan(t, demo, demo.resources(t, first, name))
	shown := demo.stacksNamed(t, name)
	require.Len(t, shown, 1)
	require.Equal(t, []string{"burano"}, shown[0].Tags)
	eventually(t, "the server answers at its floating IP with its user data", func() bool {
		return strings.Contains(said(one.Floating, 8080), "data of one")
	})

	same, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	require.Equal(t, first, same)
	require.Zero(t, demo.updates(t, same, name), "nothing was to be changed")

	two, err := project.ApplyStack(t.Context(), name, plan(t, project, "one", "two").content(t))
	require.NoError(t, err)
	require.Equal(t, first.ID, two.ID)
	require.Equal(t, 1, demo.updates(t, two, name))

	four, err := project.ApplyStack(t.Context(), name, plan(t, project, "one", "two", "three", "four").content(t))
	require.NoError(t, err)
	require.Equal(t, 2, demo.updates(t, four, name), "two servers more are one update")
	for _, id := range []string{"one", "two", "three", "four"} {
		addresses, ok := four.Addresses(id)
		require.True(t, ok, id)
		server, err := servers.Get(t.Context(), demo.nova(t), addresses.ServerID).Extract()
		require.NoError(t, err)
		require.Equal(t, "ACTIVE", server.Status)
	}
	kept, _ := four.Addresses("one")
	require.Equal(t, one, kept, "what was there stays as it was")

	before := demo.resources(t, four, name)
	shrunk, err := project.ApplyStack(t.Context(), name, plan(t, project, "one", "four").content(t))
	require.NoError(t, err)
	require.Equal(t, 3, demo.updates(t, shrunk, name))
	_, ok = shrunk.Addresses("two")
	require.False(t, ok)
	for _, resource := range []string{"two-server", "two-port", "three-server", "three-port"} {
		demo.requireGone(t, before[resource])
	}
	for _, id := range []string{"one", "four"} {
		was, _ := four.Addresses(id)
		is, _ := shrunk.Addresses(id)
		require.Equal(t, was, is)
	}

	before = demo.resources(t, shrunk, name)
	require.NoError(t, project.DeleteStack(t.Context(), name))
	require.Empty(t, demo.stacksNamed(t, name))
	for _, resource := range before {
		demo.requireGone(t, resource)
	}
	require.NoError(t, project.DeleteStack(t.Context(), name), "a second time")

	reborn, err := project.ApplyStack(t.Context(), name, plan(t, project).content(t))
	require.NoError(t, err, "a name is free again once its stack is deleted")
	require.NotEqual(t, first.ID, reborn.ID)
}

// requirePlan checks that ports and security groups in Neutron have the properties of the plan.
func requirePlan(t *testing.T, u user, resources map[string]stackresources.Resource) {
	port, err := ports.Get(t.Context(), u.neutron(t), resources["one-port"].PhysicalID).Extract()
	require.NoError(t, err)
	require.Len(t, port.AllowedAddressPairs, 1)
	require.Equal(t, pods.String(), port.AllowedAddressPairs[0].IPAddress)
	require.Equal(t, []string{resources["group"].PhysicalID}, port.SecurityGroups)
	group, err := groups.Get(t.Context(), u.neutron(t), resources["group"].PhysicalID).Extract()
	require.NoError(t, err)
	type rule struct {
		protocol string
		port     int
		from     string
	}
	var incoming []rule
	outgoing := 0
	for _, one := range group.Rules {
		if one.Direction == "ingress" {
			require.Equal(t, "IPv4", one.EtherType)
			incoming = append(incoming, rule{one.Protocol, one.PortRangeMin, one.RemoteIPPrefix})
		} else {
			require.Empty(t, one.RemoteIPPrefix)
			outgoing++
		}
	}
	require.ElementsMatch(t, []rule{{"", 0, network.String()}, {"", 0, pods.String()}, {"tcp", 22, everyone}, {"tcp", 8080, everyone}}, incoming)
	require.Equal(t, 2, outgoing, "everything may go out, by IPv4 and IPv6")
}

func aStackIsTakenOver(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project, other := demo.projectTwice(t, c)
	name := begin(t, project, "taken-over")
	template := plan(t, project, "one")

	ctx, cutOff := context.WithCancel(t.Context())
	defer cutOff()
	ended := make(chan error, 1)
	go func() {
		_, err := project.ApplyStack(ctx, name, template.content(t))
		ended <- err
	}()
	eventually(t, "the stack is being created", func() bool { return len(demo.stacksNamed(t, name)) == 1 })
	cutOff()
	require.ErrorIs(t, <-ended, context.Canceled)

	stack, err := other.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	listed := demo.stacksNamed(t, name)
	require.Len(t, listed, 1)
	require.Equal(t, stack.ID, listed[0].ID)
	require.Zero(t, demo.updates(t, stack, name))
	require.Len(t, demo.serversNamed(t, "burano-test-one"), 1)

	// The same for an update whose answer was lost.
	template = plan(t, project, "one", "two")
	ctx, cutOff = context.WithCancel(t.Context())
	defer cutOff()
	go func() {
		_, err := project.ApplyStack(ctx, name, template.content(t))
		ended <- err
	}()
	eventually(t, "the stack is being updated", func() bool { return demo.updates(t, stack, name) == 1 })
	cutOff()
	require.ErrorIs(t, <-ended, context.Canceled)
	stack, err = other.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	require.Equal(t, 1, demo.updates(t, stack, name))
	require.Len(t, demo.serversNamed(t, "burano-test-two"), 1)
}

func twoCreateOneStack(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project, other := demo.projectTwice(t, c)
	name := begin(t, project, "twice")
	template := plan(t, project, "one")
	type result struct {
		stack driver.Stack
		err   error
	}
	results := make(chan result, 2)
	for _, one := range []*driver.Project{project, other} {
		go func() {
			stack, err := one.ApplyStack(t.Context(), name, template.content(t))
			results <- result{stack, err}
		}()
	}
	first, second := <-results, <-results
	require.NoError(t, first.err)
	require.NoError(t, second.err)
	require.Equal(t, first.stack, second.stack)
	require.Len(t, demo.stacksNamed(t, name), 1)
	require.Len(t, demo.serversNamed(t, "burano-test-one"), 1)
}

// twins makes at least two stacks of one name, as creators within the same second can: it tries until Heat lets two pass. They have
// a security group only, so that Heat is soon done with each request and each stack.
func (u user) twins(t *testing.T, name string) []stacks.ListedStack {
	template := emptyTemplate()
	template.addSecurityGroup("group", "burano-test", []groupRule{{From: network.String()}})
	body, err := json.Marshal(template)
	require.NoError(t, err)
	keep := true
	options := func() stacks.CreateOpts { // each creator its own: gophercloud reads the template into them
		return stacks.CreateOpts{Name: name, TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: body}}, DisableRollback: &keep, Tags: []string{"burano"}}
	}
	var made []stacks.ListedStack
	eventually(t, "there are several stacks of one name", func() bool {
		heat := u.heat(t)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { _ = stacks.Create(t.Context(), heat, options()).Err }) // most find that the name is taken
		}
		group.Wait()
		if made = u.stacksNamed(t, name); len(made) > 1 {
			return true
		}
		for _, one := range made {
			require.NoError(t, stacks.Delete(t.Context(), heat, name, one.ID).ExtractErr())
		}
		eventually(t, "the only one is gone", func() bool { return len(u.stacksNamed(t, name)) == 0 })
		return false
	})
	return made
}

func severalStacksBecomeOne(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "several")
	made := demo.twins(t, name)

	kept, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	listed := demo.stacksNamed(t, name)
	require.Len(t, listed, 1)
	require.Equal(t, kept.ID, listed[0].ID)
	require.Len(t, demo.serversNamed(t, "burano-test-one"), 1)
	for _, one := range made {
		require.False(t, one.CreationTime.Before(listed[0].CreationTime), "the oldest is kept")
	}
	require.Len(t, demo.groupsNamed(t, "burano-test"), 1, "nothing of the others is left")
	require.NoError(t, project.DeleteStack(t.Context(), name))

	var all []stackresources.Resource
	for _, one := range demo.twins(t, name) {
		for _, resource := range demo.resources(t, driver.Stack{ID: one.ID}, name) {
			all = append(all, resource)
		}
	}
	require.NoError(t, project.DeleteStack(t.Context(), name))
	require.Empty(t, demo.stacksNamed(t, name))
	require.Empty(t, demo.groupsNamed(t, "burano-test"))
	for _, resource := range all {
		if resource.PhysicalID != "" {
			demo.requireGone(t, resource)
		}
	}
}

func (u user) groupsNamed(t *testing.T, name string) []groups.SecGroup {
	pages, err := groups.List(u.neutron(t), groups.ListOpts{Name: name}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := groups.ExtractGroups(pages)
	require.NoError(t, err)
	return list
}

// aStackOfSomebodyElseIsLeftAlone: only the tag shows its owner.
func aStackOfSomebodyElseIsLeftAlone(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "foreign")
	heat, keep := demo.heat(t), true
	source := &stacks.Template{TE: stacks.TE{Bin: []byte(`{"heat_template_version": "2016-10-14", "resources": {"nothing": {"type": "OS::Heat::None"}}}`)}}
	made, err := stacks.Create(t.Context(), heat, stacks.CreateOpts{Name: name, TemplateOpts: source, DisableRollback: &keep}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stacks.Delete(context.Background(), heat, name, made.ID).ExtractErr()) })

	_, err = project.ApplyStack(t.Context(), name, plan(t, project).content(t))
	require.Equal(t, fault.Conflict, fault.KindOf(err), err)
	require.ErrorContains(t, err, name)
	require.ErrorContains(t, err, "Burano has not made it")
	require.NoError(t, project.DeleteStack(t.Context(), name))
	listed := demo.stacksNamed(t, name)
	require.Len(t, listed, 1)
	require.Equal(t, made.ID, listed[0].ID)
	require.NotContains(t, listed[0].Status, "DELETE")
}

// aStackThatIsBeingDeletedIsMadeAnew: the task that began the deletion no longer waits for it.
func aStackThatIsBeingDeletedIsMadeAnew(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "reborn")
	first, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	if c.rows != nil {
		require.NoError(t, demo.direct(t).Delete(t.Context(), name, first.ID))
	} else {
		require.NoError(t, stacks.Delete(t.Context(), demo.heat(t), name, first.ID).ExtractErr())
	}
	second, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	require.Len(t, demo.stacksNamed(t, name), 1)
	require.Len(t, demo.serversNamed(t, "burano-test-one"), 1)
}

func aStackHasParametersAndFiles(t *testing.T, c *cloud) {
	project := c.as(t, "demo").project(t, c.service(t))
	name := begin(t, project, "parameters")
	none, _, err := project.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Nil(t, none)
	property := func(function, argument string) map[string]any { return map[string]any{function: argument} }
	content := driver.Content{
		Template: map[string]any{
			"heat_template_version": "2016-10-14",
			"parameters": map[string]any{"length": map[string]any{"type": "number"}, "given": map[string]any{"type": "string"},
				"secret": map[string]any{"type": "string", "hidden": true}},
			"resources": map[string]any{
				"word": map[string]any{"type": "OS::Heat::RandomString", "properties": map[string]any{"length": property("get_param", "length")}},
				"text": map[string]any{"type": "OS::Heat::Value", "properties": map[string]any{"type": "string", "value": property("get_file", "text.txt")}},
			},
			"outputs": map[string]any{
				"word": map[string]any{"value": map[string]any{"get_attr": []any{"word", "value"}}},
				"text": map[string]any{"value": map[string]any{"get_attr": []any{"text", "value"}}},
			},
		},
		Parameters:  map[string]any{"length": 7, "secret": "nobody's"},
		Files:       map[string]string{"text.txt": "first"},
		Environment: "parameters: {given: word}",
	}
	made, err := project.ApplyStack(t.Context(), name, content)
	require.NoError(t, err)
	require.Len(t, made.Outputs["word"], 7)
	require.Equal(t, "first", made.Outputs["text"])

	again, err := project.ApplyStack(t.Context(), name, content)
	require.NoError(t, err)
	require.Equal(t, made, again, "the same again makes nothing anew")
	found, told, err := project.FindStack(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, made, *found)
	require.Equal(t, map[string]any{"length": "7", "given": "word"}, told.Parameters)
	require.Equal(t, content.Template["resources"], told.Template["resources"])

	content.Files = map[string]string{"text.txt": "second"}
	changed, err := project.ApplyStack(t.Context(), name, content)
	require.NoError(t, err)
	require.Equal(t, []any{"second", made.Outputs["word"]}, []any{changed.Outputs["text"], changed.Outputs["word"]})

	delete(content.Parameters, "length")
	_, err = project.ApplyStack(t.Context(), name, content)
	require.ErrorContains(t, err, "update stack "+name)
	require.ErrorContains(t, err, "length")
	require.Equal(t, fault.Invalid, fault.KindOf(err), err)
}
