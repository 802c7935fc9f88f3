package openstack

import "slices"

// Effect is Heat's reaction when the template gives a property of a resource another value.
type Effect string

// The effects. All but the first two cost a server something.
const (
	// InPlace changes the property and nothing else.
	InPlace Effect = "in place"
	// Replugged attaches a server's new interfaces and detaches its former ones.
	Replugged Effect = "interfaces"
	// Readdressed gives a port other addresses than its server knows.
	Readdressed Effect = "other addresses"
	// Resized shuts a server down and starts it in another size.
	Resized Effect = "resize"
	// Rebuilt gives a server a new disk from an image.
	Rebuilt Effect = "rebuild"
	// Replaced makes another resource and deletes the first.
	Replaced Effect = "replace"
)

// effects are Heat's reactions by type of resource and property; a property that is not listed replaces. The version is Zed (2022.2); a later one has more
// properties, which are then taken to replace. test/cloud checks the table against a real Heat and against the local one, and docs/openstack-test.md shows
// it.
//
// A server's image, flavor and user data have policies (image_update_policy, …) with which they may replace instead, or, for user data, be ignored.
var effects = map[string]map[Effect][]string{
	serverType: {
		InPlace: {"admin_pass", "deployment_swift_data", "flavor_update_policy", "image_update_policy", "metadata", "name", "software_config_transport",
			"tags", "user_data_update_policy"},
		Replugged: {"networks"},
		Resized:   {"flavor"},
		Rebuilt:   {"image"},
		Replaced: {"availability_zone", "block_device_mapping", "block_device_mapping_v2", "config_drive", "diskConfig", "key_name", "personality",
			"reservation_id", "scheduler_hints", "security_groups", "user_data", "user_data_format"},
	},
	"OS::Neutron::Port": {
		InPlace: {"admin_state_up", "allowed_address_pairs", "binding:vnic_type", "device_id", "device_owner", "dns_name", "name", "port_security_enabled",
			"propagate_uplink_status", "qos_policy", "security_groups", "tags", "value_specs"},
		Readdressed: {"fixed_ips", "no_fixed_ips"},
		Replaced:    {"mac_address", "network"},
	},
	"OS::Neutron::FloatingIP": {
		InPlace:  {"dns_domain", "dns_name", "fixed_ip_address", "port_id"},
		Replaced: {"floating_ip_address", "floating_network", "floating_subnet", "value_specs"},
	},
	"OS::Neutron::FloatingIPAssociation": {
		InPlace: {"fixed_ip_address", "floatingip_id", "port_id"},
	},
	"OS::Neutron::SecurityGroup": {
		InPlace: {"description", "name", "rules"},
	},
	"OS::Neutron::SecurityGroupRule": {
		Replaced: {"description", "direction", "ethertype", "port_range_max", "port_range_min", "protocol", "remote_group", "remote_ip_prefix",
			"security_group"},
	},
	"OS::Neutron::Net": {
		InPlace:  {"admin_state_up", "dhcp_agent_ids", "dns_domain", "name", "port_security_enabled", "qos_policy", "shared", "tags", "value_specs"},
		Replaced: {"availability_zone_hints", "tenant_id"},
	},
	"OS::Neutron::Subnet": {
		InPlace:  {"allocation_pools", "dns_nameservers", "enable_dhcp", "gateway_ip", "host_routes", "name", "segment", "tags", "value_specs"},
		Replaced: {"cidr", "ip_version", "ipv6_address_mode", "ipv6_ra_mode", "network", "prefixlen", "subnetpool", "tenant_id"},
	},
	"OS::Neutron::Router": {
		InPlace:  {"admin_state_up", "availability_zone_hints", "external_gateway_info", "l3_agent_ids", "name", "tags", "value_specs"},
		Replaced: {"distributed", "ha"},
	},
	"OS::Neutron::RouterInterface": {
		Replaced: {"port", "router", "subnet"},
	},
	"OS::Nova::KeyPair": {
		Replaced: {"name", "public_key", "save_private_key", "type", "user"},
	},
	"OS::Nova::ServerGroup": {
		Replaced: {"name", "policies", "rules"},
	},
	"OS::Heat::Value": {
		InPlace: {"type", "value"},
	},
	"OS::Heat::RandomString": {
		Replaced: {"character_classes", "character_sequences", "length", "salt"},
	},
}

// EffectOf is Heat's reaction when a property of a resource of this type gets another value. An unknown property replaces.
func EffectOf(kind, property string) Effect {
	for effect, properties := range effects[kind] {
		if slices.Contains(properties, property) {
			return effect
		}
	}
	return Replaced
}

// Effects are the known reactions of properties, by type of resource.
func Effects() map[string]map[string]Effect {
	all := make(map[string]map[string]Effect, len(effects))
	for kind, byEffect := range effects {
		all[kind] = map[string]Effect{}
		for effect, properties := range byEffect {
			for _, property := range properties {
				all[kind][property] = effect
			}
		}
	}
	return all
}
