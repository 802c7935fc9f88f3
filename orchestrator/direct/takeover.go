package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// TakeOver implements openstack.Taker. Nothing in the cloud is touched: all that is written is one transaction.
func (p *project) TakeOver(ctx context.Context, former openstack.Former) error {
	row := store.Stack{ID: store.NewID(), ProjectID: p.clients.ProjectID, Region: p.clients.Region, Name: former.Name, Action: actionUpdate, Status: complete}
	if former.Failed {
		row.Status = failed
	}
	parsed, err := parse(former.Content, p.pseudo(row))
	if err != nil {
		return err
	}
	s := &stack{project: p, row: row, template: parsed, resources: map[string]*resource{}}
	attributes := map[string]map[string]any{}
	for _, made := range former.Resources {
		if _, known := kinds[made.Type]; !known {
			return wrong("resource %s: its type %s works only with Heat", made.Name, made.Type)
		}
		if made.PhysicalID == "" {
			continue
		}
		action, status, _ := strings.Cut(made.Status, "_")
		if action == actionCreate && status != complete {
			status = inProgress // Heat may have lost track of it; the next change waits for it, or finds that it failed
		}
		s.resources[made.Name] = &resource{ID: store.NewID(), Name: made.Name, Type: made.Type, PhysicalID: made.PhysicalID, Asked: true, Action: action, Status: status}
		attributes[made.Name] = made.Attributes
	}
	done := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		if err := s.learn(ctx, name, attributes, former.Failed, done); err != nil {
			return fmt.Errorf("resource %s: %w", name, err)
		}
	}
	rows := make([]store.StackResource, 0, len(s.resources))
	for _, one := range s.resources {
		text, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("write what is known of resource %s: %w", one.Name, err)
		}
		rows = append(rows, store.StackResource{ID: one.ID, StackID: row.ID, Body: string(text)})
	}
	if row.Body, err = written(body{Content: former.Content}); err != nil {
		return err
	}
	if err := p.driver.rows.AddStackOf(ctx, &row, rows); !errors.Is(err, store.ErrDuplicate) {
		return err
	}
	return nil // another task has taken it over
}

// learn finds out the properties with which a resource was made, after the resources that it needs. The result of a failed change is unknown: properties
// that can change in place count as unknown, and the next change sends them again.
func (s *stack) learn(ctx context.Context, name string, attributes map[string]map[string]any, stale bool, done map[string]bool) error {
	one, wanted := s.resources[name], s.template.resources[name]
	if one == nil || done[name] {
		return nil
	}
	done[name] = true
	known := kinds[one.Type]
	if known.adopt != nil {
		known.adopt(one, attributes[name])
	}
	if wanted.kind != one.Type {
		return nil // the template has it no more, and it goes with the next change
	}
	for _, other := range wanted.needs {
		if err := s.learn(ctx, other, attributes, stale, done); err != nil {
			return fmt.Errorf("resource %s: %w", other, err)
		}
	}
	one.Needs, one.Retain = wanted.needs, wanted.retain
	resolved, err := s.scope(ctx).Resolve(wanted.properties)
	if err != nil {
		if stale {
			return nil
		}
		return err
	}
	if one.Properties, err = known.typed(resolved.(map[string]any)); err != nil {
		return err
	}
	if known.adopted != nil {
		known.adopted(one)
	}
	if stale && one.Status != inProgress { // a resource that is being made is continued when it is as wanted
		maps.DeleteFunc(one.Properties, func(property string, _ any) bool { return known.properties[property].inPlace(one.Type, property) })
	}
	return nil
}
