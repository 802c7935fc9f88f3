package network

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	bin            = "/opt/burano/bin/"
	keys           = "/etc/burano/pki/"
	calicoCert     = keys + "calico.crt"
	calicoKey      = keys + "calico.key"
	cniConfig      = "/etc/cni/net.d/10-calico.conflist"
	cniSource      = "/etc/calico/10-calico.conflist"
	cniKubeconfig  = "/etc/kubernetes/calico-cni.conf"
	daemonEnv      = "/etc/calico/node.env"
	controllersEnv = "/etc/calico/controllers.env"
	controllersCfg = "/etc/kubernetes/calico-controllers.conf"

	// policyPatience is how many seconds a pod's start waits until Felix has made its rules; the pod starts then all the same.
	policyPatience = 10

	felixUnit = "calico-node"
	birdUnit  = "calico-bird"
	confdUnit = "calico-confd"

	// confdFolder is where the node image has the templates of BIRD's configuration.
	confdFolder = "/opt/burano/calico"

	// nobodys is the range of the pool of IPv4 that calico-node makes with any settings, and of which no pod has an address: one of RFC 5737.
	nobodys = "192.0.2.0/24"

	cniUser         = "burano:calico-cni"
	controllersUser = "burano:calico-controllers"
)

// Names of the pairs that Calico orders.
const (
	calicoEtcdPair        = "calico"
	calicoCNIPair         = "calico-cni"
	calicoControllersPair = "calico-controllers"
)

//go:embed manifests/calico.yaml
var calicoManifests []byte

// Calico is Calico, over etcd or in Kubernetes.
type Calico struct {
	EtcdUser string       // whose certificate it shows to etcd
	Pods     netip.Prefix // where they have their addresses of IPv4; not valid for none
	Pods6    netip.Prefix // where they have addresses of IPv6; not valid for none
	MTU      int          // of pods; 0 for the MTU of their node's interface, less the encapsulation's share
	// Encapsulation is of packets between nodes; Always when empty. Unwrapped is for IPv4 alone.
	Encapsulation Encapsulation
	Peers         []Peer // where nothing is wrapped
	// Datastore is where it keeps its data; InEtcd when empty. InKubernetes, its daemons start only where their node has a Node object and the kinds of
	// CalicoDefinitions are known.
	Datastore Datastore
}

// Units is part of Driver.
func (c Calico) Units() Units {
	units := Units{Daemons: []string{felixUnit}, Controllers: []string{"calico-kube-controllers"}}
	if c.routed() {
		units.Daemons = append(units.Daemons, birdUnit, confdUnit)
		units.Parts = []string{"/usr/sbin/bird", "/usr/sbin/birdc", confdFolder}
	}
	return units
}

// Overhead is part of Driver.
func (c Calico) Overhead() int { return c.Encapsulation.Overhead(c.Pods6.IsValid()) }

func (c Calico) routed() bool { return c.Encapsulation == Unwrapped }

// Orders is part of Driver.
func (c Calico) Orders(node Node, authorities *pki.Cluster) map[string]pki.Order {
	orders := map[string]pki.Order{
		calicoEtcdPair: {Authority: authorities.Etcd, Request: pki.Request{CommonName: c.EtcdUser, Usage: pki.Client}},
	}
	if c.Datastore == InKubernetes {
		orders = kubernetesOrders(node, authorities)
	} else if node.Kubelet {
		orders[calicoCNIPair] = pki.Order{Authority: authorities.Kubernetes, Request: pki.Request{CommonName: cniUser, Usage: pki.Client}}
	}
	if node.Master {
		orders[calicoControllersPair] = pki.Order{Authority: authorities.Kubernetes, Request: pki.Request{CommonName: controllersUser, Usage: pki.Client}}
	}
	return orders
}

// Registry is part of Driver.
func (c Calico) Registry() Registry {
	const prefix = "/calico/resources/v3/projectcalico.org/nodes/"
	return Registry{Prefix: prefix, Node: func(key string, _ []byte) (Node, bool) {
		name, found := strings.CutPrefix(key, prefix)
		return Node{Name: name}, found && name != "" && !strings.Contains(name, "/")
	}}
}

// Manifests is part of Driver.
func (c Calico) Manifests() []byte {
	if c.Datastore == InKubernetes {
		return calicoKubernetesManifests
	}
	return calicoManifests
}

// Settings is part of Driver: the first calico-node that starts writes its own.
func (c Calico) Settings() map[string]string { return nil }

