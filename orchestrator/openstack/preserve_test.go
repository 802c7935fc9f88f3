package openstack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestWhatWouldCostAServerWhatRunsOnItIsFound(t *testing.T) {
	const base = `
parameters: {size: {default: small}, secret: {hidden: true}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: n}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.0.0/24, name: s}}
  port: {type: OS::Neutron::Port, properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: subnet}}], name: p}}
  key: {type: OS::Nova::KeyPair, properties: {name: k, public_key: a}}
  config: {type: OS::Heat::SoftwareConfig, properties: {config: {get_file: run.sh}}}
  one:
    type: OS::Nova::Server
    properties: {name: one, flavor: {get_param: size}, image: i, key_name: {get_resource: key}, config_drive: true, count: 1,
      admin_pass: {get_param: secret}, networks: [{port: {get_resource: port}}], user_data: {get_resource: config}, user_data_format: RAW}
`
	read := func(text string, parameters map[string]string, run string) definition {
		d := definition{parameters: parameters, files: map[string]string{"run.sh": run}}
		require.NoError(t, yaml.Unmarshal([]byte(text), &d.template))
		return d
	}
	port, other := map[string]any{"port": map[string]any{"get_resource": "port"}}, map[string]any{"network": "other"}
	address := map[string]any{"subnet": map[string]any{"get_resource": "subnet"}}
	for name, try := range map[string]struct {
		change     func(resources map[string]any)
		parameters map[string]string
		run        string
		node       bool
		differing  []string
	}{
		"nothing":                            {},
		"its name":                           {change: property("one", "name", "two")},
		"the name of a node":                 {change: property("one", "name", "two"), node: true, differing: []string{"name"}},
		"a parameter":                        {parameters: map[string]string{"size": "large"}, differing: []string{"flavor"}},
		"the value in place of a parameter":  {change: property("one", "flavor", "small")},
		"a number as a text":                 {change: property("one", "count", "1")},
		"a truth as a text":                  {change: property("one", "config_drive", "True")},
		"nothing in place of an empty text":  {change: property("one", "availability_zone", "")},
		"a property that Heat may get yet":   {change: property("one", "shape", "round"), differing: []string{"shape"}},
		"names in its network":               {change: property("subnet", "name", "other")},
		"a subnet with other addresses":      {change: property("subnet", "cidr", "10.1.0.0/24"), differing: []string{"networks"}},
		"another port":                       {change: property("port", "mac_address", "fa:16:3e:00:00:01"), differing: []string{"networks"}},
		"a port that is left out":            {change: func(r map[string]any) { delete(r, "port") }, differing: []string{"networks"}},
		"another key of the same name":       {change: property("key", "public_key", "b")},
		"a key of another name":              {change: property("key", "name", "l"), differing: []string{"key_name"}},
		"a file that its user data comes of": {run: "other", differing: []string{"user_data"}},
		"user data that Heat is to ignore":   {run: "other", change: property("one", "user_data_update_policy", "IGNORE")},
		"a further network":                  {change: property("one", "networks", []any{port, other})},
		"another one in front":               {change: property("one", "networks", []any{other, port})},
		"another network":                    {change: property("one", "networks", []any{other}), differing: []string{"networks"}},
		"no network":                         {change: property("one", "networks", []any{}), differing: []string{"networks"}},
		"a further address":                  {change: property("port", "fixed_ips", []any{address, map[string]any{"ip_address": "10.0.0.9"}})},
		"other addresses":                    {change: property("port", "fixed_ips", []any{map[string]any{"ip_address": "10.0.0.9"}}), differing: []string{"networks"}},
		"any zone by its name":               {change: property("one", "availability_zone", "nova")},
		"another zone":                       {change: property("one", "availability_zone", "az2"), differing: []string{"availability_zone"}},
		"another type":                       {change: func(r map[string]any) { r["one"].(map[string]any)["type"] = "OS::Heat::None" }, differing: []string{"type"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := read(base, try.parameters, try.run)
			if try.change != nil {
				try.change(next.template["resources"].(map[string]any))
			}
			differing, concealed := read(base, nil, "").differences(next, "one", try.node)
			require.Equal(t, try.differing, differing)
			require.Empty(t, concealed)
		})
	}
	was, now := read(base, map[string]string{"secret": hiddenParameter, "size": "small"}, ""), read(base, map[string]string{"secret": "word"}, "")
	differing, concealed := was.differences(now, "one", false)
	require.Empty(t, differing)
	require.Empty(t, concealed, "a password changes in place")
	for _, d := range []definition{was, now} {
		d.properties("one")["user_data"] = map[string]any{"str_replace": map[string]any{"template": "x", "params": map[string]any{"x": map[string]any{"get_param": "secret"}}}}
	}
	differing, concealed = was.differences(now, "one", false)
	require.Empty(t, differing)
	require.Equal(t, []string{"user_data"}, concealed, "Heat does not tell what it was")
	now.properties("one")["flavor"] = "1"
	now.keep(was, "one", "flavor")
	require.Equal(t, "small", now.properties("one")["flavor"], "a parameter may not be there any more")
}

