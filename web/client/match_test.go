package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/burano/burano/internal/sensitive"
)

const nodesFile = `
- {"?": {type: Cluster}, name: c, minions: [
    {"?": {type: Node}, instance: {"?": {type: Instance}, name: n1}},
    {"?": {type: Node}, instance: {"?": {type: Instance}, name: n2}},
    {"?": {type: Node}, instance: {"?": {type: Instance}, name: n3}}]}
- {"?": {type: Pod, id: web}, name: web, cluster: c}
- {"?": {type: Pod}, name: db, volumes: [{"?": {type: Volume}, size: 1}, {"?": {type: Volume}, size: 2}]}
`

// identified gives the ids of a file in an environment with a present model, by a text for each object.
func identified(t require.TestingT, present []any, file string) (ids map[string]string, model []any) {
	var applications []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(file), &applications))
	for _, one := range applications {
		model = append(model, one)
	}
	r := references{space: uuid.NewSHA1(uuid.NameSpaceURL, []byte("e1")), ids: map[string]string{}}
	r.identifyAll(readObjects(model), readObjects(present))
	ids = map[string]string{}
	for _, one := range readObjects(model).all() {
		ids[fmt.Sprint(one.class, " ", strings.TrimSpace(one.byName()+fmt.Sprint(one.value["size"])))] = one.id
	}
	return ids, model
}

func TestAnObjectKeepsItsIDWhereverItIsInTheFile(t *testing.T) {
	first, present := identified(t, nil, nodesFile)
	for name, edit := range map[string]func(string) string{
		"nothing": func(file string) string { return file },
		"an application above the cluster": func(file string) string {
			return "- {\"?\": {type: Pod}, name: new}" + file
		},
		"nodes in another order": func(file string) string {
			return strings.NewReplacer("name: n1", "name: n3", "name: n3", "name: n1").Replace(file)
		},
		"volumes in another order": func(file string) string {
			return strings.NewReplacer("size: 1", "size: 2", "size: 2", "size: 1").Replace(file)
		},
		"an id where there was none": func(file string) string {
			return strings.Replace(file, "{type: Cluster}", "{type: Cluster, id: k8s}", 1)
		},
		"another id": func(file string) string { return strings.Replace(file, "id: web", "id: other", 1) },
		"no id":      func(file string) string { return strings.Replace(file, ", id: web", "", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := identified(t, present, edit(nodesFile))
			for object, id := range first {
				require.Equal(t, id, after[object], object)
			}
		})
	}
}

// TestWhatTheServerHidesTellsNoObjectsApart has two applications of one name: the remaining one is recognised by the parameter that is not hidden.
func TestWhatTheServerHidesTellsNoObjectsApart(t *testing.T) {
	const small = `- {"?": {type: Stack}, name: s, templateParameters: {flavor: small, phrase: battery staple}}` + "\n"
	const large = `- {"?": {type: Stack}, name: s, templateParameters: {flavor: large, phrase: correct horse}}` + "\n"
	_, present := identified(t, nil, small+large)
	wanted := idIn(present[1])
	for _, one := range present {
		one.(map[string]any)["templateParameters"].(map[string]any)["phrase"] = sensitive.Mark
	}
	_, left := identified(t, present, large)
	require.Equal(t, wanted, idIn(left[0]))
}

func idIn(application any) any { return application.(map[string]any)["?"].(map[string]any)["id"] }

func TestTheFirstOfAListCanGoAndANewOneGetsANewID(t *testing.T) {
	first, present := identified(t, nil, nodesFile)
	without := strings.Replace(nodesFile, `    {"?": {type: Node}, instance: {"?": {type: Instance}, name: n1}},`+"\n", "", 1)
	after, present2 := identified(t, present, without)
	require.Equal(t, first["Node Node  n2<nil>"], after["Node Node  n2<nil>"])
	require.NotContains(t, after, "Node Node  n1<nil>")

	more, _ := identified(t, present2, strings.Replace(without, "minions: [\n", "minions: [{\"?\": {type: Node}, instance: {\"?\": {type: Instance}, name: n0}},\n", 1))
	require.Equal(t, first["Node Node  n2<nil>"], more["Node Node  n2<nil>"])
	require.NotEmpty(t, more["Node Node  n0<nil>"])
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(more))), len(more), "no two objects have one id")
}

