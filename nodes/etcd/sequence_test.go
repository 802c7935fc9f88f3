package etcd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
)

// defaultSequences is how many sequences the quick loop runs; BURANO_ETCD_SEQUENCES asks for more.
const defaultSequences = 3

// events are the possible events of a cluster. A sequence has each of them, in any order.
var events = map[string]func(*world){
	"scale up":              (*world).scaleUp,
	"scale down":            (*world).scaleDown,
	"member crash":          (*world).crash,
	"member loses its data": (*world).loseData,
	"orchestrator kill":     (*world).killed,
	"unroutable peer":       (*world).unroutable,
	"leader moves":          (*world).leaderMoves,
	"masters change":        (*world).mastersChange,
	"upgrade":               (*world).upgraded,
}

// The rules of membership hold for any events in any order. Nodes come and go, and members crash with or without their data. The orchestrator is killed
// between any two calls and begins again from the beginning. A new node's address answers nothing, or another member leads. Three or five masters vote
// alone for a while, or two with a third node, and nodes get successors one after another. Whenever no more members are down than the cluster bears, it answers. At the end of each
// change no dead member is left, only the wanted members vote, and the voters are odd.
//
// BURANO_ETCD_SEED repeats one sequence.
func TestTheQuorumSurvivesAnySequenceOfChangesAndCrashes(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t) {
		t.Run(fmt.Sprintf("BURANO_ETCD_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 6, seed)
			var sequence []string
			for name := range events {
				sequence = append(sequence, name)
			}
			slices.Sort(sequence)
			w.random.Shuffle(len(sequence), func(i, j int) { sequence[i], sequence[j] = sequence[j], sequence[i] })
			w.deploy([]int{0}, -1)
			for _, name := range sequence {
				began := time.Now()
				events[name](w)
				t.Logf("%s: voters %v (%.1f s)", name, w.wanted, time.Since(began).Seconds())
			}
		})
	}
}

// seeds draws the seeds of the sequences, or takes the one seed in BURANO_ETCD_SEED.
func seeds(t *testing.T) []uint64 {
	if text := os.Getenv("BURANO_ETCD_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "BURANO_ETCD_SEED")
		return []uint64{seed}
	}
	number := defaultSequences
	if text := os.Getenv("BURANO_ETCD_SEQUENCES"); text != "" {
		var err error
		number, err = strconv.Atoi(text)
		require.NoError(t, err, "BURANO_ETCD_SEQUENCES")
	}
	list := make([]uint64, number)
	for i := range list {
		list[i] = rand.Uint64N(1_000_000_000)
	}
	return list
}

// world is a cluster with an orchestrator that can be killed.
type world struct {
	t      *testing.T
	c      *cluster
	random *rand.Rand
	root   *clientv3.Client
	wanted []int // the voters; 0, the master, always votes
	// masters is how many of the first nodes are masters; several vote alone (etcdNodes: masters), two of them with a third node. 0 is one.
	masters int
}

func newWorld(t *testing.T, size int, seed uint64) *world {
	w := &world{t: t, c: newCluster(t, size), random: rand.New(rand.NewPCG(seed, 0))}
	w.root = w.c.bootstrap()
	return w
}

// scaleUp takes nodes in, so many that votes are added, if there can be more.
func (w *world) scaleUp() { w.deploy(w.grown(), -1) }

// scaleDown takes nodes away, so many that votes go; it grows first when there is only one.
func (w *world) scaleDown() {
	if len(w.wanted) == 1 {
		w.scaleUp()
	}
	wanted := w.wanted
	for size := len(wanted); len(wanted) == size; {
		wanted = w.voters(w.some(w.wanted[1:], 0, len(w.wanted)-2))
	}
	w.deploy(wanted, -1)
}

// crash ends a member like a loss of power. The next change starts it again, unless its node is gone.
func (w *world) crash() {
	victim := w.victim()
	w.c.stop(w.c.nodes[victim])
	w.c.answers(w.root)
	if w.random.IntN(2) == 0 {
		w.deploy(w.without(victim), -1)
		return
	}
	w.deploy(w.wanted, -1)
}

// loseData ends a member whose disk goes with it.
func (w *world) loseData() {
	victim := w.victim()
	w.c.stop(w.c.nodes[victim])
	w.forget(victim)
	w.c.answers(w.root)
	w.deploy(w.wanted, -1)
}

