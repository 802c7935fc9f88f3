package access

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/orchestrator/store"
)

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