func TestAnotherSpellingOfTheSameIsKept(t *testing.T) {
	server := func(properties map[string]any) definition {
		return definition{template: map[string]any{"resources": map[string]any{"one": map[string]any{"type": serverType, "properties": properties}}}}
	}
	was := server(map[string]any{"key_name": nil, "image": "tiny", "config_drive": "True", "metadata": map[string]any{}})
	now := server(map[string]any{"image": "big", "config_drive": true, "scheduler_hints": nil})
	require.ElementsMatch(t, []string{"key_name", "config_drive", "scheduler_hints"}, was.spelledOtherwise(now, "one"))
	for _, property := range was.spelledOtherwise(now, "one") {
		now.keep(was, "one", property)
	}
	require.Equal(t, map[string]any{"key_name": nil, "image": "big", "config_drive": "True"}, now.properties("one"))
}

func property(resource, name string, value any) func(map[string]any) {
	return func(resources map[string]any) {
		resources[resource].(map[string]any)["properties"].(map[string]any)[name] = value
	}
}

func TestServersInStacksOfAStackAreCompared(t *testing.T) {
	nested := "heat_template_version: 2018-08-31\nparameters: {flavor: {type: string}, label: {type: string}}\nresources:\n" +
		"  one: {type: OS::Nova::Server, properties: {image: tiny, flavor: {get_param: flavor}, metadata: {label: {get_param: label}}}}\n"
	stack := func(flavor, image, label, file string, count int) definition {
		server := map[string]any{"type": serverType, "properties": map[string]any{"flavor": map[string]any{"get_param": "flavor"}, "image": image,
			"metadata": map[string]any{"label": label}}}
		return definition{parameters: map[string]string{"flavor": flavor}, files: map[string]string{"server.yaml": file}, template: map[string]any{"resources": map[string]any{
			"group":   map[string]any{"type": "OS::Heat::ResourceGroup", "properties": map[string]any{"count": count, "resource_def": server}},
			"scaling": map[string]any{"type": "OS::Heat::AutoScalingGroup", "properties": map[string]any{"max_size": count, "resource": server}},
			"file":    map[string]any{"type": "server.yaml", "properties": map[string]any{"flavor": map[string]any{"get_param": "flavor"}, "label": label}},
			"files": map[string]any{"type": "OS::Heat::ResourceGroup", "properties": map[string]any{"count": count, "resource_def": map[string]any{
				"type": "server.yaml", "properties": map[string]any{"flavor": map[string]any{"get_param": "flavor"}, "label": label}}}},
		}}}
	}
	was := stack("small", "tiny", "a", nested, 1)
	for name, try := range map[string]struct {
		next definition
		want map[string][]string
	}{
		"the same":               {stack("small", "tiny", "a", nested, 1), map[string][]string{}},
		"more, and other labels": {stack("small", "tiny", "b", nested, 3), map[string][]string{}},
		"another flavor": {stack("large", "tiny", "a", nested, 1), map[string][]string{"group": {"flavor"}, "scaling": {"flavor"}, "file": {"flavor"},
			"files": {"flavor"}}},
		"another image in the groups": {stack("small", "big", "a", nested, 1), map[string][]string{"group": {"image"}, "scaling": {"image"}}},
		"another image in the file":   {stack("small", "tiny", "a", strings.Replace(nested, "tiny", "big", 1), 1), map[string][]string{"file": {"image"}, "files": {"image"}}},
		"a key that is null, which is another value to Heat than none": {stack("small", "tiny", "a", strings.Replace(nested, "image: tiny", "image: tiny, key_name: null", 1), 1),
			map[string][]string{"file": {"key_name"}, "files": {"key_name"}}},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string][]string{}
			for _, resource := range []string{"group", "scaling", "file", "files"} {
				changes, _ := was.changesInside(try.next, resource, 1)
				for _, change := range changes {
					found[resource] = append(found[resource], change.Property)
				}
			}
			require.Equal(t, try.want, found)
		})
	}
}

