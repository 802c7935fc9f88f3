package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// kinds are the kinds of findings, with their subjects.
func kinds(findings []keeper.Finding) []string {
	list := []string{}
	for _, one := range findings {
		list = append(list, string(one.Severity)+" "+one.Kind+" "+one.Subject)
	}
	return list
}

type archive = known.Snapshots

// unasked is an archive of snapshots that expects no request.
type unasked struct{ archive }

func TestAnEnvironmentWithoutAClusterIsAskedNothing(t *testing.T) {
	// A duty that asks for a secret, a snapshot, the project or a node panics here.
	duties := Duties(Config{Reach: known.Reach{Snapshots: unasked{}}, Interval: time.Minute})
	require.Len(t, duties, 13)
	for _, duty := range duties {
		result, err := duty.Look(t.Context(), &keeper.Environment{ID: "e", Name: "demo"})
		require.NoError(t, err, duty.Name())
		require.Equal(t, keeper.Result{}, result, duty.Name())
	}
}

func TestWhatIsWrongWithAClusterIsFound(t *testing.T) {
	yes, no := true, false
	well := func() nodes.Status {
		return nodes.Status{
			Nodes: []nodes.NodeStatus{{Node: nodes.Node{Name: "m", Role: nodes.Master}, Reached: true}, {Node: nodes.Node{Name: "a", Role: nodes.Minion}, Reached: true, Ready: &yes},
				{Node: nodes.Node{Name: "g", Role: nodes.Gateway}, Reached: true}},
			Members: []nodes.MemberStatus{{Name: "a", Answers: true}, {Name: "g", Answers: true}, {Name: "m", Answers: true}}}
	}
	away := errors.New("away")
	for name, c := range map[string]struct {
		change func(*nodes.Status)
		want   []string
	}{
		"nothing":               {func(*nodes.Status) {}, []string{}},
		"a node that is away":   {func(s *nodes.Status) { s.Nodes[2].Reached, s.Nodes[2].Problem = false, away }, []string{"warning node-unreachable g"}},
		"the master is away":    {func(s *nodes.Status) { s.Nodes[0].Reached, s.Nodes[0].Problem = false, away }, []string{"critical node-unreachable m"}},
		"a node without pods":   {func(s *nodes.Status) { s.Nodes[1].Ready = &no }, []string{"warning node-not-ready a"}},
		"a member of three":     {func(s *nodes.Status) { s.Members[1].Answers = false }, []string{"critical member-silent g"}},
		"a learner":             {func(s *nodes.Status) { s.Members[1] = nodes.MemberStatus{Name: "g", Learner: true, Answers: true} }, []string{}},
		"etcd and the API away": {func(s *nodes.Status) { s.Etcd, s.Kubernetes, s.Members = away, away, nil }, []string{"critical etcd-unanswered ", "critical api-unanswered "}},
	} {
		t.Run(name, func(t *testing.T) {
			status := well()
			c.change(&status)
			found := ailments(&keeper.Environment{}, &desired.Cluster{ID: "c"}, known.Facts{Nodes: make([]nodes.Node, 3)}, status)
			require.Equal(t, c.want, kinds(found))
			for _, one := range found {
				require.Equal(t, "c", one.ObjectID)
				require.NotEmpty(t, one.Mends)
				require.Nil(t, one.Repair, "autoRepair is off")
			}
		})
	}
}

func TestMinionsAreAskedOverSSHInTurnsAndAllWhereSomethingIsWrong(t *testing.T) {
	minions := []string{"murano-kube-2", "murano-kube-3", "murano-kube-4", "murano-kube-5", "murano-kube-6", "murano-kube-7", "murano-kube-8", "murano-kube-9"}
	h := newHealth(Config{Interval: time.Minute})
	look := func(environment *keeper.Environment) (asked []string) {
		spare := h.spare(environment)
		for _, one := range minions {
			if spare == nil || !spare(one) {
				asked = append(asked, one)
			}
		}
		return asked
	}
	well := &keeper.Environment{ID: "e"}
	for round := range 3 {
		var all []string
		for range minionTurns {
			look(&keeper.Environment{ID: "other"}) // has turns of its own
			all = append(all, look(well)...)
		}
		require.ElementsMatch(t, minions, all, "round %d", round)
	}
	require.Equal(t, minions, look(&keeper.Environment{ID: "e", Found: []string{dutyServers, dutyHealth}}))
	require.Less(t, len(look(&keeper.Environment{ID: "e", Found: []string{dutyServers}})), len(minions))
}

