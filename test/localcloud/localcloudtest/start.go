package localcloudtest

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
)

// Start serves a whole local cloud until the test ends, at a free port of 127.0.0.1 and with a state folder of its own, and takes it down then. The
// remains of a killed run of the same prefix go first. It returns the settings with these addresses.
func Start(t testing.TB, settings localcloud.Config) localcloud.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	settings.StateDir, settings.Listen = filepath.Join(t.TempDir(), "cloud"), listener.Addr().String()
	require.NoError(t, localcloud.Reclaim(t.Context(), settings.Prefix))
	t.Cleanup(func() { require.NoError(t, localcloud.Down(context.Background(), settings.StateDir)) })
	running, err := localcloud.New(t.Context(), settings)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- running.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		running.Close()
	})
	return settings
}
