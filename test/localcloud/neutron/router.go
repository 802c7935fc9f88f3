package neutron

import (
	"context"
	"errors"
	"net/netip"
	"slices"
)

// Router is a router as the API shows it.
type Router struct {
	Common
	AdminStateUp          bool         `json:"admin_state_up"`
	Status                string       `json:"status"`
	ExternalGatewayInfo   *GatewayInfo `json:"external_gateway_info"`
	Routes                []HostRoute  `json:"routes"`
	Distributed           bool         `json:"distributed"`
	HA                    bool         `json:"ha"`
	AvailabilityZoneHints []string     `json:"availability_zone_hints"`
	AvailabilityZones     []string     `json:"availability_zones"`
}

// GatewayInfo is the external side of a router.
type GatewayInfo struct {
	NetworkID        string    `json:"network_id"`
	EnableSNAT       *bool     `json:"enable_snat"`
	ExternalFixedIPs []FixedIP `json:"external_fixed_ips"`
}

// RouterRequest makes or changes a router. A gateway that is null, or has no network, is none.
type RouterRequest struct {
	Owner
	Name                  *string             `json:"name"`
	Description           *string             `json:"description"`
	AdminStateUp          *bool               `json:"admin_state_up"`
	ExternalGatewayInfo   Maybe[*GatewayInfo] `json:"external_gateway_info"`
	Routes                []HostRoute         `json:"routes"`
	Distributed           *bool               `json:"distributed"`
	HA                    *bool               `json:"ha"`
	AvailabilityZoneHints []string            `json:"availability_zone_hints"`
}

// InterfaceRequest names the object to connect a router to, or to disconnect it from: a subnet, whose gateway address the router gets, or a port.
type InterfaceRequest struct {
	SubnetID string `json:"subnet_id"`
	PortID   string `json:"port_id"`
}

// RouterInterface is the answer to adding and removing one.
type RouterInterface struct {
	ID        string   `json:"id"` // the router
	ProjectID string   `json:"project_id"`
	TenantID  string   `json:"tenant_id"`
	PortID    string   `json:"port_id"`
	NetworkID string   `json:"network_id"`
	SubnetID  string   `json:"subnet_id"`
	SubnetIDs []string `json:"subnet_ids"`
	Tags      []string `json:"tags"`
}

// Routers lists a project's routers.
func (s *Service) Routers(projectID string) (found []Router) {
	for _, router := range s.routers.All() {
		if router.belongs(projectID) {
			found = append(found, router)
		}
	}
	return found
}

// GetRouter returns a router of the project.
func (s *Service) GetRouter(_ context.Context, projectID, id string) (Router, error) {
	router, ok := s.routers.Get(id)
	if !ok || !router.belongs(projectID) {
		return Router{}, notFound("Router", "Router", id)
	}
	return router, nil
}

// CreateRouter makes a router of the project.
func (s *Service) CreateRouter(ctx context.Context, projectID string, request RouterRequest) (Router, error) {
	s.mutex.Lock()
	router, ok := s.routers.Get(request.ID)
	if !ok || !router.belongs(projectID) {
		router = Router{Common: s.common(request.ID, projectID, ""), AdminStateUp: true, Status: "ACTIVE", AvailabilityZones: []string{}}
		err := s.checkQuota(projectID, quotaRouter)
		if err == nil {
			err = s.changeRouter(ctx, &router, projectID, request)
		}
		if err != nil {
			s.mutex.Unlock()
			return Router{}, err
		}
	}
	s.mutex.Unlock()
	return router, s.applyRouter(ctx, router.ID)
}

// UpdateRouter changes a router of the project.
func (s *Service) UpdateRouter(ctx context.Context, projectID, id string, request RouterRequest) (Router, error) {
	s.mutex.Lock()
	router, err := s.GetRouter(ctx, projectID, id)
	if err == nil {
		err = s.changeRouter(ctx, &router, projectID, request)
	}
	s.mutex.Unlock()
	if err != nil {
		return Router{}, err
	}
	return router, s.applyRouter(ctx, id)
}

// changeRouter changes and stores. The caller holds the lock.
func (s *Service) changeRouter(ctx context.Context, router *Router, projectID string, request RouterRequest) error {
	if len(request.Routes) > 0 {
		return problem(400, "BadRequest", "routes: routers of the local cloud have no extra routes")
	}
	if request.ExternalGatewayInfo.Given {
		if err := s.changeGateway(ctx, router, projectID, request.ExternalGatewayInfo.Value); err != nil {
			return err
		}
	}
	set(&router.AdminStateUp, request.AdminStateUp)
	router.Routes, router.AvailabilityZoneHints = list(router.Routes), list(request.AvailabilityZoneHints)
	s.changed(&router.Common, request.Name, request.Description)
	return s.routers.Put(router.ID, *router)
}

