package cloud

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// another is, by type and property, a value that differs from the resource's in everything. Properties that are absent cannot be tested
// on a cloud with nothing but Nova and Neutron.
var another = map[string]map[string]any{
	"OS::Nova::Server": {
		"name": "another", "metadata": map[string]any{"a": "b"}, "flavor": nil, "image": nil, "key_name": "other", "availability_zone": "other",
		"config_drive": false, "user_data": "other", "networks": []any{get("resource", "other")}, "security_groups": []any{"default"},
		"scheduler_hints": map[string]any{"a": "b"}, "image_update_policy": "REPLACE", "flavor_update_policy": "REPLACE", "user_data_update_policy": "IGNORE",
	},
	"OS::Neutron::Port": {
		"name": "another", "admin_state_up": false, "allowed_address_pairs": []any{map[string]any{"ip_address": "10.1.0.0/16"}}, "security_groups": []any{},
		"fixed_ips": []any{map[string]any{"ip_address": "10.76.0.77"}}, "mac_address": "fa:16:3e:00:00:07", "network": get("resource", "other"),
		"device_owner": "another", "value_specs": map[string]any{"description": "another"},
	},
	"OS::Neutron::FloatingIP": {
		"port_id": get("resource", "two-port"), "floating_network": "other", "fixed_ip_address": "10.76.0.78", "floating_ip_address": "192.0.2.7",
	},
	"OS::Neutron::SecurityGroup": {
		"name": "another", "description": "another", "rules": []any{map[string]any{"protocol": "tcp", "port_range_min": 1, "port_range_max": 2}},
	},
	"OS::Neutron::SecurityGroupRule": {
		"direction": "egress", "protocol": "udp", "port_range_min": 2, "port_range_max": 9, "remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv6",
		"security_group": get("resource", "other-group"), "description": "another",
	},
	"OS::Neutron::Net": {
		"name": "another", "admin_state_up": false, "port_security_enabled": false, "value_specs": map[string]any{"mtu": 1400},
	},
	"OS::Neutron::Subnet": {
		"name": "another", "cidr": "10.77.0.0/24", "dns_nameservers": []any{"192.0.2.54"}, "enable_dhcp": false, "network": get("resource", "other"),
		"allocation_pools": []any{map[string]any{"start": "10.76.0.10", "end": "10.76.0.20"}}, "gateway_ip": "10.76.0.2",
		"host_routes": []any{map[string]any{"destination": "10.1.0.0/16", "nexthop": "10.76.0.3"}},
	},
	"OS::Neutron::Router": {"name": "another", "admin_state_up": false, "external_gateway_info": map[string]any{"network": "other"}},
	"OS::Neutron::RouterInterface": {
		"subnet": get("resource", "other-subnet"), "router": get("resource", "other-router"),
	},
	"OS::Nova::KeyPair":     {"name": "another", "save_private_key": true},
	"OS::Nova::ServerGroup": {"name": "another", "policies": []any{"affinity"}},
	"OS::Heat::Value":       {"value": "another"},
	"OS::Heat::RandomString": {
		"length": 9, "salt": "another",
	},
}

