package stack

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/known"
)

// withMasters is the demonstration with these properties of its cluster's masters.
func withMasters(t *testing.T, fields map[string]any) map[string]any {
	model := environment(t, demo)
	maps.Copy(clusterOf(model), fields)
	return model
}

// mastersOf names the servers of masters beside the first one, with their zones.
func mastersOf(t *testing.T, template map[string]any) (names []string, zones map[string]any) {
	zones = map[string]any{}
	for resource, name := range serverNames(template) {
		if slices.Contains([]string{"murano-kube-1-m2", "murano-kube-1-m3", "murano-kube-1-m4", "murano-kube-1-m5"}, name) {
			names = append(names, name)
			zones[name] = propertiesOf(t, template, resource)["availability_zone"]
		}
	}
	slices.Sort(names)
	return names, zones
}

func TestAClusterMakesItsFurtherMastersLikeItsFirst(t *testing.T) {
	w := newWorld(t)
	plain := w.push(t, environment(t, demo))
	w.there = plain
	three := withMasters(t, map[string]any{"masterCount": 3, "masterZones": []any{"zone-1", "zone-2"}})
	template := w.push(t, three)
	for resource, one := range plain["resources"].(map[string]any) {
		require.Equal(t, one, template["resources"].(map[string]any)[resource], "what was there before stays")
	}
	names, zones := mastersOf(t, template)
	require.Equal(t, []string{"murano-kube-1-m2", "murano-kube-1-m3"}, names)
	require.Equal(t, map[string]any{"murano-kube-1-m2": "zone-2", "murano-kube-1-m3": "zone-1"}, zones)

	w.there = template
	w.unchanged(t, three)
	saved := muranopl.Save(w.model)
	require.Len(t, clusterOf(saved)["masterNodes"], 2)
	w.unchanged(t, saved)
}

func TestMastersThatAreTooManyGo(t *testing.T) {
	w := newWorld(t)
	w.there = w.push(t, withMasters(t, map[string]any{"masterCount": 5}))
	names, _ := mastersOf(t, w.there)
	require.Len(t, names, 4)
	w.there = w.push(t, withMasters(t, map[string]any{"masterCount": 3}))
	names, _ = mastersOf(t, w.there)
	require.Equal(t, []string{"murano-kube-1-m2", "murano-kube-1-m3"}, names)
	names, _ = mastersOf(t, w.push(t, withMasters(t, map[string]any{"masterCount": 1})))
	require.Empty(t, names, "nothing of them stays, though the model does not know them")
}

func TestAModelThatSaysNoNumberOfMastersKeepsThoseThatAreThere(t *testing.T) {
	w := newWorld(t)
	names, _ := mastersOf(t, w.push(t, environment(t, demo)))
	require.Empty(t, names, "a new cluster begins with one")
	w.attributes[clusterOf(environment(t, demo))["?"].(map[string]any)["id"].(string)+"  masters"] = map[string]any{"count": 3, "made": 5}
	w.there = w.push(t, environment(t, demo))
	names, _ = mastersOf(t, w.there)
	require.Equal(t, []string{"murano-kube-1-m2", "murano-kube-1-m3"}, names)
}

func TestMastersKeepTheirImagesWhileTheyAreUpgraded(t *testing.T) {
	w := newWorld(t)
	model := withMasters(t, map[string]any{"masterCount": 3})
	w.attributes[clusterOf(model)["?"].(map[string]any)["id"].(string)+"  masters"] = map[string]any{"count": 3, "made": 3, "images": []any{"newer"}}
	template := w.push(t, model)
	images := map[string]any{}
	for resource, name := range serverNames(template) {
		images[name] = propertiesOf(t, template, resource)["image"]
	}
	first := images["murano-kube-1"]
	require.NotEqual(t, "newer", first)
	require.Equal(t, "newer", images["murano-kube-1-m2"])
	require.Equal(t, first, images["murano-kube-1-m3"], "one that has come since is as the first")
}

func TestAThirdNodeVotesBesideAPairOfMasters(t *testing.T) {
	model := withMasters(t, map[string]any{"masterCount": 2, "etcdNodes": "masters"})
	cluster := clusterOf(model)["?"].(map[string]any)["id"].(string)
	minion, gateway := "applicationsa-minionNodesa-instance", "applicationsa-gatewayNodesa-instance"
	effect := func(names string) string {
		return "cluster demo-cluster: " + names + " in etcd beside its two masters, so that the loss of one master loses nothing"
	}
	lock := func(w *world, instances ...string) {
		for _, instance := range instances {
			w.attributes[instance+"  nodeSettings"] = map[string]any{"locked": true}
		}
	}
	record := func(w *world, voters string) {
		w.secrets[known.SecretName(cluster, "etcd")] = []byte(`{"bootstrapped": true, "voters": ` + voters + `}`)
	}

	w := newWorld(t)
	require.Contains(t, w.rehearsed(t, model), effect("murano-kube-2 votes"))
	names, _ := mastersOf(t, w.push(t, model))
	require.Equal(t, []string{"murano-kube-1-m2"}, names)
	require.Contains(t, newWorld(t).rehearsed(t, withMasters(t, map[string]any{"masterCount": 2, "nodeCount": 2})), effect("murano-kube-2, murano-kube-3, murano-gateway-1 vote"), "with etcdNodes: all")

	w = newWorld(t)
	record(w, `["murano-kube-1", "murano-kube-1-m2", "murano-gateway-1"]`)
	require.NotContains(t, strings.Join(w.rehearsed(t, model), "\n"), "in etcd", "the gateway votes already")

	w = newWorld(t)
	lock(w, minion)
	require.Contains(t, w.rehearsed(t, model), effect("murano-gateway-1 votes"))
	require.Empty(t, w.refusals(t, model))

	w = newWorld(t)
	lock(w, minion, gateway)
	refused := w.refusals(t, model)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "cluster demo-cluster has two masters, murano-kube-1 and murano-kube-1-m2, so a third node has to vote in etcd, or the loss of one master would stop the cluster, "+
		"and all others are locked: unlock murano-kube-2, or add a minion or a gateway. Or have 1, 3 or 5 masters")
	require.ErrorContains(t, w.fail(t, model), "all others are locked")

	record(w, `["murano-kube-1", "murano-kube-1-m2", "murano-kube-2"]`)
	require.Empty(t, w.refusals(t, model), "a lock of the node that votes moves no vote")
}
