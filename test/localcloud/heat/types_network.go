package heat

import (
	"context"
	"slices"
	"strings"

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

// gone is for deletions: what is not there needs none.
func gone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

func (j *job) owner() neutron.Owner { return neutron.Owner{ID: j.resource.PhysicalID} }

// begin settles the id with which a Neutron object will be made.
func (j *job) begin() error {
	if j.resource.PhysicalID != "" {
		return nil
	}
	return j.settle(j.resource.ID)
}

// findNetwork finds a network by id or name.
func (j *job) findNetwork(ref string) (string, error) {
	var byName []string
	for _, network := range j.network().Networks(j.project()) {
		if network.ID == ref {
			return ref, nil
		}
		if network.Name == ref {
			byName = append(byName, network.ID)
		}
	}
	return only("network", ref, byName)
}

func (j *job) findSubnet(ref string) (string, error) {
	var byName []string
	for _, subnet := range j.network().Subnets(j.project()) {
		if subnet.ID == ref {
			return ref, nil
		}
		if subnet.Name == ref {
			byName = append(byName, subnet.ID)
		}
	}
	return only("subnet", ref, byName)
}

func (j *job) findRouter(ref string) (string, error) {
	var byName []string
	for _, router := range j.network().Routers(j.project()) {
		if router.ID == ref {
			return ref, nil
		}
		if router.Name == ref {
			byName = append(byName, router.ID)
		}
	}
	return only("router", ref, byName)
}

func (j *job) findGroups(refs []any) (ids []string, err error) {
	known := j.network().SecurityGroups(j.project())
	ids = []string{}
	for _, one := range refs {
		ref, byName, found := text(one), []string(nil), ""
		for _, group := range known {
			if group.ID == ref {
				found = ref
			}
			if group.Name == ref {
				byName = append(byName, group.ID)
			}
		}
		if found == "" {
			if found, err = only("security_group", ref, byName); err != nil {
				return nil, err
			}
		}
		ids = append(ids, found)
	}
	return ids, nil
}

func only(what, ref string, found []string) (string, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fault.New(fault.NotFound, "Unable to find %s with name or id '%s'", what, ref)
	}
	return "", fault.New(fault.Conflict, "Multiple %ss with name '%s': use an id", what, ref)
}

func netType() resourceType {
	request := func(j *job) (r neutron.NetworkRequest, err error) {
		err = j.into(&r, "admin_state_up", "shared", "port_security_enabled", "mtu")
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		return r, err
	}
	return resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "admin_state_up": {kind: truth, update: true}, "shared": {kind: truth, update: true},
			"port_security_enabled": {kind: truth, update: true}, "mtu": {kind: number, update: true}, "tenant_id": {kind: words}, "value_specs": {kind: aMap},
			"tags": {kind: aList, update: true},
		},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			r, err := request(j)
			if err == nil {
				_, err = j.network().CreateNetwork(ctx, j.project(), r)
			}
			return err
		},
		update: func(ctx context.Context, j *job) error {
			r, err := request(j)
			if err == nil {
				_, err = j.network().UpdateNetwork(ctx, j.project(), j.resource.PhysicalID, r)
			}
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteNetwork(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			network, err := j.network().GetNetwork(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(network)
		},
	}
}

