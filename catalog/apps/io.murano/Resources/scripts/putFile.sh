#!/bin/bash
# Puts the file "content" that came with it to a path: putFile.sh PATH. A reader sees the former file or the new one, never a half.
set -euo pipefail
mkdir -p "$(dirname "$1")"
if [[ -e $1 ]]; then cp -p --attributes-only "$1" "$1.new"; fi
cat content >"$1.new"
mv -fT "$1.new" "$1"
