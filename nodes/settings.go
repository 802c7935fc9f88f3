package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

// lockedReach is how long a locked node may take until it answers: one that is off on purpose holds nothing up.
const lockedReach = 10 * time.Second

// lookAtLocked finds out which locked nodes do not answer. They are left as they are until they are unlocked.
func (d *deployment) lookAtLocked(ctx context.Context) {
	var mutex sync.Mutex
	var all sync.WaitGroup
	for _, node := range d.cluster.config.staying() {
		if !node.Settings.Locked || node.Role == Master {
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
		return kube.ApplySettings(ctx, config, node.Name, node.Settings)
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
