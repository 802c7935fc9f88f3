package etcd_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/etcd"
)

func TestALeaderHandsOverBeforeItIsRemoved(t *testing.T) {
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Empty(t, etcd.Silent(t.Context(), root, members))
	// The first one leads: it was alone.
	leader := members.Of(c.nodes[0])
	rest := c.client(etcd.Root, c.nodes[1].ClientURL(), c.nodes[2].ClientURL())
	started := time.Now()
	require.NoError(t, etcd.Remove(t.Context(), rest, leader.ID))
	_, err = rest.Get(t.Context(), "x")
	require.NoError(t, err)
	t.Logf("a read was answered %s after the removal began", time.Since(started))
	require.NoError(t, etcd.Remove(t.Context(), rest, leader.ID), "removing again is no error")
	members, err = etcd.Members(t.Context(), rest)
	require.NoError(t, err)
	require.Len(t, members, 2)
	require.Nil(t, members.Of(c.nodes[0]))
}

func TestAMemberThatLostItsDataIsRemovedBeforeItJoinsAgain(t *testing.T) {
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	c.stop(c.nodes[2])
	require.NoError(t, os.RemoveAll(filepath.Join(c.dirs[c.nodes[2].Name], etcd.DataDir)))
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []string{c.nodes[2].Name}, etcd.Silent(t.Context(), root, members))
	dead := members.Of(c.nodes[2])
	require.True(t, etcd.Started(dead))
	require.False(t, etcd.Answers(t.Context(), root, dead))
	require.NoError(t, etcd.Remove(t.Context(), root, dead.ID))
	c.join(root, c.nodes[2])
	members, err = etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Len(t, members.Voters(c.nodes), 3)
	require.NotEqual(t, dead.ID, members.Of(c.nodes[2]).ID)
}

// join takes nodes in as a deployment does.
func (c *cluster) join(root *clientv3.Client, nodes ...etcd.Node) {
	c.t.Helper()
	members, err := etcd.AddLearners(c.t.Context(), root, nodes)
	require.NoError(c.t, err)
	for _, node := range nodes {
		c.start(node, members.PeerURLs(c.nodes), "existing")
		require.NoError(c.t, etcd.Promote(c.t.Context(), root, node))
	}
}

// The rules of membership hold for whatever happens in whatever order: nodes come and go, members crash with or without
// their data, the orchestrator is killed between any two calls and begins again from the beginning. At each moment in which no
// more members are down than the cluster bears, it answers; at the end of each change no dead member is left, nobody
// but the wanted votes, and the voters are odd.
func TestTheQuorumSurvivesAnySequenceOfChangesAndCrashes(t *testing.T) {
	deadline := time.Now().Add(20 * time.Second) // a sequence that began before is finished
	sequences, changes := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(deadline) {
			return
		}
		sequences++
		w := newWorld(t, 6)
		defer w.end()
		w.settle([]int{0}, -1)
		for range rapid.IntRange(2, 4).Draw(rt, "changes") {
			if time.Now().After(deadline) {
				break
			}
			changes++
			switch rapid.SampledFrom([]string{"scale", "scale", "crash", "lose data", "killed"}).Draw(rt, "event") {
			case "scale":
				w.settle(w.draw(rt), -1)
			case "killed": // after so many calls; the next run goes on from what is there
				w.settle(w.draw(rt), rapid.IntRange(1, 8).Draw(rt, "calls before the kill"))
				w.settle(w.wanted, -1)
			case "crash":
				if victim := w.victim(rt); victim >= 0 {
					w.c.stop(w.c.nodes[victim])
					w.answers()
					w.settle(w.wanted, -1)
				}
			case "lose data":
				if victim := w.victim(rt); victim >= 0 {
					w.c.stop(w.c.nodes[victim])
					w.forget(victim)
					w.answers()
					w.settle(w.wanted, -1)
				}
			}
		}
	})
	t.Logf("%d sequences with %d changes", sequences, changes)
	require.NotZero(t, changes)
}

// world is a cluster with an orchestrator that can be killed.
type world struct {
	t      *testing.T
	c      *cluster
	root   *clientv3.Client
	wanted []int // who shall vote; 0, the master, always does
}

func newWorld(t *testing.T, size int) *world {
	w := &world{t: t, c: newCluster(t, size)}
	w.root = w.c.bootstrap()
	return w
}

func (w *world) end() {
	for _, node := range w.c.nodes {
		w.c.stop(node)
		require.NoError(w.t, os.RemoveAll(w.c.dirs[node.Name]))
	}
	_ = w.root.Close()
}

// draw chooses the nodes of the next wish, and the voters among them as a deployment would.
func (w *world) draw(rt *rapid.T) []int {
	others := rapid.SliceOfNDistinct(rapid.IntRange(1, len(w.c.nodes)-1), 0, 4, rapid.ID[int]).Draw(rt, "nodes")
	slices.Sort(others)
	candidates, current := []etcd.Candidate{{Name: w.c.nodes[0].Name}}, []string{}
	for _, i := range others {
		candidates = append(candidates, etcd.Candidate{Name: w.c.nodes[i].Name, Rank: 1})
	}
	for _, i := range w.wanted {
		current = append(current, w.c.nodes[i].Name)
	}
	voters := etcd.Voters(candidates, current)
	var wanted []int
	for i, node := range w.c.nodes {
		if slices.Contains(voters, node.Name) {
			wanted = append(wanted, i)
		}
	}
	require.Equal(w.t, 1, len(wanted)%2)
	return wanted
}

