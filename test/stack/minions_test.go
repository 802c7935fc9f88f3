package stack

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

const groupID = "workers"

// The ids of the first two nodes of the group, in every model and in Heat: the first 32 digits of SHA-256 of workers/1, workers/1/instance, ….
const (
	firstNode, firstInstance   = "483bcfa84352500382147be6269f686e", "c03207a55d2c854c2a8576908647496c"
	secondNode, secondInstance = "6294d446494e7c6816d9c8668f045ec8", "9e1dc09930461cb040d78d1299e9a740"
)

// withGroup is the demonstration whose cluster has a group of minions.
func withGroup(t *testing.T, fields map[string]any) map[string]any {
	model := environment(t, demo)
	group := map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesMinionGroup", "id": groupID}, "name": "workers"}
	for name, value := range fields {
		group[name] = value
	}
	clusterOf(model)["minionGroups"] = []any{group}
	return model
}

// serverNames are the names of the servers of a template, by their resources.
func serverNames(template map[string]any) map[string]string {
	names := map[string]string{}
	resources, _ := template["resources"].(map[string]any)
	for resource, one := range resources {
		described, _ := one.(map[string]any)
		if described["type"] == "OS::Nova::Server" {
			names[resource], _ = described["properties"].(map[string]any)["name"].(string)
		}
	}
	return names
}

// groupOf loads a model and returns its group.
func (w *world) groupOf(t *testing.T, model map[string]any) *muranopl.Object {
	t.Helper()
	_, root := w.load(t, model)
	var found *muranopl.Object
	root.Walk(func(object *muranopl.Object) bool {
		if object.ID() == groupID {
			found = object
		}
		return found == nil
	})
	require.NotNil(t, found)
	return found
}

func TestAGroupMakesItsNodesFromWhatItSays(t *testing.T) {
	w := newWorld(t)
	plain := w.push(t, environment(t, demo))
	w.there = plain
	template := w.push(t, withGroup(t, map[string]any{"count": 2, "flavor": "m1.large", "zones": []any{"zone-1", "zone-2"}}))
	for resource, one := range plain["resources"].(map[string]any) {
		require.Equal(t, one, template["resources"].(map[string]any)[resource], "what was there before the group stays")
	}
	names := serverNames(template)
	require.Equal(t, "workers-1", names[firstInstance+"-server"], "%v", names)
	require.Equal(t, "workers-2", names[secondInstance+"-server"])
	require.Len(t, names, len(serverNames(plain))+2)
	first, second := propertiesOf(t, template, firstInstance+"-server"), propertiesOf(t, template, secondInstance+"-server")
	require.Equal(t, "m1.large", first["flavor"])
	require.Equal(t, propertiesOf(t, plain, minionID+"-server")["image"], first["image"], "what the group does not say is that of the first minion")
	require.Equal(t, []any{"zone-1", "zone-2"}, []any{first["availability_zone"], second["availability_zone"]})

	w.there = template
	w.unchanged(t, withGroup(t, map[string]any{"count": 2, "flavor": "m1.large", "zones": []any{"zone-1", "zone-2"}}))
	w.unchanged(t, withGroup(t, map[string]any{"count": 2, "flavor": "m1.large", "zones": []any{"zone-3", "zone-2", "zone-1"}}))
	require.Equal(t, []string{"cluster demo-cluster: 2 nodes are replaced one after another (a new one joins before the former one goes): workers-1, then called big-1-r2, workers-2, then called big-2-r2"},
		w.rehearsed(t, withGroup(t, map[string]any{"count": 2, "flavor": "m1.large", "zones": []any{"zone-1", "zone-2"}, "namingPattern": "big-#"})))
}

func TestAModelThatWasSavedHasTheSameNodes(t *testing.T) {
	w := newWorld(t)
	model := withGroup(t, map[string]any{"count": 2})
	w.there = w.push(t, model)
	saved := muranopl.Save(w.model)
	group := clusterOf(saved)["minionGroups"].([]any)[0].(map[string]any)
	node := group["nodes"].([]any)[1].(map[string]any)
	require.Equal(t, secondNode, node["?"].(map[string]any)["id"])
	require.Equal(t, secondInstance, node["instance"].(map[string]any)["?"].(map[string]any)["id"])
	w.unchanged(t, saved)
	require.Equal(t, []string{firstNode, secondNode}, ids(w.groupOf(t, saved)))
}

