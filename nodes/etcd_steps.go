package nodes

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/etcd-data.sh
var etcdDataScript string

// data is a member's data on a node.
type data struct {
	there  bool
	member string // id of the member in hexadecimal, "" when not known
}

func (d *deployment) etcdData(ctx context.Context, node Node) (data, error) {
	out, err := d.script(ctx, node, "look for etcd data", etcdDataScript, map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
	word, member, _ := strings.Cut(strings.TrimSpace(out), " ")
	return data{there: word == "yes", member: member}, err
}

// forgetEtcd ends a node's member and removes its data; the node is about to get a new one.
func (d *deployment) forgetEtcd(ctx context.Context, node Node) error {
	env := map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile, "KEEP_UNIT": "yes"}
	_, err := d.script(ctx, node, "remove etcd data", etcdForgetScript, env)
	return err
}

func (d *deployment) upload(ctx context.Context, node Node, files ...ssh.File) error {
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	return client.Upload(ctx, files)
}

// lookForEtcdData finds out whether the master of a cluster that was begun has no data, or only data that were never relied on.
func (d *deployment) lookForEtcdData(ctx context.Context, node Node) error {
	found, err := d.etcdData(ctx, node)
	d.etcdLost = err == nil && (!found.there || d.newcomer(node))
	return err
}

// newcomer is true if the node replaces the master that had a member at the end of the last deployment.
func (d *deployment) newcomer(node Node) bool {
	return len(d.record.Members) > 0 && !slices.Contains(d.record.Members, node.Name)
}

// etcdMember runs the master's member. A new cluster is begun only once. A master that lost its data joins members with data on reachable nodes; where
// there are none, it must not begin an empty store.
func (d *deployment) etcdMember(ctx context.Context, node Node, reached []Node) error {
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	switch {
	case d.record.Bootstrapped && (!found.there || d.newcomer(node)):
		return d.etcdRejoin(ctx, node, reached)
	case !found.there:
		first := etcdNode(node)
		if err := d.upload(ctx, node, etcd.Join(map[string]string{first.Name: first.PeerURL()}, "new", 0)); err != nil {
			return err
		}
	}
	if err := d.start(ctx, node, true, "etcd"); err != nil {
		return err
	}
	if d.record.Bootstrapped {
		return nil
	}
	d.record.Bootstrapped = true
	return d.saveRecord(ctx)
}

func (d *deployment) etcdUsers(ctx context.Context, node Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	return d.guarded(ctx, node, []string{"etcd"}, func(ctx context.Context) error {
		if err := etcd.Authorize(ctx, client); err != nil {
			return err
		}
		return etcd.PutOnce(ctx, client, d.design.driver.Settings())
	})
}
