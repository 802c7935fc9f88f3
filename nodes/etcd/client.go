package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"

	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/nodes/pki"
)

// A cluster's members are its owner's machines, which may answer anything.
const (
	// mostMessage is how many bytes one answer may have, after decompression. What Burano reads at once are the routes of a cluster, of a KB each.
	mostMessage = 16 << 20
	// mostHeaders is how many bytes the headers of an answer may have, with the text of an error.
	mostHeaders = 64 << 10
	// MostSnapshot is how many bytes a snapshot may have. A member's file may be larger than its quota by what is being written.
	MostSnapshot = quotaBytes + quotaBytes/2
)

// DialFunc opens a TCP connection; net.Dialer's and ssh.Client's DialContext are of this shape.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// The parts of a snapshot are a little larger than 32 KiB, for which grpc would take a MiB, and clear it, of its own buffers.
func init() {
	experimental.SetDefaultBufferPool(mem.NewTieredBufferPool(256, 4<<10, 16<<10, 32<<10, 64<<10, 1<<20))
}

// counted counts the memory of an answer for the work that asked.
func counted(ctx context.Context, method string, request, reply any, of *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := call(ctx, method, request, reply, of, options...); err != nil {
		return err
	}
	held := memory.Of(ctx).Answer()
	defer held.End()
	if sized, is := reply.(interface{ Size() int }); is { // as messages of etcd's API have it
		return held.Grow(int64(sized.Size()))
	}
	return nil
}

// Client connects to members (URLs as ClientURL gives them) with a user's certificate through dial.
func Client(endpoints []string, authority []byte, pair pki.Pair, dial DialFunc) (*clientv3.Client, error) {
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("read the etcd client's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints,
		TLS:       &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }),
			grpc.WithMaxHeaderListSize(mostHeaders), grpc.WithChainUnaryInterceptor(counted)},
		MaxCallRecvMsgSize:   mostMessage,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("make an etcd client: %w", err)
	}
	return client, nil
}
