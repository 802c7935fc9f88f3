package hot

import (
	"sync/atomic"

	"github.com/burano/burano/catalog/yaql"
)

// Bounds of the results of the functions of one template, or of one resource. Heat's own limits are of the template and its results (max_template_size,
// 512 KiB; max_json_body_size, 1 MiB), so that accepted templates are far below.
const (
	maxMade  = 64 << 20 // bytes of all results, including the results of nested functions
	maxSteps = 2_000_000
)

// room is the rest of the bounds. Functions multiply: a list in a list, a text in each place of another, a condition of two conditions.
type room struct{ bytes, steps atomic.Int64 }

// Bounded returns a scope whose evaluations have bounds together. Each evaluation of another scope has bounds of its own.
func (s Scope) Bounded() Scope {
	s.room = &room{}
	s.room.bytes.Store(maxMade)
	s.room.steps.Store(maxSteps)
	return s
}

func (s Scope) bounded() Scope {
	if s.room == nil {
		return s.Bounded()
	}
	return s
}

// take takes bytes, and fails when there are no more.
func (s Scope) take(bytes int64) error {
	if s.room.bytes.Add(-bytes) < 0 {
		return wrong("what it makes has more than %d MiB", maxMade>>20)
	}
	return nil
}

// step takes steps, such as comparisons.
func (s Scope) step(steps int) error {
	if s.room.steps.Add(-int64(steps)) < 0 {
		return wrong("it takes more than %d steps: conditions, functions and comparisons of lists, each as often as it is used", maxSteps)
	}
	return nil
}

// made takes the bytes of a value.
func (s Scope) made(value any) error {
	return s.take(int64(yaql.Size(value, int(s.room.bytes.Load()))))
}

// text is Text of a value, in bounds.
func (s Scope) text(value any) (string, error) {
	if err := s.made(value); err != nil {
		return "", err
	}
	return Text(value), nil
}

// shown is a value in an error.
func shown(value any) string {
	const most = 1 << 10
	if yaql.Size(value, most) > most {
		return "a value of more than 1 KiB"
	}
	return Text(value)
}
