#!/usr/bin/env bash
# Runs the suites that need the built programs and the node image, and prints how long each took. `make test` runs the quick loop
# and builds both before. Suites with servers of the local cloud run one after another, and the others beside them: clusters wait
# often. What a suite says is printed when it has ended.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=$PWD/build/test
rm -rf "$logs"
mkdir -p "$logs"

# suite NAME COMMAND...: runs a suite, unless one has failed.
suite() {
  local name=$1 start=$SECONDS log=$logs/${1//[^a-z]/-}.log
  shift
  [[ ! -e $logs/failed ]] || return 1
  echo "== $name: begins"
  if "$@" >"$log" 2>&1; then
    {
      flock 9
      cat "$log"
      echo "== $name: ok, $((SECONDS - start)) s"
    } 9>"$logs/printing"
    printf '%5d s  %s\n' $((SECONDS - start)) "$name" >>"$logs/times"
  else
    echo "$log" >>"$logs/failed"
    echo "== $name: FAILED after $((SECONDS - start)) s; what it said follows when all has ended" >&2
    return 1
  fi
}

export BURANO_NODE_IMAGE=${BURANO_NODE_IMAGE:-$PWD/build/node-image.tar}
export BURANO_KUBERNETES_BINARY=${BURANO_KUBERNETES_BINARY:-$PWD/build/bin/kubernetes}

beside() {
  suite "fuzzing the languages and packages" test/fuzz.sh
  # But for the tests that pack tens of megabytes, which take minutes then and start no goroutine.
  suite "the catalog and its languages under the race detector" env CGO_ENABLED=1 go test -race -count=1 -timeout 15m \
    -skip 'TestWhatIsNoPackageIsRefusedWithItsReason|TestTheSizeThatAnEntryClaimsIsNotBelieved' ./catalog/...
  suite "publishing from a real Kubernetes API" go test -count=1 -timeout 10m ./gateway/publish
  suite "etcd: more random sequences" env BURANO_ETCD_SEQUENCES=12 go test -count=1 -timeout 10m -parallel 4 -v -run TestTheQuorum ./nodes/etcd
  suite "Murano's client and Burano's" go test -count=1 -timeout 20m -skip TestEveryFault ./test/clients
  suite "every fault of the cloud at every call" go test -count=1 -timeout 10m -v -run TestEveryFault ./test/clients
  suite "the dashboard in a browser" test/dashboard/run.sh
  suite "no work is lost when servers die" go test -count=1 -timeout 15m -v ./test/durability
}

# The end-to-end tests, shared out so that none takes over 10 minutes; what is named nowhere runs in the last one.
endToEnd() { suite "end to end: $1" go test -count=1 -timeout 25m -v "${@:2}" ./test/e2e; }
changes='TestActions'
failures='TestNodesThatFail'
jumps='TestNodesWithout'
crashes='TestChangesSurvive|TestAServerThatWasPaused'
mends='TestServersThatAreStopped|TestNodesAreReplaced|TestAClusterIsBack'
servers() {
  suite "servers of the local cloud" go test -count=1 -timeout 10m ./test/localcloud/hypervisor
  endToEnd "actions" -run "$changes"
  endToEnd "servers that die or sleep" -run "$crashes"
  endToEnd "nodes that fail" -run "$failures"
  endToEnd "jumps" -run "$jumps"
  endToEnd "repairs, replacements and restores" -run "$mends"
  endToEnd "everything else" -skip "$changes|$crashes|$failures|$jumps|$mends"
}

(servers) &
one=$!
(beside) &
other=$!
passed=yes
wait "$one" || passed=no
wait "$other" || passed=no

if [[ $passed == no ]]; then
  while read -r log; do
    echo "== $log" >&2
    cat "$log" >&2
  done <"$logs/failed"
  exit 1
fi
echo
echo "all suites passed:"
cat "$logs/times"
