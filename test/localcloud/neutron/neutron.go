// Package neutron is the local cloud's Networking API v2.0 over the data plane of package fabric. Its answers are the real one's, as far as its clients
// here need them, and its objects can be pinged.
//
// The rules (visibility, refused deletions, texts and types of errors) come from Neutron's API reference and from its server's behaviour.
//
// All records are in state tables; the data plane is made from them, by Restore after a restart. Each object is one row, every address in use has a port
// (also the routers' and the floating ones, as in Neutron), and a change of the rows happens under one lock.
package neutron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/test/localcloud/fabric"
	"github.com/burano/burano/test/localcloud/state"
)

// Public is the name of the external network.
const Public = "public"

// Config has Neutron's state and its external network.
type Config struct {
	StateDir     string
	ExternalCIDR netip.Prefix
	External6    netip.Prefix // the external network's subnet of IPv6; none when it is not valid
	// Prefix begins the names of everything made on the machine, at most 6 letters; fabric.Prefix when empty. Two local clouds on one
	// machine (tests) need different ones, and different external networks.
	Prefix string
	Logger *slog.Logger
	// Now is the clock of created_at and updated_at; time.Now when nil.
	Now func() time.Time
}

// Service is Neutron. Its Go calls are for the other services of the local cloud. Each takes the project on whose behalf it acts, "" for an
// administrator's view of all projects. For a client's fault it returns an *Error, which is also a fault.
type Service struct {
	config Config
	fabric *fabric.Fabric
	logger *slog.Logger

	mutex          sync.RWMutex // held over every change of more than one row, and over the choice of an address
	networks       *state.Table[Network]
	subnets        *state.Table[Subnet]
	ports          *state.Table[Port]
	routers        *state.Table[Router]
	floatingIPs    *state.Table[FloatingIP]
	securityGroups *state.Table[SecurityGroup]
	servers        *state.Table[server]
	quotas         *state.Table[map[string]int] // by the projects' ids, set by admins

	guardLock       sync.Mutex                         // the firewalls follow the rows in their order
	metadata        func(serverID string) http.Handler // nil: nothing answers
	metadataServers sync.Map                           // router id → *http.Server
	routerLocks     sync.Map                           // router id → *sync.Mutex: its data plane follows the rows in their order
}

