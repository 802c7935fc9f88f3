package heat

import (
	"context"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/neutron"
)

// This file is the resource types of Neutron. Their objects get the resource's own id, so that making them again finds them.

func (s *Service) networkTypes() map[string]resourceType {
	return map[string]resourceType{
		"OS::Neutron::Net":                   netType(),
		"OS::Neutron::Subnet":                subnetType(),
		"OS::Neutron::Port":                  portType(),
		"OS::Neutron::Router":                routerType(),
		"OS::Neutron::RouterInterface":       routerInterfaceType(),
		"OS::Neutron::FloatingIP":            floatingIPType(),
		"OS::Neutron::FloatingIPAssociation": associationType(),
		"OS::Neutron::SecurityGroup":         securityGroupType(),
		"OS::Neutron::SecurityGroupRule":     securityGroupRuleType(),
	}
}

// gone is for deletions: a missing object needs none.
func gone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

func (j *job) owner() neutron.Owner { return neutron.Owner{ID: j.resource.PhysicalID} }

// begin sets the id with which a Neutron object will be made.
func (j *job) begin() error {
	if j.resource.PhysicalID != "" {
		return nil
	}
	return j.setID(j.resource.ID)
}

// find finds a thing by its id, or by its name when only one has it.
func find[T any](what, ref string, known []T, identity func(T) (id, name string)) (string, error) {
	var byName []string
	for _, one := range known {
		id, name := identity(one)
		if id == ref {
			return id, nil
		}
		if name == ref {
			byName = append(byName, id)
		}
	}
	switch len(byName) {
	case 1:
		return byName[0], nil
	case 0:
		return "", fault.New(fault.NotFound, "Unable to find %s with name or id '%s'", what, ref)
	}
	return "", fault.New(fault.Conflict, "Multiple %ss with name '%s': use an id", what, ref)
}

func (j *job) findNetwork(ref string) (string, error) {
	return find("network", ref, j.network().Networks(j.project()), func(n neutron.Network) (string, string) { return n.ID, n.Name })
}

func (j *job) findSubnet(ref string) (string, error) {
	return find("subnet", ref, j.network().Subnets(j.project()), func(n neutron.Subnet) (string, string) { return n.ID, n.Name })
}

func (j *job) findRouter(ref string) (string, error) {
	return find("router", ref, j.network().Routers(j.project()), func(r neutron.Router) (string, string) { return r.ID, r.Name })
}

func (j *job) findGroups(refs []any) ([]string, error) {
	ids := []string{}
	for _, one := range refs {
		id, err := find("security_group", hot.Text(one), j.network().SecurityGroups(j.project()), func(g neutron.SecurityGroup) (string, string) { return g.ID, g.Name })
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// calls are Neutron's methods for one kind of object: R is the request, O the resulting object.
type calls[R, O any] struct {
	create func(Network, context.Context, string, R) (O, error)
	get    func(Network, context.Context, string, string) (O, error)
	update func(Network, context.Context, string, string, R) (O, error) // nil when it cannot be changed
	remove func(Network, context.Context, string, string) error
}

// resourceType fills in the common part of types whose resources are one object of Neutron. request builds its request; first adds the fields of its
// creation only, and may be nil.
func (c calls[R, O]) resourceType(t resourceType, request func(*job) (R, error), first func(*job, *R) error) resourceType {
	whole := func(j *job) (R, error) {
		r, err := request(j)
		if err == nil && first != nil {
			err = first(j, &r)
		}
		return r, err
	}
	t.refers = func(j *job) error {
		_, err := whole(j)
		return err
	}
	t.create = func(ctx context.Context, j *job) error {
		if err := j.begin(); err != nil {
			return err
		}
		r, err := whole(j)
		if err == nil {
			_, err = c.create(j.network(), ctx, j.project(), r)
		}
		return err
	}
	if c.update != nil {
		t.update = func(ctx context.Context, j *job) error {
			r, err := request(j)
			if err == nil {
				_, err = c.update(j.network(), ctx, j.project(), j.resource.PhysicalID, r)
			}
			return err
		}
	}
	t.remove = func(ctx context.Context, j *job) error {
		return gone(c.remove(j.network(), ctx, j.project(), j.resource.PhysicalID))
	}
	t.attributes = func(ctx context.Context, j *job) (map[string]any, error) {
		found, err := c.get(j.network(), ctx, j.project(), j.resource.PhysicalID)
		if err != nil {
			return nil, err
		}
		return object(found)
	}
	return t
}

func netType() resourceType {
	request := func(j *job) (r neutron.NetworkRequest, err error) {
		err = j.into(&r, "admin_state_up", "shared", "port_security_enabled")
		if specs, ok := j.properties["value_specs"]; err == nil && ok {
			err = convert(specs, &r)
		}
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		return r, err
	}
	t := resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "admin_state_up": {kind: truth, update: true}, "shared": {kind: truth, update: true},
			"port_security_enabled": {kind: truth, update: true}, "tenant_id": {kind: words}, "value_specs": {kind: aMap, update: true},
			"tags": {kind: aList, update: true},
		},
	}
	c := calls[neutron.NetworkRequest, neutron.Network]{Network.CreateNetwork, Network.GetNetwork, Network.UpdateNetwork, Network.DeleteNetwork}
	return c.resourceType(t, request, nil)
}

