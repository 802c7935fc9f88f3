package e2e

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGatewaysFollowTheirConnections opens more connections than one gateway may have: a second one comes, and goes when they are closed.
func TestGatewaysFollowTheirConnections(t *testing.T) {
	soakOnly(t, "`make soak` runs it: what decides has tests of its own, and gateways are scaled by others")
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	s, environment, _ := l.scaled(t, demo, "gatewayCount: 1", "gatewayCount: 1\n    gatewayMinimum: 1\n    gatewaySessions: 20\n    gatewayScaleDownAfter: 5")
	endpoint := endpointOf(t, environment)

	var open []net.Conn
	for range 25 {
		conn, err := net.Dial("tcp", endpoint)
		require.NoError(t, err)
		defer conn.Close()
		open = append(open, conn)
	}
	s.finds(t, "no-delegation", "too-few-gateways")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
	becomes := func(gateways ...string) {
		t.Helper()
		began := time.Now()
		l.eventually(t, 4*time.Minute, "the number of gateways follows their connections", func() error {
			if there := slices.DeleteFunc(slices.Collect(maps.Keys(s.fixed(t))), func(name string) bool { return !strings.HasPrefix(name, "murano-gateway") }); len(there) != len(gateways) {
				return fmt.Errorf("there are %v", there)
			}
			return s.idle(t)
		})
		t.Logf("%v after %.1f s", gateways, time.Since(began).Seconds())
		s.holds(t, []string{"murano-kube-2"}, gateways)
	}
	becomes("murano-gateway-1", "murano-gateway-2")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "scaling"), "The cluster grows from 1 to 2 gateways, because they have 25 connections open and are to have 20 each")
	l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1", "murano-gateway-2"})

	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	becomes("murano-gateway-1")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}
