package clusters

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/task"
)

func TestANodeHasWhatItsGroupSaysAndWhatIsSetOfItself(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	group, problems := muranopl.Load(t.Context(), muranopl.NewClasses(catalog.Shelf(embedded)), map[string]any{
		"?": map[string]any{"type": task.ClassMinionGroup, "id": "group"}, "name": "workers", "labels": map[string]any{"disk": "fast", "room": "a"},
		"taints": []any{map[string]any{"key": "batch", "value": "yes", "effect": "NoSchedule"}},
		"nodes": []any{map[string]any{"?": map[string]any{"type": classMinionNode, "id": "node"},
			"instance": map[string]any{"?": map[string]any{"type": task.ClassNodeServer, "id": "instance"}, "name": "workers-1", "flavor": "m1.medium"}}},
	})
	require.Empty(t, problems)
	instance := group.Objects("nodes")[0].Object("instance")
	own := kube.Settings{Labels: map[string]string{"room": "b"}, Taints: []kube.Taint{{Key: "batch", Value: "no", Effect: "NoSchedule"}}, Cordoned: true}
	require.Equal(t, kube.Settings{Labels: map[string]string{"disk": "fast", "room": "b", "burano.io/group": "workers"}, Taints: own.Taints, Cordoned: true},
		WholeSettings(instance, own))

	require.NoError(t, GroupKeeps(instance, "workers-1", own, []string{"room", "batch", "theirs"}), "the node's own")
	require.ErrorContains(t, GroupKeeps(instance, "workers-1", own, []string{"disk"}), "workers-1 cannot lose disk: all nodes of group workers have it")
	require.Error(t, GroupKeeps(instance, "workers-1", kube.Settings{}, []string{"batch:NoSchedule"}))
}

func TestANodeStaysInItsZoneAsLongAsTheGroupHasIt(t *testing.T) {
	members := []keptMember{{Number: 1, Zone: "a"}, {Number: 2, Zone: "b"}, {Number: 3, Zone: ""}, {Number: 4, Zone: "gone"}, {Number: 5, Zone: "a"}}
	assignZones(members, []string{"a", "b", "c"})
	require.Equal(t, []keptMember{{Number: 1, Zone: "a"}, {Number: 2, Zone: "b"}, {Number: 3, Zone: "c"}, {Number: 4, Zone: "b"}, {Number: 5, Zone: "a"}}, members)
}
