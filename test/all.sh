#!/usr/bin/env bash
# Runs the suites that need the built programs and the node image, and prints how long each took. `make test` runs the quick loop
# and builds both before.
set -euo pipefail
cd "$(dirname "$0")/.."

times=()
suite() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

export BURANO_NODE_IMAGE=${BURANO_NODE_IMAGE:-$PWD/build/node-image.tar}
export BURANO_KUBERNETES_BINARY=${BURANO_KUBERNETES_BINARY:-$PWD/build/bin/kubernetes}

suite "fuzzing the languages and packages" test/fuzz.sh
# But for the tests that pack tens of megabytes, which take minutes then and start no goroutine.
suite "the catalog and its languages under the race detector" env CGO_ENABLED=1 go test -race -count=1 -timeout 15m \
  -skip 'TestWhatIsNoPackageIsRefusedWithItsReason|TestTheSizeThatAnEntryClaimsIsNotBelieved' ./catalog/...
suite "publishing from a real Kubernetes API" go test -count=1 -timeout 10m ./gateway/publish
suite "etcd: more random sequences" env BURANO_ETCD_SEQUENCES=12 go test -count=1 -timeout 10m -parallel 4 -v -run TestTheQuorum ./nodes/etcd
suite "Murano's client and Burano's" go test -count=1 -timeout 20m -skip TestEveryFault ./test/clients
suite "every fault of the cloud at every call" go test -count=1 -timeout 10m -v -run TestEveryFault ./test/clients
suite "the dashboard in a browser" test/dashboard/run.sh
suite "servers of the local cloud" go test -count=1 -timeout 10m ./test/localcloud/hypervisor
suite "no work is lost when servers die" go test -count=1 -timeout 15m -v ./test/durability

# The end-to-end tests, shared out so that none takes over 10 minutes; what is named nowhere runs in the last one.
endToEnd() { suite "end to end: $1" go test -count=1 -timeout 25m -v "${@:2}" ./test/e2e; }
changes='TestActions'
failures='TestNodesThatFail'
jumps='TestNodesWithout'
crashes='TestChangesSurvive|TestAServerThatWasPaused'
mends='TestServersThatAreStopped|TestNodesAreReplaced|TestAClusterIsBack'
endToEnd "actions" -run "$changes"
endToEnd "servers that die or sleep" -run "$crashes"
endToEnd "nodes that fail" -run "$failures"
endToEnd "jumps" -run "$jumps"
endToEnd "repairs, replacements and restores" -run "$mends"
endToEnd "everything else" -skip "$changes|$crashes|$failures|$jumps|$mends"

echo
echo "all suites passed:"
printf '%s\n' "${times[@]}"
