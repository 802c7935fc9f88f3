package network

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
)

// TestPodsAreSeenUnderTheirOwnAddressByPodsAndUnderTheirNodesByOthers builds of network namespaces: a pod on a node, a pod behind
// the node's tunnel, and a machine that knows no pods.
func TestPodsAreSeenUnderTheirOwnAddressByPodsAndUnderTheirNodesByOthers(t *testing.T) {
	run := func(line string, args ...any) {
		t.Helper()
		words := strings.Fields(fmt.Sprintf(line, args...))
		output, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		require.NoErrorf(t, err, "%s: %s", words, output)
	}
	prefix := fmt.Sprintf("fl%d-", os.Getpid())
	pod, node, far, machine := prefix+"pod", prefix+"node", prefix+"far", prefix+"machine"
	for _, name := range []string{pod, node, far, machine} {
		run("ip netns add %s", name)
		t.Cleanup(func() { run("ip netns del %s", name) })
	}
	for _, link := range [][3]string{{"pod0", "eth0", pod}, {"flannel.1", "eth0", far}, {"eth0", "eth0", machine}} {
		run("ip -n %s link add %s type veth peer name %s netns %s", node, link[0], link[1], link[2])
		run("ip -n %s link set %s up", node, link[0])
		run("ip -n %s link set %s up", link[2], link[1])
	}
	for _, address := range [][3]string{
		{node, "pod0", "10.244.1.1/24"}, {node, "flannel.1", "10.244.3.0/32"}, {node, "eth0", "10.0.0.10/24"},
		{pod, "eth0", "10.244.1.2/24"}, {far, "eth0", "10.244.2.2/24"}, {machine, "eth0", "10.0.0.1/24"},
	} {
		run("ip -n %s addr add %s dev %s", address[0], address[2], address[1])
	}
	run("ip -n %s route add default via 10.244.1.1", pod)
	run("ip -n %s route add 10.244.2.0/24 dev flannel.1", node)
	run("ip -n %s route add 10.244.0.0/16 dev eth0", far)
	run("ip netns exec %s sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.proxy_arp=1", node)

	seen := func(from, source, to, address string) string {
		t.Helper()
		var listener net.Listener
		inside(t, to, func() (err error) {
			listener, err = net.Listen("tcp4", address+":0")
			return err
		})
		defer listener.Close()
		dialer := net.Dialer{Timeout: 5 * time.Second}
		if source != "" {
			dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
		}
		inside(t, from, func() error {
			connection, err := dialer.DialContext(context.Background(), "tcp4", listener.Addr().String())
			if err != nil {
				return err
			}
			return connection.Close()
		})
		accepted, err := listener.Accept()
		require.NoError(t, err)
		defer accepted.Close()
		return accepted.RemoteAddr().(*net.TCPAddr).IP.String()
	}
	require.Equal(t, "10.244.1.2", seen(pod, "", node, "10.0.0.10"), "before the rules")
	rules := flannelRulesFile(DefaultAddressing().Pods)
	for range 2 { // flanneld may be started again
		command := exec.Command("ip", "netns", "exec", node, "nft", "-f", "/dev/stdin")
		command.Stdin = strings.NewReader(string(rules))
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	require.Equal(t, "10.244.1.2", seen(pod, "", far, "10.244.2.2"), "a pod sees a pod")
	require.Equal(t, "10.0.0.10", seen(pod, "", machine, "10.0.0.1"), "a machine sees the node")
	require.Equal(t, "10.244.3.0", seen(node, "", far, "10.244.2.2"), "a pod sees a node that calls by the tunnel")
	require.Equal(t, "10.244.3.0", seen(node, "10.0.0.10", far, "10.244.2.2"), "under the tunnel's address in any case, so that its answer comes back that way")
	require.Equal(t, "10.244.1.1", seen(node, "", pod, "10.244.1.2"), "nothing is changed for the node's own pods")
}

// inside runs do in a network namespace. Files and sockets that do opens stay there.
func inside(t *testing.T, name string, do func() error) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		namespace, err := netns.GetFromName(name)
		if err == nil {
			defer namespace.Close()
			err = netns.Set(namespace)
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	require.NoError(t, <-result)
}
