package nodes

import (
	"context"
	_ "embed"
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
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

//go:embed scripts/admit.sh
var admitScript string

// gatewaySteps make Services listeners of gateways, and masters the minions' way to registries where a cluster has no other.
type gatewaySteps struct{ *deployment }

func (d gatewaySteps) steps() []step {
	lead, masters, gateways := d.leads(), serving(d.deployment, Master), serving(d.deployment, Gateway)
	program := d.design.binary != ""
	admits := program && len(d.cluster.config.Further) > 0
	way := program && d.cluster.config.Proxy.ThroughMasters()
	return []step{
		{name: stepPublisher, on: masters, skipIf: !program, after: needs(at(lead, stepAccess), here(stepForwarder, stepAPIServes, stepBinary)), run: d.units(false, "burano-publish")},
		{name: stepWay, on: masters, skipIf: !way, after: here(stepBinary), run: d.units(false, kube.WayUnit)},
		{name: stepWay, on: masters, skipIf: way || !program || !d.again, after: here(stepFiles), run: d.endWay},
		// The daemon writes HAProxy's configuration and starts it.
		{name: stepGateway, on: gateways, skipIf: !program, after: here(stepBinary, stepForwarder), run: d.units(admits, "burano-gateway")},
		{name: stepGateway, on: gateways, skipIf: program, after: here(stepFiles), run: d.units(true, "haproxy")},
		{name: stepAdmit, on: gateways, skipIf: !admits, after: here(stepGateway), run: d.admit},
		{name: stepGatewayAddresses, on: lead, after: here(stepEtcdUsers), soft: []soft{{name: stepGateway, nodes: gateways, limit: joinGrace}},
			runKnowing: func(ctx context.Context, node Node, done plan.Progress) error {
				return d.listGateways(ctx, node, through(done, gateways, stepGateway))
			}},
	}
}

// listGateways gives the publisher the addresses of gateways: the ones that serve now, and the ones of the cluster that have served.
func (d gatewaySteps) listGateways(ctx context.Context, node Node, serve []Node) error {
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
				if gateway.Role != Gateway || gateway.Settings.Locked || !serves || !one.Address.IsValid() {
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

// endWay ends a master's proxy for minions, where there is one.
func (d gatewaySteps) endWay(ctx context.Context, master Node) error {
	out, err := d.script(ctx, master, "end "+kube.WayUnit, endUnitScript, map[string]string{"UNIT": kube.WayUnit})
	if err == nil && strings.TrimSpace(out) == "ended" {
		d.report(ctx, master, "minions reach no registries through it any more")
	}
	return err
}

// admit lets packets from the other networks into a gateway now. Its daemon, which has just got the networks, does so only when it has read etcd, and a
// pod's answers from there before that would be dropped.
func (d gatewaySteps) admit(ctx context.Context, node Node) error {
	lines := make([]string, len(d.cluster.config.Further))
	for i, network := range d.cluster.config.Further {
		lines[i] = network.Masked().String()
	}
	_, err := d.script(ctx, node, "let other networks in", admitScript, map[string]string{"NETWORKS": strings.Join(lines, "\n")})
	return err
}

// unlist takes a gateway that leaves out of the addresses of Services, before it takes no more connections. When that fails now, the
// deployment of the others does it.
func (c *store) unlist(ctx context.Context, node Node) {
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
