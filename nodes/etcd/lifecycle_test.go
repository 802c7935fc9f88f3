package etcd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
)

func TestALeaderHandsOverBeforeItIsRemoved(t *testing.T) {
	t.Parallel()
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

func TestAMemberJoinsWhoeverLeads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	c.lead(root, c.nodes[1])
	c.join(root, c.nodes[3], c.nodes[4])
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, c.nodes, members.Voters(c.nodes))
}

// lead has a voter lead, once it serves clients.
func (c *cluster) lead(root *clientv3.Client, node etcd.Node) {
	c.t.Helper()
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		members, err := etcd.Members(c.t.Context(), root)
		require.NoError(t, err)
		for _, member := range members {
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
			defer cancel()
			for _, url := range member.ClientURLs {
				status, err := root.Status(ctx, url)
				if err != nil {
					continue
				}
				heir := members.Of(node).ID
				if status.Leader == heir {
					return
				}
				if status.Leader == member.ID {
					conn, err := root.Dial(url)
					require.NoError(t, err)
					defer conn.Close()
					_, err = etcdserverpb.NewMaintenanceClient(conn).MoveLeader(ctx, &etcdserverpb.MoveLeaderRequest{TargetID: heir})
					require.NoError(t, err)
				}
			}
		}
		require.Fail(t, "not seen to lead yet")
	}, 30*time.Second, 50*time.Millisecond)
}

func TestAMemberThatLostItsDataIsRemovedBeforeItJoinsAgain(t *testing.T) {
	t.Parallel()
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

// A learner whose address answers nothing at all is no vote: reads and writes go on, others join, and members can be removed.
func TestAnUnroutableLearnerStallsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	root := c.bootstrap()
	nowhere := c.nodes[3]
	c.silence(nowhere)
	members, err := etcd.AddLearners(t.Context(), root, []etcd.Node{c.nodes[1], c.nodes[2], nowhere})
	require.NoError(t, err)
	require.Len(t, members, 4)
	for _, node := range c.nodes[1:3] {
		c.start(node, members.PeerURLs(c.nodes), "existing")
		require.NoError(t, etcd.Promote(t.Context(), root, node))
		c.answers(root)
	}
	members, err = etcd.Members(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, c.nodes[:3], members.Voters(c.nodes))
	require.NoError(t, etcd.Remove(t.Context(), root, members.Of(nowhere).ID))
	require.NoError(t, etcd.Remove(t.Context(), root, members.Of(c.nodes[2]).ID))
	c.answers(root)
}
