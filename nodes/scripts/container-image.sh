#!/bin/bash
# Gives what runs containers an image from an archive, and removes the archive. The image is pinned, so that nothing collects it: no registry has it.
#   FILE    the archive
#   NAME    of the image in it
#   DIGEST  by which the node knows later that it has this one
set -euo pipefail
notes=${NOTES:-/var/lib/burano/container-images}
trap 'rm -f "$FILE"' EXIT
image_import "$FILE"
image_pin "$NAME"
mkdir -p "$notes"
echo "$NAME" >"$notes/$DIGEST"