// killed begins a change and ends the orchestrator after some of its calls. Sometimes a member crashes before another orchestrator continues.
func (w *world) killed() {
	wanted := w.grown()
	if w.random.IntN(2) == 0 {
		wanted = w.anybody()
	}
	w.deploy(wanted, 1+w.random.IntN(8))
	w.c.answers(w.root)
	if victim := w.bearable(); victim > 0 && w.random.IntN(2) == 0 {
		w.c.stop(w.c.nodes[victim])
		w.c.answers(w.root)
	}
	w.deploy(w.wanted, -1)
}

// unroutable begins a change in which one of the new nodes stops to answer after its member was added: the others join all the same.
// The next change is without it.
func (w *world) unroutable() {
	for len(w.wanted) >= etcd.MaxVoters {
		w.scaleDown()
	}
	wanted := w.grown()
	nowhere := w.pick(slices.DeleteFunc(slices.Clone(wanted), func(i int) bool { return slices.Contains(w.wanted, i) }))
	speak := w.c.silence(w.c.nodes[nowhere])
	members, err := etcd.AddLearners(w.t.Context(), w.root, w.nodes(wanted))
	require.NoError(w.t, err)
	w.c.answers(w.root)
	for _, i := range wanted {
		if i == nowhere || slices.Contains(w.wanted, i) {
			continue
		}
		w.c.start(w.c.nodes[i], members.PeerURLs(w.c.nodes), "existing")
		require.NoError(w.t, etcd.Promote(w.t.Context(), w.root, w.c.nodes[i]))
		w.c.answers(w.root)
	}
	w.wanted = wanted
	w.deploy(w.without(nowhere), -1)
	speak()
}

// leaderMoves makes another voter the leader than the one that clients talk to, before nodes are taken in.
func (w *world) leaderMoves() {
	if len(w.wanted) >= etcd.MaxVoters {
		w.scaleDown()
	}
	w.c.lead(w.root, w.c.nodes[w.victim()])
	w.c.answers(w.root)
	w.scaleUp()
}

// mastersChange has two, three or five masters, the orchestrator is killed while they join, and goes back to one.
func (w *world) mastersChange() {
	w.masters = []int{2, 3, 5}[w.random.IntN(3)]
	var others []int
	for i := w.masters; i < len(w.c.nodes); i++ {
		others = append(others, i)
	}
	w.deploy(w.voters(others), 1+w.random.IntN(8))
	w.c.answers(w.root)
	w.deploy(w.wanted, -1)
	require.Len(w.t, w.wanted, w.masters|1)
	w.masters = 0
	w.deploy(w.anybody(), -1)
}

// upgraded gives all voters but the master successors, one after another: each joins before its former node goes.
func (w *world) upgraded() {
	if len(w.wanted) == 1 {
		w.scaleUp()
	}
	for _, former := range slices.Clone(w.wanted[1:]) {
		spare := slices.DeleteFunc([]int{1, 2, 3, 4, 5}, func(i int) bool { return slices.Contains(w.wanted, i) })
		w.deploy(w.voters(append(slices.DeleteFunc(slices.Clone(w.wanted[1:]), func(i int) bool { return i == former }), w.pick(spare))), -1)
	}
}

// grown is the wanted nodes with some more.
func (w *world) grown() []int {
	var others []int
	for i := range w.c.nodes {
		if !slices.Contains(w.wanted, i) {
			others = append(others, i)
		}
	}
	return w.voters(append(w.wanted[1:len(w.wanted):len(w.wanted)], w.some(others, 2, len(others))...))
}

// anybody is any choice of nodes.
func (w *world) anybody() []int {
	all := make([]int, len(w.c.nodes)-1)
	for i := range all {
		all[i] = i + 1
	}
	return w.voters(w.some(all, 0, len(all)))
}

// without is the wanted nodes without a lost one.
func (w *world) without(gone int) []int {
	return w.voters(slices.DeleteFunc(slices.Clone(w.wanted[1:]), func(i int) bool { return i == gone }))
}

// some are at least so many and at most so many of nodes.
func (w *world) some(nodes []int, least, most int) []int {
	chosen := slices.Clone(nodes)
	w.random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	least = min(least, len(chosen))
	most = max(least, min(most, len(chosen)))
	return chosen[:least+w.random.IntN(most-least+1)]
}

func (w *world) pick(nodes []int) int { return nodes[w.random.IntN(len(nodes))] }

