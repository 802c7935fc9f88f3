package nodes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnitsThatDoNotRunAreNamed(t *testing.T) {
	ours, wants := t.TempDir(), t.TempDir()
	for _, unit := range []string{"etcd", "kube-apiserver", "kubelet", "prepare"} {
		require.NoError(t, os.Symlink(filepath.Join(ours, unit+".service"), filepath.Join(wants, unit+".service")))
	}
	require.NoError(t, os.Symlink("/lib/systemd/system/ssh.service", filepath.Join(wants, "ssh.service")))
	// systemctl show -p PROPERTY --value UNIT
	systemctl := `case "$5 $3" in *" Type") [[ $5 == prepare ]] && echo oneshot || echo simple;;
		"kube-apiserver ActiveState"|"prepare ActiveState"|"ssh ActiveState") echo inactive;; "kubelet ActiveState") echo activating;; *" ActiveState") echo active;;
		"kube-apiserver SubState") echo dead;; "kubelet SubState") echo auto-restart;; *" SubState") echo running;; esac`
	out := bash(t, stoppedUnitsScript, map[string]string{"systemctl": systemctl}, "WANTS="+wants, "OURS="+ours)
	require.EqualError(t, stoppedIn(out), "kube-apiserver does not run (dead): journalctl -u kube-apiserver on the node says why; "+
		"kubelet does not run (auto-restart): journalctl -u kubelet on the node says why")
	require.NoError(t, stoppedIn(""))
}
