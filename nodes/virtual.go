package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// VirtualAddress is an address that the gateways of a cluster share. One of them has it at a time, as they agree by VRRP, and another one takes
// it over within two seconds when that one dies, or its HAProxy does. The cloud must let each of them use it.
type VirtualAddress struct {
	Address netip.Addr `json:"address"`
	// Access is the floating address that leads to it, where it has one.
	Access netip.Addr `json:"access,omitzero"`
}

// Reach is where clients outside connect to.
func (v VirtualAddress) Reach() netip.Addr {
	if v.Access.IsValid() {
		return v.Access
	}
	return v.Address
}

const (
	virtualUnit   = "virtual-address"
	virtualConfig = "/etc/burano/virtual-address.conf"
	virtualCheck  = "/etc/burano/gateway-lives"
	// virtualPatience is how long it may take until a gateway has the address. Gateways that begin agree within two seconds.
	virtualPatience = 30 * time.Second
)

//go:embed scripts/gateway-lives.sh
var gatewayLivesScript string

//go:embed scripts/end-virtual-address.sh
var endVirtualScript string

// gateways are the gateways that stay.
func (c Config) gateways() (list []Node) {
	for _, node := range c.staying() {
		if node.Role == Gateway {
			list = append(list, node)
		}
	}
	return list
}

// virtualAddress is the unit by which a gateway shares the address with the others. Another list of gateways is a reload, which moves nothing.
//
//   - all priorities are equal, so that the address stays where it is when a gateway comes (back);
//   - an advertisement each 0.3 s: a gateway that dies suddenly is missed after 1.1 s; one that stops announces it;
//   - a gateway whose HAProxy does not answer for a second leaves the address. So does one whose daemon is away for 6 s, so that its routes are old, if
//     another gateway has its daemon;
//   - with unicast no packet of VRRP goes to other servers in the network. A gateway without others has the address itself as its peer, because none
//     would mean multicast.
func (d design) virtualAddress(node Node) systemd.Unit {
	var peers []string
	for _, other := range d.cluster.gateways() {
		if other.Name != node.Name {
			peers = append(peers, other.Address.String())
		}
	}
	if len(peers) == 0 {
		peers = append(peers, d.cluster.Virtual.Address.String())
	}
	config := fmt.Sprintf(`# The address that the gateways share. Changes made here by hand do not last.

global_defs {
  router_id %[1]s
  script_user root
  enable_script_security
  vrrp_version 3
  vrrp_check_unicast_src
  vrrp_garp_master_delay 1
}

vrrp_script haproxy {
  script "%[2]s haproxy %[3]s"
  interval 1
  timeout 1
  fall 1
  rise 2
}

vrrp_script daemon {
  script "%[2]s daemon %[4]s %[5]s"
  interval 2
  timeout 1
  fall 3
  rise 1
  weight -50
}

vrrp_instance gateways {
  state BACKUP
  interface %[6]s
  virtual_router_id 51
  priority 100
  advert_int 0.3
  unicast_src_ip %[4]s
  unicast_peer {
    %[7]s
  }
  virtual_ipaddress {
    %[8]s/32 dev %[6]s
  }
  track_script {
    haproxy
    daemon
  }
}
`, node.Name, virtualCheck, traffic.Socket, node.Address, strconv.Itoa(route.MetricsPort), d.device, strings.Join(peers, "\n    "), d.cluster.Virtual.Address)
	return systemd.Unit{
		Name:        virtualUnit,
		Description: "the address that the gateways share",
		Command:     []string{"/usr/sbin/keepalived", "--dont-fork", "--vrrp", "--use-file=" + virtualConfig},
		Service: []string{"ExecReload=/usr/sbin/keepalived --config-test --use-file=" + virtualConfig, "ExecReload=/bin/kill -HUP $MAINPID",
			"KillMode=mixed"},
		After:   "haproxy.service", // it stops before HAProxy does
		Files:   []ssh.File{{Path: virtualConfig, Content: []byte(config)}, {Path: virtualCheck, Content: []byte(gatewayLivesScript), Mode: 0o755}},
		Reloads: true,
	}
}

