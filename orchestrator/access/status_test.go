package access

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/known"
)

type noSecrets struct{}

func (noSecrets) Secret(context.Context, string, string) ([]byte, bool, error) {
	return nil, false, nil
}
func (noSecrets) SetSecret(context.Context, string, string, []byte) error { return nil }

func TestWhatWasNeverUpIsNoCluster(t *testing.T) {
	clusters := Clusters{Secrets: noSecrets{}, Config: known.Reach{Logger: slog.New(slog.DiscardHandler)}}
	_, err := clusters.Status(t.Context(), "e", "o")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	_, err = clusters.Kubeconfig(t.Context(), "e", "o", Admin())
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func TestARouteWithoutBackendsHasAnEmptyList(t *testing.T) {
	status := routeStatus(route.Route{Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Protocol: route.TCP})
	require.Equal(t, RouteStatus{Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Backends: []BackendStatus{}}, status)
}
