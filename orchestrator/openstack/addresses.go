package openstack

import (
	"net/netip"
	"strings"
)

// serverSuffix makes the name of a server's resource, and of the output that has its id, from its object's id, as
// io.murano.resources.Instance does.
const serverSuffix = "-server"

// ServerResource is the name of a server's resource.
func ServerResource(id string) string { return id + serverSuffix }

// Addresses is what a stack tells of one of its servers.
type Addresses struct {
	ServerID string
	Fixed    netip.Addr
	Floating netip.Addr // not valid when the server has none
}

// Addresses reads what the stack tells of the server with this id.
func (s Stack) Addresses(id string) (Addresses, bool) {
	server, _ := s.Outputs[id+serverSuffix].(string)
	fixed, _ := s.Outputs[id+"-address"].(string)
	address, err := netip.ParseAddr(fixed)
	if server == "" || err != nil {
		return Addresses{}, false
	}
	known := Addresses{ServerID: server, Fixed: address}
	if floating, ok := s.Outputs[id+"-floating"].(string); ok {
		known.Floating, _ = netip.ParseAddr(strings.TrimSpace(floating))
	}
	return known, true
}