func subnetType() resourceType {
	request := func(j *job) (r neutron.SubnetRequest, err error) {
		err = j.into(&r, "gateway_ip", "allocation_pools", "dns_nameservers", "enable_dhcp", "host_routes")
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		return r, err
	}
	t := resourceType{
		properties: map[string]property{
			"network": {kind: words, required: true}, "cidr": {kind: words, required: true}, "ip_version": {kind: number}, "ipv6_address_mode": {kind: words}, "ipv6_ra_mode": {kind: words}, "name": {kind: words, update: true},
			"gateway_ip": {kind: words, update: true}, "allocation_pools": {kind: aList, update: true}, "dns_nameservers": {kind: aList, update: true},
			"enable_dhcp": {kind: truth, update: true}, "host_routes": {kind: aList, update: true}, "tenant_id": {kind: words}, "value_specs": {kind: aMap, update: true},
			"tags": {kind: aList, update: true},
		},
		aliases: map[string]string{"network_id": "network"},
		// A network has room for one subnet of a range.
		deleteFirst: func(old, next map[string]any) bool { return hot.Text(old["network"]) == hot.Text(next["network"]) },
	}
	first := func(j *job, r *neutron.SubnetRequest) (err error) {
		r.CIDR = j.text("cidr")
		if version := j.text("ip_version"); version == "6" {
			r.IPVersion = 6
		}
		for name, mode := range map[string]**string{"ipv6_address_mode": &r.IPv6AddressMode, "ipv6_ra_mode": &r.IPv6RAMode} {
			if text := j.text(name); text != "" {
				*mode = &text
			}
		}
		r.NetworkID, err = j.findNetwork(j.text("network"))
		return err
	}
	c := calls[neutron.SubnetRequest, neutron.Subnet]{Network.CreateSubnet, Network.GetSubnet, Network.UpdateSubnet, Network.DeleteSubnet}
	return c.resourceType(t, request, first)
}

func portType() resourceType {
	request := func(j *job) (r neutron.PortRequest, err error) {
		err = j.into(&r, "admin_state_up", "device_id", "device_owner", "port_security_enabled", "allowed_address_pairs", "binding:vnic_type")
		if err != nil {
			return r, err
		}
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		if groups, ok := j.properties["security_groups"].([]any); ok {
			ids, err := j.findGroups(groups)
			if err != nil {
				return r, err
			}
			r.SecurityGroups = &ids
		}
		if wanted, ok := j.properties["fixed_ips"].([]any); ok {
			fixed := []neutron.FixedIP{}
			for _, one := range wanted {
				entry, _ := one.(map[string]any)
				ip := neutron.FixedIP{IPAddress: hot.Text(entry["ip_address"])}
				if ref := hot.Text(entry["subnet"]) + hot.Text(entry["subnet_id"]); ref != "" {
					if ip.SubnetID, err = j.findSubnet(ref); err != nil {
						return r, err
					}
				}
				fixed = append(fixed, ip)
			}
			r.FixedIPs = &fixed
		}
		return r, nil
	}
	t := resourceType{
		properties: map[string]property{
			"network": {kind: words, required: true}, "name": {kind: words, update: true}, "fixed_ips": {kind: aList, update: true}, "security_groups": {kind: aList, update: true},
			"allowed_address_pairs": {kind: aList, update: true}, "mac_address": {kind: words}, "admin_state_up": {kind: truth, update: true},
			// replacement_policy has changed nothing since Heat 6, and templates of Murano have it.
			"replacement_policy": {kind: words, update: true, hidden: true}, "device_id": {kind: words, update: true}, "device_owner": {kind: words, update: true}, "port_security_enabled": {kind: truth, update: true},
			"binding:vnic_type": {kind: words, update: true}, "value_specs": {kind: aMap, update: true}, "tags": {kind: aList, update: true},
		},
		aliases: map[string]string{"network_id": "network"},
		release: func(ctx context.Context, j *job) error {
			if _, ok := j.properties["fixed_ips"]; !ok {
				return nil
			}
			_, err := j.network().UpdatePort(ctx, j.project(), j.resource.PhysicalID, neutron.PortRequest{FixedIPs: &[]neutron.FixedIP{}})
			return gone(err)
		},
	}
	first := func(j *job, r *neutron.PortRequest) (err error) {
		r.MACAddress = j.text("mac_address")
		r.NetworkID, err = j.findNetwork(j.text("network"))
		return err
	}
	c := calls[neutron.PortRequest, neutron.Port]{Network.CreatePort, Network.GetPort, Network.UpdatePort, Network.DeletePort}
	t = c.resourceType(t, request, first)
	plain := t.attributes
	t.attributes = func(ctx context.Context, j *job) (map[string]any, error) {
		attributes, err := plain(ctx, j)
		if err != nil {
			return nil, err
		}
		subnets := []any{}
		for _, one := range hot.List(attributes["fixed_ips"]) {
			fixed, _ := one.(map[string]any)
			if subnet, err := j.network().GetSubnet(ctx, j.project(), hot.Text(fixed["subnet_id"])); err == nil {
				shown, err := object(subnet)
				if err != nil {
					return nil, err
				}
				subnets = append(subnets, shown["show"])
			}
		}
		attributes["subnets"] = subnets
		return attributes, nil
	}
	return t
}

