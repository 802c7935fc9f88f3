package firewall_test

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/firewall"
	"github.com/burano/burano/gateway/nettest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestTheTableIsWhatWeMean(t *testing.T) {
	f, err := firewall.New(firewall.Config{
		Internal: prefixes("10.244.0.0/16", "10.96.0.0/16", "192.168.7.0/24", "10.244.3.0/24", "fd00::/8"),
		AllowSSH: prefixes("203.0.113.0/24"),
	})
	require.NoError(t, err)
	golden := filepath.Join("testdata", "ruleset.nft")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(f.Ruleset([]uint16{80, 443})), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), f.Ruleset([]uint16{80, 443}))
}

func TestPortsOfTheNodeItselfAreOpenWhateverIsPublished(t *testing.T) {
	f, err := firewall.New(firewall.Config{Internal: prefixes("10.244.0.0/16"), Open: []uint16{6443}})
	require.NoError(t, err)
	require.Contains(t, f.Ruleset(nil), "tcp dport { 6443 } accept\n\t\ttcp dport @published accept")
}

func TestAFirewallWithoutInternalNetworksIsRefused(t *testing.T) {
	_, err := firewall.New(firewall.Config{})
	require.ErrorContains(t, err, "networks must be said")
}

// The test's own two network namespaces, joined by a link: the gateway, and a machine with one address outside and one inside the cluster's networks.
func TestOnlyWhatIsPublishedIsReachedFromOutside(t *testing.T) {
	gateway, machine := fmt.Sprintf("bgwt%da", os.Getpid()), fmt.Sprintf("bgwt%db", os.Getpid())
	for _, name := range []string{gateway, machine} {
		nettest.IP(t, "netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
		nettest.IP(t, "-n", name, "link", "set", "lo", "up")
	}
	nettest.IP(t, "-n", gateway, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", machine)
	nettest.IP(t, "-n", gateway, "address", "add", "198.51.100.1/24", "dev", "eth0")
	nettest.IP(t, "-n", gateway, "address", "add", "10.5.0.1/24", "dev", "eth0")
	nettest.IP(t, "-n", machine, "address", "add", "198.51.100.2/24", "dev", "eth0")
	nettest.IP(t, "-n", machine, "address", "add", "10.5.0.2/24", "dev", "eth0")
	nettest.IP(t, "-n", gateway, "link", "set", "eth0", "up")
	nettest.IP(t, "-n", machine, "link", "set", "eth0", "up")

	for _, port := range []int{22, 80, 6443} {
		listen(t, gateway, port)
	}
	dial := func(from, to string, port int) error {
		var err error
		nettest.Inside(t, from, func() {
			var connection net.Conn
			connection, err = net.DialTimeout("tcp", fmt.Sprintf("%s:%d", to, port), 300*time.Millisecond)
			if err == nil {
				defer connection.Close()
				_ = connection.SetReadDeadline(time.Now().Add(3 * time.Second))
				_, err = connection.Read(make([]byte, 2))
			}
		})
		return err
	}
	const outside, internal = "198.51.100.1", "10.5.0.1"
	require.Eventually(t, func() bool { return dial(machine, outside, 6443) == nil }, 5*time.Second, 10*time.Millisecond, "before, the port is open")

	nft := []string{"ip", "netns", "exec", gateway, "nft", "-f", "-"}
	f, err := firewall.New(firewall.Config{Internal: prefixes("10.5.0.0/24"), Command: nft})
	require.NoError(t, err)
	require.NoError(t, f.Refresh(t.Context()))
	require.NoError(t, f.Guard(t.Context()))
	require.Error(t, dial(machine, outside, 80))
	require.Error(t, dial(machine, outside, 6443))
	require.NoError(t, dial(machine, outside, 22), "SSH from anywhere")
	require.NoError(t, dial(machine, internal, 6443), "everything from inside")
	require.NoError(t, dial(gateway, outside, 6443), "everything from the node itself")
	listen(t, machine, 9000)
	require.NoError(t, dial(gateway, "198.51.100.2", 9000), "replies to its own connections")

	require.NoError(t, f.Publish(t.Context(), []uint16{80, 443}))
	require.NoError(t, dial(machine, outside, 80))
	require.NoError(t, f.Publish(t.Context(), []uint16{443}))
	require.Error(t, dial(machine, outside, 80), "closed at once")

	nettest.IP(t, "netns", "exec", gateway, "nft", "delete", "table", "inet", firewall.Table)
	require.NoError(t, f.Publish(t.Context(), []uint16{80}), "a table that somebody removed is made anew")
	require.NoError(t, dial(machine, outside, 80))
	require.Error(t, dial(machine, outside, 6443))
	nettest.IP(t, "netns", "exec", gateway, "nft", "flush", "ruleset")
	require.NoError(t, f.Refresh(t.Context()))
	require.Error(t, dial(machine, outside, 6443))

	again, err := firewall.New(firewall.Config{Internal: prefixes("10.5.0.0/24"), AllowSSH: prefixes("10.5.0.0/24"), Command: nft})
	require.NoError(t, err)
	require.NoError(t, again.Guard(t.Context()))
	require.NoError(t, dial(machine, outside, 80), "what is published stays so until a new process knows better")
	require.NoError(t, again.Publish(t.Context(), []uint16{80}), "a new process takes the table over")
	require.NoError(t, dial(machine, outside, 80))
	require.Error(t, dial(machine, outside, 22), "SSH only from where it is allowed")
}

func TestAFailureOfNftIsTold(t *testing.T) {
	f, err := firewall.New(firewall.Config{Internal: prefixes("10.5.0.0/24"), Command: []string{"sh", "-c", "echo no permission >&2; exit 1"}})
	require.NoError(t, err)
	err = f.Publish(t.Context(), nil)
	require.ErrorContains(t, err, "no permission")
	require.ErrorContains(t, err, firewall.Table)
}

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func listen(t *testing.T, name string, port int) {
	t.Helper()
	nettest.Inside(t, name, func() {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				connection, err := listener.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					_, _ = connection.Write([]byte("hi"))
					_ = connection.Close()
				}
			}
		}()
	})
}
