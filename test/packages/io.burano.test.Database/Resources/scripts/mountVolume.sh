#!/bin/bash
# Mounts a volume where PostgreSQL keeps its data and its settings, and formats it only when nothing is on it: mountVolume.sh DEVICE
set -e
mkdir -p /var/lib/postgresql
mountpoint -q /var/lib/postgresql && exit 0
blkid "$1" || mkfs.ext4 -q "$1"
mount "$1" /var/lib/postgresql
mkdir -p /var/lib/postgresql/settings
ln -sfn /var/lib/postgresql/settings /etc/postgresql