func TestANodeIsRepairedWhereThatIsAllowedAndNoMoreThanAThirdAreBad(t *testing.T) {
	no := false
	status := func(bad int) nodes.Status {
		var s nodes.Status
		for i := range 6 {
			s.Nodes = append(s.Nodes, nodes.NodeStatus{Node: nodes.Node{Name: string(rune('a' + i)), Role: nodes.Minion}, Reached: true})
			if i < bad {
				s.Nodes[i].Ready, s.Nodes[i].Problem = &no, errors.New("no")
			}
		}
		return s
	}
	allowed := stored(t, "c", map[string]any{"name": "c", "autoRepair": true})
	look := func(environment *keeper.Environment, cluster *desired.Cluster, bad int) keeper.Finding {
		return ailments(environment, cluster, known.Facts{Nodes: make([]nodes.Node, 6)}, status(bad))[0]
	}
	repaired := look(&keeper.Environment{}, allowed, 2)
	require.Equal(t, &keeper.Repair{ObjectID: "c", Method: "repairNode", Args: map[string]any{"node": "a"}, Cloud: true, Text: "Repair of node a: " + repaired.Text}, repaired.Repair)
	many := look(&keeper.Environment{}, allowed, 3)
	require.Nil(t, many.Repair)
	require.Contains(t, many.Mends, "more than a third of the nodes are bad (3 of 6)")
	failed := look(&keeper.Environment{Failed: true}, allowed, 1)
	require.Nil(t, failed.Repair)
	require.Contains(t, failed.Mends, "newest deployment failed")
	require.Contains(t, failed.Mends, "burano node replace", "what has just failed is no advice")
	require.NotContains(t, failed.Mends, "Deploy the environment again")
	require.Contains(t, many.Mends, "Deploy the environment again")
	require.Contains(t, look(&keeper.Environment{}, &desired.Cluster{}, 1).Mends, "autoRepair")
}

func TestALockedNodeIsLeftAloneWhichAFindingSays(t *testing.T) {
	no := false
	cluster := stored(t, "c", map[string]any{"name": "c", "autoRepair": true})
	status := nodes.Status{Nodes: []nodes.NodeStatus{
		{Node: nodes.Node{Name: "a", Role: nodes.Minion, Settings: kube.Settings{Locked: true}}, Reached: true, Ready: &no, Problem: errors.New("no")},
		{Node: nodes.Node{Name: "b", Role: nodes.Minion, Settings: kube.Settings{Locked: true}}, Problem: errors.New("no")},
		{Node: nodes.Node{Name: "c", Role: nodes.Minion}, Reached: true, Ready: &no, Problem: errors.New("no")},
	}, Members: []nodes.MemberStatus{{Name: "a"}, {Name: "x", Answers: true}, {Name: "y", Answers: true}}}
	found := ailments(&keeper.Environment{}, cluster, known.Facts{Nodes: make([]nodes.Node, 3)}, status)
	require.Equal(t, []string{"info node-locked a", "info node-locked b", "warning node-not-ready c", "critical member-silent a"}, kinds(found))
	for _, finding := range found {
		require.Equal(t, finding.Subject == "c", finding.Repair != nil, finding.Kind)
	}
	for _, state := range []openstack.ServerState{{Status: openstack.Shut}, {Status: "PAUSED"}} {
		_, wrong := keptServer{node: nodes.Node{Name: "a", Settings: kube.Settings{Locked: true}}, state: state}.finding(&keeper.Environment{})
		require.False(t, wrong, state)
	}
}

