package openstack

import (
	"encoding/json"
	"net/netip"
	"strings"
)

// templateVersion is the oldest version of Heat's language with all that is used here ("conditions", Newton).
const templateVersion = "2016-10-14"

// Template is a template in Heat's own language (HOT): https://docs.openstack.org/heat/latest/template_guide/hot_spec.html.
type Template struct {
	Version   string              `json:"heat_template_version"`
	Resources map[string]Resource `json:"resources"`
	Outputs   map[string]Output   `json:"outputs,omitempty"`
}

// Resource is one resource of a template.
type Resource struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties,omitempty"`
	DependsOn  []string       `json:"depends_on,omitempty"`
}

// Output is one value that a stack tells of its resources.
type Output struct {
	Value any `json:"value"`
}

// NewTemplate returns a template with nothing in it.
func NewTemplate() Template {
	return Template{Version: templateVersion, Resources: map[string]Resource{}, Outputs: map[string]Output{}}
}

// Map is the template as maps and lists.
func (t Template) Map() (map[string]any, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var made map[string]any
	err = json.Unmarshal(text, &made)
	return made, err
}

func (t Template) content() (Content, error) {
	made, err := t.Map()
	return Content{Template: made}, err
}

// The resources of an environment's network that its servers name: io.murano.resources.NeutronNetwork makes them.
const (
	networkResource = "network"
	subnetResource  = "subnet"
	uplinkResource  = "uplink"
)

// Rule lets traffic in that comes from a network.
type Rule struct {
	Protocol string // "tcp", "udp", "icmp", or "" for any
	Ports    [2]int // first and last; zeros for all
	From     string // a CIDR
}

// AddSecurityGroup adds a security group with these rules for incoming traffic; outgoing traffic is Neutron's default.
func (t Template) AddSecurityGroup(resource, name string, rules []Rule) {
	list := make([]map[string]any, len(rules))
	for i, rule := range rules {
		list[i] = map[string]any{"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": rule.From}
		if rule.Protocol != "" {
			list[i]["protocol"] = rule.Protocol
		}
		if rule.Ports[0] != 0 {
			list[i]["port_range_min"], list[i]["port_range_max"] = rule.Ports[0], rule.Ports[1]
		}
	}
	t.Resources[resource] = Resource{Type: "OS::Neutron::SecurityGroup", Properties: map[string]any{"name": name, "rules": list}}
}

// Server is a server with one port in the environment's network.
type Server struct {
	ID               string // names its resources; an object's id
	Name             string
	Flavor           string
	Image            string
	KeyName          string // "" for none
	AvailabilityZone string // "" for the cloud's choice
	UserData         string
	SecurityGroup    string         // resource name
	AlsoFrom         []netip.Prefix // other source addresses that the port lets through (pods)
	FloatingIP       bool
	External         string // id of the external network, for the floating IP
}

// serverSuffix makes the name of a server's resource from its id.
const serverSuffix = "-server"

// ServerResource is the name of a server's resource.
func ServerResource(id string) string { return id + serverSuffix }

// AddServer adds a server, its port, its floating IP when it has one, and the outputs that Addresses reads.
func (t Template) AddServer(s Server) {
	port := map[string]any{
		"name": s.Name, "network": get("resource", networkResource),
		"fixed_ips":       []any{map[string]any{"subnet": get("resource", subnetResource)}},
		"security_groups": []any{get("resource", s.SecurityGroup)},
	}
	if len(s.AlsoFrom) > 0 {
		var pairs []any
		for _, prefix := range s.AlsoFrom {
			pairs = append(pairs, map[string]any{"ip_address": prefix.String()})
		}
		port["allowed_address_pairs"] = pairs
	}
	t.Resources[s.ID+"-port"] = Resource{Type: "OS::Neutron::Port", Properties: port}
	server := map[string]any{
		"name": s.Name, "flavor": s.Flavor, "image": s.Image, "config_drive": true,
		"networks":  []any{map[string]any{"port": get("resource", s.ID+"-port")}},
		"user_data": s.UserData, "user_data_format": "RAW",
	}
	if s.KeyName != "" {
		server["key_name"] = s.KeyName
	}
	if s.AvailabilityZone != "" {
		server["availability_zone"] = s.AvailabilityZone
	}
	t.Resources[s.ID+serverSuffix] = Resource{Type: "OS::Nova::Server", Properties: server}
	t.Outputs[s.ID+serverSuffix] = Output{Value: get("resource", s.ID+serverSuffix)}
	t.Outputs[s.ID+"-address"] = Output{Value: get("attr", s.ID+"-port", "fixed_ips", 0, "ip_address")}
	if s.FloatingIP {
		t.Resources[s.ID+"-floating"] = Resource{Type: "OS::Neutron::FloatingIP", DependsOn: []string{uplinkResource}, Properties: map[string]any{
			"floating_network": s.External, "port_id": get("resource", s.ID+"-port"),
		}}
		t.Outputs[s.ID+"-floating"] = Output{Value: get("attr", s.ID+"-floating", "floating_ip_address")}
	}
}

// Addresses is what a stack tells of one of its servers.
type Addresses struct {
	ServerID string
	Fixed    netip.Addr
	Floating netip.Addr // not valid when the server has none
}

// Addresses reads what the stack tells of the server with this id.
func (s Stack) Addresses(id string) (Addresses, bool) {
	server, _ := s.Outputs[id+serverSuffix].(string)
	fixed, _ := s.Outputs[id+"-address"].(string)
	address, err := netip.ParseAddr(fixed)
	if server == "" || err != nil {
		return Addresses{}, false
	}
	known := Addresses{ServerID: server, Fixed: address}
	if floating, ok := s.Outputs[id+"-floating"].(string); ok {
		known.Floating, _ = netip.ParseAddr(strings.TrimSpace(floating))
	}
	return known, true
}

// get is HOT's get_resource, or get_attr with a path.
func get(what string, path ...any) map[string]any {
	if len(path) == 1 {
		return map[string]any{"get_" + what: path[0]}
	}
	return map[string]any{"get_" + what: path}
}
