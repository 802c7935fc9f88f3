# shellcheck shell=bash
# Placement: what Nova's hosts have to give.

placement_up() {
  database placement
  configure /srv/etc/placement/placement.conf <<END
[DEFAULT]
use_stderr = true
[placement_database]
connection = $(databaseURL placement)
[api]
auth_strategy = keystone
$(common placement)
END
  once placement-database placement-manage --config-file /srv/etc/placement/placement.conf db sync
  wsgi placement 8778 /usr/bin/placement-api "env = OS_PLACEMENT_CONFIG_DIR=/srv/etc/placement" "processes = 1"
  await placement 300 answers http://127.0.0.1:8778/
}
