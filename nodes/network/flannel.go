package network

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	flannelEtcdPair  = "flannel"
	flannelCert      = keys + "flannel.crt"
	flannelKey       = keys + "flannel.key"
	flannelPrefix    = "/coreos.com/network"
	flannelRules     = "/etc/flannel/rules.nft"
	flannelCNISource = "/etc/flannel/10-flannel.conflist"
	flannelCNIConfig = "/etc/cni/net.d/10-flannel.conflist"

	// flannelVNI numbers the tunnel, and is a part of its interface's name: flannel.1.
	flannelVNI = 1
	// flannelSubnet is the length of the prefix that each node gets.
	flannelSubnet = 24
)

//go:embed files/flannel.nft
var flannelRulesText string

// Flannel is Flannel over etcd with VXLAN between all nodes. It knows no network policies.
type Flannel struct {
	EtcdUser string       // whose certificate it shows to etcd
	Pods     netip.Prefix // where they have their addresses
	MTU      int          // of pods, from the first deployment; 0 for the MTU of their node's interface, less VXLAN's share
}

// Units is part of Driver.
func (f Flannel) Units() Units { return Units{Daemons: []string{"flanneld"}} }

// Overhead is part of Driver.
func (f Flannel) Overhead() int { return Overhead }

// Orders is part of Driver.
func (f Flannel) Orders(_ Node, authorities *pki.Cluster) map[string]pki.Order {
	return map[string]pki.Order{
		flannelEtcdPair: {Authority: authorities.Etcd, Request: pki.Request{CommonName: f.EtcdUser, Usage: pki.Client}},
	}
}

// Manifests is part of Driver: Flannel asks Kubernetes for nothing.
func (f Flannel) Manifests() []byte { return nil }

// Settings is part of Driver: the configuration that all nodes read. The MTU there is that of the nodes' interface; without one it is each node's own.
func (f Flannel) Settings() map[string]string {
	mtu := ""
	if f.MTU != 0 {
		mtu = fmt.Sprintf(`,"MTU":%d`, f.MTU+Overhead)
	}
	return map[string]string{
		flannelPrefix + "/config": fmt.Sprintf(`{"Network":%q,"SubnetLen":%d,"Backend":{"Type":"vxlan","VNI":%d,"Port":8472%s}}`, f.Pods, flannelSubnet, flannelVNI, mtu),
	}
}

// Registry is part of Driver: its leases.
func (f Flannel) Registry() Registry {
	return Registry{Prefix: flannelPrefix + "/subnets/", Node: func(_ string, value []byte) (Node, bool) {
		var lease struct{ PublicIP netip.Addr }
		err := json.Unmarshal(value, &lease)
		return Node{Address: lease.PublicIP}, err == nil && lease.PublicIP.IsValid()
	}}
}

// Daemons is part of Driver. flanneld reports that it is ready when the tunnel is up and the node's subnet is known. Only then is the CNI configuration
// put in place, so that a node is Ready only when its network is.
func (f Flannel) Daemons(node Node, pairs map[string]pki.Pair, access Access) ([]systemd.Unit, error) {
	unit := systemd.Unit{
		Name:        f.Units().Daemons[0],
		Description: "Flannel: routes to the pods of all nodes",
		Command: []string{
			bin + "flanneld", "-address=" + node.Address.String(), "-etcd-endpoint=" + access.Endpoint, "-etcd-prefix=" + flannelPrefix,
			"-etcd-cafile=" + access.AuthorityFile, "-etcd-certfile=" + flannelCert, "-etcd-keyfile=" + flannelKey,
		},
		Service: []string{
			"Type=notify",
			"TimeoutStartSec=120",
			"ExecStartPre=/bin/mkdir -p /etc/cni/net.d",
			"ExecStartPre=/usr/sbin/nft -f " + flannelRules,
		},
		Files: []ssh.File{
			{Path: access.AuthorityFile, Content: access.Authority},
			{Path: flannelCert, Content: pairs[flannelEtcdPair].Certificate},
			{Path: flannelKey, Content: pairs[flannelEtcdPair].Key, Mode: 0o600},
			{Path: flannelRules, Content: flannelRulesFile(f.Pods)},
		},
	}
	if node.Kubelet {
		conflist, err := flannelConflist()
		if err != nil {
			return nil, err
		}
		unit.Files = append(unit.Files, ssh.File{Path: flannelCNISource, Content: conflist})
		unit.Service = append(unit.Service, "ExecStartPost=/bin/cp "+flannelCNISource+" "+flannelCNIConfig)
	}
	return []systemd.Unit{unit}, nil
}

// Controllers is part of Driver: there are none.
func (f Flannel) Controllers(Node, map[string]pki.Pair, Access) ([]systemd.Unit, error) {
	return nil, nil
}

// flannelConflist is the CNI configuration. Pods hang on routes (ptp) and not on a bridge: packets between two pods of one
// node are then routed like all others, so that kube-proxy sees them without the kernel's br_netfilter. The subnet and the
// MTU come from the file that flanneld writes.
func flannelConflist() ([]byte, error) {
	type object = map[string]any
	text, err := json.MarshalIndent(object{
		"name":       "k8s-pod-network",
		"cniVersion": "0.3.1",
		"plugins": []object{
			{
				"type":     "flannel",
				"delegate": object{"type": "ptp"},
				// of its own Flannel's plugin only adds the route to the pods
				"ipam": object{"routes": []object{{"dst": "0.0.0.0/0"}}},
			},
			{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write Flannel's CNI configuration: %w", err)
	}
	return append(text, '\n'), nil
}

func flannelRulesFile(pods netip.Prefix) []byte {
	return []byte(strings.NewReplacer("{{.Pods}}", pods.String(), "{{.Tunnel}}", fmt.Sprintf("flannel.%d", flannelVNI)).Replace(flannelRulesText))
}
