package heat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/hot"
)

// run completes the operation in progress in the stack's row, and then the rollback if that is wanted.
func (s *Service) run(ctx context.Context, id string) {
	for again := true; again; {
		stack, ok := s.stacks.Get(id)
		if !ok {
			return
		}
		err := s.act(ctx, stack)
		if ctx.Err() != nil {
			return // the end of the process, or a deletion that takes over: the row stays in progress
		}
		if again, err = s.finish(stack, err); err != nil {
			s.logger.Error("store the end of a stack operation", "stack", stack.Name, "error", err)
			return
		}
	}
}

func (s *Service) act(ctx context.Context, stack Stack) error {
	timeout := time.Hour
	if stack.TimeoutMins > 0 {
		timeout = time.Duration(stack.TimeoutMins) * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if stack.Action == actionDelete || stack.Action == actionRollback && stack.Previous == nil {
		return s.deleteEverything(ctx, stack.ID)
	}
	return s.converge(ctx, stack.ID) // also the rollback of an update, whose target is the former state
}

// finish notes the end of an operation. again is true when it failed and its rollback is in progress now.
func (s *Service) finish(stack Stack, err error) (again bool, _ error) {
	if err == nil {
		deleted := s.now()
		change := func(row *Stack) { row.Previous = nil }
		if stack.Action == actionDelete {
			if current, _ := s.stacks.Get(stack.ID); current.Trust != "" {
				if err := s.config.Delegations.EndDelegation(current.Trust); err != nil {
					return false, err
				}
			}
			change = func(row *Stack) { row.DeletedAt = deleted }
		}
		if err := s.change(stack.ID, change); err != nil {
			return false, err
		}
		return false, s.setState(stack.ID, stack.Action, complete, fmt.Sprintf("Stack %s completed successfully", stack.Action))
	}
	reason := fmt.Sprintf("Resource %s failed: %v", stack.Action, err)
	var one *failure
	if errors.As(err, &one) {
		reason = fmt.Sprintf("Resource %s failed: %v", one.action, one)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		reason = titleOf(stack.Action) + " timed out"
	}
	if stack.DisableRollback || stack.Action != actionCreate && stack.Action != actionUpdate {
		return false, s.setState(stack.ID, stack.Action, failed, reason)
	}
	if stack.Action == actionUpdate && stack.Previous != nil {
		if err := s.change(stack.ID, func(row *Stack) { row.Target = *row.Previous }); err != nil {
			return false, err
		}
	}
	return true, s.setState(stack.ID, actionRollback, inProgress, "Stack "+stack.Action+" failed, rolling back: "+reason)
}

func titleOf(action string) string { return action[:1] + strings.ToLower(action[1:]) }

// converge applies the target of a stack to its resources. First it makes and changes each as soon as its dependencies are ready, then it deletes unwanted
// ones. After the first failure it begins nothing new, and returns that failure.
func (s *Service) converge(ctx context.Context, id string) error {
	stack, _ := s.stacks.Get(id)
	template, err := parseTemplate(stack.Target.Template)
	if err != nil {
		return err
	}
	template, values, err := stack.decided(template)
	if err != nil {
		return err
	}
	needs := template.explicit()
	implicit(needs, template)

	now := func() Stack {
		current, _ := s.stacks.Get(id)
		return current
	}
	ready := map[string]chan struct{}{}
	for name := range needs {
		ready[name] = make(chan struct{})
	}
	var first firstError
	var group sync.WaitGroup
	for name, definition := range template.Resources {
		group.Go(func() {
			defer close(ready[name])
			for other := range needs[name] {
				<-ready[other]
			}
			if first.get() != nil || ctx.Err() != nil {
				return
			}
			first.set(s.ensure(ctx, id, name, definition, slices.Sorted(maps.Keys(needs[name])), s.scope(ctx, now, values, stack.Target.Files)))
		})
	}
	group.Wait()
	if err := first.get(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	stack, _ = s.stacks.Get(id)
	unwanted := slices.Clone(stack.Leftovers)
	for name, resource := range stack.Resources {
		if _, ok := template.Resources[name]; !ok {
			unwanted = append(unwanted, resource)
		}
	}
	return s.deleteResources(ctx, stack, unwanted)
}

// scope is the scope of functions in a stack's template.
func (s *Service) scope(ctx context.Context, of func() Stack, values map[string]any, files map[string]string) hot.Scope {
	find := func(name string) (Stack, *Resource, error) {
		stack := of()
		resource, ok := stack.Resources[name]
		if !ok {
			return stack, nil, invalid("InvalidTemplateReference", "The specified reference \"%s\" is incorrect.", name)
		}
		return stack, resource, nil
	}
	return hot.Scope{
		Parameters: values, Files: files,
		Reference: func(name string) (any, error) {
			_, resource, err := find(name)
			if err != nil {
				return nil, err
			}
			return s.reference(resource), nil
		},
		Attribute: func(name, attribute string) (any, error) {
			stack, resource, err := find(name)
			if err != nil {
				return nil, err
			}
			return s.attribute(ctx, stack, resource, attribute)
		},
	}
}

// ensure applies a definition to one resource; its dependencies are ready.
func (s *Service) ensure(ctx context.Context, id, name string, definition Definition, needs []string, scope hot.Scope) error {
	stack, _ := s.stacks.Get(id)
	kind := s.types[definition.Type]
	resolved, err := resolve(definition.Properties, scope)
	var properties map[string]any
	if err == nil {
		properties, err = kind.typed(resolved.(map[string]any))
	}
	var metadata any
	if err == nil {
		metadata, err = resolve(definition.Metadata, scope)
	}
	current := stack.Resources[name]
	if err != nil && current != nil { // the present one is as good as before
		return &failure{kind: kindOf(err), resource: name, action: actionUpdate, err: err}
	}
	if err != nil {
		return s.fail(id, s.newResource(name, definition.Type), actionCreate, err)
	}
	if current != nil {
		current.Metadata, current.Retain = metadata, definition.DeletionPolicy == "Retain"
		done, err := s.adapt(ctx, stack, current, kind, definition.Type, properties, needs)
		if done || err != nil {
			return err
		}
		if err := s.replace(ctx, stack, current, kind, definition.Type, properties); err != nil {
			return err
		}
	}
	resource := s.newResource(name, definition.Type)
	resource.Needs, resource.Metadata, resource.Retain, resource.Properties = needs, metadata, definition.DeletionPolicy == "Retain", properties
	return s.create(ctx, stack, resource)
}

func (s *Service) newResource(name, kind string) *Resource {
	return &Resource{ID: uuid.NewString(), Name: name, Type: kind, CreatedAt: s.now(), UpdatedAt: s.now()}
}

func (s *Service) create(ctx context.Context, stack Stack, resource *Resource) error {
	if err := s.setResource(stack.ID, resource, actionCreate, inProgress, "state changed"); err != nil {
		return err
	}
	if err := s.types[resource.Type].create(ctx, s.job(stack, resource, resource.Properties)); err != nil {
		return s.failUnlessCancelled(ctx, stack.ID, resource, actionCreate, err)
	}
	return s.setResource(stack.ID, resource, actionCreate, complete, "state changed")
}

// adapt keeps a resource that is there, or goes on making it, or changes it in place; done is false when it must be replaced. Until a change has succeeded, the resource
// also needs its former resources, as in Heat: a failed change leaves it as it was, and it is deleted before them.
func (s *Service) adapt(ctx context.Context, stack Stack, current *Resource, kind resourceType, wanted string, properties map[string]any, needs []string) (done bool, err error) {
	if current.Type != wanted || current.Action == actionDelete || current.Status == failed && (current.Action == actionCreate || current.Action == actionCheck) {
		return false, nil
	}
	differing := changed(current.Properties, properties)
	if current.Action == actionCreate && current.Status == inProgress {
		if len(differing) > 0 {
			return false, nil
		}
		current.Needs = needs
		return true, s.create(ctx, stack, current)
	}
	if len(differing) == 0 && current.Status == complete {
		// Heat looks up the objects that its properties name nevertheless, and fails when one is gone.
		if kind.refers != nil {
			if err := kind.refers(s.job(stack, current, properties)); err != nil {
				return true, s.failUnlessCancelled(ctx, stack.ID, current, actionUpdate, err)
			}
		}
		current.Needs = needs
		return true, s.storeResource(stack.ID, current)
	}
	if !kind.inPlace(differing, properties) {
		return false, nil
	}
	current.Needs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(current.Needs, needs))))
	if err := s.setResource(stack.ID, current, actionUpdate, inProgress, "state changed"); err != nil {
		return true, err
	}
	if err := kind.update(ctx, s.job(stack, current, properties)); err != nil {
		return true, s.failUnlessCancelled(ctx, stack.ID, current, actionUpdate, err)
	}
	current.Properties, current.Needs = properties, needs
	return true, s.setResource(stack.ID, current, actionUpdate, complete, "state changed")
}