func routerType() resourceType {
	request := func(j *job) (r neutron.RouterRequest, err error) {
		err = j.into(&r, "admin_state_up", "distributed", "ha")
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		info, _ := j.properties["external_gateway_info"].(map[string]any)
		if err != nil || info == nil {
			r.ExternalGatewayInfo = neutron.Some[*neutron.GatewayInfo](nil)
			return r, err
		}
		gateway := &neutron.GatewayInfo{}
		if gateway.NetworkID, err = j.findNetwork(hot.Text(info["network"])); err != nil {
			return r, err
		}
		if value, ok := info["enable_snat"]; ok && value != nil {
			snat, ok := hot.Boolean(value)
			if !ok {
				return r, notValid("external_gateway_info: enable_snat: %q is not a valid boolean", hot.Text(value))
			}
			gateway.EnableSNAT = &snat
		}
		for _, one := range hot.List(info["external_fixed_ips"]) {
			entry, _ := one.(map[string]any)
			ip := neutron.FixedIP{IPAddress: hot.Text(entry["ip_address"])}
			if ref := hot.Text(entry["subnet"]); ref != "" {
				if ip.SubnetID, err = j.findSubnet(ref); err != nil {
					return r, err
				}
			}
			gateway.ExternalFixedIPs = append(gateway.ExternalFixedIPs, ip)
		}
		r.ExternalGatewayInfo = neutron.Some(gateway)
		return r, nil
	}
	t := resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "external_gateway_info": {kind: aMap, update: true}, "admin_state_up": {kind: truth, update: true},
			"distributed": {kind: truth}, "ha": {kind: truth}, "value_specs": {kind: aMap, update: true}, "tags": {kind: aList, update: true},
		},
	}
	c := calls[neutron.RouterRequest, neutron.Router]{Network.CreateRouter, Network.GetRouter, Network.UpdateRouter, Network.DeleteRouter}
	return c.resourceType(t, request, nil)
}

// routerInterfaceType has the physical id router:subnet_id=… or router:port_id=…, as Heat's.
func routerInterfaceType() resourceType {
	parse := func(physicalID string) (string, neutron.InterfaceRequest) {
		router, rest, _ := strings.Cut(physicalID, ":")
		key, id, _ := strings.Cut(rest, "=")
		if key == "port_id" {
			return router, neutron.InterfaceRequest{PortID: id}
		}
		return router, neutron.InterfaceRequest{SubnetID: id}
	}
	return resourceType{
		properties: map[string]property{"router": {kind: words, required: true}, "subnet": {kind: words}, "port": {kind: words}},
		aliases:    map[string]string{"router_id": "router", "subnet_id": "subnet", "port_id": "port"},
		create: func(ctx context.Context, j *job) error {
			router, err := j.findRouter(j.text("router"))
			if err != nil {
				return err
			}
			again := j.resource.PhysicalID != ""
			switch port, subnet := j.text("port"), j.text("subnet"); {
			case port != "":
				err = j.setID(router + ":port_id=" + port)
			case subnet != "":
				if subnet, err = j.findSubnet(subnet); err == nil {
					err = j.setID(router + ":subnet_id=" + subnet)
				}
			default:
				err = notValid("Property error: one of subnet and port must be given")
			}
			if err != nil {
				return err
			}
			_, wanted := parse(j.resource.PhysicalID)
			_, err = j.network().AddRouterInterface(ctx, j.project(), router, wanted)
			if again && fault.KindOf(err) != 0 {
				// It may have been added before the crash; the remover can find out.
				return nil
			}
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			if j.resource.PhysicalID == "" {
				return nil
			}
			router, wanted := parse(j.resource.PhysicalID)
			_, err := j.network().RemoveRouterInterface(ctx, j.project(), router, wanted)
			return gone(err)
		},
		deleteFirst: func(old, next map[string]any) bool { return true },
	}
}

