package muranopl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

func class(t *testing.T, source testSource, name string) (*muranopl.Class, error) {
	t.Helper()
	return muranopl.NewClasses(source).Class(t.Context(), name, "")
}

func TestAClassDocumentIsRead(t *testing.T) {
	c, err := class(t, shop(t), "org.example.Cluster")
	require.NoError(t, err)
	require.Equal(t, "org.example.Cluster/1.2.3@org.example.Shop", c.Type())
	require.True(t, c.Is("io.murano.Application"))
	require.True(t, c.Is("io.murano.Object"))
	require.False(t, c.Is("io.murano.Environment"))
	count := c.Property("nodeCount")[0]
	require.Equal(t, muranopl.InOut, count.Usage)
	require.Equal(t, "int().notNull().check($ > 0)", count.Contract.String())
	require.Equal(t, 16, count.Position.Line)
	up, err := c.Method("scaleUp")
	require.NoError(t, err)
	require.True(t, up.Native)
	require.Equal(t, muranopl.Public, up.Scope)
	require.Equal(t, "by", up.Arguments[0].Name)
	require.Len(t, up.Meta, 2)
	require.Equal(t, "io.murano.metadata.Title", up.Meta[0].Class)
	require.Equal(t, map[string]any{"text": "Scale nodes up"}, up.Meta[0].Properties)
	require.Equal(t, "io.murano.metadata.Description", up.Meta[1].Class)
	require.Equal(t, map[string]any{"text": "One node more"}, up.Meta[1].Properties)
	body, err := c.Method("withBody")
	require.NoError(t, err)
	require.True(t, body.HasBody())
	missing, err := c.Method("dance")
	require.NoError(t, err)
	require.Nil(t, missing)
}

func TestPlainScalarsAreExpressionsWhenTheyReadLikeOne(t *testing.T) {
	source := shop(t).with("org.other.Values", `
Name: org.other.Values
Properties:
  expression: {Default: $.text, Contract: $}
  text: {Default: foo bar, Contract: $}
  quoted: {Default: '$.text', Contract: $}
  forced: {Default: !yaql "text", Contract: $}
  sum: {Default: 1 + 2, Contract: $}
  notYaql: {Default: http://example.org/, Contract: $}
  pattern: {Default: murano-kube-#, Contract: $}
  on: {Default: on, Contract: $}
  off: {Default: No, Contract: $}
  none: {Default: ~, Contract: $}
  octal: {Default: 0755, Contract: $}
  hex: {Default: 0xff, Contract: $}
  float: {Default: 1.50, Contract: $}
  negative: {Default: -5, Contract: $}
  version: {Default: 1.2.3, Contract: $}
  structure: {Default: {a: [$.text, {$.text: 2}]}, Contract: $}
  merged:
    Contract: $
    Default: {<<: {x: 1, y: 2}, y: 3}
`)
	object, problems := load(t, source, `{"?": {"type": "org.other.Values"}}`)
	require.Empty(t, problems)
	for property, wanted := range map[string]any{
		"expression": "foo bar", "text": "foo bar", "quoted": "$.text", "forced": "text", "sum": int64(3), "notYaql": "http://example.org/",
		"pattern": "murano-kube-#", "on": true, "off": false, "none": nil, "octal": int64(493), "hex": int64(255), "float": 1.5, "negative": int64(-5),
		"version": "1.2.3", "structure": map[string]any{"a": []any{"foo bar", map[string]any{"foo bar": int64(2)}}},
		"merged": map[string]any{"x": int64(1), "y": int64(3)},
	} {
		value, has := object.Get(property)
		require.True(t, has, property)
		require.Equal(t, wanted, value, property)
	}
}

