package nova

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/neutron"
)

// Networks is Nova's view of Neutron.
type Networks interface {
	Networks(projectID string) []neutron.Network
	GetNetwork(ctx context.Context, projectID, id string) (neutron.Network, error)
	SecurityGroups(projectID string) []neutron.SecurityGroup
	GetPort(ctx context.Context, projectID, id string) (neutron.Port, error)
	CreatePort(ctx context.Context, projectID string, request neutron.PortRequest) (neutron.Port, error)
	CreateServerNamespace(ctx context.Context, serverID string) (netns string, err error)
	DeleteServerNamespace(ctx context.Context, serverID string) error
	AttachPort(ctx context.Context, portID, serverID, device string) (neutron.Interface, error)
	DescribePort(ctx context.Context, portID string) (neutron.Interface, error)
	DetachServer(ctx context.Context, serverID string) error
	DetachPort(ctx context.Context, portID, serverID string) error
	ServerAddresses(serverID string) []neutron.Address
}

// acceptInterfaces checks a request's networks, and completes them. Ports that Nova will make get their ids here, so that a repeated try makes none twice.
func (s *Service) acceptInterfaces(ctx context.Context, projectID string, request CreateServer) ([]Interface, error) {
	wanted := request.interfaces
	if len(wanted) == 0 && !request.noNetwork {
		found, err := s.onlyNetwork(projectID)
		if err != nil {
			return nil, err
		}
		wanted = found
	}
	if _, err := s.groupIDs(projectID, request.SecurityGroups); err != nil {
		return nil, err
	}
	accepted := []Interface{}
	for _, in := range wanted {
		var err error
		if in.PortID != "" {
			in, err = s.acceptPort(ctx, projectID, in, accepted)
		} else {
			in, err = s.acceptNetwork(ctx, projectID, in)
		}
		if err != nil {
			return nil, err
		}
		accepted = append(accepted, in)
	}
	return accepted, nil
}

func (s *Service) acceptPort(ctx context.Context, projectID string, in Interface, others []Interface) (Interface, error) {
	port, err := s.networks.GetPort(ctx, projectID, in.PortID)
	if err != nil {
		return in, fault.New(fault.Invalid, "%w", err)
	}
	twice := slices.ContainsFunc(others, func(o Interface) bool { return o.PortID == in.PortID })
	if twice || port.DeviceID != "" {
		return in, fault.New(fault.Conflict, "Port %s is still in use.", in.PortID)
	}
	if len(port.FixedIPs) == 0 {
		return in, fault.New(fault.Invalid, "Port %s requires a FixedIP in order to be used.", in.PortID)
	}
	in.NetworkID = port.NetworkID
	return in, nil
}

func (s *Service) acceptNetwork(ctx context.Context, projectID string, in Interface) (Interface, error) {
	network, err := s.networks.GetNetwork(ctx, projectID, in.NetworkID)
	if err != nil {
		return in, fault.New(fault.Invalid, "%w", err)
	}
	if network.External && !identity.From(ctx).Admin {
		return in, fault.New(fault.Forbidden, "It is not allowed to create an interface on external network %s", network.ID)
	}
	if len(network.Subnets) == 0 {
		return in, fault.New(fault.Invalid, "Network %s requires a subnet in order to boot instances on.", network.ID)
	}
	in.PortID, in.Own = uuid.NewString(), true
	return in, nil
}

// onlyNetwork is the network that a server gets when none is named: the project's, if it has just one.
func (s *Service) onlyNetwork(projectID string) ([]Interface, error) {
	var found []Interface
	for _, network := range s.networks.Networks(projectID) {
		if !network.External && len(network.Subnets) > 0 {
			found = append(found, Interface{NetworkID: network.ID})
		}
	}
	if len(found) > 1 {
		return nil, fault.New(fault.Conflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	return found, nil
}

// groupIDs finds the ids of security groups that are given by name or id.
func (s *Service) groupIDs(projectID string, refs []string) ([]string, error) {
	known := s.networks.SecurityGroups(projectID)
	ids := []string{}
	for _, ref := range refs {
		i := slices.IndexFunc(known, func(g neutron.SecurityGroup) bool { return g.ID == ref || g.Name == ref })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "Security group %s not found for project %s.", ref, projectID)
		}
		ids = append(ids, known[i].ID)
	}
	return ids, nil
}

// plug makes the ports that Nova makes, and plugs all of them into the server's namespace, in their order.
func (s *Service) plug(ctx context.Context, server Server) ([]neutron.Interface, error) {
	groups, err := s.groupIDs(server.ProjectID, server.SecurityGroups)
	if err != nil {
		return nil, err
	}
	var plugged []neutron.Interface
	for i, in := range server.Interfaces {
		if in.Own {
			request := neutron.PortRequest{
				Owner: neutron.Owner{ID: in.PortID}, NetworkID: in.NetworkID, DeviceID: &server.ID, DeleteWithServer: true,
			}
			if len(groups) > 0 { // otherwise the project's default group
				request.SecurityGroups = &groups
			}
			if in.FixedIP != "" {
				request.FixedIPs = &[]neutron.FixedIP{{IPAddress: in.FixedIP}}
			}
			if _, err := s.networks.CreatePort(ctx, server.ProjectID, request); err != nil {
				return nil, fmt.Errorf("make a port on network %s: %w", in.NetworkID, err)
			}
		}
		described, err := s.networks.AttachPort(ctx, in.PortID, server.ID, fmt.Sprintf("eth%d", i))
		if err != nil {
			return nil, fmt.Errorf("plug port %s: %w", in.PortID, err)
		}
		plugged = append(plugged, described)
	}
	return plugged, nil
}

func (s *Service) listInterfaces(w http.ResponseWriter, r *http.Request) error {
	server, err := s.visible(r)
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, in := range server.Interfaces {
		port, err := s.networks.GetPort(r.Context(), "", in.PortID)
		if err != nil {
			continue // not made yet, or gone
		}
		fixed := []any{}
		for _, f := range port.FixedIPs {
			fixed = append(fixed, map[string]any{"subnet_id": f.SubnetID, "ip_address": f.IPAddress})
		}
		bodies = append(bodies, map[string]any{
			"port_id": port.ID, "net_id": port.NetworkID, "mac_addr": port.MACAddress, "port_state": port.Status, "fixed_ips": fixed,
		})
	}
	answer.JSON(w, http.StatusOK, map[string]any{"interfaceAttachments": bodies})
	return nil
}
