package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// ErrNoApplication is the cause of the fault that a request to add applications holds none.
var ErrNoApplication = errors.New("Request body is empty: please, provide application object model")

// Services returns the value at the path below the applications of the environment, or of the session's draft of it. With
// an empty path it is the list, each application with the environment's status under ?/status; nil where there is nothing.
func (s Models) Services(ctx context.Context, caller identity.Caller, environmentID, sessionID string, path []string) (any, error) {
	environment, sessions, err := s.withSessions(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	objects, err := s.draftAmong(ctx, environment, sessionID, sessions)
	if err != nil {
		return nil, err
	}
	services, ok := s.shown(ctx, environment, objects)["services"]
	if !ok {
		return []any{}, nil
	}
	if len(path) > 0 {
		value, found := lookUp(services, path)
		if !found && !namesNoElement(services, path) {
			return nil, fault.New(fault.NotFound, "The resource could not be found: there is nothing at %q", join(path))
		}
		return value, nil
	}
	status, _ := status(sessions)
	return withStatus(services, status)
}

// AddServices adds an application (body is an object) or several (a list) to the session's draft. The draft is checked only if
// validate is set; then errors are an *InvalidModel and nothing is added. A deployment checks everything and reports each error.
func (s Models) AddServices(ctx context.Context, caller identity.Caller, environmentID, sessionID string, path []string, body any, validate bool) error {
	environment, session, err := s.mayEdit(ctx, caller, environmentID, sessionID)
	if err != nil {
		return err
	}
	added, err := toAdd(path, copied(body))
	if err != nil {
		return err
	}
	return s.edit(ctx, environment, session, validate, func(objects map[string]any) error {
		services, _ := objects["services"].([]any)
		objects["services"] = append(services, added...)
		return nil
	})
}

// toAdd is the list of applications of a POST, whose body is one (an object) or several (a list).
func toAdd(path []string, body any) ([]any, error) {
	var added []any
	switch b := body.(type) {
	case map[string]any:
		if len(b) > 0 {
			added = []any{b}
		}
	case []any:
		added = b
	}
	if len(added) == 0 {
		return nil, fault.New(fault.Invalid, "%w", ErrNoApplication)
	}
	if len(path) > 0 {
		return nil, fault.New(fault.Invalid, "Applications are added by a POST to services, not below it (%s)", join(path))
	}
	return added, nil
}

// PutServices replaces the value at the path below the draft's applications: with an empty path the whole list. validate is as
// for AddServices.
func (s Models) PutServices(ctx context.Context, caller identity.Caller, environmentID, sessionID string, path []string, body any, validate bool) error {
	environment, session, err := s.mayEdit(ctx, caller, environmentID, sessionID)
	if err != nil {
		return err
	}
	if _, list := body.([]any); len(path) == 0 && !list {
		return fault.New(fault.Invalid, "The applications of an environment are a list")
	}
	body = copied(body)
	return s.edit(ctx, environment, session, validate, func(objects map[string]any) error {
		if err := replaceAt(objects, append([]string{"services"}, path...), body); err != nil {
			return err
		}
		if header, ok := objects["?"].(map[string]any); ok {
			header["updated"] = s.now().UTC().Format("2006-01-02 15:04:05.000000")
		}
		return nil
	})
}

// DeleteServices removes the value at the path below the draft's applications.
func (s Models) DeleteServices(ctx context.Context, caller identity.Caller, environmentID, sessionID string, path []string) error {
	_, session, err := s.mayEdit(ctx, caller, environmentID, sessionID)
	if err != nil {
		return err
	}
	err = s.store.Sessions().Edit(ctx, session.ID, func(model *store.Model) error {
		if model.Objects == nil {
			return staleSession(session.ID)
		}
		before := objectIDs(model.Objects)
		if err := s.within(func(objects map[string]any) error { return removeAt(objects, append([]string{"services"}, path...)) })(model.Objects); err != nil {
			return err
		}
		after := objectIDs(model.Objects)
		model.MayDestroy = append(model.MayDestroy, slices.DeleteFunc(before, func(id string) bool { return slices.Contains(after, id) })...)
		return nil
	})
	return editedSession(err, session.ID)
}

// Component returns an application of the environment, or of the session's draft of it, with its secrets: for the forms that edit it, and not for readers.
func (s Models) Component(ctx context.Context, caller identity.Caller, environmentID, sessionID, id string) (map[string]any, error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	objects, err := s.draft(ctx, environment, sessionID)
	if err != nil {
		return nil, err
	}
	if at := placeOf(objects, id); at >= 0 {
		return store.Copy(objects["services"].([]any)[at].(map[string]any)), nil
	}
	return nil, fault.New(fault.NotFound, "Environment %s has no application %s", environment.Name, id)
}

// ReplaceComponent puts an application in the place of its former state in the session's draft. A draft in which it has changed since is a fault of kind
// Conflict.
func (s Models) ReplaceComponent(ctx context.Context, caller identity.Caller, environmentID, sessionID string, was, now map[string]any) error {
	environment, session, err := s.mayEdit(ctx, caller, environmentID, sessionID)
	if err != nil {
		return err
	}
	now = store.Copy(now)
	return s.edit(ctx, environment, session, false, func(objects map[string]any) error {
		at := placeOf(objects, idOf(was))
		if at < 0 || !reflect.DeepEqual(objects["services"].([]any)[at], any(was)) {
			return fault.New(fault.Conflict, "Application %s was changed at the same time: look at it and try again", idOf(was))
		}
		objects["services"].([]any)[at] = now
		return nil
	})
}

// placeOf is the place of an application in a model; -1 for none.
func placeOf(objects map[string]any, id string) int {
	services, _ := objects["services"].([]any)
	return slices.IndexFunc(services, func(one any) bool { return id != "" && idOf(one) == id })
}

// mayEdit returns the environment and the session if that can be written to.
func (s Models) mayEdit(ctx context.Context, caller identity.Caller, environmentID, sessionID string) (store.Environment, store.Session, error) {
	if sessionID == "" {
		return store.Environment{}, store.Session{}, fault.New(fault.Invalid, "X-Configuration-Session header which indicates to the session is missed")
	}
	session, err := s.anySession(ctx, sessionID)
	if err != nil {
		return store.Environment{}, session, err
	}
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return environment, session, err
	}
	if session.EnvironmentID != environmentID {
		return environment, session, foreignSession(sessionID, environmentID)
	}
	if !session.IsDraft() {
		return environment, session, staleSession(sessionID)
	}
	return environment, session, Sessions(s).checkValid(ctx, environment, session)
}

