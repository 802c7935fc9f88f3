// Package direct makes stacks without Heat: it makes a template's resources in Nova, Neutron and Cinder itself, in the order of their dependencies.
//
// The database has each stack's template, and the physical id of each of its resources. Every physical resource carries the id of its resource: in its
// metadata (Nova, Cinder), or in its description (Neutron). Each request is recorded before it is sent, and its result is looked for before it is sent
// again. So the next process after a crash finds the existing resources.
package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Rows keeps stacks (store.Stacks).
type Rows interface {
	AddStack(ctx context.Context, stack *store.Stack) error
	AddStackOf(ctx context.Context, stack *store.Stack, resources []store.StackResource) error
	StacksNamed(ctx context.Context, projectID, region, name string) ([]store.Stack, error)
	Stack(ctx context.Context, id string) (store.Stack, error)
	HoldStack(ctx context.Context, id, holder string, term time.Duration) error
	ReleaseStack(ctx context.Context, id, holder string) error
	ChangeStack(ctx context.Context, holder string, stack store.Stack) error
	RemoveStack(ctx context.Context, id, holder string) error
	StackResources(ctx context.Context, stackID string) ([]store.StackResource, error)
	PutStackResource(ctx context.Context, holder string, resource store.StackResource) error
	RemoveStackResource(ctx context.Context, holder, stackID, id string) error
}

// Driver makes stacks; one serves all projects. Of several processes one changes a stack at a time.
type Driver struct {
	rows Rows

	mutex   sync.Mutex
	changes map[string]*change // by the ids of the stacks that this process is changing
}

// New makes a driver that keeps its stacks in these rows.
func New(rows Rows) *Driver { return &Driver{rows: rows, changes: map[string]*change{}} }

// In is the driver in one project; it has the form that openstack.Service.Orchestrate takes.
func (d *Driver) In(clients openstack.Clients) openstack.Stacks {
	return &project{driver: d, clients: clients}
}

// project makes the stacks of one project in one region.
type project struct {
	driver  *Driver
	clients openstack.Clients
}

// body is the sealed part of a stack's row.
type body struct {
	Content openstack.Content
	Reason  string // why it failed, or which process interrupted it
}

// Actions and states are named as Heat names them.
const (
	actionCreate = "CREATE"
	actionUpdate = "UPDATE"
	actionDelete = "DELETE"
	actionCheck  = "CHECK"

	inProgress = "IN_PROGRESS"
	complete   = "COMPLETE"
	failed     = "FAILED"
)

// List implements openstack.Stacks.
func (p *project) List(ctx context.Context, name string) ([]stacks.ListedStack, error) {
	rows, err := p.driver.rows.StacksNamed(ctx, p.clients.ProjectID, p.clients.Region, name)
	if err != nil {
		return nil, err
	}
	list := make([]stacks.ListedStack, len(rows))
	for i, row := range rows {
		list[i] = stacks.ListedStack{ID: row.ID, Name: row.Name, Status: statusOf(row), CreationTime: row.Created.Time(), Tags: []string{openstack.OwnTag}}
	}
	return list, nil
}

// statusOf is the stack's status in Heat's words. A stack whose change has lost its process has failed.
func statusOf(row store.Stack) string {
	switch {
	case row.Held:
		return row.Action + "_" + inProgress
	case row.Status == inProgress:
		return row.Action + "_" + failed
	}
	return row.Action + "_" + row.Status
}

// gone is the error of a stack that is not there.
var gone = gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusNotFound}

func (p *project) read(ctx context.Context, id string) (store.Stack, body, error) {
	row, err := p.driver.rows.Stack(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return row, body{}, gone
	}
	if err != nil {
		return row, body{}, err
	}
	var kept body
	if err := json.Unmarshal([]byte(row.Body), &kept); err != nil {
		return row, kept, fmt.Errorf("read what is kept of stack %s: %w", row.Name, err)
	}
	if row.Status == inProgress && !row.Held {
		kept.Reason = "it was interrupted"
	}
	return row, kept, nil
}

// Get implements openstack.Stacks.
func (p *project) Get(ctx context.Context, _, id string) (*stacks.RetrievedStack, error) {
	row, kept, err := p.read(ctx, id)
	if err != nil {
		return nil, err
	}
	shown := &stacks.RetrievedStack{ID: row.ID, Name: row.Name, Status: statusOf(row), StatusReason: kept.Reason, CreationTime: row.Created.Time(),
		Tags: []string{openstack.OwnTag}, Parameters: map[string]string{}}
	parsed, err := parse(kept.Content, p.pseudo(row))
	if err != nil {
		return shown, nil // it was refused when it was asked for, or is of another version
	}
	for name, value := range parsed.scope.Parameters {
		shown.Parameters[name] = parameterText(value)
	}
	if row.Action == actionDelete || row.Held {
		return shown, nil
	}
	own, err := p.load(ctx, row)
	if err != nil {
		return nil, err
	}
	own.template = parsed
	for _, name := range slices.Sorted(maps.Keys(parsed.outputs)) {
		// As with Heat, unknown outputs are left out.
		value, err := own.scope(ctx).Resolve(parsed.outputs[name])
		if err != nil {
			if ctx.Err() != nil || openstack.AwayOf(err) != nil {
				return nil, fmt.Errorf("output %s of stack %s: %w", name, row.Name, err)
			}
			value = nil
		}
		shown.Outputs = append(shown.Outputs, map[string]any{"output_key": name, "output_value": value})
	}
	return shown, nil
}

