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
	return Addresses{ServerID: server, Fixed: address, Floating: s.Floating(id)}, true
}

// Floating reads what the stack tells of the floating address of the object with this id; it is not valid when there is none.
func (s Stack) Floating(id string) netip.Addr {
	floating, _ := s.Outputs[id+"-floating"].(string)
	address, _ := netip.ParseAddr(strings.TrimSpace(floating))
	return address
}