func TestWrongClassDocumentsAreRefusedWithTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, wanted string }{
		"no YAML":           {"a: [", "Classes/Some.yaml is no YAML"},
		"another class":     {"Name: org.other.Else", "the manifest says that class org.other.Wrong is here, but only org.other.Else is"},
		"nothing":           {"", "Classes/Some.yaml:1:1: the manifest says that class org.other.Wrong is here, but no class is"},
		"an unknown parent": {"Extends: org.nowhere.Base", "class org.other.Wrong (Classes/Some.yaml:1:10) extends org.nowhere.Base: class org.nowhere.Base is neither in package org.other.Wrong nor in one that its manifest requires"},
		"an unknown prefix": {"Extends: x:Base", `Classes/Some.yaml:1:10: the prefix "x" of "x:Base" is not among the Namespaces`},
		"itself as parent":  {"Extends: org.other.Wrong", "class org.other.Wrong extends itself"},
		"a wrong usage":     {"Properties: {a: {Usage: Inn}}", `Classes/Some.yaml:1:25: the Usage of a property is In, Out, InOut, Runtime, Const, Config or Static, not "Inn"`},
		"arguments out of order": {"Methods: {m: {Arguments: [{a: {Usage: VarArgs}}, {b: {}}]}}",
			"Standard arguments come first, then at most one of VarArgs, then at most one of KwArgs"},
		"a session action": {"Methods: {m: {Usage: Action, Scope: Session}}", "an Action has the Scope Public"},
		"two of a method":  {"Methods: {destroy: {}, .destroy: {}}", "the method .destroy is there twice"},
		"a list":           {"- a", "Classes/Some.yaml:1:1: a map is wanted here"},
		"a bomb of aliases": {"a: &a [1,2,3,4,5,6,7,8,9]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nProperties: {a: {Default: *f}}", "the file has more than 200000 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := class(t, shop(t).with("org.other.Wrong", test.text), "org.other.Wrong")
			require.ErrorContains(t, err, test.wanted)
		})
	}
}

// TestAClassSurvivesABadContract checks that only users of the contract get the error.
func TestAClassSurvivesABadContract(t *testing.T) {
	source := shop(t).with("org.other.Flawed", `
Name: org.other.Flawed
Methods:
  fine: {Body: {Return: 1}}
  unknown: {Arguments: {a: {Contract: $.text()}}}
  none: {Arguments: {a: {Contract: $x + 1}}}
  twice:
    Arguments:
      a:
        Contract:
          $.int(): $.string()
          $.string(): $.int()
`)
	c, err := class(t, source, "org.other.Flawed")
	require.NoError(t, err)
	var flaws []string
	for _, flaw := range c.Flaws {
		flaws = append(flaws, flaw.Error())
	}
	require.Equal(t, []string{
		"Classes/Some.yaml:5:39: a contract has no function text(); it has string, int, bool, notNull, check, class, template, owned and notOwned",
		`Classes/Some.yaml:6:36: "$x + 1" is no contract: a contract is like $.string().notNull()`,
		"Classes/Some.yaml:12:11: a contract of a map has at most one expression among its keys",
	}, flaws)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), nil)
	object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.other.Flawed"}})
	require.NoError(t, err)
	require.Empty(t, problems)
	result, err := interpreter.Call(t.Context(), object, "fine", nil, nil)
	require.NoError(t, err)
	require.Equal(t, int64(1), result)
	for _, method := range []string{"unknown", "none", "twice"} {
		_, err := interpreter.Call(t.Context(), object, method, []any{map[string]any{}}, nil)
		require.Error(t, err)
		require.Equal(t, []string{"murano.dsl.exceptions.DslContractSyntaxError"}, muranopl.AsException(err).Names, method)
	}
}

// TestEveryClassOfAFileIsKnownOnceTheFileWasRead, also one that the manifest does not name; documents without content are passed over.
func TestEveryClassOfAFileIsKnownOnceTheFileWasRead(t *testing.T) {
	c, err := class(t, shop(t).with("org.other.Shown", `
Namespaces: {=: org.other}
---
# the one that nobody names
---
Name: Hidden
---
Name: Shown
Extends: Hidden
`), "org.other.Shown")
	require.NoError(t, err)
	require.True(t, c.Is("org.other.Hidden"))
}

func TestAContractMayFallBackOnAnotherValue(t *testing.T) {
	source := shop(t).with("org.other.Port", `
Name: org.other.Port
Properties:
  port: {Contract: $.int() or 5672}
  both: {Contract: $.int() and $.string()}
`)
	for given, wanted := range map[string]map[string]any{
		`"port": null, "both": 0`: {"port": int64(5672), "both": int64(0)},
		`"port": "80", "both": 7`: {"port": int64(80), "both": "7"},
	} {
		object, problems := load(t, source, `{"?": {"type": "org.other.Port"}, `+given+`}`)
		require.Empty(t, problems)
		for property, value := range wanted {
			found, _ := object.Get(property)
			require.Equal(t, value, found, property)
		}
	}
	_, problems := load(t, source, `{"?": {"type": "org.other.Port"}, "port": "eighty"}`)
	require.Len(t, problems, 1)
}

