package orchestrator

import (
	"maps"
	"slices"
)

// nodeCounts are the counts of running nodes, by the lists of nodes that they count from the front.
var nodeCounts = map[string]string{"masterNodes": "masterCount", "minionNodes": "nodeCount", "gatewayNodes": "gatewayCount", "nodes": "count"}

// keepRunning puts the nodes that run in the present model to the front of their lists in a draft, where counts take them from. So another order of a list
// replaces no node: neither an edited file, nor the original file after the node in the middle was removed by an action.
func keepRunning(present, draft map[string]any) {
	running := map[string]bool{}
	eachNodeList(present, func(owner map[string]any, list string, nodes []any) {
		for _, node := range nodes[:min(max(runningCount(owner, list), 0), len(nodes))] {
			running[idOf(node)] = true
		}
	})
	eachNodeList(draft, func(owner map[string]any, list string, nodes []any) {
		ordered := slices.Clone(nodes)
		slices.SortStableFunc(ordered, func(a, b any) int { return rank(running[idOf(a)]) - rank(running[idOf(b)]) })
		owner[list] = ordered
	})
}

func rank(running bool) int {
	if running {
		return 0
	}
	return 1
}

// runningCount is how many nodes of a list run. The first master is in no list.
func runningCount(owner map[string]any, list string) int {
	count := 0
	switch number := owner[nodeCounts[list]].(type) {
	case float64:
		count = int(number)
	case int64:
		count = int(number)
	case int:
		count = number
	}
	if list == "masterNodes" {
		count--
	}
	return count
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
