package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/nodes/plan"
)

func TestErrorsNameNodeAndStepAndOnlyDependentsAreSkipped(t *testing.T) {
	var p plan.Plan
	boom := errors.New("boom")
	ok := func(context.Context) error { return nil }
	p.Add(
		plan.Step{Name: "files", Node: "a", Run: func(context.Context) error { return boom }},
		plan.Step{Name: "start", Node: "a", After: []string{"a/files"}, Run: ok},
		plan.Step{Name: "files", Node: "b", Run: ok},
		plan.Step{Name: "start", Node: "b", After: []string{"b/files"}, Run: ok},
		plan.Step{Name: "all", After: []string{"a/start", "b/start"}, Run: ok},
	)
	records, err := p.Run(t.Context())
	require.ErrorIs(t, err, boom)
	require.EqualError(t, err, "a: files: boom")
	outcomes := map[string]plan.Outcome{}
	for _, r := range records {
		outcomes[r.ID()] = r.Outcome
	}
	require.Equal(t, map[string]plan.Outcome{"a/files": plan.Failed, "a/start": plan.Skipped, "b/files": plan.Done, "b/start": plan.Done, "all": plan.Skipped}, outcomes)
}

func TestACancelledRunSaysWhy(t *testing.T) {
	var p plan.Plan
	why := errors.New("the user pressed stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	p.Add(plan.Step{Name: "one", Run: func(context.Context) error { cancel(why); return nil }})
	p.Add(plan.Step{Name: "two", After: []string{"one"}, Run: func(context.Context) error { return nil }})
	_, err := p.Run(ctx)
	require.ErrorIs(t, err, why)
}

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	for want, steps := range map[string][]plan.Step{
		`step "a" is in the plan twice`:                       {{Name: "a"}, {Name: "a"}},
		`step "a" depends on "n/b", which is not in the plan`: {{Name: "a", After: []string{"n/b"}}},
		`steps wait for each other: n/a, n/b`:                 {{Node: "n", Name: "a", After: []string{"n/b"}}, {Node: "n", Name: "b", After: []string{"n/a"}}, {Name: "c"}},
	} {
		var p plan.Plan
		p.Add(steps...)
		_, err := p.Run(t.Context())
		require.EqualError(t, err, want)
	}
}

func TestTheCriticalPathIsTheChainThatDecidedTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { <-time.After(d); return nil }
		}
		var p plan.Plan
		p.Add(
			plan.Step{Name: "boot", Run: sleep(2 * time.Second)},
			plan.Step{Name: "keys", Run: sleep(time.Second)},
			plan.Step{Name: "etcd", After: []string{"keys", "boot"}, Run: sleep(time.Second)},
			plan.Step{Name: "images", After: []string{"boot"}, Run: sleep(2 * time.Second)},
			plan.Step{Name: "api", After: []string{"etcd"}, Run: sleep(5 * time.Second)},
			plan.Step{Name: "kubelet", After: []string{"images", "api"}, Run: sleep(time.Second)},
		)
		records, err := p.Run(t.Context())
		require.NoError(t, err)
		var names []string
		for _, r := range plan.CriticalPath(records) {
			names = append(names, fmt.Sprintf("%s %s", r.ID(), r.Took()))
		}
		require.Equal(t, []string{"boot 2s", "etcd 1s", "api 5s", "kubelet 1s"}, names)
	})
}

// Whatever the graph: a step begins after all it depends on has been done, each step runs at most once,
// and exactly the failed steps' descendants are skipped.
func TestOrderAndSkippingHoldForAnyGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 15).Draw(rt, "steps")
		var p plan.Plan
		var mu sync.Mutex
		var finished []string
		fails := map[string]bool{}
		skipped := map[string]bool{}
		steps := make([]plan.Step, n)
		for i := range n {
			name := fmt.Sprint(i)
			var after []string
			if i > 0 {
				for _, d := range rapid.SliceOfDistinct(rapid.IntRange(0, i-1), rapid.ID[int]).Draw(rt, "after") {
					after = append(after, fmt.Sprint(d))
				}
			}
			fails[name] = rapid.IntRange(0, 9).Draw(rt, "fails") == 0
			skipped[name] = slices.ContainsFunc(after, func(id string) bool { return fails[id] || skipped[id] })
			steps[i] = plan.Step{Name: name, After: after, Run: func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range after {
					if !slices.Contains(finished, id) {
						rt.Errorf("%s began before %s had ended", name, id)
					}
				}
				if slices.Contains(finished, name) {
					rt.Errorf("%s ran twice", name)
				}
				finished = append(finished, name)
				if fails[name] {
					return errors.New("failed")
				}
				return nil
			}}
		}
		for _, i := range rapid.Permutation(steps).Draw(rt, "order") {
			p.Add(i)
		}
		records, err := p.Run(context.Background())
		anyFailed := false
		for _, r := range records {
			want := plan.Done
			switch {
			case skipped[r.Name]:
				want = plan.Skipped
			case fails[r.Name]:
				want = plan.Failed
				anyFailed = true
			}
			require.Equal(rt, want, r.Outcome, r.Name)
		}
		require.Equal(rt, anyFailed, err != nil)
		path := plan.CriticalPath(records)
		for i := 1; i < len(path); i++ {
			require.Contains(rt, path[i].After, path[i-1].ID())
		}
	})
}

func TestAPanicIsTheErrorOfItsStep(t *testing.T) {
	var p plan.Plan
	done := false
	p.Add(
		plan.Step{Name: "files", Node: "a", Run: func(context.Context) error { panic("oh no") }},
		plan.Step{Name: "start", Node: "a", After: []string{"a/files"}, Run: func(context.Context) error { return nil }},
		plan.Step{Name: "files", Node: "b", Run: func(context.Context) error { done = true; return nil }},
	)
	records, err := p.Run(t.Context())
	require.EqualError(t, err, "a: files: Burano itself failed: oh no. Please report this as a defect")
	require.True(t, done, "what is independent goes on")
	require.Len(t, records, 3)
}
