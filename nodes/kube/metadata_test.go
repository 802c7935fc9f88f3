package kube

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAServerReachesTheMetadataAddressAndAPodOnItDoesNot builds a pod behind a node behind a cloud, of network namespaces.
func TestAServerReachesTheMetadataAddressAndAPodOnItDoesNot(t *testing.T) {
	run := func(line string, args ...any) {
		t.Helper()
		words := strings.Fields(fmt.Sprintf(line, args...))
		output, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		require.NoErrorf(t, err, "%s: %s", words, output)
	}
	prefix := fmt.Sprintf("md%d-", os.Getpid())
	pod, node, cloud := prefix+"pod", prefix+"node", prefix+"cloud"
	for _, name := range []string{pod, node, cloud} {
		run("ip netns add %s", name)
		t.Cleanup(func() { run("ip netns del %s", name) })
		run("ip -n %s link set lo up", name)
	}
	run("ip -n %s link add cali0 type veth peer name eth0 netns %s", node, pod)
	run("ip -n %s link add eth0 type veth peer name qr0 netns %s", node, cloud)
	for _, one := range [][3]string{{pod, "eth0", "10.244.0.2/24"}, {node, "cali0", "10.244.0.1/24"}, {node, "eth0", "10.0.0.10/24"}, {cloud, "qr0", "10.0.0.1/24"}} {
		run("ip -n %s addr add %s dev %s", one[0], one[2], one[1])
		run("ip -n %s link set %s up", one[0], one[1])
	}
	run("ip -n %s addr add 169.254.169.254/32 dev lo", cloud)
	run("ip -n %s route add default via 10.244.0.1", pod)
	run("ip -n %s route add default via 10.0.0.1", node)
	run("ip -n %s route add default via 10.0.0.10", cloud)
	run("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1", node)

	// Nothing listens there: a client that reaches the address gets a reset.
	reaches := func(namespace, address string) error {
		command := exec.Command("ip", "netns", "exec", namespace, "timeout", "5", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/80")
		output, _ := command.CombinedOutput()
		if strings.Contains(string(output), "Connection refused") {
			return nil
		}
		return fmt.Errorf("%s", output)
	}
	require.NoError(t, reaches(pod, "169.254.169.254"), "without the rules")
	for range 2 { // the kubelet may be started again
		command := exec.Command("ip", "netns", "exec", node, "nft", "-f", "/dev/stdin")
		command.Stdin = strings.NewReader(string(metadataRules))
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	require.ErrorContains(t, reaches(pod, "169.254.169.254"), "No route to host", "the pod is told, it does not wait")
	require.NoError(t, reaches(pod, "10.0.0.1"), "everything else is as before")
	require.NoError(t, reaches(node, "169.254.169.254"))
}
