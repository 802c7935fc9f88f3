package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestOpenStacksClientManagesServersOfTheLocalCloud has Debian's openstack make and change servers, groups of them and volumes.
func TestOpenStacksClientManagesServersOfTheLocalCloud(t *testing.T) {
	output, err := exec.Command(filepath.Join("..", "setup", "packages.sh"), "python3-openstackclient").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	s := startCloudAlone(t, cloudOfTests())
	demo := s.cloudAs("demo")
	before := demo.holds(t)
	// ask gives the client commands, and demands these lines in its output.
	ask := func(commands []string, lines ...string) {
		t.Helper()
		printed := s.converse("demo", commands)
		for _, line := range lines {
			require.Contains(t, strings.Split(printed, "\n"), line, printed)
		}
	}
	wait := func(name, status string) {
		t.Helper()
		id := demo.server(t, name)
		require.Eventually(t, func() bool {
			server, err := servers.Get(t.Context(), demo.nova, id).Extract()
			require.NoError(t, err)
			return server.Status == status && server.TaskState == ""
		}, time.Minute, 50*time.Millisecond, "%s is not %s", name, status)
	}
	ask([]string{
		"network create -f value -c name net",
		"subnet create -f value -c cidr --network net --subnet-range 10.5.0.0/24 net",
		"server group create -f value -c policy --policy anti-affinity apart",
		"server group list -f value -c Name",
		"volume create -f value -c size --size 1 data",
		"volume snapshot create -f value -c name --volume data copy",
		"server create -f value -c name --flavor m1.tiny --image tiny --network net one",
	}, "net", "10.5.0.0/24", "anti-affinity", "apart", "1", "copy", "one")
	wait("one", "ACTIVE")

	ask([]string{"server rescue --image tiny one"})
	wait("one", "RESCUE")
	ask([]string{
		"server show -f value -c status -c OS-EXT-STS:vm_state one",
		"server stop one",
		"server unrescue one",
	}, "RESCUE", "rescued")
	wait("one", "ACTIVE")

	ask([]string{"server resize --flavor m1.small one"})
	wait("one", "VERIFY_RESIZE")
	ask([]string{"server resize revert one"})
	wait("one", "ACTIVE")
	ask([]string{"server resize --flavor m1.small one"})
	wait("one", "VERIFY_RESIZE")
	ask([]string{"server resize confirm one", "server show -f value -c status one"}, "ACTIVE")

	ask([]string{"server rebuild -f value -c name --image tiny one"}, "one")
	wait("one", "ACTIVE")
	ask([]string{
		"server add volume one data -f value -c Device",
		"server volume list -f value -c Device one",
		"volume show -f value -c status data",
		"console log show one",
		"server remove volume one data",
		"server stop one",
	}, "/dev/vdb", "in-use")
	wait("one", "SHUTOFF")
	ask([]string{
		"volume set --size 2 data",
		"volume show -f value -c size -c status data",
		"server start one",
	}, "2", "available")
	wait("one", "ACTIVE")
	ask([]string{"server delete --wait one", "volume snapshot delete copy", "volume delete data", "server group delete apart", "subnet delete net", "network delete net"})
	require.Equal(t, before, demo.holds(t), "nothing is left")
}
