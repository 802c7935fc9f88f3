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

// etcdAs connects a user to the masters' members through SSH: to the voters of the last deployment.
func (c *store) etcdAs(ctx context.Context, authorities *pki.Cluster, user string) (*clientv3.Client, error) {
	masters, err := c.voters(ctx)
	if err != nil {
		return nil, err
	}
	return c.etcdAt(ctx, authorities, user, masters...)
}

// voters are the masters whose members voted at the end of the last deployment.
func (c *store) voters(ctx context.Context) ([]Node, error) {
	masters := c.masters()
	if len(masters) == 1 {
		return masters, nil
	}
	record, err := c.loadRecord(ctx)
	if err != nil {
		return nil, err
	}
	masters = slices.DeleteFunc(masters, func(node Node) bool { return !slices.Contains(record.Members, node.Name) })
	if len(masters) == 0 {
		masters = []Node{c.master()}
	}
	return masters, nil
}

// etcdAt connects a user to the members of some nodes. The client can dial any member of the cluster, each through the SSH connection to its node. An
// address that is no node of the cluster (any more) is dialled from the first node.
func (c *store) etcdAt(ctx context.Context, authorities *pki.Cluster, user string, members ...Node) (*clientv3.Client, error) {
	return c.etcdBy(ctx, authorities, user, members, c.dialFrom)
}

// dialFrom connects to an address through the SSH connection to a node.
func (c *servers) dialFrom(ctx context.Context, node Node, address string) (net.Conn, error) {
	connection, err := c.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	return connection.DialContext(ctx, "tcp", address)
}

// etcdBy is etcdAt with another dialler, which also gets the node to dial through.
func (c *store) etcdBy(ctx context.Context, authorities *pki.Cluster, user string, members []Node, dial func(ctx context.Context, node Node, address string) (net.Conn, error)) (*clientv3.Client, error) {
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
	return etcd.Client(endpoints, authorities.Etcd.Trusted(), pair, func(ctx context.Context, _, address string) (net.Conn, error) {
		through := members[0]
		for _, node := range c.config.Nodes {
			// A node that leaves may be gone, and its address another's.
			if host, _, err := net.SplitHostPort(address); err == nil && host == node.Address.String() && (!node.Leaving || through.Address != node.Address) {
				through = node
			}
		}
		return dial(ctx, through, address)
	})
}
