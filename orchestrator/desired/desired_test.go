package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/signin"
)

// readText reads a stored model's JSON.
func readText(t *testing.T, text string) (*Cluster, error) {
	t.Helper()
	var stored map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &stored))
	return ReadStored("id", stored)
}

func TestAPropertyThatAStoredModelLacksHasItsClasssDefault(t *testing.T) {
	c, err := readText(t, `{"name": "kube", "masterNode": {}, "publicCidr": "0.0.0.0/0", "minionNodes": [{"instance": {"flavor": "m1.small"}}], "nodeCount": 1,
		"minionGroups": [{"name": "g", "minimum": 0}], "gatewayNodes": [{}, {}], "gatewayCount": 1, "gatewayMinimum": 1}`)
	require.NoError(t, err)
	require.Empty(t, c.Mistakes)
	require.Equal(t, Schedule{24 * time.Hour, 7}, c.Snapshots)
	require.Equal(t, Schedule{0, 7}, c.ClaimBackups)
	require.Equal(t, kube.Containerd, c.Runtime)
	require.Equal(t, &GatewayLimits{Minimum: 1, Maximum: 2, Sessions: 5000, After: 600}, c.GatewayLimits)
	require.Len(t, c.Groups, 1)
	group := c.Groups[0]
	require.Equal(t, []any{"m1.small", 1000, 600, "g-#", true}, []any{group.Flavor, group.Maximum, group.After, group.NamingPattern, group.Elastic()})
	require.Equal(t, "::/0", c.Reaches6(), "a cluster that everybody reaches by IPv4 is reached by IPv6, too")
	pods, mistakes := c.PodNetwork(UsualPodNetwork())
	require.Empty(t, mistakes)
	require.Equal(t, UsualPodNetwork(), pods)
	require.False(t, c.Alone)
}

func TestGatewaysWithoutAClusterAreRead(t *testing.T) {
	c, err := readText(t, `{"name": "edge", "publicCidr": "10.0.0.0/8", "gatewayNodes": [{}], "gatewayCount": 1}`)
	require.NoError(t, err)
	require.True(t, c.Alone)
	require.Empty(t, c.Mistakes)
	require.Empty(t, c.Reaches6())
}

func TestAllMistakesAreFoundAtOnce(t *testing.T) {
	c, err := readText(t, `{"name": "kube", "masterNode": {}, "publicCidr": "everybody", "nodeCount": 2, "minionNodes": [{}], "gatewayMinimum": 3, "gatewayNodes": [{}], "gatewayCount": 1,
		"containerRuntime": "rkt", "dockerRegistryUser": "somebody", "httpProxy": "nowhere", "storageClasses": [{"name": "fast", "backend": "tape"}],
		"minionGroups": [{"name": "g", "count": 2, "maximum": 1}, {"name": "g", "minimum": 2, "maximum": 1}]}`)
	require.NoError(t, err)
	text := errors.Join(c.Mistakes...).Error()
	for _, about := range []string{"nodeCount is 2 but minionNodes lists only 1", "two groups are called g", "count of group g is 2 but its maximum is 1", "minimum of group g is 2",
		"gatewayMinimum of cluster kube is 3", "publicCidr", "containerRuntime", "dockerRegistry", "httpProxy", `storage class "fast"`} {
		require.Contains(t, text, about)
	}
}

func TestIssuersAreRead(t *testing.T) {
	const of = `{"name": "kube", "masterNode": {}, "publicCidr": "0.0.0.0/0", "issuers": [%s]}`
	c, err := readText(t, fmt.Sprintf(of, `{"url": "https://id.example.org", "audiences": ["a", "b"], "groupsClaim": "roles", "requiredClaims": {"tenant": "corp"}},
		{"url": "https://login.example.net", "audiences": ["c"], "usernamePrefix": "net:", "groupsPrefix": "net:", "usernameClaim": null, "ca": null, "requiredClaims": null}`))
	require.NoError(t, err)
	require.Empty(t, c.Mistakes)
	require.Equal(t, signin.Issuer{URL: "https://id.example.org", Audiences: []string{"a", "b"}, UsernameClaim: "sub", UsernamePrefix: "oidc:", GroupsClaim: "roles", GroupsPrefix: "oidc:",
		RequiredClaims: map[string]string{"tenant": "corp"}}, c.Issuers[0])
	require.Equal(t, "net:", c.Issuers[1].UsernamePrefix)
	c, err = readText(t, fmt.Sprintf(of, `{"url": "http://id.example.org", "audiences": [], "usernamePrefix": "burano:", "ca": "none"}`))
	require.NoError(t, err)
	require.Len(t, c.Mistakes, 4)
}

