package clusters

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/orchestrator/known"
)

func TestMachinesKeepTheirKubernetesInAnUpgrade(t *testing.T) {
	facts := &known.Facts{Nodes: []nodes.Node{{Name: "kube-1", Role: nodes.Master}, {Name: "lab-1", Role: nodes.Minion, Machine: &access.Machine{User: "root"}}}}
	list, said := ExternalVersions(facts, map[string]string{"kube-1": "v1.36.3", "lab-1": "v1.33.1"})
	require.Len(t, list, 1)
	require.Contains(t, said, "lab-1 (v1.33.1)")
	master := NodeVersion{Name: "kube-1", Role: nodes.Master, Now: ParseKubernetes("v1.36.3"), Wanted: ParseKubernetes("v1.37.0")}
	require.Contains(t, Skewed(append([]NodeVersion{master}, list...))[0], "lab-1 would have")
	_, said = ExternalVersions(&known.Facts{Nodes: facts.Nodes[:1]}, nil)
	require.Empty(t, said)
}

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
