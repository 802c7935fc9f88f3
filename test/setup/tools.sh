#!/usr/bin/env bash
# tools.sh IMAGE FOLDER: takes the Kubernetes programs out of the node image, for tests and for users of the demonstration
# (kubectl). Does nothing when they are as new as the image.
set -euo pipefail

image=$1
folder=$2
[[ ! $folder/kubernetes -nt $image ]] || exit 0
mkdir -p "$folder"
tar --extract --file "$image" --directory "$folder" --strip-components 4 --no-same-owner --touch ./opt/burano/bin/kubernetes
ln -sf kubernetes "$folder/kubectl"
