package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database/databasetest"
)

// TestAServerThatWasPausedDoesNothingMore pauses one of two servers over one PostgreSQL in the middle of a deployment, for longer than its
// lease. The other one goes on, and the first, when it wakes, does nothing more in the database, the cloud or on nodes. `make soak` runs it.
func TestAServerThatWasPausedDoesNothingMore(t *testing.T) {
	soakOnly(t, "make soak runs this: the unit tests hold each fence")
	flags := []string{"--database", databasetest.Postgres(t), "--lease", "15s"}
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.stop(t)
	l.launch(t, flags...)
	l.healthy(t)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")

	// The second server is another lab's: the same cloud and key, and a folder and an address of its own.
	second := *l
	second.state, second.address = t.TempDir(), freeAddress(t)
	second.url = "http://" + second.address
	key, err := os.ReadFile(filepath.Join(l.state, "secret.key"))
	require.NoError(t, err)
	refused := exec.Command(l.program("burano"), append([]string{"serve", "--listen", second.address, "--state", second.state}, flags...)...)
	refused.Env = append(os.Environ(), l.as("burano-service")...)
	output, err := refused.CombinedOutput()
	require.Error(t, err, "a server with a key of its own refuses to start")
	require.Contains(t, string(output), "secret.key")
	require.NoError(t, os.WriteFile(filepath.Join(second.state, "secret.key"), key, 0o600))

	output = []byte(l.run(t, l.as("burano-demo"), "burano", "deploy", "test/environments/demo.yaml"))
	t.Logf("%s", output)
	deployment := lastDeployment(t, demo, "demo")
	l.eventually(t, 2*time.Minute, "the API server is being made", func() error {
		if steps := stepsOf(t, demo, deployment); !slices.Contains(steps, "murano-kube-1: api server") {
			return fmt.Errorf("%v", steps)
		}
		return nil
	})
	require.NoError(t, l.server.Process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = l.server.Process.Signal(syscall.SIGCONT) })
	second.launch(t, flags...)
	t.Cleanup(func() {
		require.NoError(t, second.server.Process.Signal(syscall.SIGTERM))
		require.NoError(t, second.server.Wait())
	})
	second.healthy(t)
	other := second.user(t, "burano-demo")
	var environment map[string]any
	second.eventually(t, 4*time.Minute, "the other server has ended the deployment", func() error {
		environment = environmentNamed(t, other, "demo")
		if environment["status"] == "deploying" {
			return fmt.Errorf("it is %v", environment["status"])
		}
		return nil
	})
	require.Equal(t, "ready", environment["status"])
	id := environment["id"].(string)
	state := func() []any {
		return []any{other.must(t, http.MethodGet, "/v1/environments/"+id+"/deployments/"+deployment, nil), stepsOf(t, other, deployment), withoutTrusts(inventory(t, other))}
	}
	require.Contains(t, fmt.Sprint(state()[0]), "has taken it over")
	cluster := second.clusterOf(t, other, environment)
	before, times := state(), cluster.startTimes(t)
	log, err := os.ReadFile(l.serverLog)
	require.NoError(t, err)

	require.NoError(t, l.server.Process.Signal(syscall.SIGCONT))
	l.eventually(t, time.Minute, "the woken server knows that it has lost its task", func() error {
		now, err := os.ReadFile(l.serverLog)
		require.NoError(t, err)
		if !strings.Contains(string(now[len(log):]), "a task was left to others") {
			return fmt.Errorf("its log: %s", now[len(log):])
		}
		return nil
	})
	require.Equal(t, before, state(), "nothing was written, and nothing made in the cloud")
	require.Equal(t, times, cluster.startTimes(t), "no unit of a node was restarted")
	nodesAreReady(t, cluster, other)
	nothingTwice(t, &second, other, cluster, found, 3)
	second.run(t, second.as("burano-demo"), "burano", "environment", "delete", "--yes", "demo")
	asBefore(t, other, found)
}
