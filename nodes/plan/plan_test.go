package plan_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	ok := func(context.Context, plan.Progress) error { return nil }
	p.Add(
		plan.Step{Name: "files", Node: "a", Run: func(context.Context, plan.Progress) error { return boom }},
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
	p.Add(plan.Step{Name: "one", Run: func(context.Context, plan.Progress) error { cancel(why); return nil }})
	p.Add(plan.Step{Name: "two", After: []string{"one"}, Run: func(context.Context, plan.Progress) error { return nil }})
	_, err := p.Run(ctx)
	require.ErrorIs(t, err, why)
}

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	for want, steps := range map[string][]plan.Step{
		`step "a" is in the plan twice`:                       {{Name: "a"}, {Name: "a"}},
		`step "a" depends on "n/b", which is not in the plan`: {{Name: "a", After: []string{"n/b"}}},
		`steps wait for each other: n/a, n/b`:                 {{Node: "n", Name: "a", After: []string{"n/b"}}, {Node: "n", Name: "b", Soft: []plan.Soft{{ID: "n/a"}}}, {Name: "c"}},
	} {
		var p plan.Plan
		p.Add(steps...)
		_, err := p.Run(t.Context())
		require.EqualError(t, err, want)
	}
}

func TestTheCriticalPathIsTheChainThatDecidedTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) func(context.Context, plan.Progress) error {
			return func(context.Context, plan.Progress) error { <-time.After(d); return nil }
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

// Whatever the graph: a step begins after all its dependencies are done and all its soft ones have ended. No two steps with one mutex run at a time, and
// each step runs at most once. Exactly the failed steps' descendants are skipped, and a soft dependency has none.
func TestOrderAndSkippingHoldForAnyGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 15).Draw(rt, "steps")
		var p plan.Plan
		var mu sync.Mutex
		var finished []string
		held := map[string]bool{}
		fails := map[string]bool{}
		skipped := map[string]bool{}
		steps := make([]plan.Step, n)
		for i := range n {
			name := fmt.Sprint(i)
			var after []string
			var soft []plan.Soft
			if i > 0 {
				for _, d := range rapid.SliceOfDistinct(rapid.IntRange(0, i-1), rapid.ID[int]).Draw(rt, "after") {
					after = append(after, fmt.Sprint(d))
				}
				for _, d := range rapid.SliceOfDistinct(rapid.IntRange(0, i-1), rapid.ID[int]).Draw(rt, "soft") {
					soft = append(soft, plan.Soft{ID: fmt.Sprint(d), For: time.Minute})
				}
			}
			mutexes := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.ID[string]).Draw(rt, "mutexes")
			fails[name] = rapid.IntRange(0, 9).Draw(rt, "fails") == 0
			skipped[name] = slices.ContainsFunc(after, func(id string) bool { return fails[id] || skipped[id] })
			steps[i] = plan.Step{Name: name, After: after, Soft: soft, Mutexes: mutexes, Run: func(_ context.Context, done plan.Progress) error {
				mu.Lock()
				for _, id := range after {
					if !slices.Contains(finished, id) || !done(id) {
						rt.Errorf("%s began before %s had ended", name, id)
					}
				}
				for _, one := range soft {
					if !slices.Contains(finished, one.ID) && !skipped[one.ID] {
						rt.Errorf("%s began before %s had ended", name, one.ID)
					}
					if done(one.ID) != (!fails[one.ID] && !skipped[one.ID]) {
						rt.Errorf("%s is told wrongly how %s ended", name, one.ID)
					}
				}
				for _, mutex := range mutexes {
					if held[mutex] {
						rt.Errorf("%s runs beside another step that holds %s", name, mutex)
					}
					held[mutex] = true
				}
				if slices.Contains(finished, name) {
					rt.Errorf("%s ran twice", name)
				}
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				defer mu.Unlock()
				for _, mutex := range mutexes {
					held[mutex] = false
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
			require.Contains(rt, path[i].Waited, path[i-1].ID())
		}
	})
}

func TestAPanicIsTheErrorOfItsStep(t *testing.T) {
	var p plan.Plan
	done := false
	p.Add(
		plan.Step{Name: "files", Node: "a", Run: func(context.Context, plan.Progress) error { panic("oh no") }},
		plan.Step{Name: "start", Node: "a", After: []string{"a/files"}, Run: func(context.Context, plan.Progress) error { return nil }},
		plan.Step{Name: "files", Node: "b", Run: func(context.Context, plan.Progress) error { done = true; return nil }},
	)
	records, err := p.Run(t.Context())
	require.EqualError(t, err, "a: files: Burano itself failed: oh no. Please report this as a defect")
	require.True(t, done, "what is independent goes on")
	require.Len(t, records, 3)
}

