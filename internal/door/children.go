package door

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/turns"
)

// Children run work on strangers' input that cannot be cancelled, or that may take the process with it: each piece of work in a process of its own, with
// limits of memory, stack, processor and time. The process is a run of the same program, which calls ServeChild. Children are safe for concurrent use.
type Children struct {
	program string
	limits  Limits
	turns   *turns.Turns
}

// NewChildren returns children that are runs of a program, at most so many at a time, each within the limits. One project has at most half of the
// places.
func NewChildren(program string, places int, limits Limits) *Children {
	places = max(places, 1)
	return &Children{program: program, limits: limits.filled(), turns: turns.New(places, (places+1)/2)}
}

// Job is a piece of work.
type Job struct {
	Kind    string // one of those that the program knows
	Doing   string // for errors, such as "reading the chart"
	Project string // whose input it is
	Input   []byte
}

// Limits are those of one piece of work. A zero field has a default: 512 MiB of memory, 10 seconds of a processor, 30 seconds, 16 MiB of a result.
type Limits struct {
	Memory    int64         // bytes
	Processor time.Duration // whole seconds
	Time      time.Duration // from its start
	Result    int64         // bytes
}

func (l Limits) filled() Limits {
	return Limits{Memory: cmp.Or(l.Memory, 512<<20), Processor: cmp.Or(l.Processor, 10*time.Second), Time: cmp.Or(l.Time, 30*time.Second), Result: cmp.Or(l.Result, 16<<20)}
}

const (
	// childCommand is the command of the program that works as a child.
	childCommand = "child"
	// refused is the exit code of a child whose input is wrong. Its standard error has the reason.
	refused = 3
	// exhausted is that of a process that took all its time of a processor.
	exhausted = 4
	// maxComplaint is how many bytes are kept of a child's standard error.
	maxComplaint = 16 << 10
	// killTime is how long the output of a killed child is waited for.
	killTime = 5 * time.Second
)

// Run has a child do a piece of work, and returns its result. An input that is wrong is an error with the child's text; one that takes more than the
// limits is an *Exceeded error. The child is killed when the context ends.
func (c *Children) Run(ctx context.Context, job Job) ([]byte, error) {
	leave, err := c.turns.Enter(ctx, job.Project)
	if err != nil {
		return nil, fmt.Errorf("%s: it waits for its turn: %w", job.Doing, err)
	}
	defer leave()
	limits := c.limits
	tooLong := &Exceeded{What: job.Doing, Verb: "takes", Bound: limits.Time.String()}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, tooLong)
	defer cancel()
	command := exec.CommandContext(ctx, c.program, childCommand, job.Kind, strconv.FormatInt(limits.Memory, 10), strconv.Itoa(int(limits.Processor.Seconds())))
	result, complaint := &Buffer{Limit: limits.Result, What: "the result of " + job.Doing}, &head{}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(job.Input), result, complaint
	command.Env = []string{"GOTRACEBACK=none"} // no secrets of the server
	command.WaitDelay = killTime
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		return result.Bytes(), nil
	case result.Err() != nil:
		return nil, result.Err()
	case command.ProcessState == nil:
		return nil, fmt.Errorf("%s: start a process: %w", job.Doing, err)
	}
	return nil, limits.death(job.Doing, command, complaint.String())
}

// death is the error of a child that ended without a result.
func (l Limits) death(doing string, command *exec.Cmd, complaint string) error {
	state := command.ProcessState
	for sign, bound := range map[string]string{
		"stack overflow": Bytes(maxStack) + " of stack: it is nested too deeply", "out of memory": Bytes(l.Memory) + " of memory", "cannot allocate memory": Bytes(l.Memory) + " of memory",
	} {
		if strings.Contains(complaint, sign) && state.ExitCode() != refused {
			return &Exceeded{What: doing, Verb: "takes", Bound: bound}
		}
	}
	switch {
	case state.ExitCode() == refused:
		return errors.New(complaint)
	case state.ExitCode() == exhausted:
		return &Exceeded{What: doing, Verb: "takes", Bound: l.Processor.String() + " of a processor"}
	}
	first, _, _ := strings.Cut(complaint, "\n")
	return fmt.Errorf("%s: its process failed (%s): %s", doing, state, first)
}

// head keeps the first bytes of a text and passes over the rest, so that a child which complains at length is not held up.
type head struct{ bytes.Buffer }

func (h *head) Write(more []byte) (int, error) {
	h.Buffer.Write(more[:min(len(more), max(0, maxComplaint-h.Len()))])
	return len(more), nil
}