func TestEmbeddedPackagesAreReadStrictly(t *testing.T) {
	const text = "Propreties: {}"
	_, err := class(t, shop(t).with("org.other.Wrong", text), "org.other.Wrong")
	require.NoError(t, err, "Murano passes over keys that it does not know")
	source := shop(t).with("org.other.Wrong", text)
	source[len(source)-1].embedded = true
	_, err = class(t, source, "org.other.Wrong")
	require.ErrorContains(t, err, `a class has no "Propreties"`)
	require.Equal(t, fault.Invalid, fault.KindOf(err))
}

func TestMethodsAreFoundInAncestors(t *testing.T) {
	source := shop(t).with("org.other.Family", `
Namespaces: {=: org.other}
Name: Base
Methods:
  inherited: {}
  overridden: {}
  twice: {}
---
Name: Left
Extends: Base
Methods:
  overridden: {}
  twice: {}
---
Name: Right
Extends: Base
Methods:
  twice: {}
---
Name: Family
Extends: [Left, Right]
`)
	family := source[len(source)-1]
	for _, name := range []string{"Base", "Left", "Right"} {
		family.classes["org.other."+name] = family.classes["org.other.Family"]
	}
	c, err := class(t, source, "org.other.Family")
	require.NoError(t, err)
	for name, owner := range map[string]string{"inherited": "org.other.Base", "overridden": "org.other.Left"} {
		m, err := c.Method(name)
		require.NoError(t, err)
		require.Equal(t, owner, m.Class.Name)
	}
	_, err = c.Method("twice")
	require.EqualError(t, err, "method twice of class org.other.Family is ambiguous: org.other.Left and org.other.Right each have one; declare it in org.other.Family to say which is meant")
}

func TestAPropertyOfSeveralAncestorsMustSatisfyAllOfThem(t *testing.T) {
	source := shop(t).with("org.other.Small", `
Namespaces: {=: org.other, shop: org.example}
Extends: shop:Pod
Properties:
  replicas:
    Contract: $.int().check($ < 5)
    Default: 3
`)
	text := func(replicas string) string {
		return environment(cluster, `{"?": {"type": "org.other.Small", "id": "s"}, "name": "x", "cluster": "c1"`+replicas+`}`)
	}
	root, problems := load(t, source, text(""))
	require.Empty(t, problems)
	require.Equal(t, 3, root.Objects("applications")[1].Int("replicas"))
	_, problems = load(t, source, text(`, "replicas": 7`))
	require.Equal(t, "applications[1].replicas: org.other.Small.replicas wants int().check($ < 5), found 7", problems[0].Error())
	_, problems = load(t, source, text(`, "replicas": -1`))
	require.Equal(t, "applications[1].replicas: org.example.Pod.replicas wants int().notNull().check($ >= 0), found -1", problems[0].Error())
}

func TestRequiredPackagesAreFoundByTheirVersion(t *testing.T) {
	source := shop(t).with("org.other.Needy", "Extends: org.example.Pod")
	source[len(source)-1].requires = map[string]string{"org.example.Shop": ">=2"}
	_, err := class(t, source, "org.other.Needy")
	require.ErrorContains(t, err, "of these there is no org.example.Shop: add it to the catalog")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func FuzzReadingClassesNeverPanics(f *testing.F) {
	f.Add("Namespaces: {=: a}\nExtends: io.murano.Application\nProperties: {a: {Contract: [$.int(), 1, 2], Default: $.b}}\nMethods: {m: {Arguments: [{a: {Contract: $}}], Body: [Return: 1]}}")
	f.Add("a: &a [*a]")
	f.Add("Meta: [{x: {y: 1}}, z]\nImport: [b]\nUsage: Meta\n---\nName: x")
	f.Add("Properties: {<<: [{a: {}}, {b: {}}]}")
	source := shop(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := muranopl.NewClasses(source.with("org.other.Any", text)).Class(t.Context(), "org.other.Any", "")
		require.True(t, (c == nil) == (err != nil))
		if err == nil {
			_, _ = muranopl.Load(t.Context(), muranopl.NewClasses(source.with("org.other.Any", text)), map[string]any{"?": map[string]any{"type": "org.other.Any"}})
		}
	})
}

