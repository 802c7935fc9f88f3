package fabric_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/test/localcloud/fabric"
)

// inside marks a second run of this program in which /run is its own.
const inside = "FABRIC_TEST_OWN_RUN"

func TestTheFolderOfNamespacesIsAsItWasWhenEverythingIsDeleted(t *testing.T) {
	if os.Getenv(inside) == "" {
		for _, before := range []string{"", "mkdir /run/netns && ", "ip netns add somebodys && ", "ip netns add somebodys && ip netns del somebodys && "} {
			script := "mount --make-rprivate / && mount -t tmpfs none /run && " + before + `exec "$0" -test.run "^` + t.Name() + `$" -test.v`
			command := exec.Command("unshare", "--mount", "sh", "-c", script, os.Args[0])
			command.Env = append(os.Environ(), inside+"=yes")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "before: %q\n%s", before, output)
			require.Contains(t, string(output), "--- PASS")
		}
		return
	}
	look := func() (found []string) {
		var stat unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, "/run/netns", 0, 0, &stat); err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
			return nil
		}
		found = append(found, fmt.Sprint("mounted: ", stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0))
		entries, err := os.ReadDir("/run/netns")
		require.NoError(t, err)
		for _, entry := range entries {
			found = append(found, entry.Name())
		}
		return found
	}
	before := look()
	f, config := start(t)
	newWorld(config.External, 1).apply(t, f)
	require.NotEqual(t, before, look())

	f, err := fabric.New(config) // the deleting process may be another one
	require.NoError(t, err)
	// Namespaces of others meanwhile must not block ours.
	output, err := exec.Command("ip", "netns", "add", "meanwhile").CombinedOutput()
	require.NoError(t, err, string(output))
	output, err = exec.Command("ip", "netns", "del", "meanwhile").CombinedOutput()
	require.NoError(t, err, string(output))
	require.NoError(t, f.DeleteAll(context.Background()))
	require.Equal(t, before, look())
	require.NoFileExists(t, config.StateDir+"/fabric.json")
}
