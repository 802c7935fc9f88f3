#!/bin/bash
# Takes descriptions of pods from the kubelet, which then ends them, and makes folders that outlive containers, and the folder of their files.
#   PODS     the folder with the descriptions
#   KEEP     the names of those that stay, one a line; or
#   END      the name of one that goes
#   VOLUMES  the folder of folders, with a slash at its end
#   FOLDERS  lines "BYTES NAME": those that are to be there; the disk must have so much room for one that is not
set -euo pipefail
mkdir -p "$PODS" "$VOLUMES" "${VOLUMES}files"
chmod 700 "${VOLUMES}files" # secrets are in it
if [ -n "${END-}" ]; then
	rm -f "$PODS/$END"
else
	for file in "$PODS"/*; do
		[ -e "$file" ] || continue
		grep -qxF -- "${file##*/}" <<<"${KEEP-}" || rm -f "$file"
	done
fi
while read -r bytes name; do
	[ -n "$name" ] || continue
	[ -d "$VOLUMES$name" ] && continue
	free=$(df --output=avail -B1 "$VOLUMES" | tail -n 1)
	if [ "$free" -lt "$bytes" ]; then
		echo "the volume $name asks for $bytes bytes, and the disk has $free left: ask for less, or give the server a larger disk" >&2
		exit 1
	fi
	mkdir -p "$VOLUMES$name"
done <<<"${FOLDERS-}"
