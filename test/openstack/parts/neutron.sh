# shellcheck shell=bash
# Neutron with Linux bridges: networks are bridges of this one host, routers and DHCP servers are network namespaces, security groups
# are iptables. The external network is a bridge that only the box reaches.

neutron_up() {
  database neutron
  mkdir -p /srv/data/neutron
  configure /srv/etc/neutron/neutron.conf <<END
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
core_plugin = ml2
service_plugins = router
transport_url = $(queueURL)
api_workers = 1
rpc_workers = 1
rpc_state_report_workers = 0
metadata_proxy_shared_secret = secret
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
state_path = /srv/data/neutron
dhcp_agents_per_network = 1
api_paste_config = /etc/neutron/api-paste.ini
auth_strategy = keystone
[agent]
root_helper = /usr/bin/env
report_interval = 15
[database]
connection = $(databaseURL neutron)
[nova]
$(credentials nova)
[placement]
$(credentials placement)
[experimental]
linuxbridge = true
[oslo_policy]
policy_dirs = /etc/neutron/policy.d
$(common neutron)
END
  configure /srv/etc/neutron/ml2.ini <<END
[ml2]
type_drivers = local,flat
tenant_network_types = local
mechanism_drivers = linuxbridge
extension_drivers = port_security
[ml2_type_flat]
flat_networks = public
[securitygroup]
enable_security_group = true
enable_ipset = true
END
  configure /srv/etc/neutron/linuxbridge.ini <<END
[linux_bridge]
bridge_mappings = public:br-external
[vxlan]
enable_vxlan = false
[securitygroup]
enable_security_group = true
firewall_driver = iptables
enable_ipset = true
END
  configure /srv/etc/neutron/dhcp.ini <<END
[DEFAULT]
interface_driver = linuxbridge
enable_isolated_metadata = true
force_metadata = true
resync_interval = 5
END
  configure /srv/etc/neutron/l3.ini <<END
[DEFAULT]
interface_driver = linuxbridge
END
  configure /srv/etc/neutron/metadata.ini <<END
[DEFAULT]
nova_metadata_host = 127.0.0.1
metadata_proxy_shared_secret = secret
metadata_workers = 1
END
  local common=(--config-file /srv/etc/neutron/neutron.conf)
  local server=("${common[@]}" --config-file /srv/etc/neutron/ml2.ini)
  once neutron-database neutron-db-manage "${server[@]}" upgrade heads

  ip link show br-external >/dev/null 2>&1 || ip link add br-external type bridge
  ip address replace 172.24.4.1/24 dev br-external
  ip link set br-external up

  background neutron neutron-server "${server[@]}"
  await neutron 300 answers http://127.0.0.1:9696/
  await neutron 300 consumes q-plugin
  background neutron-linuxbridge env PATH="$here/agent:$PATH" neutron-linuxbridge-agent "${server[@]}" --config-file /srv/etc/neutron/linuxbridge.ini
  background neutron-dhcp neutron-dhcp-agent "${common[@]}" --config-file /srv/etc/neutron/dhcp.ini
  background neutron-l3 neutron-l3-agent "${common[@]}" --config-file /srv/etc/neutron/l3.ini
  background neutron-metadata neutron-metadata-agent "${common[@]}" --config-file /srv/etc/neutron/metadata.ini
}
