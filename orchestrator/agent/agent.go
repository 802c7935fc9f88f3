// Package agent holds the Go bodies of io.murano.system.Agent and of servers of applications: it reaches servers over SSH, and runs execution plans on them.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/execution"
	"github.com/burano/burano/orchestrator/task"
)

const (
	defaultPlanTimeout = time.Hour // as Murano's agent_timeout
	propertyHost       = "host"
	maxScriptLines     = 1000 // of one plan, in the log
)

// Class is io.murano.system.Agent: execution plans on the servers of applications.
type Class struct {
	runtime   planRuntime
	reports   task.Reports
	servers   reacher
	rehearsal bool
	folder    string // folder of plans on servers, for tests

	mutex   sync.Mutex
	last    map[string]chan struct{} // by the ids of servers: closed when the last plan that was asked for has ended
	counted map[string]int           // by the text that identifies a plan: how often the task ran it
	atEnd   bool                     // plans that are waited for only at the end
}

// planRuntime is the plans' access to a task.
type planRuntime interface {
	TaskID() string
	Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	AtEnd(do func(context.Context) error)
}

// reacher connects to the servers of applications.
type reacher interface {
	// Connection is the connection to an instance's server. It is the task's: the caller does not close it.
	Connection(ctx context.Context, instance *muranopl.Object) (*ssh.Client, error)
}

// New returns the class of agents, whose plans run on the servers of reacher. A rehearsal runs none.
func New(runtime planRuntime, reports task.Reports, servers reacher, rehearsal bool) *Class {
	return &Class{runtime: runtime, reports: reports, servers: servers, rehearsal: rehearsal, last: map[string]chan struct{}{}, counted: map[string]int{}}
}

// Methods are the bodies of io.murano.system.Agent.
func (a *Class) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		"call": a.call, "send": a.send, "callRaw": a.callRaw, "sendRaw": a.sendRaw,
		"isReady": a.isReady, "waitReady": a.waitReady, "ready": a.waitReady,
	}
}

// call runs the plan that a template makes.
func (a *Class) call(ctx context.Context, call muranopl.Call) (any, error) {
	plan, err := a.build(ctx, call)
	if err != nil || a.rehearsal {
		return nil, err
	}
	return a.run(ctx, call, plan)
}

func (a *Class) callRaw(ctx context.Context, call muranopl.Call) (any, error) {
	plan, err := execution.Parse(task.MapArgument(call, "plan"))
	if err != nil || a.rehearsal {
		return nil, err
	}
	return a.run(ctx, call, plan)
}

func (a *Class) send(ctx context.Context, call muranopl.Call) (any, error) {
	plan, err := a.build(ctx, call)
	if err != nil || a.rehearsal {
		return nil, err
	}
	a.background(ctx, call, plan)
	return nil, nil
}

func (a *Class) sendRaw(ctx context.Context, call muranopl.Call) (any, error) {
	plan, err := execution.Parse(task.MapArgument(call, "plan"))
	if err != nil || a.rehearsal {
		return nil, err
	}
	a.background(ctx, call, plan)
	return nil, nil
}

func (a *Class) build(ctx context.Context, call muranopl.Call) (*execution.Plan, error) {
	resources, _ := call.Args["resources"].(*muranopl.Object)
	built, err := execution.Build(task.MapArgument(call, "template"), func(name string) ([]byte, error) { return core.ResourceOf(ctx, resources, name) })
	if err != nil {
		return nil, err
	}
	return execution.Parse(built)
}

// run runs a plan when it is its turn, and waits for its end.
func (a *Class) run(ctx context.Context, call muranopl.Call, plan *execution.Plan) (any, error) {
	return a.turn(ctx, call, plan)()
}

// background runs a plan when it is its turn. The task ends after it.
func (a *Class) background(ctx context.Context, call muranopl.Call, plan *execution.Plan) {
	host := call.Object.Object(propertyHost)
	run := a.turn(ctx, call, plan)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !a.atEnd {
		a.atEnd = true
		a.runtime.AtEnd(a.wait)
	}
	go func() {
		err := panics.Run(func() error { _, err := run(); return err })
		if err != nil && ctx.Err() == nil {
			a.reports.Warn(ctx, host, fmt.Sprintf("%s: the plan %q, which nobody waits for, failed", host.Text("name"), plan.Name), err.Error())
		}
	}()
}