func TestARenamedObjectIsTheSameWhereItIsTheOnlyOneOfItsClassLeft(t *testing.T) {
	first, present := identified(t, nil, nodesFile)
	after, _ := identified(t, present, strings.NewReplacer("name: c,", "name: k,", "name: db", "name: postgres", "name: n2", "name: n9").Replace(nodesFile))
	require.Equal(t, first["Cluster Cluster c<nil>"], after["Cluster Cluster k<nil>"])
	require.Equal(t, first["Pod Pod db<nil>"], after["Pod Pod postgres<nil>"])
	require.Equal(t, first["Node Node  n2<nil>"], after["Node Node  n9<nil>"])
}

func TestSeveralOtherIDsWithOtherNamesAreOtherObjects(t *testing.T) {
	first, present := identified(t, nil, nodesFile)
	after, _ := identified(t, present, strings.NewReplacer("{type: Pod, id: web}, name: web", "{type: Pod, id: shop}, name: shop", "{type: Pod}, name: db", "{type: Pod, id: queue}, name: queue").Replace(nodesFile))
	for _, name := range []string{"shop", "queue"} {
		require.NotContains(t, []string{first["Pod Pod web<nil>"], first["Pod Pod db<nil>"]}, after["Pod Pod "+name+"<nil>"])
	}
	const own = "0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f"
	after, _ = identified(t, present, strings.Replace(nodesFile, "id: web", "id: "+own, 1))
	require.Equal(t, own, after["Pod Pod web<nil>"], "a UUID holds as it is written")
}

// The model does not know the word that a file calls an object by, when the object is older than the word.
func TestAnObjectThatGotAnIDCanBeRenamed(t *testing.T) {
	first, present := identified(t, nil, nodesFile)
	labelled := strings.Replace(nodesFile, "id: web", "id: front", 1)
	_, present = identified(t, present, labelled)
	after, _ := identified(t, present, strings.Replace(labelled, "name: web", "name: shop", 1))
	require.Equal(t, first["Pod Pod web<nil>"], after["Pod Pod shop<nil>"])
}

func TestReferencesFollowWhatAnIDWasMatchedWith(t *testing.T) {
	_, present := identified(t, nil, `[{"?": {type: C}, name: c}, {"?": {type: P, id: p}, name: p}]`)
	was := present[0].(map[string]any)["?"].(map[string]any)["id"]
	after, err := expecting(t).Files().stableIDs(t.Context(), "e1", []map[string]any{
		{"?": map[string]any{"type": "P", "id": "p"}, "name": "p", "on": "k8s"},
		{"?": map[string]any{"type": "C", "id": "k8s"}, "name": "c"},
	}, present)
	require.NoError(t, err)
	require.Equal(t, was, after[0].(map[string]any)["on"])
}

// Reordering lists, and giving or taking readable ids, changes no id of an object with a name.
func TestNoOrderChangesAnID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 8, rapid.ID).Draw(t, "names")
		file := func(order []string, label string) string {
			lines := make([]string, len(order))
			for i, name := range order {
				id := rapid.SampledFrom([]string{"", ", id: the-" + name}).Draw(t, label+name)
				lines[i] = fmt.Sprintf(`{"?": {type: Pod%s}, name: %q, in: {"?": {type: Volume}, size: %d}}`, id, name, len(name))
			}
			return "[" + strings.Join(lines, ",\n") + "]"
		}
		first, present := identified(t, nil, file(names, "before "))
		shuffled := rapid.Permutation(names).Draw(t, "order")
		kept := shuffled[:rapid.IntRange(0, len(shuffled)).Draw(t, "kept")]
		after, _ := identified(t, present, file(kept, "after "))
		for _, name := range kept {
			require.Equal(t, first["Pod Pod "+name+"<nil>"], after["Pod Pod "+name+"<nil>"])
		}
	})
}
