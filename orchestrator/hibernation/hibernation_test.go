package hibernation_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

// secrets are the secrets of an environment in memory.
type secrets map[string]any

func (s secrets) Secret(_ context.Context, _, name string) ([]byte, bool, error) {
	value, found := s[name]
	text, err := json.Marshal(value)
	return text, found, err
}

func (s secrets) SetSecret(context.Context, string, string, []byte) error { return nil }

func object(id string, properties map[string]any) map[string]any {
	properties["?"] = map[string]any{"id": id}
	return properties
}

func model(services ...any) map[string]any {
	return object("env", map[string]any{"name": "one", "services": services})
}

func facts(nodes ...map[string]any) secrets {
	return secrets{known.SecretName("cluster", known.FactsName): map[string]any{"name": "kube", "network": "10.20.0.0/24", "nodes": nodes}}
}

func node(name, role, server string) map[string]any {
	return map[string]any{"Name": name, "Role": role, "Server": server}
}

func names(plan hibernation.Plan) (list []string) {
	for _, one := range plan.Servers {
		list = append(list, one.Name)
	}
	return list
}

func TestGatewaysAreStoppedFirstAndMastersLast(t *testing.T) {
	cluster := object("cluster", map[string]any{"gatewayNodes": []any{}, "masterNode": object("m", map[string]any{
		"instance": object("i", map[string]any{"name": "given", "flavor": "f", "openstackId": "s1", "regionName": "two"})})})
	alone := object("server", map[string]any{"name": "database", "flavor": "f", "openstackId": "s4"})
	network := object("network", map[string]any{"name": "net", "openstackId": "n1"})
	planned := object("planned", map[string]any{"name": "planned", "flavor": "f", "openstackId": nil})
	plan, err := hibernation.Of(t.Context(), "env", model(cluster, alone, network, planned), facts(node("kube-1", "master", "s1"), node("kube-2", "minion", "s2"), node("gateway-1", "gateway", "s3")))
	require.NoError(t, err)
	require.Empty(t, plan.Obstacles)
	require.Equal(t, []string{"gateway-1", "database", "kube-2", "kube-1"}, names(plan))
	require.Equal(t, store.StoppedServer{ID: "s1", Name: "kube-1", Region: "two", Role: "master", Cluster: "kube"}, plan.Servers[3])
}

func TestObstaclesAreNamedBeforeAnythingIsDone(t *testing.T) {
	cluster := object("cluster", map[string]any{"gatewayNodes": []any{}})
	machine := node("rack-7", "minion", "")
	machine["Machine"] = map[string]any{}
	upgrading := facts(node("kube-1", "master", "s1"))
	upgrading[known.SecretName("cluster", known.UpgradeName)] = known.Upgrade{State: known.UpgradeRuns}
	former := secrets{known.SecretName("cluster", known.FactsName): map[string]any{"name": "kube", "nodes": []any{node("kube-1", "master", "s1")}}}
	for name, test := range map[string]struct {
		model   map[string]any
		secrets secrets
	}{
		"it has no servers in the cloud":                                           {model(), secrets{}},
		"application stack is a Heat template":                                     {model(object("hot", map[string]any{"name": "stack", "generatedHeatStackName": nil})), secrets{}},
		"node rack-7 of cluster kube is a machine outside of the cloud":            {model(cluster), facts(node("kube-1", "master", "s1"), machine)},
		"cluster kube is in the middle of an upgrade":                              {model(cluster), upgrading},
		"cluster kube was not up yet, or was deployed by a former version: deploy": {model(cluster), former},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := hibernation.Of(t.Context(), "env", test.model, test.secrets)
			require.NoError(t, err)
			require.NotEmpty(t, plan.Obstacles)
			require.Contains(t, plan.Obstacles[0], name)
			refused := plan.Refusal("one")
			require.Equal(t, fault.Conflict, fault.KindOf(refused))
			require.ErrorContains(t, refused, "Environment one is not hibernated: ")
		})
	}
}
