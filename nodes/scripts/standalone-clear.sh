#!/bin/bash
# Deletes the folders that went with pods which are not described any more, and the files that no pod mounts any more.
#   PODS     the folder with the descriptions
#   VOLUMES  the folder of folders, with a slash at its end
set -euo pipefail
for folder in "${VOLUMES:?}"with/*; do
	[ -d "$folder" ] || continue
	[ -e "$PODS/${folder##*/}.json" ] || rm -rf "$folder"
done
for file in "$VOLUMES"files/*/*; do
	[ -e "$file" ] || continue
	pod=${file%/*}
	grep -qF -- "\"$file\"" "$PODS/${pod##*/}.json" 2>/dev/null || rm -f "$file"
	rmdir --ignore-fail-on-non-empty "$pod"
done
