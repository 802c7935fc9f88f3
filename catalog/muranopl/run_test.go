package muranopl_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

func suiteObject(t *testing.T, file string) (*muranopl.Interpreter, *muranopl.Object) {
	source, names := suiteSource(t, file, "1.4")
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), suiteNatives)
	object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": names[0]}})
	require.Empty(t, problems)
	require.NoError(t, err)
	return interpreter, object
}

func TestMethodsOfOneObjectRunFromManyGoroutines(t *testing.T) {
	interpreter, object := suiteObject(t, "objects.yaml")
	var all sync.WaitGroup
	for _, method := range []string{"assignsBelowAProperty", "privateProperties", "callsStatics", "newByName", "pselects", "reflectsMethods"} {
		for range 8 {
			all.Go(func() {
				_, err := interpreter.Invoke(t.Context(), object, method, nil)
				if method != "privateProperties" { // which may read unset properties
					require.NoError(t, err)
				}
			})
		}
	}
	all.Wait()
}
