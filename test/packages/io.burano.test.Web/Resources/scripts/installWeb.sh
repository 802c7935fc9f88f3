#!/bin/bash
# Installs the web server with apt from a repository: installWeb.sh URL
set -e
echo "deb [trusted=yes] $1 ./" >/etc/apt/sources.list.d/web.list
apt-get update -o Dir::Etc::sourcelist=sources.list.d/web.list -o Dir::Etc::sourceparts=-
apt-get install -y burano-test-web
