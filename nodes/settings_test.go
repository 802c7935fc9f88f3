package nodes

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
)

func TestALockedNodeThatDoesNotAnswerHoldsNoDeploymentUpAndKeepsItsVote(t *testing.T) {
	all := nodesOf(1, 2, 1)
	locked, open := all[1].Name, all[2].Name
	all[1].Settings = kube.Settings{Locked: true}
	all[1].Server = "one"
	vault := newVault()
	require.NoError(t, vault.Store(t.Context(), "ssh/host/"+locked, []byte(`{"server":"one"}`)))
	c, err := NewCluster(Config{Name: "c", Nodes: all, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: vault,
		Server: func(_ context.Context, node string) ServerState {
			return ServerState{Note: "it is off", Down: node == locked}
		}})
	require.NoError(t, err)
	d, err := c.newDeployment(t.Context())
	require.NoError(t, err)
	require.Contains(t, d.design.voters, locked)
	d.record.Bootstrapped, d.again, d.record.Members = true, true, d.design.voters
	steps, err := d.plan().Steps()
	require.NoError(t, err)
	place := map[string]int{}
	for i, step := range steps {
		require.NotEqual(t, locked, step.Node, step.Name)
		require.NotContains(t, step.After, plan.ID(locked, stepConnect))
		place[step.ID()] = i
	}
	require.Less(t, place[plan.ID(open, stepSettings)], place[plan.ID(open, stepKubelet)], "no pod comes before a node's taints")
	require.NoError(t, vault.Store(t.Context(), "ssh/host/"+locked, []byte(`{"server":"its former one"}`)))
	d, err = c.newDeployment(t.Context())
	require.NoError(t, err)
	require.Empty(t, d.away, "a new server is awaited, also where the node is locked")
	require.Less(t, place[plan.ID(open, stepFormerNode)], place[plan.ID(open, stepSettings)])
}
