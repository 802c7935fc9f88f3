#!/usr/bin/env bash
# tools.sh IMAGE FOLDER: takes the Kubernetes programs out of the node image, for tests and for users of the demonstration
# (kubectl). Does nothing when they are as new as the image.
set -euo pipefail

image=$1
folder=$2
[[ ! $folder/kubectl -nt $image ]] || exit 0
mkdir -p "$folder"
take() { tar --extract --file "$image" --directory "$folder" --strip-components 4 --no-same-owner --touch "./opt/burano/bin/$1"; }
# The project's own programs are one file each (image build --prebuilt), those that are compiled one for all.
rm -f "$folder"/{kubectl,kubernetes}
if take kubernetes 2>/dev/null; then
  ln -s kubernetes "$folder/kubectl"
else
  take kubectl
fi