// A soft dependency that does not come delays no step for longer than its limit; a useless one is not waited for.
func TestASoftDependencyIsWaitedForUntilItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := func(d time.Duration, err error) func(context.Context, plan.Progress) error {
			return func(context.Context, plan.Progress) error { <-time.After(d); return err }
		}
		var through []string
		var p plan.Plan
		p.Add(
			plan.Step{Name: "master", Run: takes(time.Second, nil)},
			plan.Step{Node: "good", Name: "connect", Run: takes(2*time.Second, nil)},
			plan.Step{Node: "bad", Name: "connect", Run: takes(3*time.Second, errors.New("no sshd"))},
			plan.Step{Node: "slow", Name: "connect", Run: takes(time.Hour, nil)},
			plan.Step{Node: "slow", Name: "join", After: []string{"slow/connect"}, Run: takes(0, nil)},
			plan.Step{Name: "learners", After: []string{"master"},
				Soft: []plan.Soft{{ID: "good/connect", For: 30 * time.Second}, {ID: "bad/connect", For: 30 * time.Second}, {ID: "slow/connect", For: 30 * time.Second}},
				Run: func(_ context.Context, done plan.Progress) error {
					for _, id := range []string{"good/connect", "bad/connect", "slow/connect"} {
						if done(id) {
							through = append(through, id)
						}
					}
					return nil
				}},
			plan.Step{Name: "voters", After: []string{"learners"},
				Soft: []plan.Soft{{ID: "slow/join", For: time.Minute, When: func(done plan.Progress) bool { return done("slow/connect") }}}, Run: takes(0, nil)},
		)
		began := time.Now()
		records, err := p.Run(t.Context())
		require.EqualError(t, err, "bad: connect: no sshd")
		require.Equal(t, []string{"good/connect"}, through)
		for _, r := range records {
			switch r.ID() {
			case "learners", "voters":
				require.Equal(t, 31*time.Second, r.Started.Sub(began), r.ID())
			}
			if r.ID() == "learners" {
				require.Equal(t, []string{"master", "good/connect", "bad/connect"}, r.Waited)
			}
		}
	})
}

func TestTheCriticalPathGoesThroughSoftDependenciesAndMutexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := func(d time.Duration) func(context.Context, plan.Progress) error {
			return func(context.Context, plan.Progress) error { <-time.After(d); return nil }
		}
		var p plan.Plan
		p.Add(
			plan.Step{Name: "short", Run: takes(time.Second)},
			plan.Step{Name: "long", Run: takes(4 * time.Second)},
			plan.Step{Name: "first", After: []string{"short"}, Soft: []plan.Soft{{ID: "long", For: time.Minute}}, Mutexes: []string{"turn"}, Run: takes(5 * time.Second)},
			plan.Step{Name: "early", After: []string{"short"}, Run: takes(4 * time.Second)},
			plan.Step{Name: "second", After: []string{"early"}, Mutexes: []string{"turn"}, Run: takes(time.Second)},
		)
		records, err := p.Run(t.Context())
		require.NoError(t, err)
		var names []string
		for _, r := range plan.CriticalPath(records) {
			names = append(names, r.ID())
		}
		require.Equal(t, []string{"long", "first", "second"}, names)
	})
}

// A step that waits for its turn does not begin when the run is stopped.
func TestWhoWaitsForATurnIsSkippedWhenTheRunIsStopped(t *testing.T) {
	why := errors.New("the user pressed stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	var p plan.Plan
	stop := func(ctx context.Context, _ plan.Progress) error { cancel(why); <-ctx.Done(); return context.Cause(ctx) }
	p.Add(plan.Step{Name: "one", Mutexes: []string{"turn"}, Run: stop}, plan.Step{Name: "two", Mutexes: []string{"turn"}, Run: stop})
	records, err := p.Run(ctx)
	require.ErrorIs(t, err, why)
	outcomes := []plan.Outcome{records[0].Outcome, records[1].Outcome}
	slices.Sort(outcomes)
	require.Equal(t, []plan.Outcome{plan.Failed, plan.Skipped}, outcomes)
}

func TestAPartOfAPlanHasWhatItsStepsNeed(t *testing.T) {
	p := &plan.Plan{}
	p.Add(plan.Step{Name: "a", Node: "1"}, plan.Step{Name: "b", Node: "1", After: []string{"1/a"}}, plan.Step{Name: "a", Node: "2"},
		plan.Step{Name: "c", Node: "1", After: []string{"1/b"}, Soft: []plan.Soft{{ID: "2/a"}, {ID: "1/a"}}}, plan.Step{Name: "d", Node: "1", After: []string{"1/c"}})
	part := p.Only(func(step plan.Step) bool { return step.Name == "c" })
	var ids []string
	for _, step := range part.All() {
		ids = append(ids, step.ID())
	}
	require.Equal(t, []string{"1/a", "1/b", "1/c"}, ids)
	require.Equal(t, []plan.Soft{{ID: "1/a"}}, part.All()[2].Soft, "nobody waits for a step that is not there")
	require.Len(t, p.All()[3].Soft, 2, "the plan itself stays")
}
