package muranopl_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

func TestAModelBecomesObjects(t *testing.T) {
	root := mustLoad(t, environment(pod, cluster))
	require.Equal(t, "env", root.ID())
	applications := root.Objects("applications")
	require.Len(t, applications, 2)
	p, c := applications[0], applications[1]
	require.Same(t, c, p.Object("cluster"), "a reference may come before what it refers to")
	require.Same(t, root, c.Owner())
	require.True(t, p.Class().Is("io.murano.Application"))
	require.Equal(t, []*muranopl.Object{p, c}, root.Children())

	require.Equal(t, 4, c.Int("maxCount"), "a default may use other properties")
	require.Equal(t, "KUBE-4", c.Text("title"), "and those that have defaults themselves")
	require.True(t, c.Bool("debug"), "yes is true in YAML 1.1")
	require.Equal(t, 7, c.Int("shared"))
	require.Equal(t, 10, c.Int("limit"))
	_, has := c.Get("address")
	require.False(t, has, "an Out property that wants a value has none at first")

	instance := c.Objects("minionNodes")[1].Object("instance")
	require.Equal(t, map[string]any{"useEnvironment": true, "custom": []any{}}, instance.Map("networks"))
	require.Same(t, c, instance.Find("org.example.Cluster"))
	require.Nil(t, instance.Find("org.example.Pod"))
}