func (s *Service) changeGateway(ctx context.Context, router *Router, projectID string, wanted *GatewayInfo) error {
	port, has := s.gatewayPort(router.ID)
	if wanted == nil || wanted.NetworkID == "" {
		if !has {
			router.ExternalGatewayInfo = nil
			return nil
		}
		for _, floating := range s.floatingIPs.All() {
			if string(floating.RouterID) == router.ID {
				return conflict("RouterExternalGatewayInUseByFloatingIp", "Gateway cannot be updated for router %s, since a gateway to external network %s is required by one or more floating IPs.", router.ID, port.NetworkID)
			}
		}
		router.ExternalGatewayInfo = nil
		_, err := s.ports.Delete(port.ID)
		return err
	}
	network, err := s.GetNetwork(ctx, projectID, wanted.NetworkID)
	if err != nil {
		return err
	}
	if !network.External {
		return problem(400, "BadRequest", "Bad router request: Network %s is not an external network.", network.ID)
	}
	if !has {
		port = Port{Common: s.common("", "", ""), NetworkID: network.ID, AdminStateUp: true, Status: "ACTIVE", VNICType: "normal", DeviceID: router.ID, DeviceOwner: ownerGateway, SecurityGroups: []string{}, AllowedAddressPairs: []AddressPair{}}
	}
	if !has || len(wanted.ExternalFixedIPs) > 0 {
		var addresses *[]FixedIP
		if len(wanted.ExternalFixedIPs) > 0 {
			addresses = &wanted.ExternalFixedIPs
		}
		if err := s.addressPort(&port, network, addresses, ""); err != nil {
			return err
		}
	}
	snat := wanted.EnableSNAT == nil || *wanted.EnableSNAT
	router.ExternalGatewayInfo = &GatewayInfo{NetworkID: network.ID, EnableSNAT: &snat, ExternalFixedIPs: port.FixedIPs}
	return s.ports.Put(port.ID, port)
}

func (s *Service) gatewayPort(routerID string) (Port, bool) {
	for _, port := range s.ports.All() {
		if port.DeviceOwner == ownerGateway && port.DeviceID == routerID {
			return port, true
		}
	}
	return Port{}, false
}

func (s *Service) interfacePorts(routerID string) (found []Port) {
	for _, port := range s.ports.All() {
		if port.DeviceOwner == ownerInterface && port.DeviceID == routerID {
			found = append(found, port)
		}
	}
	return found
}

// DeleteRouter removes a router that has no interfaces any more.
func (s *Service) DeleteRouter(ctx context.Context, projectID, id string) error {
	s.mutex.Lock()
	router, err := s.GetRouter(ctx, projectID, id)
	if err == nil && len(s.interfacePorts(id)) > 0 {
		err = conflict("RouterInUse", "Router %s still has ports", id)
	}
	if err == nil {
		err = s.changeGateway(ctx, &router, projectID, nil)
	}
	if err == nil {
		_, err = s.routers.Delete(id)
	}
	s.mutex.Unlock()
	if err != nil {
		return err
	}
	return s.applyRouter(ctx, id)
}

// AddRouterInterface connects a router to a subnet.
func (s *Service) AddRouterInterface(ctx context.Context, projectID, id string, request InterfaceRequest) (RouterInterface, error) {
	answer, err := s.addRouterInterface(ctx, projectID, id, request)
	if err != nil {
		return RouterInterface{}, err
	}
	return answer, s.applyRouter(ctx, id)
}

func (s *Service) addRouterInterface(ctx context.Context, projectID, id string, request InterfaceRequest) (RouterInterface, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	router, err := s.GetRouter(ctx, projectID, id)
	if err != nil {
		return RouterInterface{}, err
	}
	if (request.SubnetID == "") == (request.PortID == "") {
		return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Either subnet_id or port_id must be specified.")
	}
	var port Port
	var subnet Subnet
	if request.PortID != "" {
		if port, err = s.GetPort(ctx, projectID, request.PortID); err != nil {
			return RouterInterface{}, err
		}
		if port.DeviceID != "" {
			return RouterInterface{}, conflict("PortInUse", "Unable to complete operation on port %s for network %s. Port already has an attached device %s.", port.ID, port.NetworkID, port.DeviceID)
		}
		if len(port.FixedIPs) == 0 {
			return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Router port must have at least one fixed IP.")
		}
		subnet, _ = s.subnets.Get(port.FixedIPs[0].SubnetID)
	} else if subnet, err = s.GetSubnet(ctx, projectID, request.SubnetID); err != nil {
		return RouterInterface{}, err
	} else if subnet.GatewayIP == "" {
		return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Subnet for router interface must have a gateway IP.")
	}
	if network, _ := s.networks.Get(subnet.NetworkID); network.External {
		return RouterInterface{}, problem(400, "BadRequest", "Bad router request: the external network is a router's gateway, not its interface.")
	}
	for _, other := range s.interfacePorts(id) {
		for _, fixed := range other.FixedIPs {
			connected, _ := s.subnets.Get(fixed.SubnetID)
			if connected.ID == subnet.ID {
				return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Router already has a port on subnet %s.", subnet.ID)
			}
			if connected.prefix().Overlaps(subnet.prefix()) {
				return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Cidr %s of subnet %s overlaps with cidr %s of subnet %s.", subnet.CIDR, subnet.ID, connected.CIDR, connected.ID)
			}
		}
	}
	if request.PortID == "" {
		port = Port{Common: s.common("", router.ProjectID, ""), NetworkID: subnet.NetworkID, AdminStateUp: true, VNICType: "normal", SecurityGroups: []string{}, AllowedAddressPairs: []AddressPair{}, ExtraDHCPOptions: []map[string]any{}}
		network, _ := s.networks.Get(subnet.NetworkID)
		if err := s.addressPort(&port, network, &[]FixedIP{{SubnetID: subnet.ID, IPAddress: string(subnet.GatewayIP)}}, ""); err != nil {
			return RouterInterface{}, err
		}
	}
	port.DeviceID, port.DeviceOwner, port.Status = id, ownerInterface, "ACTIVE"
	return interfaceOf(router, port), s.ports.Put(port.ID, port)
}

