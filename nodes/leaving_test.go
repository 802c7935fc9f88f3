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

func TestNodesAskTheFormerMasterTooUntilItLeavesAndTheNewOneAsksItself(t *testing.T) {
	d := changingMaster(t)
	asked := func() (names []string) {
		for _, master := range d.design.apis() {
			names = append(names, master.Name)
		}
		return names
	}
	all := d.cluster.config.Nodes
	require.Equal(t, []string{"murano-master-2"}, asked(), "the former one does not serve any more")
	d.design.former = all[:1]
	require.Equal(t, []string{"murano-master-2", "murano-master-1"}, asked())
	require.Contains(t, strings.Split(d.design.hosts(all[2]), "\n"), "127.0.0.1 api.c.internal")
	require.Contains(t, d.design.hosts(all[1]), all[1].Address.String()+" murano-master-2 api.c.internal")
	require.Equal(t, 1, strings.Count(d.design.hosts(all[1]), "api.c.internal"))
}

func TestTheCertificateOfANewMasterNamesTheFloatingAddressThatItGets(t *testing.T) {
	d := changingMaster(t)
	request := d.design.orders(d.cluster.master())["apiserver"].Request
	require.Contains(t, request.IP, netip.MustParseAddr("192.0.2.10"))
}

func TestAMasterWithoutASuccessorIsNotRemoved(t *testing.T) {
	c, err := NewCluster(Config{Name: "c", Nodes: nodesOf(1, 1, 1), Vault: newVault()})
	require.NoError(t, err)
	require.ErrorContains(t, c.Remove(t.Context(), "murano-master-1"), "would have no master")
}
