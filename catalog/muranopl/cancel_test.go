package muranopl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that should be there at once.
const patience = time.Minute

const endless = `
Namespaces: {=: org.other}
Name: Endless
Properties:
  held: {Contract: $, Usage: Runtime}
Methods:
  loops:
    Body:
      - begun()
      - While: true = true
        Do:
          - Try: 1 + 1
            Catch: [{Do: [Return: caught]}]
            Finally: 1 + 1
  repeats:
    Body:
      - begun()
      - Repeat: 1000000000000
        Do: 1 + 1
  sleeps:
    Body:
      - begun()
      - Try: sleep(100000)
        Catch: [{Do: [Return: caught]}]
  sleepsAbreast:
    Body:
      - begun()
      - Parallel: [sleep(100000), sleep(100000), $.recurses()]
  selectsAbreast:
    Body:
      - begun()
      - list(1, 2, 3).pselect(sleep(100000))
  waitsForItself:
    Body:
      - Parallel:
          - $.holds()
          - $.holds()
  holds:
    Body:
      - begun()
      - sleep(100000)
  recurses:
    Body:
      - While: true = true
        Do: [$.one()]
  one: {Body: [{Return: 1}]}
  native: {Native: true}
  evaluates:
    Body:
      - begun()
      - While: true = true
        Do: range(0, 1900).select($ * $).where($ mod 7 = 0).sum()
  finallyIsLeft:
    Body:
      - Try:
          - begun()
          - sleep(100000)
        Finally:
          - sleep(100000)
`

func TestCancellingEndsARunningMethodAtOnceAndNothingCatchesIt(t *testing.T) {
	for _, method := range []string{"loops", "repeats", "sleeps", "sleepsAbreast", "selectsAbreast", "waitsForItself", "evaluates", "finallyIsLeft", "native"} {
		t.Run(method, func(t *testing.T) {
			begun := make(chan struct{}, 10)
			source := shop(t).with("org.other.Endless", endless)
			source[len(source)-1].embedded = true
			natives := muranopl.Natives{"org.other.Endless": {"org.other.Endless": {"native": func(ctx context.Context, _ muranopl.Call) (any, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}}}}
			function := &yaql.Function{Name: "begun", Kind: yaql.AsFunction, Doc: "tells the test", Call: func(*yaql.Invocation) (any, error) {
				begun <- struct{}{}
				return nil, nil
			}}
			interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), natives, muranopl.WithFunctions(function))
			object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.other.Endless"}})
			require.Empty(t, problems)
			require.NoError(t, err)
			reason := errors.New("the test wants it to end")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() {
				_, err := interpreter.Invoke(ctx, object, method, nil)
				ended <- err
			}()
			await(t, begun)
			cancel(reason)
			require.ErrorIs(t, await(t, ended), reason)
		})
	}
}

func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// Unlimited growth ends in an error, in bounded time and memory.
func TestGrowthWithoutEndComesToAnError(t *testing.T) {
	const class = `
Namespaces: {=: org.other}
Name: Growing
Properties:
  held: {Contract: $, Usage: Runtime, Default: [1, 2]}
  parts: {Contract: [$.class(Growing)], Usage: InOut, Default: []}
Methods:
  doublesAList:
    Body:
      - $x: [1]
      - Repeat: 100
        Do:
          - $x: [$x, $x]
      - Return: $x
  doublesAProperty:
    Body:
      - Repeat: 100
        Do:
          - $.held: [$.held, $.held]
  doublesAMap:
    Body:
      - $x: {a: 1}
      - Repeat: 100
        Do:
          - $x: {a: $x, b: $x}
      - Return: $x
  doublesAText:
    Body:
      - $x: abc
      - Repeat: 100
        Do:
          - $x: $x + $x
  callsItself:
    Body: [$.callsItself()]
  makesItself:
    Body:
      - new(Nest)
`
	const nest = "Namespaces: {=: org.other}\nName: Nest\nProperties: {inner: {Contract: $.class(Nest), Default: {}}}\n"
	for _, method := range []string{"doublesAList", "doublesAProperty", "doublesAMap", "doublesAText", "callsItself", "makesItself"} {
		t.Run(method, func(t *testing.T) {
			source := shop(t)
			source = append(source, &testPackage{name: "org.other.Growing", version: "1.0.0", classes: map[string]string{
				"org.other.Growing": class, "org.other.Nest": nest}})
			interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), nil)
			object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.other.Growing"}})
			require.Empty(t, problems)
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() {
				_, err := interpreter.Invoke(t.Context(), object, method, nil)
				ended <- err
			}()
			require.Error(t, await(t, ended))
		})
	}
}
