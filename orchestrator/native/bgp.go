package native

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/network"
)

const propertyPeers = "bgpPeers"

// peersOf are the routers with which the nodes of a cluster exchange routes.
func peersOf(cluster *muranopl.Object, pods podNetwork) (peers []network.Peer, problems []error) {
	name, list := cluster.Text("name"), cluster.List(propertyPeers)
	if len(list) > 0 && pods.encapsulation != network.Unwrapped {
		problems = append(problems, fmt.Errorf("bgpPeers of cluster %s are routers that learn where its pods are, and packets between its nodes are wrapped (podEncapsulation: %s): leave bgpPeers out, "+
			"or make a cluster with podEncapsulation: %s", name, pods.encapsulation, network.Unwrapped))
	}
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		text, _ := fields["address"].(string)
		as, _ := fields["as"].(int64)
		peer := network.Peer{AS: uint32(as)}
		address, err := netip.ParseAddr(text)
		switch {
		case err != nil || !address.Is4():
			problems = append(problems, fmt.Errorf("bgpPeers of cluster %s has the address %q: give the one of a router, of IPv4, such as 192.0.2.1", name, text))
			continue
		case pods.Pods.Contains(address) || pods.Services.Contains(address):
			problems = append(problems, fmt.Errorf("bgpPeers of cluster %s has the address %s, which is among those of its pods and Services: give the one of a router", name, address))
		case slices.ContainsFunc(peers, func(other network.Peer) bool { return other.Address == address }):
			problems = append(problems, fmt.Errorf("bgpPeers of cluster %s has the address %s twice", name, address))
		}
		peer.Address = address
		peers = append(peers, peer)
	}
	return peers, problems
}
