package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// ComponentState is the state of a component or an environment. Unlike the status in Murano's API, it belongs to each component, and no action clears a failure.
type ComponentState string

// The states. A component's is the worst of its own, an environment's the worst of its components'.
const (
	StateFailed       = ComponentState(store.ComponentFailed)
	StateUnhealthy    = ComponentState("unhealthy") // it has a critical finding
	StateDeleting     = ComponentState("deleting")
	StateDeploying    = ComponentState("deploying") // a deployment, or an action of the component, waits or runs
	StateActionFailed = ComponentState(store.ComponentActionFailed)
	StateAsleep       = ComponentState("asleep")   // an environment whose servers a hibernation has stopped, or some of them
	StateDegraded     = ComponentState("degraded") // it has a finding of severity warning
	StateNotDeployed  = ComponentState(store.ComponentNotDeployed)
	StateUnknown      = ComponentState(store.ComponentUnknown)
	StateChanged      = ComponentState(store.ComponentChanged)
	StateReady        = ComponentState(store.ComponentReady)
	StateNew          = ComponentState("new") // an environment that was never deployed
)

// states are all states, the worst first.
var states = []ComponentState{StateFailed, StateUnhealthy, StateDeleting, StateDeploying, StateActionFailed, StateAsleep, StateDegraded, StateNotDeployed, StateUnknown, StateChanged, StateReady, StateNew}

// worst is the worst of two states; "" is none.
func worst(a, b ComponentState) ComponentState {
	if a == "" || b != "" && slices.Index(states, b) < slices.Index(states, a) {
		return b
	}
	return a
}

// Overview is an environment with the state of its components.
type Overview struct {
	Environment
	State      ComponentState
	Components map[ComponentState]int // how many components have each state; findings and drafts are not in it
}

// ComponentRun is a deployment, a deletion or an action that decides about the state of a component.
type ComponentRun struct {
	ID               string // of the task, which may be gone
	Kind             string // deployment, deletion or action
	ObjectID, Method string // of an action
	Failed           bool
	Text             string // the first error
	Ended            time.Time
}

// Component is an application of an environment, with all that it holds.
type Component struct {
	ID, Type, Name string
	State          ComponentState
	Change         string         // of the draft: added, changed or removed; "" for none
	Deployment     *ComponentRun  // the last deployment, or failed deletion, that has reached it; nil where none is known
	Failures       []ComponentRun // actions that failed and have not succeeded since, the oldest first
	Findings       map[string]int // open findings by their severities
}

// facts are the facts from which the states of environments follow, by the environments' ids.
type facts struct {
	counts   map[string][]store.ComponentCount
	findings map[string]ComponentState
	running  map[string][]store.Action
	sleeping map[string]store.HibernationState
}

// ofSeverity is the state of a component with a finding; "" where it makes none.
func ofSeverity(severity string) ComponentState {
	switch severity {
	case "critical":
		return StateUnhealthy
	case "warning":
		return StateDegraded
	}
	return ""
}

// factsOf reads the facts of environments.
func (s Environments) factsOf(ctx context.Context, part store.Part) (facts, error) {
	f := facts{map[string][]store.ComponentCount{}, map[string]ComponentState{}, map[string][]store.Action{}, nil}
	counts, err := s.store.Components().Counts(ctx, part)
	if err != nil {
		return f, err
	}
	for _, count := range counts {
		f.counts[count.EnvironmentID] = append(f.counts[count.EnvironmentID], count)
	}
	findings, err := s.store.Findings().Severities(ctx, part)
	if err != nil {
		return f, err
	}
	for _, one := range findings {
		f.findings[one.EnvironmentID] = worst(f.findings[one.EnvironmentID], ofSeverity(one.Severity))
	}
	if f.sleeping, err = s.store.Hibernations().States(ctx, part); err != nil {
		return f, err
	}
	tasks, err := s.store.Tasks().Unfinished(ctx, part)
	for _, task := range tasks {
		f.running[task.EnvironmentID] = append(f.running[task.EnvironmentID], task.Action)
	}
	return f, err
}

// busy is the state that a task gives to all of an environment; "" where none runs, or only an action.
func (f facts) busy(environmentID string) ComponentState {
	for _, action := range f.running[environmentID] {
		if action.Method == "" {
			return StateDeleting
		}
		if action.ObjectID == environmentID {
			return StateDeploying
		}
	}
	return ""
}

// overview is the state of an environment.
func (f facts) overview(row store.Environment, sessions []store.Session) Overview {
	seen := Overview{Environment: seen(row), Components: map[ComponentState]int{}}
	seen.Status, _ = status(sessions)
	var state ComponentState
	known, number := false, 0
	for _, count := range f.counts[row.ID] {
		if count.Own {
			if known = count.Version == row.Version; known && ComponentState(count.State) != StateReady {
				state = worst(state, ComponentState(count.State))
			}
			continue
		}
		seen.Components[ComponentState(count.State)] += count.Number
		number += count.Number
	}
	if !known {
		clear(seen.Components)
		state = ""
		if row.Version > 0 {
			state = StateUnknown
		}
	}
	for one := range seen.Components {
		state = worst(state, one)
	}
	state = worst(state, f.findings[row.ID])
	for _, session := range sessions {
		if session.MayDiffer(row.Version) {
			state = worst(state, StateChanged)
		}
	}
	if f.sleeping[row.ID] != store.Awake {
		state = worst(state, StateAsleep)
	}
	if len(f.running[row.ID]) > 0 {
		state = worst(state, StateDeploying)
	}
	if busy := f.busy(row.ID); busy != "" {
		state = busy
		clear(seen.Components)
		if known && number > 0 {
			seen.Components[busy] = number
		}
	}
	if state == "" && row.Version == 0 {
		state = StateNew
	}
	seen.State = cmp.Or(state, StateReady)
	return seen
}

