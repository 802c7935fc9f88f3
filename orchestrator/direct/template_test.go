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

func TestResourcesAreMadeInTheOrderOfWhatNeedsWhat(t *testing.T) {
	made, err := parse(openstack.Content{Template: read(t, `
heat_template_version: 2018-08-31
parameters: {floating: {type: boolean, default: false}}
conditions: {floating: {get_param: floating}}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network_id: {get_resource: net}, cidr: 10.0.0.0/24}}
  port: {type: OS::Neutron::Port, properties: {network: {get_resource: net}}}
  server: {type: OS::Nova::Server, depends_on: word, properties: {flavor: small, networks: [{port: {if: [floating, {get_attr: [address, port_id]}, {get_resource: port}]}}]}}
  word: {type: OS::Heat::RandomString}
  address: {type: OS::Neutron::FloatingIP, condition: floating, properties: {floating_network: outside}}
  after: {type: OS::Heat::None, depends_on: address}
outputs:
  address: {condition: floating, value: {get_attr: [address, floating_ip_address]}}
`)}, nil)
	require.NoError(t, err)
	needs := map[string][]string{}
	for name, one := range made.resources {
		needs[name] = one.needs
	}
	require.Equal(t, map[string][]string{"net": nil, "subnet": {"net"}, "port": {"net", "subnet"}, "server": {"port", "word"}, "word": nil, "after": nil}, needs,
		"a port waits for the subnets of its network, and what a condition leaves out is not there")
	require.Equal(t, map[string]any{"address": nil}, made.outputs)
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
		return made.scope.Parameters, nil
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
