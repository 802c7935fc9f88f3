package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

func TestOneNodeThatIsGoneIsOneLineThatNamesItOnce(t *testing.T) {
	began := time.Now()
	lost := func(node, step string, after time.Duration) plan.Record {
		return plan.Record{Step: plan.Step{Node: node, Name: step}, Outcome: plan.Failed, Finished: began.Add(after), Err: &ssh.LostError{Server: "192.0.2.1:22", Script: step}}
	}
	other := plan.Record{Step: plan.Step{Node: "b", Name: "files"}, Outcome: plan.Failed, Finished: began, Err: errors.New("No space left on device")}
	records := []plan.Record{lost("a", "network", 2*time.Second), lost("a", "files", time.Second), other, {Step: plan.Step{Node: "a", Name: "kubelet"}, Outcome: plan.Skipped}}
	err := failures(records, errors.New("joined"))
	require.EqualError(t, err, `a: files: the connection to 192.0.2.1:22 was lost while script "files" ran (and for the same reason: network)`+"\n"+
		"b: files: No space left on device")
	joined := errors.New("joined")
	require.ErrorIs(t, failures(records, joined), joined)
}

// connected is a cluster with a connection to its first node, which is a real sshd.
func connected(t *testing.T, config Config) (*Cluster, Node, *sshtest.Server) {
	server := sshtest.New(t)
	address, err := netip.ParseAddrPort(server.Address)
	require.NoError(t, err)
	vault := newVault()
	config.Name, config.Nodes, config.Vault, config.Patience = "c", nodesOf(1, 1, 0), vault, 20*time.Second
	node := &config.Nodes[0]
	node.Address, node.Access = address.Addr(), address.Addr()
	known, err := json.Marshal(map[string]any{"public": string(xssh.MarshalAuthorizedKey(server.HostKey)), "confirmed": true})
	require.NoError(t, err)
	require.NoError(t, vault.Store(t.Context(), "ssh/key", server.Key))
	require.NoError(t, vault.Store(t.Context(), "ssh/host/"+node.Name, known))
	c, err := NewCluster(config)
	require.NoError(t, err)
	of := c.config.accessConfig()
	of.Port = strconv.Itoa(int(address.Port()))
	c.connections = access.New(of)
	_, err = c.connect(t.Context(), *node)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, *node, server
}

func TestAStepWhoseConnectionIsLostIsRepeated(t *testing.T) {
	var reports []string
	c, node, server := connected(t, Config{Report: func(_ context.Context, node, text string) { reports = append(reports, node+": "+text) }})
	runs := 0
	err := c.persist(t.Context(), node, "drain", time.Minute, func(context.Context) error {
		if runs++; runs == 1 {
			server.Stop()
			return &ssh.LostError{Server: "here", Script: "it"}
		}
		server.Start()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, runs)
	require.Equal(t, []string{node.Name + `: the connection was lost during "drain" (the connection to here was lost while script "it" ran); the step is repeated, try 2 of 3`}, reports)

	err = c.persist(t.Context(), node, "drain", time.Minute, func(context.Context) error { return errors.New("refused") })
	require.EqualError(t, err, "refused", "what is not about the connection is not repeated")
}

func TestANodeThatDoesNotComeBackIsNotWaitedForAgain(t *testing.T) {
	c, node, server := connected(t, Config{
		Server:  func(context.Context, string) ServerState { return ServerState{Note: "its server is SHUTOFF"} },
		Console: func(context.Context, string) string { return "login:\n" },
	})
	runs := 0
	err := c.persist(t.Context(), node, "kubelet", time.Minute, func(context.Context) error {
		runs++
		server.Stop()
		return &ssh.UnreachableError{Tried: []string{"here (refused)"}, Waited: time.Minute}
	})
	require.EqualError(t, err, "no sshd answered within 1m0s; tried here (refused). its server is SHUTOFF; the last lines of its console:\nlogin:")
	require.Equal(t, 1, runs)
}

func TestANodeWhoseServerWasSwitchedOffIsNotWaitedFor(t *testing.T) {
	c, node, server := connected(t, Config{
		Server: func(context.Context, string) ServerState {
			return ServerState{Note: "its server is SHUTOFF", Down: true}
		},
	})
	server.Stop()
	err := c.persist(t.Context(), node, "kubelet", time.Hour, func(ctx context.Context) error {
		_, err := c.Run(ctx, node.Name, "true")
		return err
	})
	var away *ssh.UnreachableError
	require.ErrorAs(t, err, &away)
	require.ErrorContains(t, err, "the server does not run, and no sshd answered; tried ")
	require.ErrorContains(t, err, ". its server is SHUTOFF")
}

func TestAFullDiskIsNamed(t *testing.T) {
	df := `case "$*" in *-k*) echo "Filesystem 1024-blocks Used Available Capacity Mounted on"; echo "tmpfs 20480 20480 0 100% /var/lib"; echo "devfs 64 0 64 0% /dev"; echo "overlay 9999999 5 5000000 1% /";; esac`
	out := bash(t, diagnoseScript, map[string]string{"df": df, "systemctl": "echo degraded; exit 1"})
	require.Contains(t, out, "state degraded\n")
	notes := fullDisks(Node{Name: "murano-kube-2"}, out)
	require.Equal(t, []string{"the file system /var/lib of murano-kube-2 is full (0K left): free space there, or replace the node"}, notes)
}

func TestANodeWithoutFloatingAddressIsReachedThroughGatewaysFirst(t *testing.T) {
	nodes := nodesOf(1, 2, 2)
	nodes[1].Access = netip.Addr{}
	c, err := NewCluster(Config{Name: "c", Nodes: nodes, Vault: newVault()})
	require.NoError(t, err)
	var names []string
	for _, jump := range c.config.through(nodes[1].server()) {
		names = append(names, jump.Name)
	}
	require.Equal(t, []string{"murano-gateway-1", "murano-gateway-2", "murano-master-1", "murano-kube-2"}, names)
}

func TestDataOfTheEtcdMemberTellWhoseTheyAre(t *testing.T) {
	dir := t.TempDir()
	run := func() string { return bash(t, etcdDataScript, nil, "DATA="+dir+"/data", "JOIN="+dir+"/join.env") }
	require.Equal(t, "no\n", run())
	bash(t, "mkdir -p "+dir+"/data/member", nil)
	require.Equal(t, "yes \n", run())
	bash(t, "printf 'ETCD_INITIAL_CLUSTER=x\n# member 8e9e05c5\n' >"+dir+"/join.env", nil)
	require.Equal(t, "yes 8e9e05c5\n", run())
	bash(t, etcdForgetScript, map[string]string{"systemctl": "true"}, "DATA="+dir+"/data", "JOIN="+dir+"/join.env", "KEEP_UNIT=yes")
	require.Equal(t, "no\n", run())
}
