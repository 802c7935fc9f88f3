package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// imageChecks check that images have the parts that clusters need.
type imageChecks struct{ *Clusters }

func imageChecksOf(c *Clusters) imageChecks { return imageChecks{c} }

// eachImageOf is eachImage of all nodes of a cluster.
func (c imageChecks) eachImageOf(ctx context.Context, cluster *muranopl.Object, has func(nodes.Role) bool, look func(image openstack.NodeImage, of Member)) error {
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return err
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	return eachImage(ctx, project, members, has, look)
}

// eachImage looks once at each image that nodes of some roles are to run from, with one node that is. That there is no such image is found out elsewhere.
func eachImage(ctx context.Context, project *openstack.Project, members []Member, has func(nodes.Role) bool, look func(image openstack.NodeImage, of Member)) error {
	seen := map[string]bool{}
	for _, one := range members {
		image := one.Instance().Text("image")
		if !has(one.Role) || one.Leaving || image == "" || seen[image] {
			continue
		}
		seen[image] = true
		found, err := project.Image(ctx, image)
		if fault.KindOf(err) == fault.Invalid {
			continue
		}
		if err != nil {
			return err
		}
		look(found, one)
	}
	return nil
}

// ImageNeed is a feature that images of nodes of some roles must declare.
type ImageNeed struct {
	Has            func(nodes.Role) bool
	says           func(openstack.NodeImage) string
	what, property string
}

// Missing is why a node cannot run from an image; nil where it can.
func (n ImageNeed) Missing(image openstack.NodeImage, called, node string) error {
	if n.says(image) != "" {
		return nil
	}
	return fmt.Errorf("image %s of node %s does not say that %s needs: build a node image with this release and upload it, or, where this one is of it, say so "+
		"(openstack image set --property %s=VERSION %s)", called, node, n.what, n.property, image.ID)
}

// imagesWithout finds images of a cluster's nodes that do not declare a needed feature.
func (c imageChecks) imagesWithout(ctx context.Context, cluster *muranopl.Object, need ImageNeed) (problems []error, err error) {
	err = c.eachImageOf(ctx, cluster, need.Has, func(image openstack.NodeImage, of Member) {
		if missing := need.Missing(image, of.Instance().Text("image"), of.Server.ModelName()); missing != nil {
			problems = append(problems, missing)
		}
	})
	return problems, err
}

// checkRuntime finds out which images cannot run containers as the servers are to that are made from them.
func (c imageChecks) checkRuntime(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	if task.Desired(cluster).Runtime != kube.Docker {
		return nil, nil
	}
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(one Member) bool { return one.Instance().Text("openstackId") != "" && !one.Replacing })
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role == nodes.Minion }, func(image openstack.NodeImage, of Member) {
		if image.Docker == "" {
			problems = append(problems, workloads.NoDocker(of.Instance().Text("image"), of.Server.ModelName(), image.ID))
		}
	})
	return problems, err
}

// checkImages finds the images that applications of a cluster name and Glance does not have.
func (c imageChecks) checkImages(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	for _, application := range c.Objects.All(task.ClassApplication) {
		host := application.Object("host")
		name := application.Text(workloads.PropertyImage)
		if host == nil || !host.Class().IsEmbedded(task.ClassPod) || host.Object("kubernetesCluster") != cluster || !openstack.IsContainerImage(name) {
			continue
		}
		known, err := nodes.ImagesFor(ctx, known.Vault{Runtime: c.Runtime, Cluster: cluster.ID()}, host.ID())
		if err != nil {
			return nil, err
		}
		if _, err := c.images.Find(ctx, known, name, true); fault.KindOf(err) == fault.Invalid {
			problems = append(problems, fmt.Errorf("%s: %w", application, err))
		} else if err != nil {
			return nil, err
		}
	}
	return problems, nil
}

// wantsRegistry is true if a cluster must have a registry of its own. Without a value in the model, an existing one stays; and a new cluster has one where
// its volumes follow pods to other nodes, and its images have a registry.
func (c imageChecks) wantsRegistry(ctx context.Context, cluster *muranopl.Object) (bool, error) {
	wanted := task.Desired(cluster)
	if enabled := wanted.Registry.Enabled; enabled != nil {
		return *enabled, nil
	}
	known, err := c.Clusters.Facts(ctx, cluster)
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
	return c.imagesWithout(ctx, cluster, ImageNeed{func(role nodes.Role) bool { return role == nodes.Minion }, func(image openstack.NodeImage) string { return image.Registry },
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
	live, _, err := c.Clusters.Former(ctx, cluster)
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
