#!/usr/bin/env bash
# Runs tests against a real OpenStack, which it brings up first and removes afterwards: those of the cloud driver and of a plan on a server or, with
# SERVERS=containers, one of a whole cluster: TEST names it; or those of another module (MODULE). With KEEP=1 it stays, for trying again in less time; `test/openstack/openstack.sh down`
# removes it. Arguments go to `go test`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export SERVERS=${SERVERS:-machines} STATE=${STATE:-$root/build/openstack}

[[ -n ${KEEP:-} ]] || trap '"$here/openstack.sh" down' EXIT
"$here/openstack.sh" up
cd "$root/${MODULE:-}"
run() { BURANO_TEST_CLOUDS=$STATE/clouds.yaml go test -count=1 -v -timeout 120m -exec "$here/openstack.sh run" "$@"; }
if [[ $SERVERS == containers ]]; then
  export BURANO_SERVER_IMAGE=$STATE/container.raw
  IMAGE=${BURANO_NODE_IMAGE:?the node image} OUT=$BURANO_SERVER_IMAGE "$here/container.sh"
  run ./test/e2e -run "${TEST:-TestAClusterLivesOnARealOpenStack|TestUsersOfARealOpenStack}" "$@"
elif [[ -n ${MODULE:-} ]]; then
  run ./... "$@"
else
  run ./test/cloud "$@"
  (($#)) || run ./test/e2e -run TestAPlanRunsOnARealOpenStack
fi