// victim is a voter that the cluster can do without, or -1. The master stays: clients of this test reach etcd through it.
func (w *world) victim(rt *rapid.T) int {
	if len(w.wanted) < 3 {
		return -1
	}
	return rapid.SampledFrom(w.wanted[1:]).Draw(rt, "victim")
}

func (w *world) forget(i int) {
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.c.dirs[w.c.nodes[i].Name], etcd.DataDir)))
}

func (w *world) hasData(i int) bool {
	_, err := os.Stat(filepath.Join(w.c.dirs[w.c.nodes[i].Name], etcd.DataDir, "member"))
	return err == nil
}

// answers demands that the cluster takes a write soon.
func (w *world) answers() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 15*time.Second)
	defer cancel()
	_, err := w.root.Put(ctx, "/registry/probe", fmt.Sprint(time.Now()))
	require.NoError(w.t, err, "the quorum is lost")
}

// settle does what a deployment does, in its order, and stops after so many calls (never, when negative).
func (w *world) settle(wanted []int, calls int) {
	w.t.Helper()
	w.wanted = wanted
	ctx := w.t.Context()
	killed := func() bool { calls--; return calls == -1 }
	var voters []etcd.Node
	for _, i := range wanted {
		voters = append(voters, w.c.nodes[i])
	}
	if w.bury(wanted, voters, killed) || killed() {
		return
	}
	members, err := etcd.AddLearners(ctx, w.root, voters)
	require.NoError(w.t, err)
	w.answers()
	for _, i := range wanted {
		if killed() {
			return
		}
		if !w.c.runs(w.c.nodes[i]) {
			w.c.start(w.c.nodes[i], members.PeerURLs(w.c.nodes), "existing")
		}
		if killed() {
			return
		}
		require.NoError(w.t, etcd.Promote(ctx, w.root, w.c.nodes[i]))
		w.answers()
	}
	for _, member := range w.strangers(voters) {
		if killed() {
			return
		}
		require.NoError(w.t, etcd.Remove(ctx, w.root, member))
		w.answers()
	}
	for i, node := range w.c.nodes {
		if !slices.Contains(wanted, i) && w.hasData(i) {
			w.c.stop(node)
			w.forget(i)
		}
	}
	members, err = etcd.Members(ctx, w.root)
	require.NoError(w.t, err)
	require.Len(w.t, members, len(wanted), "nobody else is a member")
	require.Equal(w.t, voters, members.Voters(w.c.nodes))
	require.Empty(w.t, etcd.Silent(ctx, w.root, members), "no dead member remains")
}

// bury removes dead members and the data of those who are none; a member that only crashed is started again first.
func (w *world) bury(wanted []int, voters []etcd.Node, killed func() bool) bool {
	w.t.Helper()
	ctx := w.t.Context()
	members, err := etcd.Members(ctx, w.root)
	require.NoError(w.t, err)
	for _, i := range wanted {
		member := members.Of(w.c.nodes[i])
		switch {
		case member != nil && !w.hasData(i) && (etcd.Started(member) || !member.IsLearner):
			if killed() {
				return true
			}
			require.NoError(w.t, etcd.Remove(ctx, w.root, member.ID))
			w.answers()
		case member == nil && w.hasData(i):
			w.c.stop(w.c.nodes[i])
			w.forget(i)
		case member != nil && w.hasData(i) && !w.c.runs(w.c.nodes[i]):
			w.c.start(w.c.nodes[i], members.PeerURLs(w.c.nodes), "existing")
		}
	}
	for _, id := range w.strangers(voters) {
		if killed() {
			return true
		}
		if !etcd.Answers(ctx, w.root, members.ByID(id)) {
			require.NoError(w.t, etcd.Remove(ctx, w.root, id))
			w.answers()
		}
	}
	return false
}

func (w *world) strangers(voters []etcd.Node) []uint64 {
	members, err := etcd.Members(w.t.Context(), w.root)
	require.NoError(w.t, err)
	var ids []uint64
	for _, member := range members {
		if !slices.ContainsFunc(voters, func(node etcd.Node) bool { return slices.Contains(member.PeerURLs, node.PeerURL()) }) {
			ids = append(ids, member.ID)
		}
	}
	return ids
}

// A learner whose address answers nothing at all (TEST-NET-1, RFC 5737) is no vote: reads and writes go on, and others can be removed.
func TestAnUnroutableLearnerStallsNothing(t *testing.T) {
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	nowhere := etcd.Node{Name: "nowhere", Address: netip.MustParseAddr("192.0.2.1")}
	_, err := etcd.AddLearners(t.Context(), root, []etcd.Node{nowhere})
	require.NoError(t, err)
	worst := time.Duration(0)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		started := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := root.Put(ctx, "/registry/probe", "x")
		cancel()
		require.NoError(t, err)
		worst = max(worst, time.Since(started))
	}
	t.Logf("the slowest write took %s", worst)
	require.Less(t, worst, 4*time.Second)
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.NoError(t, etcd.Remove(t.Context(), root, members.Of(nowhere).ID))
	require.NoError(t, etcd.Remove(t.Context(), root, members.Of(c.nodes[2]).ID))
}
