package nodes

import (
	"context"
	"slices"
	"sync"
	"time"
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
