package cloud

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// stackTemplate is a template in Heat's own language (HOT): https://docs.openstack.org/heat/latest/template_guide/hot_spec.html.
type stackTemplate struct {
	Version   string                   `json:"heat_template_version"`
	Resources map[string]stackResource `json:"resources"`
	Outputs   map[string]stackOutput   `json:"outputs,omitempty"`
}

// stackResource is one resource of a template.
type stackResource struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties,omitempty"`
	DependsOn  []string       `json:"depends_on,omitempty"`
}

// stackOutput is one value that a stack gives of its resources.
type stackOutput struct {
	Value any `json:"value"`
}

// emptyTemplate returns a template without resources.
func emptyTemplate() stackTemplate {
	return stackTemplate{Version: "2016-10-14", Resources: map[string]stackResource{}, Outputs: map[string]stackOutput{}}
}

// content is the template as the content of a stack.
func (t stackTemplate) content(tb testing.TB) driver.Content {
	tb.Helper()
	text, err := json.Marshal(t)
	require.NoError(tb, err)
	var made map[string]any
	require.NoError(tb, json.Unmarshal(text, &made))
	return driver.Content{Template: made}
}

// groupRule admits traffic from a network.
type groupRule struct {
	Protocol string // "tcp", "udp", "icmp", or "" for any
	Ports    [2]int // first and last; zeros for all
	From     string // a CIDR
}

// addSecurityGroup adds a security group with these rules for incoming traffic; outgoing traffic is Neutron's default.
func (t stackTemplate) addSecurityGroup(resource, name string, rules []groupRule) {
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
	t.Resources[resource] = stackResource{Type: "OS::Neutron::SecurityGroup", Properties: map[string]any{"name": name, "rules": list}}
}

// serverPlan is a server with one port in the environment's network.
type serverPlan struct {
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

// addServer adds a server, its port, its floating IP when it has one, and the outputs that driver.Stack.Addresses reads.
func (t stackTemplate) addServer(s serverPlan) {
	port := map[string]any{
		"name": s.Name, "network": get("resource", "network"),
		"fixed_ips":       []any{map[string]any{"subnet": get("resource", "subnet")}},
		"security_groups": []any{get("resource", s.SecurityGroup)},
	}
	if len(s.AlsoFrom) > 0 {
		var pairs []any
		for _, prefix := range s.AlsoFrom {
			pairs = append(pairs, map[string]any{"ip_address": prefix.String()})
		}
		port["allowed_address_pairs"] = pairs
	}
	t.Resources[s.ID+"-port"] = stackResource{Type: "OS::Neutron::Port", Properties: port}
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
	t.Resources[s.ID+"-server"] = stackResource{Type: "OS::Nova::Server", Properties: server}
	t.Outputs[s.ID+"-server"] = stackOutput{Value: get("resource", s.ID+"-server")}
	t.Outputs[s.ID+"-address"] = stackOutput{Value: get("attr", s.ID+"-port", "fixed_ips", 0, "ip_address")}
	if s.FloatingIP {
		t.Resources[s.ID+"-floating"] = stackResource{Type: "OS::Neutron::FloatingIP", DependsOn: []string{"uplink"}, Properties: map[string]any{
			"floating_network": s.External, "port_id": get("resource", s.ID+"-port"),
		}}
		t.Outputs[s.ID+"-floating"] = stackOutput{Value: get("attr", s.ID+"-floating", "floating_ip_address")}
	}
}

// get is HOT's get_resource, or get_attr with a path.
func get(what string, path ...any) map[string]any {
	if len(path) == 1 {
		return map[string]any{"get_" + what: path[0]}
	}
	return map[string]any{"get_" + what: path}
}
