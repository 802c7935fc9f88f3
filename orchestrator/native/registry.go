package native

import (
	"context"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// rotateRegistry gives the cluster's registry other passwords.
func (c clusterClass) rotateRegistry(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	c.clusters.useFacts(call.Object, known)
	live, err := clusterConnectionsOf(c.clusters).connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	if err := live.RotateRegistry(ctx); err != nil {
		return err
	}
	c.reports.Inform(ctx, call.Object, "The registry %s accepts the former passwords no more; nodes have others, and so has who pushes, in the Secret %s/%s", known.Registry, kube.RegistryNamespace, kube.RegistryLogin)
	return nil
}

// wantsRegistry is true if a cluster must have a registry of its own. Without a value in the model, an existing one stays; and a new cluster has one where
// its volumes follow pods to other nodes, and its images have a registry.
func (c imageChecks) wantsRegistry(ctx context.Context, cluster *muranopl.Object) (bool, error) {
	wanted := task.Desired(cluster)
	if enabled := wanted.Registry.Enabled; enabled != nil {
		return *enabled, nil
	}
	known, err := c.clusters.facts(ctx, cluster)
	if err != nil {
		return false, err
	}
	if known != nil {
		return known.Registry != "", nil
	}
	if !wanted.FollowsPods() {
		return false, nil
	}
	lacking, err := c.imagesWithoutRegistry(ctx, cluster)
	return len(lacking) == 0, err
}

// imagesWithoutRegistry finds images of the nodes on which a registry may run that have none.
func (c imageChecks) imagesWithoutRegistry(ctx context.Context, cluster *muranopl.Object) ([]error, error) {
	return c.imagesWithout(ctx, cluster, imageNeed{func(role nodes.Role) bool { return role == nodes.Minion }, func(image openstack.NodeImage) string { return image.Registry },
		"it has a registry, which enableRegistry", openstack.RegistryProperty})
}

// registryName is a cluster's own registry in names of images; "" where it has none.
func (c imageChecks) registryName(ctx context.Context, cluster *muranopl.Object) (string, error) {
	wanted, err := c.wantsRegistry(ctx, cluster)
	if err != nil || !wanted {
		return "", err
	}
	return kube.RegistryName(task.Desired(cluster).Name), nil
}

// registryOf is the wanted registry of a cluster; nil for none, also where its settings are impossible, which check refuses.
func (c imageChecks) registryOf(ctx context.Context, cluster *muranopl.Object) (*kube.Registry, error) {
	wanted, err := c.wantsRegistry(ctx, cluster)
	registry := task.Desired(cluster).Registry
	if err != nil || !wanted || len(registry.Mistakes) > 0 {
		return nil, err
	}
	return &registry.Registry, nil
}

// checkRegistry finds the obstacles to a cluster's own registry.
func (c imageChecks) checkRegistry(ctx context.Context, cluster *muranopl.Object) ([]error, error) {
	wanted, err := c.wantsRegistry(ctx, cluster)
	if err != nil || !wanted {
		return nil, err
	}
	if mistakes := task.Desired(cluster).Registry.Mistakes; len(mistakes) > 0 {
		return mistakes, nil
	}
	problems, err := c.imagesWithoutRegistry(ctx, cluster)
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	live, _, err := c.clusters.former(ctx, cluster)
	if err != nil || live == nil {
		return nil, err
	}
	defer live.Close()
	lacking, err := live.WithoutRegistry(ctx)
	if err == nil && len(lacking) > 0 {
		problems = append(problems, fmt.Errorf("%s: made from an older image, which has no registry, as enableRegistry needs: upgrade the cluster to the present image, or replace these nodes, before",
			strings.Join(lacking, ", ")))
	}
	return problems, err
}
