package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	propertyRegistry         = "enableRegistry" // of a cluster
	propertyRegistrySize     = "registrySize"
	propertyRegistryClass    = "registryStorageClass"
	propertyRegistryMirror   = "registryMirror"
	propertyRegistryCollect  = "registryCollectAt"
	propertyRegistryUntagged = "registryUntaggedDays"

	methodRotateRegistry = "rotateRegistryPasswords"
)

// rotateRegistry is the action that gives the cluster's registry other passwords.
func (c clusterClass) rotateRegistry(ctx context.Context, call muranopl.Call, known *facts) error {
	if known.Registry == "" {
		return fault.New(fault.Invalid, "cluster %s has no registry of its own: set enableRegistry to true, and deploy", call.Object.Text("name"))
	}
	c.clusters.recall(call.Object, known)
	live, err := c.clusters.bring(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	if err := live.RotateRegistry(ctx); err != nil {
		return err
	}
	c.reports.inform(ctx, call.Object, "The registry %s accepts the former passwords no more; nodes have others, and so has who pushes, in the Secret %s/%s", known.Registry, kube.RegistryNamespace, kube.RegistryLogin)
	return nil
}

// wantsRegistry is true if a cluster must have a registry of its own. Without a value in the model, an existing one stays; and a new cluster has one where
// its volumes follow pods to other nodes, and its images have a registry.
func (c *clusters) wantsRegistry(ctx context.Context, cluster *muranopl.Object) (bool, error) {
	if value, _ := cluster.Get(propertyRegistry); value != nil {
		return cluster.Bool(propertyRegistry), nil
	}
	known, err := c.facts(ctx, cluster)
	if err != nil {
		return false, err
	}
	if known != nil {
		return known.Registry != "", nil
	}
	if !slices.ContainsFunc(storageClasses(cluster), func(class kube.StorageClass) bool { return class.Default && class.Backend != kube.Local }) {
		return false, nil
	}
	lacking, err := c.imagesWithoutRegistry(ctx, cluster)
	return len(lacking) == 0, err
}

// imagesWithoutRegistry finds images of the nodes on which a registry may run that have none.
func (c *clusters) imagesWithoutRegistry(ctx context.Context, cluster *muranopl.Object) ([]error, error) {
	return c.imagesWithout(ctx, cluster, imageNeed{func(role nodes.Role) bool { return role == nodes.Minion }, func(image openstack.NodeImage) string { return image.Registry },
		"it has a registry, which enableRegistry", openstack.RegistryProperty})
}

// registryName is a cluster's own registry in names of images; "" where it has none.
func (c *clusters) registryName(ctx context.Context, cluster *muranopl.Object) (string, error) {
	wanted, err := c.wantsRegistry(ctx, cluster)
	if err != nil || !wanted {
		return "", err
	}
	return kube.RegistryName(cluster.Text("name")), nil
}

// registryOf is the wanted registry of a cluster; nil for none, also where its settings are impossible, which check refuses.
func (c *clusters) registryOf(ctx context.Context, cluster *muranopl.Object) (*kube.Registry, error) {
	registry, problems, err := c.parseRegistry(ctx, cluster)
	if len(problems) > 0 {
		return nil, err
	}
	return registry, err
}

// parseRegistry reads a cluster's properties of its own registry; nil for none.
func (c *clusters) parseRegistry(ctx context.Context, cluster *muranopl.Object) (registry *kube.Registry, problems []error, err error) {
	if wanted, err := c.wantsRegistry(ctx, cluster); err != nil || !wanted {
		return nil, nil, err
	}
	registry, problems = readRegistry(cluster)
	return registry, problems, nil
}

func readRegistry(cluster *muranopl.Object) (registry *kube.Registry, problems []error) {
	registry = &kube.Registry{StorageClass: cluster.Text(propertyRegistryClass), CollectAt: cluster.Text(propertyRegistryCollect), UntaggedDays: cluster.Int(propertyRegistryUntagged)}
	if mirror, _ := cluster.Get(propertyRegistryMirror); mirror != nil {
		wanted := cluster.Bool(propertyRegistryMirror)
		registry.Mirror = &wanted
		registries, _ := registriesOf(cluster)
		proxy, _ := proxyOf(cluster)
		if upstream, _ := registries.Upstream(proxy); wanted && upstream == "" {
			problems = append(problems, errors.New("registryMirror is true, and the registry, which is a pod, reaches no mirror and not Docker Hub: minions go through a proxy or the masters, "+
				"or each dockerMirror has a path of its own, where /v2 is none. Leave registryMirror out"))
		}
	}
	if _, err := time.Parse("15:04", registry.CollectAt); registry.CollectAt != "" && err != nil {
		problems = append(problems, fmt.Errorf("registryCollectAt is %q, which is no time of the day: write it like 03:00 (UTC), or null for never but when the registry starts", registry.CollectAt))
	}
	var err error
	if registry.Size, err = resource.ParseQuantity(cluster.Text(propertyRegistrySize)); err != nil || registry.Size.Sign() <= 0 {
		problems = append(problems, fmt.Errorf("registrySize is %q, which is no size of a volume: write 20Gi or 500Gi", cluster.Text(propertyRegistrySize)))
	}
	classes := storageClasses(cluster)
	var names []string
	for _, class := range classes {
		names = append(names, class.Name)
		if registry.StorageClass == "" && class.Default {
			registry.StorageClass = class.Name
		}
	}
	switch {
	case len(classes) == 0:
		problems = append(problems, errors.New("enableRegistry is true, and the cluster has no storageClasses, so that nothing would keep what is pushed: give it one, such as "+
			"{name: burano-local, backend: local, default: true}, or set enableRegistry to false"))
	case registry.StorageClass == "":
		problems = append(problems, fmt.Errorf("enableRegistry is true, and none of the storageClasses is the default: name one in registryStorageClass (%s)", strings.Join(names, ", ")))
	case !slices.Contains(names, registry.StorageClass):
		problems = append(problems, fmt.Errorf("registryStorageClass is %q, and storageClasses has no such class: name one of %s", registry.StorageClass, strings.Join(names, ", ")))
	}
	return registry, problems
}

// checkRegistry finds the obstacles to a cluster's own registry.
func (c *clusters) checkRegistry(ctx context.Context, cluster *muranopl.Object) ([]error, error) {
	registry, problems, err := c.parseRegistry(ctx, cluster)
	if registry == nil || len(problems) > 0 {
		return problems, err
	}
	problems, err = c.imagesWithoutRegistry(ctx, cluster)
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	live, _, err := c.former(ctx, cluster)
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