func subnetType() resourceType {
	request := func(j *job) (r neutron.SubnetRequest, err error) {
		err = j.into(&r, "gateway_ip", "allocation_pools", "dns_nameservers", "enable_dhcp", "host_routes")
		name := j.name()
		r.Name, r.Owner = &name, j.owner()
		return r, err
	}
	return resourceType{
		properties: map[string]property{
			"network": {kind: words, required: true}, "cidr": {kind: words, required: true}, "ip_version": {kind: number}, "name": {kind: words, update: true},
			"gateway_ip": {kind: words, update: true}, "allocation_pools": {kind: aList, update: true}, "dns_nameservers": {kind: aList, update: true},
			"enable_dhcp": {kind: truth, update: true}, "host_routes": {kind: aList, update: true}, "tenant_id": {kind: words}, "value_specs": {kind: aMap},
			"tags": {kind: aList, update: true},
		},
		aliases: map[string]string{"network_id": "network"},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			r, err := request(j)
			if err != nil {
				return err
			}
			r.CIDR = j.text("cidr")
			if version := j.text("ip_version"); version == "6" {
				r.IPVersion = 6
			}
			if r.NetworkID, err = j.findNetwork(j.text("network")); err != nil {
				return err
			}
			_, err = j.network().CreateSubnet(ctx, j.project(), r)
			return err
		},
		update: func(ctx context.Context, j *job) error {
			r, err := request(j)
			if err == nil {
				_, err = j.network().UpdateSubnet(ctx, j.project(), j.resource.PhysicalID, r)
			}
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteSubnet(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			subnet, err := j.network().GetSubnet(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(subnet)
		},
		// A network has room for one subnet of a range.
		deleteFirst: func(old, next map[string]any) bool { return text(old["network"]) == text(next["network"]) },
	}
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
				ip := neutron.FixedIP{IPAddress: text(entry["ip_address"])}
				if ref := text(entry["subnet"]) + text(entry["subnet_id"]); ref != "" {
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
	return resourceType{
		properties: map[string]property{
			"network": {kind: words, required: true}, "name": {kind: words, update: true}, "fixed_ips": {kind: aList, update: true}, "security_groups": {kind: aList, update: true},
			"allowed_address_pairs": {kind: aList, update: true}, "mac_address": {kind: words}, "admin_state_up": {kind: truth, update: true},
			"device_id": {kind: words, update: true}, "device_owner": {kind: words, update: true}, "port_security_enabled": {kind: truth, update: true},
			"binding:vnic_type": {kind: words, update: true}, "replacement_policy": {kind: words, update: true}, "value_specs": {kind: aMap}, "tags": {kind: aList, update: true},
		},
		aliases: map[string]string{"network_id": "network"},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			r, err := request(j)
			if err != nil {
				return err
			}
			r.MACAddress = j.text("mac_address")
			if r.NetworkID, err = j.findNetwork(j.text("network")); err != nil {
				return err
			}
			_, err = j.network().CreatePort(ctx, j.project(), r)
			return err
		},
		update: func(ctx context.Context, j *job) error {
			r, err := request(j)
			if err == nil {
				_, err = j.network().UpdatePort(ctx, j.project(), j.resource.PhysicalID, r)
			}
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeletePort(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			port, err := j.network().GetPort(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			attributes, err := object(port)
			if err != nil {
				return nil, err
			}
			subnets := []any{}
			for _, fixed := range port.FixedIPs {
				if subnet, err := j.network().GetSubnet(ctx, j.project(), fixed.SubnetID); err == nil {
					shown, err := object(subnet)
					if err != nil {
						return nil, err
					}
					subnets = append(subnets, shown["show"])
				}
			}
			attributes["subnets"] = subnets
			return attributes, nil
		},
		release: func(ctx context.Context, j *job) error {
			if _, ok := j.properties["fixed_ips"]; !ok {
				return nil
			}
			_, err := j.network().UpdatePort(ctx, j.project(), j.resource.PhysicalID, neutron.PortRequest{FixedIPs: &[]neutron.FixedIP{}})
			return gone(err)
		},
	}
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
		if gateway.NetworkID, err = j.findNetwork(text(info["network"])); err != nil {
			return r, err
		}
		if value, ok := info["enable_snat"]; ok && value != nil {
			snat, ok := boolean(value)
			if !ok {
				return r, notValid("external_gateway_info: enable_snat: %q is not a valid boolean", text(value))
			}
			gateway.EnableSNAT = &snat
		}
		for _, one := range listOf(info["external_fixed_ips"]) {
			entry, _ := one.(map[string]any)
			ip := neutron.FixedIP{IPAddress: text(entry["ip_address"])}
			if ref := text(entry["subnet"]); ref != "" {
				if ip.SubnetID, err = j.findSubnet(ref); err != nil {
					return r, err
				}
			}
			gateway.ExternalFixedIPs = append(gateway.ExternalFixedIPs, ip)
		}
		r.ExternalGatewayInfo = neutron.Some(gateway)
		return r, nil
	}
	return resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "external_gateway_info": {kind: aMap, update: true}, "admin_state_up": {kind: truth, update: true},
			"distributed": {kind: truth}, "ha": {kind: truth}, "value_specs": {kind: aMap}, "tags": {kind: aList, update: true},
		},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			r, err := request(j)
			if err == nil {
				_, err = j.network().CreateRouter(ctx, j.project(), r)
			}
			return err
		},
		update: func(ctx context.Context, j *job) error {
			r, err := request(j)
			if err == nil {
				_, err = j.network().UpdateRouter(ctx, j.project(), j.resource.PhysicalID, r)
			}
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteRouter(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			router, err := j.network().GetRouter(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(router)
		},
	}
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
				err = j.settle(router + ":port_id=" + port)
			case subnet != "":
				if subnet, err = j.findSubnet(subnet); err == nil {
					err = j.settle(router + ":subnet_id=" + subnet)
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
				// It may have been added before the crash; whoever removes it can tell.
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
	request := func(j *job) (r neutron.FloatingIPRequest) {
		r.Owner = j.owner()
		r.PortID, r.FixedIPAddress = neutron.Some(j.text("port_id")), j.text("fixed_ip_address")
		return r
	}
	return resourceType{
		properties: map[string]property{
			"floating_network": {kind: words, required: true}, "port_id": {kind: words, update: true}, "fixed_ip_address": {kind: words, update: true},
			"floating_ip_address": {kind: words}, "floating_subnet": {kind: words}, "value_specs": {kind: aMap}, "tags": {kind: aList, update: true},
		},
		aliases: map[string]string{"floating_network_id": "floating_network"},
		create: func(ctx context.Context, j *job) error {
			if err := j.begin(); err != nil {
				return err
			}
			r := request(j)
			r.FloatingIPAddress = j.text("floating_ip_address")
			var err error
			if r.FloatingNetworkID, err = j.findNetwork(j.text("floating_network")); err != nil {
				return err
			}
			_, err = j.network().CreateFloatingIP(ctx, j.project(), r)
			return err
		},
		update: func(ctx context.Context, j *job) error {
			_, err := j.network().UpdateFloatingIP(ctx, j.project(), j.resource.PhysicalID, request(j))
			return err
		},
		remove: func(ctx context.Context, j *job) error {
			return gone(j.network().DeleteFloatingIP(ctx, j.project(), j.resource.PhysicalID))
		},
		attributes: func(ctx context.Context, j *job) (map[string]any, error) {
			floating, err := j.network().GetFloatingIP(ctx, j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			return object(floating)
		},
	}
}

func associationType() resourceType {
	apply := func(ctx context.Context, j *job) error {
		floating := j.text("floatingip_id")
		if before, _, _ := strings.Cut(j.resource.PhysicalID, ":"); before != "" && before != floating {
			if err := dissociate(ctx, j); err != nil {
				return err
			}
		}
		if err := j.settle(floating + ":" + j.text("port_id")); err != nil {
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
	if string(current.PortID) != port { // somebody else's by now
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

// implicit adds the needs that Neutron has and templates do not write down: a port in a network needs the network's subnets,
// and a floating address needs the way from outside to the port.
func implicit(g graph, t *Template) {
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
		network := text(networkOf(t.Resources[subnet]))
		for _, port := range ofType("OS::Neutron::Port") {
			if text(networkOf(t.Resources[port])) == network {
				g.add(port, subnet)
			}
		}
		for _, server := range ofType("OS::Nova::Server") {
			for _, one := range listOf(t.Resources[server].Properties["networks"]) {
				entry, _ := one.(map[string]any)
				if text(entry["network"]) == network || text(entry["uuid"]) == network {
					g.add(server, subnet)
				}
			}
		}
	}
	for _, floating := range ofType("OS::Neutron::FloatingIP", "OS::Neutron::FloatingIPAssociation") {
		for _, needed := range ofType("OS::Neutron::RouterInterface", "OS::Neutron::Router") {
			g.add(floating, needed)
		}
	}
}
