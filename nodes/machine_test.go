package nodes

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
)

func TestAMachineIsAMinionAndNoMemberOfEtcd(t *testing.T) {
	machine := &access.Machine{User: "root"}
	for _, role := range []Role{Master, Gateway} {
		list := []Node{{Name: "m1", Role: Master}, {Name: "lab-1", Role: role, Machine: machine}}
		_, err := NewCluster(Config{Name: "test", Vault: newVault(), Nodes: list})
		require.ErrorContains(t, err, "no "+string(role)+" can be")
	}
	require.Equal(t, uint16(22), Node{Machine: machine}.sshPort())
	require.Equal(t, uint16(2222), Node{Machine: &access.Machine{Port: 2222}}.sshPort())
}

func TestAKubeletOfAMachineIsNotNewerAndNotTooOld(t *testing.T) {
	for kubelet, fits := range map[string]bool{"v1.36.0": true, "v1.33.9": true, "v1.37.0": false, "v1.32.0": false, "v2.36.0": false, "": false, "what": false} {
		err := skewOf(kubelet, "v1.36.3")
		require.Equal(t, fits, err == nil, "%s: %v", kubelet, err)
	}
}

func TestAMachineThatCannotBeANodeSaysAllThatIsWrong(t *testing.T) {
	notes := t.TempDir()
	command := exec.Command("bash", "-s")
	command.Stdin = strings.NewReader(machineScript)
	command.Env = append(command.Environ(), "NOTES="+notes, "ADDRESS=192.0.2.77", "NETWORK=calico", "OWNER=one abc", "LEAVE=/opt/leave")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "none of its interfaces has the address 192.0.2.77")
	require.Contains(t, string(output), "it lacks what a node image has: /opt/burano/bin/kubelet")
	require.NoDirExists(t, notes+"/started")
	require.NoFileExists(t, notes+"/cluster", "nothing was changed")

	problems, err := LookAtThisMachine(t.Context(), "one abc", netip.MustParseAddr("192.0.2.77"))
	require.NoError(t, err)
	require.Contains(t, problems[0], "none of its interfaces has the address 192.0.2.77")
	require.NoFileExists(t, "/var/lib/burano/cluster")
}
