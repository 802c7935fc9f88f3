package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// besideServers deploys an application with servers of its own beside the cluster, whose stack and network they share, and takes it out
// again. Nothing of the cluster is made anew.
func (s *scaling) besideServers(t *testing.T) {
	l := s.lab
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	before := withoutTrusts(inventory(t, s.user))
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Servers")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "mixed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(string(text), "\n")+`
  - "?": {type: io.burano.test.Farm}
    servers:
      - {"?": {type: io.murano.resources.LinuxInstance}, name: plain-one, flavor: m1.small, image: burano-node, assignFloatingIp: true}
      - {"?": {type: io.murano.resources.LinuxInstance}, name: plain-two, flavor: m1.small, image: burano-node}
`), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	beside := inventory(t, s.user)
	for kind, more := range map[string]int{"servers": 2, "ports": 2, "floating IPs": 1, "security groups": 1, "stacks": 0, "networks": 0, "routers": 0} {
		require.Subset(t, beside[kind], before[kind], kind)
		require.Len(t, beside[kind], len(before[kind])+more, kind)
	}
	require.Contains(t, beside["servers"], "plain-one")

	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	require.Equal(t, before, withoutTrusts(inventory(t, s.user)))
}
