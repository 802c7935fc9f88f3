package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
)

// Heat does not return the values of hidden parameters, but it compares them. So for a server with such a value, Heat is asked for a preview of an update
// (https://docs.openstack.org/api-ref/orchestration/v1/, "Preview stack update").

// updatePreview is Heat's preview, by the names of resources; of resources in stacks of a stack, too.
type updatePreview struct {
	Updated  []previewed `json:"updated"`
	Replaced []previewed `json:"replaced"`
}

type previewed struct {
	Name string `json:"resource_name"`
	Type string `json:"resource_type"`
}

// previewUpdate asks for a preview of an update; with patch, parameters that are missing in content stay as they are. It is nil where Heat refuses the
// request: it refuses the update, too, with the reason.
func (p *Project) previewUpdate(ctx context.Context, existing *stacks.RetrievedStack, content Content, patch bool) (*updatePreview, error) {
	var answer struct {
		Changes updatePreview `json:"resource_changes"`
	}
	body, err := request{content, existing.Name, 0}.ToStackUpdateMap()
	if err != nil {
		return nil, err
	}
	ask := p.orchestration.Put
	if patch {
		ask = p.orchestration.Patch
	}
	url := p.orchestration.ServiceURL("stacks", existing.Name, existing.ID, "preview") + "?show_nested=True"
	response, err := ask(ctx, url, body, &answer, &gophercloud.RequestOpts{OkCodes: []int{200}})
	if response != nil {
		_ = response.Body.Close()
	}
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("preview the update of stack %s: %w", existing.Name, err)
	}
	return &answer.Changes, nil
}

// concealed lists the changes of servers whose former properties Heat does not return: unknown has them by resource, for a server or for a resource that
// makes servers in a stack of its own.
//
// A preview takes every reference to another resource for a change. So references are sent as their values. Heat cannot answer for resources that it would
// replace without any change, because of the remaining references.
func (p *Project) concealed(ctx context.Context, existing *stacks.RetrievedStack, former, content Content, unknown map[string][]string, resources []stackresources.Resource) ([]*ServerChange, error) {
	ids := map[string]string{}
	for _, resource := range resources {
		if _, known := effects[resource.Type]; known && !strings.HasPrefix(resource.Type, "OS::Heat::") {
			ids[resource.Name] = resource.PhysicalID
		}
	}
	former.Template, _ = referred(former.Template, ids).(map[string]any)
	unchanged, err := p.previewUpdate(ctx, existing, former, true)
	if err != nil || unchanged == nil {
		return nil, err
	}
	template := content.Template
	content.Template, _ = referred(template, ids).(map[string]any)
	preview, err := p.previewUpdate(ctx, existing, content, false)
	content.Template = template
	if err != nil || preview == nil {
		return nil, err
	}
	var problems []*ServerChange
	for _, resource := range resources {
		properties := unknown[resource.Name]
		costly, anyway := preview.Replaced, unchanged.Replaced
		// Heat does not return which property it would update: one that may be updated without a loss counts like the others.
		if slices.ContainsFunc(properties, func(property string) bool { return EffectOf(serverType, property) != Replaced }) {
			costly, anyway = slices.Concat(costly, preview.Updated), slices.Concat(anyway, unchanged.Updated)
		}
		if len(properties) == 0 || !slices.ContainsFunc(costly, func(one previewed) bool {
			return !slices.Contains(anyway, one) &&
				(one.Name == resource.Name || resource.Type != serverType && one.Type == serverType && content.resource(one.Name) == nil)
		}) {
			continue
		}
		problems = append(problems, &ServerChange{Resource: resource.Name, Server: strings.TrimPrefix(content.nameOf(resource.Name), "server "),
			ServerID: resource.PhysicalID, Property: properties[0], From: concealedValue, To: "another one"})
	}
	return problems, nil
}

// referred is a value with the ids of resources in place of references to them.
func referred(value any, ids map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["get_resource"].(string); ok && len(v) == 1 && ids[name] != "" {
			return ids[name]
		}
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[key] = referred(item, ids)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = referred(item, ids)
		}
		return made
	}
	return value
}

// concealedValue replaces a value of a hidden parameter.
const concealedValue = "the value of a hidden parameter"
