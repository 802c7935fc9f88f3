package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/burano/burano/nodes/etcd"
)

func TestValuesThatAreTooLargeTogetherAreNotRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	root := c.bootstrap()
	value := strings.Repeat("x", 1<<20)
	for i := range 20 {
		_, err := root.Put(t.Context(), fmt.Sprintf("/registry/large/%02d", i), value)
		require.NoError(t, err)
	}
	_, err := root.Get(t.Context(), "/registry/large/", clientv3.WithPrefix())
	require.ErrorContains(t, err, "received message larger than max")
	some, err := root.Get(t.Context(), "/registry/large/", clientv3.WithPrefix(), clientv3.WithLimit(10))
	require.NoError(t, err)
	require.Len(t, some.Kvs, 10)
}

// endless is an etcd that has always more.
type endless struct {
	etcdserverpb.UnimplementedKVServer
	next func(from string) []*mvccpb.KeyValue
}

func (e *endless) Range(_ context.Context, asked *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}, More: true, Kvs: e.next(string(asked.Key))}, nil
}

func TestAnEtcdThatHasAlwaysMoreIsLeft(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(from string) []*mvccpb.KeyValue{
		"keys that are long and more and more": func(from string) []*mvccpb.KeyValue {
			count, _ := strconv.Atoi(strings.TrimLeft(strings.TrimRight(strings.TrimPrefix(from, etcd.SecretsPrefix), "x\x00"), "0"))
			return []*mvccpb.KeyValue{{Key: fmt.Appendf(nil, "%s%08d%s", etcd.SecretsPrefix, count+1, strings.Repeat("x", 1<<20))}}
		},
		"no keys":                func(string) []*mvccpb.KeyValue { return nil },
		"the same key":           func(string) []*mvccpb.KeyValue { return []*mvccpb.KeyValue{{Key: []byte(etcd.SecretsPrefix + "a")}} },
		"keys of somewhere else": func(from string) []*mvccpb.KeyValue { return []*mvccpb.KeyValue{{Key: []byte("/z" + from)}} },
		"one answer with no end": func(string) []*mvccpb.KeyValue {
			return []*mvccpb.KeyValue{{Key: []byte("a"), Value: make([]byte, 64<<20)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			node := c.nodes[0]
			pair, err := c.pki.Etcd.Issue(node.CertificateRequest(), time.Now())
			require.NoError(t, err)
			certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
			require.NoError(t, err)
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}})), grpc.MaxSendMsgSize(1<<30))
			etcdserverpb.RegisterKVServer(server, &endless{next: next})
			listener, err := net.Listen("tcp", strings.TrimPrefix(node.ClientURL(), "https://"))
			require.NoError(t, err)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = etcd.SealedOtherwise(ctx, c.client(etcd.Root, node.ClientURL()), etcd.SecretsPrefix, "sealed")
			require.Error(t, err)
			require.NoError(t, ctx.Err(), "it ends by itself")
		})
	}
}
