package native

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

// eachImageOf is eachImage of all nodes of a cluster.
func (c *clusters) eachImageOf(ctx context.Context, cluster *muranopl.Object, has func(nodes.Role) bool, look func(image openstack.NodeImage, of member)) error {
	members, err := c.members(ctx, cluster)
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
