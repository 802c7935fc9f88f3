# shellcheck shell=bash
# Swift with one copy of everything on one device, which is a folder, and Keystone's users.

swift_up() {
  mkdir -p /srv/etc/swift /srv/data/swift/disk
  # Its programs look there for what hashes begin and end with, whatever they are told.
  mountpoint --quiet /etc/swift || mount --bind /srv/etc/swift /etc/swift
  printf '[swift-hash]\nswift_hash_path_prefix = burano\nswift_hash_path_suffix = tests\n' | configure /srv/etc/swift/swift.conf
  local kind port=6200
  for kind in object container account; do
    [[ -e /srv/etc/swift/$kind.ring.gz ]] || swift_ring "$kind" "$port"
    configure "/srv/etc/swift/$kind-server.conf" <<END
[DEFAULT]
$(swift_process "$port")
devices = /srv/data/swift
mount_check = false
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
END
    background "swift-$kind" "swift-$kind-server" "/srv/etc/swift/$kind-server.conf" --verbose
    port=$((port + 1))
  done
  configure /srv/etc/swift/proxy-server.conf <<END
[DEFAULT]
$(swift_process 8080)
[pipeline:main]
pipeline = catch_errors cache listing_formats authtoken keystoneauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:11211
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
www_authenticate_uri = http://127.0.0.1:5000/v3
delay_auth_decision = true
memcached_servers = 127.0.0.1:11211
$(credentials swift)
[filter:keystoneauth]
use = egg:swift#keystoneauth
operator_roles = admin, member
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
END
  background swift swift-proxy-server /srv/etc/swift/proxy-server.conf --verbose
  for port in 6200 6201 6202; do await swift 300 listens "$port"; done
  await swift 300 answers http://127.0.0.1:8080/
}

# swift_process PORT prints how each of its servers runs.
swift_process() {
  cat <<END
bind_ip = 127.0.0.1
bind_port = $1
workers = 0
user = root
swift_dir = /srv/etc/swift
END
}

# swift_ring KIND PORT says where what is kept: on the one device.
swift_ring() {
  local builder=/srv/etc/swift/$1.builder
  rm -f "$builder"
  {
    swift-ring-builder "$builder" create 4 1 1
    swift-ring-builder "$builder" add "r1z1-127.0.0.1:$2/disk" 1
    swift-ring-builder "$builder" rebalance
  } >>"/srv/log/swift-$1" 2>&1
}
