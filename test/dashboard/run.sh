#!/usr/bin/env bash
# run.sh [FLAG...]: runs the tests of the dashboard in Debian's Chromium without windows, which it installs; the flags are those of `go test`.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v node npm >/dev/null; then
  echo "there is no Node on this machine: the dashboard is not tested" >&2
  exit 0
fi
test/setup/packages.sh chromium-headless-shell
web/dashboard/build.sh install
go test -count=1 -timeout 30m -v "$@" ./test/dashboard
