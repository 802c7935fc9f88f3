package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Standalone is a server that runs containers by itself: its kubelet belongs to no cluster, and keeps the pods that are described in StandalonePods
// running, also after a reboot.
type Standalone struct {
	Host       Host
	Runtime    Runtime
	Registries Registries
	// Containers is where containers have their addresses. They reach each other at Gateway.
	Containers netip.Prefix
	// MTU is that of the server's own interface.
	MTU int
}

const (
	// StandalonePods is the folder with the pods of a standalone server, one a file.
	StandalonePods = configs + "pods"
	// StandalonePort is where the kubelet of a standalone server answers, on the server itself, to clients with the certificate StandaloneClient.
	StandalonePort = 10250
	// StandaloneClient begins the names of the certificate and the key, .crt and .key, which the server makes itself.
	StandaloneClient = keys + "standalone"
)

// StandalonePorts are the ports that a standalone server needs itself: SSH, and the kubelet on the server's loopback.
var StandalonePorts = []int32{22, 10248, StandalonePort}

// Gateway is the address of the server on the side of its containers.
func (s Standalone) Gateway() netip.Addr { return s.Containers.Masked().Addr().Next() }

// Units are the units of the container runtime and of the kubelet, in the order in which they start.
func (s Standalone) Units() ([]systemd.Unit, error) {
	logins, err := s.Registries.loginsFile()
	if err != nil {
		return nil, err
	}
	network, err := s.network()
	if err != nil {
		return nil, err
	}
	kernel, limits := s.Host.kubelet()
	config := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %d
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %s.crt}
# whoever has the key is root on the server
authorization: {mode: AlwaysAllow}
staticPodPath: %s
fileCheckFrequency: 5s
resolvConf: /etc/resolv.conf
containerRuntimeEndpoint: %s
# containerd 1.6 cannot tell it; must be the same in its configuration
cgroupDriver: systemd
%shealthzBindAddress: 127.0.0.1
# images come with the node image: none may be collected
imageGCHighThresholdPercent: 100
%s`, StandalonePort, StandaloneClient, StandalonePods, s.Runtime.Endpoint(), kernel, limits)
	units, err := Cluster{Host: s.Host, Runtime: s.Runtime, Registries: s.Registries}.RuntimeUnits()
	if err != nil {
		return nil, err
	}
	for i, unit := range units {
		units[i] = s.Host.Unit(unit)
	}
	return append(units,
		s.Host.Unit(systemd.Unit{
			Name:        "kubelet",
			Description: "Containers of applications",
			Command:     program("kubelet", "--config="+configs+"kubelet.yaml"),
			Service:     []string{"CPUAccounting=yes", "MemoryAccounting=yes", "ExecStartPre=" + shieldPath, "ExecStartPre=" + metadataPath},
			Files: []ssh.File{
				{Path: configs + "kubelet.yaml", Content: []byte(config)},
				{Path: "/etc/cni/net.d/10-standalone.conflist", Content: network},
				{Path: shieldPath, Content: shieldScript, Mode: 0o755},
				{Path: metadataPath, Content: metadataRules, Mode: 0o755},
			},
			Live: []ssh.File{logins},
		})), nil
}

// network is the CNI configuration. Containers hang on routes (ptp) and not on a bridge, so that the answers of one to another, which reach each other
// at ports of the server, come back through the server.
func (s Standalone) network() ([]byte, error) {
	type object = map[string]any
	text, err := json.MarshalIndent(object{
		"name":       "standalone",
		"cniVersion": "0.3.1",
		"plugins": []object{
			{
				"type": "ptp", "ipMasq": true, "mtu": s.MTU,
				"ipam": object{
					"type": "host-local", "dataDir": "/run/cni", // no address outlives a reboot
					"ranges": [][]object{{{"subnet": s.Containers.Masked().String(), "gateway": s.Gateway().String()}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	return append(text, '\n'), err
}
