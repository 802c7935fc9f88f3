# shellcheck shell=bash
# Keystone, with the projects and users that the tests want and the catalog of all services.

keystone_up() {
  database keystone
  install -d -o keystone -g keystone /srv/data/keystone /srv/data/keystone/{fernet,credential}
  configure /srv/etc/keystone/keystone.conf <<END
[DEFAULT]
use_stderr = true
public_endpoint = http://127.0.0.1:5000/
[database]
connection = $(databaseURL keystone)
[token]
provider = fernet
[fernet_tokens]
key_repository = /srv/data/keystone/fernet
[fernet_receipts]
key_repository = /srv/data/keystone/fernet
[credential]
key_repository = /srv/data/keystone/credential
[cache]
enabled = true
backend = dogpile.cache.pymemcache
memcache_servers = 127.0.0.1:11211
END
  local manage=(keystone-manage --config-file /srv/etc/keystone/keystone.conf)
  once keystone-database "${manage[@]}" db_sync
  once keystone-fernet "${manage[@]}" fernet_setup --keystone-user keystone --keystone-group keystone
  once keystone-credentials "${manage[@]}" credential_setup --keystone-user keystone --keystone-group keystone
  once keystone-bootstrap "${manage[@]}" bootstrap --bootstrap-password secret --bootstrap-region-id RegionOne \
    --bootstrap-{admin,internal,public}-url=http://127.0.0.1:5000/v3/
  local as=("env = OS_KEYSTONE_CONFIG_DIR=/srv/etc/keystone" "uid = keystone" "gid = keystone")
  wsgi keystone 5000 /usr/bin/keystone-wsgi-public "pyargv = --config-file /srv/etc/keystone/keystone.conf" "processes = 2" "${as[@]}"
  await keystone 300 answers http://127.0.0.1:5000/v3
  # The same Keystone at another address, where a token lasts for some changes of a stack only: each must be done before its own ends.
  printf '[token]\nexpiration = 300\n' | configure /srv/etc/keystone/brief.conf
  wsgi keystone-brief 5001 /usr/bin/keystone-wsgi-public \
    "pyargv = --config-file /srv/etc/keystone/keystone.conf --config-file /srv/etc/keystone/brief.conf" "processes = 1" "${as[@]}"
  await keystone-brief 300 answers http://127.0.0.1:5001/v3
  /srv/seed identity
}
