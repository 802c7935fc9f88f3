#!/usr/bin/env bash
# Builds the program of a former version from this repository's history: former.sh COMMIT PROGRAM. Does nothing when it is there already.
set -euo pipefail
cd "$(dirname "$0")/../.."

commit=$(git rev-parse --verify "$1^{commit}")
program=$(realpath --canonicalize-missing "$2")
[[ $(cat "$program.commit" 2>/dev/null) != "$commit" ]] || exit 0
mkdir -p "$(dirname "$program")"
sources=$(mktemp --directory)
trap 'git worktree remove --force "$sources"' EXIT
git worktree add --quiet --detach "$sources" "$commit"
echo "building the program of $(git log -1 --format='%h (%as, %s)' "$commit")"
go -C "$sources" build -o "$program" ./cmd/burano
echo "$commit" >"$program.commit"