// wait waits for all plans that were asked for.
func (a *Class) wait(ctx context.Context) error {
	a.mutex.Lock()
	var all []chan struct{}
	for _, ended := range a.last {
		all = append(all, ended)
	}
	a.mutex.Unlock()
	for _, ended := range all {
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// turn takes a place in the server's queue: plans run one after another, as in Murano. The returned function runs the plan, and must be called.
func (a *Class) turn(ctx context.Context, call muranopl.Call, plan *execution.Plan) func() (any, error) {
	host := call.Object.Object(propertyHost)
	id := host.ID() + "\n" + muranopl.CallPath(ctx)
	timeout := defaultPlanTimeout
	if seconds, given := call.Args["timeout"].(int64); given {
		timeout = time.Duration(max(seconds, 1)) * time.Second
	}
	ended := make(chan struct{})
	a.mutex.Lock()
	before := a.last[host.ID()]
	a.last[host.ID()] = ended
	key := plan.Digest(id)
	a.counted[key]++
	id = fmt.Sprintf("%s\n%d", id, a.counted[key])
	a.mutex.Unlock()
	return func() (result any, err error) {
		defer close(ended)
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
				<-before // it ends with the task as well: the next plan must not overtake it
				return nil, context.Cause(ctx)
			}
		}
		err = a.runtime.Step(ctx, host, "plan "+plan.Name, func(ctx context.Context) error {
			result, err = a.onServer(ctx, host, plan, id, timeout)
			return err
		})
		return result, err
	}
}

// onServer runs a plan on an instance's server.
func (a *Class) onServer(ctx context.Context, host *muranopl.Object, plan *execution.Plan, id string, timeout time.Duration) (any, error) {
	client, err := a.servers.Connection(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("run the plan %q: %w", plan.Name, err)
	}
	name := host.Text("name")
	log := &scriptLog{limit: maxScriptLines}
	runner := execution.Runner{Server: client, Name: name, Task: a.runtime.TaskID(), Folder: a.folder, GoesOn: engine.GoesOn,
		Line: func(ctx context.Context, script, line string) {
			switch text := strings.TrimSpace(line); {
			case text == "":
			case log.full():
			case log.last():
				a.reports.Inform(ctx, host, "%s: %s wrote more than %d lines, of which the others are not in the log", name, script, maxScriptLines)
			default:
				a.reports.Inform(ctx, host, "%s, %s: %s", name, script, strings.TrimRight(line, " \t"))
			}
		},
		Notice: func(ctx context.Context, text string) { a.reports.Inform(ctx, host, "%s", text) },
	}
	return runner.Run(ctx, plan, id, timeout)
}

// scriptLog bounds one plan's lines in the log.
type scriptLog struct {
	mutex sync.Mutex
	lines int
	limit int
}

// full counts a line, and is true if there were more than one too many before.
func (l *scriptLog) full() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines++
	return l.lines > l.limit+1
}

// last is true if the last counted line is the first one too many.
func (l *scriptLog) last() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lines == l.limit+1
}

// isReady is true if the server accepts a login in time.
func (a *Class) isReady(ctx context.Context, call muranopl.Call) (any, error) {
	_, err := a.waitReady(ctx, call)
	var late *execution.TimeoutError
	var unreachable *ssh.UnreachableError
	if errors.As(err, &late) || errors.As(err, &unreachable) {
		return false, nil
	}
	return err == nil, err
}

func (a *Class) waitReady(ctx context.Context, call muranopl.Call) (any, error) {
	if a.rehearsal {
		return nil, nil
	}
	host := call.Object.Object(propertyHost)
	seconds, _ := call.Args["timeout"].(int64)
	patience := time.Duration(cmp.Or(seconds, 100)) * time.Second
	late := &execution.TimeoutError{Plan: "wait until it is ready", Server: host.Text("name"), After: patience}
	limited, cancel := context.WithTimeoutCause(ctx, patience, late)
	defer cancel()
	_, err := a.servers.Connection(limited, host)
	if limited.Err() != nil {
		return nil, context.Cause(limited)
	}
	return nil, err
}
