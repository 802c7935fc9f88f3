package neutron

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"github.com/burano/burano/test/localcloud/fabric"
)

// Owners of ports that are not the users' own.
const (
	ownerServer    = "compute:nova"
	ownerInterface = "network:router_interface"
	ownerGateway   = "network:router_gateway"
	ownerFloating  = "network:floatingip"
)

// Port is a port as the API shows it.
type Port struct {
	Common
	NetworkID           string           `json:"network_id"`
	AdminStateUp        bool             `json:"admin_state_up"`
	Status              string           `json:"status"` // DOWN until it is plugged
	MACAddress          string           `json:"mac_address"`
	FixedIPs            []FixedIP        `json:"fixed_ips"`
	DeviceID            string           `json:"device_id"`
	DeviceOwner         string           `json:"device_owner"`
	SecurityGroups      []string         `json:"security_groups"`
	AllowedAddressPairs []AddressPair    `json:"allowed_address_pairs"`
	PortSecurityEnabled bool             `json:"port_security_enabled"`
	VNICType            string           `json:"binding:vnic_type"`
	VIFType             string           `json:"binding:vif_type"`
	HostID              string           `json:"binding:host_id"`
	ExtraDHCPOptions    []map[string]any `json:"extra_dhcp_opts"`

	// Fields that begin with _ are not shown.
	Device           string `json:"_device"`             // the interface's name in the server, "" when it is not plugged
	DeleteWithServer bool   `json:"_delete_with_server"` // Nova made it
}

// FixedIP is an address of a port in a subnet; in a request either may be empty.
type FixedIP struct {
	SubnetID  string `json:"subnet_id"`
	IPAddress string `json:"ip_address"`
}

// AddressPair is a further address that the server behind a port may use.
type AddressPair struct {
	IPAddress  string `json:"ip_address"`
	MACAddress string `json:"mac_address,omitempty"`
}

// PortRequest makes or changes a port.
type PortRequest struct {
	Owner
	NetworkID             string           `json:"network_id"`
	Name                  *string          `json:"name"`
	Description           *string          `json:"description"`
	AdminStateUp          *bool            `json:"admin_state_up"`
	MACAddress            string           `json:"mac_address"`
	FixedIPs              *[]FixedIP       `json:"fixed_ips"` // nil: one address of the network
	DeviceID              *string          `json:"device_id"`
	DeviceOwner           *string          `json:"device_owner"`
	SecurityGroups        *[]string        `json:"security_groups"` // ids; nil: the project's default group
	AllowedAddressPairs   *[]AddressPair   `json:"allowed_address_pairs"`
	PortSecurityEnabled   *bool            `json:"port_security_enabled"`
	VNICType              *string          `json:"binding:vnic_type"`
	HostID                *string          `json:"binding:host_id"`
	Profile               map[string]any   `json:"binding:profile"` // accepted without effect
	ExtraDHCPOptions      []map[string]any `json:"extra_dhcp_opts"` // accepted without effect
	PropagateUplinkStatus *bool            `json:"propagate_uplink_status"`
	// DeleteWithServer is set for ports that Nova makes itself and DetachServer deletes. Not of the API.
	DeleteWithServer bool `json:"-"`
}

func (p Port) in(subnetID string) bool {
	return slices.ContainsFunc(p.FixedIPs, func(f FixedIP) bool { return f.SubnetID == subnetID })
}

func (p Port) has(address netip.Addr) bool {
	return slices.ContainsFunc(p.FixedIPs, func(f FixedIP) bool { return f.IPAddress == address.String() })
}

// Ports lists a project's ports.
func (s *Service) Ports(projectID string) (found []Port) {
	for _, port := range s.ports.All() {
		if port.belongs(projectID) {
			found = append(found, port)
		}
	}
	return found
}

// GetPort returns a port of the project.
func (s *Service) GetPort(_ context.Context, projectID, id string) (Port, error) {
	port, ok := s.ports.Get(id)
	if !ok || !port.belongs(projectID) {
		return Port{}, notFound("Port", "Port", id)
	}
	return port, nil
}

// CreatePort makes a port with addresses in a network that the project sees.
func (s *Service) CreatePort(ctx context.Context, projectID string, request PortRequest) (Port, error) {
	port, err := s.createPort(ctx, projectID, request)
	if err != nil {
		return Port{}, err
	}
	return port, s.applyGuards(ctx) // others may let in the members of its groups
}

