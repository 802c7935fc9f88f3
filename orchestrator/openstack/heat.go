package openstack

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacktemplates"
)

// heatStacks is Heat.
type heatStacks struct{ client *gophercloud.ServiceClient }

// heat is the type of the service in the catalog.
const heat = "orchestration"

// timeout is after how many minutes Heat gives an operation up: soon after its caller stops waiting. The resource in work is
// failed then, so that the next update replaces it.
func timeout(ctx context.Context) int {
	deadline, limited := ctx.Deadline()
	if !limited {
		return 0 // Heat's own
	}
	return max(1, int(math.Ceil(time.Until(deadline).Minutes())))
}

// request is the body that creates or updates a stack. gophercloud's own options would read the files that a template names from
// this machine, also for a stranger's template.
type request struct {
	Content
	name    string
	minutes int // see timeout
}

// ToStackCreateMap is the body of a creation.
func (r request) ToStackCreateMap() (map[string]any, error) {
	body, err := r.ToStackUpdateMap()
	body["stack_name"], body["disable_rollback"] = r.name, true
	return body, err
}

// ToStackUpdateMap is the body of an update.
func (r request) ToStackUpdateMap() (map[string]any, error) {
	body := map[string]any{"template": r.Template, "tags": OwnTag}
	if r.minutes > 0 {
		body["timeout_mins"] = r.minutes
	}
	if len(r.Parameters) > 0 {
		body["parameters"] = r.Parameters
	}
	if len(r.Files) > 0 {
		body["files"] = r.Files
	}
	if r.Environment != "" {
		body["environment"] = r.Environment
	}
	return body, nil
}

// List implements Stacks. Heat is not asked for name and tag at once: Zed answers that with 500, because it looks for the name in the table of
// tags.
func (h heatStacks) List(ctx context.Context, name string) ([]stacks.ListedStack, error) {
	pages, err := allPages(ctx, stacks.List(h.client, stacks.ListOpts{Name: name}))
	if err != nil {
		return nil, err
	}
	return stacks.ExtractStacks(pages)
}

// Get implements Stacks.
func (h heatStacks) Get(ctx context.Context, name, id string) (*stacks.RetrievedStack, error) {
	return stacks.Get(ctx, h.client, name, id).Extract()
}

// Template implements Stacks.
func (h heatStacks) Template(ctx context.Context, name, id string) (map[string]any, error) {
	text, err := stacktemplates.Get(ctx, h.client, name, id).Extract()
	if err != nil {
		return nil, err
	}
	var template map[string]any
	return template, json.Unmarshal(text, &template)
}

// Extensions implements Stacks.
func (h heatStacks) Extensions(ctx context.Context, name, id string) (files map[string]string, registry map[string]any, err error) {
	var environment struct {
		Registry map[string]any `json:"resource_registry"`
	}
	for part, into := range map[string]any{"files": &files, "environment": &environment} {
		response, err := h.client.Get(ctx, h.client.ServiceURL("stacks", name, id, part), into, nil)
		if response != nil {
			_ = response.Body.Close()
		}
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return nil, nil, err
		}
	}
	return files, environment.Registry, nil
}

// Resources implements Stacks.
func (h heatStacks) Resources(ctx context.Context, name, id string) ([]stackresources.Resource, error) {
	pages, err := allPages(ctx, stackresources.List(h.client, name, id, nil))
	if err != nil {
		return nil, err
	}
	return stackresources.ExtractResources(pages)
}

// Create implements Stacks.
func (h heatStacks) Create(ctx context.Context, name string, content Content) (string, error) {
	created, err := stacks.Create(ctx, h.client, request{content, name, timeout(ctx)}).Extract()
	if err != nil {
		return "", err
	}
	return created.ID, nil
}

// Update implements Stacks.
func (h heatStacks) Update(ctx context.Context, name, id string, content Content) error {
	return stacks.Update(Once(ctx), h.client, name, id, request{content, name, timeout(ctx)}).ExtractErr()
}

// Delete implements Stacks.
func (h heatStacks) Delete(ctx context.Context, name, id string) error {
	return stacks.Delete(ctx, h.client, name, id).ExtractErr()
}

// MarkHealth implements Stacks.
func (h heatStacks) MarkHealth(ctx context.Context, name, id, resource, reason string) error {
	mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: reason != healthy, ResourceStatusReason: reason}
	return Patiently(ctx, heat, func(ctx context.Context) error {
		return stackresources.MarkUnhealthy(ctx, h.client, name, id, resource, mark).ExtractErr()
	})
}
