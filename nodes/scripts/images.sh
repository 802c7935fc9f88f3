#!/bin/bash
# Imports the container images that came with the node image: those that what runs containers does not have, and those whose file is another one than
# that which was imported last. They are pinned, so that nothing collects them: no registry has them.
set -euo pipefail
images=${IMAGES:-/opt/burano/images}
notes=${NOTES:-/var/lib/burano/images}
mkdir -p "$notes"
there=$(image_names)
for tar in "$images"/*.tar; do
	[ -e "$tar" ] || continue
	note=$notes/$(basename "$tar")
	stamp="$(stat -c '%s %Y' "$tar") pinned"
	names=$(tar -xOf "$tar" manifest.json | sed 's/.*"RepoTags":\[\([^]]*\)\].*/\1/' | tr -d '" ' | tr ',' '\n')
	missing=$(grep -vxF -f <(echo "$there") <<<"$names" || true)
	if [ -z "$missing" ] && [ "$(cat "$note" 2>/dev/null || true)" = "$stamp" ]; then
		continue
	fi
	image_import "$tar"
	while read -r name; do
		image_pin "$name"
	done <<<"$names"
	echo "$stamp" >"$note"
	echo "imported $(basename "$tar" .tar)"
done
