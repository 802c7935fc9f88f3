package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// resource is the row of one resource of a stack.
type resource struct {
	ID         string `json:"-"` // the mark on its physical resource
	Name       string
	Type       string
	PhysicalID string         // "" before it is known
	Properties map[string]any // as it was made
	Needs      []string       // names of the resources that it needs
	Action     string
	Status     string
	Reason     string
	Retain     bool              // it stays when it is not wanted any more
	Former     bool              // another one has its name now, and this one goes
	Asked      bool              // it was asked for, and may be there without its id being known
	Data       map[string]string // its type's notes
}

// stack is a stack while it is looked at or changed.
type stack struct {
	project  *project
	row      store.Stack
	holder   string
	template *template

	mutex     sync.Mutex
	resources map[string]*resource // by name
	former    []*resource
}

func (p *project) load(ctx context.Context, row store.Stack) (*stack, error) {
	rows, err := p.driver.rows.StackResources(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	made := &stack{project: p, row: row, resources: map[string]*resource{}}
	for _, kept := range rows {
		one := &resource{ID: kept.ID}
		if err := json.Unmarshal([]byte(kept.Body), one); err != nil {
			return nil, fmt.Errorf("read what is kept of a resource of stack %s: %w", row.Name, err)
		}
		if one.Former {
			made.former = append(made.former, one)
		} else {
			made.resources[one.Name] = one
		}
	}
	return made, nil
}

// put stores a resource.
func (s *stack) put(ctx context.Context, one *resource) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("write what is known of resource %s: %w", one.Name, err)
	}
	return s.project.driver.rows.PutStackResource(ctx, s.holder, store.StackResource{ID: one.ID, StackID: s.row.ID, Body: string(text)})
}

// set stores the present action on a resource.
func (s *stack) set(ctx context.Context, one *resource, action, status, reason string) error {
	one.Action, one.Status, one.Reason = action, status, reason
	return s.put(ctx, one)
}

func (s *stack) named(name string) *resource {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.resources[name]
}

// scope has the values for the template's functions.
func (s *stack) scope(ctx context.Context) hot.Scope {
	made := s.template.scope.Bounded()
	find := func(name string) (*job, error) {
		one := s.named(name)
		if one == nil {
			return nil, wrong("the stack has no resource %s", name)
		}
		return s.job(one, one.Properties), nil
	}
	made.Reference = func(name string) (any, error) {
		j, err := find(name)
		if err != nil {
			return nil, err
		}
		if refer := kinds[j.resource.Type].reference; refer != nil {
			return refer(j), nil
		}
		return j.resource.PhysicalID, nil
	}
	made.Attribute = func(name, attribute string) (any, error) {
		j, err := find(name)
		if err != nil {
			return nil, err
		}
		attributes, err := kinds[j.resource.Type].attributes(ctx, j)
		if err != nil {
			return nil, fmt.Errorf("find out about resource %s: %w", name, err)
		}
		if attribute == "" {
			return attributes, nil
		}
		value, known := attributes[attribute]
		if !known {
			return nil, wrong("resource %s has no attribute %s", name, attribute)
		}
		return value, nil
	}
	return made
}

func (s *stack) job(one *resource, properties map[string]any) *job {
	return &job{stack: s, resource: one, properties: properties}
}

