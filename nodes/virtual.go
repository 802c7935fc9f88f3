package nodes

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// VirtualAddress is an address that the gateways of a cluster share, or its masters. One of them has it at a time, as they agree by VRRP, and another one takes
// it over within two seconds when that one dies, or its HAProxy or API server does. The cloud must let each of them use it.
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
	masterCheck   = "/etc/burano/master-lives"
	masterLeaves  = "/etc/burano/master-leaves"
	// virtualPatience is how long it may take until a node has the address. Nodes that begin agree within two seconds.
	virtualPatience = 30 * time.Second
)

//go:embed scripts/gateway-lives.sh
var gatewayLivesScript string

//go:embed scripts/master-lives.sh
var masterLivesScript string

//go:embed scripts/master-leaves.sh
var masterLeavesScript string

//go:embed scripts/end-virtual-address.sh
var endVirtualScript string

// sharing is an address that the nodes of a role share, with the names of its steps.
type sharing struct {
	VirtualAddress
	role                      Role
	property                  string // of the cluster in a model
	peers, share, held, leave string
	after                     string // the step after which a node may have the address
}

func (s sharing) noun() string { return string(s.role) + "s" }

// sharings are the address of the gateways, for Services, and the address of the masters, for the API. Without an address the role shares none.
func (c Config) sharings() []sharing {
	return []sharing{
		{VirtualAddress: c.Virtual, role: Gateway, property: "virtualAddress", peers: stepVirtualPeers, share: stepVirtualAddress, held: stepVirtualHeld, leave: stepVirtualLeave, after: stepGateway},
		{VirtualAddress: c.APIAddress, role: Master, property: "apiAddress", peers: stepAPIPeers, share: stepAPIAddress, held: stepAPIHeld, leave: stepAPILeave, after: stepAPIServes},
	}
}

// sharing is the one of a node's role.
func (c Config) sharing(role Role) sharing {
	list := c.sharings()
	return list[slices.IndexFunc(list, func(one sharing) bool { return one.role == role })]
}

// gateways are the gateways that stay.
func (c Config) gateways() []Node {
	return only(c.staying(), func(node Node) bool { return node.Role == Gateway })
}

// virtualAddress is the unit by which a node shares the address with the others of its role. Another list of nodes is a reload, which moves nothing.
//
//   - all priorities are equal, so that the address stays where it is when a node comes (back);
//   - an advertisement each 0.3 s: a node that dies suddenly is missed after 1.1 s; one that stops announces it;
//   - with unicast no packet of VRRP goes to other servers in the network. A node without others has the address itself as its peer, because none
//     would mean multicast.
func (d design) virtualAddress(node Node) systemd.Unit {
	shared := d.cluster.sharing(node.Role)
	var peers []string
	for _, other := range d.cluster.staying() {
		if other.Role == node.Role && other.Name != node.Name {
			peers = append(peers, other.Address.String())
		}
	}
	if len(peers) == 0 {
		peers = append(peers, shared.Address.String())
	}
	router, checks, tracked, check, after := 51, gatewayChecks(node), "haproxy\n    daemon", ssh.File{Path: virtualCheck, Content: []byte(gatewayLivesScript), Mode: 0o755}, "haproxy.service"
	if node.Role == Master {
		router, checks, tracked, check, after = 52, masterChecks(), "apiserver", ssh.File{Path: masterCheck, Content: []byte(masterLivesScript), Mode: 0o755}, "kube-apiserver.service"
	}
	config := fmt.Sprintf(`# The address that the %[1]s share. Changes made here by hand do not last.

global_defs {
  router_id %[2]s
  script_user root
  enable_script_security
  vrrp_version 3
  vrrp_check_unicast_src
  vrrp_garp_master_delay 1
}

%[3]s
vrrp_instance %[1]s {
  state BACKUP
  interface %[4]s
  virtual_router_id %[5]d
  priority 100
  advert_int 0.3
  unicast_src_ip %[6]s
  unicast_peer {
    %[7]s
  }
  virtual_ipaddress {
    %[8]s/32 dev %[4]s
  }
  track_script {
    %[9]s
  }
}
`, shared.noun(), node.Name, checks, d.device, router, node.Address, strings.Join(peers, "\n    "), shared.Address, tracked)
	unit := systemd.Unit{
		Name:        virtualUnit,
		Description: "the address that the " + shared.noun() + " share",
		Command:     []string{"/usr/sbin/keepalived", "--dont-fork", "--vrrp", "--use-file=" + virtualConfig},
		Service: []string{"ExecReload=/usr/sbin/keepalived --config-test --use-file=" + virtualConfig, "ExecReload=/bin/kill -HUP $MAINPID",
			"KillMode=mixed"},
		After:   after, // it stops before
		Files:   []ssh.File{{Path: virtualConfig, Content: []byte(config)}, check},
		Reloads: true,
	}
	if node.Role == Master {
		unit.Service = append(unit.Service, fmt.Sprintf("ExecStop=-%s end %s %d", masterLeaves, shared.Address, kube.APIServerPort), "ExecStopPost=-"+masterLeaves+" open")
		unit.Files = append(unit.Files, ssh.File{Path: masterLeaves, Content: []byte(masterLeavesScript), Mode: 0o755})
	}
	return unit
}

