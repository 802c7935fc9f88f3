#!/usr/bin/env bash
# Runs the tests of the cloud driver against a real OpenStack, which it brings up first and removes afterwards. With KEEP=1 it stays, for
# trying again in less time; `test/openstack/openstack.sh down` removes it. Arguments go to `go test`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export STATE=${STATE:-$root/build/openstack}

[[ -n ${KEEP:-} ]] || trap '"$here/openstack.sh" down' EXIT
"$here/openstack.sh" up
cd "$root"
BURANO_TEST_CLOUDS=$STATE/clouds.yaml go test -count=1 -v -timeout 120m -exec "$here/openstack.sh run" ./test/cloud "$@"
