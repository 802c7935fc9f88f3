package clusters

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/task/tasktest"
)

// The test checks that the keys of a snapshot hold all facts about the cluster that its restore needs.
func TestASnapshotOutsideOfTasksSaysWhatConnectsThePods(t *testing.T) {
	for name, one := range map[string]struct {
		properties map[string]any
		unwrapped  bool
		datastore  network.Datastore
	}{
		"the usual":          {nil, false, network.InEtcd},
		"nothing is wrapped": {map[string]any{"podEncapsulation": "none"}, true, network.InEtcd},
		"in Kubernetes":      {map[string]any{"podEncapsulation": "crossSubnet", "calicoDatastore": "kubernetes"}, false, network.InKubernetes},
	} {
		runtime := acting{sealed{secrets: map[string][]byte{}}, true}
		cluster := tasktest.Cluster(t, one.properties)
		clusters := &Clusters{Runtime: runtime, Once: &task.Once{}, Reports: task.Reports{Runtime: runtime, Logger: slog.New(slog.DiscardHandler)}}
		require.NoError(t, clusters.keepFacts(t.Context(), cluster, []nodes.Node{{Name: "kube-1", Role: nodes.Master}}), name)
		_, err := pki.Open(t.Context(), known.Vault{Runtime: runtime, Cluster: cluster.ID()}, time.Now())
		require.NoError(t, err, name)
		_, opened, err := known.Open(t.Context(), outside{runtime.secrets}, "environment", cluster.ID(), nodes.Config{})
		require.NoError(t, err, name)
		keys, err := opened.Keys(t.Context())
		require.NoError(t, err, name)
		unwrapped, err := nodes.UnwrappedIn(keys)
		require.NoError(t, err, name)
		require.Equal(t, one.unwrapped, unwrapped, name)
		datastore, err := nodes.DatastoreIn(keys)
		require.NoError(t, err, name)
		require.Equal(t, one.datastore, datastore, name)
	}
}

// outside reads a task's secrets outside of it.
type outside struct{ of map[string][]byte }

func (o outside) Secret(_ context.Context, _, name string) ([]byte, bool, error) {
	value, there := o.of[name]
	return value, there, nil
}

func (o outside) SetSecret(_ context.Context, _, name string, value []byte) error {
	o.of[name] = value
	return nil
}
