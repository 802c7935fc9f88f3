#!/bin/bash
# Installs PostgreSQL's client: installClient.sh LINES-OF-SOURCES.LIST
set -e
echo "$1" >/etc/apt/sources.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql-client
