#!/usr/bin/env bash
# Runs each fuzz target of the languages, the packages and the gateways FUZZ_COUNT times (some seconds each by default), or that often divided by the
# third argument. A case that fails is written under testdata/fuzz of its package: mend it and commit the case. Counts, not times: when its time is
# over, go test can take an input that is just running for a failure ("context deadline exceeded").
set -euo pipefail
cd "$(dirname "$0")/.."

fuzz() {
  echo "== fuzz $2 of $1"
  GOMEMLIMIT=${GOMEMLIMIT:-2GiB} go test -run '^$' -fuzz "^$2\$" -fuzztime "$((${FUZZ_COUNT:-10000} / ${3:-1}))x" -fuzzminimizetime 1000x -parallel "${FUZZ_PARALLEL:-4}" "./$1"
}

fuzz catalog/yaql FuzzParseAndEvaluateNeverPanic
fuzz catalog/muranopl FuzzReadingClassesNeverPanics
fuzz catalog/muranopl FuzzRunningMethodsEnds
fuzz catalog/muranopl FuzzLoadNeverPanics
fuzz catalog FuzzManifest
fuzz catalog FuzzReadZip
fuzz catalog/ui FuzzParse
fuzz orchestrator/execution/body FuzzParse
# These write files, and have the many packages of HAProxy's configuration compiled once more: `make soak` alone has them.
[[ -z ${FUZZ_COUNT-} ]] || fuzz gateway/haproxy FuzzWhatUsersWriteStaysWhereItIs 50
[[ -z ${FUZZ_COUNT-} ]] || fuzz gateway/haproxy FuzzRoutesWriteNothingElse 50
