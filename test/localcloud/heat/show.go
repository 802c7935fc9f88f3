package heat

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/hot"
)

// This file shows stacks and their parts as the API does.

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func links(self string) []any { return []any{map[string]any{"href": self, "rel": "self"}} }

func summary(r *http.Request, stack Stack) map[string]any {
	description, _ := stack.Target.Template["description"].(string)
	var tags any
	if len(stack.Tags) > 0 {
		tags = stack.Tags
	}
	return map[string]any{
		"id": stack.ID, "stack_name": stack.Name, "description": description, "links": links(stackURL(r, stack)), "stack_status": stack.state(),
		"stack_status_reason": stack.Reason, "creation_time": stack.CreatedAt, "updated_time": orNull(stack.UpdatedAt), "deletion_time": orNull(stack.DeletedAt),
		"stack_owner": nil, "parent": nil, "stack_user_project_id": stack.ProjectID, "tags": tags,
	}
}

func (s *Service) show(r *http.Request, stack Stack) map[string]any {
	shown := summary(r, stack)
	var timeout any
	if stack.TimeoutMins > 0 {
		timeout = stack.TimeoutMins
	}
	maps.Copy(shown, map[string]any{
		"template_description": shown["description"], "capabilities": []any{}, "notification_topics": []any{}, "timeout_mins": timeout,
		"disable_rollback": stack.DisableRollback, "parameters": map[string]any{}, "outputs": []any{},
	})
	template, err := parseTemplate(stack.Target.Template)
	if err != nil {
		return shown
	}
	if _, values, err := stack.decided(template); err == nil {
		shown["parameters"] = shownParameters(template, values)
	}
	// As in Heat, only a complete stack has outputs.
	if stack.Action != "" && stack.Action != actionDelete && (stack.Action != actionCreate || stack.Status != inProgress) {
		shown["outputs"] = s.outputs(r.Context(), stack, template, slices.Sorted(maps.Keys(template.Outputs))...)
	}
	return shown
}

// shownParameters are texts, whatever their types.
func shownParameters(t *Template, values map[string]any) map[string]any {
	shown := map[string]any{}
	for name, value := range values {
		shown[name] = hot.Text(value)
		if list, ok := value.([]any); ok && t.Parameters[name].Type == "comma_delimited_list" {
			parts := make([]string, len(list))
			for i, one := range list {
				parts[i] = hot.Text(one)
			}
			shown[name] = strings.Join(parts, ",")
		}
		if t.Parameters[name].Hidden {
			shown[name] = "******"
		}
	}
	return shown
}

func (s *Service) outputs(ctx context.Context, stack Stack, t *Template, names ...string) []any {
	decided, values, err := stack.decided(t)
	scope := s.scope(ctx, func() Stack { return stack }, values, stack.Target.Files)
	shown := []any{}
	for _, name := range names {
		output := map[string]any{"output_key": name, "description": cmp.Or(t.Outputs[name].Description, "No description given")}
		value, err := any(nil), err
		if err == nil {
			value, err = resolve(decided.Outputs[name].Value, scope)
		}
		output["output_value"] = value
		if err != nil {
			output["output_value"], output["output_error"] = nil, err.Error()
		}
		shown = append(shown, output)
	}
	return shown
}

func (s *Service) registerParts(serve func(path string, h func(w http.ResponseWriter, r *http.Request, stack Stack) error)) {
	serve("/template", func(w http.ResponseWriter, _ *http.Request, stack Stack) error {
		return writeJSON(w, 200, stack.Target.Template)
	})
	serve("/environment", func(w http.ResponseWriter, _ *http.Request, stack Stack) error {
		return writeJSON(w, 200, stack.Target.Environment)
	})
	serve("/files", func(w http.ResponseWriter, _ *http.Request, stack Stack) error {
		files := stack.Target.Files
		if files == nil {
			files = map[string]string{}
		}
		return writeJSON(w, 200, files)
	})
	serve("/outputs", func(w http.ResponseWriter, _ *http.Request, stack Stack) error {
		template, err := parseTemplate(stack.Target.Template)
		if err != nil {
			return err
		}
		shown := []any{}
		for _, name := range slices.Sorted(maps.Keys(template.Outputs)) {
			shown = append(shown, map[string]any{"output_key": name, "description": template.Outputs[name].Description})
		}
		return writeJSON(w, 200, map[string]any{"outputs": shown})
	})
	serve("/outputs/{output}", func(w http.ResponseWriter, r *http.Request, stack Stack) error {
		template, err := parseTemplate(stack.Target.Template)
		if err != nil {
			return err
		}
		if _, ok := template.Outputs[r.PathValue("output")]; !ok {
			return notFound("Output", r.PathValue("output"))
		}
		return writeJSON(w, 200, map[string]any{"output": s.outputs(r.Context(), stack, template, r.PathValue("output"))[0]})
	})
	serve("/resources", s.serveResources)
	resource := func(h func(w http.ResponseWriter, r *http.Request, stack Stack, resource *Resource) error) func(http.ResponseWriter, *http.Request, Stack) error {
		return func(w http.ResponseWriter, r *http.Request, stack Stack) error {
			found, ok := stack.Resources[r.PathValue("resource")]
			if !ok {
				return &Error{Status: 404, Type: "EntityNotFound", Message: "The Resource (" + r.PathValue("resource") + ") could not be found in Stack " + stack.Name + "."}
			}
			return h(w, r, stack, found)
		}
	}
	serve("/resources/{resource}", resource(func(w http.ResponseWriter, r *http.Request, stack Stack, resource *Resource) error {
		shown := shownResource(r, stack, resource)
		attributes := map[string]any{}
		if known := s.types[resource.Type]; known.attributes != nil && resource.Status == complete {
			if found, err := known.attributes(r.Context(), s.job(stack, resource, resource.Properties)); err == nil {
				attributes = found
			}
		}
		shown["attributes"], shown["description"] = attributes, ""
		return writeJSON(w, 200, map[string]any{"resource": shown})
	}))
	serve("/resources/{resource}/metadata", resource(func(w http.ResponseWriter, _ *http.Request, _ Stack, resource *Resource) error {
		metadata := resource.Metadata
		if metadata == nil {
			metadata = map[string]any{}
		}
		return writeJSON(w, 200, map[string]any{"metadata": metadata})
	}))
	serve("/events", s.serveEvents)
	serve("/resources/{resource}/events", s.serveEvents)
	serve("/resources/{resource}/events/{event}", func(w http.ResponseWriter, r *http.Request, stack Stack) error {
		for _, event := range s.eventsOf(stack.ID) {
			if event.ID == r.PathValue("event") && event.Resource == r.PathValue("resource") {
				return writeJSON(w, 200, map[string]any{"event": shownEvent(r, stack, event, true)})
			}
		}
		return notFound("Event", r.PathValue("event"))
	})
}

