package muranopl_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

const holding = `
Namespaces: {=: org.other}
Name: Holding
Properties:
  held: {Contract: $, Usage: Runtime, Default: []}
  parts: {Contract: [$.class(Holding)], Usage: InOut, Default: []}
Methods:
  texts:
    Body:
      - $all: []
      - Repeat: 400
        Do:
          - $all: $all.append('x' * 1245184)
          - probe()
  lists:
    Body:
      - Repeat: 1900
        Do:
          - $part: new(Holding)
          - $.parts: $.parts.append($part)
          - $part.held: range(1900).toList()
          - probe()
  inAProperty:
    Body:
      - Repeat: 400
        Do:
          - $.held: $.held.append(dict(text => 'x' * 1000000))
          - probe()
  objects:
    Body:
      - Repeat: 1000
        Do:
          - $part: new(Holding)
          - $.parts: $.parts.append($part)
          - $part.held: ('x' * 1000000)
          - probe()
  smallPartsOfLongTexts:
    Body:
      - $all: []
      - Repeat: 400
        Do:
          - $all: $all.append(('x' * 1000000 + ',y').split(',').last())
          - probe()
      - Return: $all.len()
  abreast:
    Body:
      - Parallel: [$.texts(), $.texts(), $.texts(), $.texts()]
  everMoreAbreast:
    Body:
      - probe()
      - Parallel: [$.everMoreAbreast(), $.everMoreAbreast()]
  catches:
    Body:
      - Try: [$.texts()]
        Catch:
          - With: yaql.language.exceptions.MemoryQuotaExceededException
            As: e
            Do:
              - Return: with less
  letsGo:
    Body:
      - Repeat: 400
        Do:
          - $x: ('x' * 1000000)
          - $.held: [$x]
          - probe()
      - Return: done
  loops:
    Body:
      - Try:
          - While: true = true
            Do:
              - Try:
                  - $x: 1
                Catch:
                  - Do:
                      - $x: 2
        Catch:
          - Do:
              - Return: caught
        Finally:
          - Return: finally
  doesNothing:
    Body:
      - Repeat: 1000000000000
        Do: []
`

// holder runs methods of Holding under limits, and returns the maximum of bytes in use.
func holder(t *testing.T, limits muranopl.Limits) (invoke func(method string) (any, error), most func() uint64) {
	var mutex sync.Mutex
	var peak uint64
	turns := 0
	inUse := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapInuse + stats.StackInuse
	}
	probe := &yaql.Function{Name: "probe", Kind: yaql.AsFunction, Doc: "looks at the memory now and then", Call: func(*yaql.Invocation) (any, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if turns++; turns%16 == 0 {
			peak = max(peak, inUse())
		}
		return nil, nil
	}}
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(shop(t).with("org.other.Holding", holding)), nil, muranopl.WithFunctions(probe), muranopl.WithLimits(limits))
	object := mustStart(t, interpreter, map[string]any{"?": map[string]any{"type": "org.other.Holding"}})
	before := inUse()
	return func(method string) (any, error) { return interpreter.Invoke(t.Context(), object, method, nil) },
		func() uint64 { return max(peak, before) - before }
}

func TestCodeThatHoldsTooMuchMemoryEndsInAnExceptionThatNamesLimitAndSetting(t *testing.T) {
	const limit = 16 << 20
	for _, method := range []string{"texts", "lists", "inAProperty", "objects", "abreast"} {
		t.Run(method, func(t *testing.T) {
			invoke, most := holder(t, muranopl.Limits{Memory: limit})
			_, err := invoke(method)
			require.ErrorContains(t, err, "more than the 16 MiB of the setting muranopl-memory")
			var exception *muranopl.Exception
			require.ErrorAs(t, err, &exception)
			require.Equal(t, []string{"yaql.language.exceptions.MemoryQuotaExceededException"}, exception.Names)
			require.Less(t, most(), uint64(4*limit), "what is in use at most, with what four expressions make")
		})
	}
}

func TestLinesOfExecutionThatGrowInNumberEndToo(t *testing.T) {
	const limit = 16 << 20
	invoke, most := holder(t, muranopl.Limits{Memory: limit, Steps: 1_000_000})
	_, err := invoke("everMoreAbreast")
	require.Error(t, err)
	require.Less(t, most(), uint64(4*limit))
}

func TestCodeMayDoWithLessMemoryAndGoOn(t *testing.T) {
	invoke, _ := holder(t, muranopl.Limits{Memory: 16 << 20})
	for method, wanted := range map[string]any{"catches": "with less", "letsGo": "done", "smallPartsOfLongTexts": int64(400)} {
		result, err := invoke(method)
		require.NoError(t, err, method)
		require.Equal(t, wanted, result, method)
	}
	invoke, most := holder(t, muranopl.Limits{Memory: 16 << 20})
	_, err := invoke("smallPartsOfLongTexts")
	require.NoError(t, err)
	require.Less(t, most(), uint64(32<<20), "a part does not keep the whole")
}

func TestALoopWithoutEndIsEndedAndNothingCatchesThat(t *testing.T) {
	for _, method := range []string{"loops", "doesNothing"} {
		invoke, _ := holder(t, muranopl.Limits{Steps: 1_000_000})
		_, err := invoke(method)
		require.ErrorContains(t, err, "the code took more than 1000000 steps, the limit of the setting muranopl-steps", method)
	}
}