// edit changes the draft's objects in one transaction. With validate it first checks that the draft could then be deployed: change
// is called on a copy.
func (s Models) edit(ctx context.Context, environment store.Environment, session store.Session, validate bool, change func(objects map[string]any) error) error {
	put := s.within(change)
	change = func(objects map[string]any) error {
		if err := put(objects); err != nil {
			return err
		}
		deployed := environment.Model.ObjectsCopy
		if deployed == nil {
			deployed = environment.Model.Objects
		}
		keepOrder(deployed, objects)
		return secret.Unmask(objects, session.Model.Objects, environment.Model.Objects, environment.Model.ObjectsCopy)
	}
	if validate {
		draft := store.Copy(session.Model.Objects)
		if err := change(draft); err != nil {
			return err
		}
		// Not within the transaction, because the classes are read from the same database.
		if _, _, problems := s.engine.Check(ctx, environment.ProjectID, environment.Model.Packages, store.ForClasses(environment.ID, draft)); len(problems) > 0 {
			return &InvalidModel{problems}
		}
	}
	err := s.store.Sessions().Edit(ctx, session.ID, func(model *store.Model) error {
		if model.Objects == nil {
			return staleSession(session.ID)
		}
		return change(model.Objects)
	})
	return editedSession(err, session.ID)
}

// within makes a change of objects fail when they become larger than a model may be.
func (s Models) within(change func(objects map[string]any) error) func(objects map[string]any) error {
	return func(objects map[string]any) error {
		before := sizeOf(objects)
		if err := change(objects); err != nil {
			return err
		}
		return s.bounded(before, objects)
	}
}

func editedSession(err error, sessionID string) error {
	switch {
	case errors.Is(err, store.ErrStale):
		return staleSession(sessionID)
	case errors.Is(err, store.ErrNotFound):
		return noSession(sessionID)
	}
	return err
}

// nodeCounts are the counts of running nodes, by the lists of nodes that they count from the front. masterCount counts the first master, too, which is in no list.
var nodeCounts = map[string]string{"masterNodes": "masterCount", "minionNodes": "nodeCount", "gatewayNodes": "gatewayCount", "nodes": "count"}

// keepOrder gives the nodes in a draft's lists the order of the present model, in which counts take the running ones from the front. Nodes that the present model does not
// have come after them. So the order in a file decides nothing: it replaces no node, and a lower count removes the same node from any order.
func keepOrder(present, draft map[string]any) {
	places := map[string]int{} // from 1 on
	eachNodeList(present, func(_ map[string]any, _ string, nodes []any) {
		for i, node := range nodes {
			places[idOf(node)] = i + 1
		}
	})
	place := func(node any) int { return cmp.Or(places[idOf(node)], math.MaxInt) }
	eachNodeList(draft, func(owner map[string]any, list string, nodes []any) {
		ordered := slices.Clone(nodes)
		slices.SortStableFunc(ordered, func(a, b any) int { return cmp.Compare(place(a), place(b)) })
		owner[list] = ordered
	})
}

// eachNodeList calls do for each list of objects in a value that has a count beside it.
func eachNodeList(value any, do func(owner map[string]any, list string, nodes []any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			nodes, is := v[key].([]any)
			if _, counted := v[nodeCounts[key]]; is && counted && v["?"] != nil && !slices.ContainsFunc(nodes, func(node any) bool { return idOf(node) == "" }) {
				do(v, key, nodes)
			}
			eachNodeList(v[key], do)
		}
	case []any:
		for _, one := range v {
			eachNodeList(one, do)
		}
	}
}
