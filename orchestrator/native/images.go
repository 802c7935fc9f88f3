package native

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// checkImages finds the images that applications of a cluster name and Glance does not have.
func (c imageChecks) checkImages(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	for _, application := range c.objects.All(task.ClassApplication) {
		host := application.Object("host")
		name := application.Text(workloads.PropertyImage)
		if host == nil || !host.Class().IsEmbedded(task.ClassPod) || host.Object("kubernetesCluster") != cluster || !openstack.IsContainerImage(name) {
			continue
		}
		known, err := nodes.ImagesFor(ctx, known.Vault{Runtime: c.runtime, Cluster: cluster.ID()}, host.ID())
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