// Overviews are List with states, or, with a page, Page. It reads no model.
func (s Environments) Overviews(ctx context.Context, caller identity.Caller, options ListOptions, page *store.Page) (list []Overview, next string, err error) {
	project, err := options.project(caller)
	if err != nil {
		return nil, "", err
	}
	f, err := s.factsOf(ctx, store.Part{ProjectID: project}) // first: a task that ends meanwhile is in the sessions that are read then
	if err != nil {
		return nil, "", err
	}
	rows, sessions, next, err := s.rows(ctx, project, page)
	if err != nil {
		return nil, "", err
	}
	list = make([]Overview, len(rows))
	for i, row := range rows {
		list[i] = f.overview(row, sessions[row.ID])
	}
	return list, next, nil
}

// Components lists the components of an environment, as it is or as the session drafts it, with their states. own is the record of failures that belong to no component.
func (s Environments) Components(ctx context.Context, caller identity.Caller, id, sessionID string) (whole Overview, own Component, list []Component, err error) {
	row, sessions, err := s.withSessions(ctx, caller, id)
	if err != nil {
		return whole, own, nil, err
	}
	objects, err := s.draftAmong(ctx, row, sessionID, sessions)
	if err != nil {
		return whole, own, nil, err
	}
	records, err := s.store.Components().Of(ctx, row)
	if err != nil {
		return whole, own, nil, err
	}
	f, err := s.factsOf(ctx, store.Part{EnvironmentID: id})
	if err != nil {
		return whole, own, nil, err
	}
	findings, err := s.store.Findings().List(ctx, store.FindingsOf{EnvironmentID: id}, store.Page{})
	if err != nil {
		return whole, own, nil, err
	}
	list = componentsOf(row, objects, records)
	own = Component{State: StateReady, Findings: map[string]int{}}
	own.decided(records[""])
	places := map[string]*Component{}
	drafted, present := store.ComponentsOf(objects), store.ComponentsOf(row.Model.Objects)
	for i := range list {
		for _, inner := range append(objectIDs(drafted[list[i].ID]), objectIDs(present[list[i].ID])...) {
			places[inner] = &list[i]
		}
	}
	for _, one := range findings {
		component := places[one.ObjectID]
		if component == nil {
			component = &own
		}
		component.Findings[one.Severity]++
		component.State = worst(component.State, ofSeverity(one.Severity))
	}
	for _, action := range f.running[id] {
		if component := places[action.ObjectID]; component != nil {
			component.State = StateDeploying
		}
	}
	if busy := f.busy(id); busy != "" {
		own.State = busy
		for i := range list {
			list[i].State = busy
		}
	}
	return f.overview(row, sessions), own, list, nil
}

// componentsOf are the components of a model and the ones that it removes, with the states that their records give.
func componentsOf(row store.Environment, objects map[string]any, records map[string]store.Component) []Component {
	present := store.ComponentsOf(row.Model.Objects)
	former := store.ComponentsOf(store.ForAPI(row.Model.ObjectsCopy))
	list := []Component{}
	add := func(component map[string]any, change string) {
		id := idOf(component)
		header, _ := component["?"].(map[string]any)
		full, _ := header["type"].(string)
		class, _, _ := strings.Cut(full, "/")
		name, _ := component["name"].(string)
		headName, _ := header["name"].(string)
		made := Component{ID: id, Type: class, Name: cmp.Or(name, headName), Change: change, Findings: map[string]int{}}
		record := records[id]
		if records == nil && row.Version > 0 && former[id] != nil {
			record = store.Component{Outcome: store.OutcomeUnknown}
		}
		record.ObjectID = id
		made.decided(record)
		made.State = ComponentState(record.In(component))
		if change == "" && (record.Differs(component) || present[id] != nil && record.Checksum == "" && !store.SameComponent(component, present[id])) {
			made.Change = "changed"
		}
		list = append(list, made)
	}
	drafted := store.ComponentsOf(objects)
	services, _ := objects["services"].([]any)
	for _, one := range services {
		component, _ := one.(map[string]any)
		if id := idOf(component); id != "" && drafted[id] != nil {
			delete(drafted, id) // one id twice makes a model that is refused
			change := ""
			if present[id] == nil {
				change = "added"
			}
			add(component, change)
			delete(present, id)
		}
	}
	services, _ = row.Model.Objects["services"].([]any)
	for _, one := range services {
		component, _ := one.(map[string]any)
		if id := idOf(component); present[id] != nil {
			add(component, "removed")
			delete(present, id)
		}
	}
	return list
}

// decided sets the state of a record, and the runs that have decided about it.
func (c *Component) decided(record store.Component) {
	if record.State != "" {
		c.State = ComponentState(record.State)
	}
	if record.TaskID != "" {
		c.Deployment = &ComponentRun{ID: record.TaskID, Kind: record.Kind, Failed: record.Outcome == store.OutcomeFailed, Text: record.Text, Ended: record.Ended.Time()}
	}
	for _, one := range record.Failures {
		c.Failures = append(c.Failures, ComponentRun{ID: one.TaskID, Kind: "action", ObjectID: one.ObjectID, Method: one.Method, Failed: true, Text: one.Text, Ended: one.Ended.Time()})
	}
}
