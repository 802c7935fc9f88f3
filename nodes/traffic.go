package nodes

import (
	"context"
	"fmt"
	"net"

	"github.com/burano/burano/gateway/traffic"
)

// GatewayTraffic reads the counters of a gateway's HAProxy, over the connection to the node, which is made at first use and kept. It changes nothing.
func (c *servers) GatewayTraffic(ctx context.Context, node Node) ([]traffic.Listener, error) {
	client, err := c.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	return askHAProxy(ctx, client.DialContext, traffic.Socket)
}

// askHAProxy asks over an admin socket that dial reaches.
func askHAProxy(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), socket string) ([]traffic.Listener, error) {
	conn, err := dial(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("HAProxy does not answer: %w", err)
	}
	defer conn.Close()
	// A connection over SSH takes no deadlines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	found, err := traffic.Ask(conn)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("HAProxy does not answer: %w", context.Cause(ctx))
	}
	return found, err
}
