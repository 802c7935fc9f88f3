package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/internal/fault"
)

// lastQuestion is how long the cloud may take to explain why a resource was not ready in time.
const lastQuestion = 10 * time.Second

// awaitIdle waits until the oldest of our stacks of that name is the only one and nothing is in progress in it, and returns it; nil when there is none.
// The others are deleted, and so are stacks whose deletion has begun. When ctx ends first, the error names the resources that were not ready, and Nova's
// messages about their servers.
func (p *Project) awaitIdle(ctx context.Context, name string, content Content) (*stacks.RetrievedStack, error) {
	var stack *stacks.RetrievedStack
	err := poll(ctx, func() (bool, error) {
		found, err := p.named(ctx, name)
		if err != nil {
			return false, err
		}
		// Heat changes nothing any more in a stack whose deletion has begun.
		kept := slices.IndexFunc(found, func(one stacks.ListedStack) bool { return !strings.HasPrefix(one.Status, "DELETE_") })
		if kept < 0 {
			stack = nil
			return true, p.deleteAll(ctx, name, found)
		}
		if err := p.deleteAll(ctx, name, slices.Concat(found[:kept], found[kept+1:])); err != nil {
			return false, err
		}
		now, err := p.stack(ctx, found[kept])
		if err != nil {
			return false, err // its last known state stays
		}
		stack = now
		return stack != nil && !strings.HasSuffix(stack.Status, "_IN_PROGRESS"), nil
	})
	if err == nil || stack == nil || !late(ctx) {
		return stack, err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastQuestion)
	defer cancel()
	if waiting := p.unready(last, stack, content); len(waiting) > 0 {
		return nil, fmt.Errorf("%w: in stack %s (%s) these are not ready: %s", context.Cause(ctx), name, stack.Status, strings.Join(waiting, "; "))
	}
	return nil, fmt.Errorf("%w: stack %s is still in %s", context.Cause(ctx), name, stack.Status)
}

// late is true if time was over, and the context was not ended otherwise.
func late(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// unready lists the resources that are being made or changed.
func (p *Project) unready(ctx context.Context, stack *stacks.RetrievedStack, content Content) []string {
	resources, err := p.resources(ctx, stack.Name, stack.ID)
	if err != nil {
		return nil
	}
	var waiting []string
	for _, resource := range resources {
		if !strings.HasSuffix(resource.Status, "_IN_PROGRESS") {
			continue
		}
		text := content.nameOf(resource.Name)
		if resource.Type == "OS::Nova::Server" && resource.PhysicalID != "" {
			if state, err := p.Server(ctx, resource.PhysicalID); err == nil {
				text += ", which is " + state.String()
			}
		}
		waiting = append(waiting, text)
	}
	return waiting
}

// failure returns why a stack failed, or nil when it did not.
func (p *Project) failure(ctx context.Context, stack *stacks.RetrievedStack, content Content) error {
	if !strings.HasSuffix(stack.Status, "_FAILED") {
		return nil
	}
	var reasons []string
	told := false
	if resources, err := p.resources(ctx, stack.Name, stack.ID); err == nil {
		for _, resource := range resources {
			if !strings.HasSuffix(resource.Status, "_FAILED") {
				continue
			}
			name := content.nameOf(resource.Name)
			if name == resource.Name {
				name = fmt.Sprintf("%s (%s)", resource.Name, resource.Type)
			}
			reason := name + ": " + resource.StatusReason
			if resource.Type == serverType && strings.Contains(resource.StatusReason, "No valid host") {
				reason += content.placement(resource.Name)
			}
			reasons = append(reasons, reason)
			told = told || strings.Contains(stack.StatusReason, resource.StatusReason)
		}
	}
	if !told {
		reasons = append([]string{stack.StatusReason}, reasons...)
	}
	return fmt.Errorf("stack %s is in %s: %s", stack.Name, stack.Status, strings.Join(reasons, "; "))
}

// explain turns Heat's refusal of a template into a fault that repeats Heat's own words, and wraps every other error. Heat calls servers by the names of
// their resources; their names for people are added.
func explain(ctx context.Context, err error, doing string, content Content) error {
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if _, passing := passes(ctx, err); !passing && errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError {
		var answer struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(unexpected.Body, &answer) == nil && answer.Error.Message != "" {
			resources, _ := content.Template["resources"].(map[string]any)
			for resource := range resources {
				if name := content.nameOf(resource); name != resource && strings.Contains(answer.Error.Message, resource) {
					doing += fmt.Sprintf(" (%s is %s)", resource, name)
				}
			}
			return fault.New(fault.Invalid, "%s: Heat answers: %s", doing, answer.Error.Message)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
