package clusters

import (
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/task"
)

// Pool is a kind of list of nodes whose first ones are there.
type Pool struct {
	Property, CountProperty string // properties
	Role                    nodes.Role
	Fewest                  int
	Noun                    string
	Most, Least             string // the reports at the limits
	beside                  int    // nodes that count but are not in the list
}

// The ones of a cluster, at whose limits Murano's words are reported, and the one of a group.
var (
	Minions  = Pool{"minionNodes", "nodeCount", nodes.Minion, 1, "node", "The maximum number of nodes has been reached", "At least one node must be in cluster", 0}
	Gateways = Pool{"gatewayNodes", "gatewayCount", nodes.Gateway, 1, "gateway", "The maximum number of gateway nodes has been reached", "No gateway nodes that can be removed", 0}
	Grouped  = Pool{"nodes", "count", nodes.Minion, 0, "node of the group", "The maximum number of nodes has been reached", "The group has no nodes that can be removed", 0}
	// Masters are the ones beside the first.
	Masters = Pool{Property: "masterNodes", CountProperty: "masterCount", Role: nodes.Master, Noun: "master", beside: 1}
)

// List is such a list, with the object that has it: a cluster, or one of its groups.
type List struct {
	Pool
	Of *muranopl.Object
}

// In is the list of an object.
func (p Pool) In(object *muranopl.Object) List { return List{p, object} }

// Lists are all of a cluster.
func Lists(cluster *muranopl.Object) []List {
	if task.OnlyGateways(cluster) {
		return []List{{Gateways, cluster}}
	}
	lists := []List{{Masters, cluster}, {Minions, cluster}}
	for _, group := range cluster.Objects(PropertyGroups) {
		lists = append(lists, List{Grouped, group})
	}
	return append(lists, List{Gateways, cluster})
}

// All are the active and idle nodes of the list.
func (l List) All() []*muranopl.Object { return l.Of.Objects(l.Property) }

// Size is how many nodes are to run.
func (l List) Size() int { return min(l.Of.Int(l.CountProperty)-l.beside, len(l.All())) }

// Active lists the nodes that are to run, and idle the others.
func (l List) Active() []*muranopl.Object { return l.All()[:l.Size()] }

func (l List) idle() []*muranopl.Object { return l.All()[l.Size():] }

// Limit is how many may run, and the source of that limit.
func (l List) Limit() (most int, said string) {
	if l.Property == Grouped.Property {
		most = l.Of.Int(PropertyMaximum)
		return most, fmt.Sprintf("the maximum of group %s is %d", l.Of.Text("name"), most)
	}
	return len(l.All()), fmt.Sprintf("%s lists %d", l.Property, len(l.All()))
}
