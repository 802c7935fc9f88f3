package etcd_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/etcd"
)

func candidates(masters, minions, gateways int) []etcd.Candidate {
	var all []etcd.Candidate
	for rank, count := range []int{masters, minions, gateways} {
		for i := range count {
			all = append(all, etcd.Candidate{Name: fmt.Sprintf("%c%d", "mng"[rank], i+1), Rank: rank})
		}
	}
	return all
}

func TestVotersAreMastersThenMinionsThenGateways(t *testing.T) {
	for _, c := range []struct {
		masters, minions, gateways int
		want                       []string
	}{
		{1, 0, 0, []string{"m1"}},
		{1, 1, 0, []string{"m1"}},
		{1, 1, 1, []string{"m1", "n1", "g1"}},
		{1, 2, 1, []string{"m1", "n1", "n2"}},
		{1, 3, 2, []string{"m1", "n1", "n2", "n3", "g1"}},
		{2, 1, 1, []string{"m1", "m2", "n1"}},
		{2, 2, 1, []string{"m1", "m2", "n1", "n2", "g1"}},
		{3, 9, 2, []string{"m1", "m2", "m3", "n1", "n2"}},
	} {
		require.Equal(t, c.want, etcd.Voters(candidates(c.masters, c.minions, c.gateways), nil, etcd.MaxVoters), "%+v", c)
	}
}

// With two masters a third node votes: the one that does already, else one that is in service, by its name.
func TestAThirdNodeVotesBesideTwoMasters(t *testing.T) {
	third := func(change func([]etcd.Candidate), current ...string) string {
		all := candidates(2, 2, 1)
		change(all)
		voters := etcd.Voters(all, current, 3)
		require.Equal(t, []string{"m1", "m2"}, voters[:2])
		require.Len(t, voters, 3)
		return voters[2]
	}
	as := func([]etcd.Candidate) {}
	lock := func(names ...string) func([]etcd.Candidate) {
		return func(all []etcd.Candidate) {
			for i := range all {
				all[i].Locked = slices.Contains(names, all[i].Name)
			}
		}
	}
	require.Equal(t, "n1", third(as))
	require.Equal(t, "n1", third(slices.Reverse), "whatever their order")
	require.Equal(t, "g1", third(as, "m1", "g1"), "it votes already")
	require.Equal(t, "g1", third(lock("g1"), "m1", "g1"), "a lock moves no vote")
	require.Equal(t, "n2", third(lock("n1"), "m1", "n1", "n2"), "of several voters one in service stays")
	require.Equal(t, "n2", third(lock("n1", "g1")))
	require.Equal(t, "g1", third(lock("n1", "n2")))
	require.Equal(t, "n1", third(lock("m1", "n1", "n2", "g1")), "the caller refuses it")
}

func TestANewMinionTakesNoVoteFromAGateway(t *testing.T) {
	require.Equal(t, []string{"m1", "n1", "g1"}, etcd.Voters(candidates(1, 2, 1), []string{"m1", "n1", "g1"}, etcd.MaxVoters))
}

func TestVotersAreOddFewAndStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := candidates(rapid.IntRange(1, 4).Draw(rt, "masters"), rapid.IntRange(0, 6).Draw(rt, "minions"), rapid.IntRange(0, 4).Draw(rt, "gateways"))
		shuffled := rapid.Permutation(all).Draw(rt, "order")
		voters := etcd.Voters(shuffled, nil, etcd.MaxVoters)
		require.Equal(rt, etcd.Voters(all, nil, etcd.MaxVoters), voters, "positions decide nothing")
		require.Equal(rt, 1, len(voters)%2)
		require.LessOrEqual(rt, len(voters), etcd.MaxVoters)
		require.GreaterOrEqual(rt, len(voters)+1, min(len(all), etcd.MaxVoters))
		rank := func(name string) int {
			return all[slices.IndexFunc(all, func(c etcd.Candidate) bool { return c.Name == name })].Rank
		}
		for _, c := range all {
			if !slices.Contains(voters, c.Name) {
				for _, voter := range voters {
					require.LessOrEqual(rt, rank(voter), c.Rank, "%s votes and %s does not", voter, c.Name)
				}
			}
		}
		// The same input gives the same voters, and growing moves no vote of a minion or gateway.
		require.ElementsMatch(rt, voters, etcd.Voters(shuffled, voters, etcd.MaxVoters))
		grown := append(slices.Clone(all), etcd.Candidate{Name: "new", Rank: rapid.IntRange(1, 2).Draw(rt, "rank")})
		for _, voter := range voters {
			require.Contains(rt, etcd.Voters(grown, voters, etcd.MaxVoters), voter)
		}
	})
}