// gatewayChecks have a gateway whose HAProxy does not answer for a second leave the address. So does one whose daemon is away for 6 s, so that its routes are old, if
// another gateway has its daemon.
func gatewayChecks(node Node) string {
	return fmt.Sprintf(`vrrp_script haproxy {
  script "%[1]s haproxy %[2]s"
  interval 1
  timeout 1
  fall 1
  rise 2
}

vrrp_script daemon {
  script "%[1]s daemon %[3]s %[4]d"
  interval 2
  timeout 1
  fall 3
  rise 1
  weight -50
}
`, virtualCheck, traffic.Socket, node.Address, route.MetricsPort)
}

// masterChecks have a master whose API server is not ready for two seconds leave the address, if the API server of another one is ready: while etcd elects a leader none is.
func masterChecks() string {
	return fmt.Sprintf(`vrrp_script apiserver {
  script "%s %d"
  interval 1
  timeout 1
  fall 2
  rise 2
  weight -50
}
`, masterCheck, kube.APIServerPort)
}

// addressSteps make the nodes of a role share their address, or not any more. The present ones know all others before a new one begins, which would else
// believe that it is alone. A leaving one leaves the address when its successors are there.
type addressSteps struct{ *deployment }

func (d addressSteps) steps() (list []step) {
	for _, one := range d.cluster.config.sharings() {
		list = append(list, d.sharing(one)...)
	}
	return list
}

func (d addressSteps) sharing(one sharing) []step {
	nodes, shared := serving(d.deployment, one.role), d.design.binary != "" && one.Address.IsValid()
	ends := d.design.binary != "" && !shared && d.again
	share := []soft{{name: one.share, nodes: nodes, limit: joinGrace}}
	leaving := only(d.cluster.config.Nodes, func(node Node) bool {
		return node.Role == one.role && node.Leaving && !slices.ContainsFunc(d.dead, func(dead Node) bool { return dead.Name == node.Name })
	})
	return []step{
		{name: one.share, on: nodes, skipIf: !ends, after: here(stepFiles), run: d.endVirtualAddress},
		{name: one.peers, on: nodes, skipIf: !shared, after: here(stepFiles), run: d.virtualPeers},
		{name: one.share, on: nodes, skipIf: !shared, after: here(one.after), soft: []soft{{name: one.peers, nodes: nodes, limit: joinGrace}}, run: d.virtualAddress},
		{name: one.held, on: d.leads(), skipIf: !shared, after: ifPlanned(here(stepAccess)), soft: share, runKnowing: func(ctx context.Context, _ Node, done plan.Progress) error {
			return d.virtualHeld(ctx, one, func() []Node { return through(done, nodes, one.share) })
		}},
		{name: one.leave, on: leaving, skipIf: !shared, soft: share, run: func(ctx context.Context, node Node) error {
			d.cluster.stopPolitely(ctx, node, virtualUnit)
			return nil
		}},
	}
}