// replace sets the current resource aside, to be deleted when everything else is made; at once when the new one cannot be beside it.
func (s *Service) replace(ctx context.Context, stack Stack, current *Resource, kind resourceType, wanted string, properties map[string]any) error {
	err := s.change(stack.ID, func(row *Stack) {
		delete(row.Resources, current.Name)
		row.Leftovers = append(row.Leftovers, current)
	})
	if err != nil {
		return err
	}
	if current.Type != wanted {
		return nil
	}
	if kind.deleteFirst != nil && kind.deleteFirst(current.Properties, properties) {
		return s.remove(ctx, stack, current)
	}
	if kind.release != nil {
		if err := kind.release(ctx, s.job(stack, current, current.Properties)); err != nil {
			return s.failUnlessCancelled(ctx, stack.ID, current, actionUpdate, err)
		}
	}
	return nil
}

func (s *Service) deleteEverything(ctx context.Context, id string) error {
	stack, _ := s.stacks.Get(id)
	return s.deleteResources(ctx, stack, append(slices.Clone(stack.Leftovers), slices.Collect(maps.Values(stack.Resources))...))
}

// deleteResources deletes each as soon as its dependents are gone. Resources that do not depend on a failure are still deleted.
func (s *Service) deleteResources(ctx context.Context, stack Stack, unwanted []*Resource) error {
	gone, after := map[string]chan struct{}{}, hot.Graph{}
	for _, resource := range unwanted {
		gone[resource.ID], after[resource.ID] = make(chan struct{}), map[string]bool{}
	}
	// Resources of different templates of the stack could wait for each other in a circle; add leaves that out.
	for _, resource := range unwanted {
		for _, other := range unwanted {
			if slices.Contains(other.Needs, resource.Name) {
				after.Add(resource.ID, other.ID)
			}
		}
	}
	var first firstError
	var mutex sync.Mutex
	stuck := map[string]bool{} // ids of the remaining ones
	var group sync.WaitGroup
	for _, resource := range unwanted {
		group.Go(func() {
			defer close(gone[resource.ID])
			blocked := false
			for other := range after[resource.ID] {
				<-gone[other]
				mutex.Lock()
				blocked = blocked || stuck[other]
				mutex.Unlock()
			}
			var err error
			if !blocked && ctx.Err() == nil {
				err = s.remove(ctx, stack, resource)
			}
			if blocked || err != nil {
				first.set(err)
				mutex.Lock()
				stuck[resource.ID] = true
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if err := first.get(); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *Service) remove(ctx context.Context, stack Stack, resource *Resource) error {
	if err := s.setResource(stack.ID, resource, actionDelete, inProgress, "state changed"); err != nil {
		return err
	}
	kind, known := s.types[resource.Type]
	if known && !resource.Retain {
		if err := kind.remove(ctx, s.job(stack, resource, resource.Properties)); err != nil {
			return s.failUnlessCancelled(ctx, stack.ID, resource, actionDelete, err)
		}
	}
	if err := s.setResource(stack.ID, resource, actionDelete, complete, "state changed"); err != nil {
		return err
	}
	return s.dropResource(stack.ID, resource)
}

// failUnlessCancelled leaves a resource whose work was interrupted in progress, so that it goes on.
func (s *Service) failUnlessCancelled(ctx context.Context, stackID string, resource *Resource, action string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return s.fail(stackID, resource, action, err)
}

func (s *Service) fail(stackID string, resource *Resource, action string, err error) error {
	problem := &failure{kind: kindOf(err), resource: resource.Name, action: action, err: err}
	if store := s.setResource(stackID, resource, action, failed, problem.Error()); store != nil {
		return errors.Join(problem, store)
	}
	return problem
}

// firstError keeps the first of several failures.
type firstError struct {
	mutex sync.Mutex
	err   error
}

func (f *firstError) set(err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.err
}
