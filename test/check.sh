#!/usr/bin/env bash
# The quick loop: format, vet, lint, dead code, shell scripts, rules of the house and unit tests. Prints how long each part took. The
# dashboard is checked beside the rest, mostly on one processor; what that says is printed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

part() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  echo "== $name: ok, $((SECONDS - start)) s"
}

format() {
  local files
  files=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
  [[ -z $files ]] || {
    echo "not formatted (run gofmt -w): $files" >&2
    return 1
  }
}

scripts() {
  git ls-files --cached --others --exclude-standard | while read -r file; do
    if [[ -f $file ]] && head -n 1 "$file" | grep -aqE '^#!.*\b(bash|sh)$'; then printf '%s\0' "$file"; fi
  done | xargs -0 shellcheck
}

lint() { go tool -modfile=test/lint/go.mod staticcheck ./...; } # with U1000, which finds what nobody uses within a package

# dead finds functions that no program and no test reaches, once for each state of the code. Examples without an output are compiled and never run.
dead() {
  local found state
  state=$(git ls-files --cached --others --exclude-standard '*.go' '*go.mod' '*go.sum' | sort | xargs -d '\n' sha256sum 2>&1 | sha256sum)
  if [[ $(cat build/no-dead-code 2>/dev/null) == "$state" ]]; then
    echo "none in this state of the code"
    return
  fi
  found=$(go tool -modfile=test/lint/go.mod deadcode -test ./...)
  found=$(grep -vE '_test\.go:[0-9:]+ unreachable func: Example' <<<"$found" || true)
  [[ -z $found ]] || {
    echo "no program and no test reaches these functions: remove them, or call them" >&2
    echo "$found" >&2
    return 1
  }
  mkdir -p build
  echo "$state" >build/no-dead-code
}

units() {
  # Without these, tests that need the node image or Kubernetes skip themselves; `make test` runs them.
  unset BURANO_NODE_IMAGE BURANO_KUBERNETES_BINARY
  go list ./... | grep -vE '/test/(e2e|durability|clients|dashboard|hostile)$' | xargs go test -timeout 10m
  for module in programs flannel storage distribution helm; do
    # compiled as for the image, which has most of it compiled already
    (cd "images/modules/$module" && go vet -trimpath ./... && go test -trimpath ./...)
  done
  (cd cmd/terraform-provider-burano/oidc && go vet ./...) # its test needs a Keystone: `make test-openstack-oidc` brings one up
  (cd cmd/terraform-provider-burano && go vet ./...) # its tests start a server: `make test` runs them
  (cd test/conformance/gateway && go vet ./...)      # its test needs a cluster: `make conformance-gateway` brings one up
  (cd test/issuer && go vet ./...)                   # end-to-end tests build it
}

beside() {
  part dashboard web/dashboard/build.sh check
  part format format
  part "shell scripts" scripts
}

code() {
  part vet go vet ./...
  part "vet of test switches" go vet -tags faults ./cmd/burano/server
  part lint lint
  part "dead code" dead
  part "unit tests" units
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
(beside) >"$log" 2>&1 &
one=$!
(code) &
other=$!
passed=yes
wait "$other" || passed=no
wait "$one" || passed=no
cat "$log"
[[ $passed == yes ]] || {
  echo "a part that does not say \"ok\" above has failed" >&2
  exit 1
}
