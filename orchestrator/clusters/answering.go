package clusters

import (
	"context"
	"errors"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/volumes"
)

// answer answers a cluster's requests for its volumes of Cinder and shares of Manila, with the task's own project, until ctx ends. The keeper does not
// begin to while a task runs, and the task's deployments may wait for volumes. Where the keeper of some server does so already, that one goes on.
func (c *Clusters) answer(ctx context.Context, object *muranopl.Object, live *nodes.Cluster, list []nodes.Node) {
	servers, addresses := map[string]string{}, map[string]string{}
	for _, node := range list {
		servers[node.Name], addresses[node.Name] = node.Server, node.Address.String()
	}
	asked := volumes.Cluster{ID: volumes.ClusterID(c.Runtime.EnvironmentID(), object.ID()), Name: object.Text("name"), Logger: c.Reports.Logger,
		Servers:   func(context.Context) (map[string]string, error) { return servers, nil },
		Addresses: func(context.Context) (map[string]string, error) { return addresses, nil },
		Shares: func(ctx context.Context) (volumes.Shares, error) {
			project, err := c.Runtime.Project(ctx)
			if err != nil {
				return nil, err
			}
			return project.SharedFileSystems()
		},
		Cloud: func(ctx context.Context) (volumes.Cloud, error) {
			project, err := c.Runtime.Project(ctx)
			if err != nil {
				return nil, err
			}
			return project.BlockStorage()
		}}
	_ = wait.Every(storage.StoragePause/5).Until(ctx, func(ctx context.Context) error {
		err := panics.Run(func() error {
			line, err := live.VolumeLine(ctx)
			if err != nil {
				return err
			}
			return storage.AnswerOn(ctx, line, asked)
		})
		if err != nil && !errors.Is(err, nodes.ErrVolumesHeld) && ctx.Err() == nil {
			c.Reports.Logger.DebugContext(ctx, "a task could not answer what a cluster asks for its volumes; trying again", "cluster", object.ID(), "error", err)
		}
		return wait.Again(errors.New("until the task is done"))
	})
}
