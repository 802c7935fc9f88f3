package etcd_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
)

// At each stage the members are restarted one after another, while clients of the stage before write.
func TestAuthoritiesAreRotatedOneMemberAfterAnotherWithoutLosingTheQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)
	urls := []string{c.nodes[0].ClientURL(), c.nodes[1].ClientURL(), c.nodes[2].ClientURL()}
	former, err := c.pki.Etcd.Issue(etcd.ClientRequest(etcd.Root), time.Now())
	require.NoError(t, err)
	formerPeer, err := c.pki.EtcdPeers.Issue(c.nodes[0].PeerRequest(), time.Now())
	require.NoError(t, err)

	var longest time.Duration
	require.NoError(t, pki.BeginRotation(t.Context(), c.vault, "run", pki.AuthorityParts(), time.Now()))
	for _, stage := range []pki.Stage{pki.AcceptBoth, pki.UseNew, pki.AcceptNew} {
		before := c.client(etcd.Root, urls...)
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			last := time.Now()
			for i := 0; ctx.Err() == nil; i++ {
				limited, cancel := context.WithTimeout(ctx, 2*time.Second)
				if _, err := before.Put(limited, "/registry/written", fmt.Sprint(i)); err == nil {
					longest = max(longest, time.Since(last))
					last = time.Now()
				}
				cancel()
			}
		})
		known, err := pki.Open(t.Context(), c.vault, time.Now())
		require.NoError(t, err)
		require.Equal(t, stage, known.Rotation.Stage)
		c.pki = known
		for _, node := range c.nodes {
			c.stop(node)
			c.answers(before)
			c.start(node, members.PeerURLs(c.nodes), "existing")
			require.NoError(t, etcd.AwaitAnswer(t.Context(), before, node), "%s, %s", stage, node.Name)
		}
		c.answers(c.client(etcd.Root, urls...))
		stop()
		writing.Wait()
		require.NoError(t, pki.AdvanceRotation(t.Context(), c.vault, stage))
	}
	t.Logf("no write was taken for %s at most", longest)
	require.Empty(t, etcd.Silent(t.Context(), c.client(etcd.Root, urls...), members))

	c.pki, err = pki.Open(t.Context(), c.vault, time.Now())
	require.NoError(t, err)
	require.Nil(t, c.pki.Rotation)
	for _, node := range c.nodes {
		require.Error(t, c.speaks(node, formerPeer), "to its peers")
		client, err := etcd.Client([]string{node.ClientURL()}, c.pki.Etcd.Trusted(), former, (&net.Dialer{}).DialContext)
		require.NoError(t, err)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = client.Get(limited, "x")
		cancel()
		require.Error(t, err, "as a client")
		require.NoError(t, client.Close())
	}
}

func TestWhatIsSealedUnderAnotherKeyIsFoundOnEveryPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	var want []string
	for i := range 120 {
		key, value := fmt.Sprintf("%sdefault/%03d", etcd.SecretsPrefix, i), "k8s:enc:secretbox:v1:new:"
		if i%50 == 49 {
			value = "k8s:enc:secretbox:v1:key1:"
			want = append(want, key)
		}
		_, err := root.Put(t.Context(), key, value+fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, err := root.Put(t.Context(), "/registry/secretsandmore", "plain")
	require.NoError(t, err)
	found, err := etcd.SealedOtherwise(t.Context(), root, etcd.SecretsPrefix, "k8s:enc:secretbox:v1:new:")
	require.NoError(t, err)
	require.Equal(t, want, found)
}
