package clusters

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

const (
	argumentLose = "loseVolumes" // of what removes or replaces nodes
)

// volumeLosses are the volumes that are lost with nodes, and the consent to it.
type volumeLosses struct{ *Clusters }

// VolumeLossesOf returns the volumes that a task's clusters lose with nodes.
func VolumeLossesOf(c *Clusters) volumeLosses { return volumeLosses{c} }

// AllowLoss notes that an action may remove nodes with which volumes are lost.
func (c volumeLosses) AllowLoss(call muranopl.Call) {
	lose, _ := call.Args[argumentLose].(bool)
	c.Clusters.mutex.Lock()
	defer c.Clusters.mutex.Unlock()
	c.Clusters.lose = c.Clusters.lose || lose
}

func (c volumeLosses) MayLose() bool {
	c.Clusters.mutex.Lock()
	defer c.Clusters.mutex.Unlock()
	return c.Clusters.lose
}

// keepVolumes refuses changes that remove nodes whose volumes would be lost, before anything is made for them.
func (c volumeLosses) keepVolumes(ctx context.Context, object *muranopl.Object, names ...string) error {
	volumes, err := c.lost(ctx, object, names...)
	if err != nil || len(volumes) == 0 || c.MayLose() {
		return err
	}
	return fault.New(fault.Conflict, "%s", &nodes.VolumesLost{Volumes: volumes})
}

// lost are the volumes that go with nodes of a cluster.
func (c volumeLosses) lost(ctx context.Context, object *muranopl.Object, names ...string) ([]kube.Volume, error) {
	if len(names) == 0 {
		return nil, nil
	}
	live, _, err := c.Clusters.Former(ctx, object)
	if err != nil || live == nil {
		return nil, err
	}
	defer live.Close()
	return live.VolumesLost(ctx, names...)
}

// foreseeLoss adds the volumes for which a deployment is refused.
func (c volumeLosses) foreseeLoss(ctx context.Context, object *muranopl.Object, due []Member, foreseen *preview.Foreseen) {
	known, err := c.Clusters.Facts(ctx, object)
	if err != nil || known == nil {
		return
	}
	leaving, _, err := shrinkingOf(c.Clusters).leavers(ctx, object, known)
	if err != nil {
		return
	}
	for _, one := range due {
		leaving = append(leaving, one.Server.Name())
	}
	if !task.Desired(object).PodsOnMasters {
		for _, one := range known.Nodes {
			if one.Pods && !slices.Contains(leaving, one.Name) {
				leaving = append(leaving, one.Name)
			}
		}
	}
	volumes, err := c.lost(ctx, object, leaving...)
	switch {
	case err != nil:
		foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("cluster %s: whether volumes are on nodes that go could not be found out (%v); the deployment asks again, and goes no further where there are",
			object.Text("name"), err))
	case len(volumes) > 0:
		foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: object.ID(), Text: (&nodes.VolumesLost{Volumes: volumes}).Error()})
	}
}