// Daemons is part of Driver: Felix, which starts after the node has registered itself and has its tunnel's address where there is one. Without
// encapsulation it is also BIRD, which exchanges routes by BGP with BIRD on each other node.
//
// The CNI configuration is put in place last, so that a node is Ready only when Calico is: a pod made earlier fails and waits 13 s for its next try. Felix
// ends with code 129 whenever its configuration changes and must be started again.
func (c Calico) Daemons(node Node, pairs map[string]pki.Pair, access Access) ([]systemd.Unit, error) {
	backend, vxlan := "vxlan", "Always"
	switch c.Encapsulation {
	case CrossSubnet:
		vxlan = "CrossSubnet"
	case Unwrapped:
		backend, vxlan = "bird", "Never"
	}
	four, six, pool, wrapped := "none", "none", nobodys, "Never"
	if c.Pods.IsValid() {
		four, pool, wrapped = fmt.Sprintf("%s/%d", node.Address, node.Bits), c.Pods.String(), vxlan
	}
	if c.Pods6.IsValid() {
		six = node.Six.String()
	}
	store, felix, files, err := c.access(node, pairs, access)
	if err != nil {
		return nil, err
	}
	env := slices.Concat(store, []string{
		"NODENAME=" + node.Name,
		"IP=" + four,
		"IP6=" + six,
		"CALICO_NETWORKING_BACKEND=" + backend,
		"CALICO_IPV4POOL_CIDR=" + pool,
		"CALICO_IPV4POOL_VXLAN=" + wrapped,
		"CALICO_IPV4POOL_IPIP=Never",
		"CALICO_DISABLE_FILE_LOGGING=true",
		"CLUSTER_TYPE=k8s",
		// Addresses are Neutron's, and each belongs to one server. After a restore the store has addresses of other servers, which new servers may have
		// now.
		"DISABLE_NODE_IP_CHECK=true",
		"WAIT_FOR_DATASTORE=true",
	}, felix, []string{
		"FELIX_FELIXHOSTNAME=" + node.Name,
		"FELIX_ENDPOINTSTATUSPATHPREFIX=/var/run/calico", // the folder endpoint-status in it is where the CNI plugin looks
		fmt.Sprintf("FELIX_IPV6SUPPORT=%t", c.Pods6.IsValid()),
		"FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT",
		"FELIX_LOGSEVERITYSCREEN=warning",
		"FELIX_LOGFILEPATH=none",
		"FELIX_LOGSEVERITYSYS=none",
		"FELIX_BPFENABLED=false",
		"FELIX_BPFCONNECTTIMELOADBALANCINGENABLED=false",
		"FELIX_XDPENABLED=false",
		"FELIX_IPTABLESBACKEND=NFT",
		"FELIX_USAGEREPORTINGENABLED=false",
	})
	if c.MTU != 0 && !c.routed() {
		env = append(env, fmt.Sprintf("FELIX_VXLANMTU=%d", c.MTU))
	}
	if !c.Pods.IsValid() {
		env = append(env, "CALICO_IPV4POOL_NAT_OUTGOING=false")
	}
	if c.Pods6.IsValid() {
		env = append(env, c.six(vxlan)...)
	}
	unit := systemd.Unit{
		Name:        felixUnit,
		Description: "Calico: routes to the pods of all nodes",
		Command:     []string{bin + "calico-node", "-felix"},
		Service: []string{
			"EnvironmentFile=" + daemonEnv,
			"TimeoutStartSec=120",
			"ExecStartPre=/bin/mkdir -p /var/lib/calico /var/log/calico /run/calico /etc/cni/net.d",
			"ExecStartPre=" + bin + "calico-node -startup",
		},
		Files: files,
	}
	if c.routed() {
		env = append(env, "BGP_LOGSEVERITYSCREEN=warning")
	} else {
		unit.Service = append(unit.Service, "ExecStartPre="+bin+"calico-node -allocate-tunnel-addrs -allocate-tunnel-addrs-run-once")
	}
	// In etcd, Calico's controllers delete a node whose Node object goes. A master's goes when it runs no pods any more, and the master stays.
	if node.Kubelet && !node.Master || c.Datastore == InKubernetes {
		env = append(env, "CALICO_K8S_NODE_REF="+node.Name)
	}
	if node.Kubelet {
		conflist, err := c.conflist(node, access)
		if err != nil {
			return nil, err
		}
		unit.Files = append(unit.Files, ssh.File{Path: cniSource, Content: conflist})
		if c.Datastore != InKubernetes {
			kubeconfig, err := access.Kubeconfig(cniUser, pairs[calicoCNIPair])
			if err != nil {
				return nil, err
			}
			unit.Files = append(unit.Files, ssh.File{Path: cniKubeconfig, Content: kubeconfig, Mode: 0o600})
		}
		unit.Service = append(unit.Service, "ExecStartPost=/bin/cp "+cniSource+" "+cniConfig)
	}
	unit.Files = append(unit.Files, environment(daemonEnv, env))
	if !c.routed() {
		return []systemd.Unit{unit}, nil
	}
	return append([]systemd.Unit{unit}, routers(unit.Files)...), nil
}

