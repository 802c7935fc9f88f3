package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metadataIsForServers asks at the metadata address from each server, and from the network namespaces of the pods on it.
func metadataIsForServers(t *testing.T, c *cluster) {
	const url = "http://169.254.169.254/openstack/latest/meta_data.json"
	pods := 0
	for name, id := range c.servers {
		output, err := c.on(name, "curl", "-fsS", "--max-time", "10", url)
		require.NoErrorf(t, err, "%s: %s", name, output)
		var told struct{ UUID, Name string }
		require.NoError(t, json.Unmarshal([]byte(output), &told), output)
		require.Equal(t, id, told.UUID)
		require.Equal(t, name, told.Name)

		output, err = c.on(name, "bash", "-c", `set -eu
shopt -s nullglob
count=0
for namespace in /run/netns/cni-*; do
	as_pod() { nsenter --net="$namespace" curl -s --max-time 10 -o /dev/null "$@"; }
	as_pod http://10.96.0.1:443/ 2>/dev/null || continue # what is left of a pod that was just deleted
	if as_pod `+url+`; then echo "a pod reaches the metadata address"; exit 1; fi
	count=$((count + 1))
done
echo "$count"`)
		require.NoErrorf(t, err, "%s: %s", name, output)
		asked, err := strconv.Atoi(strings.TrimSpace(output))
		require.NoErrorf(t, err, "%s: %s", name, output)
		pods += asked
	}
	require.GreaterOrEqual(t, pods, 2, "the application's replicas were asked")
}
