package stack

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hints are the server groups of a template's servers, by the names of the servers.
func hints(template map[string]any) map[string]any {
	found := map[string]any{}
	for _, server := range resourcesOf(template, "OS::Nova::Server") {
		hint, _ := server["scheduler_hints"].(map[string]any)
		group, _ := hint["group"].(map[string]any)
		found[server["name"].(string)] = group["get_resource"]
	}
	return found
}

// clusterOf is the cluster of an environment's model.
func clusterOf(model map[string]any) map[string]any {
	for _, one := range model["applications"].([]any) {
		if one := one.(map[string]any); one["masterNode"] != nil {
			return one
		}
	}
	return nil
}

func TestServersOfARoleAreSpreadOverHostsWhereTheQuotaLetsThem(t *testing.T) {
	w := newWorld(t)
	template := w.push(t, environment(t, demo))
	groups := resourcesOf(template, "OS::Nova::ServerGroup")
	require.Len(t, groups, 3)
	for _, group := range groups {
		require.Equal(t, map[string]any{"policies": []any{"soft-anti-affinity"}}, group, "a name that changes would replace the group, and so all servers in it")
	}
	for server, group := range hints(template) {
		role := "minion"
		switch {
		case server == "murano-kube-1":
			role = "master"
		case strings.HasPrefix(server, "murano-gateway"):
			role = "gateway"
		}
		require.Equal(t, clusterOf(environment(t, demo))["?"].(map[string]any)["id"].(string)+"-"+role+"-servers", group, server)
	}

	model := environment(t, demo)
	clusterOf(model)["spreadServers"] = false
	require.Empty(t, resourcesOf(newWorld(t).push(t, model), "OS::Nova::ServerGroup"))

	w = newWorld(t)
	w.limits = `"maxServerGroups": 3, "totalServerGroupsUsed": 1, "maxServerGroupMembers": 1`
	template = w.push(t, environment(t, demo))
	require.Len(t, resourcesOf(template, "OS::Nova::ServerGroup"), 2, "it is a wish, for which nothing fails")
	placed := 0
	for _, group := range hints(template) {
		if group != nil {
			placed++
		}
	}
	require.Equal(t, 2, placed, "one in each group")
}

func TestServersThatAreThereStayInTheGroupThatTheyWereMadeIn(t *testing.T) {
	// A stack of a former version.
	w := newWorld(t)
	model := environment(t, demo)
	clusterOf(model)["spreadServers"] = false
	w.there = w.push(t, model)
	servers := func(template map[string]any) map[string]any {
		resources := maps.Clone(template["resources"].(map[string]any))
		maps.DeleteFunc(resources, func(_ string, one any) bool { return one.(map[string]any)["type"] != "OS::Nova::Server" })
		return resources
	}
	larger := func() map[string]any {
		model := environment(t, demo)
		clusterOf(model)["nodeCount"] = 2
		return model
	}
	template := w.push(t, larger())
	before, after := servers(w.there), servers(template)
	for name, server := range before {
		require.Equal(t, server, after[name], "a server that is there would be replaced")
	}
	require.Len(t, after, len(before)+1)
	require.Len(t, resourcesOf(template, "OS::Nova::ServerGroup"), 1, "there are no groups but those of servers to be made")
	require.NotNil(t, hints(template)["murano-kube-3"])

	// And members of a group stay in it, whatever the model and the quota are now.
	w = newWorld(t)
	w.there = w.push(t, environment(t, demo))
	w.limits = `"maxServerGroups": 3, "totalServerGroupsUsed": 3, "maxServerGroupMembers": 0`
	model = larger()
	clusterOf(model)["name"] = "another"
	template = w.push(t, model)
	after = servers(template)
	for name, server := range servers(w.there) {
		require.Equal(t, server, after[name])
	}
	require.Len(t, resourcesOf(template, "OS::Nova::ServerGroup"), 3)
	require.Nil(t, hints(template)["murano-kube-3"], "there is no room in the group")
}

func TestServersAreKeptTogetherOrApartAsTheirModelSays(t *testing.T) {
	model := environment(t, "testdata/mixed.yaml")
	applications := model["applications"].([]any)
	for _, one := range applications[len(applications)-1].(map[string]any)["servers"].([]any) {
		server := one.(map[string]any)
		server["instanceAffinityGroup"] = map[string]any{"?": map[string]any{"type": "io.murano.resources.InstanceAffinityGroup", "id": "of-" + server["name"].(string)},
			"affinity": server["name"] == "plain"}
	}
	template := newWorld(t).push(t, model)
	resources := template["resources"].(map[string]any)
	require.Equal(t, "of-plain-servers", hints(template)["plain"])
	require.Equal(t, "of-apart-servers", hints(template)["apart"])
	for name, policy := range map[string]string{"of-plain-servers": "affinity", "of-apart-servers": "anti-affinity"} {
		require.Equal(t, map[string]any{"type": "OS::Nova::ServerGroup", "properties": map[string]any{"policies": []any{policy}}}, resources[name])
	}
}