func TestWhatHappenedToAServerIsFound(t *testing.T) {
	for state, want := range map[openstack.ServerState]string{
		{Status: openstack.Active, Launched: "t1"}:         "",
		{Status: openstack.Active, Launched: "t2"}:         "server-changed",
		{Status: openstack.Gone}:                           "server-gone",
		{Status: openstack.Shut}:                           "server-stopped",
		{Status: openstack.Shut, Task: "powering-on"}:      "",
		{Status: "ERROR", Fault: "No valid host"}:          "server-failed",
		{Status: "PAUSED"}:                                 "server-not-active",
		{Status: "REBOOT", Task: "rebooting"}:              "",
		{Status: "BUILD", Task: "spawning"}:                "",
		{Status: openstack.Active, Task: "image_snapshot"}: "",
	} {
		server := keptServer{Server: keeper.Server{Name: "s", ID: "i"}, node: nodes.Node{Name: "s", Role: nodes.Gateway, Launched: "t1"}, state: state}
		found, wrong := server.finding(&keeper.Environment{})
		require.Equal(t, want != "", wrong, "%v", state)
		require.Equal(t, want, found.Kind)
	}
}

// templateKept is the stored state of an environment's stack.
type templateKept struct {
	secretsOf
	text string
}

func (k templateKept) Secret(_ context.Context, _, name string) ([]byte, bool, error) {
	return []byte(k.text), name == known.SecretTemplate, nil
}

func TestServersThatMuranoMadeAreFoundAndLeftAlone(t *testing.T) {
	keys := access.NewKeys(&access.Memory{})
	own, err := keys.UserData(t.Context(), "own", "#!/bin/sh")
	require.NoError(t, err)
	resources := map[string]any{}
	for id, data := range map[string]string{"own": own, "murano": "Content-Type: multipart/mixed\n\nrabbit", "windows": "#ps1\n", "bare": ""} {
		resources[openstack.ServerResource(id)] = map[string]any{"properties": map[string]any{"user_data": data}}
	}
	text, err := json.Marshal(map[string]any{"resources": resources})
	require.NoError(t, err)
	var servers []keeper.Server
	for _, id := range []string{"own", "murano", "windows", "bare", "unknown"} {
		servers = append(servers, keeper.Server{ObjectID: id, Name: id, ID: "nova-" + id})
	}
	environment := &keeper.Environment{Servers: servers, Project: func(context.Context, string) (*openstack.Project, error) { return nil, keeper.ErrNoDelegation }}
	result, err := newKept(Config{Secrets: templateKept{text: string(text)}, Interval: time.Minute}).Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"info server-without-key murano", "info no-delegation "}, kinds(result.Findings))
	require.Nil(t, result.Findings[0].Repair)
	require.Zero(t, result.Next, "what stays so is not looked at in a hurry")
}

