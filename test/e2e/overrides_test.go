package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPackagesOverrideTheCoreLibrary deploys a server, a network and a volume of classes that override everything that packages may override
// in Murano.
func TestPackagesOverrideTheCoreLibrary(t *testing.T) {
	l := start(t)
	u := l.user(t, "burano-demo")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Overrides")
	found := inventory(t, u)
	file := filepath.Join(t.TempDir(), "overrides.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`name: overrides
applications:
  - ?: {type: io.burano.test.overrides.Application}
    described: {"?": {type: io.burano.test.overrides.Network, id: lan}, name: lan, subnetCidr: 10.77.0.0/24}
    servers:
      - ?: {type: io.burano.test.overrides.Server}
        name: web
        flavor: m1.small
        image: burano-node
        assignFloatingIp: true
        networks: {useEnvironmentNetwork: false, useFlatNetwork: false, customNetworks: [lan], primaryNetwork: null}
        volumes: {/dev/vdb: {"?": {type: io.burano.test.overrides.Disk}, size: 1}}
`), 0o600))
	l.deleteIfFailed(t, "overrides")
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")

	environment := environmentNamed(t, u, "overrides")
	require.Equal(t, "ready", environment["status"])
	application := environment["services"].([]any)[0].(map[string]any)
	description := application["description"].(map[string]any)
	for _, key := range []string{"netId", "subnetId", "gateway", "floatingIpNetId"} {
		require.NotEmpty(t, description[key], key)
	}
	require.Equal(t, "Neutron", description["provider"])
	require.Equal(t, "10.77.0.0/24", description["cidr"])
	server := application["servers"].([]any)[0].(map[string]any)
	require.NotEmpty(t, server["floatingIpAddress"])
	require.Contains(t, server["calls"], "template with web")
	require.True(t, strings.HasPrefix(server["ipAddresses"].([]any)[0].(string), "10.77.0."), "%v", server["ipAddresses"])
	disk := server["volumes"].(map[string]any)["/dev/vdb"].(map[string]any)
	require.Contains(t, disk["attachments"], "noted")

	c := &cluster{lab: l, servers: map[string]string{"web": server["openstackId"].(string)}}
	for path, wanted := range map[string]string{"/root/overridden": ":5672 false", "/root/configured": "done"} {
		l.eventually(t, time.Minute, "the server has booted with "+path, func() error {
			if text, err := c.on("web", "cat", path); err != nil || strings.TrimSpace(text) != wanted {
				return fmt.Errorf("it has %q: %w", text, err)
			}
			return nil
		})
	}

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "overrides")
	asBefore(t, u, found)
}
