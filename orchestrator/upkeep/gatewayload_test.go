package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/scaling"
)

// counting is a cluster of one to three gateways, whose connections are as given.
func counting(t *testing.T, properties map[string]any, counted *scaling.Traffic) (*gatewayLoads, *keeper.Environment) {
	g := newGatewayLoads(Config{Interval: time.Minute, Secrets: secretsOf{}})
	g.count = func(context.Context, string, string) (scaling.Traffic, error) { return *counted, nil }
	all := map[string]any{"name": "kube", "gatewayNodes": []any{1, 2, 3}}
	for name, value := range properties {
		all[name] = value
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, json.Unmarshal(text, &read))
	return g, &keeper.Environment{ID: "e", Name: "demo", Clusters: []*desired.Cluster{stored(t, "c", read)},
		Project: func(context.Context, string) (*openstack.Project, error) { return nil, nil }}
}

// withConnections are gateways with so many connections each; -1 is one that does not answer.
func withConnections(open ...int64) (counted scaling.Traffic) {
	for _, one := range open {
		gateway := scaling.GatewayTraffic{Listeners: []traffic.Listener{{Counters: traffic.Counters{Connections: one}}}}
		if one < 0 {
			gateway = scaling.GatewayTraffic{Problem: "it does not answer"}
		}
		counted.Gateways = append(counted.Gateways, gateway)
	}
	return counted
}

func TestAClusterWhoseGatewaysDoNotFollowTheirConnectionsIsAskedNothing(t *testing.T) {
	g, environment := counting(t, nil, nil)
	result, err := g.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, keeper.Result{}, result)
}

func TestTooFewGatewaysAreFoundAtOnceAndTooManyAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := withConnections(100)
		g, environment := counting(t, map[string]any{"gatewayMinimum": 1, "gatewaySessions": 100, "gatewayScaleDownAfter": 60}, &counted)
		look := func(after time.Duration) []string {
			t.Helper()
			time.Sleep(after)
			result, err := g.Look(t.Context(), environment)
			require.NoError(t, err)
			require.Equal(t, loadPause, result.Next)
			return kinds(result.Findings)
		}
		require.Empty(t, look(0))
		counted = withConnections(201)
		require.Empty(t, look(0), "it may pass")
		require.Equal(t, []string{"info too-few-gateways 3"}, look(loadPause))
		counted = withConnections(1000)
		result, err := g.Look(t.Context(), environment)
		require.NoError(t, err)
		require.Equal(t, &keeper.Repair{ObjectID: "c", Method: known.ScaleGatewaysByLoad, Cloud: true, Routine: true, Text: "Gateways of cluster kube follow their connections"},
			result.Findings[0].Repair)
		require.Equal(t, "The cluster grows from 1 to 3 gateways, because they have 1000 connections open and are to have 100 each", result.Findings[0].Text)
		environment.Project = func(context.Context, string) (*openstack.Project, error) { return nil, keeper.ErrNoDelegation }
		require.Equal(t, []string{"warning too-few-gateways 3"}, look(loadPause))

		counted = withConnections(50, 50, 40)
		require.Empty(t, look(0))
		require.Empty(t, look(59*time.Second))
		counted = withConnections(80, 80, 80)
		require.Empty(t, look(2*time.Second), "two would have more than three quarters")
		counted = withConnections(50, 50, 40)
		require.Empty(t, look(time.Minute), "it begins anew")
		require.Equal(t, []string{"warning too-many-gateways 2"}, look(time.Minute))
		counted = withConnections(50, 50, -1)
		require.Empty(t, look(time.Minute), "nobody knows what the third one has")
	})
}

func TestConnectionsThatCannotBeCountedAreSaid(t *testing.T) {
	g, environment := counting(t, map[string]any{"gatewayMinimum": 1}, nil)
	g.count = func(context.Context, string, string) (scaling.Traffic, error) {
		return scaling.Traffic{}, errors.New("there are no keys")
	}
	result, err := g.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, []string{"info connections-unknown "}, kinds(result.Findings))
}