func TestAValueOfAnotherTypeIsAnErrorAndCountsAsMissing(t *testing.T) {
	c, err := readText(t, `{"name": "kube", "masterNode": {}, "snapshotEvery": "daily", "minionGroups": [{"name": "g", "minimum": "one"}]}`)
	require.ErrorContains(t, err, "snapshotEvery is daily")
	require.ErrorContains(t, err, "minimum is one")
	require.Equal(t, 24*time.Hour, c.Snapshots.Every)
	require.False(t, c.Groups[0].Elastic())
}

func TestARegistrysMistakesCountOnlyWhereThereIsOne(t *testing.T) {
	c, err := readText(t, `{"name": "kube", "masterNode": {}, "publicCidr": "0.0.0.0/0", "registrySize": "large", "registryCollectAt": "noon"}`)
	require.NoError(t, err)
	require.Empty(t, c.Mistakes)
	require.Len(t, c.Registry.Mistakes, 3, "size, time, and no storage class")
	require.Nil(t, c.Registry.Enabled)
}

func TestTheModelsPodNetworkLeavesTheRestAsItWasMade(t *testing.T) {
	made := UsualPodNetwork()
	made.Encapsulation, made.Domain = network.CrossSubnet, "example.org"
	c, err := readText(t, `{"name": "kube", "masterNode": {}, "podRange": "10.10.0.0/16", "useFlannel": false, "podMtu": 1400}`)
	require.NoError(t, err)
	pods, mistakes := c.PodNetwork(made)
	require.Empty(t, mistakes)
	require.Equal(t, []any{"10.10.0.0/16", network.CrossSubnet, "example.org", int64(1400), nodes.Calico}, []any{pods.Pods.String(), pods.Encapsulation, pods.Domain, pods.MTU, pods.Kind})
	c, err = readText(t, `{"name": "kube", "masterNode": {}, "podRange": "10.10.0.1/16", "clusterDomain": "-", "useFlannel": true, "podEncapsulation": "none"}`)
	require.NoError(t, err)
	_, mistakes = c.PodNetwork(made)
	require.Len(t, mistakes, 3)
}

// However connections come and go, the number of gateways stays between its limits, suffices where it may, and does not go to and fro.
func TestTheNumberOfGatewaysThatConnectionsNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := GatewayLimits{Minimum: rapid.IntRange(1, 5).Draw(t, "minimum"), Sessions: rapid.IntRange(1, 10000).Draw(t, "sessions")}
		limits.Maximum = rapid.IntRange(limits.Minimum, 20).Draw(t, "maximum")
		open, now := rapid.Int64Range(0, 1_000_000).Draw(t, "open"), rapid.IntRange(0, 25).Draw(t, "now")
		wanted := limits.Needed(open, now)
		require.GreaterOrEqual(t, wanted, limits.Minimum)
		require.LessOrEqual(t, wanted, limits.Maximum)
		if wanted < limits.Maximum {
			require.LessOrEqual(t, open, int64(wanted*limits.Sessions))
		}
		require.Equal(t, wanted, limits.Needed(open, wanted), "the same connections change nothing more")
		if wanted < now && wanted > limits.Minimum && wanted < limits.Maximum {
			require.LessOrEqual(t, 4*open, int64(3*wanted*limits.Sessions), "a few connections more do not bring one back")
		}
	})
}
