package heat

import (
	"maps"
	"slices"

	"github.com/google/uuid"
)

// The states of stacks and resources, after their action.
const (
	inProgress = "IN_PROGRESS"
	complete   = "COMPLETE"
	failed     = "FAILED"
)

// The actions.
const (
	actionCreate   = "CREATE"
	actionUpdate   = "UPDATE"
	actionDelete   = "DELETE"
	actionRollback = "ROLLBACK"
	actionCheck    = "CHECK" // of resources only
)

// Stack is a stack as it is stored.
type Stack struct {
	ID, Name, ProjectID, UserID     string
	Trust, TrustorID                string  // through which Heat acts for the stack's user later; empty for none
	Target                          Target  // the desired state
	Previous                        *Target // the state before the update that is in progress or failed
	Tags                            []string
	TimeoutMins                     int
	DisableRollback                 bool
	Group                           bool // its resources are the members of a group in another stack
	Action, Status, Reason          string
	CreatedAt, UpdatedAt, DeletedAt string
	Resources                       map[string]*Resource
	Leftovers                       []*Resource // replaced resources that are still to be deleted
}

// Target is a client's content of a stack.
type Target struct {
	Template    map[string]any
	Files       map[string]string
	Parameters  map[string]any // given, not defaulted
	Environment map[string]any
}

// Resource is a resource as it is stored.
type Resource struct {
	ID                     string // of this incarnation, unique in the cloud
	Name, Type             string
	PhysicalID             string
	Action, Status, Reason string
	Properties             map[string]any // with which it was made or last changed
	Metadata               any
	Retain                 bool
	Needs                  []string // names of resources to be deleted after it
	Data                   map[string]string
	CreatedAt, UpdatedAt   string
}

// Event is one change of a stack's or a resource's state.
type Event struct {
	ID, StackID, Time, Resource, PhysicalID, Action, Status, Reason string
	Properties                                                      map[string]any
}

func (r *Resource) state() string {
	if r.Action == "" {
		return "INIT_COMPLETE"
	}
	return r.Action + "_" + r.Status
}

func (s Stack) state() string { return s.Action + "_" + s.Status }

// decided is the stack's template after the values of its parameters, and these values, with Heat's own ones.
func (s Stack) decided(t *Template) (*Template, map[string]any, error) {
	values, err := t.parametersOf(s.Target.Parameters)
	if err != nil {
		return nil, nil, err
	}
	values["OS::stack_id"], values["OS::stack_name"], values["OS::project_id"] = s.ID, s.Name, s.ProjectID
	made, err := t.decided(values, s.Target.Files)
	return made, values, err
}

// change changes a stack's row as one step.
func (s *Service) change(id string, change func(*Stack)) error {
	_, err := s.stacks.Update(id, change)
	return err
}

// setState notes a stack's state and the event of it.
func (s *Service) setState(id, action, status, reason string) error {
	var name string
	err := s.change(id, func(stack *Stack) {
		name = stack.Name
		stack.Action, stack.Status, stack.Reason = action, status, reason
	})
	if err != nil {
		return err
	}
	return s.note(id, Event{Resource: name, PhysicalID: id, Action: action, Status: status, Reason: reason})
}

// note appends an event.
func (s *Service) note(stackID string, event Event) error {
	event.ID, event.StackID, event.Time = uuid.NewString(), stackID, s.now()
	return s.events.Put(event.ID, event)
}

// eventsOf are a stack's events, oldest first.
func (s *Service) eventsOf(stackID string) []Event {
	return s.events.Where(func(event Event) bool { return event.StackID == stackID })
}

// setResource notes a resource's state in the stack's row, where it is either current or a leftover, and the event of it.
func (s *Service) setResource(stackID string, resource *Resource, action, status, reason string) error {
	resource.Action, resource.Status, resource.Reason = action, status, reason
	resource.UpdatedAt = s.now()
	if err := s.storeResource(stackID, resource); err != nil {
		return err
	}
	return s.note(stackID, Event{Resource: resource.Name, PhysicalID: resource.PhysicalID, Action: action, Status: status, Reason: reason, Properties: resource.Properties})
}

func (s *Service) storeResource(stackID string, resource *Resource) error {
	return s.change(stackID, func(stack *Stack) {
		for i, old := range stack.Leftovers {
			if old.ID == resource.ID {
				stack.Leftovers[i] = resource
				return
			}
		}
		stack.Resources[resource.Name] = resource
	})
}

// dropResource forgets a resource that is deleted.
func (s *Service) dropResource(stackID string, resource *Resource) error {
	return s.change(stackID, func(stack *Stack) {
		stack.Leftovers = slices.DeleteFunc(stack.Leftovers, func(r *Resource) bool { return r.ID == resource.ID })
		maps.DeleteFunc(stack.Resources, func(_ string, r *Resource) bool { return r.ID == resource.ID })
	})
}

// physicalName names the cloud's object of a resource, when the template gives no name: as in Heat stack-resource-random, so that two incarnations differ.
func (r *Resource) physicalName(stack string) string {
	return stack + "-" + r.Name + "-" + r.ID[len(r.ID)-12:]
}