// everything is a template with a resource of each type that the table of effects knows; by type, the resource whose properties are changed.
func everything(t *testing.T, project *driver.Project) (stackTemplate, map[string]string) {
	template := plan(t, project, "one", "two")
	for name, one := range map[string]stackResource{
		"other":        {Type: "OS::Neutron::Net", Properties: map[string]any{"name": "burano-test-other"}},
		"other-subnet": {Type: "OS::Neutron::Subnet", Properties: map[string]any{"network": get("resource", "other"), "cidr": "10.78.0.0/24"}},
		"other-router": {Type: "OS::Neutron::Router"},
		"other-group":  {Type: "OS::Neutron::SecurityGroup", Properties: map[string]any{"name": "burano-test-other"}},
		"other-port":   {Type: "OS::Neutron::Port", DependsOn: []string{"other-subnet"}, Properties: map[string]any{"network": get("resource", "other")}},
		"rule": {Type: "OS::Neutron::SecurityGroupRule", Properties: map[string]any{"security_group": get("resource", "group"), "protocol": "tcp",
			"port_range_min": 1, "port_range_max": 1}},
		"key":           {Type: "OS::Nova::KeyPair", Properties: map[string]any{"name": "burano-test-effects", "public_key": publicKey(t)}},
		"server-group":  {Type: "OS::Nova::ServerGroup", Properties: map[string]any{"policies": []any{"soft-anti-affinity"}}},
		"value":         {Type: "OS::Heat::Value", Properties: map[string]any{"value": "one"}},
		"random-string": {Type: "OS::Heat::RandomString", Properties: map[string]any{"length": 8}},
	} {
		template.Resources[name] = one
	}
	return template, map[string]string{
		"OS::Nova::Server": "one-server", "OS::Neutron::Port": "two-port", "OS::Neutron::FloatingIP": "one-floating", "OS::Neutron::SecurityGroup": "group",
		"OS::Neutron::SecurityGroupRule": "rule", "OS::Neutron::Net": "network", "OS::Neutron::Subnet": "subnet", "OS::Neutron::Router": "router",
		"OS::Neutron::RouterInterface": "uplink", "OS::Nova::KeyPair": "key", "OS::Nova::ServerGroup": "server-group", "OS::Heat::Value": "value",
		"OS::Heat::RandomString": "random-string",
	}
}

// publicKey is a key whose private half is not stored.
func publicKey(t *testing.T) string {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	return string(ssh.MarshalAuthorizedKey(key))
}

// requireSchema compares the table with Heat's schema of a type, if Heat has the service; the local Heat knows fewer properties.
func (u user) requireSchema(t *testing.T, kind string, properties map[string]driver.Effect) {
	heat := u.heat(t)
	var schema struct {
		Properties map[string]struct {
			Changes bool `json:"update_allowed"`
		} `json:"properties"`
	}
	_, err := heat.Get(t.Context(), heat.ServiceURL("resource_types", kind), &schema, nil)
	require.NoError(t, err)
	require.NotEmpty(t, schema.Properties)
	for name, property := range schema.Properties {
		effect, known := properties[name]
		require.True(t, known, "%s %s is not in the table", kind, name)
		changes := effect != driver.Replaced || name == "user_data" // its policy may ignore it
		require.Equal(t, changes, property.Changes, "%s %s: %s", kind, name, effect)
	}
}

// flavor makes a flavor with so much memory, and returns its name.
func (u user) flavor(t *testing.T, memory int) string {
	disk := 10
	made, err := flavors.Create(t.Context(), u.nova(t), flavors.CreateOpts{Name: "burano-test-" + strings.ToLower(rand.Text()), RAM: memory, VCPUs: 1, Disk: &disk}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, flavors.Delete(context.Background(), u.nova(t), made.ID).ExtractErr()) })
	return made.Name
}

// referred is a value with the ids of resources in place of references to them.
func referred(value any, ids map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		if id, known := ids[fmt.Sprint(v["get_resource"])]; known {
			return id
		}
		for key, item := range v {
			v[key] = referred(item, ids)
		}
	case []any:
		for i, item := range v {
			v[i] = referred(item, ids)
		}
	}
	return value
}