func (s *Service) createPort(ctx context.Context, projectID string, request PortRequest) (Port, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if port, ok := s.ports.Get(request.ID); ok && port.belongs(projectID) {
		return port, nil
	}
	network, err := s.GetNetwork(ctx, projectID, request.NetworkID)
	if err != nil {
		return Port{}, err
	}
	if err := s.checkQuota(projectID, quotaPort); err != nil {
		return Port{}, err
	}
	port := Port{Common: s.common(request.ID, projectID, ""), NetworkID: network.ID, AdminStateUp: true, Status: "DOWN", VNICType: "normal", VIFType: "unbound", PortSecurityEnabled: network.PortSecurityEnabled, DeleteWithServer: request.DeleteWithServer}
	if err := s.addressPort(&port, network, request.FixedIPs, request.MACAddress); err != nil {
		return Port{}, err
	}
	if request.SecurityGroups == nil && (request.PortSecurityEnabled == nil || *request.PortSecurityEnabled) && port.PortSecurityEnabled {
		group, err := s.defaultGroup(projectID)
		if err != nil {
			return Port{}, err
		}
		port.SecurityGroups = []string{group.ID}
	}
	if err := s.changePort(&port, projectID, request); err != nil {
		return Port{}, err
	}
	port.RevisionNumber = 1
	return port, s.ports.Put(port.ID, port)
}

// addressPort decides on the addresses of a port and its MAC.
func (s *Service) addressPort(port *Port, network Network, wanted *[]FixedIP, mac string) (err error) {
	if port.FixedIPs, err = s.fixedIPs(network, wanted, port.FixedIPs); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = s.makeAutomatic(port)
		}
	}()
	taken := map[string]bool{}
	for _, other := range s.ports.All() {
		if other.NetworkID == network.ID && other.ID != port.ID {
			taken[other.MACAddress] = true
		}
	}
	if mac != "" {
		parsed, err := net.ParseMAC(mac)
		if err != nil || len(parsed) != 6 {
			return invalid("'%s' is not a valid MAC address", mac)
		}
		if port.MACAddress = parsed.String(); taken[port.MACAddress] {
			return conflict("MacAddressInUse", "Unable to complete operation for network %s. The mac address %s is in use.", network.ID, mac)
		}
	}
	if port.MACAddress != "" {
		return nil
	}
	if len(port.FixedIPs) > 0 && port.FixedIPs[0].IPAddress != "" {
		port.MACAddress = fabric.MAC(network.ID, netip.MustParseAddr(port.FixedIPs[0].IPAddress)).String()
	}
	for port.MACAddress == "" || taken[port.MACAddress] {
		random := uuid.New()
		port.MACAddress = net.HardwareAddr{0xfa, 0x16, 0x3e, random[0], random[1], random[2]}.String()
	}
	return nil
}

// makeAutomatic gives a port the addresses that its server makes itself from its MAC address.
func (s *Service) makeAutomatic(port *Port) error {
	mac, err := net.ParseMAC(port.MACAddress)
	if err != nil {
		return err
	}
	for i, fixed := range port.FixedIPs {
		if fixed.IPAddress == "" {
			subnet, _ := s.subnets.Get(fixed.SubnetID)
			port.FixedIPs[i].IPAddress = fabric.EUI64(subnet.prefix(), mac).String()
		}
	}
	return nil
}