// virtualPeers gives a node that shares the address the list of the others.
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

// virtualAddress has a node share the address.
func (d addressSteps) virtualAddress(ctx context.Context, node Node) error {
	if !d.found(node).facts.keepalived {
		one := d.cluster.config.sharing(node.Role)
		return fmt.Errorf("%s has no keepalived, so that it cannot share the address %s with the other %s: upgrade the cluster to an image that "+
			"has it, or leave %s out", node.Name, one.Address, one.noun(), one.property)
	}
	return d.start(ctx, node, true, virtualUnit)
}

// virtualHeld waits until one of the nodes that share the address by then has it.
func (d addressSteps) virtualHeld(ctx context.Context, one sharing, nodes func() []Node) error {
	return wait.Every(pollEvery).For(virtualPatience).Until(ctx, func(ctx context.Context) error {
		for _, node := range nodes() {
			if held, err := holds(ctx, d.cluster.servers, node, one.Address); err == nil && held {
				return nil
			}
		}
		return wait.Again(fmt.Errorf("no %s has taken the address %s that they share: journalctl -u %s says why on each of them", one.role, one.Address, virtualUnit))
	})
}

// holds reports whether a node has an address now.
func holds(ctx context.Context, c *servers, node Node, address netip.Addr) (bool, error) {
	out, err := c.script(ctx, node.Name, ssh.Script{Name: "look for the virtual address", Body: "ip -o address show to " + address.String() + "/32"})
	return strings.TrimSpace(out) != "", err
}

// passOnAddress has another master take the address of the API from one that has it. The connections through it end, and are made anew with the other one.
func passOnAddress(ctx context.Context, c *servers, node Node) (held bool, err error) {
	address := c.config.APIAddress.Address
	if !address.IsValid() {
		return false, nil
	}
	if held, err = holds(ctx, c, node, address); err != nil || !held {
		return held, err
	}
	// One that ends announces it, and one that begins takes the address from nobody.
	if _, err := c.script(ctx, node.Name, ssh.Script{Name: "pass on the address", Body: "systemctl restart " + virtualUnit}); err != nil {
		return true, err
	}
	return true, wait.Every(insideLook).For(takeOverPatience).Until(ctx, func(ctx context.Context) error {
		for _, other := range c.config.servingMasters() {
			if other.Name == node.Name {
				continue
			}
			if taken, err := holds(ctx, c, other, address); err == nil && taken {
				return nil
			}
		}
		return wait.Again(fmt.Errorf("no other master has taken the address %s: journalctl -u %s says why on each of them", address, virtualUnit))
	})
}

// endVirtualAddress has a node share no address any more.
func (d addressSteps) endVirtualAddress(ctx context.Context, node Node) error {
	if !d.found(node).facts.virtual {
		return nil
	}
	if _, err := d.script(ctx, node, "end the virtual address", endVirtualScript, map[string]string{"UNIT": virtualUnit, "FILES": strings.Join([]string{virtualConfig, virtualCheck, masterCheck, masterLeaves}, "\n")}); err != nil {
		return err
	}
	d.report(ctx, node, "shares no address with the other "+d.cluster.config.sharing(node.Role).noun()+" any more")
	return nil
}

// WithoutKeepalived are the nodes of a role that answer and cannot share an address, because the image that they were made from has no keepalived.
func (c *Cluster) WithoutKeepalived(ctx context.Context, role Role) []string {
	return c.without(ctx, only(c.config.staying(), func(node Node) bool { return node.Role == role }), "keepalived", "test -x /usr/sbin/keepalived")
}
