package orchestrator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Causes of faults about the action that a caller named, in Murano's words.
var (
	ErrNoAction       = errors.New("Action is not found")
	ErrActionDisabled = errors.New("Cannot execute disabled action")
	ErrNoResult       = errors.New("Result for task")
)

// Actions calls the actions of objects.
type Actions struct{ *core }

// Actions are the actions of objects.
func (s *Service) Actions() Actions { return Actions{s.core} }

// Call runs an action: a public method of an object of the environment in its last deployed state. actionID is the key
// under which the object's header lists it (?/_actions). It answers when the task is written; the engine runs it.
func (s Actions) Call(ctx context.Context, caller identity.Caller, environmentID, actionID string, args map[string]any) (taskID string, err error) {
	environment, sessions, err := s.withSessions(ctx, caller, environmentID)
	if err != nil {
		return "", err
	}
	if busy, _ := status(sessions); busy == string(store.Deploying) || busy == string(store.Deleting) {
		return "", errActionBusy(environmentID)
	}
	object, action := findAction(environment.Model.Objects, actionID)
	if action == nil {
		object, action, err = newAction(ctx, s.engine, environment, actionID)
	}
	if err != nil {
		return "", err
	}
	if action == nil {
		return "", fault.New(fault.NotFound, "%w: nothing in environment %s offers %s; the actions of an object are listed in its ?/_actions once it was deployed",
			ErrNoAction, environmentID, actionID)
	}
	if enabled, ok := action["enabled"].(bool); ok && !enabled {
		return "", fault.New(fault.Invalid, "%w: %s", ErrActionDisabled, actionID)
	}
	if err := unmasked(args); err != nil {
		return "", err
	}
	method, _ := action["name"].(string)
	if args == nil {
		args = map[string]any{}
	}
	return s.submit(ctx, caller, environment, store.Action{ObjectID: object, Method: method, Args: args}, errActionBusy(environmentID))
}

// submit writes the task of an action in the caller's name, and returns its id. busy is the error where another task runs.
func (s Actions) submit(ctx context.Context, caller identity.Caller, environment store.Environment, action store.Action, busy error) (taskID string, err error) {
	delegation, err := Delegations(s).delegate(ctx, caller, environment)
	if err != nil {
		return "", err
	}
	task, err := s.store.Tasks().SubmitAction(ctx, environment.ID, caller.UserID, store.Submission{
		Action:       action,
		Text:         "Action " + action.Method + " is scheduled",
		Origin:       submitter(caller),
		DelegationID: delegation.ID,
	})
	if err != nil {
		Delegations(s).giveBack(ctx, delegation)
		switch {
		case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrStale):
			return "", busy
		case errors.Is(err, store.ErrNotFound):
			return "", noEnvironment(environment.ID)
		}
		return "", revoked(err)
	}
	s.engine.Wake()
	return task.ID, nil
}

// newAction is an action that an object's class has since the object was deployed, which the object's header does not list yet; nil for none.
func newAction(ctx context.Context, runs Engine, environment store.Environment, actionID string) (objectID string, action map[string]any, err error) {
	at := strings.LastIndexByte(actionID, '_')
	if at < 0 {
		return "", nil, nil
	}
	objectID, method := actionID[:at], actionID[at+1:]
	object, _ := objectOf(environment.Model.Objects, objectID).(map[string]any)
	header, _ := object["?"].(map[string]any)
	if header["_actions"] == nil { // it was not deployed
		return "", nil, nil
	}
	kind, _ := header["type"].(string)
	name, pkg, _ := strings.Cut(kind, "@")
	name, version, _ := strings.Cut(name, "/")
	if version != "" {
		version = "=" + version
	}
	all, err := runs.Actions(ctx, environment.ProjectID, engine.ClassName{Name: name, Package: pkg, Version: version})
	if fault.KindOf(err) == fault.NotFound {
		return "", nil, nil
	}
	if err != nil || !slices.ContainsFunc(all, func(one muranopl.Action) bool { return one.Name == method && !one.Static }) {
		return "", nil, err
	}
	return objectID, map[string]any{"name": method}, nil
}

// unmasked refuses arguments that are the mask of a secret: nothing knows the secret.
func unmasked(args map[string]any) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(args)) {
		problems = append(problems, secret.UnmaskNothing(name, args[name]))
	}
	return errors.Join(problems...)
}

func errActionBusy(id string) error {
	return fault.New(fault.Forbidden, "Access was denied to this resource: environment %s is deploying or deleting, wait until that has ended", id)
}

// findAction finds the object whose header lists an action, and the action's entry; nil when there is none.
func findAction(value any, id string) (objectID string, action map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		if header, ok := v["?"].(map[string]any); ok {
			actions, _ := header["_actions"].(map[string]any)
			if found, ok := actions[id].(map[string]any); ok {
				objectID, _ = header["id"].(string)
				return objectID, found
			}
		}
		for key, element := range v {
			if key == "?" {
				continue
			}
			if objectID, action = findAction(element, id); action != nil {
				return objectID, action
			}
		}
	case []any:
		for _, element := range v {
			if objectID, action = findAction(element, id); action != nil {
				return objectID, action
			}
		}
	}
	return "", nil
}

// Result returns the result of a task of the environment: {"isException": bool, "result": …}, empty while it
// runs.
func (s Actions) Result(ctx context.Context, caller identity.Caller, environmentID, taskID string) (map[string]any, error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return nil, err
	}
	task, err := s.store.Tasks().Get(ctx, taskID)
	if err == nil && task.EnvironmentID != environmentID {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "%w with environment_id: %s and task_id: %s was not found.", ErrNoResult, environmentID, taskID)
	}
	result := maps.Clone(task.Result)
	delete(result, store.ResultListed)
	return result, err
}

// Classes reads classes, and calls their static methods.
type Classes struct{ *core }

// Classes are the classes of packages.
func (s *Service) Classes() Classes { return Classes{s.core} }

// CallStatic runs a public static method of a class that the caller's project may use, and returns its result. An exception of the method is no fault.
func (s Classes) CallStatic(ctx context.Context, caller identity.Caller, class engine.ClassName, method string, args map[string]any) (any, error) {
	if class.Name == "" || method == "" {
		return nil, fault.New(fault.Invalid, "Class name and method name must be specified for static action")
	}
	if err := unmasked(args); err != nil {
		return nil, err
	}
	return s.engine.CallStatic(ctx, caller.ProjectID, class, method, args)
}

// Schemas are JSON schemas of a class that the caller's project may use, under the key "", and of its model builders under their names;
// with methods only of these.
func (s Classes) Schemas(ctx context.Context, caller identity.Caller, class engine.ClassName, methods []string) (map[string]any, error) {
	return s.engine.Schemas(ctx, caller.ProjectID, class, methods)
}

// Actions are the public methods of a class that the caller's project may use, with the schemas of their arguments.
func (s Classes) Actions(ctx context.Context, caller identity.Caller, class engine.ClassName) ([]muranopl.Action, error) {
	return s.engine.Actions(ctx, caller.ProjectID, class)
}