func (s *Service) serveResources(w http.ResponseWriter, r *http.Request, stack Stack) error {
	shown := []any{}
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(stack.Resources)) {
		resource := stack.Resources[name]
		if wanted := query.Get("type"); wanted != "" && wanted != resource.Type {
			continue
		}
		if wanted := query.Get("status"); wanted != "" && !strings.EqualFold(wanted, resource.Status) {
			continue
		}
		if wanted := query.Get("name"); wanted != "" && wanted != name {
			continue
		}
		shown = append(shown, shownResource(r, stack, resource))
	}
	return writeJSON(w, 200, map[string]any{"resources": shown})
}

func shownResource(r *http.Request, stack Stack, resource *Resource) map[string]any {
	requiredBy := []string{}
	for _, other := range stack.Resources {
		if slices.Contains(other.Needs, resource.Name) {
			requiredBy = append(requiredBy, other.Name)
		}
	}
	slices.Sort(requiredBy)
	return map[string]any{
		"resource_name": resource.Name, "logical_resource_id": resource.Name, "physical_resource_id": resource.PhysicalID, "resource_type": resource.Type,
		"resource_status": resource.state(), "resource_status_reason": resource.Reason, "creation_time": resource.CreatedAt, "updated_time": resource.UpdatedAt,
		"required_by": requiredBy, "links": append(links(stackURL(r, stack)+"/resources/"+resource.Name), map[string]any{"href": stackURL(r, stack), "rel": "stack"}),
	}
}

func (s *Service) serveEvents(w http.ResponseWriter, r *http.Request, stack Stack) error {
	shown := []any{}
	query := r.URL.Query()
	events := s.eventsOf(stack.ID)
	if query.Get("sort_dir") == "desc" {
		slices.Reverse(events)
	}
	marker := query.Get("marker")
	if at := slices.IndexFunc(events, func(e Event) bool { return e.ID == marker }); at >= 0 {
		events = events[at+1:]
	}
	limit := len(events)
	if text := query.Get("limit"); text != "" {
		asked, err := strconv.Atoi(text)
		if err != nil || asked < 0 {
			return invalid("HTTPBadRequest", "Only integer is allowed for limit, not %s", text)
		}
		limit = asked
	}
	for _, event := range events {
		if name := r.PathValue("resource"); name != "" && name != event.Resource {
			continue
		}
		if wanted := query.Get("resource_status"); wanted != "" && wanted != event.Action+"_"+event.Status {
			continue
		}
		if wanted := query.Get("resource_name"); wanted != "" && wanted != event.Resource {
			continue
		}
		if len(shown) < limit {
			shown = append(shown, shownEvent(r, stack, event, false))
		}
	}
	return writeJSON(w, 200, map[string]any{"events": shown})
}

func shownEvent(r *http.Request, stack Stack, event Event, whole bool) map[string]any {
	resource := stackURL(r, stack) + "/resources/" + event.Resource
	shown := map[string]any{
		"id": event.ID, "event_time": event.Time, "resource_name": event.Resource, "logical_resource_id": event.Resource, "physical_resource_id": event.PhysicalID,
		"resource_status": event.Action + "_" + event.Status, "resource_status_reason": event.Reason,
		"links": append(links(resource+"/events/"+event.ID), map[string]any{"href": resource, "rel": "resource"}, map[string]any{"href": stackURL(r, stack), "rel": "stack"}),
	}
	if whole {
		shown["resource_properties"] = event.Properties
	}
	return shown
}
