package plan

import (
	"context"
	"slices"
	"time"

	"github.com/burano/burano/internal/panics"
)

// run is one run of a plan.
type run struct {
	records []Record
	index   map[string]int
	ended   []chan struct{}
	mutexes map[string]*mutex
}

// mutex is held by one step at a time.
type mutex struct {
	token chan struct{}
	last  string // the former holder; belongs to the holder
}

func newRun(steps []Step) *run {
	r := &run{records: make([]Record, len(steps)), index: make(map[string]int, len(steps)), ended: make([]chan struct{}, len(steps)), mutexes: map[string]*mutex{}}
	for i, step := range steps {
		r.records[i] = Record{Step: step, Outcome: Skipped}
		r.index[step.ID()] = i
		r.ended[i] = make(chan struct{})
		for _, name := range step.Mutexes {
			r.mutexes[name] = &mutex{token: make(chan struct{}, 1)}
		}
	}
	return r
}

// done is the run's Progress.
func (r *run) done(id string) bool {
	i, there := r.index[id]
	return there && closed(r.ended[i]) && r.records[i].Outcome == Done
}

func closed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// step waits for the dependencies of a step, and runs it.
func (r *run) step(ctx context.Context, i int) {
	record := &r.records[i]
	defer close(r.ended[i])
	for _, id := range record.After {
		<-r.ended[r.index[id]] // ends for certain: the graph has no circle
		if !r.done(id) {
			return
		}
	}
	waited := slices.Clone(record.After)
	waited = append(waited, r.soft(ctx, record.Step)...)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(record.Mutexes))) { // in one order, so that no two steps wait for each other
		mutex := r.mutexes[name]
		select {
		case mutex.token <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if mutex.last != "" {
			waited = append(waited, mutex.last)
		}
		mutex.last = record.ID()
		defer func() { <-mutex.token }()
	}
	if ctx.Err() != nil {
		return
	}
	record.Waited, record.Started = waited, time.Now()
	err := panics.Run(func() error { return record.Run(ctx, r.done) })
	record.Finished = time.Now()
	record.Outcome = Done
	if err != nil {
		record.Outcome, record.Err = Failed, err
	}
}

// soft waits for the soft dependencies of a step and returns the ended ones.
func (r *run) soft(ctx context.Context, step Step) []string {
	began := time.Now()
	var wanted []Soft
	for _, soft := range step.Soft {
		if soft.When == nil || soft.When(r.done) {
			wanted = append(wanted, soft)
		}
	}
	var ended []string
	for _, soft := range wanted {
		timer := time.NewTimer(soft.For - time.Since(began))
		channel := r.ended[r.index[soft.ID]]
		select {
		case <-channel:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if closed(channel) {
			ended = append(ended, soft.ID)
		}
	}
	return ended
}