// parameterText is a parameter's value in Heat's form.
func parameterText(value any) string {
	if list, ok := value.([]any); ok {
		parts := make([]string, len(list))
		for i, one := range list {
			parts[i] = hot.Text(one)
		}
		return strings.Join(parts, ",")
	}
	return hot.Text(value)
}

// pseudo are the parameters that Heat gives every template.
func (p *project) pseudo(row store.Stack) map[string]any {
	return map[string]any{"OS::stack_id": row.ID, "OS::stack_name": row.Name, "OS::project_id": p.clients.ProjectID}
}

// Template implements openstack.Stacks.
func (p *project) Template(ctx context.Context, _, id string) (map[string]any, error) {
	_, kept, err := p.read(ctx, id)
	return kept.Content.Template, err
}

// Extensions implements openstack.Stacks.
func (p *project) Extensions(ctx context.Context, _, id string) (map[string]string, map[string]any, error) {
	_, kept, err := p.read(ctx, id)
	return kept.Content.Files, nil, err
}

// Resources implements openstack.Stacks.
func (p *project) Resources(ctx context.Context, _, id string) ([]stackresources.Resource, error) {
	own, err := p.load(ctx, store.Stack{ID: id})
	if err != nil {
		return nil, err
	}
	var list []stackresources.Resource
	for _, name := range slices.Sorted(maps.Keys(own.resources)) {
		one := own.resources[name]
		list = append(list, stackresources.Resource{Name: name, LogicalID: name, PhysicalID: one.PhysicalID, Type: one.Type, Status: one.Action + "_" + one.Status, StatusReason: one.Reason,
			RequiredBy: []any{}})
	}
	return list, nil
}

// Create implements openstack.Stacks. Where there is a stack of that name already the id is "".
func (p *project) Create(ctx context.Context, name string, content openstack.Content) (string, error) {
	row := store.Stack{ID: store.NewID(), ProjectID: p.clients.ProjectID, Region: p.clients.Region, Name: name, Action: actionCreate, Status: inProgress}
	if err := p.check(ctx, row, content); err != nil {
		return "", err
	}
	var err error
	if row.Body, err = written(body{Content: content}); err != nil {
		return "", err
	}
	err = p.driver.rows.AddStack(ctx, &row)
	if errors.Is(err, store.ErrDuplicate) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return row.ID, p.begin(ctx, row.ID, actionCreate, &content)
}

// Update implements openstack.Stacks.
func (p *project) Update(ctx context.Context, _, id string, content openstack.Content) error {
	row, _, err := p.read(ctx, id)
	if err != nil {
		return err
	}
	if err := p.check(ctx, row, content); err != nil {
		return err
	}
	return p.begin(ctx, id, actionUpdate, &content)
}

// Delete implements openstack.Stacks.
func (p *project) Delete(ctx context.Context, _, id string) error {
	p.driver.mutex.Lock()
	running := p.driver.changes[id]
	p.driver.mutex.Unlock()
	if running != nil {
		running.stop(errDeleted)
	}
	return p.begin(ctx, id, actionDelete, nil)
}

var errDeleted = errors.New("the stack is being deleted")

// MarkHealth implements openstack.Stacks.
func (p *project) MarkHealth(ctx context.Context, name, id, resource, reason string) error {
	return p.held(ctx, id, func(ctx context.Context, holder string) error {
		own, err := p.load(ctx, store.Stack{ID: id, Name: name})
		if err != nil {
			return err
		}
		own.holder = holder
		one := own.resources[resource]
		if one == nil {
			return wrong("stack %s has no resource %s", name, resource)
		}
		one.Action, one.Status, one.Reason = actionCheck, complete, ""
		if reason != "" {
			one.Status, one.Reason = failed, reason
		}
		return own.put(ctx, one)
	})
}

// check refuses a template that cannot be made, before any resource is.
func (p *project) check(ctx context.Context, row store.Stack, content openstack.Content) error {
	parsed, err := parse(content, p.pseudo(row))
	if err != nil {
		return err
	}
	known := parsed.scope
	known.Reference = func(string) (any, error) { return nil, errLater }
	known.Attribute = func(string, string) (any, error) { return nil, errLater }
	for _, name := range slices.Sorted(maps.Keys(parsed.resources)) {
		one := parsed.resources[name]
		properties := map[string]any{}
		for property, value := range one.properties {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			resolved, err := known.Bounded().Resolve(value)
			if errors.Is(err, errLater) {
				resolved = later{}
			} else if err != nil {
				return fmt.Errorf("resource %s: %s: %w", name, property, err)
			}
			properties[property] = resolved
		}
		if err := kinds[one.kind].checkValues(name, properties); err != nil {
			return err
		}
		if checked := kinds[one.kind].check; checked != nil {
			if err := checked(ctx, &job{stack: &stack{project: p, row: row}, resource: &resource{Name: name, Type: one.kind}, properties: kinds[one.kind].renamed(properties)}); err != nil {
				return fmt.Errorf("resource %s: %w", name, err)
			}
		}
	}
	return nil
}

