# shellcheck shell=bash
# Glance, with images in files.

glance_up() {
  database glance
  mkdir -p /srv/data/glance/{images,staging,tasks}
  configure /srv/etc/glance/glance-api.conf <<END
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
workers = 1
enabled_backends = local:file
transport_url = $(queueURL)
[database]
connection = $(databaseURL glance)
[glance_store]
default_backend = local
[local]
filesystem_store_datadir = /srv/data/glance/images
[os_glance_staging_store]
filesystem_store_datadir = /srv/data/glance/staging
[os_glance_tasks_store]
filesystem_store_datadir = /srv/data/glance/tasks
[paste_deploy]
flavor = keystone
config_file = /etc/glance/glance-api-paste.ini
[oslo_policy]
policy_dirs = /etc/glance/policy.d
$(common glance)
END
  once glance-database glance-manage --config-file /srv/etc/glance/glance-api.conf db_sync
  background glance glance-api --config-file /srv/etc/glance/glance-api.conf
  await glance 300 answers http://127.0.0.1:9292/
}
