package nodes

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
)

func TestALockedNodeThatDoesNotAnswerHoldsNoDeploymentUpAndKeepsItsVote(t *testing.T) {
	all := nodesOf(1, 2, 1)
	locked, open := all[1].Name, all[2].Name
	all[1].Settings = kube.Settings{Locked: true}
	all[1].Server = "one"
	vault := newVault()
	require.NoError(t, vault.Store(t.Context(), "ssh/host/"+locked, []byte(`{"server":"one"}`)))
	require.NoError(t, vault.Store(t.Context(), vaultEtcd, []byte(`{"voters":["`+all[0].Name+`","`+locked+`","`+all[3].Name+`"]}`)))
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

func TestLockedGatewaysAndMastersKeepTheirPlacesAndServeNothing(t *testing.T) {
	all := nodesOf(3, 1, 2)
	first, gateway := all[0].Name, all[4].Name
	all[0].Settings.Locked, all[4].Settings.Locked = true, true
	c, err := NewCluster(Config{Name: "c", Nodes: all, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Vault: newVault(), Binary: "/bin/burano"})
	require.NoError(t, err)
	require.Equal(t, all[1].Name, c.master().Name, "another master is worked with")
	require.Equal(t, first, c.masters()[2].Name)
	d := &deployment{cluster: c, installed: map[string]installed{}, again: true}
	etcdSteps{d}.chooseLead(t.Context())
	require.Equal(t, all[1].Name, d.lead.Name)
	require.True(t, c.config.idle(all[0]))
	require.True(t, c.config.idle(all[4]))
	require.False(t, c.config.idle(all[3]), "a minion keeps its kubelet")

	d.design = design{cluster: c.config, driver: c.driver, voters: []string{first}, binary: "1"}
	d.design.authorities, err = pki.Open(t.Context(), newVault(), c.now())
	require.NoError(t, err)
	for _, node := range d.design.apis() {
		require.NotEqual(t, first, node.Name)
	}
	require.Contains(t, d.design.hosts(all[0]), all[1].Address.String()+" "+all[1].Name+" api.c", "a locked master asks another one")
	require.Contains(t, d.design.hosts(all[1]), all[1].Address.String()+" "+all[1].Name+" api.c")
	for node, stays := range map[int][]string{0: {"etcd", etcd.ForwarderUnit}, 4: {etcd.ForwarderUnit, kube.ForwarderUnit}} {
		pairs, err := d.design.pairs(t.Context(), c, all[node])
		require.NoError(t, err)
		made, err := d.design.layout(all[node], pairs, 1500)
		require.NoError(t, err)
		ended := d.design.servingUnits(all[node], made)
		for _, name := range stays {
			require.Contains(t, made.units, name)
			require.NotContains(t, ended, name)
		}
		before, after := made.files(), made.idle(made.files(), ended)
		links := 0
		for _, file := range before {
			if file.Link != "" {
				links++
			}
		}
		for _, file := range after {
			require.NotContains(t, file.Path, "multi-user.target.wants/"+ended[len(ended)-1])
		}
		require.Less(t, len(after), len(before))
		require.Positive(t, links)
	}
	require.Equal(t, gateway, all[4].Name)
}
