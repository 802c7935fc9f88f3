package native

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

func TestMachinesKeepTheirKubernetesInAnUpgrade(t *testing.T) {
	facts := &known.Facts{Nodes: []nodes.Node{{Name: "kube-1", Role: nodes.Master}, {Name: "lab-1", Role: nodes.Minion, Machine: &access.Machine{User: "root"}}}}
	list, said := externalVersions(facts, map[string]string{"kube-1": "v1.36.3", "lab-1": "v1.33.1"})
	require.Len(t, list, 1)
	require.Contains(t, said, "lab-1 (v1.33.1)")
	master := nodeVersion{name: "kube-1", role: nodes.Master, now: parseKubernetes("v1.36.3"), wanted: parseKubernetes("v1.37.0")}
	require.Contains(t, skewed(append([]nodeVersion{master}, list...))[0], "lab-1 would have")
	_, said = externalVersions(&known.Facts{Nodes: facts.Nodes[:1]}, nil)
	require.Empty(t, said)
}

func TestAMachineJoinsUnderOneName(t *testing.T) {
	const key, other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF6pgIu+9jZ0AKompohXce0W/j4+9SqZo1wVbewDB2Z3", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlEke7Zk0n3qmWaj9Ef3s1EnCJMnHDOz7+iSq+DUJR7"
	at := netip.MustParseAddr("198.51.100.7")
	list := []nodes.Node{{Name: "kube-2", Address: netip.MustParseAddr("10.0.0.2")},
		{Name: "lab-1", Address: at, Machine: &access.Machine{User: "root", HostKey: key}}, {Name: "lab-2", Address: netip.MustParseAddr("198.51.100.8"), Machine: &access.Machine{User: "root"}}}
	for _, one := range []struct {
		name, address, login, key string
		port                      int64
		becomes, refused          string
	}{
		{"lab-3", "198.51.100.9", "root", key, 22, "lab-3", ""},
		{"anew", "198.51.100.7", "root", "host " + key + " comment", 22, "lab-1", ""},
		{"lab-1", "198.51.100.7", "root", other, 22, "", "set up anew, remove the node first"},
		{"lab-1", "198.51.100.7", "ops", key, 22, "", "logs in as root at 198.51.100.7:22"},
		{"lab-1", "198.51.100.7", "root", key, 2222, "", "logs in as root at 198.51.100.7:22"},
		{"lab-2", "198.51.100.8", "root", other, 22, "lab-2", ""},
		{"lab-1", "198.51.100.9", "root", key, 22, "", "another name by --name"},
		{"kube-2", "198.51.100.9", "root", key, 22, "", "another name by --name"},
		{"lab-3", "10.0.0.2", "root", key, 22, "", "is that of the node kube-2"},
	} {
		name, err := joinAs(list, netip.MustParseAddr(one.address), store.Machine{Node: one.name, Address: one.address, Port: one.port, Login: one.login, HostKey: one.key})
		require.Equal(t, one.becomes, name)
		if one.refused != "" {
			require.ErrorContains(t, err, one.refused)
			continue
		}
		require.NoError(t, err)
	}
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
