#!/usr/bin/env bash
# compile.sh FOLDER: compiles the programs burano and localcloud into FOLDER, and says how far that has come: the first time it takes minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$1
commit=$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || true)
flags=(-trimpath -ldflags "-s -w -X github.com/burano/burano/internal/version.commit=$commit")
programs=(./cmd/burano ./cmd/localcloud)

# Listing them fetches the sources that are missing, and Go says so.
stale=$(go list "${flags[@]}" -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${programs[@]}" | wc -l)
((stale > 2)) && echo "compiling $stale packages"

# count reads what `go build -v` says, a line for each package that it begins with, and shows every few seconds how many that were.
count() {
  local line begun=0 shown=$SECONDS
  while IFS= read -r line; do
    if [[ $line == *[[:space:]]* ]]; then
      echo "$line"
      continue
    fi
    begun=$((begun + 1))
    if ((SECONDS - shown >= 5)); then
      shown=$SECONDS
      echo "compiled $begun of $stale packages, now $line"
    fi
  done
}

mkdir -p "$folder"
go build -v "${flags[@]}" -o "$folder/" "${programs[@]}" 2>&1 | count
