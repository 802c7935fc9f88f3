package preview

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/openstack"
)

func object(id, name string, properties map[string]any) map[string]any {
	made := map[string]any{"?": map[string]any{"id": id, "type": "org.test.App/1.0.0@org.test.App"}, "name": name}
	for key, value := range properties {
		made[key] = value
	}
	return made
}

func TestAPreviewMasksSecretsInWhatChanges(t *testing.T) {
	before := object("e", "one", map[string]any{"services": []any{object("a", "alpha", map[string]any{"adminPassword": "old", "size": 1,
		"users": []any{map[string]any{"name": "me", "token": "t1"}}})}})
	after := object("e", "one", map[string]any{"services": []any{object("a", "alpha", map[string]any{"adminPassword": "new", "size": 2,
		"users": []any{map[string]any{"name": "me", "token": "t2"}}})}})
	found := Changes(before, after, nil)
	require.Len(t, found, 1)
	const mask = "*** SANITIZED ***"
	require.Equal(t, []Value{
		{Name: "adminPassword", Before: mask, After: mask},
		{Name: "size", Before: 1, After: 2},
		{Name: "users", Before: []any{map[string]any{"name": "me", "token": mask}}, After: []any{map[string]any{"name": "me", "token": mask}}},
	}, found[0].Values)
}

func TestAPreviewListsWhatIsDeletedInTheCloud(t *testing.T) {
	before := object("e", "one", map[string]any{"services": []any{
		object("farm", "farm", map[string]any{"servers": []any{object("s1", "first", map[string]any{"openstackId": "nova-1"}),
			object("s1-2", "second", map[string]any{"openstackId": "nova-2"}), object("s3", "third", nil)}}),
		object("heat", "template", map[string]any{"generatedHeatStackName": "stack-9"}),
	}})
	after := object("e", "one", map[string]any{"services": []any{
		object("farm", "farm", map[string]any{"servers": []any{object("s1", "first", nil), object("s3", "third", nil)}}),
	}})
	kept := []openstack.Kept{
		{Resource: "s1-server", Kind: "server", Wanted: true}, {Resource: "s1-2-server", Kind: "server", Wanted: true}, {Resource: "s1-2-volume", Kind: "volume", Wanted: true},
		{Resource: "s3_2-server", Kind: "server"}, {Resource: "of-code", Kind: "server", Wanted: true},
	}
	require.Equal(t, []Loss{
		{Kind: "server", ObjectID: "s1-2", Object: "second", CloudID: "nova-2"},
		{Kind: "server", ObjectID: "s3", Object: "third"},
		{Kind: "stack", ObjectID: "heat", Object: "template", CloudID: "stack-9"},
		{Kind: "volume", ObjectID: "s1-2", Object: "second"},
	}, losses(before, Changes(before, after, nil), kept))
}

func TestAPreviewNamesTheObjectsInItsValues(t *testing.T) {
	volume := map[string]any{"?": map[string]any{"id": "v", "type": "org.test.Volume/1.0.0"}}
	node := map[string]any{"?": map[string]any{"id": "n", "type": "org.test.Node"}, "instance": object("i", "kube-1", nil)}
	before := environment(object("a", "alpha", map[string]any{"host": "h", "volumes": map[string]any{"/data": volume}}), object("h", "host", nil))
	after := environment(object("a", "alpha", map[string]any{"host": "i", "nodes": []any{node}}), object("h", "host", nil))
	found := Changes(before, after, nil)
	require.Equal(t, "a", found[0].ID)
	require.Equal(t, map[string]string{"h": "host", "i": "kube-1", "n": "kube-1"}, found[0].Names)
	back := Changes(after, before, nil)
	require.Equal(t, map[string]string{"h": "host", "i": "kube-1", "v": "Volume"}, back[0].Names)
}

func TestOfTwoObjectsWithOneIdTheFirstHasIt(t *testing.T) {
	found := Changes(environment(object("a", "alpha", nil)), environment(object("a", "alpha", nil), object("a", "beta", nil)), nil)
	require.Len(t, found, 1, "the list of applications alone: %v", found)
	require.Empty(t, found[0].Path)
}
