package clusters

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/plan"
)

func TestStepsOfAClusterNameWhatTheyWaitFor(t *testing.T) {
	require.Equal(t, map[string][]string{
		"design":       {},
		"one: etcd":    {"design"},
		"two: etcd":    {"one: etcd"},
		"one: kubelet": {"one: etcd", "two: etcd"},
	}, waitingSteps([]plan.Step{
		{Name: "design"},
		{Name: "etcd", Node: "one", After: []string{"design"}},
		{Name: "etcd", Node: "two", After: []string{"one/etcd"}},
		{Name: "kubelet", Node: "one", After: []string{"one/etcd"}, Soft: []plan.Soft{{ID: "one/etcd"}, {ID: "two/etcd"}}},
	}))
}