func TestNodesWhoseServersAreOffGiveTheirVolumesToOthers(t *testing.T) {
	cluster := stored(t, "c", map[string]any{"name": "kube"})
	environment := &keeper.Environment{ID: "e", Clusters: []*desired.Cluster{cluster}}
	server := func(name string, role nodes.Role, state openstack.ServerState) keptServer {
		return keptServer{Server: keeper.Server{ID: name}, node: nodes.Node{Name: name, Role: role}, state: state}
	}
	servers := []keptServer{server("stopped", nodes.Minion, openstack.ServerState{Status: openstack.Shut}), server("deleted", nodes.Minion, openstack.ServerState{Status: openstack.Gone}),
		server("shelved", nodes.Minion, openstack.ServerState{Status: openstack.Shelved}), server("offloaded", nodes.Minion, openstack.ServerState{Status: openstack.Offloaded}),
		server("unshelved", nodes.Minion, openstack.ServerState{Status: openstack.Offloaded, Task: "spawning"}),
		server("starts", nodes.Minion, openstack.ServerState{Status: openstack.Shut, Task: "powering-on"}), server("runs", nodes.Minion, openstack.ServerState{Status: openstack.Active}),
		server("failed", nodes.Minion, openstack.ServerState{Status: "ERROR"}), server("paused", nodes.Minion, openstack.ServerState{Status: "PAUSED"}),
		server("gateway", nodes.Gateway, openstack.ServerState{Status: openstack.Shut}), server("elsewhere", nodes.Minion, openstack.ServerState{Status: openstack.Shut})}
	of := map[string]*desired.Cluster{}
	for _, one := range servers[:10] {
		of[one.ID] = cluster
	}
	var asked [][]string
	var fails error
	duty := newKept(Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: secretsOf{known.SecretName("c", "storage"): `{"backends": ["cinder"]}`}, Interval: time.Minute})
	duty.mark = func(_ context.Context, _ *keeper.Environment, _ *desired.Cluster, off []string) ([]string, error) {
		asked = append(asked, off)
		return []string{"stopped"}, fails
	}
	found, hurried, err := duty.outOfService(t.Context(), environment, servers, of)
	require.NoError(t, err)
	require.True(t, hurried)
	require.Equal(t, [][]string{{"stopped", "deleted", "shelved", "offloaded"}}, asked)
	require.Equal(t, []string{"warning node-out-of-service stopped"}, kinds(found))

	fails = errors.New("no API")
	found, _, err = duty.outOfService(t.Context(), environment, servers, of)
	require.NoError(t, err, "what is found of servers counts all the same")
	require.Equal(t, []string{"warning node-out-of-service stopped", "warning volumes-held "}, kinds(found))
	require.Contains(t, found[1].Text, "stopped, deleted, shelved, offloaded of cluster kube, whose servers are off")
	found, _, err = duty.outOfService(t.Context(), environment, servers[4:], of)
	require.NoError(t, err)
	require.Equal(t, []string{"warning node-out-of-service stopped"}, kinds(found), "nobody waits for a volume")

	duty.Secrets = secretsOf{known.SecretName("c", "storage"): `{"backends": ["manila"]}`}
	_, hurried, err = duty.outOfService(t.Context(), environment, servers, of)
	require.NoError(t, err)
	require.True(t, hurried, "shares too are for other nodes")
	require.Len(t, asked, 4)

	duty.Secrets = secretsOf{known.SecretName("c", "storage"): `{"backends": ["local"]}`}
	duty.mark = func(_ context.Context, _ *keeper.Environment, _ *desired.Cluster, off []string) ([]string, error) {
		asked = append(asked, off)
		return off, fails
	}
	found, hurried, err = duty.outOfService(t.Context(), environment, servers[6:], of)
	require.NoError(t, err)
	require.False(t, hurried)
	require.Empty(t, found)
	require.Len(t, asked, 4, "no server is off, and no node was marked: Kubernetes is not asked")
	found, _, err = duty.outOfService(t.Context(), environment, servers[:1], of)
	require.NoError(t, err)
	require.Equal(t, []string{"warning node-out-of-service stopped", "warning pods-held "}, kinds(found), "pods without volumes run elsewhere at once, too")
	fails, environment.Found = nil, []string{dutyServers}
	found, _, err = duty.outOfService(t.Context(), environment, servers[6:], of)
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, asked, 6, "the mark of the last look is taken back")
}

func TestWithoutADelegationServersAreNotLookedAtWhichAFindingSays(t *testing.T) {
	ask := func(clusters ...*desired.Cluster) keeper.Result {
		environment := &keeper.Environment{Name: "one", Clusters: clusters, Servers: []keeper.Server{{ID: "s"}},
			Project: func(context.Context, string) (*openstack.Project, error) { return nil, keeper.ErrNoDelegation }}
		result, err := newKept(Config{Secrets: secretsOf{}, Interval: time.Minute}).Look(t.Context(), environment)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, []string{"info no-delegation "}, kinds(ask().Findings))
	require.Equal(t, []string{"warning no-delegation "}, kinds(ask(stored(t, "c", map[string]any{"autoRepair": true})).Findings))
}

// stored is a cluster of a stored model.
func stored(t *testing.T, id string, properties map[string]any) *desired.Cluster {
	t.Helper()
	cluster, err := desired.ReadStored(id, properties)
	require.NoError(t, err)
	return cluster
}
