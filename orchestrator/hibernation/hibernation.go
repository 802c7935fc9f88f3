// Package hibernation computes the effect of a hibernation: the servers that it stops, and the obstacles. The preview, the task and the keeper use the same plan.
package hibernation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Plan is the effect of a hibernation.
type Plan struct {
	// Servers are in the order in which they are stopped: gateways, minions and servers of applications, masters. They are started in the opposite order.
	Servers []store.StoppedServer
	// Obstacles are the reasons to refuse it; none when it may begin.
	Obstacles []string
}

// Of computes the plan for an environment's model, in any form, from stored data: it asks neither the cloud nor a node.
func Of(ctx context.Context, environmentID string, model map[string]any, secrets known.Secrets) (Plan, error) {
	var plan Plan
	nodesOf := map[string]store.StoppedServer{} // by their servers
	var single []store.StoppedServer
	var failed error
	store.EachObject(model, func(id string, object map[string]any) {
		name, _ := object["name"].(string)
		if _, template := object["generatedHeatStackName"]; template {
			plan.refuse("application %s is a Heat template, whose servers Burano does not know: it cannot be hibernated yet", name)
		}
		server, _ := object["openstackId"].(string)
		_, sized := object["flavor"] // networks and volumes have ids in the cloud, too
		if server != "" && sized {
			region, _ := object["regionName"].(string)
			single = append(single, store.StoppedServer{ID: server, Name: name, Region: region})
		}
		if _, cluster := object["gatewayNodes"]; cluster && failed == nil {
			failed = plan.cluster(ctx, known.EnvironmentVault{Secrets: secrets, Environment: environmentID, Cluster: id}, nodesOf)
		}
	})
	if failed != nil {
		return plan, failed
	}
	for _, server := range single {
		if node, is := nodesOf[server.ID]; is {
			node.Region = server.Region
			nodesOf[server.ID] = node
			continue
		}
		plan.Servers = append(plan.Servers, server)
	}
	for _, node := range nodesOf {
		plan.Servers = append(plan.Servers, node)
	}
	if len(plan.Servers) == 0 {
		plan.refuse("it has no servers in the cloud")
	}
	slices.SortFunc(plan.Servers, func(a, b store.StoppedServer) int {
		return cmp.Or(Turn(a)-Turn(b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	plan.Servers = slices.CompactFunc(plan.Servers, func(a, b store.StoppedServer) bool { return a.ID == b.ID })
	return plan, nil
}

// Turns is the number of turns of a hibernation.
const Turns = 3

// Turn is the turn in which a server is stopped: 0 for gateways, so that clients' connections end first; 1 for minions and servers of applications; 2 for masters.
func Turn(server store.StoppedServer) int {
	switch nodes.Role(server.Role) {
	case nodes.Gateway:
		return 0
	case nodes.Master:
		return 2
	}
	return 1
}

func (p *Plan) refuse(format string, args ...any) {
	p.Obstacles = append(p.Obstacles, fmt.Sprintf(format, args...))
}

// Refusal is the fault with which a plan with obstacles is refused; nil without any.
func (p Plan) Refusal(name string) error {
	if len(p.Obstacles) == 0 {
		return nil
	}
	text := p.Obstacles[0]
	if more := len(p.Obstacles) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more obstacles: burano environment hibernate %s --dry-run lists them)", more, name)
	}
	return fault.New(fault.Conflict, "Environment %s is not hibernated: %s", name, text)
}

// cluster adds the nodes of a cluster to the servers, and its obstacles to the plan. An object that is no cluster which was ever up has none.
func (p *Plan) cluster(ctx context.Context, vault known.EnvironmentVault, servers map[string]store.StoppedServer) error {
	facts, err := known.FactsOf(ctx, vault)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	for _, node := range facts.Nodes {
		switch {
		case node.Machine != nil:
			p.refuse("node %s of cluster %s is a machine outside of the cloud, which Burano cannot start again", node.Name, facts.Name)
		case node.Server != "":
			servers[node.Server] = store.StoppedServer{ID: node.Server, Name: node.Name, Role: string(node.Role), Cluster: facts.Name}
		}
	}
	if !facts.Network.IsValid() {
		p.refuse("cluster %s was not up yet, or was deployed by a former version: deploy the environment first", facts.Name)
	}
	upgrade, err := known.LoadUpgrade(ctx, vault.Load)
	if err != nil {
		return err
	}
	if upgrade != nil {
		p.refuse("cluster %s is in the middle of an upgrade: finish it, or take it back (burano cluster upgrade)", facts.Name)
	}
	rotation, err := rotationOf(ctx, facts, vault)
	if err != nil {
		return err
	}
	if rotation != nil {
		p.refuse("cluster %s is in the middle of a rotation: finish it (burano cluster rotate)", facts.Name)
	}
	return nil
}

// rotationOf is the unfinished rotation of a cluster; nil for none. It asks no node.
func rotationOf(ctx context.Context, facts known.Facts, vault known.EnvironmentVault) (*pki.Rotation, error) {
	cluster, err := nodes.NewCluster(nodes.Config{Name: facts.Name, Nodes: facts.Nodes, Vault: vault, Addressing: facts.Addressing, Datastore: facts.Datastore,
		Encapsulation: facts.Encapsulation, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	return cluster.Rotation(ctx)
}

// Running asks the cloud for the servers of the plan that run, and adds an obstacle for each one that can be neither stopped nor left. Servers that are off, shelved or gone are
// left as they are.
func (p *Plan) Running(ctx context.Context, reach func(ctx context.Context, region string) (*openstack.Project, error)) (running []store.StoppedServer, err error) {
	for _, server := range p.Servers {
		project, err := reach(ctx, server.Region)
		if err != nil {
			return nil, err
		}
		state, err := project.Server(ctx, server.ID)
		switch {
		case err != nil:
			return nil, err
		case state.Off():
		case state.Status == openstack.Active, state.Status == openstack.Shut: // the last with work of Nova on it
			running = append(running, server)
		default:
			p.refuse("server %s (%s) is %s: make it active in Nova, or stop or delete it there", server.Name, server.ID, state)
		}
	}
	return running, nil
}
