package muranopl

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits limit the total cost of the code of one interpreter. Zero is no limit.
type Limits struct {
	Steps  int64 // instructions, and nodes of expressions that are evaluated
	Memory int64 // bytes of the values that the code holds at a time, roughly
}

// WithLimits limits the cost of the code. Beyond Memory an exception is raised, which code may catch when it can do with less; beyond Steps the run is
// over.
func WithLimits(limits Limits) InterpreterOption {
	return func(i *Interpreter) {
		if limits != (Limits{}) {
			i.meter = &meter{interpreter: i, limits: limits}
		}
	}
}

// errSteps is that the interpreter has taken all its steps: nothing catches it.
var errSteps = errors.New("too many steps")

// stepsExceeded is errSteps with the limit.
type stepsExceeded struct{ limit int64 }

func (e stepsExceeded) Error() string {
	return fmt.Sprintf("the code took more than %d steps, the limit of the setting muranopl-steps: look for a loop that does not end, or wait with sleep()", e.limit)
}

func (stepsExceeded) Is(target error) bool { return target == errSteps }

func (stepsExceeded) ExceptionNames() []string { return []string{"io.burano.StepsExceeded"} }

// callBytes is the cost of a running call, its Go stack included.
const callBytes = 8 << 10

// objectBytes is the cost of an object beside the values of its properties.
const objectBytes = 512

// meter accounts for the cost of an interpreter's code (yaql.Meter). It measures the held values exactly, by visiting all reachable ones, but only near
// the limit: when the last measurement and all later allocations together exceed it. So measuring costs little compared with allocating.
type meter struct {
	interpreter *Interpreter
	limits      Limits

	steps   atomic.Int64
	held    atomic.Int64 // bytes that were held at the last measuring
	made    atomic.Int64 // bytes that evaluations have made since
	running atomic.Int64 // bytes that evaluations made which have not ended
	calls   atomic.Int64 // calls and lines of execution that are there

	measuring sync.Mutex
}

// Spend records the cost of an evaluation.
func (m *meter) Spend(steps, bytes int) error {
	if err := m.step(int64(steps)); err != nil {
		return err
	}
	m.running.Add(int64(bytes))
	return m.check()
}

// Ended records the cost of a finished evaluation.
func (m *meter) Ended(steps, bytes, told int) error {
	if told != 0 {
		m.running.Add(-int64(told))
	}
	if bytes+told != 0 {
		m.made.Add(int64(bytes + told))
	}
	if err := m.step(int64(steps)); err != nil {
		return err
	}
	return m.check()
}

// keep accounts for a value that no evaluation made. m may be nil.
func (m *meter) keep(bytes int) error {
	if m == nil {
		return nil
	}
	m.made.Add(int64(bytes))
	return m.check()
}

// call accounts for a call or line of execution that begins (1) or ends (-1). m may be nil.
func (m *meter) call(change int64) {
	if m != nil {
		m.calls.Add(change)
	}
}

func (m *meter) step(steps int64) error {
	if taken := m.steps.Add(steps); m.limits.Steps > 0 && taken > m.limits.Steps {
		return stepsExceeded{m.limits.Steps}
	}
	return nil
}

// present are the bytes that are held, as far as they are known without looking.
func (m *meter) present() int64 { return m.held.Load() + m.running.Load() + m.calls.Load()*callBytes }

// check raises an exception when the code holds too much.
func (m *meter) check() error {
	if m.limits.Memory == 0 || m.present()+m.made.Load() <= m.limits.Memory {
		return nil
	}
	return m.measure()
}

func (m *meter) measure() error {
	m.measuring.Lock()
	defer m.measuring.Unlock()
	made := m.made.Load()
	if present := m.present(); present+made <= m.limits.Memory || present <= m.limits.Memory && made < m.limits.Memory/8 {
		return nil // another goroutine measured, or a moment ago it was little enough
	}
	w := newWeigher()
	w.interpreter(m.interpreter)
	m.held.Store(w.bytes)
	m.made.Add(-made)
	if err := m.step(w.looked); err != nil {
		return err
	}
	if present := m.present(); present > m.limits.Memory {
		return &Exception{Names: []string{yaqlExceptions + "MemoryQuotaExceededException"},
			Message: fmt.Sprintf("the code holds %d MiB at once, more than the %d MiB of the setting muranopl-memory: let go of values that are not needed any more, or hold less of them at a time",
				present>>20, m.limits.Memory>>20)}
	}
	return nil
}
