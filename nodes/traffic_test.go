package nodes

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

func TestAGatewaysCountersAreReadThroughSSH(t *testing.T) {
	server := sshtest.New(t)
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	process := haproxytest.New(t)
	config := process.Config()
	proxy, err := haproxy.Open(t.Context(), config)
	require.NoError(t, err)
	backend := haproxytest.NewBackend(t, "one")
	port := haproxytest.FreePort(t)
	_, err = proxy.Apply(t.Context(), []route.Route{{Namespace: "default", Service: "web", Port: "80", GatewayPort: port, Protocol: route.TCP, Backends: []route.Backend{backend.Ready()}}}, haproxy.Web{})
	require.NoError(t, err)
	_, err = haproxytest.Get(t.Context(), port)
	require.NoError(t, err)

	found, err := askHAProxy(t.Context(), client.DialContext, config.Socket)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, port, found[0].Port)
	require.EqualValues(t, 1, found[0].ConnectionsTotal)

	_, err = askHAProxy(t.Context(), client.DialContext, filepath.Join(process.Directory, "nothing.sock"))
	require.ErrorContains(t, err, "HAProxy does not answer")

	// It takes the connection and stays silent.
	silent := filepath.Join(process.Directory, "silent.sock")
	listener, err := net.Listen("unix", silent)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = askHAProxy(ctx, client.DialContext, silent)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
