#!/usr/bin/env bash
# Runs each fuzz target of the languages and the packages for a short time (FUZZ_TIME, by default 10 s). A case that fails is written
# under testdata/fuzz of its package: mend it and commit the case.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzz() {
  echo "== fuzz $2 of $1"
  GOMEMLIMIT=${GOMEMLIMIT:-2GiB} go test -run '^$' -fuzz "^$2\$" -fuzztime "${FUZZ_TIME:-10s}" -fuzzminimizetime 5s -parallel "${FUZZ_PARALLEL:-4}" "./$1"
}

fuzz catalog/yaql FuzzParseAndEvaluateNeverPanic
fuzz catalog/muranopl FuzzReadingClassesNeverPanics
fuzz catalog/muranopl FuzzRunningMethodsEnds
fuzz catalog/muranopl FuzzLoadNeverPanics
fuzz catalog FuzzManifest
fuzz catalog FuzzReadZip
fuzz catalog/ui FuzzParse