// make makes a stack from its template, or deletes all of it. After the first failure no new resource is begun.
func (p *project) make(ctx context.Context, holder string, row store.Stack, content openstack.Content) error {
	s, err := p.load(ctx, row)
	if err != nil {
		return err
	}
	s.holder = holder
	if row.Action == actionDelete {
		return s.removeAll(ctx, slices.Concat(s.former, slices.Collect(maps.Values(s.resources))))
	}
	if s.template, err = parse(content, p.pseudo(row)); err != nil {
		return err
	}
	ready := map[string]chan struct{}{}
	for name := range s.template.resources {
		ready[name] = make(chan struct{})
	}
	var problems failures
	var group sync.WaitGroup
	for name, wanted := range s.template.resources {
		group.Go(func() {
			defer close(ready[name])
			for _, other := range wanted.needs {
				<-ready[other]
			}
			if ctx.Err() == nil && !problems.any() {
				problems.add(s.ensure(ctx, name, wanted))
			}
		})
	}
	group.Wait()
	if err := errors.Join(problems.err(), context.Cause(ctx)); err != nil {
		return err
	}
	unwanted := slices.Clone(s.former)
	for name, one := range s.resources {
		if _, stays := s.template.resources[name]; !stays {
			unwanted = append(unwanted, one)
		}
	}
	return s.removeAll(ctx, unwanted)
}

// ensure makes one resource as in the template; all its dependencies are ready.
func (s *stack) ensure(ctx context.Context, name string, wanted definition) error {
	current := s.named(name)
	known := kinds[wanted.kind]
	resolved, err := s.scope(ctx).Resolve(wanted.properties)
	var properties map[string]any
	if err == nil {
		properties, err = known.typed(resolved.(map[string]any))
	}
	if err != nil {
		if current == nil {
			current = &resource{ID: store.NewID(), Name: name, Type: wanted.kind}
			s.keep(current)
			return s.fail(ctx, current, actionCreate, err)
		}
		return fmt.Errorf("resource %s: %w", name, err)
	}
	if current != nil {
		current.Retain = wanted.retain
		done, err := s.adapt(ctx, current, wanted, properties)
		if done || err != nil {
			return err
		}
		if err := s.replace(ctx, current, wanted.kind, properties); err != nil {
			return err
		}
	}
	one := &resource{ID: store.NewID(), Name: name, Type: wanted.kind, Properties: properties, Needs: wanted.needs, Retain: wanted.retain}
	s.keep(one)
	return s.create(ctx, one)
}

func (s *stack) keep(one *resource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.resources[one.Name] = one
}

func (s *stack) create(ctx context.Context, one *resource) error {
	if err := s.set(ctx, one, actionCreate, inProgress, ""); err != nil {
		return err
	}
	if err := kinds[one.Type].create(ctx, s.job(one, one.Properties)); err != nil {
		return s.fail(ctx, one, actionCreate, err)
	}
	return s.set(ctx, one, actionCreate, complete, "")
}

// adapt keeps a resource that is there, goes on making it, or changes it in place; done is false when another one must come. Until a change has succeeded, the resource also
// needs its former resources: a failed change leaves it as it was, and it is deleted before them.
func (s *stack) adapt(ctx context.Context, current *resource, wanted definition, properties map[string]any) (done bool, err error) {
	kind := wanted.kind
	if current.Type != kind || current.Action == actionDelete || current.Status == failed && (current.Action == actionCreate || current.Action == actionCheck) {
		return false, nil
	}
	known := kinds[kind]
	differing := differences(current.Properties, properties)
	if current.Action == actionCreate && current.Status == inProgress {
		if len(differing) > 0 {
			return false, nil
		}
		current.Needs = wanted.needs
		return true, s.create(ctx, current)
	}
	if len(differing) == 0 && current.Status == complete {
		current.Needs = wanted.needs
		return true, s.put(ctx, current)
	}
	for _, property := range differing {
		if !known.properties[property].inPlace(kind, property) {
			if known.precious {
				return true, s.fail(ctx, current, actionUpdate, fmt.Errorf("it was made with other %s and cannot be changed: with another one in its place everything on it "+
					"would be lost. Put %s back to what it was, or take it out of the template and add another one", property, property))
			}
			return false, nil
		}
	}
	current.Needs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(current.Needs, wanted.needs))))
	if err := s.set(ctx, current, actionUpdate, inProgress, ""); err != nil {
		return true, err
	}
	if err := known.update(ctx, s.job(current, properties), differing); err != nil {
		return true, s.fail(ctx, current, actionUpdate, err)
	}
	current.Properties, current.Needs = properties, wanted.needs
	return true, s.set(ctx, current, actionUpdate, complete, "")
}

