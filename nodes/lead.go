package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

// leadStagger is the head start of each master to show that it has its part of the store, before another such master is taken.
const leadStagger = 2 * time.Second

// chooseLead chooses the master that the others join, which is not locked: of several the first one that answers and has its part of the store. Where none has, it is the
// first of all, as in a new cluster.
func (d etcdSteps) chooseLead(ctx context.Context) {
	masters := d.cluster.config.servingMasters()
	d.lead = masters[0]
	if len(masters) > 1 && d.again {
		d.lead = d.firstWithData(ctx, masters)
	}
	d.cluster.lead(d.lead)
	if d.lead.Name != masters[0].Name {
		d.report(ctx, d.lead, "has the cluster's data, and the other masters join it")
	}
}

func (d etcdSteps) firstWithData(ctx context.Context, masters []Node) Node {
	asking, cancel := context.WithTimeout(ctx, lockedReach)
	defer cancel()
	found := make(chan Node, len(masters))
	var all sync.WaitGroup
	for i, master := range masters {
		all.Go(func() {
			if !slices.Contains(d.record.Members, master.Name) {
				return
			}
			data, err := d.etcdData(asking, master)
			if err != nil || !data.there {
				return
			}
			if i > 0 {
				select { // earlier ones first
				case <-time.After(time.Duration(i) * leadStagger):
				case <-asking.Done():
					return
				}
			}
			found <- master
		})
	}
	go func() { all.Wait(); close(found) }()
	if lead, there := <-found; there {
		return lead
	}
	return masters[0]
}

const (
	stepSwact = "swact"
	// takeOverPatience is how long another master may take to lead. Those that wait look every two seconds.
	takeOverPatience = 20 * time.Second
)

// Swact has others lead in place of a master: its member of etcd, its controllers and scheduler, its publisher and its controllers of volumes. They run on as
// candidates, and its API server serves on. Another master has the address of the API then. The caller makes sure that another master serves.
func Swact(ctx context.Context, c *Cluster, name string) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	return c.config.Step(ctx, name, stepSwact, func(ctx context.Context) error {
		moved, err := swact(ctx, c, node)
		if err == nil && len(moved) == 0 {
			c.config.Report(ctx, name, "it led nothing")
		}
		return err
	})
}

// swact returns what others lead now.
func swact(ctx context.Context, c *Cluster, node Node) (moved []string, err error) {
	held, err := passOnAddress(ctx, c.servers, node)
	if err != nil {
		return nil, err
	}
	if held {
		c.config.Report(ctx, node.Name, fmt.Sprintf("another master has the address %s now", c.config.APIAddress.Address))
		moved = append(moved, "the address of the API")
	}
	before := len(moved)
	api, err := c.bootstrap(ctx)
	if err != nil {
		return moved, err
	}
	for _, program := range kube.Elected() {
		led, err := passOn(ctx, c.servers, api, node, program)
		if err != nil {
			return moved, err
		}
		if led {
			moved = append(moved, program)
		}
	}
	// These give up their lead themselves when they end.
	if _, err := c.script(ctx, node.Name, ssh.Script{Name: "pass on publishing and volumes", Body: "for unit in burano-publish " + kube.StorageUnit + "; do if systemctl -q is-active $unit; then systemctl restart $unit; fi; done"}); err != nil {
		return moved, err
	}
	etcdMoved, err := passOnEtcd(ctx, c.store, node)
	if err != nil {
		return moved, err
	}
	if etcdMoved {
		moved = append(moved, "etcd")
	}
	if len(moved) > before {
		c.config.Report(ctx, node.Name, "others lead now: "+strings.Join(moved[before:], ", "))
	}
	return moved, nil
}

// passOn has a program on another master lead in place of the one on a node. The program itself would give up its lease only when that ends.
func passOn(ctx context.Context, c *servers, api *rest.Config, node Node, program string) (led bool, err error) {
	holder, err := kube.LeaseHolder(ctx, api, program)
	if err != nil || holder != node.Name {
		return false, err
	}
	defer func() { // it is a candidate again, also after a failure
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellLimit)
		defer cancel()
		_, failed := c.script(last, node.Name, ssh.Script{Name: "start " + program, Body: "systemctl start --no-block " + program})
		err = errors.Join(err, failed)
	}()
	if _, err := c.script(ctx, node.Name, ssh.Script{Name: "stop " + program, Body: "systemctl stop " + program}); err != nil {
		return true, err
	}
	if err := kube.ReleaseLease(ctx, api, program, node.Name); err != nil {
		return true, err
	}
	return true, wait.Every(insideLook).For(takeOverPatience).Until(ctx, func(ctx context.Context) error {
		holder, err := kube.LeaseHolder(ctx, api, program)
		if err == nil && (holder == "" || holder == node.Name) {
			err = fmt.Errorf("no other master runs a %s that leads in place of the one on %s", program, node.Name)
		}
		if err != nil {
			return wait.Again(err)
		}
		return nil
	})
}

// passOnEtcd has another member of etcd lead in place of the one on a node.
func passOnEtcd(ctx context.Context, c *store, node Node) (led bool, err error) {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return false, err
	}
	client, err := c.etcdAs(ctx, authorities, etcd.Root)
	if err != nil {
		return false, err
	}
	defer client.Close()
	if led, err = etcd.Leads(ctx, client, etcdNode(node)); err != nil || !led {
		return led, err
	}
	if err := etcd.Yield(ctx, client, etcdNode(node)); err != nil {
		return true, err
	}
	still, err := etcd.Leads(ctx, client, etcdNode(node))
	if err == nil && still {
		err = fmt.Errorf("the member of etcd on %s leads on: no other voting member answers", node.Name)
	}
	return true, err
}

// swactPolitely is Swact before a master ends its service. A failure is reported: the others take over by themselves, only later.
func swactPolitely(ctx context.Context, c *Cluster, node Node) {
	if node.Role != Master || !c.config.severalMasters() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, farewellLimit)
	defer cancel()
	if _, err := swact(limited, c, node); err != nil && ctx.Err() == nil {
		c.config.Report(ctx, node.Name, fmt.Sprintf("the others take over what it leads when it is gone: %v", err))
	}
}
