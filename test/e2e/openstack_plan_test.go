package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPlanRunsOnARealOpenStack deploys an application whose plan has files, a script and a result onto a server of the tiny guest, which has
// sshd and a shell: Burano needs no more of a server.
func TestAPlanRunsOnARealOpenStack(t *testing.T) {
	path := os.Getenv(cloudsVariable)
	if path == "" || os.Getenv(serverVariable) != "" {
		t.Skipf("%s is not set, or servers are containers: `make test-openstack` sets it", cloudsVariable)
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	l := &lab{root: root, cloud: filepath.Dir(path), patience: 8}
	l.serves = l.program("burano")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.startServer(t)
	l.deleteIfFailed(t, "planned")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Planned")
	model := filepath.Join(t.TempDir(), "planned.yaml")
	require.NoError(t, os.WriteFile(model, []byte(`name: planned
applications:
  - "?": {type: io.burano.test.Planned}
    name: planned
    greeting: Good morning
    instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: tiny-1, flavor: m1.small, image: tiny, assignFloatingIp: true}
`), 0o600))

	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", model, "--follow")
	t.Logf("a server was made and set up in %.1f s:\n%s", time.Since(began).Seconds(), log)
	require.Contains(t, log, "tiny-1, greet: Good morning from tiny-1", "what it says comes into the log")
	environment := environmentNamed(t, demo, "planned")
	planned := environment["services"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"exitCode": 0.0, "stdout": "Good morning from tiny-1", "stderr": "26"}, planned["answer"])

	s := &scaling{lab: l, user: demo, environment: environment["id"].(string)}
	began = time.Now()
	result, _ := s.call(t, "planned", "fail", map[string]any{})
	t.Logf("a plan more took %.1f s", time.Since(began).Seconds())
	require.Equal(t, map[string]any{"exitCode": 5.0, "stdout": "said before", "stderr": "it is broken"}, result["result"].(map[string]any)["details"])

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "planned")
	asBefore(t, demo, found)
}
