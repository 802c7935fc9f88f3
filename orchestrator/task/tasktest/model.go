// Package tasktest makes objects of embedded classes for tests.
package tasktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

// Load is an object of an embedded class.
func Load(t *testing.T, model map[string]any) *muranopl.Object {
	t.Helper()
	embedded, err := apps.Packages()
	require.NoError(t, err)
	object, problems := muranopl.Load(t.Context(), muranopl.NewClasses(catalog.Shelf(embedded)), model)
	require.Empty(t, problems)
	return object
}

// Pod is a KubernetesPod with further properties.
func Pod(t *testing.T, properties map[string]any) *muranopl.Object {
	t.Helper()
	model := map[string]any{"name": "web", "replicas": 1, "kubernetesCluster": ClusterModel(nil)}
	maps.Copy(model, properties)
	return Load(t, Model(task.ClassPod, model))
}

// Cluster is a cluster with further properties.
func Cluster(t *testing.T, properties map[string]any) *muranopl.Object {
	t.Helper()
	return Load(t, ClusterModel(properties))
}

// ClusterModel is the model of Cluster.
func ClusterModel(properties map[string]any) map[string]any {
	node := func(role string) map[string]any {
		return Model("com.mirantis.docker.kubernetes.Kubernetes"+role+"Node", map[string]any{
			"instance": Model("io.murano.resources.LinuxMuranoInstance", map[string]any{"name": strings.ToLower(role), "flavor": "f", "image": "i"})})
	}
	model := map[string]any{"name": "kube", "masterNode": node("Master"),
		"nodeCount": 1, "minionNodes": []any{node("Minion")}, "gatewayCount": 1, "gatewayNodes": []any{node("Gateway")}}
	maps.Copy(model, properties)
	return Model(task.ClassCluster, model)
}

// Model is the model of an object of a class with an id of its own.
func Model(class string, properties map[string]any) map[string]any {
	properties["?"] = map[string]any{"type": class, "id": fmt.Sprintf("%s%d", class, rand.Uint64())}
	return properties
}