func TestTypesThatAnEnvironmentMapsAreFollowed(t *testing.T) {
	server := func(image string) string {
		return "heat_template_version: 2018-08-31\nparameters: {secret: {type: string}}\nresources:\n  one: {type: OS::Nova::Server, " +
			"properties: {image: " + image + ", flavor: f, user_data: {get_param: secret}}}\n"
	}
	stack := func(registry map[string]any, image string, secret any) definition {
		return definition{registry: registry, files: map[string]string{"a.yaml": server("tiny"), "b.yaml": server("tiny"), "c.yaml": server("big")}, template: map[string]any{
			"resources": map[string]any{
				"mine":   map[string]any{"type": "My::Server", "properties": map[string]any{"secret": secret}},
				"direct": map[string]any{"type": "My::Alias", "properties": map[string]any{"image": image}},
				"wild":   map[string]any{"type": "OS::Computing::Server", "properties": map[string]any{"image": image}},
				"group": map[string]any{"type": "OS::Heat::ResourceGroup", "properties": map[string]any{"resource_def": map[string]any{
					"type": "My::Server", "properties": map[string]any{"secret": secret}}}},
			}}}
	}
	registry := func(file string) map[string]any {
		return map[string]any{"My::Server": file, "My::Alias": serverType, "OS::Computing::*": "OS::Nova::*"}
	}
	was := stack(registry("a.yaml"), "tiny", "s")
	require.Equal(t, serverType, was.kind("direct"))
	require.Equal(t, serverType, was.kind("wild"))
	for _, resource := range []string{"direct", "wild"} {
		differing, _ := was.differences(stack(registry("a.yaml"), "big", "s"), resource, false)
		require.Equal(t, []string{"image"}, differing)
	}
	differing, _ := was.differences(stack(map[string]any{"My::Alias": "a.yaml"}, "tiny", "s"), "direct", false)
	require.Equal(t, []string{"type"}, differing, "the server would give way to a stack")
	for name, try := range map[string]struct {
		next      definition
		want      []string
		concealed []string
	}{
		"the same":                       {next: stack(registry("a.yaml"), "tiny", "s")},
		"a file with the same server":    {next: stack(registry("b.yaml"), "tiny", "s")},
		"a file with another image":      {next: stack(registry("c.yaml"), "tiny", "s"), want: []string{"image"}},
		"another parameter":              {next: stack(registry("a.yaml"), "tiny", "t"), want: []string{"user_data"}},
		"a server in place of the stack": {next: stack(map[string]any{"My::Server": serverType}, "tiny", "s"), want: []string{"type"}},
		"a mapping of this resource only": {next: stack(map[string]any{"My::Server": "a.yaml", "resources": map[string]any{"mine": map[string]any{"My::Server": "c.yaml"}}},
			"tiny", "s"), want: []string{"image"}},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			changes, concealed := was.changesInside(try.next, "mine", 1)
			for _, change := range changes {
				found = append(found, change.Property)
			}
			require.Equal(t, try.want, found)
			require.Empty(t, concealed)
		})
	}
	changes, _ := was.changesInside(stack(registry("c.yaml"), "tiny", "s"), "group", 1)
	require.Len(t, changes, 1)
	_, concealed := stack(registry("a.yaml"), "tiny", hiddenParameter).changesInside(was, "mine", 1)
	require.Equal(t, []string{"user_data"}, concealed)
}
