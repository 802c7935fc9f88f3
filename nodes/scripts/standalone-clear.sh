#!/bin/bash
# Deletes the folders that went with pods which are not described any more.
#   PODS     the folder with the descriptions
#   VOLUMES  the folder of folders, with a slash at its end
set -euo pipefail
for folder in "${VOLUMES:?}"with/*; do
	[ -d "$folder" ] || continue
	[ -e "$PODS/${folder##*/}.json" ] || rm -rf "$folder"
done
