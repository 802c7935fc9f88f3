package nodes

import (
	"context"
	_ "embed"
	"net"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/etcd-data.sh
var etcdDataScript string

// etcdClient is the deployment's client of etcd as root, made at first use and dialled through the master.
type etcdClient struct {
	sync.Mutex
	client *clientv3.Client
}

func (e *etcdClient) close() {
	e.Lock()
	defer e.Unlock()
	if e.client != nil {
		_ = e.client.Close()
	}
}

func (d *deployment) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	d.etcd.Lock()
	defer d.etcd.Unlock()
	if d.etcd.client != nil {
		return d.etcd.client, nil
	}
	client, err := d.cluster.etcdAs(ctx, d.design.authorities, etcd.Root)
	if err != nil {
		return nil, err
	}
	d.etcd.client = client
	return client, nil
}

// etcdAs connects a user to the master's member through SSH.
func (c *Cluster) etcdAs(ctx context.Context, authorities *pki.Cluster, user string) (*clientv3.Client, error) {
	return c.etcdAt(ctx, authorities, user, c.master())
}

// etcdAt connects a user to the members of some nodes. Any member of the cluster can be dialled with the client, each
// through the SSH connection to its node; what is no node of the cluster (any more) is dialled from the first one.
func (c *Cluster) etcdAt(ctx context.Context, authorities *pki.Cluster, user string, members ...Node) (*clientv3.Client, error) {
	request := etcd.ClientRequest(user)
	request.Lifetime = userLifetime
	pair, err := authorities.Etcd.Issue(request, c.now())
	if err != nil {
		return nil, err
	}
	var endpoints []string
	for _, node := range members {
		endpoints = append(endpoints, etcdNode(node).ClientURL())
	}
	if _, err := c.connect(ctx, members[0]); err != nil {
		return nil, err
	}
	return etcd.Client(endpoints, authorities.Etcd.Certificate, pair, func(ctx context.Context, network, address string) (net.Conn, error) {
		through := members[0]
		for _, node := range c.config.Nodes {
			if host, _, err := net.SplitHostPort(address); err == nil && host == node.Address.String() {
				through = node
			}
		}
		connection, err := c.connect(ctx, through)
		if err != nil {
			return nil, err
		}
		return connection.DialContext(ctx, network, address)
	})
}

// data is what a node has of a member.
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

// etcdMember runs the master's member. A new cluster is begun only once: a master that lost its data joins the members
// that still have them, and where there are none it must not begin an empty store.
func (d *deployment) etcdMember(ctx context.Context, node Node) error {
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	switch {
	case d.record.Bootstrapped && !found.there:
		return d.etcdRejoin(ctx, node)
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
