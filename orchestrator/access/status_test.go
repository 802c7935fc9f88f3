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
	_, err := Status(t.Context(), noSecrets{}, "e", "o", known.Reach{Logger: slog.New(slog.DiscardHandler)})
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	_, err = Kubeconfig(t.Context(), noSecrets{}, "e", "o", known.Reach{Logger: slog.New(slog.DiscardHandler)}, Admin())
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func TestARouteWithoutBackendsHasAnEmptyList(t *testing.T) {
	status := routeStatus(route.Route{Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Protocol: route.TCP})
	require.Equal(t, RouteStatus{Namespace: "default", Service: "web", Port: "http", GatewayPort: 80, Backends: []BackendStatus{}}, status)
}
