package neutron

import (
	"context"
	"errors"
	"slices"

	"github.com/burano/burano/test/localcloud/fabric"
)

// Network is a network as the API shows it.
type Network struct {
	Common
	AdminStateUp          bool     `json:"admin_state_up"`
	Status                string   `json:"status"`
	Subnets               []string `json:"subnets"`
	Shared                bool     `json:"shared"`
	External              bool     `json:"router:external"`
	IsDefault             bool     `json:"is_default"`
	MTU                   int      `json:"mtu"`
	PortSecurityEnabled   bool     `json:"port_security_enabled"`
	AvailabilityZoneHints []string `json:"availability_zone_hints"`
	AvailabilityZones     []string `json:"availability_zones"`
	IPv4AddressScope      OrNull   `json:"ipv4_address_scope"`
	IPv6AddressScope      OrNull   `json:"ipv6_address_scope"`
}

// NetworkRequest makes or changes a network; nil fields stay or take their defaults.
type NetworkRequest struct {
	Owner
	Name                  *string  `json:"name"`
	Description           *string  `json:"description"`
	AdminStateUp          *bool    `json:"admin_state_up"`
	Shared                *bool    `json:"shared"`
	External              *bool    `json:"router:external"`
	MTU                   *int     `json:"mtu"`
	PortSecurityEnabled   *bool    `json:"port_security_enabled"`
	AvailabilityZoneHints []string `json:"availability_zone_hints"`
}

func (n Network) visible(projectID string) bool {
	return n.belongs(projectID) || n.Shared || n.External
}

// subnetOf4 is the first subnet of IPv4 of a network.
func (s *Service) subnetOf4(n Network) (Subnet, bool) {
	for _, id := range n.Subnets {
		if subnet, ok := s.subnets.Get(id); ok && subnet.IPVersion == 4 {
			return subnet, true
		}
	}
	return Subnet{}, false
}

func (n Network) fabric() fabric.Network {
	return fabric.Network{ID: n.ID, MTU: n.MTU, External: n.External}
}

// Networks lists the networks that a project sees: its own, shared and external networks.
func (s *Service) Networks(projectID string) (found []Network) {
	for _, network := range s.networks.All() {
		if network.visible(projectID) {
			found = append(found, network)
		}
	}
	return found
}

// GetNetwork returns a network that the project sees.
func (s *Service) GetNetwork(_ context.Context, projectID, id string) (Network, error) {
	network, ok := s.networks.Get(id)
	if !ok || !network.visible(projectID) {
		return Network{}, notFound("Network", "Network", id)
	}
	return network, nil
}

// CreateNetwork makes a network of the project.
func (s *Service) CreateNetwork(ctx context.Context, projectID string, request NetworkRequest) (Network, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	network, ok := s.networks.Get(request.ID)
	if ok && network.belongs(projectID) {
		return network, s.fabric.ApplyNetwork(ctx, network.fabric())
	}
	if err := s.checkQuota(projectID, quotaNetwork); err != nil {
		return Network{}, err
	}
	network = Network{Common: s.common(request.ID, projectID, ""), AdminStateUp: true, Status: "ACTIVE", MTU: 1450, PortSecurityEnabled: true, Subnets: []string{}, AvailabilityZones: []string{}}
	if request.External != nil && *request.External {
		return Network{}, problem(400, "BadRequest", "The local cloud has one external network, %s; no other can be made.", Public)
	}
	if err := s.changeNetwork(&network, request); err != nil {
		return Network{}, err
	}
	network.RevisionNumber = 1
	network.AvailabilityZoneHints = list(request.AvailabilityZoneHints)
	if err := s.networks.Put(network.ID, network); err != nil {
		return Network{}, err
	}
	if err := s.fabric.ApplyNetwork(ctx, network.fabric()); err != nil {
		_, forget := s.networks.Delete(network.ID)
		return Network{}, errors.Join(err, forget)
	}
	return network, nil
}

// UpdateNetwork changes a network of the project.
func (s *Service) UpdateNetwork(ctx context.Context, projectID, id string, request NetworkRequest) (Network, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	network, err := s.ownNetwork(ctx, projectID, id, "update_network")
	if err != nil {
		return Network{}, err
	}
	if request.External != nil && *request.External != network.External {
		return Network{}, problem(400, "BadRequest", "The local cloud has one external network, %s; router:external cannot be changed.", Public)
	}
	if err := s.changeNetwork(&network, request); err != nil {
		return Network{}, err
	}
	return network, s.networks.Put(id, network)
}

func (s *Service) changeNetwork(network *Network, request NetworkRequest) error {
	if request.MTU != nil && (*request.MTU < 68 || *request.MTU > 1500) {
		return invalid("MTU %d is not between 68 and 1500", *request.MTU)
	}
	set(&network.AdminStateUp, request.AdminStateUp)
	set(&network.Shared, request.Shared)
	set(&network.PortSecurityEnabled, request.PortSecurityEnabled)
	set(&network.MTU, request.MTU)
	s.changed(&network.Common, request.Name, request.Description)
	return nil
}

// DeleteNetwork removes a network with its subnets; ports on it prevent that.
func (s *Service) DeleteNetwork(ctx context.Context, projectID, id string) error {
	s.guardLock.Lock() // no firewall is made for a network that is being deleted
	defer s.guardLock.Unlock()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	network, err := s.ownNetwork(ctx, projectID, id, "delete_network")
	if err != nil {
		return err
	}
	inUse := slices.ContainsFunc(s.ports.All(), func(p Port) bool { return p.NetworkID == id })
	if inUse || network.External {
		return conflict("NetworkInUse", "Unable to complete operation on network %s. There are one or more ports still in use on the network.", id)
	}
	if err := s.fabric.DeleteNetwork(ctx, id); err != nil {
		return err
	}
	for _, subnet := range network.Subnets {
		if _, err := s.subnets.Delete(subnet); err != nil {
			return err
		}
	}
	_, err = s.networks.Delete(id)
	return err
}

// ownNetwork returns a network that the project may change.
func (s *Service) ownNetwork(ctx context.Context, projectID, id, rule string) (Network, error) {
	network, err := s.GetNetwork(ctx, projectID, id)
	if err == nil && !network.belongs(projectID) {
		return Network{}, disallowed(rule)
	}
	return network, err
}
