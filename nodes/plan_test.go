package nodes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/plan"
)

// Each file of testdata/plans has the steps of one kind of cluster, and the dependencies of each.
func TestThePlanOfEachKindOfClusterIsAsReviewed(t *testing.T) {
	local := []kube.StorageClass{{Name: "local", Backend: kube.Local}}
	throughMasters, err := kube.ParseProxy(kube.ProxySettings{Masters: "registry.example.org"})
	require.NoError(t, err)
	again := func(d *deployment) { d.again, d.record.Bootstrapped, d.record.Members = true, true, d.design.voters }
	for name, kind := range map[string]struct {
		nodes  []Node
		config func(*Config)
		state  func(*deployment)
	}{
		"new":              {nodes: nodesOf(1, 1, 1)},
		"again":            {nodes: nodesOf(1, 2, 2), state: again},
		"without-program":  {nodes: nodesOf(1, 1, 1), config: func(c *Config) { c.Binary = "" }},
		"flannel":          {nodes: nodesOf(1, 1, 1), config: func(c *Config) { c.Network = Flannel }},
		"several-masters":  {nodes: nodesOf(3, 2, 1), config: func(c *Config) { c.DNS, c.Metrics, c.StorageClasses = true, true, local }},
		"several-again":    {nodes: nodesOf(3, 2, 1), config: func(c *Config) { c.StorageClasses = local }, state: again},
		"pair":             {nodes: nodesOf(2, 1, 1), state: again},
		"shrinking":        {nodes: nodesOf(3, 1, 1), state: func(d *deployment) { again(d); d.cluster.shrinking = true }},
		"in-kubernetes":    {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.Datastore = network.InKubernetes }},
		"kubernetes-again": {nodes: nodesOf(1, 2, 1), config: func(c *Config) { c.Datastore = network.InKubernetes }, state: again},
		"registry":         {nodes: nodesOf(1, 2, 0), config: func(c *Config) { c.StorageClasses, c.Registry = local, &kube.Registry{} }},
		"registry-alone":   {nodes: nodesOf(1, 1, 1), config: func(c *Config) { c.Registry = &kube.Registry{} }, state: again},
		"virtual":          {nodes: nodesOf(1, 1, 3), config: func(c *Config) { c.Virtual.Address = netip.MustParseAddr("10.0.0.200") }},
		"api-address":      {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.APIAddress.Address, c.Nodes[2].Leaving = netip.MustParseAddr("10.0.0.201"), true }, state: again},
		"through-masters":  {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.Proxy = throughMasters }},
		"images":           {nodes: nodesOf(1, 2, 0), state: func(d *deployment) { d.images = []ContainerImage{{Name: "one"}} }},
		"gateways":         {nodes: nodesOf(0, 0, 2)},
		"gateways-virtual": {nodes: nodesOf(0, 0, 2), config: func(c *Config) { c.Virtual.Address = netip.MustParseAddr("10.0.0.200") }},
		"machine":          {nodes: nodesOf(1, 2, 1), config: func(c *Config) { c.Nodes[2].Machine, c.Nodes[2].Settings.Cordoned = &access.Machine{}, true }},
		"further-networks": {nodes: nodesOf(1, 2, 2), config: func(c *Config) { c.Further = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")} }},
		"locked-and-away":  {nodes: nodesOf(1, 2, 1), state: func(d *deployment) { again(d); d.away = d.cluster.config.Nodes[2:3] }},
		"locked-gateway": {nodes: nodesOf(1, 1, 2), config: func(c *Config) {
			c.Virtual.Address, c.Nodes[2].Settings.Locked = netip.MustParseAddr("10.0.0.200"), true
		}, state: again},
		"locked-master":    {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.Nodes[1].Settings.Locked = true }, state: again},
		"dead":             {nodes: nodesOf(1, 2, 1), config: func(c *Config) { c.Nodes[2].Leaving = true }, state: func(d *deployment) { again(d); d.dead = d.cluster.config.Nodes[2:3] }},
		"master-replaced":  {nodes: nodesOf(2, 1, 1), config: func(c *Config) { c.Nodes[1].Leaving = true }, state: func(d *deployment) { again(d); d.design.former = d.cluster.config.Nodes[1:2] }},
		"master-elected":   {nodes: nodesOf(4, 1, 1), config: func(c *Config) { c.Nodes[3].Leaving = true }, state: func(d *deployment) { again(d); d.design.former = d.cluster.config.Nodes[3:4] }},
		"other-lead":       {nodes: nodesOf(3, 1, 1), state: func(d *deployment) { again(d); d.lead = d.cluster.config.Nodes[1] }},
		"gateway-leaves":   {nodes: nodesOf(1, 1, 3), config: func(c *Config) { c.Virtual.Address, c.Nodes[4].Leaving = netip.MustParseAddr("10.0.0.200"), true }, state: again},
		"masters-run-pods": {nodes: podMasters(3, 1, 1), config: func(c *Config) { c.StorageClasses = local }},
		"masters-end-pods": {nodes: nodesOf(3, 1, 1), state: func(d *deployment) { again(d); d.podsEnd = d.cluster.config.Nodes[:3] }},
		"registered-masters-end-pods": {nodes: nodesOf(1, 1, 1), config: func(c *Config) { c.Datastore = network.InKubernetes },
			state: func(d *deployment) { again(d); d.podsEnd = d.cluster.config.Nodes[:1] }},
		"issuers":            {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.Issuers = anIssuer() }, state: func(d *deployment) { again(d); d.signIn.staged = true }},
		"keystone-sign-in":   {nodes: nodesOf(3, 1, 1), config: func(c *Config) { c.KeystoneSignIn = true }, state: again},
		"keystone-ends":      {nodes: nodesOf(1, 1, 1), state: func(d *deployment) { again(d); d.signIn.ends = true }},
		"registry-has-ended": {nodes: nodesOf(1, 1, 1), state: func(d *deployment) { again(d); d.registry = &registryRecord{Ended: true} }},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Name: "c", Nodes: kind.nodes, Vault: newVault(), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Binary: "/bin/burano"}
			if kind.config != nil {
				kind.config(&config)
			}
			cluster, err := NewCluster(config)
			require.NoError(t, err)
			d := &deployment{cluster: cluster, installed: map[string]installed{}, again: config.Alone(), lead: config.Nodes[0]}
			d.design = design{cluster: cluster.config, driver: cluster.driver, binary: config.Binary, storage: config.backends()}
			if !config.Alone() {
				d.record.Elects = config.severalMasters()
				d.design.elect = d.record.Elects
				for _, node := range config.staying()[:min(3, len(config.staying()))] {
					d.design.voters = append(d.design.voters, node.Name)
				}
			}
			if config.Registry != nil {
				d.registry = &registryRecord{}
			}
			if kind.state != nil {
				kind.state(d)
			}
			if config.Alone() {
				reviewed(t, "plans/"+name+".txt", drawn(t, d.planAlone(nil)))
				return
			}
			reviewed(t, "plans/"+name+".txt", drawn(t, d.plan()))
		})
	}
}

