#!/bin/bash
# Unpacks a tar stream from standard input below ROOT (default /) so that every file appears at once:
# all are unpacked into a folder on the same file system first and renamed into place when the stream is complete.
set -euo pipefail
echo $$
root=${ROOT:-}
stage=$root/var/lib/burano/incoming.$$
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage"
tar -x -p --no-same-owner -C "$stage"
cd "$stage"
# one mv for each folder: a rename, since the folder is on the same file system
find . -mindepth 1 -type d -printf '%P\0' | while IFS= read -r -d '' dir; do
	mkdir -p "$root/$dir"
	find "$dir" -maxdepth 1 -mindepth 1 ! -type d -exec mv -f -t "$root/$dir" {} +
done
