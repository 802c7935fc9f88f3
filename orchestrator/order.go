package orchestrator

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// nodeCounts are the counts of running nodes, by the lists of nodes that they count from the front. masterCount counts the first master, too, which is in no list.
var nodeCounts = map[string]string{"masterNodes": "masterCount", "minionNodes": "nodeCount", "gatewayNodes": "gatewayCount", "nodes": "count"}

// keepOrder gives the nodes in a draft's lists the order of the present model, in which counts take the running ones from the front. Nodes that the present model does not
// have come after them. So the order in a file decides nothing: it replaces no node, and a lower count removes the same node from any order.
func keepOrder(present, draft map[string]any) {
	places := map[string]int{} // from 1 on
	eachNodeList(present, func(_ map[string]any, _ string, nodes []any) {
		for i, node := range nodes {
			places[idOf(node)] = i + 1
		}
	})
	place := func(node any) int { return cmp.Or(places[idOf(node)], math.MaxInt) }
	eachNodeList(draft, func(owner map[string]any, list string, nodes []any) {
		ordered := slices.Clone(nodes)
		slices.SortStableFunc(ordered, func(a, b any) int { return cmp.Compare(place(a), place(b)) })
		owner[list] = ordered
	})
}

// eachNodeList calls do for each list of objects in a value that has a count beside it.
func eachNodeList(value any, do func(owner map[string]any, list string, nodes []any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			nodes, is := v[key].([]any)
			if _, counted := v[nodeCounts[key]]; is && counted && v["?"] != nil && !slices.ContainsFunc(nodes, func(node any) bool { return idOf(node) == "" }) {
				do(v, key, nodes)
			}
			eachNodeList(v[key], do)
		}
	case []any:
		for _, one := range v {
			eachNodeList(one, do)
		}
	}
}
