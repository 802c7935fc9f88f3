#!/usr/bin/env bash
# First process of the box (see openstack.sh), in namespaces that are new. Gives it a loopback interface, a name, and folders of its own
# where libvirt and iproute2 insist on theirs; then it waits, and takes in the processes that others have left behind.
set -euo pipefail
: "${STATE:?folder of everything that is kept}"

# One short path for the folder, whatever its place is, which every service's user can reach.
mkdir -p "$STATE"/{libvirt/{etc,lib,log,cache,run},run}
mount --bind "$STATE" /srv
chmod 1777 /srv/run

mkdir -p /run/netns /run/libvirt
mount -t tmpfs -o mode=755 tmpfs /run/netns
# This network's interfaces are in a sysfs of its own. It shows no control groups, so libvirt puts guests into none.
umount --recursive /sys
mount -t sysfs sysfs /sys
cp -a /etc/libvirt/. /srv/libvirt/etc/
for folder in etc/libvirt var/lib/libvirt var/log/libvirt var/cache/libvirt run/libvirt; do
  mkdir -p "/$folder"
done
mount --bind /srv/libvirt/etc /etc/libvirt
mount --bind /srv/libvirt/lib /var/lib/libvirt
mount --bind /srv/libvirt/log /var/log/libvirt
mount --bind /srv/libvirt/cache /var/cache/libvirt
mount --bind /srv/libvirt/run /run/libvirt

hostname openstack
echo "127.0.0.1 localhost openstack" >/srv/hosts
mount --bind /srv/hosts /etc/hosts
ip link set lo up
sysctl --quiet net.ipv4.ip_forward=1
touch /srv/ready

while :; do
  sleep infinity &
  wait $! || true
done