// voters chooses the voters of the masters and these others, as a deployment does.
func (w *world) voters(others []int) []int {
	slices.Sort(others)
	var candidates []etcd.Candidate
	var current []string
	for _, master := range w.c.nodes[:max(w.masters, 1)] {
		candidates = append(candidates, etcd.Candidate{Name: master.Name})
	}
	for _, i := range others {
		candidates = append(candidates, etcd.Candidate{Name: w.c.nodes[i].Name, Rank: 1})
	}
	for _, i := range w.wanted {
		current = append(current, w.c.nodes[i].Name)
	}
	most := etcd.MaxVoters
	if w.masters > 1 {
		most = w.masters | 1
	}
	voters := etcd.Voters(candidates, current, most)
	var wanted []int
	for i, node := range w.c.nodes {
		if slices.Contains(voters, node.Name) {
			wanted = append(wanted, i)
		}
	}
	require.Equal(w.t, 1, len(wanted)%2)
	return wanted
}

// victim is a voter that the cluster can do without; it grows first when there is none. The master stays: clients of this test reach
// etcd through it.
func (w *world) victim() int {
	if len(w.wanted) < 3 {
		w.scaleUp()
	}
	return w.pick(w.wanted[1:])
}

// bearable is a voter that runs and that the cluster can do without in the middle of a change; 0 when there is none.
func (w *world) bearable() int {
	members, err := etcd.Members(w.t.Context(), w.root)
	require.NoError(w.t, err)
	var running []int
	voters := members.Voters(w.c.nodes)
	for i, node := range w.c.nodes {
		if slices.Contains(voters, node) && w.c.runs(node) {
			running = append(running, i)
		}
	}
	if len(running)-1 <= len(voters)/2 || len(running) < 2 {
		return 0
	}
	return w.pick(running[1:])
}

func (w *world) nodes(list []int) []etcd.Node {
	nodes := make([]etcd.Node, len(list))
	for at, i := range list {
		nodes[at] = w.c.nodes[i]
	}
	return nodes
}

func (w *world) forget(i int) {
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.c.dirs[w.c.nodes[i].Name], etcd.DataDir)))
}

func (w *world) hasData(i int) bool {
	_, err := os.Stat(filepath.Join(w.c.dirs[w.c.nodes[i].Name], etcd.DataDir, "member"))
	return err == nil
}

// deploy takes the same steps as a deployment, in its order, and stops after so many calls (never, when negative).
func (w *world) deploy(wanted []int, calls int) {
	w.t.Helper()
	w.wanted = wanted
	ctx := w.t.Context()
	killed := func() bool { calls--; return calls == -1 }
	voters := w.nodes(wanted)
	if w.removeDeadMembers(wanted, voters, killed) || killed() {
		return
	}
	members, err := etcd.AddLearners(ctx, w.root, voters)
	require.NoError(w.t, err)
	w.c.answers(w.root)
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
		w.c.answers(w.root)
	}
	for _, member := range w.formerMembers(voters) {
		if killed() {
			return
		}
		require.NoError(w.t, etcd.Remove(ctx, w.root, member))
		w.c.answers(w.root)
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
	// A member votes before it has a name and serves clients.
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		members, err := etcd.Members(ctx, w.root)
		require.NoError(t, err)
		require.Empty(t, etcd.Silent(ctx, w.root, members))
	}, 40*time.Second, 10*time.Millisecond, "no dead member remains")
}

// removeDeadMembers removes dead members and the data of nodes that are no members; a member that only crashed is started again first.
func (w *world) removeDeadMembers(wanted []int, voters []etcd.Node, killed func() bool) bool {
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
			w.c.answers(w.root)
		case member == nil && w.hasData(i):
			w.c.stop(w.c.nodes[i])
			w.forget(i)
		case member != nil && w.hasData(i) && !w.c.runs(w.c.nodes[i]):
			w.c.start(w.c.nodes[i], members.PeerURLs(w.c.nodes), "existing")
		}
	}
	for _, id := range w.formerMembers(voters) {
		if killed() {
			return true
		}
		if !etcd.Answers(ctx, w.root, members.ByID(id)) {
			require.NoError(w.t, etcd.Remove(ctx, w.root, id))
			w.c.answers(w.root)
		}
	}
	return false
}

func (w *world) formerMembers(voters []etcd.Node) []uint64 {
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