func (s *Service) changePort(port *Port, projectID string, request PortRequest) error {
	set(&port.PortSecurityEnabled, request.PortSecurityEnabled)
	if request.SecurityGroups != nil {
		if len(*request.SecurityGroups) > 0 && !port.PortSecurityEnabled {
			return problem(400, "PortSecurityAndIPRequiredForSecurityGroups", "Port security must be enabled and port must have an IP address in order to use security groups.")
		}
		for _, id := range *request.SecurityGroups {
			if group, ok := s.securityGroups.Get(id); !ok || !group.belongs(projectID) {
				return notFound("SecurityGroup", "Security group", id)
			}
		}
		port.SecurityGroups = *request.SecurityGroups
	}
	if request.AllowedAddressPairs != nil {
		for i, pair := range *request.AllowedAddressPairs {
			if _, err := parsePair(pair.IPAddress); err != nil {
				return invalid("'%s' is not a valid IP address or subnet", pair.IPAddress)
			}
			if mac, err := net.ParseMAC(pair.MACAddress); err == nil && len(mac) == 6 {
				(*request.AllowedAddressPairs)[i].MACAddress = mac.String()
			} else if pair.MACAddress != "" {
				return invalid("'%s' is not a valid MAC address", pair.MACAddress)
			}
			if pair.MACAddress == "" {
				(*request.AllowedAddressPairs)[i].MACAddress = port.MACAddress
			}
		}
		port.AllowedAddressPairs = *request.AllowedAddressPairs
	}
	set(&port.AdminStateUp, request.AdminStateUp)
	set(&port.DeviceID, request.DeviceID)
	set(&port.DeviceOwner, request.DeviceOwner)
	set(&port.VNICType, request.VNICType)
	set(&port.HostID, request.HostID)
	port.SecurityGroups, port.AllowedAddressPairs, port.ExtraDHCPOptions = list(port.SecurityGroups), list(port.AllowedAddressPairs), list(port.ExtraDHCPOptions)
	s.changed(&port.Common, request.Name, request.Description)
	return nil
}

// UpdatePort changes a port of the project. The MAC and the network stay.
func (s *Service) UpdatePort(ctx context.Context, projectID, id string, request PortRequest) (Port, error) {
	port, err := s.updatePort(ctx, projectID, id, request)
	if err != nil {
		return Port{}, err
	}
	return port, errors.Join(s.applyGuards(ctx), s.applyRoutersOf(ctx, port.NetworkID))
}

func (s *Service) updatePort(ctx context.Context, projectID, id string, request PortRequest) (Port, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	port, err := s.GetPort(ctx, projectID, id)
	if err != nil {
		return Port{}, err
	}
	if request.NetworkID != "" && request.NetworkID != port.NetworkID || request.MACAddress != "" && request.MACAddress != port.MACAddress {
		return Port{}, problem(400, "HTTPBadRequest", "Cannot update read-only attribute network_id or mac_address")
	}
	if request.FixedIPs != nil {
		network, _ := s.networks.Get(port.NetworkID)
		if err := s.addressPort(&port, network, request.FixedIPs, ""); err != nil {
			return Port{}, err
		}
		for _, floating := range s.floatingIPs.All() {
			if string(floating.PortID) == id && !port.has(netip.MustParseAddr(string(floating.FixedIPAddress))) {
				return Port{}, conflict("FixedIpInUse", "Address %s of port %s is behind floating IP %s.", floating.FixedIPAddress, id, floating.FloatingIPAddress)
			}
		}
	}
	if err := s.changePort(&port, projectID, request); err != nil {
		return Port{}, err
	}
	return port, s.ports.Put(id, port)
}

// DeletePort unplugs and removes a port of the project. Floating addresses lose it; a router's port goes with the router only.
func (s *Service) DeletePort(ctx context.Context, projectID, id string) error {
	port, err := s.GetPort(ctx, projectID, id)
	if err != nil {
		return err
	}
	switch port.DeviceOwner {
	case ownerInterface, ownerGateway, ownerFloating:
		return conflict("ServicePortInUse", "Port %s cannot be deleted directly via the port API: has device owner %s.", id, port.DeviceOwner)
	}
	return s.removePort(ctx, port)
}

func (s *Service) removePort(ctx context.Context, port Port) error {
	network, _ := s.networks.Get(port.NetworkID)
	if port.Device != "" {
		if err := s.fabric.Unplug(ctx, network.fabric(), port.ID); err != nil {
			return err
		}
	}
	s.mutex.Lock()
	for _, floating := range s.floatingIPs.All() {
		if string(floating.PortID) == port.ID {
			s.dissociate(&floating)
			if err := s.floatingIPs.Put(floating.ID, floating); err != nil {
				s.mutex.Unlock()
				return err
			}
		}
	}
	_, err := s.ports.Delete(port.ID)
	s.mutex.Unlock()
	if err != nil {
		return err
	}
	return errors.Join(s.applyGuards(ctx), s.applyRoutersOf(ctx, port.NetworkID))
}
