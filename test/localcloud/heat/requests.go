package heat

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/identity"
)

// This file handles clients' requests: it makes all possible checks, writes the row and begins the work.

// stackRequest is the body of create, update, preview and validate.
type stackRequest struct {
	Name            string            `json:"stack_name"`
	Template        any               `json:"template"`
	TemplateURL     string            `json:"template_url"`
	Parameters      map[string]any    `json:"parameters"`
	Environment     any               `json:"environment"`
	Files           map[string]string `json:"files"`
	Tags            any               `json:"tags"`
	TimeoutMins     *int              `json:"timeout_mins"`
	DisableRollback *bool             `json:"disable_rollback"`
	Existing        bool              `json:"existing"`
	ClearParameters []string          `json:"clear_parameters"`
}

var stackName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,254}$`)

// target reads and checks a request's content of a stack.
func (r stackRequest) target() (Target, *Template, error) {
	if r.Template == nil {
		if r.TemplateURL != "" {
			return Target{}, nil, invalid("HTTPBadRequest", "The local cloud's Heat reads no template_url; send the template itself")
		}
		return Target{}, nil, invalid("HTTPBadRequest", "No template specified")
	}
	template, err := ParseTemplate(r.Template)
	if err != nil {
		return Target{}, nil, err
	}
	environment, err := parseEnvironment(r.Environment)
	if err != nil {
		return Target{}, nil, err
	}
	target := Target{Template: template.Raw, Files: r.Files, Parameters: map[string]any{}, Environment: environment}
	// Defaults of the environment may be for other templates.
	defaults, _ := environment["parameter_defaults"].(map[string]any)
	for name, value := range defaults {
		if _, ok := template.Parameters[name]; ok {
			target.Parameters[name] = value
		}
	}
	given, _ := environment["parameters"].(map[string]any)
	maps.Copy(target.Parameters, given)
	maps.Copy(target.Parameters, r.Parameters)
	return target, template, nil
}

func parseEnvironment(source any) (map[string]any, error) {
	if source == nil {
		return map[string]any{}, nil
	}
	if text, ok := source.(string); ok {
		value, err := parseYAML(text)
		if err != nil {
			return nil, invalid("HTTPBadRequest", "The environment is not valid YAML or JSON: %v", err)
		}
		if source = value; value == nil {
			return map[string]any{}, nil
		}
	}
	environment, ok := source.(map[string]any)
	if !ok {
		return nil, invalid("HTTPBadRequest", "The environment is not a valid YAML mapping data type.")
	}
	for section, value := range environment {
		switch section {
		case "parameters", "parameter_defaults", "resource_registry", "encrypted_param_names", "event_sinks", "parameter_merge_strategies":
			if _, ok := value.(map[string]any); !ok && value != nil && strings.HasPrefix(section, "parameter") {
				return nil, invalid("HTTPBadRequest", "environment: section \"%s\" is not a map", section)
			}
		default:
			return nil, invalid("HTTPBadRequest", "environment has wrong section \"%s\"", section)
		}
	}
	return environment, nil
}

// check finds everything about a target that can be known before it is made.
func (s *Service) check(ctx context.Context, stack Stack, template *Template) error {
	if err := s.checkTypes(template); err != nil {
		return err
	}
	template, values, err := stack.decided(template)
	if err != nil {
		return err
	}
	if err := s.checkServers(ctx, stack.ProjectID, template, values); err != nil {
		return err
	}
	// Files are checked now; resources are not known yet.
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		definition := template.Resources[name]
		err := hot.Walk(map[string]any{"properties": definition.Properties, "metadata": definition.Metadata}, func(value any) error {
			called, _, ok := hot.Function(value)
			if !ok || called != "get_file" && called != "get_param" {
				return nil
			}
			_, err := resolve(value, hot.Scope{Parameters: values, Files: stack.Target.Files})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkServers finds images and flavors that are not there, where the template or a parameter names them.
func (s *Service) checkServers(ctx context.Context, projectID string, template *Template, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		definition := template.Resources[name]
		if definition.Type != "OS::Nova::Server" {
			continue
		}
		for property, find := range map[string]func(context.Context, string, string) error{
			"image": s.config.Compute.CheckImage, "flavor": s.config.Compute.CheckFlavor,
		} {
			value, err := resolve(definition.Properties[property], hot.Scope{Parameters: values})
			if err != nil {
				continue // it needs more than parameters
			}
			if ref, ok := value.(string); ok && ref != "" {
				if err := find(ctx, projectID, ref); err != nil {
					return notValid("Property error: : resources.%s.properties.%s: : Error validating value '%s': %v", name, property, ref, err)
				}
			}
		}
	}
	return nil
}

func tagsOf(value any) []string {
	switch value := value.(type) {
	case string:
		if value == "" {
			return nil
		}
		return strings.Split(value, ",")
	case []any:
		var tags []string
		for _, one := range value {
			tags = append(tags, hot.Text(one))
		}
		return tags
	}
	return nil
}

// prepare makes a stack of a create or preview request; nothing is stored.
func (s *Service) prepare(ctx context.Context, caller identity.Caller, projectID string, r stackRequest) (Stack, *Template, error) {
	if r.Name == "" {
		return Stack{}, nil, invalid("HTTPBadRequest", "No stack name specified")
	}
	if !stackName.MatchString(r.Name) {
		return Stack{}, nil, notValid("Invalid stack name %s must contain only alphanumeric or \"_-.\" characters, must start with alpha and must be 255 characters or less.", r.Name)
	}
	target, template, err := r.target()
	if err != nil {
		return Stack{}, nil, err
	}
	stack := Stack{
		ID: uuid.NewString(), Name: r.Name, ProjectID: projectID, UserID: caller.UserID, Target: target, Tags: tagsOf(r.Tags), DisableRollback: true,
		Resources: map[string]*Resource{}, CreatedAt: s.now(),
	}
	if err := stack.options(r); err != nil {
		return Stack{}, nil, err
	}
	return stack, template, s.check(ctx, stack, template)
}

func (s *Stack) options(r stackRequest) error {
	if r.TimeoutMins != nil {
		if *r.TimeoutMins < 0 {
			return invalid("HTTPBadRequest", "Invalid timeout value %d", *r.TimeoutMins)
		}
		s.TimeoutMins = *r.TimeoutMins
	}
	if r.DisableRollback != nil {
		s.DisableRollback = *r.DisableRollback
	}
	return nil
}

// errRemote is Heat's answer to unforeseen errors; it is as terse.
var errRemote = &Error{Status: 500, Type: "RemoteError"}

// createStack checks that the name is free before it checks the rest, and stores the stack afterwards. Two simultaneous creations both pass, as in Heat,
// whose database has no rule that a name is unique.
func (s *Service) createStack(ctx context.Context, caller identity.Caller, projectID string, r stackRequest) (Stack, error) {
	if _, ok := s.named(projectID, r.Name); ok {
		return Stack{}, &Error{Status: 409, Type: "StackExists", Message: fmt.Sprintf("The Stack (%s) already exists.", r.Name)}
	}
	stack, _, err := s.prepare(ctx, caller, projectID, r)
	if err != nil {
		return Stack{}, err
	}
	if s.config.Delegations != nil {
		var ok bool
		if stack.Trust, ok = s.config.Delegations.Delegate(caller.Token); !ok {
			return Stack{}, errRemote
		}
		stack.TrustorID = caller.UserID
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	stack.CreatedAt = s.now()
	if err := s.stacks.Put(stack.ID, stack); err != nil {
		return Stack{}, err
	}
	return stack, s.begin(stack.ID, actionCreate)
}

// begin notes that an action is in progress and starts it. The caller holds the mutex.
func (s *Service) begin(id, action string) error {
	if err := s.setState(id, action, inProgress, fmt.Sprintf("Stack %s started", action)); err != nil {
		return err
	}
	stack, _ := s.stacks.Get(id)
	s.start(stack)
	return nil
}

// over is the result of an update of a stack's target.
func (r stackRequest) over(before Target, patch bool) (Target, *Template, error) {
	if patch || r.Existing {
		if r.Template == nil {
			r.Template = before.Template
			if r.Files == nil {
				r.Files = before.Files
			}
		}
		merged := maps.Clone(before.Parameters)
		for _, name := range r.ClearParameters {
			delete(merged, name)
		}
		maps.Copy(merged, r.Parameters)
		r.Parameters = merged
	}
	return r.target()
}

// updateStack begins an update. As Heat does, it first signs in through the stack's trust, also to replace it by a trust of another user: without it no
// user can change the stack.
func (s *Service) updateStack(ctx context.Context, caller identity.Caller, stack Stack, r stackRequest, patch bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	stack, ok := s.stacks.Get(stack.ID)
	if !ok || stack.DeletedAt != "" {
		return notFound("Stack", stack.Name)
	}
	if stack.Action == actionDelete {
		return invalid("NotSupported", "Updating a stack when it is deleting is not supported.")
	}
	if stack.Status == inProgress {
		return &Error{Status: 409, Type: "ActionInProgress", Message: fmt.Sprintf("Stack %s already has an action (%s) in progress.", stack.Name, stack.Action)}
	}
	before := stack.Target
	target, template, err := r.over(before, patch)
	if err != nil {
		return err
	}
	stack.Target = target
	if err := stack.options(r); err != nil {
		return err
	}
	if err := s.check(ctx, stack, template); err != nil {
		return err
	}
	former := stack.Trust
	if former != "" {
		if !s.config.Delegations.Delegates(former) {
			return errRemote
		}
		if caller.UserID != stack.TrustorID {
			var ok bool
			if stack.Trust, ok = s.config.Delegations.Delegate(caller.Token); !ok {
				return errRemote
			}
			if err := s.config.Delegations.EndDelegation(former); err != nil {
				return err
			}
			stack.TrustorID = caller.UserID
		}
	}
	updated := s.now()
	err = s.change(stack.ID, func(row *Stack) {
		row.Trust, row.TrustorID = stack.Trust, stack.TrustorID
		row.Target, row.TimeoutMins, row.DisableRollback, row.UpdatedAt = target, stack.TimeoutMins, stack.DisableRollback, updated
		if row.Status == complete || row.Previous == nil {
			row.Previous = &before
		}
		if r.Tags != nil || !patch {
			row.Tags = tagsOf(r.Tags)
		}
	})
	if err != nil {
		return err
	}
	return s.begin(stack.ID, actionUpdate)
}

// deleteStack begins a deletion, also of a stack with another operation in progress, which it ends. To be deleted already is fine.
func (s *Service) deleteStack(stack Stack) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if stack.DeletedAt != "" || stack.Action == actionDelete && stack.Status == inProgress {
		return nil
	}
	s.interrupt(stack.ID)
	return s.begin(stack.ID, actionDelete)
}

// find finds a stack by id, or the existing one by name.
func (s *Service) find(projectID, identity string) (Stack, error) {
	if stack, ok := s.stacks.Get(identity); ok && stack.ProjectID == projectID {
		return stack, nil
	}
	if stack, ok := s.named(projectID, identity); ok {
		return stack, nil
	}
	return Stack{}, notFound("Stack", identity)
}

// named finds an existing stack by its name; the oldest of several.
func (s *Service) named(projectID, name string) (Stack, bool) {
	found := s.stacks.Where(func(stack Stack) bool {
		return stack.Name == name && stack.ProjectID == projectID && stack.DeletedAt == "" && !stack.Group
	})
	if len(found) == 0 {
		return Stack{}, false
	}
	return found[0], true
}
