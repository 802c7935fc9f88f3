package nodes

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/disk.sh
var diskScript string

// Disk is the disk of a node, on which pods, images and etcd are.
type Disk struct {
	Free, Size int64 // bytes
	// Least is how many percent must be free: below it a kubelet takes no pods, and ends some that run.
	Least int
}

// Percent is how much is free.
func (d Disk) Percent() float64 { return 100 * float64(d.Free) / float64(max(d.Size, 1)) }

func diskOf(ctx context.Context, client *ssh.Client) (*Disk, error) {
	out, err := client.Run(ctx, ssh.Script{Name: "look at the disk", Body: diskScript, Env: map[string]string{"FOLDER": "/var/lib"}})
	if err != nil {
		return nil, err
	}
	return parsedDisk(out)
}

func parsedDisk(out string) (*Disk, error) {
	var available, all, block int64
	var word string
	if n, err := fmt.Sscan(out, &available, &all, &block, &word); n < 3 {
		return nil, fmt.Errorf("read how much of the disk is free from %q: %w", out, err)
	}
	return &Disk{Free: available * block, Size: all * block, Least: kube.Host{Machine: word == ""}.LeastDisk()}, nil
}

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
