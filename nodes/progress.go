package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/burano/burano/nodes/plan"
)

// progress is how far the nodes have come. Steps that need several nodes, but not each of them, wait with it: for as long
// as those can still come, and no longer than a grace, so that one bad node holds up nothing but itself.
type progress struct {
	mu      sync.Mutex
	changed chan struct{} // closed and made anew with each change
	done    map[string]bool
	failed  map[string]bool // by node
}

func newProgress() *progress {
	return &progress{changed: make(chan struct{}), done: map[string]bool{}, failed: map[string]bool{}}
}

// note keeps how a step ended.
func (p *progress) note(node, step string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.done[plan.ID(node, step)] = true
	} else {
		p.failed[node] = true
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait returns those of nodes that are through the step, as soon as it is known of all, or grace is over.
func (p *progress) wait(ctx context.Context, grace time.Duration, nodes []Node, step string) ([]Node, error) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for late := false; ; {
		p.mu.Lock()
		var through []Node
		open := 0
		for _, node := range nodes {
			switch {
			case p.done[plan.ID(node.Name, step)]:
				through = append(through, node)
			case !p.failed[node.Name]:
				open++
			}
		}
		changed := p.changed
		p.mu.Unlock()
		if open == 0 || late {
			return through, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			late = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
