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

// Addresses are the addresses of one of a stack's servers, from its outputs.
type Addresses struct {
	ServerID string
	Fixed    netip.Addr
	Six      netip.Addr // of IPv6; not valid when the server has none
	Floating netip.Addr // not valid when the server has none
}

// Addresses reads the addresses of the server with this id from the stack's outputs.
func (s Stack) Addresses(id string) (Addresses, bool) {
	server, _ := s.Outputs[id+serverSuffix].(string)
	found := Addresses{ServerID: server, Floating: s.Floating(id)}
	fixed, _ := s.Outputs[id+"-address"].(string)
	found.Fixed, _ = netip.ParseAddr(fixed)
	// Neutron lists several of them in an order of its own.
	all, _ := s.Outputs[id+"-addresses"].([]any)
	for _, one := range all {
		entry, _ := one.(map[string]any)
		text, _ := entry["ip_address"].(string)
		switch address, err := netip.ParseAddr(text); {
		case err != nil:
		case address.Is4():
			found.Fixed = address
		default:
			found.Six = address
		}
	}
	if server == "" || !found.Fixed.IsValid() {
		return Addresses{}, false
	}
	return found, true
}

// Floating reads the floating address of the object with this id from the stack's outputs; it is not valid when there is none.
func (s Stack) Floating(id string) netip.Addr {
	floating, _ := s.Outputs[id+"-floating"].(string)
	address, _ := netip.ParseAddr(strings.TrimSpace(floating))
	return address
}
