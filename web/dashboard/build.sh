#!/usr/bin/env bash
# Builds the dashboard into dist/, from where the program embeds it; does nothing when nothing of it has changed. `build.sh check` checks
# types, lints and runs the unit tests instead, unless nothing has changed since they passed; `build.sh install` only fetches what both need.
# Without Node it says so, and the program shows a page that says the same.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v node npm >/dev/null; then
  echo "there is no Node on this machine: the program is built without its dashboard" >&2
  exit 0
fi

# sum is that of files and their names.
sum() { sha256sum "$@" | sha256sum | cut -d ' ' -f 1; }

install() {
  local wanted
  wanted=$(sum package.json package-lock.json .npmrc)
  [[ $(cat node_modules/.installed 2>/dev/null) != "$wanted" ]] || return 0
  echo "dashboard: installing what it is built with"
  npm ci --no-fund --no-audit --loglevel error
  echo "$wanted" >node_modules/.installed
}

case ${1:-build} in
  build)
    readarray -d '' files < <(find src public ./*.json ./*.ts ./*.html ../api/openapi.yaml ../../docs/*.md ../../docs/moved.json -type f ! -name schema.d.ts ! -name '*.test.*' -print0 | sort -z)
    wanted=$(sum "${files[@]}")
    [[ $(cat dist/.built 2>/dev/null) != "$wanted" ]] || exit 0
    install
    echo "dashboard: building"
    find dist -mindepth 1 ! -name .gitkeep -delete
    npm run --silent build
    echo "$wanted" >dist/.built
    ;;
  install)
    install
    ;;
  check)
    readarray -d '' files < <(find src public ./*.* .npmrc ../api/openapi.yaml ../../docs/*.md ../../docs/moved.json -type f ! -name schema.d.ts -print0 | sort -z)
    wanted="$(node --version) $(sum "${files[@]}")"
    if [[ $(cat node_modules/.checked 2>/dev/null) == "$wanted" ]]; then
      echo "dashboard: checked as it is"
      exit 0
    fi
    install
    npm run --silent check
    echo "$wanted" >node_modules/.checked
    ;;
  *)
    echo "usage: build.sh [build|check|install]" >&2
    exit 2
    ;;
esac
