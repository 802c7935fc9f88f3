package nodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAKubeletThatHasRunForLongRegistersItsNodeAgainAndAYoungOneIsLeftAlone(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	run := func(active, began string) (said, done string) {
		t.Helper()
		require.NoError(t, os.WriteFile(log, nil, 0o600))
		systemctl := `case "$*" in
*is-active*) ` + active + ` ;;
*show*) echo ` + began + ` ;;
*) echo "$*" >>"$LOG" ;;
esac`
		said = bash(t, registerAgainScript, map[string]string{"systemctl": systemctl}, "LOG="+log, "DAEMONS=calico-felix\nbird", "AGE=20")
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return strings.TrimSpace(said), string(text)
	}
	said, done := run("true", "1")
	require.Equal(t, "again", said)
	require.Equal(t, "restart kubelet\ntry-restart calico-felix\ntry-restart bird\n", done)
	said, done = run("true", `$(($(cut -d. -f1 /proc/uptime) * 1000000 - 5000000))`)
	require.Equal(t, []string{"young", ""}, []string{said, done})
	said, done = run("false", "0")
	require.Equal(t, []string{"again", "try-restart calico-felix\ntry-restart bird\n"}, []string{said, done}, "one that does not run registers when it starts")
}

func TestANodeThatOnlyOthersHaveMadeIsNotRegistered(t *testing.T) {
	node := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{"burano.io/group": "a"}}}}
	require.False(t, isRegistered(nil))
	require.False(t, isRegistered(node))
	node.SetLabels(map[string]string{"kubernetes.io/hostname": "murano-kube-2"})
	require.True(t, isRegistered(node))
}
