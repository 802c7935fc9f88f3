package route

import "slices"

// APIServerPort is where masters answer the Kubernetes API.
const APIServerPort = 6443

// MetricsPort is the port of a gateway's metrics inside the cluster. It is kube-proxy's, which gateways do not run.
const MetricsPort = 10249

// reserved returns the purpose of a port that the nodes themselves need. A route on it would take it from the node or open it to the world.
func reserved(port uint16) string {
	switch port {
	case 22:
		return "SSH"
	case 111:
		return "the port mapper"
	case 179:
		return "BGP between the nodes"
	case 2379:
		return "etcd clients"
	case 2380:
		return "etcd members"
	case 2381:
		return "etcd metrics"
	case 4789, 8472:
		return "VXLAN between the nodes"
	case 5473:
		return "Calico Typha"
	case APIServerPort:
		return "the Kubernetes API"
	case 9091, 9099:
		return "Calico's metrics and health"
	case 10248, 10250, 10255:
		return "the kubelet"
	case MetricsPort, 10256:
		return "kube-proxy"
	case 10257:
		return "the Kubernetes controller manager"
	case 10259:
		return "the Kubernetes scheduler"
	}
	return ""
}

// Reserved reports whether a port belongs to the nodes themselves, and its purpose.
func Reserved(port uint16) (purpose string, yes bool) {
	purpose = reserved(port)
	return purpose, purpose != ""
}

// ReservedPorts lists the ports that are never published, ascending.
func ReservedPorts() []uint16 {
	var ports []uint16
	for port := range 1 << 16 {
		if _, yes := Reserved(uint16(port)); yes {
			ports = append(ports, uint16(port))
		}
	}
	return slices.Clip(ports)
}

// ReservedUDP reports whether a UDP port belongs to the nodes themselves, and its purpose.
func ReservedUDP(port uint16) (purpose string, yes bool) {
	switch port {
	case 68, 546:
		purpose = "the node's own request for an address"
	case 111, 4789, 8472:
		purpose = reserved(port)
	}
	return purpose, purpose != ""
}
