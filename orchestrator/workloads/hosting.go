package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/namespaces"
	"github.com/burano/burano/orchestrator/task"
)

// Hosting is the shared state of hosts that run the containers of all their applications at once: how often each was deployed in this task, and with
// which containers the last time.
type Hosting struct {
	Runtime interface {
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	}
	Objects task.Objects
	Reports task.Reports

	mutex sync.Mutex
	runs  map[string]hostRun // by the ids of hosts

	dependents dependents
	levels     namespaces.Found // by cluster and name
}

type hostRun struct {
	count      int
	containers []string // their names
}

// hosted is an application of a host with its container.
type hosted struct {
	application *muranopl.Object
	container   container
}

func containersIn(all []hosted) (containers []container) {
	for _, one := range all {
		containers = append(containers, one.container)
	}
	return containers
}

func (h *Hosting) of(host *muranopl.Object) hostRun {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.runs[host.ID()]
}

// ran records that a host was brought up.
func (h *Hosting) ran(host *muranopl.Object, all []hosted) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.runs == nil {
		h.runs = map[string]hostRun{}
	}
	run := hostRun{count: h.runs[host.ID()].count + 1}
	for _, one := range all {
		run.containers = append(run.containers, one.container.name)
	}
	h.runs[host.ID()] = run
}

// include deploys a host with a container of that name. If the last run did not include it, there is another: at the latest the second one began
// after the application could describe its container. bringUp gets the number of former runs.
func (h *Hosting) include(host *muranopl.Object, name string, bringUp func(before int) error) error {
	for range 3 {
		run := h.of(host)
		if slices.Contains(run.containers, name) {
			return nil
		}
		if err := bringUp(run.count); err != nil {
			return err
		}
	}
	return fmt.Errorf("no application of %s describes a container %s in getContainer", host, name)
}

// all lists the applications of a host.
func (h *Hosting) all(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object) ([]hosted, error) {
	return h.list(ctx, interpreter, host, func(*muranopl.Object, error) bool { return false })
}

// ready lists the applications of a host, except the ones that have never run and cannot describe their containers yet: their own deploy starts them, or
// reports the problem.
func (h *Hosting) ready(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object) ([]hosted, error) {
	return h.list(ctx, interpreter, host, func(application *muranopl.Object, err error) bool {
		has, known := h.hasRun(ctx, application)
		if ctx.Err() != nil || known != nil || has {
			return false
		}
		h.Reports.Inform(ctx, application, "%s begins without %s: %v", host, application, err)
		return true
	})
}

func (h *Hosting) list(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object, leaveOut func(*muranopl.Object, error) bool) (all []hosted, err error) {
	for _, application := range h.Objects.All(task.ClassApplication) {
		if application.Object("host") != host {
			continue
		}
		_, one, err := describe(ctx, interpreter, application)
		switch {
		case err == nil:
			all = append(all, hosted{application, one})
		case !leaveOut(application, err):
			return nil, err
		}
	}
	return all, nil
}

// hasRun is true if the application's container ran on its host before.
func (h *Hosting) hasRun(ctx context.Context, application *muranopl.Object) (bool, error) {
	value, _, err := h.Runtime.Attribute(ctx, application, attributeContainer)
	kept, _ := value.(map[string]any)
	return len(kept) > 0 || len(application.List(propertyEndpoints)) > 0, err
}

// mostLogs is the number of containers whose last lines a failed rollout shows.
const mostLogs = 3

// reportLastLines reports the last lines of the containers that keep a host from being up, once for each name. lastOf reads them.
func reportLastLines(ctx context.Context, r task.Reports, host *muranopl.Object, obstacles []obstacle, lastOf func(context.Context, obstacle) (string, error)) {
	told := map[string]bool{}
	for _, one := range obstacles {
		if !one.wrote || told[one.container] || len(told) == mostLogs {
			continue
		}
		told[one.container] = true
		text, err := lastOf(ctx, one)
		if err != nil {
			text = fmt.Sprintf("its log cannot be read: %v", err)
		}
		r.Warn(ctx, host, fmt.Sprintf("The last lines of container %s of %s:\n%s", one.container, one.pod, cmp.Or(text, "it wrote none")), "")
	}
}