func TestMetadataOfAPackageIsWhatItsManifestSays(t *testing.T) {
	many := map[string]any{"suite.Many": map[string]any{"val": 5}}
	for name, c := range map[string]struct {
		meta any
		came any
	}{
		"none":              {nil, []any{}},
		"a name":            {"suite.Many", []any{int64(333)}},
		"one":               {many, []any{int64(5)}},
		"several":           {[]any{many, "suite.Many", map[string]any{"suite.One": nil}}, []any{int64(5), int64(333), int64(444)}},
		"one of two keys":   {map[string]any{"suite.Many": nil, "suite.One": nil}, "Invalid Meta format"},
		"a number":          {5, "Invalid Meta format"},
		"One twice":         {[]any{"suite.One", "suite.One"}, "Cannot attach several Meta instances with cardinality One"},
		"of methods only":   {"suite.OnMethods", "Meta class suite.OnMethods is not applicable here"},
		"an ordinary class": {"suite.Part", "Only Meta classes can be attached"},
		"no class":          {"suite.Nothing", "class suite.Nothing is neither in package suite nor in one that its manifest requires"},
		"a wrong value":     {map[string]any{"suite.Many": map[string]any{"val": "x"}}, `suite.Many.val wants int().notNull(), found "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			source, names := suiteSource(t, "metadata.yaml", "1.4")
			source[1].meta = c.meta
			interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), suiteNatives)
			object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": names[0]}})
			require.Empty(t, problems)
			require.NoError(t, err)
			came, err := interpreter.Invoke(t.Context(), object, "ofAPackage", nil)
			if says, wrong := c.came.(string); wrong {
				require.ErrorContains(t, err, says)
				return
			}
			require.NoError(t, err)
			values := []any{}
			for _, meta := range came.([]any) {
				value, _ := meta.(*muranopl.Object).Get("val")
				values = append(values, value)
			}
			require.Equal(t, c.came, values)
		})
	}
}

func TestClassesThatShareWhatIsParsedShareNothingElse(t *testing.T) {
	parsed := muranopl.NewParsed()
	read := func(text string) *muranopl.Class {
		t.Helper()
		pkg := &testPackage{name: "org", version: "1.0.0", classes: map[string]string{"org.A": text}}
		found, err := muranopl.NewClasses(append(shop(t), pkg), muranopl.WithParsed(parsed)).Class(t.Context(), "org.A", "")
		require.NoError(t, err)
		return found
	}
	const text = "Name: org.A\nProperties:\n  size:\n    Contract: $.int()\n    Default: 1 + 1\nMethods:\n  grow:\n    Body:\n      - Return: $.size + 1\n"
	first, second, changed := read(text), read(text), read(strings.Replace(text, "grow", "shrink", 1))
	require.NotSame(t, first, second, "each run has its own, with its own static properties")
	method, err := first.Method("grow")
	require.NoError(t, err)
	again, err := second.Method("grow")
	require.NoError(t, err)
	require.NotSame(t, method, again)
	require.Same(t, method.Body, again.Body, "the text is parsed once")
	require.Same(t, first, method.Class)
	require.Same(t, second, again.Class, "methods and properties are of the run's own class")
	require.NotSame(t, first.Property("size")[0], second.Property("size")[0])
	require.Same(t, second, second.Property("size")[0].Class)
	require.Same(t, first.Property("size")[0].Default, second.Property("size")[0].Default, "what is made of the text is made once")
	missing, err := changed.Method("grow")
	require.NoError(t, err)
	require.Nil(t, missing, "another text is another class")

	for range 3 {
		_, err := muranopl.NewClasses(append(shop(t), &testPackage{name: "org", version: "1.0.0", classes: map[string]string{"org.A": "Name: ["}}),
			muranopl.WithParsed(parsed)).Class(t.Context(), "org.A", "")
		require.ErrorContains(t, err, "is no YAML", "what is wrong is said each time")
	}
}
