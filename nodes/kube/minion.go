package kube

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	kubeletPair       = "kubelet"
	kubeletServerPair = "kubelet-server"
	proxyPair         = "proxy"
	proxyUser         = "system:kube-proxy"
	shieldPath        = "/opt/burano/lib/shield"
	metadataPath      = "/opt/burano/lib/metadata.nft"
	pauseImage        = "registry.local/pause:1"
)

//go:embed scripts/shield.sh
var shieldScript []byte

//go:embed scripts/metadata.nft
var metadataRules []byte

// MinionOrders are the certificates of a minion.
func (c Cluster) MinionOrders(node Node) map[string]pki.Order {
	kubernetes := c.Authorities.Kubernetes
	orders := map[string]pki.Order{
		kubeletPair:       {Authority: kubernetes, Request: pki.Request{CommonName: kubeletUser(node), Organization: []string{"system:nodes"}, Usage: pki.Client}},
		kubeletServerPair: {Authority: kubernetes, Request: pki.Request{CommonName: kubeletUser(node), Organization: []string{"system:nodes"}, DNS: []string{node.Name}, IP: []netip.Addr{c.Primary(node)}, Usage: pki.Server}},
		proxyPair:         {Authority: kubernetes, Request: pki.Request{CommonName: proxyUser, Usage: pki.Client}},
	}
	if c.Proxy.ThroughMasters() {
		orders[wayClientPair] = pki.Order{Authority: kubernetes, Request: pki.Request{CommonName: wayUser, Usage: pki.Client}}
	}
	return orders
}

func kubeletUser(node Node) string { return "system:node:" + node.Name }

// Containerd is the unit of the container runtime, which comes with the image.
func (c Cluster) Containerd() systemd.Unit {
	folder, files := c.Registries.runtime()
	if c.Proxy.exists() || c.Proxied {
		files = append(files, c.Proxy.files(ProxyOfContainerd, c.proxyEnvironment())...)
	}
	registries := ""
	if folder != "" {
		registries = fmt.Sprintf("  [plugins.\"io.containerd.grpc.v1.cri\".registry]\n    config_path = %q\n", folder)
	}
	return systemd.Unit{Name: "containerd", Packaged: true, Files: append(files, ssh.File{Path: "/etc/containerd/config.toml", Content: []byte(`version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = ` + strconv.FormatBool(c.Host.restrictOOM()) + `
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
` + registries)})}
}

// Kubelet are the units of the kubelet and of kube-proxy. No pod starts before pods are cut off from the cloud's metadata.
func (c Cluster) Kubelet(node Node, pairs map[string]pki.Pair) ([]systemd.Unit, error) {
	kubelet, err := c.kubeconfigFile("kubelet", kubeletUser(node), pairs[kubeletPair])
	if err != nil {
		return nil, err
	}
	proxy, err := c.kubeconfigFile("proxy", proxyUser, pairs[proxyPair])
	if err != nil {
		return nil, err
	}
	logins, err := c.Registries.loginsFile()
	if err != nil {
		return nil, err
	}
	kernel, limits := c.Host.kubelet()
	kubeletConfig := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %s}
authorization: {mode: Webhook}
tlsCertFile: %[3]s%[4]s.crt
tlsPrivateKeyFile: %[3]s%[4]s.key
clusterDomain: %s
clusterDNS: [%s]
# pods with dnsPolicy Default get no resolver of the node: CoreDNS is told where to forward to
resolvConf: ""
containerRuntimeEndpoint: %s
# containerd 1.6 cannot tell it; must be the same in its configuration
cgroupDriver: systemd
%shealthzBindAddress: 127.0.0.1
# images come with the node image: none may be collected
imageGCHighThresholdPercent: 100
%s`, c.Primary(node), keys+"kubernetes-ca.crt", keys, kubeletServerPair, c.Addressing.Domain, c.Addressing.DNS(), c.Runtime.Endpoint(), kernel, limits+c.streams())
	bind := c.everywhere()
	if !c.Addressing.Four() {
		bind = strconv.Quote(bind) // YAML takes it for something else otherwise
	}
	proxyConfig := fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: %s
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
hostnameOverride: %s
clientConnection: {kubeconfig: %s}
clusterCIDR: %s
mode: iptables
%s`, bind, node.Name, proxy.Path, network.Text(c.Addressing.PodRanges()), c.Host.proxy())
	service := []string{"CPUAccounting=yes", "MemoryAccounting=yes", "ExecStartPre=" + shieldPath, "ExecStartPre=" + metadataPath}
	var outside []ssh.File
	if c.Proxy.exists() {
		service = append(service, "EnvironmentFile="+proxyFile)
		outside = c.Proxy.files(ProxyOfContainerd, c.proxyEnvironment())[1:]
	}
	return []systemd.Unit{
		{
			Name:        "kubelet",
			Description: "Kubernetes node agent",
			Command:     program("kubelet", "--config="+configs+"kubelet.yaml", "--kubeconfig="+kubelet.Path, "--node-ip="+c.addressesText(node), "--hostname-override="+node.Name),
			Service:     service,
			Files: append(append(pairFiles(kubeletServerPair, pairs[kubeletServerPair]), kubelet, c.authorityFile(),
				ssh.File{Path: configs + "kubelet.yaml", Content: []byte(kubeletConfig)},
				ssh.File{Path: shieldPath, Content: shieldScript, Mode: 0o755},
				ssh.File{Path: metadataPath, Content: metadataRules, Mode: 0o755}), outside...),
			Live: []ssh.File{logins},
		},
		{
			Name:        "kube-proxy",
			Description: "Kubernetes service addresses",
			Command:     program("kube-proxy", "--config="+configs+"proxy.yaml"),
			Files:       []ssh.File{proxy, {Path: configs + "proxy.yaml", Content: []byte(proxyConfig)}},
		},
	}, nil
}
