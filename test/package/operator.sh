#!/usr/bin/env bash
# Packs build/burano in two versions, and has the test TestAnOperatorRunsThePackage install and upgrade them on a clean Debian, against a real OpenStack (test/openstack) whose
# servers are containers. With KEEP=1 the OpenStack stays. Needs root and the node image; a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
test/setup/packages.sh systemd-container
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
test/package/debian.sh "$folder/root" dbus systemd-sysv
images/package/build.sh build/burano "$folder/this" >/dev/null
BURANO_PACKAGE_VERSION=99.0 images/package/build.sh build/burano "$folder/later" >/dev/null
mv "$folder"/this/*.deb "$folder/burano.deb"
mv "$folder"/later/*.deb "$folder/burano-later.deb"
BURANO_TEST_OPERATOR=$folder SERVERS=containers STATE=$PWD/build/openstack-cluster TEST=TestAnOperatorRunsThePackage test/openstack/test.sh "$@"
