package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/task/tasktest"
	"github.com/burano/burano/orchestrator/workloads"
)

// sealed is a runtime with secrets and no more.
type sealed struct {
	task.Runtime
	secrets map[string][]byte
}

func (s sealed) EnvironmentID() string { return "environment" }

func (s sealed) Model() *muranopl.Object { return nil }

func (s sealed) Secret(_ context.Context, name string) ([]byte, bool, error) {
	value, found := s.secrets[name]
	return value, found, nil
}

// acting is a runtime of a task that runs an action, or deploys.
type acting struct {
	sealed
	deploys bool
}

func (a acting) Deploys() bool { return a.deploys }
func (a acting) Fence() uint64 { return 1 }
func (a acting) Alive() error  { return nil }

func (a acting) Attribute(context.Context, *muranopl.Object, string) (any, bool, error) {
	return nil, false, nil
}

func (a acting) SetSecret(_ context.Context, name string, value []byte) error {
	a.secrets[name] = value
	return nil
}

// The test asks for access to the cluster's API, which a deployment makes first.
func TestAnActionOfAPodTakesTheClusterAsItStands(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	errDeployed := errors.New("the cluster was deployed")
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(catalog.Shelf(embedded)), muranopl.Natives{task.ClassCluster: {task.ClassCluster: {
		task.MethodDeploy: func(context.Context, muranopl.Call) (any, error) { return nil, errDeployed }}}})
	pod := tasktest.Pod(t, nil)
	cluster := pod.Object("kubernetesCluster")
	up := known.Facts{Name: "kube", Network: netip.MustParsePrefix("10.20.0.0/24"), Nodes: []nodes.Node{{Name: "master", Role: nodes.Master, Address: netip.MustParseAddr("10.20.0.2")}}}
	former := up
	former.Network = netip.Prefix{}
	for name, one := range map[string]struct {
		known    *known.Facts
		deploys  bool
		deployed bool
	}{
		"an action":                 {&up, false, false},
		"a deployment":              {&up, true, true},
		"an action, and no cluster": {nil, false, true},
		"an action, and a cluster of a version before that": {&former, false, true},
	} {
		runtime := acting{sealed{secrets: map[string][]byte{}}, one.deploys}
		if one.known != nil {
			text, err := json.Marshal(one.known)
			require.NoError(t, err)
			runtime.secrets[known.SecretName(cluster.ID(), known.FactsName)] = text
		}
		once := &task.Once{}
		clusters := &Clusters{Runtime: runtime, Once: once, Reports: task.Reports{Runtime: runtime, Logger: slog.New(slog.DiscardHandler)}}
		pods := workloads.Pods{Runtime: runtime, Once: once, Clusters: clusters}
		for range 2 {
			api, err := pods.Kubernetes(t.Context(), interpreter, pod)
			if one.deployed {
				require.ErrorIs(t, err, errDeployed, name)
				continue
			}
			require.NoError(t, err, name)
			require.Equal(t, kube.APIServerURL("kube"), api.Host)
		}
		clusters.Close()
	}
}
