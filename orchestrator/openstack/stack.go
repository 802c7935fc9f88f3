package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacktemplates"
)

// Heat offers nothing to wait on, so its state is asked for: soon after a change, then at most once a second.
const (
	firstPoll = 100 * time.Millisecond
	lastPoll  = time.Second
)

// Stack is what is known of a Heat stack after it was applied.
type Stack struct {
	ID      string
	Outputs map[string]any
}

// ApplyStack makes the stack what the template says, and waits for it: a stack of that name is taken over and updated, otherwise
// one is created. A stack that matches already is left alone. The error of a stack that failed names the resources that did, with
// the cloud's reasons; the stack is kept as it is, so that applying it again goes on from there. When ctx ends first, the error
// says what was not ready.
func (p *Project) ApplyStack(ctx context.Context, name string, template Template) (Stack, error) {
	body, err := json.Marshal(template)
	if err != nil {
		return Stack{}, fmt.Errorf("write the template of stack %s: %w", name, err)
	}
	heat := &stacks.Template{TE: stacks.TE{Bin: body}}
	existing, err := p.findStack(ctx, name)
	if err != nil {
		return Stack{}, err
	}
	if existing == nil {
		keep := true
		_, err := stacks.Create(ctx, p.orchestration, stacks.CreateOpts{Name: name, TemplateOpts: heat, Timeout: timeout(ctx), DisableRollback: &keep, Tags: []string{"burano"}}).Extract()
		// A conflict means that an earlier try did create it, though its answer was lost.
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
			return Stack{}, explain(err, "create stack "+name, template)
		}
		return p.outcome(ctx, name, template)
	}
	if existing, err = p.waitStack(ctx, name, template); err != nil {
		return Stack{}, err
	}
	if strings.HasSuffix(existing.Status, "_COMPLETE") {
		same, err := p.hasTemplate(ctx, existing, body)
		if err != nil {
			return Stack{}, err
		}
		if same {
			return stackOf(existing), nil
		}
	}
	return p.update(ctx, existing, heat, template)
}

// timeout is after how many minutes Heat shall give an operation up: soon after whoever waits for it does. What it was making is
// failed then, so that the next update replaces it.
func timeout(ctx context.Context) int {
	deadline, limited := ctx.Deadline()
	if !limited {
		return 0 // Heat's own
	}
	return max(1, int(math.Ceil(time.Until(deadline).Minutes())))
}

func (p *Project) update(ctx context.Context, existing *stacks.RetrievedStack, heat *stacks.Template, template Template) (Stack, error) {
	err := stacks.Update(ctx, p.orchestration, existing.Name, existing.ID, stacks.UpdateOpts{TemplateOpts: heat, Timeout: timeout(ctx), Tags: []string{"burano"}}).ExtractErr()
	if err != nil {
		return Stack{}, explain(err, "update stack "+existing.Name, template)
	}
	return p.outcome(ctx, existing.Name, template)
}

// outcome waits for the end of what is in progress in the stack.
func (p *Project) outcome(ctx context.Context, name string, template Template) (Stack, error) {
	ended, err := p.waitStack(ctx, name, template)
	if err != nil {
		return Stack{}, err
	}
	if err := p.failure(ctx, ended, template); err != nil {
		return Stack{}, err
	}
	return stackOf(ended), nil
}

// ReplaceServers makes new servers, under the same names and with the same ports, in place of those with these ids in the template.
func (p *Project) ReplaceServers(ctx context.Context, name string, template Template, reasons map[string]string) (Stack, error) {
	body, err := json.Marshal(template)
	if err != nil {
		return Stack{}, fmt.Errorf("write the template of stack %s: %w", name, err)
	}
	existing, err := p.waitStack(ctx, name, template)
	if err != nil {
		return Stack{}, err
	}
	for id, reason := range reasons {
		mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: reason}
		if err := stackresources.MarkUnhealthy(ctx, p.orchestration, existing.Name, existing.ID, id+serverSuffix, mark).ExtractErr(); err != nil {
			return Stack{}, fmt.Errorf("mark %s of stack %s as unhealthy: %w", template.nameOf(id+serverSuffix), name, err)
		}
	}
	return p.update(ctx, existing, &stacks.Template{TE: stacks.TE{Bin: body}}, template)
}

// DeleteStack deletes the stack with all it made, and waits until it is gone; one that is not there is no error.
func (p *Project) DeleteStack(ctx context.Context, name string) error {
	existing, err := p.findStack(ctx, name)
	if err != nil || existing == nil {
		return err
	}
	err = stacks.Delete(ctx, p.orchestration, existing.Name, existing.ID).ExtractErr()
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return explain(err, "delete stack "+name, Template{})
	}
	return poll(ctx, func() (bool, error) {
		current, err := p.findStack(ctx, name)
		if err != nil || current == nil || current.ID != existing.ID {
			return err == nil, err
		}
		if current.Status == "DELETE_FAILED" {
			return false, p.failure(ctx, current, Template{})
		}
		return false, nil
	})
}

// findStack returns the stack of that name, or nil when there is none.
func (p *Project) findStack(ctx context.Context, name string) (*stacks.RetrievedStack, error) {
	stack, err := stacks.Find(ctx, p.orchestration, name).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for stack %s: %w", name, err)
	}
	if stack.Status == "DELETE_COMPLETE" {
		return nil, nil
	}
	return stack, nil
}

// hasTemplate tells whether the stack was made from this template.
func (p *Project) hasTemplate(ctx context.Context, stack *stacks.RetrievedStack, body []byte) (bool, error) {
	current, err := stacktemplates.Get(ctx, p.orchestration, stack.Name, stack.ID).Extract()
	if err != nil {
		return false, fmt.Errorf("read the template of stack %s: %w", stack.Name, err)
	}
	var have, want any
	if json.Unmarshal(current, &have) != nil || json.Unmarshal(body, &want) != nil {
		return false, nil
	}
	return reflect.DeepEqual(have, want), nil
}

func stackOf(retrieved *stacks.RetrievedStack) Stack {
	stack := Stack{ID: retrieved.ID, Outputs: map[string]any{}}
	for _, output := range retrieved.Outputs {
		if key, ok := output["output_key"].(string); ok {
			stack.Outputs[key] = output["output_value"]
		}
	}
	return stack
}

// poll asks until done says so, it fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	for wait := firstPoll; ; wait = min(wait*3/2, lastPoll) {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
