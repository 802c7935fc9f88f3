package native

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

// imageChecks check that images have the parts that clusters need.
type imageChecks struct{ *clusters }

func imageChecksOf(c *clusters) imageChecks { return imageChecks{c} }

// eachImageOf is eachImage of all nodes of a cluster.
func (c imageChecks) eachImageOf(ctx context.Context, cluster *muranopl.Object, has func(nodes.Role) bool, look func(image openstack.NodeImage, of member)) error {
	members, err := c.clusters.members(ctx, cluster)
	if err != nil {
		return err
	}
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	return eachImage(ctx, project, members, has, look)
}

// eachImage looks once at each image that nodes of some roles are to run from, with one node that is. That there is no such image is found out elsewhere.
func eachImage(ctx context.Context, project *openstack.Project, members []member, has func(nodes.Role) bool, look func(image openstack.NodeImage, of member)) error {
	seen := map[string]bool{}
	for _, one := range members {
		image := one.instance().Text("image")
		if !has(one.role) || one.leaving || image == "" || seen[image] {
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

// imageNeed is a feature that images of nodes of some roles must declare.
type imageNeed struct {
	has            func(nodes.Role) bool
	says           func(openstack.NodeImage) string
	what, property string
}

// missing is why a node cannot run from an image; nil where it can.
func (n imageNeed) missing(image openstack.NodeImage, called, node string) error {
	if n.says(image) != "" {
		return nil
	}
	return fmt.Errorf("image %s of node %s does not say that %s needs: build a node image with this release and upload it, or, where this one is of it, say so "+
		"(openstack image set --property %s=VERSION %s)", called, node, n.what, n.property, image.ID)
}

// imagesWithout finds images of a cluster's nodes that do not declare a needed feature.
func (c imageChecks) imagesWithout(ctx context.Context, cluster *muranopl.Object, need imageNeed) (problems []error, err error) {
	err = c.eachImageOf(ctx, cluster, need.has, func(image openstack.NodeImage, of member) {
		if missing := need.missing(image, of.instance().Text("image"), of.server.ModelName()); missing != nil {
			problems = append(problems, missing)
		}
	})
	return problems, err
}
