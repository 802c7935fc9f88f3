# shellcheck shell=bash
# Nova with one host. Its servers are emulated by QEMU, which needs no processor with virtualisation, or are containers (SERVERS).

nova_up() {
  local name
  for name in nova_api nova nova_cell0; do database "$name"; done
  mkdir -p /srv/data/nova/instances
  nova_sections | configure /srv/etc/nova/nova-compute.conf
  {
    nova_sections
    cat <<END
[api_database]
connection = $(databaseURL nova_api)
[database]
connection = $(databaseURL nova)
END
  } | configure /srv/etc/nova/nova.conf
  local config=(--config-file /srv/etc/nova/nova.conf)
  once nova-api-database nova-manage "${config[@]}" api_db sync
  once nova-cell0 nova-manage "${config[@]}" cell_v2 map_cell0 --database_connection "$(databaseURL nova_cell0)"
  once nova-database nova-manage "${config[@]}" db sync
  once nova-cell1 nova-manage "${config[@]}" cell_v2 create_cell --name=cell1

  libvirt_up
  background nova nova-api "${config[@]}"
  background nova-scheduler nova-scheduler "${config[@]}"
  background nova-conductor nova-conductor "${config[@]}"
  await nova-conductor 300 consumes conductor
  # The compute service gets no database: it would complain of one all the time.
  local compute=nova-compute
  # shellcheck disable=SC2154 # here: inside.sh's
  [[ $SERVERS != containers ]] || compute=$here/nova-compute-containers
  background nova-compute "$compute" --config-file /srv/etc/nova/nova-compute.conf
  await nova 300 answers http://127.0.0.1:8774/
  await nova-compute 300 nova_has_host
  once nova-discover nova-manage "${config[@]}" cell_v2 discover_hosts
}

nova_has_host() { sql nova --skip-column-names --execute='SELECT id FROM compute_nodes WHERE deleted = 0' | grep -q .; }

nova_sections() {
  cat <<END
[DEFAULT]
use_stderr = true
my_ip = 127.0.0.1
host = openstack
transport_url = $(queueURL)
state_path = /srv/data/nova
instances_path = /srv/data/nova/instances
osapi_compute_listen = 127.0.0.1
osapi_compute_workers = 1
metadata_listen = 127.0.0.1
metadata_workers = 1
enabled_apis = osapi_compute,metadata
api_paste_config = /etc/nova/api-paste.ini
compute_driver = libvirt.LibvirtDriver
reserved_host_memory_mb = 512
cpu_allocation_ratio = 16.0
vif_plugging_timeout = 120
[api]
auth_strategy = keystone
[glance]
api_servers = http://127.0.0.1:9292
[neutron]
service_metadata_proxy = true
metadata_proxy_shared_secret = secret
$(credentials neutron)
[placement]
$(credentials placement)
[service_user]
send_service_user_token = $(nova_vouches)
$(credentials nova)
[cinder]
$(credentials nova)
[scheduler]
workers = 1
[conductor]
workers = 1
[vnc]
enabled = false
[spice]
enabled = false
[libvirt]
$(nova_servers)
cpu_mode = none
inject_partition = -2
[vif_plug_linux_bridge_privileged]
helper_command = /usr/bin/privsep-helper
[nova_sys_admin]
helper_command = /usr/bin/privsep-helper
[os_brick_privileged]
helper_command = /usr/bin/privsep-helper
[oslo_policy]
policy_dirs = /etc/nova/policy.d
enforce_scope = false
$(common nova)
END
}

# nova_vouches tells whether it sends a token of its own with its users': without one Cinder lets nobody detach a volume (CVE-2023-2088).
nova_vouches() { [[ " $PARTS " == *" cinder "* ]] && echo true || echo false; }

nova_servers() {
  local socket=/srv/libvirt/run/libvirt-sock
  case $SERVERS in
  machines) printf 'virt_type = qemu\nconnection_uri = qemu+unix:///system?socket=%s\n' "$socket" ;;
  containers) printf 'virt_type = lxc\nimages_type = raw\nconnection_uri = lxc:///system?socket=%s\n' "$socket" ;;
  esac
}

# groups_up shows libvirt the machine's control groups.
groups_up() {
  mountpoint --quiet /sys/fs/cgroup && return
  local group
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  for group in cpu cpuacct cpuset memory devices freezer blkio; do
    mkdir "/sys/fs/cgroup/$group"
    mount -t cgroup -o "$group" cgroup "/sys/fs/cgroup/$group"
  done
}

libvirt_up() {
  [[ $SERVERS != containers ]] || groups_up
  configure /srv/etc/libvirt/libvirtd.conf <<END
unix_sock_dir = "/srv/libvirt/run"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "2:file:/srv/log/libvirtd-messages"
END
  background virtlogd virtlogd --pid-file /srv/libvirt/run/virtlogd.pid # not the machine's, of which there is one
  await virtlogd 300 test -S /run/libvirt/virtlogd-sock
  background libvirtd libvirtd -f /srv/etc/libvirt/libvirtd.conf -p /srv/libvirt/run/libvirtd.pid
  await libvirtd 300 test -S /srv/libvirt/run/libvirt-sock
}
