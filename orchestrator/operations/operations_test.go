package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/known"
)

func TestARotationIsOfTheNamedPartsInTheirOrder(t *testing.T) {
	for name, one := range map[string]struct {
		words    []string
		parts    []pki.Part
		registry bool
	}{
		"all authorities":            {[]string{"certificates"}, pki.AuthorityParts(), false},
		"both keys":                  {[]string{"keys"}, pki.KeyParts(), false},
		"a key before an authority":  {[]string{"encryption", "etcd"}, []pki.Part{pki.EtcdAuthority, pki.EncryptionKey}, false},
		"a part and all of its kind": {[]string{"etcd", "certificates"}, pki.AuthorityParts(), false},
		"passwords alone":            {[]string{"registry"}, nil, true},
		"keys and passwords":         {[]string{"registry", "keys"}, pki.KeyParts(), true},
	} {
		t.Run(name, func(t *testing.T) {
			parts, registry := rotated(one.words)
			require.Equal(t, one.parts, parts)
			require.Equal(t, one.registry, registry)
		})
	}
}

func TestAChangeOfANodeLeavesWhatItDoesNotName(t *testing.T) {
	minion := func(name string) nodes.Node { return nodes.Node{Name: name, Role: nodes.Minion} }
	facts := &known.Facts{Nodes: []nodes.Node{minion("one"), minion("two")}}
	one := &namedNode{Node: minion("one"), instance: new(muranopl.Object), known: facts}
	one.Settings = kube.Settings{Labels: map[string]string{"a": "b", "c": "d"}, Taints: []kube.Taint{{Key: "t", Effect: "NoExecute"}}, Cordoned: true}
	changed := func(args map[string]any) kube.Settings { return changeOf(muranopl.Call{Args: args}).settings(one) }
	refused := func(args map[string]any) error { return changeOf(muranopl.Call{Args: args}).check(one) }

	require.Equal(t, one.Settings, changed(nil))
	require.Equal(t, kube.Settings{Labels: map[string]string{"a": "x"}, Taints: []kube.Taint{}, Cordoned: false, Locked: true},
		changed(map[string]any{"labels": map[string]any{"a": "x"}, "removeLabels": []any{"c"}, "removeTaints": []any{"t"}, "cordoned": false, "locked": true}))
	require.True(t, changed(map[string]any{"locked": true}).Cordoned)

	require.NoError(t, refused(map[string]any{"locked": true}))
	require.ErrorContains(t, refused(map[string]any{"locked": true, "cordoned": false}), "unlock it")
	facts.Nodes = facts.Nodes[:1]
	require.ErrorContains(t, refused(map[string]any{"locked": true}), noTaker)
	require.NoError(t, refused(map[string]any{"locked": true, "force": true}))
	one.Settings.Locked = true
	require.ErrorContains(t, refused(map[string]any{"cordoned": false}), "is locked")
	require.NoError(t, refused(map[string]any{"cordoned": false, "locked": false}))
}
