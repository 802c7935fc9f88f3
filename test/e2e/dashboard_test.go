package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheDashboardLeadsToAnApplication repeats TestAnApplicationAnswersThroughAGateway in Debian's Chromium instead of the command line.
func TestTheDashboardLeadsToAnApplication(t *testing.T) {
	for _, needed := range []string{"node", "chromium-headless-shell"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not there: `make test-dashboard` installs what the dashboard's tests need", needed)
		}
	}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	install := exec.CommandContext(t.Context(), filepath.Join(l.root, "web", "dashboard", "build.sh"), "install")
	output, err := install.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	command := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", filepath.Join("test", "dashboard", "cluster", "cluster.test.mjs"))
	command.Dir = l.root
	command.Env = append(os.Environ(), "BURANO_URL="+l.url, "BURANO_HELLO="+filepath.Join(l.root, "test", "packages", "io.burano.demo.Hello"))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, command.Run(), "Node's summary above says what failed, and a picture of its last moment is in build/scenarios")
	asBefore(t, demo, found)
	l.noGuests(t, l.program("burano"))
}
