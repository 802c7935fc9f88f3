#!/bin/bash
# Says which of the container images that pods of the cluster are to have are missing, and lets go of those that none has any more: the kubelet may
# then remove them when it needs room.
#   WANTED  lines "DIGEST NAME"
set -euo pipefail
notes=${NOTES:-/var/lib/burano/container-images}
mkdir -p "$notes"
there=$(image_names)
names=$(cut -d ' ' -f 2 <<<"$WANTED")
has() { grep -qxF -- "$1" <<<"$there"; }
for note in "$notes"/*; do
	[ -e "$note" ] || continue
	name=$(cat "$note")
	if grep -qxF -- "${note##*/} $name" <<<"$WANTED"; then continue; fi
	# Of a name that is wanted with other content the note alone goes.
	if has "$name" && ! grep -qxF -- "$name" <<<"$names"; then
		image_unpin "$name"
	fi
	rm "$note"
done
while read -r digest name; do
	[ -n "$digest" ] || continue
	if [ "$(cat "$notes/$digest" 2>/dev/null || true)" != "$name" ] || ! has "$name"; then
		echo "$digest"
	fi
done <<<"$WANTED"
