package storage

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/burano/burano/nodes/line"
	"github.com/burano/burano/orchestrator/volumes"
)

const (
	StoragePause = 10 * time.Second
)

// AnswerOn answers a cluster's requests for its volumes on a connection to its controllers, until the connection or ctx ends.
func AnswerOn(ctx context.Context, conn net.Conn, cluster volumes.Cluster) error {
	server := grpc.NewServer(append(volumes.Bounds(cluster.Logger), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: StoragePause / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: StoragePause, Timeout: StoragePause}))...)
	defer server.Stop()
	defer context.AfterFunc(ctx, server.Stop)()
	volumes.Serve(server, cluster)
	return server.Serve(line.New(conn))
}
