package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// lockedReach is how long a locked node may take until it answers: one that is off on purpose holds nothing up.
const lockedReach = 10 * time.Second

// lookAtLocked finds out which locked nodes do not answer. They are left as they are until they are unlocked.
func (d *deployment) lookAtLocked(ctx context.Context) {
	var mutex sync.Mutex
	var all sync.WaitGroup
	for _, node := range d.cluster.config.staying() {
		if !node.Settings.Locked || node.Name == d.lead.Name {
			continue
		}
		all.Go(func() {
			if met, err := d.cluster.connections.Met(ctx, node.server()); err != nil || !met {
				return // it is new, and awaited like any other
			}
			asked, cancel := context.WithTimeout(ctx, lockedReach)
			defer cancel()
			_, err := d.cluster.connect(asked, node)
			if err == nil || ctx.Err() != nil {
				return
			}
			d.report(ctx, node, "is locked and does not answer: it is left as it is")
			mutex.Lock()
			defer mutex.Unlock()
			d.away = append(d.away, node)
		})
	}
	all.Wait()
}

// present are the nodes that the deployment is for.
func (d *deployment) present() []Node {
	return slices.DeleteFunc(d.cluster.config.staying(), func(node Node) bool {
		return slices.ContainsFunc(d.away, func(away Node) bool { return away.Name == node.Name })
	})
}

// ApplySettings applies the node's settings in Kubernetes; opened makes it take pods again, whoever has cordoned it.
func (c *Cluster) ApplySettings(ctx context.Context, name string, opened bool) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	config, err := c.bootstrap(ctx)
	if err != nil {
		return err
	}
	step := stepSettings
	if opened {
		step = stepUncordon // a deployment of the same task has the other one
	}
	return c.config.Step(ctx, node.Name, step, func(ctx context.Context) error {
		if opened {
			if err := kube.Open(ctx, config, node.Name); err != nil {
				return err
			}
		}
		return kube.ApplySettings(ctx, config, node.Name, node.settings())
	})
}

// Empty moves everything needed away from a node, as Remove does, but the node stays: it takes no pods until ApplySettings or Deploy. When pods do not go
// in time the error is a *PodsStay, and unless forced the node takes pods again.
func (c *Cluster) Empty(ctx context.Context, name string, forced bool) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	config, err := c.bootstrap(ctx)
	if err != nil {
		return err
	}
	err = removal{c}.evacuate(ctx, config, []Node{node})
	if err != nil && !forced {
		err = removal{c}.stay(ctx, config, []Node{node}, err)
	}
	if err != nil {
		return fmt.Errorf("empty %s: %w", name, err)
	}
	return nil
}

// Missed describes the further loss while a node is away: "" if only the node is missed.
func (c *store) Missed(ctx context.Context, name string) (string, error) {
	node, err := c.node(name)
	if err != nil {
		return "", err
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return "", err
	}
	client, err := c.etcdAs(ctx, authorities, etcd.Root)
	if err != nil {
		return "", err
	}
	defer client.Close()
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return "", err
	}
	own := members.Of(etcdNode(node))
	if own == nil || own.IsLearner {
		return "", nil
	}
	voters, answering := 0, 0
	for _, member := range members {
		if member.IsLearner {
			continue
		}
		voters++
		if member.ID != own.ID && etcd.Answers(ctx, client, member) {
			answering++
		}
	}
	if answering*2 > voters {
		return "", nil
	}
	return fmt.Sprintf("without it only %d of %d members of etcd are left that answer, which is no majority, so that nothing can be written meanwhile", answering, voters), nil
}

// Boot identifies one run of a node's system: on a machine by the kernel's boot id, in a container by its start.
func (c *servers) Boot(ctx context.Context, name string) (string, error) {
	out, err := c.script(ctx, name, ssh.Script{Name: "tell the run", Body: "cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat"})
	return strings.Join(strings.Fields(out), " "), err
}

// stepIdle is the step that ends the service of a locked gateway or master.
const stepIdle = "out of service"

//go:embed scripts/end-units.sh
var endUnitsScript string

// idleSteps end the service of locked gateways and masters. Such a node keeps its files, its forwarders, its place in the network of pods and its member of
// etcd; its other units end, and do not start with the node. All others know by then that they have to use other nodes.
type idleSteps struct{ *deployment }

func (d idleSteps) steps() []step {
	others := []soft{
		{name: stepAPIForwarder, nodes: d.with(Minion, Gateway), limit: joinGrace},
		{name: stepControllers, nodes: serving(d.deployment, Master), limit: joinGrace},
		{name: stepGatewayAddresses, nodes: d.leads(), limit: joinGrace},
		{name: stepVirtualAddress, nodes: serving(d.deployment, Gateway), limit: joinGrace},
		{name: stepAPIAddress, nodes: serving(d.deployment, Master), limit: joinGrace},
	}
	return []step{{name: stepIdle, on: only(d.present(), d.cluster.config.idle), after: needs(here(stepFiles), ifPlanned(here(stepNetwork))), soft: others, run: d.end}}
}

// idle reports whether a node serves nothing, because it is a locked gateway or master.
func (c Config) idle(node Node) bool {
	if node.Role == Master && slices.ContainsFunc(c.servingMasters(), func(other Node) bool { return other.Name == node.Name }) {
		return false
	}
	return node.Role != Minion && node.Settings.Locked
}

// servingUnits are the units by which a gateway or master serves others, in the order in which they end.
func (d design) servingUnits(node Node, of layout) []string {
	if node.Role == Gateway {
		return []string{virtualUnit, "burano-gateway", "haproxy"}
	}
	stay := slices.Concat([]string{"etcd", etcd.ForwarderUnit, kube.LeaseUnit}, d.driver.Units().Daemons, of.runtime)
	if node.RunsPods() { // its taint ends them, as on a locked minion
		stay = append(stay, "kubelet", "kube-proxy", kube.StorageNodeUnit)
	}
	var ends []string
	for name := range of.units {
		if !slices.Contains(stay, name) && name != "kube-apiserver" {
			ends = append(ends, name)
		}
	}
	slices.Sort(ends)
	return append(ends, "kube-apiserver")
}

// idle are files without the links by which these units start with the node.
func (l layout) idle(files []ssh.File, ended []string) []ssh.File {
	return slices.DeleteFunc(files, func(file ssh.File) bool {
		name, starts := strings.CutPrefix(file.Path, systemd.Folder+"/multi-user.target.wants/")
		return starts && slices.Contains(ended, strings.TrimSuffix(name, ".service"))
	})
}

// end ends the service of a node: connections through a gateway have a while to end, and a master leads no longer.
func (d idleSteps) end(ctx context.Context, node Node) error {
	if node.Role == Gateway {
		if _, err := d.script(ctx, node, "close gateway", closeGatewayScript, nil); err != nil {
			return err
		}
	} else {
		swactPolitely(ctx, d.cluster, node)
	}
	out, err := d.script(ctx, node, "end units", endUnitsScript, map[string]string{"UNITS": strings.Join(d.design.servingUnits(node, d.found(node).layout), "\n")})
	if strings.Contains(out, "ended") {
		d.report(ctx, node, "is locked, and serves nothing until it is unlocked")
	}
	return err
}