// drawn is a plan as a list, a step a line: its needs without those that others of them imply, and the steps that it waits for without needing them.
func drawn(t *testing.T, p *plan.Plan) string {
	steps, err := p.Steps()
	require.NoError(t, err)
	all := map[string]map[string]bool{} // by step: everything before it
	var lines []string
	for _, step := range steps {
		before, implied := map[string]bool{}, map[string]bool{}
		for _, id := range step.After {
			before[id] = true
			maps.Copy(implied, all[id])
		}
		after := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(id string) bool { return implied[id] })
		maps.Copy(before, implied)
		all[step.ID()] = before
		line := step.ID() + " | " + strings.Join(after, ", ")
		var soft []string
		for _, one := range step.Soft {
			text := fmt.Sprintf("%s for %s", one.ID, one.For)
			if one.When != nil {
				text += " where it helps"
			}
			soft = append(soft, text)
		}
		slices.Sort(soft)
		if len(soft) > 0 {
			line += " | " + strings.Join(soft, ", ")
		}
		if len(step.Mutexes) > 0 {
			line += " | one at a time: " + strings.Join(step.Mutexes, ", ")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// Each file of testdata/parts has the steps that take one node of a cluster so far.
func TestThePartsOfAPlanAreAsReviewed(t *testing.T) {
	for _, role := range []Role{Master, Minion, Gateway} {
		for _, extent := range []Extent{ToEtcd, ToNetwork, ToNode} {
			name := fmt.Sprintf("%s-%s", role, extent)
			t.Run(name, func(t *testing.T) {
				config := Config{Name: "c", Nodes: nodesOf(1, 2, 2), Vault: newVault(), NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Binary: "/bin/burano", DNS: true}
				config.Virtual.Address = netip.MustParseAddr("10.0.0.200")
				cluster, err := NewCluster(config)
				require.NoError(t, err)
				d := &deployment{cluster: cluster, installed: map[string]installed{}, lead: config.Nodes[0], registry: &registryRecord{}}
				d.design = design{cluster: cluster.config, driver: cluster.driver, binary: config.Binary}
				for _, node := range config.Nodes[:3] {
					d.design.voters = append(d.design.voters, node.Name)
				}
				at := slices.IndexFunc(config.Nodes, func(node Node) bool { return node.Role == role })
				part, needed := extent.part(d, config.Nodes[at])
				reviewed(t, "parts/"+name+".txt", drawn(t, part))
				for _, step := range part.All() {
					if step.Node == config.Nodes[at].Name {
						require.True(t, needed[step.ID()], "a step of the node itself must succeed: %s", step.ID())
					}
				}
			})
		}
	}
}
