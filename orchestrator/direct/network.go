package direct

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/orchestrator/openstack"
)

// This file is the types of Neutron but for security groups.

const neutron = "network"

func (s *stack) neutron() *gophercloud.ServiceClient { return s.project.clients.Network }

// described is the description of a Neutron resource: the template's text, and the mark of its owner.
func (j *job) described() string {
	return strings.TrimSpace(j.text("description") + " (burano " + j.resource.ID + ")")
}

// marked is how descriptions end that described makes.
var marked = regexp.MustCompile(`\(burano [0-9a-f]{32}\)$`)

// listed lists things of Neutron that have these fields.
func (s *stack) listed(ctx context.Context, collection string, fields map[string]string) ([]map[string]any, error) {
	query := url.Values{}
	for name, value := range fields {
		query.Set(name, value)
	}
	key := strings.ReplaceAll(collection, "-", "_")
	var all []map[string]any
	for path := collection + "?" + query.Encode(); ; {
		var page map[string]any
		if err := call(ctx, s.neutron(), http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		for _, one := range hot.List(page[key]) {
			if thing, ok := one.(map[string]any); ok {
				all = append(all, thing)
			}
		}
		path = nextOf(page[key+"_links"], collection)
		if path == "" {
			return all, nil
		}
	}
}

// nextOf is where a list goes on, "" at its end.
func nextOf(links any, collection string) string {
	for _, one := range hot.List(links) {
		link, _ := one.(map[string]any)
		address, err := url.Parse(hot.Text(link["href"]))
		if link["rel"] == "next" && err == nil {
			return collection + "?" + address.RawQuery
		}
	}
	return ""
}

// idOf is the id of a thing of Neutron that is called by its name or its id.
func (s *stack) idOf(ctx context.Context, what, collection, ref string) (string, error) {
	known, err := s.listed(ctx, collection, map[string]string{"id": ref})
	if err == nil && len(known) == 0 {
		known, err = s.listed(ctx, collection, map[string]string{"name": ref})
	}
	if err != nil {
		return "", err
	}
	found, err := one(what, ref, known)
	return hot.Text(found["id"]), err
}

func (s *stack) idsOf(ctx context.Context, what, collection string, refs []any) ([]string, error) {
	ids := []string{}
	for _, ref := range refs {
		id, err := s.idOf(ctx, what, collection, hot.Text(ref))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// thing is how Neutron calls one kind of its things.
type thing struct {
	single, collection string
	// body is the body of the request; creating is true for a new one, false for a change.
	body func(ctx context.Context, j *job, creating bool) (map[string]any, error)
	// after runs when it was made or changed; may be nil.
	after func(ctx context.Context, j *job) error
}

func (t thing) ask(ctx context.Context, j *job, creating bool) (map[string]any, error) {
	body, err := t.body(ctx, j, creating)
	if err != nil {
		return nil, err
	}
	body["description"] = j.described()
	specs, _ := j.properties["value_specs"].(map[string]any)
	maps.Copy(body, specs)
	return map[string]any{t.single: body}, nil
}

// then runs after when it was made or changed.
func (t thing) then(ctx context.Context, j *job) error {
	if tags, given := j.properties["tags"]; given {
		if err := call(ctx, j.neutron(), http.MethodPut, t.collection+"/"+j.resource.PhysicalID+"/tags", map[string]any{"tags": tags}, nil); err != nil {
			return err
		}
	}
	if t.after == nil {
		return nil
	}
	return t.after(ctx, j)
}

// kind is the type whose resources are these things.
func (t thing) kind(k kind) kind {
	k.create = func(ctx context.Context, j *job) error {
		err := j.make(ctx, neutron, func(ctx context.Context) (string, error) {
			body, err := t.ask(ctx, j, true)
			if err != nil {
				return "", err
			}
			var answer map[string]any
			err = call(ctx, j.neutron(), http.MethodPost, t.collection, body, &answer)
			made, _ := answer[t.single].(map[string]any)
			return hot.Text(made["id"]), err
		})
		if err != nil {
			return err
		}
		return t.then(ctx, j)
	}
	k.lookup = func(ctx context.Context, j *job) (string, error) {
		found, err := j.listed(ctx, t.collection, map[string]string{"description": j.described()})
		if err != nil || len(found) == 0 {
			return "", err
		}
		return hot.Text(found[0]["id"]), nil
	}
	k.update = func(ctx context.Context, j *job, _ []string) error {
		body, err := t.ask(ctx, j, false)
		if err == nil {
			err = call(ctx, j.neutron(), http.MethodPut, t.collection+"/"+j.resource.PhysicalID, body, nil)
		}
		if err != nil {
			return err
		}
		return t.then(ctx, j)
	}
	k.remove = func(ctx context.Context, j *job) error {
		return gentle(call(ctx, j.neutron(), http.MethodDelete, t.collection+"/"+j.resource.PhysicalID, nil, nil))
	}
	if k.attributes == nil {
		k.attributes = t.attributes
	}
	return k
}

// attributes are the fields of a thing, and all of them as show.
func (t thing) attributes(ctx context.Context, j *job) (map[string]any, error) {
	var answer map[string]any
	if err := call(ctx, j.neutron(), http.MethodGet, t.collection+"/"+j.resource.PhysicalID, nil, &answer); err != nil {
		return nil, err
	}
	return withShow(answer[t.single]), nil
}

func withShow(shown any) map[string]any {
	fields, _ := shown.(map[string]any)
	made := maps.Clone(fields)
	if made == nil {
		made = map[string]any{}
	}
	made["show"] = fields
	return made
}

// chosen are the job's properties that have the same names in Neutron.
func (j *job) chosen(names ...string) map[string]any {
	made := map[string]any{"name": j.name()}
	for _, name := range names {
		if value, given := j.properties[name]; given {
			made[name] = value
		}
	}
	return made
}

var network = thing{single: "network", collection: "networks", body: func(_ context.Context, j *job, creating bool) (map[string]any, error) {
	names := []string{"admin_state_up", "shared", "port_security_enabled", "dns_domain"}
	if creating {
		names = append(names, "tenant_id", "availability_zone_hints")
	}
	return j.chosen(names...), nil
}}.kind(kind{properties: map[string]property{
	"name": {form: words}, "admin_state_up": {form: truth}, "shared": {form: truth}, "port_security_enabled": {form: truth}, "dns_domain": {form: words},
	"tenant_id": {form: words}, "availability_zone_hints": {form: list}, "value_specs": {form: object}, "tags": {form: list},
}})

var subnet = thing{single: "subnet", collection: "subnets", body: func(ctx context.Context, j *job, creating bool) (map[string]any, error) {
	names := []string{"allocation_pools", "dns_nameservers", "enable_dhcp", "host_routes"}
	if creating {
		names = append(names, "cidr", "prefixlen", "ipv6_address_mode", "ipv6_ra_mode", "tenant_id")
	}
	body := j.chosen(names...)
	if gateway, given := j.properties["gateway_ip"]; given {
		if body["gateway_ip"] = gateway; gateway == "" || gateway == "~" { // as Heat has it: none
			body["gateway_ip"] = nil
		}
	}
	if !creating {
		return body, nil
	}
	body["ip_version"] = j.properties["ip_version"]
	var err error
	if pool := j.text("subnetpool"); pool != "" {
		if body["subnetpool_id"], err = j.idOf(ctx, "subnet pool", "subnetpools", pool); err != nil {
			return nil, err
		}
	}
	body["network_id"], err = j.idOf(ctx, "network", "networks", j.text("network"))
	return body, err
}}.kind(kind{
	properties: map[string]property{
		"network": {form: words, required: true}, "cidr": {form: words}, "ip_version": {form: number, fallback: 4.0}, "name": {form: words}, "gateway_ip": {form: words},
		"allocation_pools": {form: list}, "dns_nameservers": {form: list}, "enable_dhcp": {form: truth}, "host_routes": {form: list}, "tenant_id": {form: words},
		"ipv6_address_mode": {form: words}, "ipv6_ra_mode": {form: words}, "subnetpool": {form: words}, "prefixlen": {form: number}, "value_specs": {form: object}, "tags": {form: list},
	},
	aliases: map[string]string{"network_id": "network"},
	alone:   func(was, is map[string]any) bool { return was["network"] == is["network"] }, // a network has room for one subnet of a range
})

var ports = thing{single: "port", collection: "ports", body: func(ctx context.Context, j *job, creating bool) (map[string]any, error) {
	names := []string{"admin_state_up", "device_id", "device_owner", "port_security_enabled", "allowed_address_pairs", "binding:vnic_type", "dns_name", "propagate_uplink_status"}
	if creating {
		names = append(names, "mac_address")
	}
	body := j.chosen(names...)
	if !creating && body["allowed_address_pairs"] == nil {
		body["allowed_address_pairs"] = []any{}
	}
	if groups, given := j.properties["security_groups"].([]any); given {
		ids, err := j.idsOf(ctx, "security group", "security-groups", groups)
		if err != nil {
			return nil, err
		}
		body["security_groups"] = ids
	}
	switch wanted, given := j.properties["fixed_ips"].([]any); {
	case given:
		fixed, err := j.fixed(ctx, wanted)
		if err != nil {
			return nil, err
		}
		body["fixed_ips"] = fixed
	case j.properties["no_fixed_ips"] == true:
		body["fixed_ips"] = []any{}
	}
	if !creating {
		return body, nil
	}
	var err error
	body["network_id"], err = j.idOf(ctx, "network", "networks", j.text("network"))
	return body, err
}}

var port = ports.kind(kind{
	properties: map[string]property{
		"network": {form: words, required: true}, "name": {form: words}, "fixed_ips": {form: list}, "no_fixed_ips": {form: truth}, "security_groups": {form: list},
		"allowed_address_pairs": {form: list}, "mac_address": {form: words}, "admin_state_up": {form: truth}, "device_id": {form: words}, "device_owner": {form: words},
		"port_security_enabled": {form: truth}, "binding:vnic_type": {form: words}, "dns_name": {form: words}, "propagate_uplink_status": {form: truth},
		"value_specs": {form: object}, "tags": {form: list},
	},
	aliases: map[string]string{"network_id": "network"},
	attributes: func(ctx context.Context, j *job) (map[string]any, error) {
		attributes, err := ports.attributes(ctx, j)
		if err != nil {
			return nil, err
		}
		subnets := []any{}
		for _, one := range hot.List(attributes["fixed_ips"]) {
			address, _ := one.(map[string]any)
			var answer map[string]any
			if err := call(ctx, j.neutron(), http.MethodGet, "subnets/"+url.PathEscape(hot.Text(address["subnet_id"])), nil, &answer); err != nil {
				return nil, err
			}
			subnets = append(subnets, answer["subnet"])
		}
		attributes["subnets"] = subnets
		return attributes, nil
	},
	// Two ports of one network have neither one address nor one MAC.
	alone: func(was, is map[string]any) bool {
		return was["fixed_ips"] != nil && is["fixed_ips"] != nil || was["mac_address"] != nil && was["mac_address"] == is["mac_address"]
	},
})

// fixed are addresses as Neutron wants them.
func (j *job) fixed(ctx context.Context, wanted []any) ([]any, error) {
	made := []any{}
	for _, one := range wanted {
		entry, _ := one.(map[string]any)
		address := map[string]any{}
		if ip := hot.Text(entry["ip_address"]); ip != "" {
			address["ip_address"] = ip
		}
		if ref := hot.Text(entry["subnet"]) + hot.Text(entry["subnet_id"]); ref != "" {
			id, err := j.idOf(ctx, "subnet", "subnets", ref)
			if err != nil {
				return nil, err
			}
			address["subnet_id"] = id
		}
		made = append(made, address)
	}
	return made, nil
}

var router = thing{single: "router", collection: "routers", body: func(ctx context.Context, j *job, creating bool) (map[string]any, error) {
	names := []string{"admin_state_up", "availability_zone_hints"}
	if creating {
		names = append(names, "distributed", "ha")
	}
	body := j.chosen(names...)
	info, given := j.properties["external_gateway_info"].(map[string]any)
	if !given {
		if !creating {
			body["external_gateway_info"] = map[string]any{}
		}
		return body, nil
	}
	gateway := map[string]any{}
	var err error
	if gateway["network_id"], err = j.idOf(ctx, "network", "networks", hot.Text(info["network"])); err != nil {
		return nil, err
	}
	if value := info["enable_snat"]; value != nil {
		if gateway["enable_snat"], err = truth.convert(value); err != nil {
			return nil, err
		}
	}
	if addresses := hot.List(info["external_fixed_ips"]); len(addresses) > 0 {
		if gateway["external_fixed_ips"], err = j.fixed(ctx, addresses); err != nil {
			return nil, err
		}
	}
	body["external_gateway_info"] = gateway
	return body, nil
}}.kind(kind{properties: map[string]property{
	"name": {form: words}, "external_gateway_info": {form: object}, "admin_state_up": {form: truth}, "distributed": {form: truth}, "ha": {form: truth},
	"availability_zone_hints": {form: list}, "value_specs": {form: object}, "tags": {form: list},
}})

// routerInterface has the physical id router:subnet_id=… or router:port_id=….
var routerInterface = kind{
	properties: map[string]property{"router": {form: words, required: true}, "subnet": {form: words}, "port": {form: words}},
	aliases:    map[string]string{"router_id": "router", "subnet_id": "subnet", "port_id": "port"},
	create: func(ctx context.Context, j *job) error {
		wanted, err := j.wantedInterface(ctx)
		if err != nil {
			return err
		}
		return j.make(ctx, neutron, func(ctx context.Context) (string, error) {
			router, body := interfaceOf(wanted)
			// A second time Neutron would refuse it.
			return wanted, call(openstack.Once(ctx), j.neutron(), http.MethodPut, "routers/"+url.PathEscape(router)+"/add_router_interface", body, nil)
		})
	},
	lookup: func(ctx context.Context, j *job) (string, error) {
		wanted, err := j.wantedInterface(ctx)
		if err != nil {
			return "", err
		}
		router, body := interfaceOf(wanted)
		there, err := j.listed(ctx, "ports", map[string]string{"device_id": router})
		if err != nil {
			return "", err
		}
		for _, one := range there {
			if one["id"] == body["port_id"] && body["port_id"] != nil {
				return wanted, nil
			}
			for _, address := range hot.List(one["fixed_ips"]) {
				fixed, _ := address.(map[string]any)
				if body["subnet_id"] != nil && fixed["subnet_id"] == body["subnet_id"] {
					return wanted, nil
				}
			}
		}
		return "", nil
	},
	remove: func(ctx context.Context, j *job) error {
		router, body := interfaceOf(j.resource.PhysicalID)
		return gentle(call(ctx, j.neutron(), http.MethodPut, "routers/"+url.PathEscape(router)+"/remove_router_interface", body, nil))
	},
	attributes: func(context.Context, *job) (map[string]any, error) { return map[string]any{}, nil },
	alone:      func(map[string]any, map[string]any) bool { return true },
}

func (j *job) wantedInterface(ctx context.Context) (string, error) {
	router, err := j.idOf(ctx, "router", "routers", j.text("router"))
	if err != nil {
		return "", err
	}
	if port := j.text("port"); port != "" {
		id, err := j.idOf(ctx, "port", "ports", port)
		return router + ":port_id=" + id, err
	}
	if j.text("subnet") == "" {
		return "", wrong("one of subnet and port must be given")
	}
	id, err := j.idOf(ctx, "subnet", "subnets", j.text("subnet"))
	return router + ":subnet_id=" + id, err
}

func interfaceOf(physicalID string) (router string, body map[string]any) {
	router, rest, _ := strings.Cut(physicalID, ":")
	key, id, _ := strings.Cut(rest, "=")
	return router, map[string]any{key: id}
}

var floatingIP = thing{single: "floatingip", collection: "floatingips", body: func(ctx context.Context, j *job, creating bool) (map[string]any, error) {
	body := map[string]any{"port_id": nil}
	for _, name := range []string{"port_id", "fixed_ip_address"} {
		if value := j.text(name); value != "" {
			body[name] = value
		}
	}
	if !creating {
		// An association may decide on its port: the port is not touched where this resource never named one.
		if j.text("port_id") == "" && hot.Text(j.resource.Properties["port_id"]) == "" {
			delete(body, "port_id")
		}
		return body, nil
	}
	delete(body, "name")
	for _, name := range []string{"floating_ip_address", "dns_name", "dns_domain"} {
		if value := j.text(name); value != "" {
			body[name] = value
		}
	}
	var err error
	if ref := j.text("floating_subnet"); ref != "" {
		if body["subnet_id"], err = j.idOf(ctx, "subnet", "subnets", ref); err != nil {
			return nil, err
		}
	}
	body["floating_network_id"], err = j.idOf(ctx, "network", "networks", j.text("floating_network"))
	return body, err
}}.kind(kind{
	properties: map[string]property{
		"floating_network": {form: words, required: true}, "port_id": {form: words}, "fixed_ip_address": {form: words}, "floating_ip_address": {form: words},
		"floating_subnet": {form: words}, "dns_name": {form: words}, "dns_domain": {form: words}, "value_specs": {form: object},
	},
	aliases: map[string]string{"floating_network_id": "floating_network"},
})

// association has the physical id floatingip:port.
var association = kind{
	properties: map[string]property{"floatingip_id": {form: words, required: true}, "port_id": {form: words, required: true}, "fixed_ip_address": {form: words}},
	create:     associate,
	update: func(ctx context.Context, j *job, differing []string) error {
		if slices.Contains(differing, "floatingip_id") {
			if err := dissociate(ctx, j); err != nil {
				return err
			}
		}
		return associate(ctx, j)
	},
	remove:     dissociate,
	attributes: func(context.Context, *job) (map[string]any, error) { return map[string]any{}, nil },
}

func associate(ctx context.Context, j *job) error {
	if err := j.known(ctx, j.text("floatingip_id")+":"+j.text("port_id")); err != nil {
		return err
	}
	body := map[string]any{"port_id": j.text("port_id")}
	if address := j.text("fixed_ip_address"); address != "" {
		body["fixed_ip_address"] = address
	}
	return call(ctx, j.neutron(), http.MethodPut, "floatingips/"+url.PathEscape(j.text("floatingip_id")), map[string]any{"floatingip": body}, nil)
}

func dissociate(ctx context.Context, j *job) error {
	floating, port, _ := strings.Cut(j.resource.PhysicalID, ":")
	var answer map[string]any
	if err := call(ctx, j.neutron(), http.MethodGet, "floatingips/"+url.PathEscape(floating), nil, &answer); err != nil {
		return gentle(err)
	}
	if now, _ := answer["floatingip"].(map[string]any); now["port_id"] != port {
		return nil // it belongs to another resource by now
	}
	return gentle(call(ctx, j.neutron(), http.MethodPut, "floatingips/"+url.PathEscape(floating), map[string]any{"floatingip": map[string]any{"port_id": nil}}, nil))
}
