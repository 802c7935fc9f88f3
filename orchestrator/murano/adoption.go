package murano

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// adoption makes the environment's next deployment take over the stacks that Murano has made. They are in the environment's own region, in other
// regions, and of packages in HOT. why is the sentence about them in a preview.
func (d description) adoption(environment string) (rows []store.Attribute, why string, err error) {
	named := d.regions()
	stacks := d.stacks()
	home := d.home(named, stacks)
	if home == "" && len(stacks) > 0 {
		return nil, "", fmt.Errorf("Murano has made %d stacks in different regions for it, and its model does not say which region is its own", len(stacks))
	}
	taken := engine.TakenOver{Elsewhere: map[string]openstack.Adoption{}, Templates: d.templates()}
	elsewhere := map[string]bool{}
	for id, stack := range stacks {
		from := openstack.Adoption{Stack: stack, Region: id, Servers: map[string]string{}, Network: networkOf(named[id])}
		name, _ := named[id]["name"].(string)
		for _, objects := range []map[string]any{d.Objects, d.ObjectsCopy} {
			instances(objects, "", func(region, id, server string) {
				if region == name || region == "" && from.Region == home {
					from.Servers[id] = server
				}
			})
		}
		switch {
		case id == home:
			taken.Adoption = from
		case name == "":
			return nil, "", fmt.Errorf("Murano has made stack %s in a region that its model does not name", stack)
		default:
			taken.Elsewhere[name], elsewhere[name] = from, true
		}
	}
	if len(stacks)+len(taken.Templates) == 0 {
		return nil, "", nil
	}
	values := map[string]any{engine.AttributeAdopted: taken}
	if taken.Stack != "" {
		values[engine.AttributeStack] = true
	}
	if name, _ := named[home]["name"].(string); name != "" {
		values[engine.AttributeRegion] = name
	}
	if len(elsewhere) > 0 {
		values[engine.AttributeStacks] = elsewhere
	}
	for name, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, store.Attribute{EnvironmentID: environment, ObjectID: environment, Class: classEnvironment, Name: name, Value: string(text)})
	}
	why = "with its stack in Heat"
	if len(stacks)+len(taken.Templates) > 1 {
		why = fmt.Sprintf("with its %d stacks in Heat", len(stacks)+len(taken.Templates))
	}
	return rows, why, nil
}

// regions are the objects of the environment's regions, by their ids.
func (d description) regions() map[string]map[string]any {
	found := map[string]map[string]any{}
	for _, objects := range []map[string]any{d.ObjectsCopy, d.Objects} {
		regions, _ := objects["regions"].(map[string]any)
		for _, one := range regions {
			if region, isObject := one.(map[string]any); isObject && idOf(region) != "" {
				found[idOf(region)] = region
			}
		}
	}
	return found
}

// home is the id of the environment's own region, "" where it is unknown.
func (d description) home(named map[string]map[string]any, stacks map[string]string) string {
	for _, objects := range []map[string]any{d.Objects, d.ObjectsCopy} {
		regions, _ := objects["regions"].(map[string]any)
		if home, _ := regions[""].(string); home != "" {
			return home
		}
		for id, region := range named {
			if name, _ := objects["region"].(string); name != "" && region["name"] == name {
				return id
			}
		}
	}
	if len(stacks) == 1 {
		for id := range stacks {
			return id
		}
	}
	return ""
}

// networkOf is the id of a region's network of the environment.
func networkOf(region map[string]any) string {
	networks, _ := region["defaultNetworks"].(map[string]any)
	network, _ := networks["environment"].(map[string]any)
	return idOf(network)
}

// templates are the names of the stacks that Murano has made of packages in HOT.
func (d description) templates() []string {
	var names []string
	for _, one := range d.Attributes {
		if len(one) == 4 && one[2] == attributeTemplateStack {
			if name, ok := one[3].(string); ok && name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// instances reports the ids and names of all objects that look like servers: only their packages define which classes are servers. region is the region of
// the value's owner, "" for the environment's own.
func instances(value any, region string, note func(region, id, name string)) {
	switch v := value.(type) {
	case map[string]any:
		if own, _ := v["regionName"].(string); own != "" {
			region = own
		}
		name, named := v["name"].(string)
		_, flavored := v["flavor"].(string)
		if id := idOf(v); id != "" && named && flavored {
			note(region, id, name)
		}
		for _, item := range v {
			instances(item, region, note)
		}
	case []any:
		for _, item := range v {
			instances(item, region, note)
		}
	}
}

// idOf is the id of an object in a model; "" when the value is none.
func idOf(value map[string]any) string {
	header, _ := value["?"].(map[string]any)
	id, _ := header["id"].(string)
	return id
}
