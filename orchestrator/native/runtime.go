package native

import (
	"context"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// checkRuntime finds out which images cannot run containers as the servers are to that are made from them.
func (c imageChecks) checkRuntime(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	if task.Desired(cluster).Runtime != kube.Docker {
		return nil, nil
	}
	members, err := c.clusters.members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(one member) bool { return one.instance().Text("openstackId") != "" && !one.replacing })
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role == nodes.Minion }, func(image openstack.NodeImage, of member) {
		if image.Docker == "" {
			problems = append(problems, workloads.NoDocker(of.instance().Text("image"), of.server.ModelName(), image.ID))
		}
	})
	return problems, err
}
