package cloud

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// otherwise is a template whose server "one" has other properties; nil removes one.
func otherwise(template stackTemplate, properties map[string]any) stackTemplate {
	server := template.Resources["one-server"]
	server.Properties = maps.Clone(server.Properties)
	maps.Copy(server.Properties, properties)
	maps.DeleteFunc(server.Properties, func(_ string, value any) bool { return value == nil })
	template.Resources["one-server"] = server
	return template
}

// whatHeatHidesIsComparedByHeat: a server keeps the value of a hidden parameter with which it was made.
func whatHeatHidesIsComparedByHeat(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "hidden")
	content := func(secret, label string) driver.Content {
		made := otherwise(plan(t, project, "one"), map[string]any{"user_data": map[string]any{"get_param": "secret"}, "metadata": map[string]any{"label": label}}).content(t)
		made.Template["parameters"] = map[string]any{"secret": map[string]any{"type": "string", "hidden": true}}
		made.Parameters = map[string]any{"secret": secret}
		return made
	}
	first, err := project.ApplyStack(t.Context(), name, content("one", "a"))
	require.NoError(t, err)
	one, _ := first.Addresses("one")
	made := state(t, project, one.ServerID)

	err = project.CheckStack(t.Context(), name, content("two", "a"))
	require.Len(t, driver.ServerChanges(err), 1, "%v", err)
	require.Equal(t, "user_data", driver.ServerChanges(err)[0].Property)
	_, err = project.ApplyStack(t.Context(), name, content("two", "b"))
	require.Len(t, driver.ServerChanges(err), 1, "%v", err)
	require.NotContains(t, err.Error(), "two")
	require.Equal(t, 0, demo.updates(t, first, name))

	same, err := project.ApplyStack(t.Context(), name, content("one", "b"))
	require.NoError(t, err)
	now, _ := same.Addresses("one")
	require.Equal(t, one, now)
	require.Equal(t, made.Launched, state(t, project, one.ServerID).Launched)
}

// serversThatAreThereAreKept: no update rebuilds, resizes or replaces a server on which something may run.
func serversThatAreThereAreKept(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "kept")
	first, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	one, _ := first.Addresses("one")
	made := state(t, project, one.ServerID)
	untouched := func(updates int) {
		t.Helper()
		now := state(t, project, one.ServerID)
		require.Equal(t, driver.Active, now.Status)
		require.Equal(t, made.Launched, now.Launched)
		require.Equal(t, updates, demo.updates(t, first, name))
	}

	for property, value := range map[string]any{
		"flavor": "m1.other", "image": "other", "key_name": "other", "availability_zone": "other", "user_data": "#!/bin/true", "config_drive": false,
		"networks": []any{map[string]any{"network": get("resource", "network")}}, "scheduler_hints": map[string]any{"group": "other"},
	} {
		_, err := project.ApplyStack(t.Context(), name, otherwise(plan(t, project, "one", "two"), map[string]any{property: value}).content(t))
		changes := driver.ServerChanges(err)
		require.Len(t, changes, 1, "%s: %v", property, err)
		require.Equal(t, []string{property, one.ServerID, "one-server"}, []string{changes[0].Property, changes[0].ServerID, changes[0].Resource})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		require.ErrorContains(t, err, "Nothing was changed. Put "+property+" back to what it was")
		untouched(0)
	}
	both := otherwise(plan(t, project, "one"), map[string]any{"flavor": "m1.other", "key_name": "other"}).content(t)
	require.Len(t, driver.ServerChanges(project.CheckStack(t.Context(), name, both)), 2)

	// A subnet with other addresses would give the server another one.
	moved := plan(t, project, "one")
	moved.Resources["subnet"].Properties["cidr"] = "10.79.0.0/24"
	_, err = project.ApplyStack(t.Context(), name, moved.content(t))
	require.Len(t, driver.ServerChanges(err), 1)
	require.Equal(t, "networks", driver.ServerChanges(err)[0].Property)
	untouched(0)

	// The same image and flavor by their ids, and Burano's own user data in another version's form.
	found, err := servers.Get(t.Context(), demo.nova(t), one.ServerID).Extract()
	require.NoError(t, err)
	same := otherwise(plan(t, project, "one"), map[string]any{"image": found.Image["id"], "flavor": found.Flavor["id"], "user_data": "another"}).content(t)
	same.Nodes = []string{"one-server"}
	_, err = project.ApplyStack(t.Context(), name, same)
	require.NoError(t, err)
	untouched(0)
	renamed := otherwise(plan(t, project, "one"), map[string]any{"name": "another"}).content(t)
	renamed.Nodes = same.Nodes
	_, err = project.ApplyStack(t.Context(), name, renamed)
	require.Len(t, driver.ServerChanges(err), 1, "%v", err)

	// Harmless changes are made.
	more := plan(t, project, "one")
	more.Resources["group"].Properties["description"] = "a group"
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(1)

	more = otherwise(more, map[string]any{"name": "burano-test-renamed"})
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(2)
	require.Len(t, demo.serversNamed(t, "burano-test-renamed"), 1)

	// A user has marked it unhealthy in Heat, for which Heat would replace it.
	if c.rows != nil {
		require.NoError(t, demo.direct(t).MarkHealth(t.Context(), name, first.ID, "one-server", "a mistake"))
	} else {
		mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: "a mistake"}
		require.NoError(t, stackresources.MarkUnhealthy(t.Context(), demo.heat(t), name, first.ID, "one-server", mark).ExtractErr())
	}
	more.Resources["group"].Properties["description"] = "the same group"
	_, err = project.ApplyStack(t.Context(), name, more.content(t))
	require.NoError(t, err)
	untouched(3)

	// Where the server is gone nothing can be lost.
	require.NoError(t, servers.Delete(t.Context(), demo.nova(t), one.ServerID).ExtractErr())
	eventually(t, "it is gone", func() bool { return state(t, project, one.ServerID).Status == driver.Gone })
	anew, err := project.ApplyStack(t.Context(), name, otherwise(more, map[string]any{"user_data": "#!/bin/true"}).content(t))
	require.NoError(t, err)
	next, _ := anew.Addresses("one")
	require.NotEqual(t, one.ServerID, next.ServerID)
	require.Equal(t, one.Fixed, next.Fixed)
	require.Equal(t, driver.Active, state(t, project, next.ServerID).Status)
}

