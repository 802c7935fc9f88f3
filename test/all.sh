#!/usr/bin/env bash
# Runs the suites that need the built programs and the node image, and prints how long each took. `make test` runs the quick loop
# and builds both before. Clusters wait often, so two suites run beside each other: one with servers, on a local cloud that outlives a suite, and
# one without, until there are no more of these. With a third one, two processors had 50 threads waiting, and clusters ran out of their patience.
# Suites that only calculate run beside these two at the lowest priority. The output of a suite is printed when it has ended.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=$PWD/build/test
rm -rf "$logs"
mkdir -p "$logs"

# suite NAME COMMAND...: runs a suite, and notes that it has failed. The others go on: who mends one wants to know all that is broken.
suite() {
  local name=$1 start=$SECONDS log=$logs/${1//[^a-z]/-}.log
  shift
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

# share COMMAND SUITE...: runs the command for each suite that nobody else has taken. A machine that is several times slower than usual leaves out
# what would begin after 40 minutes, and says so at the end: `make test` has an end.
latest=$((${BURANO_LATEST_MINUTES:-40} * 60))
share() {
  local one
  for one in "${@:2}"; do
    if mkdir "$logs/taken-${one%% *}" 2>/dev/null; then
      if ((SECONDS < latest)); then "$1" "$one" || true; else echo "${one#* }" >>"$logs/left-out"; fi
    fi
  done
}

export BURANO_NODE_IMAGE=${BURANO_NODE_IMAGE:-$PWD/build/node-image.tar}
export BURANO_KUBERNETES_BINARY=${BURANO_KUBERNETES_BINARY:-$PWD/build/bin/kubernetes}

# Suites without servers, the longest first. The calculating ones change nothing on the machine, and no limit of theirs is short.
calculating=(fuzzing race)
without_servers=(pages dashboard clients durability faults publishing hostile terraform)
pages='pages|clusters|deployments|packages' # files of the dashboard's scenarios that are a suite of their own
without() {
  case $1 in
  fuzzing) suite "fuzzing the languages and packages" nice -n 19 test/fuzz.sh ;;
  race)
    # Once for each state of the code, as unit tests. But for the tests that pack tens of megabytes, which take minutes then and start no
    # goroutine.
    suite "the catalog and its languages under the race detector" env CGO_ENABLED=1 nice -n 19 go test -race -timeout 40m \
      -skip 'TestWhatIsNoPackageIsRefusedWithItsReason|TestTheSizeThatAnEntryClaimsIsNotBelieved' ./catalog/...
    ;;
  pages) suite "the dashboard in a browser: its pages" env BURANO_SCENARIO_FILES="$pages" test/dashboard/run.sh ;;
  dashboard) suite "the dashboard in a browser: everything else" env BURANO_SCENARIO_FILES="!$pages" test/dashboard/run.sh ;;
  clients) suite "Murano's client and Burano's" go test -count=1 -timeout 20m -skip TestEveryFault ./test/clients ;;
  durability) suite "no work is lost when servers die" go test -count=1 -timeout 15m -v ./test/durability ;;
  faults) suite "every fault of the cloud at every call" go test -count=1 -timeout 10m -v -run 'TestEveryFaultAtEveryCallEnds' ./test/clients ;;
  hostile) suite "one tenant, machine or stranger against one server and three" env BURANO_PROGRAM="$PWD/build/burano" go test -count=1 -timeout 10m -v ./test/hostile ;;
  terraform) suite "the provider for Terraform" go -C cmd/terraform-provider-burano test -count=1 -timeout 10m ./... ;;
  publishing) suite "publishing from a real Kubernetes API" go test -count=1 -timeout 10m ./gateway/publish ;;
  esac
}

