#!/usr/bin/env bash
# Brings OpenStack up inside the box (see openstack.sh), where its folder is /srv: databases and queues, then service after service.
# What runs already is left alone. All users have the password "secret": nobody else reaches the box.
set -euo pipefail
: "${PARTS:?the services that are wanted}"
here=$(cd "$(dirname "$0")" && pwd)
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
unset PYTHONPATH PYTHONDONTWRITEBYTECODE http_proxy https_proxy HTTP_PROXY HTTPS_PROXY

for part in processes $PARTS; do
  # shellcheck source=/dev/null
  . "$here/parts/$part.sh"
done
mkdir -p /srv/{etc,data,pid,log}

for part in $PARTS; do
  start=$SECONDS
  "${part}_up"
  printf '%5d s  %s\n' $((SECONDS - start)) "$part"
done
[[ " $PARTS " == *" nova "* ]] || exit 0
start=$SECONDS
/srv/seed cloud
printf '%5d s  %s\n' $((SECONDS - start)) "networks, flavors, image"
