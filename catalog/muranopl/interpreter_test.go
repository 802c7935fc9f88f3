package muranopl_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// bodies are native methods of the cluster in testdata.
func bodies(methods map[string]muranopl.NativeMethod) muranopl.Natives {
	return muranopl.Natives{
		"io.murano":        {"io.murano.Environment": {"deploy": func(context.Context, muranopl.Call) (any, error) { return nil, nil }}},
		"org.example.Shop": {"org.example.Cluster": methods},
	}
}

func prepared(t *testing.T, methods map[string]muranopl.NativeMethod, source testSource, applications ...string) (*muranopl.Interpreter, *muranopl.Object) {
	t.Helper()
	classes := muranopl.NewClasses(source)
	root, problems := muranopl.Load(t.Context(), classes, parse(t, environment(applications...)))
	require.Empty(t, problems)
	return muranopl.NewInterpreter(classes, bodies(methods)), root.Objects("applications")[0]
}

func TestAMethodIsCalledWithPreparedArguments(t *testing.T) {
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"scaleUp": func(_ context.Context, call muranopl.Call) (any, error) {
			return []any{call.Object.ID(), call.Method.Name, call.Args["by"]}, nil
		},
	}, shop(t), cluster)
	result, err := interpreter.Invoke(t.Context(), object, "scaleUp", map[string]any{"by": "3"})
	require.NoError(t, err)
	require.Equal(t, []any{"c1", "scaleUp", int64(3)}, result)
	result, err = interpreter.Invoke(t.Context(), object, "scaleUp", nil)
	require.NoError(t, err)
	require.Equal(t, []any{"c1", "scaleUp", int64(1)}, result)

	for name, test := range map[string]struct {
		method string
		args   map[string]any
		kind   fault.Kind
		wanted string
	}{
		"an argument that breaks its contract": {"scaleUp", map[string]any{"by": 0}, fault.Invalid,
			"argument by: org.example.Cluster.scaleUp wants int().notNull().check($ > 0), found 0"},
		"an argument too many": {"scaleUp", map[string]any{"to": 0}, fault.Invalid, "method org.example.Cluster.scaleUp has no argument to"},
		"no such method":       {"dance", nil, fault.NotFound, "class org.example.Cluster has no method dance"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := interpreter.Invoke(t.Context(), object, test.method, test.args)
			require.EqualError(t, err, test.wanted)
			require.Equal(t, test.kind, fault.KindOf(err))
		})
	}
}

func TestAMethodWithoutBodyReturnsNullAndOneInMuranoPLRuns(t *testing.T) {
	interpreter, object := prepared(t, nil, shop(t), cluster)
	result, err := interpreter.Invoke(t.Context(), object, "abstract", nil)
	require.NoError(t, err)
	require.Nil(t, result)
	_, err = interpreter.Invoke(t.Context(), object, "withBody", nil)
	require.EqualError(t, err, "method org.example.Cluster.deploy is native and has no body in this Burano")
	var exception *muranopl.Exception
	require.ErrorAs(t, err, &exception)
	require.Equal(t, []string{"Exception"}, exception.Names)
	_, err = interpreter.Invoke(t.Context(), object, "deploy", nil)
	require.EqualError(t, err, "method org.example.Cluster.deploy is native and has no body in this Burano")
}

func TestAPanicInAMethodIsAnErrorOfItsName(t *testing.T) {
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"deploy": func(context.Context, muranopl.Call) (any, error) { panic("oh no") },
	}, shop(t), cluster)
	_, err := interpreter.Invoke(t.Context(), object, "deploy", nil)
	require.ErrorContains(t, err, "method org.example.Cluster.deploy: Burano itself failed: oh no")
}

func TestAnUploadedClassInheritsNativeMethodsButHasNoneItself(t *testing.T) {
	source := shop(t).with("org.other.Mine", `
Namespaces: {=: org.other, shop: org.example}
Name: Mine
Extends: shop:Cluster
Methods:
  mine:
    Native: true
`)
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"deploy": func(_ context.Context, call muranopl.Call) (any, error) { return call.Object.Class().Name, nil },
	}, source, `{"?": {"type": "org.other.Mine", "id": "m"}, "name": "mine", "nodeCount": 1, "minionNodes": [
		{"?": {"type": "org.example.Node", "id": "n"}, "instance": {"?": {"type": "org.example.Instance", "id": "i"}, "name": "a", "flavor": "f"}}]}`)
	result, err := interpreter.Invoke(t.Context(), object, "deploy", nil)
	require.NoError(t, err)
	require.Equal(t, "org.other.Mine", result)
	require.True(t, object.Class().IsEmbedded("org.example.Cluster"), "it extends the embedded class")
	require.False(t, object.Class().IsEmbedded("org.other.Mine"))
	result, err = interpreter.Invoke(t.Context(), object, "mine", nil)
	require.NoError(t, err)
	require.Nil(t, result)
}

