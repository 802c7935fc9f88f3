package native

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
)

func TestAMachineAtAnotherAddressIsAnotherOne(t *testing.T) {
	at := func(address string, port uint16) nodes.Node {
		return nodes.Node{Name: "lab-1", Address: netip.MustParseAddr(address), Machine: &access.Machine{User: "root", Port: port}}
	}
	wanted := []nodes.Node{at("198.51.100.7", 0)}
	require.True(t, sameMachine(wanted, at("198.51.100.7", 22)))
	require.False(t, sameMachine(wanted, at("198.51.100.8", 22)))
	require.False(t, sameMachine(wanted, at("198.51.100.7", 2222)))
	server := at("198.51.100.7", 0)
	server.Machine = nil
	require.False(t, sameMachine(wanted, server), "a server of the cloud had that name")
}
