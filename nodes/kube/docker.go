package kube

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Runtime runs the containers on a node.
type Runtime string

const (
	// Containerd is asked by the kubelet itself.
	Containerd Runtime = "containerd"
	// Docker is Docker's engine, over the same containerd. The kubelet asks it through cri-dockerd.
	Docker Runtime = "docker"
)

const (
	// dockerUnit and criUnit are the units of Docker's engine, which comes with some images, and of cri-dockerd, through which the kubelet reaches it.
	dockerUnit = "docker"
	criUnit    = "cri-dockerd"
	// ProxyOfDocker adds the file with the proxy to Docker's unit.
	ProxyOfDocker = "/etc/systemd/system/docker.service.d/burano-proxy.conf"

	dockerConfig  = "/etc/docker/daemon.json"
	dockerTrusted = "/etc/docker/certs.d/" // a folder for each registry
	withinPath    = "/opt/burano/lib/runc-within"
)

// DockerParts are the files that an image must have for nodes whose runtime is Docker.
var DockerParts = []string{"/usr/sbin/dockerd", "/usr/bin/docker", bin + criUnit}

//go:embed scripts/runc-within.sh
var withinScript []byte

// Endpoint is where the kubelet asks the runtime.
func (r Runtime) Endpoint() string {
	if r == Docker {
		return "unix:///run/cri-dockerd.sock"
	}
	return "unix:///run/containerd/containerd.sock"
}

// Check finds the settings of registries that a runtime does not support.
func (r Runtime) Check(registries Registries) error {
	if r != Docker {
		return nil
	}
	for _, mirror := range registries.mirrors {
		if u, err := url.Parse(mirror); err == nil && u.Path != "" {
			return fmt.Errorf("dockerMirror has %s, and Docker takes no mirror with a path: give one without, or leave containerRuntime at containerd", mirror)
		}
	}
	return nil
}

// ParseRuntime reads the property of that name; "" is containerd.
func ParseRuntime(text string) (Runtime, error) {
	switch r := Runtime(text); r {
	case "":
		return Containerd, nil
	case Containerd, Docker:
		return r, nil
	}
	return "", errors.New("containerRuntime is containerd or docker")
}

// RuntimeUnits are the units of a minion's container runtime, in the order in which they start.
func (c Cluster) RuntimeUnits() ([]systemd.Unit, error) {
	if c.Runtime != Docker {
		return []systemd.Unit{c.Containerd()}, nil
	}
	docker, err := c.docker()
	if err != nil {
		return nil, err
	}
	command := []string{"--container-runtime-endpoint=" + c.Runtime.Endpoint(), "--docker-endpoint=unix:///run/docker.sock", "--network-plugin=cni", "--cni-bin-dir=/opt/cni/bin",
		"--cni-conf-dir=/etc/cni/net.d", "--pod-infra-container-image=" + pauseImage, "--streaming-bind-addr=127.0.0.1:0"}
	if c.Addressing.Six() {
		command = append(command, "--ipv6-dual-stack")
	}
	return []systemd.Unit{
		{Name: "containerd", Packaged: true, Files: []ssh.File{{Path: "/etc/containerd/config.toml", Content: []byte(`version = 2

# The kubelet asks Docker, and nobody this containerd for pods.
disabled_plugins = ["io.containerd.grpc.v1.cri"]
`)}}},
		docker,
		{Name: criUnit, Description: "Docker as a container runtime of Kubernetes", Command: program(criUnit, command...), Service: []string{"Type=notify"}, After: "docker.service"},
	}, nil
}

// docker is the unit of Docker's engine. Networks are the kubelet's to make, so that it has none of its own; and containers go on while it is started anew.
func (c Cluster) docker() (systemd.Unit, error) {
	type object = map[string]any
	config := object{
		"bridge": "none", "iptables": false, "ip-forward": false, "ip-masq": false, "userland-proxy": false,
		"exec-opts":    []string{"native.cgroupdriver=systemd"},
		"live-restore": true,
		"log-driver":   "json-file",
		// Less than the size at which the kubelet would rotate itself, which Docker does not let it do.
		"log-opts": object{"max-size": "8m", "max-file": "3"},
	}
	files, live := []ssh.File{{Path: withinPath, Content: withinScript, Mode: 0o755}}, []ssh.File{}
	if c.Host.restrictOOM() {
		config["runtimes"], config["default-runtime"] = object{"within": object{"path": withinPath}}, "within"
	}
	r := c.Registries
	if len(r.mirrors) > 0 {
		config["registry-mirrors"] = r.mirrors
	}
	if r.schemes != nil { // by HTTPS without a look at the certificate, and then by HTTP
		config["insecure-registries"] = []string{r.host}
	}
	if r.own != "" {
		live = append(live, ssh.File{Path: dockerTrusted + r.own + "/ca.crt", Content: c.authorityFile().Content})
	}
	if c.Proxy.exists() || c.Proxied {
		files = append(files, c.Proxy.files(ProxyOfDocker, c.proxyEnvironment())...)
	}
	content, err := json.MarshalIndent(config, "", "  ")
	return systemd.Unit{Name: dockerUnit, Packaged: true, Files: append(files, ssh.File{Path: dockerConfig, Content: append(content, '\n')}), Live: live}, err
}

// streams are settings of the kubelet. A kubelet that speaks WebSocket itself mistakes cri-dockerd's addresses for exec and attach for HTTPS, as these
// have no scheme; but cri-dockerd speaks HTTP. The API server must speak WebSocket in its place.
func (c Cluster) streams() string {
	if c.Runtime != Docker || !c.Websockets {
		return ""
	}
	return "featureGates: {ExtendWebSocketsToKubelet: false}\n"
}

// RegistryHost is the line of the hosts file by which Docker finds the cluster's own registry; "" where there is none, or the runtime finds it by itself.
func (c Cluster) RegistryHost() string {
	u, err := url.Parse(c.Registries.address)
	if c.Runtime != Docker || c.Registries.own == "" || err != nil {
		return ""
	}
	address, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return ""
	}
	return address.Addr().String() + " " + c.Registries.own
}
