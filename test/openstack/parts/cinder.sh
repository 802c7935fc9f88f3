# shellcheck shell=bash
# Cinder with two back-ends, which are pools of Ceph, each in a zone of its own; and backups in files, which need their volume no more.

cinder_up() {
  database cinder
  mkdir -p /srv/data/cinder/{backups,images}
  configure /srv/etc/cinder/cinder.conf <<END
[DEFAULT]
use_stderr = true
my_ip = 127.0.0.1
host = openstack
transport_url = $(queueURL)
state_path = /srv/data/cinder
image_conversion_dir = /srv/data/cinder/images
api_paste_config = /etc/cinder/api-paste.ini
resource_query_filters_file = /etc/cinder/resource_filters.json
rootwrap_config = /etc/cinder/rootwrap.conf
auth_strategy = keystone
glance_api_servers = http://127.0.0.1:9292
enabled_backends = nova,east
default_volume_type = ceph
default_availability_zone = nova
storage_availability_zone = nova
backup_driver = cinder.backup.drivers.posix.PosixBackupDriver
backup_posix_path = /srv/data/cinder/backups
backup_file_size = 104857600
[database]
connection = $(databaseURL cinder)
$(cinder_pool nova volumes)
$(cinder_pool east east)
[nova]
$(credentials nova)
[service_user]
send_service_user_token = true
$(credentials cinder)
[oslo_policy]
policy_dirs = /etc/cinder/policy.d
enforce_scope = false
$(common cinder)
END
  local config=(--config-file /srv/etc/cinder/cinder.conf)
  once cinder-database cinder-manage "${config[@]}" db sync
  wsgi cinder 8776 /usr/bin/cinder-wsgi "pyargv = ${config[*]}" "processes = 1"
  background cinder-scheduler cinder-scheduler "${config[@]}"
  background cinder-volume cinder-volume "${config[@]}"
  background cinder-backup cinder-backup "${config[@]}"
  await cinder 300 answers http://127.0.0.1:8776/
  await cinder-scheduler 300 consumes cinder-scheduler
  await cinder-volume 300 cinder_has 2 cinder-volume
  await cinder-backup 300 cinder_has 1 cinder-backup
}

# cinder_pool ZONE POOL prints the back-end of a zone.
cinder_pool() {
  cat <<END
[$1]
volume_backend_name = ceph
backend_availability_zone = $1
volume_driver = cinder.volume.drivers.rbd.RBDDriver
rbd_ceph_conf = /srv/etc/ceph/ceph.conf
rbd_pool = $2
END
}

# cinder_has COUNT SERVICE tells whether so many of its services have reported.
cinder_has() {
  [[ $(sql cinder --skip-column-names --execute="SELECT COUNT(*) FROM services WHERE deleted = 0 AND \`binary\` = '$2' AND report_count > 0") -ge $1 ]]
}
