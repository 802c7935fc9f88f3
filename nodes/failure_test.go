package nodes

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
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

func TestAFullDiskIsNamed(t *testing.T) {
	df := `case "$*" in *-k*) echo "Filesystem 1024-blocks Used Available Capacity Mounted on"; echo "tmpfs 20480 20480 0 100% /var/lib"; echo "overlay 9999999 5 5000000 1% /";; esac`
	out := bash(t, diagnoseScript, map[string]string{"df": df, "systemctl": "echo degraded; exit 1"})
	require.Contains(t, out, "state degraded\n")
	notes := fullDisks(Node{Name: "murano-kube-2"}, out)
	require.Equal(t, []string{"the file system /var/lib of murano-kube-2 is full (0K left): free space there, or replace the node"}, notes)
}

func TestABadNodeHoldsOthersUpNoLongerThanItMay(t *testing.T) {
	nodes := nodesOf(1, 2, 0)
	p := newProgress()
	p.note(nodes[0].Name, stepConnect, nil)
	started := time.Now()
	through, err := p.wait(t.Context(), 200*time.Millisecond, nodes, stepConnect)
	require.NoError(t, err)
	require.Equal(t, nodes[:1], through)
	require.GreaterOrEqual(t, time.Since(started), 200*time.Millisecond)

	go func() {
		p.note(nodes[1].Name, stepConnect, nil)
		p.note(nodes[2].Name, stepConnect, errors.New("no sshd"))
	}()
	through, err = p.wait(t.Context(), time.Minute, nodes, stepConnect)
	require.NoError(t, err)
	require.Equal(t, nodes[:2], through, "who failed is not waited for")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	_, err = p.wait(ctx, time.Minute, nodes, stepFiles)
	require.EqualError(t, err, "stopped")
}

func TestANodeWithoutFloatingAddressIsReachedThroughGatewaysFirst(t *testing.T) {
	nodes := nodesOf(1, 2, 2)
	nodes[1].Access = netip.Addr{}
	c, err := NewCluster(Config{Name: "c", Nodes: nodes, Vault: newVault()})
	require.NoError(t, err)
	var names []string
	for _, way := range c.ways(nodes[1]) {
		require.Equal(t, nodes[1].Address.String()+":22", way.Address)
		names = append(names, way.Name)
	}
	require.Equal(t, []string{"directly", "through murano-gateway-1", "through murano-gateway-2", "through murano-master-1", "through murano-kube-2"}, names)
	for _, way := range c.ways(nodes[0]) {
		require.GreaterOrEqual(t, way.After, floatingFirst, "a floating address comes first")
		require.NotEqual(t, "directly", way.Name)
	}
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
