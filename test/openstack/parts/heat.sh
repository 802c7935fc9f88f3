# shellcheck shell=bash
# Heat, as a cloud's operator would run it: what it does later for a stack's owner it does through trusts.

heat_up() {
  database heat
  mkdir -p /srv/etc/heat/plugins
  configure /srv/etc/heat/heat.conf <<END
[DEFAULT]
use_stderr = true
transport_url = $(queueURL)
heat_metadata_server_url = http://127.0.0.1:8000
heat_waitcondition_server_url = http://127.0.0.1:8000/v1/waitcondition
stack_user_domain_name = heat
stack_domain_admin = heat_domain_admin
stack_domain_admin_password = secret
num_engine_workers = 1
region_name_for_services = RegionOne
auth_encryption_key = 0123456789abcdef0123456789abcdef
plugin_dirs = /srv/etc/heat/plugins
[database]
connection = $(databaseURL heat)
[trustee]
auth_type = password
auth_url = http://127.0.0.1:5000/v3
username = heat
password = secret
user_domain_name = Default
[clients_keystone]
auth_uri = http://127.0.0.1:5000/v3
[clients]
endpoint_type = publicURL
[heat_api]
bind_host = 127.0.0.1
workers = 1
[paste_deploy]
api_paste_config = /etc/heat/api-paste.ini
[oslo_policy]
policy_dirs = /etc/heat/policy.d
$(common heat)
END
  once heat-database heat-manage --config-file /srv/etc/heat/heat.conf db_sync
  background heat heat-api --config-file /srv/etc/heat/heat.conf
  background heat-engine heat-engine --config-file /srv/etc/heat/heat.conf
  await heat 300 answers http://127.0.0.1:8004/
  await heat-engine 300 consumes engine
}
