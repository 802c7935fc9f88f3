package yaql

import (
	"context"
	"runtime"
	"strings"
	"unsafe"
)

// Meter receives the cost of evaluations while they run. It is safe for concurrent use.
type Meter interface {
	// Spend gets the steps that an evaluation took since its last report, and the bytes of its new values. An error ends the evaluation.
	Spend(steps, bytes int) error
	// Ended gets, at the end of an evaluation, its cost since the last report, and the total of reported bytes: its values are now held by others, or
	// garbage.
	Ended(steps, bytes, told int) error
}

// MeterKey is the key under which the context of an evaluation has its Meter.
type MeterKey struct{}

const (
	// tellSteps and tellBytes are the cost between two reports to the meter.
	tellSteps, tellBytes = 256, 64 << 10
	// yieldSteps is how many steps an evaluation takes before it lets others have the processor: some tenths of a millisecond.
	yieldSteps = 4096
)

// cost is the cost of an evaluation until now, and its limits.
type cost struct {
	ctx    context.Context
	limits Limits
	steps  int
	memory int

	meter                Meter // nil for none
	toldSteps, toldBytes int   // that it knows of
}

// tell reports the cost since the last report to the meter.
func (c *cost) tell() error {
	steps, bytes := c.steps-c.toldSteps, c.memory-c.toldBytes
	c.toldSteps, c.toldBytes = c.steps, c.memory
	return c.meter.Spend(steps, bytes)
}

// pause is called once in a while: it ends a cancelled evaluation, and yields the processor.
func (c *cost) pause() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.steps%yieldSteps == 0 {
		runtime.Gosched()
	}
	if c.meter == nil {
		return nil
	}
	return c.tell()
}

// ended reports to the meter that the evaluation ended with err.
func (c *cost) ended(err error) error {
	if c.meter == nil {
		return err
	}
	if over := c.meter.Ended(c.steps-c.toldSteps, c.memory-c.toldBytes, c.toldBytes); err == nil {
		return over
	}
	return err
}

// longText is the length from which on a text is checked for shared memory.
const longText = 1 << 10

// apart copies texts that are small parts of a long argument, so that keeping a part does not keep the whole.
func apart(value any, args []any) any {
	var long string
	for _, arg := range args {
		if text, ok := arg.(string); ok && len(text) >= longText && len(text) > len(long) {
			long = text
		}
	}
	if long == "" {
		return value
	}
	switch v := value.(type) {
	case string:
		if smallPart(v, long) {
			return strings.Clone(v)
		}
	case []any:
		var made []any
		for n, item := range v {
			text, ok := item.(string)
			if !ok || !smallPart(text, long) {
				continue
			}
			if made == nil {
				made = append(make([]any, 0, len(v)), v...)
			}
			made[n] = strings.Clone(text)
		}
		if made != nil {
			return made
		}
	}
	return value
}

func smallPart(text, of string) bool {
	if text == "" || len(text) > len(of)/2 {
		return false
	}
	start, at := uintptr(unsafe.Pointer(unsafe.StringData(of))), uintptr(unsafe.Pointer(unsafe.StringData(text)))
	return at >= start && at < start+uintptr(len(of))
}
