package nodes

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/plan"
)

// changingMaster is a cluster whose master's place another node takes, before anything of it can be reached.
func changingMaster(t *testing.T) *deployment {
	t.Helper()
	all := nodesOf(2, 2, 1)
	all[0].Leaving, all[1].Access, all[1].Inherits = true, netip.Addr{}, all[0].Access
	var reported []string
	c, err := NewCluster(Config{Name: "c", Nodes: all, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(),
		Server: func(context.Context, string) ServerState { return ServerState{Note: "it is gone", Down: true} },
		Report: func(_ context.Context, node, text string) { reported = append(reported, node+": "+text) }})
	require.NoError(t, err)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := c.newDeployment(canceled)
	require.NoError(t, err, "a node that leaves may be dead")
	require.Len(t, reported, 1)
	require.Contains(t, reported[0], "murano-master-1: leaves, and does not answer")
	d.record.Bootstrapped, d.again = true, true
	return d
}

func TestAMasterThatTakesAnothersPlaceTakesOverControllersAndNothingRunsOnTheFormerOne(t *testing.T) {
	d := changingMaster(t)
	require.Equal(t, "murano-master-2", d.cluster.master().Name)
	require.NotContains(t, d.design.voters, "murano-master-1")
	require.Contains(t, d.design.voters, "murano-master-2")
	steps, err := d.plan().Steps()
	require.NoError(t, err)
	place := map[string]int{}
	for i, step := range steps {
		place[step.ID()] = i
		if step.Node == "murano-master-1" {
			require.Equal(t, stepFormerControllers, step.Name)
		}
	}
	former := place[plan.ID("murano-master-1", stepFormerControllers)]
	require.Less(t, place[plan.ID("murano-master-2", stepAPIServes)], former, "not before somebody can take over")
	require.Less(t, former, place[plan.ID("murano-master-2", stepControllers)], "two never work at the same time")
	require.Less(t, former, place[plan.ID("murano-master-2", stepNetworkControllers)])
}

func TestNodesAskTheFormerMasterUntilItLeavesAndTheNewOneAsksItself(t *testing.T) {
	d := changingMaster(t)
	asks := func(of Node) string {
		for line := range strings.Lines(d.design.hosts(of)) {
			if fields := strings.Fields(line); len(fields) == 3 {
				require.Equal(t, "api.c.internal", fields[2])
				return fields[1]
			}
		}
		return ""
	}
	all := d.cluster.config.Nodes
	require.Equal(t, "murano-master-2", asks(all[2]), "the former one does not serve any more")
	d.design.api = all[0]
	require.Equal(t, "murano-master-1", asks(all[2]))
	require.Equal(t, "murano-master-2", asks(all[1]))
}

func TestTheCertificateOfANewMasterNamesTheFloatingAddressThatItGets(t *testing.T) {
	d := changingMaster(t)
	request := d.design.orders(d.cluster.master())["apiserver"].Request
	require.Contains(t, request.IP, netip.MustParseAddr("192.0.2.10"))
}

func TestAMasterWithoutASuccessorIsNotRemoved(t *testing.T) {
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 1, 1), Vault: newVault()})
	require.NoError(t, err)
	require.ErrorContains(t, c.Remove(t.Context(), "murano-master-1"), "it cannot be removed")
}
