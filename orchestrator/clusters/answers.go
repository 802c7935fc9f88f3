package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// Await has the environment's deployment end only when the cluster answers: pods find the API server and names, and gateways pods behind these ports. Kubernetes calls
// nodes and pods ready before the nodes' rules and routes lead to them. All is awaited at once when the applications are
// deployed: so no application waits for another one's.
func (c *Clusters) Await(object *muranopl.Object, ports ...uint16) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	known, there := c.awaited[object.ID()]
	if !there {
		if c.awaited == nil {
			c.awaited = map[string]map[uint16]bool{}
		}
		known = map[uint16]bool{}
		c.awaited[object.ID()] = known
		c.awaitedObjects = append(c.awaitedObjects, object)
	}
	for _, port := range ports {
		known[port] = true
	}
}

// answersAwaited waits until clusters answer.
type answersAwaited struct{ *Clusters }

// AnswersAwaitedOf returns the answers that a task awaits of its clusters.
func AnswersAwaitedOf(c *Clusters) answersAwaited { return answersAwaited{c} }

// AwaitAnswers waits for the clusters that must answer.
func (c answersAwaited) AwaitAnswers(ctx context.Context) error {
	c.Clusters.mutex.Lock()
	objects := slices.Clone(c.Clusters.awaitedObjects)
	c.Clusters.mutex.Unlock()
	return task.Each(objects, func(object *muranopl.Object) error { return c.answers(ctx, object) })
}

// answers waits until the cluster answers. A missing answer is a warning: the cluster is there, and may still answer later.
func (c answersAwaited) answers(ctx context.Context, object *muranopl.Object) error {
	live, err := c.Clusters.Live(object)
	if err != nil || object.Destroyed() {
		return nil // the task has taken it away
	}
	c.Clusters.mutex.Lock()
	ports := slices.Sorted(maps.Keys(c.Clusters.awaited[object.ID()]))
	c.Clusters.mutex.Unlock()
	return c.Runtime.Step(ctx, object, "wait until the cluster answers", func(ctx context.Context) error {
		var inside, serving map[string]error
		var both sync.WaitGroup
		both.Go(func() { inside = live.AwaitInside(ctx) })
		both.Go(func() { serving = live.AwaitServing(ctx, ports...) })
		both.Wait()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, missing := range []map[string]error{inside, serving} {
			for _, node := range slices.Sorted(maps.Keys(missing)) {
				text := strings.ReplaceAll(missing[node].Error(), "\n", "; ")
				c.Reports.Warn(ctx, object, fmt.Sprintf("%s does not answer yet: %s", node, text), "It may come by itself. What keeps it back is in the cluster's events, and in burano cluster show.")
			}
		}
		return nil
	})
}

// Previews foresee the effects of a deployment within the clusters.
func (c *Clusters) Previews() workloads.Previews {
	return workloads.Previews{Runtime: c.Runtime, Objects: c.Objects, Reports: c.Reports, Connect: c.Former}
}

// GatewayAddresses are the addresses at which users reach a cluster's gateways.
func (c *Clusters) GatewayAddresses(cluster *muranopl.Object) []string {
	return GatewayAddresses(cluster)
}

// GatewayAddresses are the addresses at which users reach a cluster's gateways: their shared address, or else the floating address of each, if it has
// one.
func GatewayAddresses(cluster *muranopl.Object) (gateways []string) {
	if virtual := task.Desired(cluster).Virtual; virtual.Address.IsValid() {
		return []string{virtual.Reach().String()}
	}
	for _, node := range ActiveNodes(cluster) {
		if node.Role == "gateway" {
			instance := node.Object.Object("instance")
			address := instance.Text("floatingIpAddress")
			if addresses := instance.Texts("ipAddresses"); address == "" && len(addresses) > 0 {
				address = addresses[0]
			}
			if address != "" { // the task knows none, such as an action whose cluster did not come up
				gateways = append(gateways, address)
			}
		}
	}
	return gateways
}
