package nodes

import (
	"context"
	_ "embed"
	"net"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
)

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
	client, err := d.cluster.etcdAt(ctx, d.design.authorities, etcd.Root, d.lead)
	if err != nil {
		return nil, err
	}
	d.etcd.client = client
	return client, nil
}

// etcdAs connects a user to the masters' members through SSH: to those that voted at the end of the last deployment.
func (c *Cluster) etcdAs(ctx context.Context, authorities *pki.Cluster, user string) (*clientv3.Client, error) {
	masters := c.masters()
	if len(masters) > 1 {
		record, err := c.loadRecord(ctx)
		if err != nil {
			return nil, err
		}
		masters = slices.DeleteFunc(masters, func(node Node) bool { return !slices.Contains(record.Members, node.Name) })
		if len(masters) == 0 {
			masters = []Node{c.master()}
		}
	}
	return c.etcdAt(ctx, authorities, user, masters...)
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
	if len(members) == 1 { // of several one may be away
		if _, err := c.connect(ctx, members[0]); err != nil {
			return nil, err
		}
	}
	return etcd.Client(endpoints, authorities.Etcd.Trusted(), pair, func(ctx context.Context, network, address string) (net.Conn, error) {
		through := members[0]
		for _, node := range c.config.Nodes {
			// A node that leaves may be gone, and its address another's.
			if host, _, err := net.SplitHostPort(address); err == nil && host == node.Address.String() && (!node.Leaving || through.Address != node.Address) {
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
