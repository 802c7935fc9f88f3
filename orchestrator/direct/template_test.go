package direct

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/orchestrator/openstack"
)

func read(t *testing.T, source string) (value map[string]any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(source), &value))
	return value
}

func TestFunctionsGiveWhatHeatSays(t *testing.T) {
	known := scope{
		parameters: map[string]any{"ports": []any{80.0, 443.0}, "name": "web", "some": map[string]any{"deep": []any{"a", "b"}}},
		conditions: map[string]any{"is_web": map[string]any{"equals": []any{map[string]any{"get_param": "name"}, "web"}}},
		files:      map[string]string{"motd": "hello"},
		reference:  func(resource string) (any, error) { return "id-of-" + resource, nil },
		attribute: func(resource, name string) (any, error) {
			return map[string]any{"of": resource, "name": name}, nil
		},
	}
	for source, want := range map[string]any{
		"get_param: [some, deep, 1]":                                   "b",
		"get_param: [some, missing]":                                   nil,
		"get_resource: server":                                         "id-of-server",
		"get_attr: [server, addresses, of]":                            "server",
		"get_file: motd":                                               "hello",
		"str_replace: {template: '$ab $a', params: {$a: 1, $ab: [x]}}": `["x"] 1`,
		"list_join: [', ', [a, 1], [true]]":                            "a, 1, true",
		"str_split: [',', 'a,b', 1]":                                   "b",
		"list_concat: [[a], [b, a]]":                                   []any{"a", "b", "a"},
		"list_concat_unique: [[a], [b, a]]":                            []any{"a", "b"},
		"map_merge: [{a: x}, {a: y, b: z}]":                            map[string]any{"a": "y", "b": "z"},
		"map_replace: [{a: x}, {keys: {a: b}, values: {x: y}}]":        map[string]any{"b": "y"},
		"digest: [sha256, a]":                                          "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
		"contains: [b, [a, b]]":                                        true,
		"filter: [[a], [a, b]]":                                        []any{"b"},
		"make_url: {scheme: http, host: '::1', port: 80, path: /x, query: {q: '1'}}":          "http://[::1]:80/x?q=1",
		"if: [is_web, yes it is, {get_param: missing}]":                                       "yes it is",
		"if: [{not: is_web}, {get_param: missing}, no]":                                       "no",
		"if: [{and: [is_web, {or: [false, is_web]}]}, 'on', 'off']":                           "on",
		"repeat: {for_each: {$p: {get_param: ports}}, template: {port: $p, text: 'port $p'}}": []any{map[string]any{"port": 80.0, "text": "port 80"}, map[string]any{"port": 443.0, "text": "port 443"}},
		"repeat: {for_each: {$a: [1, 2], $b: [x, y]}, template: $a-$b, permutations: false}":  []any{"1-x", "2-y"},
		"repeat: {for_each: {$a: [1, 2], $b: [x, y]}, template: $a-$b}":                       []any{"1-x", "1-y", "2-x", "2-y"},
	} {
		plain, err := plainOf(read(t, source))
		require.NoError(t, err)
		got, err := known.resolve(plain)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for _, source := range []string{"get_param: missing", "get_file: missing", "str_split: [',', 'a', 3]", "list_join: [',', a]", "digest: [rot13, a]",
		"str_replace_strict: {template: a, params: {b: c}}", "if: [unknown, a, b]", "repeat: {template: a}"} {
		_, err := known.resolve(read(t, source))
		require.Error(t, err, source)
	}
}

func TestResourcesAreMadeInTheOrderOfWhatNeedsWhat(t *testing.T) {
	made, err := parse(openstack.Content{Template: read(t, `
heat_template_version: 2018-08-31
parameters: {floating: {type: boolean, default: false}}
conditions: {floating: {get_param: floating}}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network_id: {get_resource: net}, cidr: 10.0.0.0/24}}
  port: {type: OS::Neutron::Port, properties: {network: {get_resource: net}}}
  server: {type: OS::Nova::Server, depends_on: word, properties: {flavor: small, networks: [{port: {get_resource: port}}]}}
  word: {type: OS::Heat::RandomString}
  address: {type: OS::Neutron::FloatingIP, condition: floating, properties: {floating_network: outside}}
outputs:
  address: {condition: floating, value: {get_attr: [address, floating_ip_address]}}
`)}, nil)
	require.NoError(t, err)
	needs := map[string][]string{}
	for name, one := range made.resources {
		needs[name] = one.needs
	}
	require.Equal(t, map[string][]string{"net": nil, "subnet": {"net"}, "port": {"net", "subnet"}, "server": {"port", "word"}, "word": nil}, needs,
		"a port waits for the subnets of its network, and what a condition leaves out is not there")
	require.Empty(t, made.outputs)
}

func TestParametersAreCheckedBeforeAnythingIsMade(t *testing.T) {
	template := `
heat_template_version: 2018-08-31
parameters:
  size: {type: number, constraints: [{range: {min: 1, max: 9}}]}
  name: {type: string, default: web, constraints: [{allowed_pattern: "[a-z]+", description: lower case only}]}
  list: {type: comma_delimited_list, default: "a, b"}
`
	values := func(given map[string]any, environment string) (map[string]any, error) {
		made, err := parse(openstack.Content{Template: read(t, template), Parameters: given, Environment: environment}, nil)
		if err != nil {
			return nil, err
		}
		return made.scope.parameters, nil
	}
	got, err := values(map[string]any{"size": "3"}, "parameters: {size: 4, name: db}\nparameter_defaults: {name: other}")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"size": 3.0, "name": "db", "list": []any{"a", "b"}}, got)
	for said, given := range map[string]map[string]any{
		"the parameter size was not provided": nil,
		"10 is out of range (1 to 9)":         {"size": 10},
		"lower case only":                     {"size": 1, "name": "A"},
		"the parameter more is given":         {"size": 1, "more": 1},
		`parameter size: "many" is no number`: {"size": "many"},
	} {
		_, err := values(given, "")
		require.ErrorContains(t, err, said)
	}
	_, err = values(map[string]any{"size": 1}, "resource_registry: {a: b}")
	require.ErrorContains(t, err, "works only with Heat")
}

func TestARandomTextHasWhatIsDemanded(t *testing.T) {
	j := &job{properties: map[string]any{"length": 8.0, "character_classes": []any{map[string]any{"class": "digits", "min": 3.0}, map[string]any{"class": "lowercase", "min": 5.0}}}}
	made, err := j.randomText()
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-z]{8}$`, made)
	digits := 0
	for _, letter := range made {
		if letter <= '9' {
			digits++
		}
	}
	require.Equal(t, 3, digits)
	j.properties["length"] = 7.0
	_, err = j.randomText()
	require.Error(t, err)
	require.False(t, errors.Is(err, errLater))
}
