package muranopl_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

const strands = `
Namespaces: {=: org.other}
Name: Strands
Properties:
  count: {Contract: $.int(), Usage: Runtime, Default: 0}
Methods:
  adds:
    Body:
      - $x: 0
      - Parallel:
          - Repeat: 300
            Do: &add
              - $x: $x + 1
              - $.count: $.count + 1
          - Repeat: 300
            Do: *add
          - Repeat: 300
            Do: *add
      - Return: [$x, $.count]
  selects:
    Body:
      - range(0, 100).pselect($this.mark())
      - Return: $.count
  mark:
    Body:
      - Repeat: 10
        Do: {$.count: $.count + 1}
  stores:
    Body:
      - Parallel:
          - Repeat: 50
            Do: $.store($.stored() + 1)
          - Repeat: 50
            Do: $.store($.stored() + 1)
      - Return: $.stored()
  store: {Native: prompt, Arguments: [{n: {Contract: $.int()}}]}
  stored: {Native: prompt}
  traces:
    Body:
      - $list: []
      - Parallel: &marks
          - Do:
              - $list: $list.append(a1)
              - sleep(0)
              - $list: $list.append(a2)
          - Do:
              - $list: $list.append(b1)
              - sleep(0)
              - $list: $list.append(b2)
          - Do:
              - $list: $list.append(c1)
              - sleep(0)
              - $list: $list.append(c2)
      - Return: $list
  tracesWithALimit:
    Body:
      - $list: []
      - Parallel: *marks
        Limit: 2
      - Return: $list
  meetings:
    Body:
      - Parallel:
          - $.left()
          - $.callsBack()
          - list(1).pselect($this.right())
          - Do:
              - sleep(0)
              - $.meetsBelow()
  meetsBelow: {Body: $.below()}
  left: {Native: true}
  right: {Native: true}
  above: {Native: true}
  below: {Native: true}
  callsBack: {Native: true}
`

// strandsObject is an object of the class above; its natives left, right, above and below end once all four have begun.
func strandsObject(t *testing.T) (*muranopl.Interpreter, *muranopl.Object) {
	var stored, met atomic.Int64
	all := make(chan struct{})
	meet := func(ctx context.Context, _ muranopl.Call) (any, error) {
		if met.Add(1) == 4 {
			close(all)
		}
		select {
		case <-all:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	natives := map[string]muranopl.NativeMethod{
		"store": func(_ context.Context, call muranopl.Call) (any, error) {
			stored.Store(call.Args["n"].(int64))
			return nil, nil
		},
		"stored": func(context.Context, muranopl.Call) (any, error) { return stored.Load(), nil },
		"left":   meet, "right": meet, "above": meet, "below": meet,
		"callsBack": func(ctx context.Context, call muranopl.Call) (any, error) {
			return call.Interpreter.Invoke(ctx, call.Object, "above", nil)
		},
	}
	source := shop(t).with("org.other.Strands", strands)
	source[len(source)-1].embedded = true
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), muranopl.Natives{"org.other.Strands": {"org.other.Strands": natives}})
	object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.other.Strands"}})
	require.Empty(t, problems)
	require.NoError(t, err)
	return interpreter, object
}

func TestStrandsInterleaveOnlyWhereTheyWait(t *testing.T) {
	for method, wanted := range map[string]any{
		"adds":             []any{int64(900), int64(900)},
		"selects":          int64(1000),
		"stores":           int64(100),
		"traces":           []any{"a1", "b1", "c1", "a2", "b2", "c2"},
		"tracesWithALimit": []any{"a1", "b1", "a2", "b2", "c1", "c2"},
	} {
		t.Run(method, func(t *testing.T) {
			interpreter, object := strandsObject(t)
			for name, prompt := range map[string]bool{"store": true, "stored": true, "left": false} {
				m, err := object.Class().Method(name)
				require.NoError(t, err)
				require.Equal(t, prompt, m.Prompt, name)
			}
			value, err := interpreter.Invoke(t.Context(), object, method, nil)
			require.NoError(t, err)
			require.Equal(t, wanted, value)
		})
	}
}

func TestMethodsInGoOfSeveralStrandsWaitAtTheSameTime(t *testing.T) {
	interpreter, object := strandsObject(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := interpreter.Invoke(ctx, object, "meetings", nil)
	require.NoError(t, err)
}
