package muranopl_test

import (
	"context"
	"sync"
	"testing"
	"time"

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

func TestCancellingEndsARunningMethodAtOnceAndNothingCatchesIt(t *testing.T) {
	const class = `
Namespaces: {=: org.other}
Name: Endless
Methods:
  loops:
    Body:
      - While: true = true
        Do:
          - Try: 1 + 1
            Catch: [{Do: [Return: caught]}]
            Finally: 1 + 1
  sleeps:
    Body:
      - Try: sleep(100000)
        Catch: [{Do: [Return: caught]}]
`
	for _, method := range []string{"loops", "sleeps"} {
		t.Run(method, func(t *testing.T) {
			interpreter := muranopl.NewInterpreter(muranopl.NewClasses(shop(t).with("org.other.Endless", class)), nil)
			object, _, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.other.Endless"}})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err = interpreter.Invoke(ctx, object, method, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(began), 20*time.Second)
		})
	}
}

func TestMethodsOfOneObjectRunFromManyGoroutines(t *testing.T) {
	interpreter, object := suiteObject(t, "objects.yaml")
	var all sync.WaitGroup
	for _, method := range []string{"assignsBelowAProperty", "privateProperties", "callsStatics", "newByName", "pselects", "reflectsMethods"} {
		for range 8 {
			all.Go(func() {
				_, err := interpreter.Invoke(t.Context(), object, method, nil)
				if method != "privateProperties" { // which may read what nothing wrote yet
					require.NoError(t, err)
				}
			})
		}
	}
	all.Wait()
}