func interfaceOf(router Router, port Port) RouterInterface {
	subnet := port.FixedIPs[0].SubnetID
	return RouterInterface{ID: router.ID, ProjectID: router.ProjectID, TenantID: router.TenantID, PortID: port.ID, NetworkID: port.NetworkID, SubnetID: subnet, SubnetIDs: []string{subnet}, Tags: []string{}}
}

// RemoveRouterInterface disconnects a router from a subnet; floating addresses that lead there prevent it.
func (s *Service) RemoveRouterInterface(ctx context.Context, projectID, id string, request InterfaceRequest) (RouterInterface, error) {
	answer, err := s.removeRouterInterface(ctx, projectID, id, request)
	if err != nil {
		return RouterInterface{}, err
	}
	return answer, s.applyRouter(ctx, id)
}

func (s *Service) removeRouterInterface(ctx context.Context, projectID, id string, request InterfaceRequest) (RouterInterface, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	router, err := s.GetRouter(ctx, projectID, id)
	if err != nil {
		return RouterInterface{}, err
	}
	if request.SubnetID == "" && request.PortID == "" {
		return RouterInterface{}, problem(400, "BadRequest", "Bad router request: Either subnet_id or port_id must be specified.")
	}
	ports := s.interfacePorts(id)
	at := slices.IndexFunc(ports, func(p Port) bool {
		return (request.PortID == "" || p.ID == request.PortID) && (request.SubnetID == "" || p.in(request.SubnetID))
	})
	if at < 0 && request.PortID != "" {
		return RouterInterface{}, problem(404, "RouterInterfaceNotFound", "Router %s does not have an interface with id %s", id, request.PortID)
	}
	if at < 0 {
		return RouterInterface{}, problem(404, "RouterInterfaceNotFoundForSubnet", "Router %s has no interface on subnet %s", id, request.SubnetID)
	}
	port := ports[at]
	for _, floating := range s.floatingIPs.All() {
		leads := FixedIP{SubnetID: port.FixedIPs[0].SubnetID, IPAddress: string(floating.FixedIPAddress)}
		if behind, ok := s.ports.Get(string(floating.PortID)); ok && string(floating.RouterID) == id && slices.Contains(behind.FixedIPs, leads) {
			return RouterInterface{}, conflict("RouterInterfaceInUseByFloatingIP", "Router interface for subnet %s on router %s cannot be deleted, as it is required by one or more floating IPs.", port.FixedIPs[0].SubnetID, id)
		}
	}
	_, err = s.ports.Delete(port.ID)
	return interfaceOf(router, port), err
}

// routerFor finds the router through which a subnet reaches an external network.
func (s *Service) routerFor(subnetID, externalID string) (string, bool) {
	for _, port := range s.ports.All() {
		if port.DeviceOwner != ownerInterface || !port.in(subnetID) {
			continue
		}
		if gateway, ok := s.gatewayPort(port.DeviceID); ok && gateway.NetworkID == externalID {
			return port.DeviceID, true
		}
	}
	return "", false
}

func (s *Service) applyRoutersOf(ctx context.Context, networkID string) error {
	var problems error
	done := map[string]bool{}
	for _, port := range s.ports.All() {
		if port.NetworkID == networkID && port.DeviceOwner == ownerInterface && !done[port.DeviceID] {
			done[port.DeviceID] = true
			problems = errors.Join(problems, s.applyRouter(ctx, port.DeviceID))
		}
	}
	return problems
}

func (s *Service) prefixOf(fixed FixedIP) netip.Prefix {
	subnet, _ := s.subnets.Get(fixed.SubnetID)
	return netip.PrefixFrom(netip.MustParseAddr(fixed.IPAddress), subnet.prefix().Bits())
}