// aNewReleaseChangesNoServer: servers of a former release's template (test/stack/testdata) stay unchanged when a new release writes
// other user data and another rest of the template.
func aNewReleaseChangesNoServer(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	external, err := project.ExternalNetwork(t.Context(), "")
	require.NoError(t, err)
	outside := external.ID
	name := begin(t, project, "release")
	text, err := os.ReadFile("../stack/testdata/demo.json")
	require.NoError(t, err)
	release := func(userData string) (content driver.Content, servers []string) {
		require.NoError(t, json.Unmarshal(bytes.ReplaceAll(text, []byte(`"outside"`), []byte(`"`+outside+`"`)), &content.Template))
		for resource, one := range content.Template["resources"].(map[string]any) {
			one := one.(map[string]any)
			if properties := one["properties"].(map[string]any); one["type"] == "OS::Nova::Server" {
				properties["image"], properties["flavor"], properties["user_data"] = image, flavor, "#!/bin/sh\n# "+userData
				delete(properties, "key_name")
				servers = append(servers, resource)
			}
		}
		content.Nodes = servers
		return content, servers
	}
	former, resources := release("of the former release")
	require.NotEmpty(t, resources)
	made, err := project.ApplyStack(t.Context(), name, former)
	require.NoError(t, err)
	before := demo.resources(t, made, name)
	launched := map[string]string{}
	for _, resource := range resources {
		launched[resource] = state(t, project, before[resource].PhysicalID).Launched
	}

	next, _ := release("of this release")
	template := next.Template["resources"].(map[string]any)
	template["further"] = map[string]any{"type": "OS::Neutron::SecurityGroup", "properties": map[string]any{"rules": []any{}}}
	for _, one := range template {
		properties := one.(map[string]any)["properties"].(map[string]any)
		switch one.(map[string]any)["type"] {
		case "OS::Nova::Server":
			properties["config_drive"], properties["metadata"] = "True", map[string]any{"release": "this one"}
		case "OS::Neutron::Port":
			properties["allowed_address_pairs"] = []any{map[string]any{"ip_address": "10.245.0.0/16"}}
		case "OS::Neutron::SecurityGroup":
			properties["description"] = "of this release"
		case "OS::Neutron::Subnet":
			properties["dns_nameservers"] = []any{"192.0.2.1"}
		}
	}
	_, err = project.ApplyStack(t.Context(), name, next)
	require.NoError(t, err)
	after := demo.resources(t, made, name)
	require.Contains(t, after, "further")
	for _, resource := range resources {
		require.Equal(t, before[resource].PhysicalID, after[resource].PhysicalID)
		require.Equal(t, launched[resource], state(t, project, after[resource].PhysicalID).Launched)
	}
}