func TestEveryProblemOfAModelIsSaidWithItsPlace(t *testing.T) {
	node := func(instance string) string {
		return `{"?": {"type": "org.example.Cluster", "id": "c1"}, "name": "kube", "nodeCount": 0, "minionNodes": [
			{"?": {"type": "org.example.Node", "id": "n0"}, "instance": {"?": {"type": "org.example.Instance", "id": "i0"}, "name": "a", "flavor": "f"}},
			{"?": {"type": "org.example.Node", "id": "n1"}, "instance": ` + instance + `}]}`
	}
	for name, test := range map[string]struct {
		applications []string
		wanted       []string
	}{
		"several at once": {
			[]string{node(`{"?": {"type": "org.example.Instance", "id": "i1"}, "name": null}`)},
			[]string{
				"applications[0].minionNodes[1].instance.flavor: org.example.Instance.flavor wants string().notNull(), found null: give a flavor",
				"applications[0].minionNodes[1].instance.name: org.example.Instance.name wants string().notNull(), found null: give a name",
				"applications[0].nodeCount: org.example.Cluster.nodeCount wants int().notNull().check($ > 0), found 0",
			},
		},
		"an unknown class": {
			[]string{`{"?": {"type": "org.example.Nothing", "id": "x"}}`},
			[]string{`applications[0]: there is no class org.example.Nothing: add the package that has it to the catalog, or correct the type (there is no class org.example.Nothing of version "")`},
		},
		"an unknown class of a version of a package": {
			[]string{`{"?": {"type": "org.example.Pod/9@org.example.Shop", "id": "x"}}`},
			[]string{`applications[0]: there is no class org.example.Pod of version 9 of package org.example.Shop: add the package that has it to the catalog, or correct the type (there is no package org.example.Shop of version "9")`},
		},
		"no object where one must be": {
			[]string{`7`},
			[]string{"applications[0]: io.murano.Environment.applications wants class(Application).owned().notNull(), found 7"},
		},
		"an object of another class": {
			[]string{`{"?": {"type": "org.example.Instance", "id": "i"}, "name": "a", "flavor": "f"}`},
			[]string{"applications[0]: io.murano.Environment.applications wants an object of class io.murano.Application, found one of class org.example.Instance"},
		},
		"an id of nothing": {
			[]string{`{"?": {"type": "org.example.Pod", "id": "p"}, "name": "web", "cluster": "nowhere"}`},
			[]string{`applications[0].cluster: org.example.Pod.cluster wants class(Cluster).notOwned().notNull(), found the text "nowhere", which is no id of an object of the model`},
		},
		"an object where a reference must be": {
			[]string{`{"?": {"type": "org.example.Pod", "id": "p"}, "name": "web", "cluster": ` + cluster + `}`},
			[]string{`applications[0].cluster: org.example.Pod.cluster wants a reference to an object that stands elsewhere in the model, found org.example.Cluster (c1) itself`},
		},
		"a reference where the object must be": {
			[]string{`"p2"`, `{"?": {"type": "org.example.Everything", "id": "e"}, "peer": {"?": {"type": "org.example.Pod", "id": "p2"}, "name": "web", "cluster": "c1"}}`, cluster},
			[]string{}, // the environment is the owner of its owner
		},
		"an object where no class wants one": {
			[]string{`{"?": {"type": "org.example.Everything", "id": "e"}, "any": {"?": {"type": "org.example.Pod", "id": "p2"}, "name": "x", "cluster": "c1"}, "peer": "p2"}`, cluster},
			[]string{`applications[0].any: org.example.Pod is referred to by its id p2, but stands where no property wants an object`},
		},
		"an id that two objects have": {
			[]string{cluster, `{"?": {"type": "org.example.Pod", "id": "n1"}, "name": "web", "cluster": "c1"}`},
			[]string{`applications[1]: the id n1 is taken: applications[0].minionNodes[0] has it as well`},
		},
		"defaults that wait for each other": {
			[]string{`{"?": {"type": "org.example.Circle", "id": "x"}}`},
			[]string{
				"applications[0].a: org.example.Circle.a has a default (Classes/Some.yaml:123:14) that cannot be evaluated: the defaults of a, b wait for each other; give one of them a value",
				"applications[0].b: org.example.Circle.b has a default (Classes/Some.yaml:126:14) that cannot be evaluated: the defaults of a, b wait for each other; give one of them a value",
			},
		},
		"too few and too many items": {
			[]string{`{"?": {"type": "org.example.Cluster", "id": "x"}, "name": "k", "nodeCount": 1, "minionNodes": []}`, `{"?": {"type": "org.example.Everything", "id": "e"}, "list": [1, 2, 3, "x"]}`},
			[]string{
				"applications[0].minionNodes: org.example.Cluster.minionNodes wants at least 1 item, found 0",
				"applications[1].list: org.example.Everything.list wants at most 3 items, found 4",
				`applications[1].list[3]: org.example.Everything.list wants int(), found "x"`,
			},
		},
		"a literal that is another": {
			[]string{`{"?": {"type": "org.example.Everything", "id": "e"}, "exact": 6}`},
			[]string{"applications[0].exact: org.example.Everything.exact wants 5, found 6"},
		},
		"a template with a hole": {
			[]string{`{"?": {"type": "org.example.Everything", "id": "e"}, "blueprint": {"?": {"type": "org.example.Instance"}}}`},
			[]string{"applications[0].blueprint.flavor: org.example.Instance.flavor wants string().notNull(), found null: give a flavor"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := load(t, shop(t), environment(test.applications...))
			lines := []string{}
			for _, p := range problems {
				lines = append(lines, p.Error())
			}
			require.ElementsMatch(t, test.wanted, lines)
		})
	}
}

func TestASecretIsNotRepeatedInAProblem(t *testing.T) {
	text := `{"?": {"type": "org.example.Instance", "id": "i"}, "name": "a", "flavor": "f", "networks": {"useEnvironment": true, "custom": [
		{"?": {"type": "org.example.Network", "id": "n"}, "password": "SECRET7", "credential": "SECRET 8"}]}}`
	_, problems := load(t, shop(t), text)
	require.Len(t, problems, 2)
	require.Equal(t, "networks.custom[0].password: org.example.Network.password a password has small letters only; found a text of 7 characters", problems[0].Error())
	require.Equal(t, "networks.custom[0].credential: org.example.Network.credential a credential has small letters only; found a text of 8 characters", problems[1].Error())
}

