package preview

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/openstack"
)

func environment(services ...any) map[string]any {
	return object("e", "one", map[string]any{"services": services})
}

func cluster(id, name string) map[string]any {
	made := object(id, name, nil)
	made["?"].(map[string]any)["type"] = ClassCluster + "/1.0.0"
	return made
}

func TestAPlanDoesNoMoreThanWasShown(t *testing.T) {
	before := environment(object("a", "alpha", nil), object("b", "beta", map[string]any{"openstackId": "nova-1"}), object("c", "gamma", nil))
	kept := []openstack.Kept{{Resource: "b-server", Kind: "server", Wanted: true}}
	shown := Of(before, environment(object("a", "alpha", nil), object("b", "beta", nil)), Foreseen{Kept: kept})
	require.NoError(t, shown.Unconfirmed(nil, shown.Token))
	less := Of(before, environment(object("a", "alpha", nil), object("b", "beta", nil), object("c", "gamma", nil)), Foreseen{Kept: kept})
	require.NoError(t, less.Unconfirmed(nil, shown.Token), "less than was shown")

	more := Of(before, environment(object("a", "alpha", nil)), Foreseen{Kept: kept, Replaced: []Note{{"a", "node one of cluster two is replaced"}}})
	require.EqualError(t, more.Unconfirmed(nil, shown.Token), "The deployment does more than was shown, since something has changed: beta (org.test.App) is removed; "+
		"the server beta nova-1 is deleted; node one of cluster two is replaced. Nothing was done. Look at the preview again, and deploy anew")
	require.NoError(t, more.Unconfirmed(nil, ""), "nothing was shown")
	require.ErrorContains(t, more.Unconfirmed(nil, "1:abc"), "another version of Burano")

	var many []any
	for i := range mostParts + 2 {
		many = append(many, object(fmt.Sprint("o", i), fmt.Sprint("one ", i), nil))
	}
	all, most := Of(environment(many...), environment(), Foreseen{}), Of(environment(many...), environment(many[0]), Foreseen{})
	require.Less(t, len(all.Token), 100)
	require.NoError(t, all.Unconfirmed(nil, all.Token))
	require.ErrorContains(t, all.Unconfirmed(nil, most.Token), "does more than was shown")
}

func TestAPlanAddsAndChangesOnlyWhatWasShown(t *testing.T) {
	before := environment(object("a", "alpha", map[string]any{"size": 1, "password": "old", "given": "by code"}))
	plan := func(services ...any) Plan {
		draft, err := DraftOf(before, environment(services...), func(value []byte) string { return digest(string(value)) })
		require.NoError(t, err)
		return draft.Of(Of(before, environment(services...), Foreseen{}))
	}
	alpha := func(size int, password string) map[string]any {
		return object("a", "alpha", map[string]any{"size": size, "password": password})
	}
	beta := object("b", "beta", nil)
	shown := plan(alpha(2, "old"), beta)
	for _, one := range []struct {
		title string
		plan  Plan
		more  string
	}{
		{"the same", plan(beta, alpha(2, "old")), ""},
		{"an addition is taken back", plan(alpha(2, "old")), ""},
		{"a change is taken back", plan(before["services"].([]any)[0], beta), ""},
		{"another application", plan(alpha(2, "old"), beta, object("c", "gamma", nil)), "gamma (org.test.App) is added"},
		{"another value", plan(alpha(3, "old"), beta), "alpha (org.test.App) is changed: size"},
		{"another secret", plan(alpha(2, "new"), beta), "alpha (org.test.App) is changed: password, size"},
		{"a value that is gone", plan(object("a", "alpha", map[string]any{"password": "old"}), beta), "alpha (org.test.App) is changed: given, size"},
		{"an object in an added one", plan(alpha(2, "old"), object("b", "beta", map[string]any{"part": object("d", "delta", nil)})), "beta (org.test.App) is added; delta (org.test.App) is added"},
	} {
		err := one.plan.Unconfirmed(nil, shown.Token)
		if one.more == "" {
			require.NoError(t, err, one.title)
			continue
		}
		require.EqualError(t, err, "The deployment does more than was shown, since something has changed: "+one.more+". Nothing was done. Look at the preview again, and deploy anew", one.title)
		require.NoError(t, one.plan.Unconfirmed(nil, EndsOf(shown.Token)), "its draft does not count")
	}

	var many []any
	for i := range mostParts + 2 {
		many = append(many, object(fmt.Sprint("o", i), fmt.Sprint("one ", i), nil))
	}
	all := plan(many...)
	require.Less(t, len(all.Token), 100)
	require.NoError(t, plan(many...).Unconfirmed(nil, all.Token))
	require.ErrorContains(t, plan(append(many, beta)...).Unconfirmed(nil, all.Token), "beta (org.test.App) is added")
}

func TestALossIsAllowedByTheObjectOrAllOfItsClaims(t *testing.T) {
	plan := Of(environment(cluster("c", "big"), object("p", "shop", nil)), environment(object("p", "shop", nil)),
		Foreseen{Consents: []Consent{{ObjectID: "p", Text: "pod shop uses no more: x, y", Claims: []string{"x", "y"}}}})
	require.Len(t, plan.Missing(nil), 2)
	require.Len(t, plan.Missing([]string{"x", "big"}), 1, "one claim is not all of them")
	require.Empty(t, plan.Missing([]string{"x", "y", "c"}))
	require.Empty(t, plan.Missing([]string{"shop", "big"}))
	err := plan.Refusal([]string{"p"}, "")
	require.ErrorContains(t, err, "cluster big (c) is destroyed, with everything that is in it. Nothing was done.")
	require.ErrorContains(t, err, "--allow-destroy big")
	require.NotContains(t, err.Error(), "shop")
}

func TestAnotherNameOfAClusterEndsItsKubeconfigs(t *testing.T) {
	plan := Of(environment(cluster("c", "big")), environment(cluster("c", "bigger")), Foreseen{})
	require.Equal(t, []string{"cluster big is called bigger from now on, and so is its API: kubeconfigs that were downloaded before stop working, and are to be downloaded again"}, plan.Effects)
}

func TestADeletionListsWhatGoes(t *testing.T) {
	deletion := OfDeletion(environment(cluster("c", "big"), object("s", "web", map[string]any{"openstackId": "nova-1", "flavor": "small"}),
		object("h", "heat", map[string]any{"generatedHeatStackName": "stack-9"}), object("n", "network", map[string]any{"openstackId": "neutron-1"})))
	require.Equal(t, []string{"cluster big (c) is destroyed, with everything that is in it", "server web (nova-1) with its disk", "stack stack-9 of heat"}, deletion.Goes)
	require.Equal(t, []Consent{{ObjectID: "c", Name: "big", Text: "cluster big (c) is destroyed, with everything that is in it"}}, deletion.Consents)
	require.Empty(t, OfDeletion(nil).Goes)
}
