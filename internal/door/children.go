package door

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Children run work on strangers' input that cannot be cancelled, or that may take the process with it: each piece of work in a process of its own, with
// limits of memory, stack, processor and time. The process is a run of the same program, which calls ServeChild. Children are safe for concurrent use.
type Children struct {
	program string
	places  int
	limits  Limits

	mutex   sync.Mutex
	running map[string]int // by project
	waiting []*turn        // in the order in which they came
}

// turn is a piece of work that waits for its place.
type turn struct {
	project string
	granted chan struct{}
}

// NewChildren returns children that are runs of a program, at most so many at a time, each within the limits. One project has at most half of the
// places.
func NewChildren(program string, places int, limits Limits) *Children {
	return &Children{program: program, places: max(places, 1), limits: limits.filled(), running: map[string]int{}}
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
	if err := c.enter(ctx, job.Project); err != nil {
		return nil, fmt.Errorf("%s: it waits for its turn: %w", job.Doing, err)
	}
	defer c.leave(job.Project)
	limits := c.limits
	tooLong := &Exceeded{What: job.Doing, Verb: "takes", Bound: limits.Time.String()}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, tooLong)
	defer cancel()
	command := exec.CommandContext(ctx, c.program, childCommand, job.Kind, strconv.FormatInt(limits.Memory, 10), strconv.Itoa(int(limits.Processor.Seconds())))
	result, complaint := &Buffer{Limit: limits.Result, What: "the result of " + job.Doing}, &head{}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(job.Input), result, complaint
	command.Env = []string{"GOTRACEBACK=none"} // no secrets of the server
	command.WaitDelay = killTime
	err := command.Run()
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

// share is how many places one project may have.
func (c *Children) share() int { return (c.places + 1) / 2 }

// enter waits for a place.
func (c *Children) enter(ctx context.Context, project string) error {
	own := &turn{project: project, granted: make(chan struct{})}
	c.mutex.Lock()
	c.waiting = append(c.waiting, own)
	c.grant()
	c.mutex.Unlock()
	select {
	case <-own.granted:
		return nil
	case <-ctx.Done():
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := slices.Index(c.waiting, own)
	if at < 0 {
		return nil // it was granted meanwhile, and Run sees that the context has ended
	}
	c.waiting = slices.Delete(c.waiting, at, at+1)
	return context.Cause(ctx)
}

// leave gives a place back.
func (c *Children) leave(project string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.running[project]--; c.running[project] == 0 {
		delete(c.running, project)
	}
	c.grant()
}

// grant gives free places to those who wait: the project with the fewest places comes first.
func (c *Children) grant() {
	for {
		taken, next := 0, -1
		for _, count := range c.running {
			taken += count
		}
		for i, one := range c.waiting {
			if has := c.running[one.project]; has < c.share() && (next < 0 || has < c.running[c.waiting[next].project]) {
				next = i
			}
		}
		if taken >= c.places || next < 0 {
			return
		}
		c.running[c.waiting[next].project]++
		close(c.waiting[next].granted)
		c.waiting = slices.Delete(c.waiting, next, next+1)
	}
}