// addressSteps make the gateways share the address, or not any more. The present ones know all others before a new one begins, which would else
// believe that it is alone. A leaving one leaves the address when its successors are there.
type addressSteps struct{ *deployment }

func (d addressSteps) steps() []step {
	gateways, shared := serving(d.deployment, Gateway), d.design.binary != "" && d.cluster.config.Virtual.Address.IsValid()
	ends := d.design.binary != "" && !shared && d.again
	share := []soft{{name: stepVirtualAddress, nodes: gateways, limit: joinGrace}}
	leaving := only(d.cluster.config.Nodes, func(node Node) bool {
		return node.Role == Gateway && node.Leaving && !slices.ContainsFunc(d.dead, func(dead Node) bool { return dead.Name == node.Name })
	})
	return []step{
		{name: stepVirtualAddress, on: gateways, skipIf: !ends, after: here(stepFiles), run: d.endVirtualAddress},
		{name: stepVirtualPeers, on: gateways, skipIf: !shared, after: here(stepFiles), run: d.virtualPeers},
		{name: stepVirtualAddress, on: gateways, skipIf: !shared, after: here(stepGateway), soft: []soft{{name: stepVirtualPeers, nodes: gateways, limit: joinGrace}}, run: d.virtualAddress},
		{name: stepVirtualHeld, on: d.leads(), skipIf: !shared, soft: share, runKnowing: func(ctx context.Context, _ Node, done plan.Progress) error {
			return d.virtualHeld(ctx, through(done, gateways, stepVirtualAddress))
		}},
		{name: stepVirtualLeave, on: leaving, skipIf: !shared, soft: share, run: func(ctx context.Context, node Node) error {
			d.cluster.stopPolitely(ctx, node, virtualUnit)
			return nil
		}},
	}
}

// virtualPeers gives a gateway that shares the address the list of the others.
func (d addressSteps) virtualPeers(ctx context.Context, node Node) error {
	if found := d.found(node).facts; !found.virtual || !found.keepalived {
		return nil
	}
	out, err := d.script(ctx, node, "look at the virtual address", "systemctl is-active "+virtualUnit+" || true", nil)
	if err != nil || strings.TrimSpace(out) != "active" {
		return err
	}
	return d.start(ctx, node, true, virtualUnit)
}

// virtualAddress has a gateway share the address.
func (d addressSteps) virtualAddress(ctx context.Context, node Node) error {
	if !d.found(node).facts.keepalived {
		return fmt.Errorf("%s has no keepalived, so that it cannot share the address %s with the other gateways: upgrade the cluster to an image that "+
			"has it, or leave virtualAddress out", node.Name, d.cluster.config.Virtual.Address)
	}
	return d.start(ctx, node, true, virtualUnit)
}

// virtualHeld waits until one of the gateways that share the address has it.
func (d addressSteps) virtualHeld(ctx context.Context, gateways []Node) error {
	address := d.cluster.config.Virtual.Address
	return wait.Every(pollEvery).For(virtualPatience).Until(ctx, func(ctx context.Context) error {
		for _, gateway := range gateways {
			out, err := d.script(ctx, gateway, "look for the virtual address", "ip -o address show to "+address.String()+"/32", nil)
			if err == nil && strings.TrimSpace(out) != "" {
				return nil
			}
		}
		return wait.Again(fmt.Errorf("no gateway has taken the address %s that they share: journalctl -u %s says why on each of them", address, virtualUnit))
	})
}

// endVirtualAddress has a gateway share no address any more.
func (d addressSteps) endVirtualAddress(ctx context.Context, node Node) error {
	if !d.found(node).facts.virtual {
		return nil
	}
	if _, err := d.script(ctx, node, "end the virtual address", endVirtualScript, map[string]string{"UNIT": virtualUnit, "FILES": virtualConfig + "\n" + virtualCheck}); err != nil {
		return err
	}
	d.report(ctx, node, "shares no address with the other gateways any more")
	return nil
}

// WithoutKeepalived are the gateways that answer and cannot share an address, because the image that they were made from has no keepalived.
func (c *Cluster) WithoutKeepalived(ctx context.Context) []string {
	return c.without(ctx, c.config.gateways(), "keepalived", "test -x /usr/sbin/keepalived")
}
