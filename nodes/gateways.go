package nodes

import (
	"context"
	"net/netip"
	"slices"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/etcd"
)

// serving is where clients reach a gateway: at the address that all share, where they do.
func (c Config) serving(n Node) route.Gateway {
	if c.Virtual.Address.IsValid() {
		return route.Gateway{Name: n.Name, Address: c.Virtual.Reach()}
	}
	address := n.Address
	for _, floating := range []netip.Addr{n.Inherits, n.Access} {
		if floating.IsValid() {
			address = floating
		}
	}
	return route.Gateway{Name: n.Name, Address: address}
}

// listGateways gives the publisher the addresses of gateways: the ones that serve now, and the ones of the cluster that have served.
func (d *deployment) listGateways(ctx context.Context, node Node, serve []Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	return d.guarded(ctx, node, []string{"etcd"}, func(ctx context.Context) error {
		// Certificates are sealed for gateways of the cluster only.
		_, err := etcd.Fold(ctx, client, route.KeysPrefix, func(held map[string]string) (map[string]string, error) {
			wanted := map[string]string{}
			for _, gateway := range d.cluster.config.staying() {
				if value, there := held[route.KeyOf(gateway.Name)]; there && gateway.Role == Gateway {
					wanted[route.KeyOf(gateway.Name)] = value
				}
			}
			return wanted, nil
		})
		if err != nil {
			return err
		}
		_, err = etcd.Fold(ctx, client, route.GatewaysPrefix, func(held map[string]string) (map[string]string, error) {
			wanted := map[string]string{}
			for _, gateway := range d.cluster.config.staying() {
				one := d.cluster.config.serving(gateway)
				_, before := held[route.GatewayKey(one)]
				serves := before || slices.ContainsFunc(serve, func(n Node) bool { return n.Name == gateway.Name })
				if gateway.Role != Gateway || !serves || !one.Address.IsValid() {
					continue
				}
				value, err := route.EncodeGateway(one)
				if err != nil {
					return nil, err
				}
				wanted[route.GatewayKey(one)] = string(value)
			}
			return wanted, nil
		})
		return err
	})
}

// unlist takes a gateway that leaves out of the addresses of Services, before it takes no more connections. When that fails now, the
// deployment of the others does it.
func (c *Cluster) unlist(ctx context.Context, node Node) {
	err := func() error {
		authorities, err := c.authorities(ctx)
		if err != nil {
			return err
		}
		client, err := c.etcdAs(ctx, authorities, etcd.Root)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Delete(ctx, route.GatewayKey(c.config.serving(node)))
		return err
	}()
	if err != nil {
		c.config.Logger.WarnContext(ctx, "a gateway that leaves is in the addresses of Services still", "node", node.Name, "error", err)
	}
}
