package openstack

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAServersAddressesAreToldApartByTheirVersion(t *testing.T) {
	fixed := func(text string) any { return map[string]any{"subnet_id": "one", "ip_address": text} }
	stack := Stack{Outputs: map[string]any{"a-server": "id", "a-address": "2001:db8::5", "a-addresses": []any{fixed("2001:db8::5"), fixed("203.0.113.5")}, "a-floating": "198.51.100.1",
		"b-server": "id", "b-address": "203.0.113.6", "c-server": "id"}}
	found, known := stack.Addresses("a")
	require.True(t, known)
	require.Equal(t, Addresses{ServerID: "id", Fixed: netip.MustParseAddr("203.0.113.5"), Six: netip.MustParseAddr("2001:db8::5"), Floating: netip.MustParseAddr("198.51.100.1")}, found,
		"whichever Neutron says first")
	found, known = stack.Addresses("b")
	require.True(t, known)
	require.Equal(t, Addresses{ServerID: "id", Fixed: netip.MustParseAddr("203.0.113.6")}, found)
	_, known = stack.Addresses("c")
	require.False(t, known)
}
