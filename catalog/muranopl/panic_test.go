package muranopl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/panics"
)

func TestAPanicOnAnyLineOfExecutionIsAnExceptionAndNotTheEndOfTheProcess(t *testing.T) {
	const class = `
Namespaces: {=: org.other}
Name: Panicking
Methods:
  abreast:
    Body:
      - Parallel: [1 + 1, defect(), 1 + 1]
  selecting:
    Body:
      - Return: list(1, 2, 3).pselect(defect())
  catching:
    Body:
      - Try:
          - Parallel: [defect()]
        Catch:
          - As: e
            Do: [Return: caught]
`
	defect := &yaql.Function{Name: "defect", Kind: yaql.AsFunction, Doc: "panics", Call: func(*yaql.Invocation) (any, error) { panic("oh no") }}
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(shop(t).with("org.other.Panicking", class)), nil, muranopl.WithFunctions(defect))
	object := mustStart(t, interpreter, map[string]any{"?": map[string]any{"type": "org.other.Panicking"}})
	for _, method := range []string{"abreast", "selecting"} {
		_, err := interpreter.Invoke(t.Context(), object, method, nil)
		var exception *muranopl.Exception
		require.ErrorAs(t, err, &exception)
		require.EqualError(t, err, "Burano itself failed: oh no. Please report this as a defect")
		require.NotEmpty(t, exception.Frames, "it says where in the package")
		var found *panics.Error
		require.ErrorAs(t, err, &found)
		require.Contains(t, string(found.Stack), "panic_test.go", "and where in Burano")
	}
	result, err := interpreter.Invoke(t.Context(), object, "catching", nil)
	require.NoError(t, err)
	require.Equal(t, "caught", result)
}
