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

// Stacks makes the stacks of a project: Heat does, or its replacement (orchestrator/direct). Errors are gophercloud's, where Heat would give a status.
type Stacks interface {
	// List lists all stacks of a name, also foreign ones.
	List(ctx context.Context, name string) ([]stacks.ListedStack, error)
	Get(ctx context.Context, name, id string) (*stacks.RetrievedStack, error)
	Template(ctx context.Context, name, id string) (map[string]any, error)
	// Extensions are the stored files of a stack, and its environment's mappings of types.
	Extensions(ctx context.Context, name, id string) (files map[string]string, registry map[string]any, err error)
	Resources(ctx context.Context, name, id string) ([]stackresources.Resource, error)
	// Create, Update and Delete begin a change and return. Create may answer 409, or give no id, where there is a stack of that name.
	Create(ctx context.Context, name string, content Content) (id string, err error)
	Update(ctx context.Context, name, id string, content Content) error
	Delete(ctx context.Context, name, id string) error
	// MarkHealth marks a resource to be replaced by the next update, with the reason; "" marks it healthy.
	MarkHealth(ctx context.Context, name, id, resource, reason string) error
}

// Clients are the services of a project's cloud that stacks are made by without Heat.
type Clients struct {
	Network, Compute, Image *gophercloud.ServiceClient
	Volume                  func() (*gophercloud.ServiceClient, error) // a cloud may have none
	ProjectID, Region       string
}

// Orchestration is the maker of stacks.
type Orchestration string

// The makers. A stack stays with its first maker.
const (
	Auto   Orchestration = "auto" // Heat where the service catalog has one, else Burano itself
	Heat   Orchestration = "heat"
	Direct Orchestration = "direct" // Burano itself, by Nova, Neutron and Cinder
)

// orchestration is the maker of stacks in a service's projects. The zero value is Heat.
type orchestration struct {
	wanted Orchestration
	direct func(Clients) Stacks
}

// without is true if a catalog without Heat will do.
func (o orchestration) without() bool { return o.direct != nil && o.wanted != Heat }

// Orchestrations are all that it may be.
func Orchestrations() []Orchestration { return []Orchestration{Auto, Heat, Direct} }

// Orchestrate has stacks made as it is wanted; direct makes them without Heat. It is called before the service is used. Without it all stacks are
// Heat's.
func (s *Service) Orchestrate(wanted Orchestration, direct func(Clients) Stacks) {
	s.orchestration = orchestration{wanted, direct}
}

// isMissing is true if a service is not in the catalog.
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

// withoutHeat is the maker of stacks without Heat; nil where there is none.
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

// taker can continue with a stack of Heat's; false where there is none.
func (p *Project) taker() (Taker, bool) {
	direct, err := p.withoutHeat()
	if err != nil {
		return nil, false
	}
	taker, able := direct.(Taker)
	return taker, able
}

// isHeats is true if Heat makes the stacks.
func (p *Project) isHeats(by Stacks) bool {
	_, adopted := by.(adoptedStacks)
	return adopted || by == p.byHeat()
}

// stacks is the maker of the stack of this name: its present maker, or else the configured one.
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
		return heat, nil // not cached: another task may take the stack over
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.chosen[name] = chosen
	return chosen, nil
}

// StackMaker is the maker of the stack of this name. former is the recorded maker, if known. If that was Heat and the service catalog has none any more,
// the error, of kind Conflict, explains that the stack cannot be changed.
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
	image, err := p.Glance.client()
	if err != nil {
		return Clients{}, err
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