# The end-to-end tests, shared out into suites of two to five minutes: which tests, and their name; tests that are named nowhere are in the one
# called "*". Suites that matter most come first, and short ones last, so that both lanes end together.
tests=$logs/e2e.test # linked once for all of them
first='TestAnApplicationAnswers'
with_servers=(
  'TestChangesSurvive servers that die'
  'TestAnyMaster masters that are lost'
  'TestAPairOfMasters a pair of masters'
  'TestActionsChange actions'
  'TestNodesThatFail nodes that fail'
  'TestClaimsGet volumes of Cinder'
  'TestOrdinaryEdits ordinary edits'
  'TestEachChange effects of changes'
  '* everything else'
  'TestAUserIsDeleted users who are deleted'
  'TestAHelm releases of Helm'
  'TestAClusterIsBack restores'
  'TestAnEnvironmentHasAPast history and copies'
  'TestCertificates certificates and keys'
  'TestAnEnvironmentComesBack backups of environments'
  'TestServersThatAreStopped repairs'
  'TestAGroup groups of nodes'
  'TestApplications applications on servers'
  'TestADeletedEnvironment deleted environments'
  'TestActionsOnNodes states of nodes'
  'TestAMachineBeside machines beside the cloud'
  'TestAFreshClusterIsUp fresh clusters that are up when they say so'
  'TestNodesWithout jumps'
  'TestTheDashboardLeads the dashboard on a cluster'
  'TestThePackagesOfMurano the methods of Murano'
)
end_to_end() {
  local choice=(-test.run "${1%% *}")
  [[ $1 != \** ]] || choice=(-test.skip "$first$(printf '|%s' "${with_servers[@]%% *}" | sed 's/|\*//')")
  suite "end to end: ${1#* }" env -C test/e2e "$tests" -test.timeout 40m -test.v "${choice[@]}"
}

# Clouds that run beside each other have different slots: one for each of the two lanes with servers, and one for that without.
slots=("${BURANO_SLOT:-0}" "$(((${BURANO_SLOT:-0} + 1) % 10))")
export BURANO_SLOT=$(((${BURANO_SLOT:-0} + 2) % 10))
lab() { echo "$PWD/build/lab-$1"; }
# down takes down the local clouds of servers, also those that a killed run has left.
down() {
  local slot
  for slot in "${slots[@]}"; do
    [[ ! -e $(lab "$slot")/cloud ]] || build/localcloud down --state "$(lab "$slot")/cloud"
    rm -rf "$(lab "$slot")"
  done
}

# servers SLOT: the first test that needs it brings up the local cloud of that slot, and the others find it there.
servers() {
  export BURANO_SLOT=$1 BURANO_LAB
  BURANO_LAB=$(lab "$1")
  share end_to_end "${with_servers[@]}"
  share without "${without_servers[@]}"
}

# The first test with servers compares the machine before and after it, on a local cloud of its own. Meanwhile nobody else may change it.
alone() {
  suite "servers of the local cloud" go test -count=1 -timeout 10m ./test/localcloud/hypervisor &&
    end_to_end "$first an application"
}

go test -c -o "$tests" ./test/e2e
down
trap down EXIT
(share without "${calculating[@]}") &
lanes=($!)
# Where not even the first application answers, no other suite has anything to say.
if alone; then
  (servers "${slots[0]}") &
  lanes+=($!)
  (
    share without "${without_servers[@]}"
    servers "${slots[1]}"
  ) &
  lanes+=($!)
fi
for lane in "${lanes[@]}"; do
  wait "$lane"
done

if [[ -e $logs/failed ]]; then
  while read -r log; do
    echo "== $log" >&2
    cat "$log" >&2
  done <"$logs/failed"
  # A test's last words are often its server's log: whoever sees the end of the output only sees the reasons too.
  while read -r log; do
    echo "== why $log failed:" >&2
    awk '/Error Trace:|panic:|DATA RACE/ { left = 25 } /^✖ failing tests:/ { left = 40 } left-- > 0; /^ *Test: / { left = 0 } /--- FAIL/' "$log" | cut -c 1-300 | tail -n 60 >&2
  done <"$logs/failed"
  # Once more in one line each, for readers that cut long output.
  echo "== in short:" >&2
  while read -r log; do
    awk '/--- FAIL/ { print } /^✖ failing tests:/ { node = 1 } node && /^✖ ./ && !/failing tests:/ { print; if (getline > 0) print } /^ℹ / { node = 0 } /Error Trace:/ { text = ""; left = 12 } left-- > 0 { gsub(/^[ \t]+/, ""); gsub(/[ \t]+/, " "); text = text " " $0 }
      /^ *Test: / { left = 0 } text && left <= 0 { print "--- FAIL, because:" substr(text, 1, 700); text = "" }' "$log" | tail -n 12 >&2
  done <"$logs/failed"
  exit 1
fi
echo
if [[ -e $logs/left-out ]]; then
  echo "NOT RUN, because they would have begun after more than $((latest / 60)) minutes on this machine (BURANO_LATEST_MINUTES=1000 runs them):"
  cat "$logs/left-out"
  echo "all others passed:"
else
  echo "all suites passed:"
fi
cat "$logs/times"
