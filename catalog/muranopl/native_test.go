package muranopl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

const foreign = `
Namespaces: {=: org.other, std: io.murano, py: }
Name: Foreign
Properties: {name: {Contract: $.string(), Default: me}}
Methods:
  shapes:
    Native: true
    Arguments:
      - text: {Contract: $.string()}
      - map: {Contract: {$.string(): [$.int()]}}
      - object: {Contract: $.class(Foreign)}
      - defaulted: {Contract: $.int(), Default: 7}
      - rest: {Contract: $, Usage: VarArgs}
      - named: {Contract: $, Usage: KwArgs}
  calls:
    Body:
      - Return: $.shapes(5, {a => ['1']}, $, 8, x, [y], z => {b => 1})
  callsWithLittle:
    Body:
      - Return: $.shapes(null)
  static: {Native: true, Usage: Static}
  extension: {Native: true, Usage: Extension, Arguments: [{value: {Contract: $.string()}}, {by: {Contract: $.int()}}]}
  callsTheOthers:
    Body:
      - Return: list($.static(), :Foreign.static(), abc.extension(2))
  fails: {Native: true}
  catchesByItsName:
    Body:
      - Try: $.fails()
        Catch:
          - With: com.cloud.Refused
            As: e
            Do: {Return: ['caught', $e.name, $e.message]}
  fromGo: {Native: true}
  catchesByItsKind:
    Body:
      - Try: $.fromGo()
        Catch:
          - With: py:LookupError
            As: e
            Do: {Return: ['caught', $e.message]}
  callsBack: {Native: true}
  throws:
    Body:
      - Throw: Thrown
        Message: by MuranoPL
        Extra: {code: 5}
  catchesWhatWentThrough:
    Body:
      - Try: $.callsBack()
        Catch:
          - With: Thrown
            As: e
            Do: {Return: [$e.message, $e.extra.code]}
  panics: {Native: true}
  nothing: {Native: true}
  without:
`

type refused struct{ error }

func (refused) ExceptionNames() []string { return []string{"com.cloud.Refused"} }

func foreignObject(t *testing.T, seen *muranopl.Call) (*muranopl.Interpreter, *muranopl.Object) {
	t.Helper()
	natives := muranopl.Natives{"org.other.Foreign": {"org.other.Foreign": {
		"shapes": func(_ context.Context, call muranopl.Call) (any, error) { *seen = call; return []string{"a", "b"}, nil },
		"static": func(_ context.Context, call muranopl.Call) (any, error) {
			require.Nil(t, call.Object)
			return call.Method.Class.Name, nil
		},
		"extension": func(_ context.Context, call muranopl.Call) (any, error) {
			return call.Args["value"].(string)[:call.Args["by"].(int64)], nil
		},
		"fails":  func(context.Context, muranopl.Call) (any, error) { return nil, refused{errors.New("not today")} },
		"fromGo": func(context.Context, muranopl.Call) (any, error) { return nil, fault.New(fault.NotFound, "it is gone") },
		"callsBack": func(ctx context.Context, call muranopl.Call) (any, error) {
			_, err := call.Interpreter.Invoke(ctx, call.Object, "throws", nil)
			var e *muranopl.Exception
			require.ErrorAs(t, err, &e)
			require.Equal(t, []string{"org.other.Thrown"}, e.Names)
			require.Equal(t, []string{"catchesWhatWentThrough", "throws"}, []string{e.Frames[0].Method, e.Frames[len(e.Frames)-1].Method})
			require.Same(t, call.Object, e.Object())
			return nil, err
		},
		"panics":  func(context.Context, muranopl.Call) (any, error) { panic("oh") },
		"nothing": func(context.Context, muranopl.Call) (any, error) { var o *muranopl.Object; return o, nil },
	}}}
	source, _ := suiteSource(t, "destruction.yaml", "1.4")
	source = append(source, &testPackage{name: "org.other.Foreign", version: "1.0.0", embedded: true, classes: map[string]string{"org.other.Foreign": foreign}})
	require.NoError(t, muranopl.CheckNatives(t.Context(), muranopl.NewClasses(source), []muranopl.Package{source[len(source)-1]}, natives))
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), natives)
	return interpreter, mustStart(t, interpreter, map[string]any{"?": map[string]any{"type": "org.other.Foreign", "id": "f"}})
}

func TestANativeMethodIsGivenItsReceiverAndWhatItsContractsMade(t *testing.T) {
	var seen muranopl.Call
	interpreter, object := foreignObject(t, &seen)
	result, err := interpreter.Invoke(t.Context(), object, "calls", nil)
	require.NoError(t, err)
	require.Equal(t, []any{"a", "b"}, result)
	require.Same(t, object, seen.Object)
	require.Same(t, interpreter, seen.Interpreter)
	require.Equal(t, map[string]any{"text": "5", "map": map[string]any{"a": []any{int64(1)}}, "object": object, "defaulted": int64(8),
		"rest": []any{"x", []any{"y"}}, "named": map[string]any{"z": map[string]any{"b": int64(1)}}}, seen.Args)
	_, err = interpreter.Invoke(t.Context(), object, "callsWithLittle", nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"text": nil, "map": map[string]any{}, "object": nil, "defaulted": int64(7), "rest": []any{}, "named": map[string]any{}}, seen.Args)
	result, err = interpreter.Invoke(t.Context(), object, "callsTheOthers", nil)
	require.NoError(t, err)
	require.Equal(t, []any{"org.other.Foreign", "org.other.Foreign", "ab"}, result)
}

func TestExceptionsPassBetweenNativeCodeAndMuranoPLBothWays(t *testing.T) {
	interpreter, object := foreignObject(t, new(muranopl.Call))
	for method, wanted := range map[string]any{
		"catchesByItsName":       []any{"caught", "com.cloud.Refused", "not today"},
		"catchesByItsKind":       []any{"caught", "it is gone"},
		"catchesWhatWentThrough": []any{"by MuranoPL", int64(5)},
		"nothing":                nil,
		"without":                nil,
	} {
		result, err := interpreter.Invoke(t.Context(), object, method, nil)
		require.NoError(t, err, method)
		require.Equal(t, wanted, result, method)
	}
	_, err := interpreter.Invoke(t.Context(), object, "panics", nil)
	require.ErrorContains(t, err, "method org.other.Foreign.panics: Burano itself failed: oh")
}
