package desired

import (
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
)

// Group is a group of minions.
type Group struct {
	Name string
	// Minimum is nil where the number of nodes does not follow the load.
	Minimum        *int
	Maximum, Count int
	After          int // seconds that a node is not needed before it goes
	Settings       kube.Settings
	Flavor         string // of a new node
	Floating       bool
	Zones          []string // none: the zone of the cluster's first minion
	NamingPattern  string   // "#" is the node's number
}

// ReadGroup reads one group of a loaded model.
func ReadGroup(group *muranopl.Object) Group {
	var wrong []error // the class's contracts hold in a loaded model
	p, _ := propertiesOf(group, &wrong)
	return readGroup(p)
}

func readGroup(p properties) Group {
	group := Group{Name: p.text("name"), Minimum: p.optional("minimum"), Maximum: p.number("maximum", 0), Count: p.number("count", 0), After: p.number("scaleDownAfter", defaultScaleDownAfter),
		Settings: kube.Settings{Labels: p.pairs("labels")}, Flavor: p.text("flavor"), Floating: p.flag("assignFloatingIp", false), Zones: p.texts("zones"),
		NamingPattern: p.text("namingPattern")}
	if group.Maximum == 0 {
		group.Maximum = defaultMaximum
	}
	if group.NamingPattern == "" {
		group.NamingPattern = group.Name + "-#"
	}
	for _, taint := range p.objects("taints") {
		group.Settings.Taints = append(group.Settings.Taints, kube.Taint{Key: taint.text("key"), Value: taint.text("value"), Effect: taint.text("effect")})
	}
	return group
}

// Elastic reports whether the number of nodes follows the load.
func (g Group) Elastic() bool { return g.Minimum != nil }

// Fewest is the number of nodes that always run.
func (g Group) Fewest() int {
	if g.Minimum == nil {
		return 0
	}
	return *g.Minimum
}

// Between is the number of nodes within the limits that is nearest to the count.
func (g Group) Between(count int) int { return min(max(count, g.Fewest()), g.Maximum) }

// CheckLimits finds limits that no count fits.
func (g Group) CheckLimits() error {
	if g.Fewest() > g.Maximum {
		return fmt.Errorf("minimum of group %s is %d but its maximum is %d: allow more, or ask for fewer", g.Name, g.Fewest(), g.Maximum)
	}
	return nil
}

func (c *Cluster) readGroups(p properties) {
	flavor := ""
	if minions := p.objects("minionNodes"); len(minions) > 0 {
		if instance, is := minions[0].object("instance"); is {
			flavor = instance.text("flavor")
		}
	}
	for _, entry := range p.objects("minionGroups") {
		group := readGroup(entry)
		if group.Flavor == "" {
			group.Flavor = flavor
		}
		c.Groups = append(c.Groups, group)
	}
	c.mistaken(c.CheckGroups()...)
}

// CheckGroups finds the mistakes in a cluster's groups.
func (c *Cluster) CheckGroups() (mistakes []error) {
	seen := map[string]bool{}
	for _, group := range c.Groups {
		if seen[group.Name] {
			mistakes = append(mistakes, fmt.Errorf("two groups are called %s: give each a name of its own", group.Name))
		}
		seen[group.Name] = true
		if group.Count > group.Maximum {
			mistakes = append(mistakes, fmt.Errorf("count of group %s is %d but its maximum is %d: allow more, or ask for fewer", group.Name, group.Count, group.Maximum))
		}
		if err := group.CheckLimits(); err != nil {
			mistakes = append(mistakes, err)
		}
		if err := group.Settings.Check(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("group %s: %w", group.Name, err))
		}
	}
	return mistakes
}

// GatewayLimits are the limits of a cluster whose number of gateways follows its connections.
type GatewayLimits struct {
	Minimum  int `json:"minimum"`
	Maximum  int `json:"maximum"`
	Sessions int `json:"sessions"`         // connections at once that a gateway has at most, on average
	After    int `json:"scale_down_after"` // seconds
}

func (c *Cluster) readGatewayLimits(p properties) {
	minimum := p.optional("gatewayMinimum")
	if minimum == nil {
		return
	}
	c.GatewayLimits = &GatewayLimits{Minimum: *minimum, Maximum: c.Gateways.Listed, Sessions: p.number("gatewaySessions", defaultSessions),
		After: p.number("gatewayScaleDownAfter", defaultScaleDownAfter)}
	c.mistaken(c.CheckGatewayLimits())
}

// CheckGatewayLimits finds a minimum that the list of gateways does not allow.
func (c *Cluster) CheckGatewayLimits() error {
	if limits := c.GatewayLimits; limits != nil && limits.Minimum > limits.Maximum {
		return fmt.Errorf("gatewayMinimum of cluster %s is %d but gatewayNodes lists only %d: list more, or ask for fewer", c.Name, limits.Minimum, limits.Maximum)
	}
	return nil
}

// Between is the number of gateways within the limits that is nearest to the count.
func (l GatewayLimits) Between(count int) int { return min(max(count, l.Minimum), l.Maximum) }

// Needed is the number of gateways that so many open connections need, where now gateways run. One goes only when the others would have at most three
// quarters of their maximum of connections: else the next few connections would bring it back.
func (l GatewayLimits) Needed(open int64, now int) int {
	each := int64(l.Sessions)
	enough := l.Between(int(min((open+each-1)/each, int64(l.Maximum))))
	if enough >= now {
		return enough
	}
	easy := l.Between(int(min((4*open+3*each-1)/(3*each), int64(l.Maximum))))
	return min(easy, now)
}
