package muranopl_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// joined asks one catalog after the other.
type joined []muranopl.Source

func (j joined) PackageForClass(ctx context.Context, class, spec string) (pkg muranopl.Package, err error) {
	for _, source := range j {
		if pkg, err = source.PackageForClass(ctx, class, spec); err == nil {
			return pkg, nil
		}
	}
	return nil, err
}

func (j joined) PackageByName(ctx context.Context, name, spec string) (pkg muranopl.Package, err error) {
	for _, source := range j {
		if pkg, err = source.PackageByName(ctx, name, spec); err == nil {
			return pkg, nil
		}
	}
	return nil, err
}

// recorded is the catalog that Murano's answers were recorded with: the class org.golden.Hello over our core library.
func recorded(t *testing.T) (*muranopl.Class, *muranopl.Classes) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	text, err := os.ReadFile("testdata/golden/Hello.yaml")
	require.NoError(t, err)
	hello := &testPackage{name: "org.golden.Hello", version: "0.0.0", classes: map[string]string{"org.golden.Hello": string(text)}}
	classes := muranopl.NewClasses(joined{testSource{hello}, catalogSource(packages)})
	class, err := classes.Class(t.Context(), "org.golden.Hello", "")
	require.NoError(t, err)
	return class, classes
}

func TestTheSchemaOfAClassIsTheOneThatMuranoGives(t *testing.T) {
	class, _ := recorded(t)
	written, err := json.Marshal(class.Schema(t.Context()))
	require.NoError(t, err)
	require.JSONEq(t, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"greeting":{"type":"string","default":"hello","title":"Greeting"},"name":{"type":"string"},"count":{"type":"integer","minimum":0,"exclusiveMinimum":false,"default":0},"fail":{"type":"boolean","default":false},"delay":{"type":"integer","default":0}},"additionalProperties":false,"formSections":{},"title":"Hello application","description":"Says hello"}`, string(written))
	require.Empty(t, class.BuilderSchemas(t.Context()))
}

func TestStaticActionsAnswerAsMuranoDoes(t *testing.T) {
	class, classes := recorded(t)
	interpreter := muranopl.NewInterpreter(classes, nil)
	for name, test := range map[string]struct {
		method string
		args   map[string]any
		result any
		text   string
		kind   fault.Kind
	}{
		"static-action":             {method: "echo", args: map[string]any{"message": "hi"}, result: "hi"},
		"static-action-int-default": {method: "add", args: map[string]any{"a": 41.0}, result: int64(42)},
		"static-action-contract":    {method: "add", args: map[string]any{"a": "notint"}, text: "[org.golden.Hello::add(a)] Value 'notint' violates int() contract", kind: fault.Invalid},
		"static-action-missing-arg": {method: "echo", text: "[org.golden.Hello::echo(message)] null value violates notNull() contract", kind: fault.Invalid},
		"static-action-extra-arg": {method: "echo", args: map[string]any{"message": "x", "y": 1}, kind: fault.NotFound,
			text: `No method "echo" for receiver MuranoClass(org.golden.Hello/0.0.0) matches supplied arguments`},
		"static-action-throws":      {method: "failing", text: "[org.golden.HelloBoom]: static action failed on purpose"},
		"static-action-not-exposed": {method: "secret", text: "secret is not an action", kind: fault.NotFound},
		"static-action-not-static":  {method: "shout", text: "A class instance is required"},
		"static-action-no-method":   {method: "nope", text: `Method "nope" is not found`, kind: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := interpreter.InvokeStaticAction(t.Context(), class, test.method, test.args)
			if test.text == "" {
				require.NoError(t, err)
				require.Equal(t, test.result, result)
				return
			}
			var e *muranopl.Exception
			if require.Error(t, err); test.kind == 0 {
				require.ErrorAs(t, err, &e)
				require.Contains(t, err.Error(), e.Message)
			}
			require.Contains(t, err.Error(), test.text)
			require.Equal(t, test.kind, fault.KindOf(err))
		})
	}
}
