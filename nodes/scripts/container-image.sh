#!/bin/bash
# Gives containerd a container image from an archive, and removes the archive. The image is pinned, so that nothing collects it: no registry has it.
#   FILE    the archive
#   NAME    of the image in it
#   DIGEST  by which the node knows later that it has this one
set -euo pipefail
notes=${NOTES:-/var/lib/burano/container-images}
trap 'rm -f "$FILE"' EXIT
ctr -n k8s.io images import "$FILE" >/dev/null
ctr -n k8s.io images label "$NAME" io.cri-containerd.pinned=pinned >/dev/null
mkdir -p "$notes"
echo "$NAME" >"$notes/$DIGEST"
