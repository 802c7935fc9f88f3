package nodes

import (
	"context"

	"github.com/burano/burano/nodes/etcd"
)

// Defragment gives the room back that is free in the files of the cluster's etcd members, one member after another, and has a store that was
// full take writes again.
func (c *store) Defragment(ctx context.Context) error {
	if c.config.Alone() {
		return c.defragmentAlone(ctx)
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	return c.config.Step(ctx, c.master().Name, "etcd defragmentation", func(ctx context.Context) error {
		client, err := c.etcdAs(ctx, authorities, etcd.Root)
		if err != nil {
			return err
		}
		defer client.Close()
		return etcd.Defragment(ctx, client)
	})
}