func floatingIPType() resourceType {
	request := func(j *job) (r neutron.FloatingIPRequest, err error) {
		r.Owner = j.owner()
		r.PortID, r.FixedIPAddress = neutron.Some(j.text("port_id")), j.text("fixed_ip_address")
		return r, nil
	}
	t := resourceType{
		properties: map[string]property{
			"floating_network": {kind: words, required: true}, "port_id": {kind: words, update: true}, "fixed_ip_address": {kind: words, update: true},
			"floating_ip_address": {kind: words}, "floating_subnet": {kind: words}, "value_specs": {kind: aMap},
		},
		aliases: map[string]string{"floating_network_id": "floating_network"},
	}
	first := func(j *job, r *neutron.FloatingIPRequest) (err error) {
		r.FloatingIPAddress = j.text("floating_ip_address")
		r.FloatingNetworkID, err = j.findNetwork(j.text("floating_network"))
		return err
	}
	c := calls[neutron.FloatingIPRequest, neutron.FloatingIP]{Network.CreateFloatingIP, Network.GetFloatingIP, Network.UpdateFloatingIP, Network.DeleteFloatingIP}
	return c.resourceType(t, request, first)
}

func associationType() resourceType {
	apply := func(ctx context.Context, j *job) error {
		floating := j.text("floatingip_id")
		if before, _, _ := strings.Cut(j.resource.PhysicalID, ":"); before != "" && before != floating {
			if err := dissociate(ctx, j); err != nil {
				return err
			}
		}
		if err := j.setID(floating + ":" + j.text("port_id")); err != nil {
			return err
		}
		_, err := j.network().UpdateFloatingIP(ctx, j.project(), floating, neutron.FloatingIPRequest{PortID: neutron.Some(j.text("port_id")), FixedIPAddress: j.text("fixed_ip_address")})
		return err
	}
	return resourceType{
		properties: map[string]property{
			"floatingip_id": {kind: words, required: true, update: true}, "port_id": {kind: words, required: true, update: true}, "fixed_ip_address": {kind: words, update: true},
		},
		create: apply,
		update: apply,
		remove: dissociate,
	}
}

func dissociate(ctx context.Context, j *job) error {
	floating, port, _ := strings.Cut(j.resource.PhysicalID, ":")
	current, err := j.network().GetFloatingIP(ctx, j.project(), floating)
	if err != nil {
		return gone(err)
	}
	if string(current.PortID) != port { // another owner's by now
		return nil
	}
	_, err = j.network().UpdateFloatingIP(ctx, j.project(), floating, neutron.FloatingIPRequest{PortID: neutron.Some("")})
	return gone(err)
}

func mapKeys(m map[string]any) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// implicit adds Neutron's dependencies that templates do not contain: a port in a network needs the network's subnets, and a floating address needs the
// path from outside to the port.
func implicit(g hot.Graph, t *Template) {
	networkOf := func(definition Definition) any {
		if network, ok := definition.Properties["network"]; ok {
			return network
		}
		return definition.Properties["network_id"]
	}
	ofType := func(kinds ...string) (names []string) {
		for name, definition := range t.Resources {
			if slices.Contains(kinds, definition.Type) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	for _, subnet := range ofType("OS::Neutron::Subnet") {
		network := hot.Text(networkOf(t.Resources[subnet]))
		for _, port := range ofType("OS::Neutron::Port") {
			if hot.Text(networkOf(t.Resources[port])) == network {
				g.Add(port, subnet)
			}
		}
		for _, server := range ofType("OS::Nova::Server") {
			for _, one := range hot.List(t.Resources[server].Properties["networks"]) {
				entry, _ := one.(map[string]any)
				if hot.Text(entry["network"]) == network || hot.Text(entry["uuid"]) == network {
					g.Add(server, subnet)
				}
			}
		}
	}
	for _, floating := range ofType("OS::Neutron::FloatingIP", "OS::Neutron::FloatingIPAssociation") {
		for _, needed := range ofType("OS::Neutron::RouterInterface", "OS::Neutron::Router") {
			g.Add(floating, needed)
		}
	}
}
