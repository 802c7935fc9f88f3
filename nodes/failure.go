package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

const (
	stepTries = 3 // how often a step is begun whose node goes away in the middle of it
	// A server that is going down still answers for a while.
	goingDown = 90 * time.Second
	diagnosis = 10 * time.Second
)

//go:embed scripts/diagnose.sh
var diagnoseScript string

// persist runs a step, each time at most for limit. It runs the step again when its node (or the master, through which most steps go) went away in the
// middle: a node that reboots comes back, and every step recognises finished work. A node that did not come back within Patience, or does not run, is not
// waited for again. The error gets the failure's traces on the node's disks, the cloud's state of its server, and the console of a node that cannot be
// reached.
func (c *servers) persist(ctx context.Context, node Node, name string, limit time.Duration, run func(context.Context) error) error {
	for try := 1; ; try++ {
		concerned := []Node{node}
		if !c.config.Alone() {
			concerned = append(concerned, c.master())
		}
		before := c.connectionsTo(concerned...)
		err := limited(ctx, limit, run)
		if err == nil || ctx.Err() != nil {
			return err
		}
		lost, found := c.diagnose(ctx, node, before, err)
		var away *ssh.UnreachableError
		var gone *ssh.LostError // also of a connection that was made only after the step had begun
		lost = (lost || errors.As(err, &gone)) && !errors.As(err, &away)
		if lost && try < stepTries {
			c.config.Report(ctx, node.Name, fmt.Sprintf("the connection was lost during %q (%v); the step is repeated, try %d of %d", name, err, try+1, stepTries))
			continue
		}
		if lost {
			err = fmt.Errorf("the connection was lost in each of %d tries: %w", stepTries, err)
		}
		if found != "" {
			separator := ". "
			if strings.Contains(err.Error(), "\n") {
				separator = "\n"
			}
			err = fmt.Errorf("%w%s%s", err, separator, found)
		}
		return err
	}
}

func limited(ctx context.Context, limit time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	return run(ctx)
}

// connectionTo is one connection to a node, as it was at some moment.
type connectionTo struct {
	node   Node
	client *ssh.Client
	number int
	lost   <-chan struct{}
	dead   bool // lost already
}

// connectionsTo notes the connections that there are to nodes.
func (c *servers) connectionsTo(nodes ...Node) []connectionTo {
	var all []connectionTo
	for i, node := range nodes {
		if slices.ContainsFunc(nodes[:i], func(other Node) bool { return other.Name == node.Name }) {
			continue
		}
		if client := c.connections.Made(node.Name); client != nil { // else it may be being made just now
			number, lost := client.Connection()
			all = append(all, connectionTo{node, client, number, lost, closed(lost)})
		}
	}
	return all
}

// gone is true if the connection ended since, or the one that replaced it did.
func (c connectionTo) gone() bool {
	_, lost := c.client.Connection()
	if c.dead {
		return c.renewed() && closed(lost)
	}
	return c.renewed() || closed(lost)
}

// renewed is true if another connection was made since.
func (c connectionTo) renewed() bool {
	number, _ := c.client.Connection()
	return number != c.number
}

func closed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// diagnose looks for the cause of a step's failure: whether a connection that it used was lost since before, and other problems of the node.
func (c *servers) diagnose(ctx context.Context, node Node, before []connectionTo, failure error) (lost bool, found string) {
	look, cancel := context.WithTimeout(ctx, diagnosis)
	defer cancel()
	var notes []string
	for _, connection := range before {
		if connection.gone() {
			lost = true
			continue
		}
		if connection.dead && !connection.renewed() {
			continue // not used since
		}
		out, err := connection.client.Run(look, ssh.Script{Name: "look for what is wrong", Body: diagnoseScript})
		switch {
		case err != nil:
			// Not even this works: the server hangs, or is on its way down.
			lost = connection.waitGone(ctx, diagnosis) || lost
		case strings.Contains(out, "state stopping"):
			lost = connection.waitGone(ctx, goingDown) || lost
		case connection.node.Name == node.Name:
			notes = append(notes, fullDisks(node, out)...)
		}
	}
	ask, done := context.WithTimeout(ctx, diagnosis)
	defer done()
	if state := c.config.Server(ask, node.Name); state.Note != "" {
		notes = append(notes, state.Note)
	}
	if neverAnswered(failure) {
		if lines := strings.TrimSpace(c.config.Console(ask, node.Name)); lines != "" {
			notes = append(notes, "the last lines of its console:\n"+lines)
		}
	}
	return lost, strings.Join(notes, "; ")
}

func (c connectionTo) waitGone(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.lost:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// neverAnswered is true if the node's console is the only source about it.
func neverAnswered(err error) bool {
	var unreachable *ssh.UnreachableError
	var login *ssh.LoginError
	return errors.As(err, &unreachable) || errors.As(err, &login)
}

func fullDisks(node Node, diagnosis string) []string {
	var notes []string
	for line := range strings.Lines(diagnosis) {
		if words := strings.Fields(line); len(words) >= 3 && words[0] == "full" {
			notes = append(notes, fmt.Sprintf("the file system %s of %s is full (%s left): free space there, or replace the node", words[1], node.Name, strings.Join(words[2:], " ")))
		}
	}
	return notes
}

// failures is the error of a deployment. For each node it has the first failed step, and only the names of later steps that failed for the same reason.
func failures(records []plan.Record, err error) error {
	var order []string
	first := map[string]*plan.Record{}
	rest := map[string][]plan.Record{}
	for i, record := range records {
		if record.Outcome != plan.Failed {
			continue
		}
		known := first[record.Node]
		switch {
		case known == nil:
			order = append(order, record.Node)
			first[record.Node] = &records[i]
		case record.Finished.Before(known.Finished):
			rest[record.Node] = append(rest[record.Node], *known)
			first[record.Node] = &records[i]
		default:
			rest[record.Node] = append(rest[record.Node], record)
		}
	}
	if len(order) == 0 {
		return err
	}
	var parts []string
	for _, node := range order {
		text := (&plan.StepError{Node: node, Name: first[node].Name, Err: first[node].Err}).Error()
		var then []string
		for _, record := range rest[node] {
			if followed(first[node].Err, record.Err) {
				then = append(then, record.Name)
			} else {
				parts = append(parts, (&plan.StepError{Node: node, Name: record.Name, Err: record.Err}).Error())
			}
		}
		if len(then) > 0 {
			text += fmt.Sprintf(" (and for the same reason: %s)", strings.Join(then, ", "))
		}
		parts = append(parts, text)
	}
	return &failure{text: strings.Join(parts, "\n"), err: err}
}

// followed is true if an error adds nothing to the one before it.
func followed(first, later error) bool {
	return first.Error() == later.Error() || connectionFailed(first) && connectionFailed(later)
}

func connectionFailed(err error) bool {
	var lost *ssh.LostError
	var unreachable *ssh.UnreachableError
	return errors.As(err, &lost) || errors.As(err, &unreachable)
}

// failure has one text for all that failed.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.err }
