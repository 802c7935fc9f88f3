package volumes

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// A defect that a cluster's call meets ends the call, and no call is larger or more frequent than it should be.
func TestACallOfAClusterEndsNothingButItself(t *testing.T) {
	cloud := func(context.Context) (Cloud, error) { panic("a defect") }
	logger := slog.New(slog.DiscardHandler)
	server := grpc.NewServer(Bounds(logger)...)
	Serve(server, Cluster{ID: "e/c", Name: "c", Cloud: cloud, Logger: logger})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	controllers := csi.NewControllerClient(connection)

	_, err = controllers.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "a"})
	require.Equal(t, codes.Internal, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "a defect")
	_, err = controllers.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: strings.Repeat("a", 1<<20)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	_, err = csi.NewIdentityClient(connection).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	require.NoError(t, err, "it answers still")

	impatient, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	answered := 0
	for impatient.Err() == nil && answered < 10*callBurst {
		if _, err := controllers.ControllerGetCapabilities(impatient, &csi.ControllerGetCapabilitiesRequest{}); err == nil {
			answered++
		}
	}
	require.Less(t, answered, callBurst+10*callRate, "calls wait when there are too many")
}
