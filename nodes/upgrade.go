package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/kubernetes-version.sh
var kubernetesVersionScript string

// Versions are the versions of Kubernetes on each node, such as v1.36.3, from its programs; nodes that do not answer are missing.
func (c *servers) Versions(ctx context.Context) map[string]string {
	found := map[string]string{}
	var mutex sync.Mutex
	var all sync.WaitGroup
	for _, node := range c.config.Nodes {
		all.Go(func() {
			said, err := c.script(ctx, node.Name, ssh.Script{Name: "ask for the version of Kubernetes", Body: kubernetesVersionScript})
			if err != nil {
				c.config.Logger.InfoContext(ctx, "a node does not say which Kubernetes it has", "node", node.Name, "error", err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			found[node.Name] = strings.TrimSpace(said)
		})
	}
	all.Wait()
	return found
}

// Obstacle is a problem in a cluster that prevents an upgrade.
type Obstacle struct {
	Text string // for a person, with the remedy
	// Grave is true if the cluster might be lost. Other obstacles may also end well, or can be accepted by a user who knows of them.
	Grave bool
}

// Obstacles looks for problems that would stop an upgrade to a minor version of Kubernetes (1.<minor>): nodes and members of etcd that do not work,
// disruption budgets that let no pod go, requests for APIs that it does not have any more, and a rotation that has not ended.
func (c *Cluster) Obstacles(ctx context.Context, minor int) (list []Obstacle, err error) {
	grave := func(format string, args ...any) { list = append(list, Obstacle{fmt.Sprintf(format, args...), true}) }
	status := c.Status(ctx, nil)
	voters := 0
	for _, member := range status.Members {
		switch {
		case !member.Answers:
			grave("etcd member %s does not answer: repair its node first", member.Name)
		case member.Space.Full:
			grave("the store of etcd member %s is full: make room first (burano cluster show says more)", member.Name)
		case !member.Learner:
			voters++
		}
	}
	if status.Etcd != nil {
		grave("etcd does not answer: %v", status.Etcd)
	} else if voters == 0 {
		grave("etcd has no member that votes and answers")
	}
	if status.Kubernetes != nil {
		grave("Kubernetes does not answer: %v", status.Kubernetes)
	}
	for _, node := range status.Nodes {
		if node.Problem != nil && !node.Settings.Locked {
			grave("node %s: %v; repair it first", node.Name, node.Problem)
		}
	}
	if rotation, err := c.Rotation(ctx); err != nil {
		return nil, err
	} else if rotation != nil {
		grave("a rotation of authorities or keys has begun and not ended: go on with it first (burano cluster rotate)")
	}
	if status.Kubernetes != nil {
		return list, nil
	}
	config, err := c.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	removed, err := kube.RemovedAPIs(ctx, config, minor)
	if err != nil {
		return nil, err
	}
	for _, api := range removed {
		list = append(list, Obstacle{Text: fmt.Sprintf("%s were asked for since the API server started, which Kubernetes %s does not have any more: have who asks for them use a newer version",
			api, api.Removed)})
	}
	budgets, err := kube.TightBudgets(ctx, config)
	if err != nil {
		return nil, err
	}
	for _, budget := range budgets {
		list = append(list, Obstacle{Text: fmt.Sprintf("disruption budget %s lets no pod go (%d of at least %d are healthy), so that a node with one cannot be emptied: loosen it, or start more pods",
			budget.Name, budget.Healthy, budget.Wanted)})
	}
	slices.SortStableFunc(list, func(a, b Obstacle) int {
		switch {
		case a.Grave == b.Grave:
			return 0
		case a.Grave:
			return -1
		}
		return 1
	})
	return list, nil
}
