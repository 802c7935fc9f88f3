#!/bin/bash
# Imports the container images that came with the node image, each once.
set -euo pipefail
images=${IMAGES:-/opt/burano/images}
notes=${NOTES:-/var/lib/burano/images}
mkdir -p "$notes"
for tar in "$images"/*.tar; do
	[ -e "$tar" ] || continue
	note=$notes/$(basename "$tar")
	stamp=$(stat -c '%s %Y' "$tar")
	if [ "$(cat "$note" 2>/dev/null || true)" != "$stamp" ]; then
		ctr -n k8s.io images import "$tar" >/dev/null
		echo "$stamp" >"$note"
		echo "imported $(basename "$tar" .tar)"
	fi
done