func TestContractsMakeOfValuesWhatTheySay(t *testing.T) {
	root := mustLoad(t, environment(cluster, `{"?": {"type": "org.example.Everything", "id": "e"},
		"any": {"x": [1, 1.5, "y"]}, "text": 5, "number": "42", "truth": [], "list": 7, "anyMap": null, "anyList": null, "unknown": "dropped",
		"blueprint": {"flavor": "big"}, "node": {"instance": {"?": {"type": "org.example.Instance"}, "name": "a", "flavor": "f"}}, "peer": "c1"}`))
	e := root.Objects("applications")[1]
	require.Equal(t, map[string]any{"x": []any{int64(1), 1.5, "y"}}, e.Map("any"))
	require.Equal(t, "5", e.Text("text"))
	require.Equal(t, 42, e.Int("number"))
	truth, _ := e.Get("truth")
	require.Equal(t, false, truth)
	require.Equal(t, []any{int64(7)}, e.List("list"), "one value is a list of one")
	require.Equal(t, map[string]any{}, e.Map("anyMap"))
	require.Equal(t, []any{}, e.List("anyList"))
	require.Equal(t, map[string]any{"?": map[string]any{"type": "org.example.Instance", "name": nil, "metadata": nil}, "flavor": "big"}, e.Map("blueprint"), "a template stays a map")
	require.Equal(t, "org.example.GatewayNode", e.Object("node").Class().Name, "a map without a type is of the default class")
	require.Len(t, e.Object("node").ID(), 32)
	require.Equal(t, "kube", e.Object("peer").Text("name"))
	_, has := e.Get("unknown")
	require.False(t, has)
}

func TestAllFormsOfHeadersAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"type with version and package": `{"?": {"type": "org.example.Instance/1.2.3@org.example.Shop", "id": "x", "name": "y"}, "name": "a", "flavor": "f"}`,
		"version and package apart":     `{"?": {"type": "org.example.Instance", "classVersion": "1.2", "package": "org.example.Shop", "id": "x", "name": "y"}, "name": "a", "flavor": "f"}`,
		"the class as key":              `{"org.example.Instance": {"name": "a", "flavor": "f"}, "id": "x", "name": "y"}`,
		"the class as key of the head":  `{"?": {"org.example.Instance/1": null, "id": "x", "name": "y"}, "name": "a", "flavor": "f"}`,
	} {
		t.Run(name, func(t *testing.T) {
			object := mustLoad(t, text)
			require.Equal(t, "x", object.ID())
			require.Equal(t, "y", object.Name())
			require.Equal(t, "f", object.Text("flavor"))
			require.Equal(t, "org.example.Instance/1.2.3@org.example.Shop", object.Class().Type())
		})
	}
}

func TestTheOperatorConfiguresClasses(t *testing.T) {
	files := fstest.MapFS{"org.example.Cluster-1.2.json": {Data: []byte(`{"limit": 99}`)}, "org.example.Cluster-1.yaml": {Data: []byte(`limit: 3`)}}
	root, problems := muranopl.Load(t.Context(), muranopl.NewClasses(shop(t), muranopl.WithConfigs(files)), parse(t, environment(cluster)))
	require.Empty(t, problems)
	require.Equal(t, 99, root.Objects("applications")[0].Int("limit"))
}

func TestWritingIsAllowedByUsageAndContract(t *testing.T) {
	root := mustLoad(t, environment(cluster))
	c := root.Objects("applications")[0]
	require.NoError(t, c.Set("nodeCount", 3))
	require.Equal(t, 3, c.Int("nodeCount"))
	require.ErrorContains(t, c.Set("nodeCount", 0), "wants int().notNull().check($ > 0), found 0")
	require.ErrorContains(t, c.Set("name", "other"), "property org.example.Cluster.name is In: methods cannot write it")
	require.ErrorContains(t, c.Set("nothing", 1), "class org.example.Cluster has no property nothing")
	require.NoError(t, c.Set("shared", 8))
	require.Equal(t, 8, c.Int("shared"))
	require.NoError(t, c.Set("handle", c))
	require.Same(t, c, c.Object("handle"))
	require.NoError(t, c.Set("endpoints", []map[string]any{{"port": 80, "scope": "public", "other": 1}}))
	require.Equal(t, []any{map[string]any{"port": int64(80), "scope": "public"}}, c.List("endpoints"))
}

