#!/usr/bin/env bash
# Measures Burano beside a real Murano of Debian's packages, in the box of test/openstack: the same requests to both in one run. With
# KEEP=1 the box stays; `STATE=build/murano test/openstack/openstack.sh down` removes it. Arguments go to the measuring program.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
export STATE=${STATE:-$root/build/murano} PARTS="base keystone neutron heat murano"
box=$root/test/openstack/openstack.sh

[[ -n ${KEEP:-} ]] || trap '"$box" down' EXIT
"$box" up
go build -o "$STATE/bench" "$root/test/bench/api"
"$box" run "$STATE/bench" -burano "$root/build/burano" -murano http://127.0.0.1:8082 -clouds "$STATE/clouds.yaml" "$@"