// errLater is the error for a value that is known only when other resources are there.
var errLater = errors.New("it is known when other resources are there")

// later stands for a value that is known only when other resources are there.
type later struct{}

func written(kept body) (string, error) {
	made, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("write what a stack is made of: %w", err)
	}
	return string(made), nil
}

const (
	// term is how long a process holds a stack that it changes, unless it renews.
	term = 10 * time.Second
	beat = term / 4
)

// looking is how often a stack is looked at that another process holds.
var looking = wait.Policy{First: 100 * time.Millisecond, Most: time.Second}

// hold waits until this process may change the stack, and returns as whom.
func (p *project) hold(ctx context.Context, id string) (holder string, err error) {
	holder = store.NewID()
	return holder, looking.Until(ctx, func(ctx context.Context) error {
		err := p.driver.rows.HoldStack(ctx, id, holder, term)
		switch {
		case errors.Is(err, store.ErrBusy):
			return wait.Again(fmt.Errorf("another server is changing stack %s", id))
		case errors.Is(err, store.ErrNotFound):
			return gone
		}
		return err
	})
}

// held runs do while no other process may change the stack.
func (p *project) held(ctx context.Context, id string, do func(ctx context.Context, holder string) error) error {
	holder, err := p.hold(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, holder), p.driver.rows.ReleaseStack(context.WithoutCancel(ctx), id, holder))
}

// change is a change of a stack that this process is making.
type change struct {
	stop  context.CancelCauseFunc
	ended chan struct{}
}

// begin begins to make a stack from content, or to delete it, and returns. The change ends with ctx; the next change does the remaining work.
func (p *project) begin(ctx context.Context, id, action string, content *openstack.Content) error {
	holder, err := p.hold(ctx, id)
	if err != nil {
		return err
	}
	row, kept, err := p.read(ctx, id)
	if err == nil {
		if content != nil {
			kept.Content = *content
		}
		kept.Reason = ""
		row.Action, row.Status = action, inProgress
		if row.Body, err = written(kept); err == nil {
			err = p.driver.rows.ChangeStack(ctx, holder, row)
		}
	}
	if err != nil {
		return errors.Join(err, p.driver.rows.ReleaseStack(context.WithoutCancel(ctx), id, holder))
	}
	ctx, stop := context.WithCancelCause(ctx)
	made := &change{stop: stop, ended: make(chan struct{})}
	p.driver.mutex.Lock()
	p.driver.changes[id] = made
	p.driver.mutex.Unlock()
	go func() {
		defer close(made.ended)
		defer stop(context.Canceled)
		beating := make(chan struct{})
		go func() {
			defer close(beating)
			p.keepHeld(ctx, id, holder, stop)
		}()
		err := p.make(ctx, holder, row, kept.Content)
		p.finish(ctx, holder, row, kept, err)
		stop(context.Canceled)
		<-beating
		p.driver.mutex.Lock()
		if p.driver.changes[id] == made {
			delete(p.driver.changes, id)
		}
		p.driver.mutex.Unlock()
	}()
	return nil
}

// keepHeld holds the stack until ctx ends. When another process has it, or it cannot be held for the whole of a term, the change is stopped.
func (p *project) keepHeld(ctx context.Context, id, holder string, stop context.CancelCauseFunc) {
	last := time.Now()
	for wait.Pause(ctx, beat) == nil {
		began := time.Now()
		err := p.driver.rows.HoldStack(ctx, id, holder, term)
		switch {
		case err == nil:
			last = began
		case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrNotFound), time.Since(last) > term-beat:
			stop(fmt.Errorf("this server may change stack %s no more: %w", id, err))
			return
		}
	}
}

// finishPatience is for writing down how a change has ended whose context has.
const finishPatience = 5 * time.Second

// finish writes down how a change has ended. One that was stopped stays as it is, interrupted.
func (p *project) finish(ctx context.Context, holder string, row store.Stack, kept body, err error) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience)
	defer cancel()
	if ctx.Err() == nil {
		row.Status = complete
		if err != nil {
			row.Status, kept.Reason = failed, err.Error()
		}
		if row.Action == actionDelete && err == nil {
			if p.driver.rows.RemoveStack(last, row.ID, holder) == nil {
				return
			}
		} else if text, err := written(kept); err == nil {
			row.Body = text
			_ = p.driver.rows.ChangeStack(last, holder, row) // when it fails it counts as interrupted
		}
	}
	_ = p.driver.rows.ReleaseStack(last, row.ID, holder) // else its term ends
}