func TestSavingWritesTheModelAgainWithActions(t *testing.T) {
	root := mustLoad(t, environment(cluster, pod))
	require.NoError(t, root.Objects("applications")[0].Set("address", "10.0.0.1"))
	saved := muranopl.Save(root)
	c := saved["applications"].([]any)[0].(map[string]any)
	require.Equal(t, "10.0.0.1", c["address"])
	require.NotContains(t, c, "handle")
	require.NotContains(t, c, "shared")
	require.NotContains(t, c, "limit")
	require.Equal(t, "c1", saved["applications"].([]any)[1].(map[string]any)["cluster"])
	require.Equal(t, map[string]any{
		"type": "org.example.Cluster/1.2.3@org.example.Shop", "id": "c1", "name": nil, "metadata": nil,
		"_26411": map[string]any{"name": "Cluster"},
		"_actions": map[string]any{"c1_scaleUp": map[string]any{
			"name": "scaleUp", "title": "Scale nodes up", "description": "One node more", "enabled": true}},
	}, c["?"])
	require.Contains(t, saved["?"].(map[string]any)["_actions"], "env_deploy")
}

func TestAnObjectThatItsOwnerDoesNotHoldIsSavedWhereItIsReferredTo(t *testing.T) {
	source := shop(t).with("org.other.Maker", `
Namespaces: {=: org.other}
Properties:
  orphan: {Contract: $, Usage: Out}
  again: {Contract: $, Usage: Out}
  static: {Contract: $, Usage: Out}
Methods:
  make:
    Body:
    - $.orphan: new(Maker)
    - $.again: list($.orphan, :Maker)
    - Return: list($.orphan, $)
  open: {Scope: Public, Usage: Static, Body: 1 + 1}
`)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), nil)
	root, problems, err := interpreter.Load(t.Context(), parse(t, `{"?": {"type": "org.other.Maker", "id": "m", "_x": 1, "updated": "now"}}`))
	require.NoError(t, err)
	require.Empty(t, problems)
	result, err := interpreter.Call(t.Context(), root, "make", nil, nil)
	require.NoError(t, err)
	saved := muranopl.Save(root)
	orphan := saved["orphan"].(map[string]any)
	id := orphan["?"].(map[string]any)["id"]
	require.Equal(t, []any{id, "org.other.Maker/1.0.0@org.other.Maker"}, saved["again"])
	header := map[string]any{"type": "org.other.Maker/1.0.0@org.other.Maker", "id": "m", "name": nil, "metadata": nil}
	require.Equal(t, header, muranopl.SaveCopy(root)["?"])
	header["_x"] = int64(1)
	require.Equal(t, header, muranopl.SaveResult(root).(map[string]any)["?"])
	header["_actions"] = map[string]any{"m_open": map[string]any{"name": "open", "title": "open", "enabled": true}}
	require.Equal(t, header, saved["?"])
	list := muranopl.SaveResult(result).([]any)
	require.Equal(t, id, list[0].(map[string]any)["?"].(map[string]any)["id"])
	require.Equal(t, id, list[1].(map[string]any)["orphan"])
}

