#!/bin/bash
# Installs PostgreSQL: installDatabase.sh LINES-OF-SOURCES.LIST
set -e
command -v pg_lsclusters && exit 0
echo "$1" >/etc/apt/sources.list
apt-get -qq update
export DEBIAN_FRONTEND=noninteractive
apt-get install -qq -y --no-install-recommends postgresql-common
sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
apt-get install -qq -y --no-install-recommends postgresql
