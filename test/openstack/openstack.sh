#!/usr/bin/env bash
# A real OpenStack on this machine, from Debian's packages and without systemd, to try Burano's cloud driver on: Keystone, Glance,
# Placement, Nova, Neutron, Swift and Heat, over MariaDB, RabbitMQ and memcached; and where they are wanted Cinder, over Ceph, and Manila. Nova's servers are machines that QEMU emulates or, with
# SERVERS=containers, system containers of libvirt, which are as quick as the machine and can carry a whole cluster.
#
#   openstack.sh up            brings it up, in a few minutes; what runs already is left alone
#   openstack.sh run COMMAND   runs a command where its addresses are reached
#   openstack.sh down          removes all of it, also after a crash
#
# All of it lives in a box: Linux namespaces of its own for processes, network, mounts, host name and IPC, and one folder (STATE). So it
# listens on loopback addresses that nobody else sees, its bridges, firewall rules and network namespaces are in nobody's way, and
# the end of the box's first process is the end of everything in it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
STATE=${STATE:-$root/build/openstack}

# PARTS are the services that `up` brings up, in this order. ceph, cinder and manila are more (before nova), and murano, which needs no Glance, Placement and Nova.
export PARTS=${PARTS:-base keystone glance placement neutron nova swift heat}

# SERVERS are machines or containers; it is said once, when the box is made.
export SERVERS=${SERVERS:-machines}

# groups lists what libvirt and containers (container-init) make control groups below, in each hierarchy.
groups() { find /sys/fs/cgroup/*/machine /sys/fs/cgroup/*/burano-openstack -maxdepth 0 2>/dev/null || true; }

declare -A packages=(
  # what OpenStack stands on
  [base]="mariadb-server memcached rabbitmq-server uwsgi-core uwsgi-plugin-python3 python3-pymysql python3-pymemcache python3-memcache"
  [keystone]=keystone [glance]=glance [placement]=placement-api
  [neutron]="neutron-server neutron-linuxbridge-agent neutron-dhcp-agent neutron-l3-agent neutron-metadata-agent
    conntrack dnsmasq-base ebtables ipset iputils-arping"
  [nova]="nova-api nova-conductor nova-scheduler nova-compute nova-compute-qemu
    genisoimage libvirt-daemon libvirt-daemon-system qemu-system-x86 qemu-utils"
  [swift]="swift-proxy swift-account swift-container swift-object"
  [heat]="heat-api heat-engine"
  [ceph]="ceph-common ceph-mgr ceph-mon ceph-osd jq python3-rbd qemu-block-extra"
  [cinder]="cinder-api cinder-backup cinder-scheduler cinder-volume"
  [manila]="manila-api manila-scheduler manila-share"
  [murano]="murano-api murano-engine murano-common"
)
[[ $SERVERS != containers ]] || packages[nova]+=" e2fsprogs libvirt-daemon-driver-lxc"

# processStart tells when a process began, in ticks since the machine did: with its id that names it for good (proc(5)).
processStart() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# box prints the id of the box's first process, and fails when it does not run.
box() {
  local process start
  [[ -f $STATE/box ]] || return 1
  read -r process start <"$STATE/box"
  [[ -n $start && $(processStart "$process") == "$start" ]] || return 1
  echo "$process"
}

makeBox() {
  box >/dev/null && return
  down
  mkdir -p "$STATE/log"
  chmod 755 "$STATE" "$STATE/log"
  STATE=$STATE unshare --mount --net --pid --uts --ipc --fork --mount-proc --propagation private \
    "$here/box.sh" >"$STATE/log/box" 2>&1 </dev/null &
  local outer=$! inner
  for _ in {1..100}; do
    inner=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null || true)
    inner=${inner%% *}
    [[ -z $inner || -s $STATE/box ]] || echo "$inner $(processStart "$inner")" >"$STATE/box"
    if [[ -s $STATE/box && -e $STATE/ready ]]; then
      disown "$outer"
      return
    fi
    kill -0 "$outer" 2>/dev/null || break
    sleep 0.1
  done
  echo "the box did not come up:" >&2
  cat "$STATE/log/box" >&2
  return 1
}

up() {
  ((EUID == 0)) || { echo "only root can make namespaces: run this as root" >&2; exit 1; }
  if [[ $SERVERS == containers ]] && ! awk '$1 == "memory" && $2 > 0 { found = 1 } END { exit !found }' /proc/cgroups; then
    echo "servers that are containers need control groups of version 1, and this machine's are of version 2" >&2
    exit 1
  fi
  local part needed=()
  for part in $PARTS; do read -r -d '' -a needed <<<"${needed[*]} ${packages[$part]}" || true; done
  time_of "Debian packages" "$root/test/setup/packages.sh" "${needed[@]}"
  makeBox
  if [[ " $PARTS " == *" nova "* ]]; then time_of "guest" env OUT="$STATE/guest" "$here/guest.sh"; fi
  (cd "$root" && go build -o "$STATE/seed" ./test/openstack/seed)
  local process
  process=$(box)
  nsenter --target "$process" --mount --net --pid --uts --ipc setsid --wait "$here/inside.sh"
}

time_of() {
  local name=$1 start=$SECONDS
  shift
  "$@"
  printf '%5d s  %s\n' $((SECONDS - start)) "$name"
}

down() {
  local process state device group containers=
  if grep -qs '^virt_type = lxc' "$STATE/etc/nova/nova-compute.conf"; then containers=yes; fi
  if process=$(box); then
    # The kernel ends all processes of a box with its first one, and returns when the last is gone. A frozen one outlives even that, and a
    # container engine freezes its containers for moments.
    kill -KILL "$process"
    while [[ -e /proc/$process ]]; do
      [[ ! $containers ]] || groups | xargs -rI{} find {} -name freezer.state | while read -r state; do echo THAWED >"$state" || true; done 2>/dev/null
      sleep 0.1
    done
  fi
  if [[ $containers ]]; then # what they leave outside of the box: devices of their disks, and control groups
    for device in $(losetup --noheadings --output NAME,BACK-FILE | awk '$2 ~ "/nova/instances/" { print $1 }'); do losetup --detach "$device"; done
    for group in $(groups); do find "$group" -depth -type d -exec rmdir {} + || true; done
  fi
  rm -rf "$STATE"
}

case ${1:-} in
up) up ;;
down) down ;;
run)
  shift
  process=$(box) || { echo "it does not run: $0 up" >&2; exit 1; }
  exec nsenter --target "$process" --net "$@"
  ;;
*)
  sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