// New opens the state. Nothing on the machine changes before Restore.
func New(config Config) (*Service, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	dir := filepath.Join(config.StateDir, "neutron")
	plane, err := fabric.New(fabric.Config{StateDir: dir, Prefix: config.Prefix, External: config.ExternalCIDR, External6: config.External6, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("start neutron: %w", err)
	}
	s := &Service{config: config, fabric: plane, logger: config.Logger}
	if err := s.open(dir); err != nil {
		return nil, fmt.Errorf("start neutron: %w", err)
	}
	if err := s.makePublic(); err != nil {
		return nil, fmt.Errorf("make network %s: %w", Public, err)
	}
	return s, nil
}

func (s *Service) open(dir string) error {
	var problems [8]error
	s.networks, problems[0] = state.Open[Network](dir, "networks")
	s.subnets, problems[1] = state.Open[Subnet](dir, "subnets")
	s.ports, problems[2] = state.Open[Port](dir, "ports")
	s.routers, problems[3] = state.Open[Router](dir, "routers")
	s.floatingIPs, problems[4] = state.Open[FloatingIP](dir, "floatingips")
	s.securityGroups, problems[5] = state.Open[SecurityGroup](dir, "security-groups")
	s.servers, problems[6] = state.Open[server](dir, "servers")
	s.quotas, problems[7] = state.Open[map[string]int](dir, "quotas")
	return errors.Join(problems[:]...)
}

// makePublic makes the external network at the first start. The host has its first address; floating addresses and routers' gateways come from a pool that
// leaves a few free for experiments.
func (s *Service) makePublic() error {
	for _, network := range s.networks.All() {
		if network.External {
			subnet, _ := s.subnetOf4(network)
			if subnet.CIDR == s.config.ExternalCIDR.String() {
				return s.makePublic6(network)
			}
			return fmt.Errorf("this local cloud was made with the external network %s and is started with %s: take it down first, or start it as before", subnet.CIDR, s.config.ExternalCIDR)
		}
	}
	subnetID, host := uuid.NewString(), s.fabric.HostAddress()
	network := Network{Common: s.common(uuid.NewString(), "", Public), AdminStateUp: true, Status: "ACTIVE", External: true, MTU: 1500, PortSecurityEnabled: true, Subnets: []string{subnetID}}
	network.IsDefault = true
	subnet := Subnet{
		Common: s.common(subnetID, "", Public+"-subnet"), NetworkID: network.ID, IPVersion: 4, CIDR: s.config.ExternalCIDR.String(),
		GatewayIP: OrNull(host.String()), AllocationPools: []AllocationPool{{Start: nth(host, 9).String(), End: last(s.config.ExternalCIDR).Prev().String()}},
	}
	if err := s.subnets.Put(subnet.ID, subnet); err != nil {
		return err
	}
	if err := s.networks.Put(network.ID, network); err != nil {
		return err
	}
	return s.makePublic6(network)
}

// makePublic6 gives the external network its subnet of IPv6, also one that had none before.
func (s *Service) makePublic6(network Network) error {
	for _, id := range network.Subnets {
		if subnet, ok := s.subnets.Get(id); ok && subnet.IPVersion == 6 {
			if subnet.CIDR == s.config.External6.String() {
				return nil
			}
			return fmt.Errorf("this local cloud was made with the external IPv6 network %s and is started with another: take it down first, or start it as before", subnet.CIDR)
		}
	}
	if !s.config.External6.IsValid() {
		return nil
	}
	prefix, host := s.config.External6, s.fabric.HostAddress6()
	subnet := Subnet{Common: s.common("", "", Public+"-subnet6"), NetworkID: network.ID, IPVersion: 6, CIDR: prefix.String(), GatewayIP: OrNull(host.String()), AllocationPools: defaultPools(prefix, host)}
	if err := s.subnets.Put(subnet.ID, subnet); err != nil {
		return err
	}
	network.Subnets = append(network.Subnets, subnet.ID)
	return s.networks.Put(network.ID, network)
}

// Restore creates objects of the state that the machine lacks. It does not change existing ones.
func (s *Service) Restore(ctx context.Context) error {
	if err := s.fabric.ApplyExternal(ctx); err != nil {
		return err
	}
	for _, network := range s.networks.All() {
		if err := s.fabric.ApplyNetwork(ctx, network.fabric()); err != nil {
			return fmt.Errorf("restore network %s: %w", network.ID, err)
		}
	}
	for _, server := range s.servers.All() {
		if _, err := s.fabric.ApplyServer(ctx, server.ID); err != nil {
			return fmt.Errorf("restore server %s: %w", server.ID, err)
		}
	}
	if err := s.applyGuards(ctx); err != nil {
		return fmt.Errorf("restore security groups: %w", err)
	}
	for _, port := range s.ports.All() {
		if port.Device == "" {
			continue
		}
		if err := s.plug(ctx, port); err != nil {
			return fmt.Errorf("restore port %s: %w", port.ID, err)
		}
	}
	for _, router := range s.routers.All() {
		if err := s.applyRouter(ctx, router.ID); err != nil {
			return fmt.Errorf("restore router %s: %w", router.ID, err)
		}
	}
	return nil
}

// DeleteAll removes everything from the machine, by the names' prefix, and forgets everything. The service is of no use afterwards.
func (s *Service) DeleteAll(ctx context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := errors.Join(s.Close(), s.fabric.DeleteAll(ctx)); err != nil {
		return fmt.Errorf("delete networks: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(s.config.StateDir, "neutron")); err != nil {
		return fmt.Errorf("forget networks: %w", err)
	}
	return nil
}

// Common has the fields of every object.
type Common struct {
	ID             string   `json:"id"`
	Name           string   `json:"name"`
	Description    string   `json:"description"`
	ProjectID      string   `json:"project_id"`
	TenantID       string   `json:"tenant_id"`
	Tags           []string `json:"tags"`
	RevisionNumber int      `json:"revision_number"`
	CreatedAt      string   `json:"created_at"`
	UpdatedAt      string   `json:"updated_at"`
}

func (s *Service) common(id, projectID, name string) Common {
	if id == "" {
		id = uuid.NewString()
	}
	now := s.config.Now().UTC().Format(time.RFC3339)
	return Common{ID: id, Name: name, ProjectID: projectID, TenantID: projectID, Tags: []string{}, CreatedAt: now, UpdatedAt: now}
}

// changed sets the fields of every change of an object.
func (s *Service) changed(c *Common, name, description *string) {
	if name != nil {
		c.Name = *name
	}
	if description != nil {
		c.Description = *description
	}
	c.RevisionNumber++
	c.UpdatedAt = s.config.Now().UTC().Format(time.RFC3339)
}

// belongs reports whether an object is one of projectID's; "" sees all.
func (c Common) belongs(projectID string) bool { return projectID == "" || c.ProjectID == projectID }

// Owner is embedded in requests: an administrator makes things for other projects, and Heat chooses ids.
type Owner struct {
	ProjectID string `json:"project_id"`
	TenantID  string `json:"tenant_id"`
	// ID is the id of the object to be made; one that is there already with it is returned as it is, so that a call that is
	// repeated after a crash makes nothing twice. Not of the API.
	ID string `json:"-"`
}

func (o Owner) project() string {
	if o.ProjectID != "" {
		return o.ProjectID
	}
	return o.TenantID
}

// OrNull is a string that is null in JSON when it is empty.
type OrNull string

// MarshalJSON writes null for the empty string.
func (s OrNull) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// Maybe is a value of a request that may be absent, null (then it is the zero value) or given.
type Maybe[T any] struct {
	Given bool
	Value T
}

// Some is a given value.
func Some[T any](value T) Maybe[T] { return Maybe[T]{Given: true, Value: value} }

// UnmarshalJSON is called for null too, but not when the value is absent.
func (m *Maybe[T]) UnmarshalJSON(data []byte) error {
	m.Given = true
	return json.Unmarshal(data, &m.Value)
}

func set[T any](target *T, value *T) {
	if value != nil {
		*target = *value
	}
}

func list[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}
