// Package plan runs named steps that depend on each other, each as soon as its dependencies are done.
//
// A failed step cancels the steps that depend on it and no others. Independent steps go to their end, so that one run shows every failure and the next run
// finds as much done as possible.
//
// All waiting between steps is in the plan, as After, Soft and Mutexes of a Step, and none in the steps' functions. So the plan can be read and checked
// for circles, and its critical path explains how long a run took.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Step is one piece of work. Its identity is ID(Node, Name).
type Step struct {
	Name    string   // the work, in a few stable words: "etcd join"
	Node    string   // where; empty for work of no one node
	After   []string // identities of the steps that must be done before
	Soft    []Soft   // steps that are waited for without being needed
	Mutexes []string // of the steps that name one, one at a time runs, in the order in which they could begin
	// Run does the work. It may ask which steps are done, to see how far the steps in Soft have come.
	Run func(ctx context.Context, done Progress) error
}

// Soft is a step that another one waits for without needing it: until it has ended, well or not, but no longer than For after all of After is done. So one
// bad node delays nothing but itself.
type Soft struct {
	ID  string
	For time.Duration
	// When is asked once, when all of After is done: whether to wait at all. nil: always.
	When func(done Progress) bool
}

// Progress is true if a step of the plan is done by now.
type Progress func(id string) bool

// ID is a step's identity: "node/name", or the name alone for a step of no node.
func ID(node, name string) string {
	if node == "" {
		return name
	}
	return node + "/" + name
}

// ID is the step's identity.
func (s Step) ID() string { return ID(s.Node, s.Name) }

// before are the steps that are waited for.
func (s Step) before() []string {
	all := slices.Clone(s.After)
	for _, soft := range s.Soft {
		if !slices.Contains(all, soft.ID) {
			all = append(all, soft.ID)
		}
	}
	return all
}

// Outcome is how a step ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // something it depends on failed, or the run was cancelled before it began
)

// Record is the result of one step.
type Record struct {
	Step
	Outcome  Outcome
	Waited   []string  // identities of the steps that it waited for: After, steps of Soft that ended in time, and former holders of its mutexes
	Started  time.Time // zero when skipped
	Finished time.Time
	Err      error
}

// Took is the time from start to end.
func (r Record) Took() time.Duration { return r.Finished.Sub(r.Started) }

// StepError is the failure of one step. Its message names the node and the step.
type StepError struct {
	Node, Name string
	Err        error
}

func (e *StepError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Node, e.Name, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// Plan is a graph of steps. The zero value is empty and ready.
type Plan struct{ steps []Step }

// Add adds steps, in any order.
func (p *Plan) Add(steps ...Step) { p.steps = append(p.steps, steps...) }

// All returns the steps in the order in which they were added.
func (p *Plan) All() []Step { return slices.Clone(p.steps) }

// Only returns the plan of the chosen steps and of all steps that they need. It drops soft dependencies on other steps.
func (p *Plan) Only(chosen func(Step) bool) *Plan {
	all, kept := map[string]Step{}, map[string]bool{}
	for _, step := range p.steps {
		all[step.ID()] = step
	}
	var keep func(step Step)
	keep = func(step Step) {
		if kept[step.ID()] {
			return
		}
		kept[step.ID()] = true
		for _, id := range step.After {
			if needed, there := all[id]; there {
				keep(needed)
			}
		}
	}
	for _, step := range p.steps {
		if chosen(step) {
			keep(step)
		}
	}
	part := &Plan{}
	for _, step := range p.steps {
		if kept[step.ID()] {
			step.Soft = slices.DeleteFunc(slices.Clone(step.Soft), func(soft Soft) bool { return !kept[soft.ID] })
			part.Add(step)
		}
	}
	return part
}

// Steps returns the steps in an order in which they could run one after another.
// It fails when an identity is there twice, a dependency does not exist, or steps wait for each other.
func (p *Plan) Steps() ([]Step, error) {
	index := make(map[string]int, len(p.steps))
	for i, step := range p.steps {
		if _, there := index[step.ID()]; there {
			return nil, fmt.Errorf("step %q is in the plan twice", step.ID())
		}
		index[step.ID()] = i
	}
	waiting := make([]int, len(p.steps))
	followers := make([][]int, len(p.steps))
	for i, step := range p.steps {
		for _, id := range step.before() {
			before, there := index[id]
			if !there {
				return nil, fmt.Errorf("step %q depends on %q, which is not in the plan", step.ID(), id)
			}
			waiting[i]++
			followers[before] = append(followers[before], i)
		}
	}
	var ready []int
	for i, n := range waiting {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	ordered := make([]Step, 0, len(p.steps))
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		ordered = append(ordered, p.steps[i])
		for _, follower := range followers[i] {
			if waiting[follower]--; waiting[follower] == 0 {
				ready = append(ready, follower)
			}
		}
	}
	if len(ordered) == len(p.steps) {
		return ordered, nil
	}
	var circle []string
	for i, n := range waiting {
		if n > 0 {
			circle = append(circle, p.steps[i].ID())
		}
	}
	return nil, fmt.Errorf("steps wait for each other: %s", strings.Join(circle, ", "))
}

// Run runs the plan and returns a record for each step, in the order of Steps. The error joins a *StepError for each
// step that failed; skipped ones are not errors of their own. When ctx ends, running steps see it and no other begins.
func (p *Plan) Run(ctx context.Context) ([]Record, error) {
	steps, err := p.Steps()
	if err != nil {
		return nil, err
	}
	r := newRun(steps)
	var group sync.WaitGroup
	for i := range steps {
		group.Go(func() { r.step(ctx, i) })
	}
	group.Wait()
	records := r.records
	var failures []error
	for _, record := range records {
		if record.Outcome == Failed {
			failures = append(failures, &StepError{Node: record.Node, Name: record.Name, Err: record.Err})
		}
	}
	if len(failures) == 0 && ctx.Err() != nil && slices.ContainsFunc(records, func(r Record) bool { return r.Outcome == Skipped }) {
		failures = append(failures, context.Cause(ctx))
	}
	return records, errors.Join(failures...)
}

// CriticalPath returns the chain of steps that decided when the run ended, from its first step to its last. Before each step stands the last to end of the
// steps that it waited for.
func CriticalPath(records []Record) []Record {
	byID := make(map[string]Record, len(records))
	var last *Record
	for i, record := range records {
		if record.Outcome == Skipped {
			continue
		}
		byID[record.ID()] = record
		if last == nil || record.Finished.After(last.Finished) {
			last = &records[i]
		}
	}
	var chain []Record
	for last != nil {
		chain = append(chain, *last)
		var before *Record
		for _, id := range last.Waited {
			if record, there := byID[id]; there && (before == nil || record.Finished.After(before.Finished)) {
				before = &record
			}
		}
		last = before
	}
	slices.Reverse(chain)
	return chain
}
