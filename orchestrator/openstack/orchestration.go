package openstack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/internal/fault"
)

// Stacks makes the stacks of a project: Heat does, or what takes its place (orchestrator/direct). Errors are gophercloud's, where Heat would give
// a status.
type Stacks interface {
	// List lists all stacks of a name, also those that are not Burano's.
	List(ctx context.Context, name string) ([]stacks.ListedStack, error)
	Get(ctx context.Context, name, id string) (*stacks.RetrievedStack, error)
	Template(ctx context.Context, name, id string) (map[string]any, error)
	// Extensions are the files that are kept of a stack, and what its environment maps types to.
	Extensions(ctx context.Context, name, id string) (files map[string]string, registry map[string]any, err error)
	Resources(ctx context.Context, name, id string) ([]stackresources.Resource, error)
	// Create, Update and Delete begin a change and return. Create may answer 409, or give no id, where there is a stack of that name.
	Create(ctx context.Context, name string, content Content) (id string, err error)
	Update(ctx context.Context, name, id string, content Content) error
	Delete(ctx context.Context, name, id string) error
	// MarkHealth says that a resource is to be replaced by the next update, and why; "" says that it is well.
	MarkHealth(ctx context.Context, name, id, resource, reason string) error
}

// Clients are the services of a project's cloud that stacks are made by without Heat.
type Clients struct {
	Network, Compute, Image *gophercloud.ServiceClient
	Volume                  func() (*gophercloud.ServiceClient, error) // a cloud may have none
	ProjectID, Region       string
}

// Orchestration says who makes stacks.
type Orchestration string

// What it may be. A stack that one has made stays with that one.
const (
	Auto   Orchestration = "auto" // Heat where the service catalog has one, else Burano itself
	Heat   Orchestration = "heat"
	Direct Orchestration = "direct" // Burano itself, by Nova, Neutron and Cinder
)

// orchestration is who makes the stacks of a service's projects. The zero value is Heat.
type orchestration struct {
	wanted Orchestration
	direct func(Clients) Stacks
}

// without tells whether a catalog without Heat will do.
func (o orchestration) without() bool { return o.direct != nil && o.wanted != Heat }

// Orchestrations are all that it may be.
func Orchestrations() []Orchestration { return []Orchestration{Auto, Heat, Direct} }

// Orchestrate has stacks made as it is wanted; direct makes them without Heat. It is called before the service is used. Without it all stacks are
// Heat's.
func (s *Service) Orchestrate(wanted Orchestration, direct func(Clients) Stacks) {
	s.orchestration = orchestration{wanted, direct}
}

// isMissing tells whether a service is not in the catalog.
func isMissing(err error) bool {
	var missing *gophercloud.ErrEndpointNotFound
	return errors.As(err, &missing)
}

// makers remembers who makes which stacks of a project.
type makers struct {
	setting orchestration

	mutex  sync.Mutex
	direct Stacks
	chosen map[string]Stacks // by the names of stacks
}

// byHeat is Heat, nil where there is none.
func (p *Project) byHeat() Stacks {
	if p.orchestration == nil {
		return nil
	}
	return heatStacks{p.orchestration}
}

// byHeatOf is Heat for the stack of this name, nil where there is none.
func (p *Project) byHeatOf(name string) Stacks {
	heat := p.byHeat()
	if heat != nil && p.Adopts(name) {
		return adoptedStacks{heat, name, p.adopted[name]}
	}
	return heat
}

// forget has it found out again who makes a stack.
func (m *makers) forget(name string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.chosen, name)
}

// withoutHeat is who makes stacks without Heat; nil where nobody does.
func (p *Project) withoutHeat() (Stacks, error) {
	m := p.makers
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.setting.direct == nil || m.direct != nil {
		return m.direct, nil
	}
	clients, err := p.clients()
	if err != nil {
		return nil, err
	}
	m.direct, m.chosen = m.setting.direct(clients), map[string]Stacks{}
	return m.direct, nil
}

// taker is who can go on with a stack of Heat's; false where nobody can.
func (p *Project) taker() (Taker, bool) {
	direct, err := p.withoutHeat()
	if err != nil {
		return nil, false
	}
	taker, able := direct.(Taker)
	return taker, able
}

// isHeats tells whether it is Heat who makes stacks.
func (p *Project) isHeats(by Stacks) bool {
	_, adopted := by.(adoptedStacks)
	return adopted || by == p.byHeat()
}

// stacks is who makes the stack of this name: who has made it already, or has taken it over, and else who is set.
func (p *Project) stacks(ctx context.Context, name string) (Stacks, error) {
	heat, m := p.byHeatOf(name), p.makers
	direct, err := p.withoutHeat()
	if err != nil || direct == nil {
		return heat, err
	}
	m.mutex.Lock()
	known := m.chosen[name]
	m.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := direct.List(ctx, name)
	if err != nil {
		return nil, err
	}
	chosen := direct
	switch {
	case heat == nil || len(made) > 0:
	case m.setting.wanted == Direct:
		others, err := heat.List(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("look whether Heat has made stack %s: %w", name, err)
		}
		if slices.ContainsFunc(others, isOurs) {
			return heat, nil
		}
	default:
		return heat, nil // which is asked each time: another task may take the stack over
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.chosen[name] = chosen
	return chosen, nil
}

// StackMaker is who makes the stack of this name. former is who has made it, as far as it was noted: where that was Heat and the service catalog has
// none any more, the error, of kind Conflict, says that nothing can be done with the stack.
func (p *Project) StackMaker(ctx context.Context, name string, former Orchestration) (Orchestration, error) {
	by, err := p.stacks(ctx, name)
	switch {
	case err != nil:
		return "", err
	case p.isHeats(by):
		return Heat, nil
	case former == Heat && p.orchestration == nil:
		return "", fault.New(fault.Conflict, "stack %s was made by Heat, and the service catalog has no Heat any more, so that Burano can neither change nor delete it: "+
			"have the cloud's operator put Heat back into the catalog", name)
	}
	return Direct, nil
}

// clients are the services of the project by which stacks are made without Heat.
func (p *Project) clients() (Clients, error) {
	image, err := openstack.NewImageV2(p.provider, p.endpoint)
	if err != nil {
		return Clients{}, fmt.Errorf("find Glance in the service catalog: %w", err)
	}
	projectID, err := p.ID()
	if err != nil {
		return Clients{}, fmt.Errorf("find out the project of the token: %w", err)
	}
	volume := func() (*gophercloud.ServiceClient, error) {
		client, err := openstack.NewBlockStorageV3(p.provider, p.endpoint)
		if err != nil {
			return nil, fmt.Errorf("find Cinder in the service catalog: %w", err)
		}
		return client, nil
	}
	return Clients{Network: p.network, Compute: p.compute, Image: image, Volume: volume, ProjectID: projectID, Region: p.region}, nil
}
