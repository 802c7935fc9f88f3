package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
)

// speaks tries a certificate on a member's peer port, from the member's own address: a peer that is let in gets the list of members.
func (c *cluster) speaks(node etcd.Node, pair pki.Pair) error {
	c.t.Helper()
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	require.NoError(c.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pki.Etcd.Trusted())
	pool.AppendCertsFromPEM(c.pki.EtcdPeers.Trusted())
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
		// shown to every server, whatever authorities it trusts
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(node.PeerURL() + "/members")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func TestNoCertificateButThatOfAMemberSpeaksToThePeers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.bootstrap()
	node := c.nodes[0]
	issue := func(authority *pki.Authority, request pki.Request) pki.Pair {
		pair, err := authority.Issue(request, time.Now())
		require.NoError(t, err)
		return pair
	}
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.speaks(node, issue(c.pki.EtcdPeers, node.PeerRequest())))
	}, 10*time.Second, 50*time.Millisecond)
	for user := range etcd.Permissions() {
		require.Error(t, c.speaks(node, issue(c.pki.Etcd, etcd.ClientRequest(user))), user)
	}
	require.Error(t, c.speaks(node, issue(c.pki.Etcd, etcd.ClientRequest(etcd.Root))))
	require.Error(t, c.speaks(node, issue(c.pki.Etcd, node.CertificateRequest())), "what a member shows its clients")
	require.Error(t, c.speaks(node, issue(c.pki.Kubernetes, node.PeerRequest())))
	other := node.PeerRequest()
	other.CommonName = "somebody"
	require.Error(t, c.speaks(node, issue(c.pki.EtcdPeers, other)), "another name of the peers' authority")

	former := newCluster(t, 1)
	former.peers = etcd.TrustClients
	former.bootstrap()
	gateway, err := former.pki.Etcd.Issue(etcd.ClientRequest(etcd.Gateway), time.Now())
	require.NoError(t, err)
	require.NoError(t, former.speaks(former.nodes[0], gateway), "what clusters of former versions let in, and why they move on")
}

func TestMembersMoveToTheAuthorityOfPeersOneAfterAnotherWithoutLosingTheQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.peers = etcd.TrustClients
	root := c.bootstrap()
	c.join(root, c.nodes[1], c.nodes[2])
	members, err := etcd.Members(t.Context(), root)
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var longest time.Duration
	all := c.client(etcd.Root, c.nodes[0].ClientURL(), c.nodes[1].ClientURL(), c.nodes[2].ClientURL())
	writing.Go(func() {
		last := time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			limited, cancel := context.WithTimeout(ctx, 2*time.Second)
			if _, err := all.Put(limited, "/registry/written", fmt.Sprint(i)); err == nil {
				longest = max(longest, time.Since(last))
				last = time.Now()
			}
			cancel()
		}
	})
	for c.peers != etcd.TrustPeers {
		c.peers = c.peers.Next()
		for _, node := range c.nodes {
			c.stop(node)
			c.answers(all)
			c.start(node, members.PeerURLs(c.nodes), "existing")
			require.NoError(t, etcd.AwaitAnswer(t.Context(), all, node), "%s, %s", c.peers, node.Name)
		}
	}
	stop()
	writing.Wait()
	t.Logf("no write was taken for %s at most", longest)
	require.Empty(t, etcd.Silent(t.Context(), all, members))
	gateway, err := c.pki.Etcd.Issue(etcd.ClientRequest(etcd.Gateway), time.Now())
	require.NoError(t, err)
	for _, node := range c.nodes {
		require.Error(t, c.speaks(node, gateway))
	}
}

func TestTheStagesOfPeersFollowEachOther(t *testing.T) {
	var names []string
	for stage := etcd.TrustClients; ; stage = stage.Next() {
		names = append(names, string(stage))
		if stage == stage.Next() {
			break
		}
	}
	require.Equal(t, ",trust both,show own,trust peers", strings.Join(names, ","))
}