func TestOnlyAGroupThatIsGoneIsDestroyedWithItsNodes(t *testing.T) {
	w := newWorld(t)
	w.push(t, withGroup(t, map[string]any{"count": 2}))
	deployed := muranopl.SaveCopy(w.model)
	all := []string{groupID, firstNode, firstInstance, secondNode, secondInstance, "cluster"}
	destroyed := func(model map[string]any) (gone []string) {
		interpreter, root := w.load(t, model)
		former, problems, err := interpreter.LoadFormer(t.Context(), root, deployed)
		require.NoError(t, err)
		require.Empty(t, problems)
		for _, object := range former {
			if slices.Contains(all, object.ID()) {
				gone = append(gone, object.ID())
			}
		}
		return gone
	}
	require.Empty(t, destroyed(withGroup(t, nil)), "a model that does not list the nodes has them")
	require.Empty(t, destroyed(withGroup(t, map[string]any{"count": 1})), "a node that is to go is drained by its cluster")
	require.ElementsMatch(t, all[:5], destroyed(environment(t, demo)))
}

func ids(group *muranopl.Object) (all []string) {
	for _, node := range group.Objects("nodes") {
		all = append(all, node.ID())
	}
	return all
}

func TestAModelThatSaysNoCountKeepsTheNodesThatAreThere(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, 1, w.groupOf(t, withGroup(t, nil)).Int("count"), "a new group begins with one")
	w.attributes[groupID+"  group"] = map[string]any{"count": 2, "nodes": []any{
		map[string]any{"number": 3, "zone": "nova"}, map[string]any{"number": 1, "zone": "nova"}, map[string]any{"number": 2, "zone": "nova"}}}
	group := w.groupOf(t, withGroup(t, nil))
	require.Equal(t, 2, group.Int("count"))
	require.Len(t, ids(group), 3, "a node that does not run is known, too, so that nothing of it stays")
	require.Equal(t, []string{firstNode, secondNode}, ids(group)[1:])
	require.Equal(t, 1, w.groupOf(t, withGroup(t, map[string]any{"count": 1})).Int("count"), "what a model says counts")
	names := serverNames(w.push(t, withGroup(t, nil)))
	require.Equal(t, "workers-1", names[firstInstance+"-server"])
	require.NotContains(t, names, secondInstance+"-server", "it was removed by its name")
}

func TestASmallerGroupTakesItsLastNodesOutOfTheStack(t *testing.T) {
	w := newWorld(t)
	w.there = w.push(t, withGroup(t, map[string]any{"count": 2}))
	names := serverNames(w.push(t, withGroup(t, map[string]any{"count": 1})))
	require.Contains(t, names, firstInstance+"-server")
	require.NotContains(t, names, secondInstance+"-server")
	names = serverNames(w.push(t, withGroup(t, map[string]any{"count": 0})))
	require.NotContains(t, names, firstInstance+"-server")
}

func TestWhatIsWrongWithAGroupIsSaidBeforeAnythingIsMade(t *testing.T) {
	w := newWorld(t)
	for wrong, fields := range map[string]map[string]any{
		"count of group workers is 3 but its maximum is 2": {"count": 3, "maximum": 2},
		"label burano.io/group would be Burano's own":      {"labels": map[string]any{"burano.io/group": "x"}},
		"two servers are called murano-kube-2":             {"count": 2, "namingPattern": "murano-kube-#"},
	} {
		require.ErrorContains(t, w.fail(t, withGroup(t, fields)), wrong)
	}
	twice := withGroup(t, nil)
	groups := clusterOf(twice)["minionGroups"].([]any)
	second := map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesMinionGroup", "id": "others"}, "name": "workers", "namingPattern": "others-#"}
	clusterOf(twice)["minionGroups"] = slices.Concat(groups, []any{second})
	require.ErrorContains(t, w.fail(t, twice), "two groups are called workers")
}
