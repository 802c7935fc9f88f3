# shellcheck shell=bash
# Manila with its dummy driver, which makes no file system, and plays all that the API offers: states, rules of access, export locations, snapshots. This kernel serves no NFS.

manila_up() {
  database manila
  mkdir -p /srv/data/manila
  configure /srv/etc/manila/manila.conf <<END
[DEFAULT]
use_stderr = true
my_ip = 127.0.0.1
host = openstack
transport_url = $(queueURL)
state_path = /srv/data/manila
api_paste_config = /etc/manila/api-paste.ini
rootwrap_config = /etc/manila/rootwrap.conf
auth_strategy = keystone
enabled_share_backends = dummy
enabled_share_protocols = NFS
default_share_type = default
storage_availability_zone = nova
[database]
connection = $(databaseURL manila)
[dummy]
share_backend_name = dummy
driver_handles_share_servers = false
share_driver = manila.tests.share.drivers.dummy.DummyDriver
[oslo_policy]
policy_dirs = /etc/manila/policy.d
enforce_scope = false
$(common manila)
END
  local config=(--config-file /srv/etc/manila/manila.conf)
  once manila-database manila-manage "${config[@]}" db sync
  wsgi manila 8786 /usr/bin/manila-wsgi "pyargv = ${config[*]}" "processes = 1"
  background manila-scheduler manila-scheduler "${config[@]}"
  background manila-share manila-share "${config[@]}"
  await manila 300 answers http://127.0.0.1:8786/
  await manila-scheduler 300 consumes manila-scheduler
  await manila-share 300 manila_has_share
}

manila_has_share() { [[ $(sql manila --skip-column-names --execute="SELECT COUNT(*) FROM services WHERE deleted = 'False' AND \`binary\` = 'manila-share' AND report_count > 0") -ge 1 ]]; }
