package nova

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/burano/burano/test/localcloud/neutron"
)

// configDrive makes the files of a server's config drive
// (https://docs.openstack.org/nova/latest/user/metadata.html, format "openstack/latest").
func configDrive(server Server, plugged []neutron.Interface) (map[string][]byte, error) {
	public, keys := map[string]string{}, []any{}
	if server.KeyName != "" {
		public[server.KeyName] = server.PublicKey
		keys = append(keys, map[string]any{"name": server.KeyName, "type": "ssh", "data": server.PublicKey})
	}
	metadata := server.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	meta, err := json.Marshal(map[string]any{
		"uuid": server.ID, "name": server.Name, "hostname": server.Hostname, "project_id": server.ProjectID, "launch_index": 0,
		"availability_zone": server.AvailabilityZone, "meta": metadata, "public_keys": public, "keys": keys, "devices": []any{},
	})
	if err != nil {
		return nil, err
	}
	network, err := json.Marshal(networkData(plugged))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"openstack/latest/meta_data.json":    meta,
		"openstack/latest/network_data.json": network,
		"openstack/latest/vendor_data.json":  []byte("{}"),
	}
	if len(server.UserData) > 0 {
		files["openstack/latest/user_data"] = server.UserData
	}
	return files, nil
}

// networkData describes the interfaces in OpenStack's format
// (https://specs.openstack.org/openstack/nova-specs/specs/liberty/implemented/metadata-service-network-info.html).
func networkData(plugged []neutron.Interface) map[string]any {
	links, networks, services := []any{}, []any{}, []any{}
	told := map[netip.Addr]bool{}
	for _, in := range plugged {
		link := "tap" + in.PortID[:min(11, len(in.PortID))]
		links = append(links, map[string]any{
			"id": link, "vif_id": in.PortID, "type": "bridge", "mtu": in.MTU, "ethernet_mac_address": in.MAC,
		})
		dns := []any{}
		for _, address := range in.DNS {
			service := map[string]any{"type": "dns", "address": address.String()}
			dns = append(dns, service)
			if !told[address] {
				told[address] = true
				services = append(services, service)
			}
		}
		for _, address := range in.Addresses {
			kind, everything := "ipv4", "0.0.0.0"
			if address.Addr().Is6() {
				kind, everything = "ipv6", "::"
			}
			if address.Mode != "" {
				kind += "_" + address.Mode
			}
			routes := []any{}
			if address.Gateway.IsValid() {
				routes = append(routes, map[string]any{"network": everything, "netmask": everything, "gateway": address.Gateway.String()})
			}
			networks = append(networks, map[string]any{
				"id": fmt.Sprintf("network%d", len(networks)), "type": kind, "link": link, "network_id": in.NetworkID,
				"ip_address": address.Addr().String(), "netmask": net.IP(net.CIDRMask(address.Bits(), address.Addr().BitLen())).String(),
				"routes": routes, "services": dns,
			})
		}
	}
	return map[string]any{"links": links, "networks": networks, "services": services}
}
