package murano

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// adoption has the environment's next deployment take the stack over that Murano has made in the environment's own region. others
// is how many stacks Murano has made in other regions.
func (d description) adoption(environment string) (rows []store.Attribute, others int, err error) {
	stacks := d.stacks()
	regions, _ := d.Objects["regions"].(map[string]any)
	home, _ := regions[""].(string)
	if home == "" && len(stacks) == 1 {
		home = slices.Collect(maps.Keys(stacks))[0]
	}
	if stacks[home] == "" {
		return nil, len(stacks), nil
	}
	from := openstack.Adoption{Stack: stacks[home], Region: home, Servers: map[string]string{}}
	instances(from.Servers, d.Objects)
	instances(from.Servers, d.ObjectsCopy)
	for _, one := range regions {
		region, _ := one.(map[string]any)
		if idOf(region) != home {
			continue
		}
		networks, _ := region["defaultNetworks"].(map[string]any)
		network, _ := networks["environment"].(map[string]any)
		from.Network = idOf(network)
	}
	value, err := json.Marshal(from)
	if err != nil {
		return nil, 0, err
	}
	for name, value := range map[string]string{engine.AttributeAdopted: string(value), engine.AttributeStack: "true"} {
		rows = append(rows, store.Attribute{EnvironmentID: environment, ObjectID: environment, Class: classEnvironment, Name: name, Value: value})
	}
	return rows, len(stacks) - 1, nil
}

// instances notes the names of all that looks like a server, by the ids of the objects: which classes are servers only their packages tell.
func instances(names map[string]string, value any) {
	switch v := value.(type) {
	case map[string]any:
		name, named := v["name"].(string)
		_, flavored := v["flavor"].(string)
		if id := idOf(v); id != "" && named && flavored {
			names[id] = name
		}
		for _, item := range v {
			instances(names, item)
		}
	case []any:
		for _, item := range v {
			instances(names, item)
		}
	}
}

// idOf is the id of an object in a model; "" when the value is none.
func idOf(value map[string]any) string {
	header, _ := value["?"].(map[string]any)
	id, _ := header["id"].(string)
	return id
}
