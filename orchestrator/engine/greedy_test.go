package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator/engine"
)

// A project whose tasks hold much gets nothing new while memory is short, and other projects do.
func TestModelsOfTasksCountInMemory(t *testing.T) {
	guard := memory.NewGuard(func() bool { return true })
	requests := guard.Budget(100 << 20)
	h := newHouse(t)
	h.stop()
	h.memory = guard.Budget(100 << 20)
	h.start()
	letOn := h.world.Hold("deploy large")
	id := h.submitAs("greedy", "large", application("app-large", "large", map[string]any{"greeting": strings.Repeat("x", 4<<20)}))
	h.begun("deploy large", 1)
	var none *memory.None
	_, err := requests.Open("greedy")
	require.ErrorAs(t, err, &none)
	require.True(t, none.Process)
	require.Greater(t, none.Held, int64(8<<20))
	_, err = requests.Open("calm")
	require.NoError(t, err)
	letOn()
	h.finished(id)
	require.Eventually(t, func() bool { _, err := requests.Open("greedy"); return err == nil }, time.Minute, time.Millisecond, "when the task has ended it is given back")
}

// greedy is an application that takes all it can get.
const greedy = `
Namespaces: {=: org.greedy, std: io.murano}
Name: Greedy
Extends: std:Application
Properties:
  how: {Contract: $.string(), Default: forEver}
  kept: {Contract: $, Usage: InOut}
Methods:
  deploy:
    Body:
      - Match:
          forEver: [$.forEver()]
          holds: [$.holds()]
          returns: [$.returns()]
          holdsMany: [$.holdsMany()]
        Value: $.how
  forEver:
    Body:
      - While: true = true
        Do: [$x: 1 + 1]
  holds:
    Usage: Static
    Scope: Public
    Body:
      - $all: []
      - Repeat: 400
        Do:
          - $all: $all.append('x' * 1245184)
  manyReferences:
    Usage: Static
    Scope: Public
    Body:
      - $text: ('x' * 1500000)
      - $row: list($text) * 100
      - Return: list($row) * 100
  grows:
    Usage: Static
    Scope: Public
    Body:
      - $row: list(x) * 1000
      - $d: {}
      - Repeat: 1000
        Do:
          - $d[$d.len()]: $row
      - Return: done
  returns:
    Scope: Public
    Body:
      - Return: $.manyReferences()
  holdsMany:
    Body:
      - $.kept: $.manyReferences()
  loops:
    Usage: Static
    Scope: Public
    Body:
      - While: true = true
        Do: [$x: 1 + 1]
`

// greedyHouse has the package org.greedy beside enginetest's packages.
func greedyHouse(t *testing.T, house *house) *house {
	house.watched()
	uploaded, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml":       {Data: []byte("Format: 1.4\nType: Application\nFullName: org.greedy\nName: Greedy\nAuthor: tests\nTags: []\nClasses: {org.greedy.Greedy: Greedy.yaml}\n")},
		"Classes/Greedy.yaml": {Data: []byte(greedy)},
	})
	require.NoError(t, err)
	house.packages = append(house.packages, uploaded)
	return house
}

// greed is a greedy application.
func greed(how string) map[string]any {
	return map[string]any{"?": map[string]any{"id": "greedy", "type": "org.greedy.Greedy"}, "how": how}
}

func TestATaskThatHoldsTooMuchMemoryFailsWithTheNameOfTheSetting(t *testing.T) {
	h := newHouse(t)
	h.stop()
	greedyHouse(t, h).start()
	id := h.create("one")
	h.deploy(id, greed("holds"))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Contains(t, texts(h.reports(id, deployment), "error")[0], "more than the 128 MiB of the setting muranopl-memory")
}

func TestStaticActionsAreLimitedInMemoryStepsAndNumber(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.workers, h.code = 2, muranopl.Limits{Steps: 3_000_000, Memory: 32 << 20}
	greedyHouse(t, h).start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call := func(project, method string) error {
		_, err := h.engine.CallStatic(ctx, project, engine.ClassName{Name: "org.greedy.Greedy"}, method, nil)
		return err
	}
	require.ErrorContains(t, call("p", "holds"), "more than the 32 MiB of the setting muranopl-memory")
	require.ErrorContains(t, call("p", "loops"), "the limit of the setting muranopl-steps")

	h.stop()
	h.code.Steps = 1 << 40
	h.start()
	loop := make(chan error, 1)
	go func() {
		err := call("p", "loops")
		for fault.KindOf(err) == fault.TooMany { // the question below was first
			err = call("p", "loops")
		}
		loop <- err
	}()
	require.Eventually(t, func() bool { return fault.KindOf(call("p", "holds")) == fault.TooMany }, 20*time.Second, time.Millisecond, "half of two at once is one")
	require.ErrorContains(t, call("another", "holds"), "muranopl-memory", "which leaves one to others")
	cancel()
	require.ErrorIs(t, <-loop, context.Canceled)
}

// TestOneTextThatIsWrittenManyTimesIsRefusedBeforeItIsWritten has code share one text of 1.5 MB in 10,000 places: 1.5 MB for the meter, 15 GB as JSON.
func TestOneTextThatIsWrittenManyTimesIsRefusedBeforeItIsWritten(t *testing.T) {
	h := newHouse(t)
	h.stop()
	greedyHouse(t, h).start()
	class := engine.ClassName{Name: "org.greedy.Greedy"}
	_, err := h.engine.CallStatic(t.Context(), "p", class, "manyReferences", nil)
	require.EqualError(t, err, "the result of org.greedy.Greedy.manyReferences has more than 16 MiB: have the method return less, or a part at a time")
	require.Equal(t, fault.TooLarge, fault.KindOf(err))
	_, err = h.engine.CallStatic(t.Context(), "p", class, "grows", nil)
	require.ErrorContains(t, err, "a value holds more than 100000 others", "also one that is put together place by place")

	id := h.create("one")
	h.deploy(id, greed("holdsMany"))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Contains(t, texts(h.reports(id, deployment), "error")[0], "the environment's model has more than 64 MiB")
	h.deploy(id, greed("nothing"))
	require.Equal(t, "success", h.ended(id).State, "the environment can be changed as before")
	_, err = h.service.Actions().Call(t.Context(), demo, id, "greedy_returns", nil)
	require.NoError(t, err)
	deployment = h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Contains(t, texts(h.reports(id, deployment), "error")[0], "the result of returns has more than 16 MiB. What the action has made stays.")
}

func TestEndlessLoopsOfOneProjectLeaveWorkersToOthers(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.workers = 8
	greedyHouse(t, h).start()
	var looping []string
	for n := range 8 {
		looping = append(looping, h.submitAs("greedy", fmt.Sprint("loop-", n), greed("forEver")))
	}
	for n := range 6 {
		project := fmt.Sprint("modest-", n)
		h.finished(h.submit(project, project))
	}
	for _, id := range looping {
		list, err := h.service.Deployments().List(t.Context(), as("greedy"), id)
		require.NoError(t, err)
		require.Nil(t, list[0].Finished)
		require.NoError(t, h.service.Deployments().Cancel(t.Context(), as("greedy"), list[0].ID))
	}
	for _, id := range looping {
		h.finished(id)
	}
}
