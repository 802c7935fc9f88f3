# shellcheck shell=bash
# Murano, which Burano is measured against (make bench-api); the tests of the cloud driver do not want it. Its core library is that of
# Debian's package.

murano_up() {
  database murano
  mkdir -p /srv/data/murano/{cache,core}
  configure /srv/etc/murano/murano.conf <<END
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = 8082
transport_url = $(queueURL)
home_region = RegionOne
[database]
connection = $(databaseURL murano)
[paste_deploy]
flavor =
config_file = /etc/murano/murano-paste.ini
[murano_auth]
www_authenticate_uri = http://127.0.0.1:5000/v3
$(credentials murano)
[murano]
url = http://127.0.0.1:8082
api_workers = 1
[engine]
workers = 1
packages_cache = /srv/data/murano/cache
use_trusts = true
[rabbitmq]
host = 127.0.0.1
port = 5672
login = openstack
password = secret
virtual_host = /
[networking]
external_network = public
[oslo_policy]
enforce_scope = false
enforce_new_defaults = false
policy_dirs = /etc/murano/policy.d
$(common murano)
END
  once murano-database murano-db-manage --config-file /srv/etc/murano/murano.conf upgrade
  once murano-unpack python3 -m zipfile --extract /usr/share/murano-common/io.murano.zip /srv/data/murano/core
  once murano-core murano-manage --config-file /srv/etc/murano/murano.conf import-package /srv/data/murano/core
  background murano murano-api --config-file /srv/etc/murano/murano.conf
  background murano-engine murano-engine --config-file /srv/etc/murano/murano.conf
  await murano 300 answers http://127.0.0.1:8082/
  await murano-engine 300 consumes tasks
}