// differences lists the properties that have other values.
func differences(was, is map[string]any) (names []string) {
	all := maps.Clone(was)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(was[name], is[name]) {
			names = append(names, name)
		}
	}
	return names
}

// replace sets a resource aside, which goes when everything else is made; at once when the new one cannot be beside it.
func (s *stack) replace(ctx context.Context, current *resource, kind string, properties map[string]any) error {
	current.Former = true
	if err := s.put(ctx, current); err != nil {
		return err
	}
	s.mutex.Lock()
	delete(s.resources, current.Name)
	s.former = append(s.former, current)
	s.mutex.Unlock()
	known := kinds[current.Type]
	if current.Type != kind || known.alone == nil || !known.alone(current.Properties, properties) {
		return nil
	}
	return s.remove(ctx, current)
}

// removeAll deletes resources, each as soon as the resources that need it are gone. Resources that do not depend on a failure are deleted all the same.
func (s *stack) removeAll(ctx context.Context, unwanted []*resource) error {
	gone, after := map[string]chan struct{}{}, hot.Graph{}
	for _, one := range unwanted {
		gone[one.ID], after[one.ID] = make(chan struct{}), map[string]bool{}
	}
	// Resources of different templates of the stack could wait for each other in a circle, which add leaves out.
	for _, one := range unwanted {
		for _, other := range unwanted {
			if slices.Contains(other.Needs, one.Name) {
				after.Add(one.ID, other.ID)
			}
		}
	}
	var problems failures
	var mutex sync.Mutex
	stuck := map[string]bool{}
	var group sync.WaitGroup
	for _, one := range unwanted {
		group.Go(func() {
			defer close(gone[one.ID])
			blocked := false
			for other := range after[one.ID] {
				<-gone[other]
				mutex.Lock()
				blocked = blocked || stuck[other]
				mutex.Unlock()
			}
			var err error
			if !blocked && ctx.Err() == nil {
				err = s.remove(ctx, one)
				problems.add(err)
			}
			if blocked || err != nil {
				mutex.Lock()
				stuck[one.ID] = true
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return errors.Join(problems.err(), context.Cause(ctx))
}

func (s *stack) remove(ctx context.Context, one *resource) error {
	s.mutex.Lock()
	left := s.resources[one.Name] == one || slices.Contains(s.former, one)
	s.mutex.Unlock()
	if !left {
		return nil
	}
	if err := s.set(ctx, one, actionDelete, inProgress, ""); err != nil {
		return err
	}
	if !one.Retain {
		j := s.job(one, one.Properties)
		err := j.find(ctx)
		if err == nil && one.PhysicalID != "" {
			err = kinds[one.Type].remove(ctx, j)
		}
		if err != nil {
			return s.fail(ctx, one, actionDelete, err)
		}
	}
	if err := s.project.driver.rows.RemoveStackResource(ctx, s.holder, s.row.ID, one.ID); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.resources[one.Name] == one {
		delete(s.resources, one.Name)
	}
	s.former = slices.DeleteFunc(s.former, func(other *resource) bool { return other == one })
	return nil
}

// fail notes why a resource failed. One whose change was stopped stays in progress, so that it goes on.
func (s *stack) fail(ctx context.Context, one *resource, action string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := said(err)
	if err := s.set(ctx, one, action, failed, reason); err != nil {
		return err
	}
	return fmt.Errorf("resource %s: %s", one.Name, reason)
}

// failures are the errors of several goroutines.
type failures struct {
	mutex sync.Mutex
	all   []error
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all = append(f.all, err)
}

func (f *failures) any() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.all) > 0
}

func (f *failures) err() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return errors.Join(f.all...)
}
