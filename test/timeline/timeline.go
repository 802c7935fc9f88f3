// Package timeline computes from a deployment's native steps, as the API gives them, how its time was spent.
package timeline

import (
	"slices"
	"strings"
	"time"
)

// Step is one native step of a deployment as GET /burano/v1/deployments/{id}/steps returns it.
type Step struct {
	Name     string
	Started  time.Time
	Finished time.Time
}

// Split splits the step's name into the node, "" for a step of no node, and the phase, which is the same for all nodes.
func (s Step) Split() (node, phase string) {
	if node, phase, ok := strings.Cut(s.Name, ": "); ok {
		return node, phase
	}
	return "", s.Name
}

// Took is the time from the step's start to its end.
func (s Step) Took() time.Duration { return s.Finished.Sub(s.Started) }

// Phase is the steps of one kind, of all nodes.
type Phase struct {
	Name    string
	Steps   int
	From    time.Time     // the first start
	To      time.Time     // the last end
	Longest time.Duration // of one step
}

// Phases groups steps by kind, in the order of their first starts.
func Phases(steps []Step) []Phase {
	var phases []Phase
	for _, step := range steps {
		_, name := step.Split()
		at := slices.IndexFunc(phases, func(p Phase) bool { return p.Name == name })
		if at < 0 {
			at = len(phases)
			phases = append(phases, Phase{Name: name, From: step.Started, To: step.Finished})
		}
		p := &phases[at]
		p.Steps++
		if step.Started.Before(p.From) {
			p.From = step.Started
		}
		if step.Finished.After(p.To) {
			p.To = step.Finished
		}
		p.Longest = max(p.Longest, step.Took())
	}
	slices.SortStableFunc(phases, func(a, b Phase) int { return a.From.Compare(b.From) })
	return phases
}

// CriticalPath goes back from the step that ended last, each time to the step that ended last before its beginning.
func CriticalPath(steps []Step) []Step {
	var path []Step
	left := slices.Clone(steps)
	for len(left) > 0 {
		last := slices.MaxFunc(left, func(a, b Step) int { return a.Finished.Compare(b.Finished) })
		path = append(path, last)
		left = slices.DeleteFunc(left, func(one Step) bool { return one == last || one.Finished.After(last.Started) })
	}
	slices.Reverse(path)
	return path
}