// heatDoesWhatTheTableSays has Heat preview each change of the table of effects (docs/openstack-test.md).
func heatDoesWhatTheTableSays(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "effects")
	template, tried := everything(t, project)
	made, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	heat := demo.heat(t)
	// A preview takes references to another resource for changed.
	ids := map[string]string{}
	for _, resource := range demo.resources(t, made, name) {
		ids[resource.Name] = resource.PhysicalID
	}
	admin := c.as(t, "admin")
	other, public := admin.flavor(t, 1024), images.ImageVisibilityPublic
	picture, err := images.Create(t.Context(), admin.client(t, openstack.NewImageV2), images.CreateOpts{Name: other, DiskFormat: "raw", ContainerFormat: "bare",
		Visibility: &public}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, images.Delete(context.Background(), admin.client(t, openstack.NewImageV2), picture.ID).ExtractErr())
	})
	untried := map[string][]string{}
	for kind, properties := range driver.Effects() {
		resource := tried[kind]
		demo.requireSchema(t, kind, properties)
		for property, effect := range properties {
			value, known := another[kind][property]
			if kind == "OS::Nova::Server" && (property == "flavor" || property == "image") {
				value = other
			}
			if !known || resource == "" {
				untried[kind] = append(untried[kind], property)
				continue
			}
			next := template
			next.Resources = maps.Clone(template.Resources)
			one := next.Resources[resource]
			one.Properties = maps.Clone(one.Properties)
			if one.Properties == nil {
				one.Properties = map[string]any{}
			}
			one.Properties[property] = value
			next.Resources[resource] = one
			var answer struct {
				Changes map[string][]struct {
					Name string `json:"resource_name"`
				} `json:"resource_changes"`
			}
			body := map[string]any{"template": referred(next.content(t).Template, ids)}
			_, err := heat.Put(t.Context(), heat.ServiceURL("stacks", name, made.ID, "preview"), body, &answer, &gophercloud.RequestOpts{OkCodes: []int{200}})
			if gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
				untried[kind] = append(untried[kind], property+" (refused)") // the named object must exist, and some exclude each other
				continue
			}
			require.NoError(t, err, "%s %s", kind, property)
			found := "nothing"
			for _, one := range []string{"unchanged", "updated", "replaced"} {
				for _, changed := range answer.Changes[one] {
					if changed.Name == resource {
						found = one
					}
				}
			}
			want := "updated"
			if effect == driver.Replaced {
				want = "replaced"
			}
			require.Equal(t, want, found, "%s %s: %s", kind, property, effect)
		}
	}
	for kind, properties := range untried {
		slices.Sort(properties)
		t.Logf("not tried: %s %v", kind, properties)
	}
}

// heatChangesServersAsTheTableSays has Heat make the changes to servers that the driver refuses.
func heatChangesServersAsTheTableSays(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "changes")
	template := plan(t, project, "one")
	made, err := project.ApplyStack(t.Context(), name, template.content(t))
	require.NoError(t, err)
	one, _ := made.Addresses("one")
	first := state(t, project, one.ServerID)

	// A further network comes and goes while the server runs.
	more := plan(t, project, "one")
	more.Resources["further-port"] = stackResource{Type: "OS::Neutron::Port", DependsOn: []string{"subnet"}, Properties: map[string]any{
		"network": get("resource", "network"), "fixed_ips": []any{map[string]any{"subnet": get("resource", "subnet")}}}}
	port := func(name string) map[string]any { return map[string]any{"port": get("resource", name)} }
	more = otherwise(more, map[string]any{"networks": []any{port("one-port"), port("further-port")}})
	addresses := func() (count int) {
		server, err := servers.Get(t.Context(), demo.nova(t), one.ServerID).Extract()
		require.NoError(t, err)
		for _, list := range server.Addresses {
			for _, one := range list.([]any) {
				if one.(map[string]any)["OS-EXT-IPS:type"] == "fixed" {
					count++
				}
			}
		}
		return count
	}
	for _, try := range []struct {
		template  stackTemplate
		addresses int
	}{{more, 2}, {template, 1}} {
		next, err := project.ApplyStack(t.Context(), name, try.template.content(t))
		require.NoError(t, err)
		now, _ := next.Addresses("one")
		require.Equal(t, one, now)
		eventually(t, "its interfaces", func() bool { return addresses() == try.addresses })
		require.Equal(t, first.Launched, state(t, project, one.ServerID).Launched)
	}
}