// routers are the units that exchange routes by BGP: BIRD, and the program that writes its configuration, once before BIRD starts and again after each
// change of Calico's store. While BIRD restarts its routes stay, also on the other nodes, as it sends them no message when it ends.
func routers(files []ssh.File) []systemd.Unit {
	confd := []string{bin + "calico-node", "-confd", "-confd-confdir=" + confdFolder}
	return []systemd.Unit{
		{
			Name:        birdUnit,
			Description: "BIRD: exchanges routes to pods with the other nodes",
			Command:     []string{"/usr/sbin/bird", "-f", "-R", "-c", "/run/calico/bird/bird.cfg", "-s", "/run/calico/bird.ctl"},
			Service: []string{
				"EnvironmentFile=" + daemonEnv,
				"KillSignal=SIGKILL",
				"ExecStartPre=/bin/mkdir -p /run/calico/bird",
				"ExecStartPre=" + strings.Join(append(confd, "-confd-run-once"), " "),
			},
			After: felixUnit + ".service",
		},
		{
			Name:        confdUnit,
			Description: "Calico: the other nodes and the blocks of pods, for BIRD",
			Command:     confd,
			Service:     []string{"EnvironmentFile=" + daemonEnv},
			Files:       files,
			After:       birdUnit + ".service",
		},
	}
}

// six are calico-node's settings where pods have IPv6. Pods' packets that leave the cluster have their node's address, as with IPv4, because no router has
// a route to the pods.
func (c Calico) six(vxlan string) []string {
	env := []string{
		"CALICO_IPV6POOL_CIDR=" + c.Pods6.String(),
		"CALICO_IPV6POOL_VXLAN=" + vxlan,
		"CALICO_IPV6POOL_NAT_OUTGOING=true",
	}
	if c.MTU != 0 {
		env = append(env, fmt.Sprintf("FELIX_VXLANMTUV6=%d", c.MTU))
	}
	return env
}

func (c Calico) conflist(node Node, access Access) ([]byte, error) {
	type object = map[string]any
	ipam := object{"type": "calico-ipam"}
	if c.Pods6.IsValid() {
		ipam = object{"type": "calico-ipam", "assign_ipv4": strconv.FormatBool(c.Pods.IsValid()), "assign_ipv6": "true"}
	}
	mtu := c.MTU
	if mtu == 0 {
		mtu = cmp.Or(node.MTU, 1500) - c.Overhead()
	}
	calico := object{
		"type": "calico", "log_level": "warning", "log_file_path": "/var/log/calico/cni.log",
		"nodename": node.Name, "mtu": mtu,
		"ipam": ipam, "policy": object{"type": "k8s"},
		// A probe from its own node reaches a pod before others do: without this, a pod is ready while Felix still drops what gateways send it.
		"policy_setup_timeout_seconds": policyPatience,
	}
	if c.Datastore == InKubernetes {
		maps.Copy(calico, object{"datastore_type": "kubernetes", "kubernetes": object{"kubeconfig": calicoKubeconfig}})
	} else {
		maps.Copy(calico, object{
			"datastore_type": "etcdv3", "etcd_endpoints": access.Endpoint, "etcd_ca_cert_file": access.AuthorityFile,
			"etcd_cert_file": calicoCert, "etcd_key_file": calicoKey, "kubernetes": object{"kubeconfig": cniKubeconfig},
		})
	}
	text, err := json.MarshalIndent(object{
		"name":       "k8s-pod-network",
		"cniVersion": "0.3.1",
		"plugins": []object{
			calico,
			{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write Calico's CNI configuration: %w", err)
	}
	return append(text, '\n'), nil
}

// Controllers is part of Driver. Over etcd they carry policies, and the objects that policies name, from Kubernetes. There the controller "node" is left
// out: it deletes the Calico node of a server whose Kubernetes node is not registered yet. Compaction is the API server's, which alone may write
// compact_rev_key. In Kubernetes only "node" runs: it frees the addresses of nodes that are gone.
func (c Calico) Controllers(node Node, pairs map[string]pki.Pair, access Access) ([]systemd.Unit, error) {
	kubeconfig, err := access.Kubeconfig(controllersUser, pairs[calicoControllersPair])
	if err != nil {
		return nil, err
	}
	files := []ssh.File{{Path: controllersCfg, Content: kubeconfig, Mode: 0o600}}
	env := []string{"DATASTORE_TYPE=kubernetes", "KUBECONFIG=" + controllersCfg, "ENABLED_CONTROLLERS=node", "LOG_LEVEL=warning"}
	if c.Datastore != InKubernetes {
		store, _, keys, err := c.access(node, pairs, access)
		if err != nil {
			return nil, err
		}
		files = append(keys, files...)
		env = append(store,
			"KUBECONFIG="+controllersCfg,
			"ENABLED_CONTROLLERS=policy,namespace,serviceaccount,workloadendpoint",
			"COMPACTION_PERIOD=0",
			"LOG_LEVEL=warning",
		)
	}
	return []systemd.Unit{{
		Name:        c.Units().Controllers[0],
		Description: "Calico: policies and profiles from Kubernetes",
		Command:     []string{bin + "calico-kube-controllers"},
		Service:     []string{"EnvironmentFile=" + controllersEnv, "ExecStartPre=/bin/mkdir -p /status"},
		Files:       append(files, environment(controllersEnv, env)),
	}}, nil
}

func environment(path string, lines []string) ssh.File {
	return ssh.File{Path: path, Content: []byte(strings.Join(lines, "\n") + "\n")}
}
