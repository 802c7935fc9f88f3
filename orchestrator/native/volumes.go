package native

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

const (
	argumentLose = "loseVolumes" // of what removes or replaces nodes
)

// checkStorage finds the reasons why a cluster cannot have its storage classes.
func (c modelChecks) checkStorage(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	wanted := task.Desired(cluster)
	classes := wanted.StorageClasses
	if len(classes) == 0 {
		return nil, nil
	}
	members, err := c.clusters.members(ctx, cluster)
	if err != nil {
		return problems, err
	}
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return problems, err
	}
	cinder, manila := wanted.HasStorage(kube.Cinder), wanted.HasStorage(kube.Manila)
	newer := slices.ContainsFunc(classes, kube.StorageClass.Newer)
	if cinder {
		if _, err := project.BlockStorage(); fault.KindOf(err) == fault.NotFound {
			problems = append(problems, fmt.Errorf("storageClasses has the back-end cinder, and %w", err))
		} else if err != nil {
			return problems, err
		}
	}
	if manila {
		if _, err := project.SharedFileSystems(); fault.KindOf(err) == fault.NotFound {
			problems = append(problems, fmt.Errorf("storageClasses has the back-end manila, and %w", err))
		} else if err != nil {
			return problems, err
		}
	}
	err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role != nodes.Gateway }, func(image openstack.NodeImage, of member) {
		lacks := func(what, property string) {
			problems = append(problems, fmt.Errorf("image %s of node %s does not say that it can serve volumes%s: build a node image with this release and upload it, "+
				"or, where this one is of it, say so (openstack image set --property %s=VERSION %s)", of.instance().Text("image"), of.server.ModelName(), what, property, image.ID))
		}
		if image.Storage == "" {
			lacks(", which storageClasses need", openstack.StorageProperty)
		} else if cinder && image.Cinder == "" {
			lacks(" of Cinder, which storageClasses has", openstack.CinderProperty)
		} else if manila && image.NFS == "" {
			lacks(" that are shares of Manila, which storageClasses has", openstack.NFSProperty)
		} else if newer && image.XFS == "" {
			lacks(" of Cinder with the file system xfs, or in the zones of their nodes, which storageClasses asks for", openstack.XFSProperty)
		}
	})
	if err != nil {
		return problems, err
	}
	if len(problems) > 0 {
		return problems, nil
	}
	live, _, err := c.clusters.former(ctx, cluster)
	if err != nil {
		return problems, err
	}
	if live == nil {
		missing, err := workloads.MissingTypes(ctx, project, classes)
		return slices.Collect(maps.Values(missing)), err
	}
	defer live.Close()
	lacking, err := live.WithoutStorage(ctx)
	if err == nil && len(lacking) > 0 {
		problems = append(problems, fmt.Errorf("%s: made from an older image, which cannot serve volumes, as storageClasses need: upgrade the cluster to the present image, or replace these "+
			"nodes, before", strings.Join(lacking, ", ")))
	}
	return problems, err
}

// volumeLosses are the volumes that are lost with nodes, and the consent to it.
type volumeLosses struct{ *clusters }

func volumeLossesOf(c *clusters) volumeLosses { return volumeLosses{c} }

// allowLoss notes that an action may remove nodes with which volumes are lost.
func (c volumeLosses) allowLoss(call muranopl.Call) {
	lose, _ := call.Args[argumentLose].(bool)
	c.clusters.mutex.Lock()
	defer c.clusters.mutex.Unlock()
	c.clusters.lose = c.clusters.lose || lose
}

func (c volumeLosses) mayLose() bool {
	c.clusters.mutex.Lock()
	defer c.clusters.mutex.Unlock()
	return c.clusters.lose
}

// keepVolumes refuses changes that remove nodes whose volumes would be lost, before anything is made for them.
func (c volumeLosses) keepVolumes(ctx context.Context, object *muranopl.Object, names ...string) error {
	volumes, err := c.lost(ctx, object, names...)
	if err != nil || len(volumes) == 0 || c.mayLose() {
		return err
	}
	return fault.New(fault.Conflict, "%s", &nodes.VolumesLost{Volumes: volumes})
}

// lost are the volumes that go with nodes of a cluster.
func (c volumeLosses) lost(ctx context.Context, object *muranopl.Object, names ...string) ([]kube.Volume, error) {
	if len(names) == 0 {
		return nil, nil
	}
	live, _, err := c.clusters.former(ctx, object)
	if err != nil || live == nil {
		return nil, err
	}
	defer live.Close()
	return live.VolumesLost(ctx, names...)
}

// foreseeLoss adds the volumes for which a deployment is refused.
func (c volumeLosses) foreseeLoss(ctx context.Context, object *muranopl.Object, due []member, foreseen *preview.Foreseen) {
	known, err := c.clusters.facts(ctx, object)
	if err != nil || known == nil {
		return
	}
	leaving, _, err := clusterShrinkingOf(c.clusters).leavers(ctx, object, known)
	if err != nil {
		return
	}
	for _, one := range due {
		leaving = append(leaving, one.server.Name())
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