func TestWhatIsCalledFromOutsideFailsWithMuranosExceptions(t *testing.T) {
	source := shop(t).with("org.other.Callee", `
Namespaces: {=: org.other}
Methods:
  add:
    Arguments:
    - list: {Contract: {k: [$.int()]}}
    Body: [{Return: $list.k.sum()}]
`)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), nil)
	root, _, err := interpreter.Load(t.Context(), parse(t, `{"?": {"type": "org.other.Callee"}}`))
	require.NoError(t, err)
	sum, err := interpreter.Call(t.Context(), root, "add", []any{map[string]any{"k": []any{int64(1), "2"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, int64(3), sum)
	for _, c := range []struct {
		method, name, message string
		args                  []any
	}{
		{"add", muranopl.ContractViolation, "[org.other.Callee::add(list[k][1])] Value 'x' violates int() contract", []any{map[string]any{"k": []any{int64(1), "x"}}}},
		{"add", "yaql.language.exceptions.NoMatchingMethodException", "method org.other.Callee.add has 1 arguments, 1 too many were given", []any{nil, nil}},
		{"nothing", "murano.dsl.exceptions.NoMethodFound", `Method "nothing" is not found`, nil},
	} {
		_, err := interpreter.Call(t.Context(), root, c.method, c.args, nil)
		var e *muranopl.Exception
		require.ErrorAs(t, err, &e)
		require.Equal(t, []string{c.name}, e.Names)
		require.Equal(t, c.message, e.Message)
	}
	_, problems, err := interpreter.Load(t.Context(), parse(t, `{"?": {"type": "org.example.Cluster"}, "name": "n", "nodeCount": "many", "minionNodes": [{"?": {"type": "org.Nothing"}}]}`))
	require.NoError(t, err)
	messages := map[string]string{}
	for _, problem := range problems {
		e := problem.Exception()
		messages[e.Message] = e.Names[0]
	}
	require.Equal(t, "murano.dsl.exceptions.NoPackageForClassFound", messages[`Package for class "org.Nothing" is not found`])
	require.Equal(t, muranopl.ContractViolation, messages["[org.example.Cluster.nodeCount] Value 'many' violates int() contract"])
}

func TestSavingAndLoadingChangeNothing(t *testing.T) {
	first := muranopl.Save(mustLoad(t, environment(cluster, pod)))
	text, err := json.Marshal(first)
	require.NoError(t, err)
	second := muranopl.Save(mustLoad(t, string(text)))
	require.Equal(t, first, second)
}

func TestAModelWithoutClassIsAProblemAndNoPanic(t *testing.T) {
	_, problems := muranopl.Load(t.Context(), muranopl.NewClasses(shop(t)), nil)
	require.Len(t, problems, 1)
	_, problems = load(t, shop(t), `{"name": "x"}`)
	require.Equal(t, `?: the model's root names no class: "?" needs a "type"`, problems[0].Error())
}

func TestClassesThatAskForObjectsWithoutEndAreAProblem(t *testing.T) {
	for name, properties := range map[string]string{
		"one in the other": "{a: {Contract: $.class(Endless), Default: {}}}",
		"two in each":      "{a: {Contract: $.class(Endless), Default: {}}, b: {Contract: $.class(Endless), Default: {}}}",
		"models":           "{a: {Contract: $.template(Endless), Default: {}}}",
		"models in lists":  "{a: {Contract: [$.template(Endless)], Default: [{}, {}, {}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := load(t, shop(t).with("org.other.Endless", "Namespaces: {=: org.other}\nProperties: "+properties), `{"?": {"type": "org.other.Endless", "id": "x"}}`)
			require.NotEmpty(t, problems)
			require.Regexp(t, "more than (200 levels deep|20000 objects)", problems[0].Error())
			require.Less(t, len(problems), 10)
		})
	}
}

func TestADefaultThatNeedsAnOutPropertyWithoutValueIsAProblem(t *testing.T) {
	_, problems := load(t, shop(t).with("org.other.Early", `
Properties:
  address: {Contract: $.string().notNull(), Usage: Out}
  url: {Contract: $.string(), Default: $.address + '/'}
`), `{"?": {"type": "org.other.Early", "id": "x"}}`)
	require.Len(t, problems, 1)
	require.Equal(t, "url: org.other.Early.url has a default (Classes/Some.yaml:4:40) that cannot be evaluated: property address of org.other.Early (x) has no value", problems[0].Error())
}

func TestAClassFileIsNotNestedDeeperThanAModelMayBe(t *testing.T) {
	deep := "Name: Deep\nProperties:\n  x:\n    Contract: $\n    Default: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "\n"
	_, err := muranopl.ReadYAML("Deep.yaml", []byte(deep))
	require.ErrorContains(t, err, "nested deeper than 100 levels")
	_, err = muranopl.ReadYAML("Flat.yaml", []byte("x: "+strings.Repeat("[", 99)+strings.Repeat("]", 99)))
	require.NoError(t, err)
}
