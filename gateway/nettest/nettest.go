// Package nettest runs parts of tests in network namespaces that they made.
package nettest

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
)

// IP runs the program ip.
func IP(t *testing.T, arguments ...string) {
	t.Helper()
	output, err := exec.Command("ip", arguments...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", arguments, output)
}

// Inside runs do on a thread that is in the namespace.
func Inside(t *testing.T, namespace string, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		space, err := netns.GetFromName(namespace)
		if err == nil {
			defer space.Close()
			err = netns.Set(space)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}