func TestOnlyPublicMethodsAreActions(t *testing.T) {
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"scaleUp": func(context.Context, muranopl.Call) (any, error) { return "done", nil },
	}, shop(t), cluster)
	result, err := interpreter.InvokeAction(t.Context(), object, "scaleUp", nil)
	require.NoError(t, err)
	require.Equal(t, "done", result)
	_, err = interpreter.InvokeAction(t.Context(), object, "abstract", nil)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	_, err = interpreter.InvokeAction(t.Context(), object, ".destroy", nil)
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func TestCallsOfAMethodOfAnObjectWaitForEachOther(t *testing.T) {
	var running, most atomic.Int32
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"deploy": func(ctx context.Context, call muranopl.Call) (any, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			return call.Interpreter.Invoke(ctx, call.Object, "scaleUp", nil)
		},
		"scaleUp": func(context.Context, muranopl.Call) (any, error) { return nil, nil },
	}, shop(t), cluster)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := interpreter.Invoke(t.Context(), object, "deploy", nil)
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, most.Load())
}

func TestAMethodMayCallItselfAlsoFromItsGoroutines(t *testing.T) {
	depth := atomic.Int32{}
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"deploy": func(ctx context.Context, call muranopl.Call) (any, error) {
			if depth.Add(1) > 3 {
				return nil, nil
			}
			results := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := call.Interpreter.Invoke(ctx, call.Object, "deploy", nil)
					results <- err
				}()
			}
			return nil, errors.Join(<-results, <-results)
		},
	}, shop(t), cluster)
	_, err := interpreter.Invoke(t.Context(), object, "deploy", nil)
	require.NoError(t, err)
}

func TestWaitingForACallEndsWithTheContext(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	interpreter, object := prepared(t, map[string]muranopl.NativeMethod{
		"deploy": func(context.Context, muranopl.Call) (any, error) {
			close(inside)
			<-leave
			return nil, nil
		},
	}, shop(t), cluster)
	first := make(chan error)
	go func() {
		_, err := interpreter.Invoke(t.Context(), object, "deploy", nil)
		first <- err
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := interpreter.Invoke(ctx, object, "deploy", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(leave)
	require.NoError(t, <-first)
}

func TestNativesAreCheckedBothWays(t *testing.T) {
	source := shop(t)
	packages := []muranopl.Package{source[0], source[1]}
	none := func(context.Context, muranopl.Call) (any, error) { return nil, nil }
	all := map[string]muranopl.NativeMethod{"deploy": none, "scaleUp": none, "broken": none}
	require.NoError(t, muranopl.CheckNatives(t.Context(), muranopl.NewClasses(source), packages, bodies(all)))

	err := muranopl.CheckNatives(t.Context(), muranopl.NewClasses(source), packages,
		bodies(map[string]muranopl.NativeMethod{"deploy": none, "scaleUp": none, "dance": none}))
	require.ErrorContains(t, err, "method org.example.Cluster.broken of package org.example.Shop (Classes/Some.yaml:")
	require.ErrorContains(t, err, "there is a body in Go for org.example.Cluster.dance of package org.example.Shop, but no embedded class declares it native")
}

func TestNativeCodeMakesObjects(t *testing.T) {
	interpreter, object := prepared(t, nil, shop(t), cluster)
	network, err := interpreter.New(t.Context(), "org.example.Instance", object, map[string]any{"name": "x", "flavor": "f"})
	require.NoError(t, err)
	require.Same(t, object, network.Owner())
	_, err = interpreter.New(t.Context(), "org.example.Instance", object, map[string]any{"name": "x"})
	require.ErrorContains(t, err, "make an object of class org.example.Instance: flavor: org.example.Instance.flavor wants string().notNull(), found null: give a flavor")
}
